"""User tasks: what clients have requested, in the state folder, so that a restart loses none.

Reads are remembered until the service ends. Everything else is a file with a checksum, written
before it is worked on, and again with its answer.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from control.cruise_control.answers import Answer
from control.cruise_control.requests import (
    ENDPOINTS,
    PREFIX,
    BadRequest,
    Request,
    endpoint_of,
    parsed,
)
from control.tasks.sealed_files import checksum_of, read_sealed
from model.errors import ConfigError
from model.files import VersionedModel, make_folder, validate_document, write_document
from model.log_events import LogEvent, named

FOLDER: Final = "cruise-control"
"""In the state folder."""
KIND: Final = "plimsoll.user-task"
MOST_ACTIVE: Final = 5
"""Tasks that are being worked on; further ones are refused."""
MOST_KEPT: Final = 25
"""Finished tasks of each endpoint."""
MOST_BODY: Final = 65_536
"""Bytes of a request's body."""
_log = logging.getLogger("plimsoll.service")


class TaskStatus(StrEnum):
    """The status of a user task, in Cruise Control's words."""

    ACTIVE = "Active"
    """Being computed."""
    EXECUTING = "InExecution"
    """Its moves are waiting or being made."""
    COMPLETED = "Completed"
    FAILED = "CompletedWithError"

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED)


class UserTask(VersionedModel):
    """One request of a client, and its answer; immutable."""

    kind: Literal["plimsoll.user-task"] = KIND
    schema_version: str = "1.0"
    task_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    """The User-Task-ID."""
    endpoint: str
    parameters: Annotated[tuple[tuple[str, str], ...], Field(max_length=100)]
    """Names in lower case and values as sent; sorted."""
    body: Annotated[str, Field(max_length=MOST_BODY)] = ""
    client: str
    """Address of the client, after its name and `@` where it has logged in."""
    started_at_ms: int
    """Milliseconds since the epoch."""
    status: TaskStatus
    answer_status: int = 0
    """Status of the answer in HTTP; 0 before there is one."""
    answer: dict[str, Any] | None = None
    """The answer's document; None before there is one."""
    plan_hash: str = ""
    """The plan that it made, or executes; empty without one."""
    operation: str = ""
    """The task on brokers that executes it; empty without one."""
    checksum: str = ""
    """Of the file without it."""

    @property
    def address(self) -> str:
        """Address of the client."""
        return self.client.rpartition("@")[2]

    def request(self) -> Request:
        """The request as it was sent. Raises BadRequest where this version does not know it."""
        endpoint = ENDPOINTS.get(self.endpoint)
        if endpoint is None:
            raise BadRequest(f"there is no endpoint {self.endpoint!r}")
        return parsed(endpoint, self.parameters, f"/{self.endpoint}", self.body)

    def is_of(self, request: Request) -> bool:
        """Whether this is the task of a request: same endpoint, parameters and body."""
        mine = self.endpoint, self.parameters, self.body
        return mine == (request.endpoint.name, request.pairs, request.body)

    def answered(self, answer: Answer, status: TaskStatus) -> "UserTask":
        """Return the task with its answer."""
        update = {"answer_status": answer.status, "answer": dict(answer.document), "status": status}
        return self.model_copy(update=update)

    def sealed(self) -> "UserTask":
        """Return the task with its checksum."""
        return self.model_copy(update={"checksum": checksum_of(self.model_dump(mode="json"))})


class UserTasks:
    """All tasks, those of earlier services included; any thread may call.

    Answers stay in their files, and are read when they are asked for.
    """

    def __init__(
        self,
        state_dir: Path,
        clock: Callable[[], float],
        written: Callable[[Path], None] = lambda _path: None,
    ) -> None:
        """clock: seconds since the epoch. Files that cannot be read are left out with a warning.

        written: called with each file that has been written.
        """
        self.state_dir, self.folder = state_dir, state_dir / FOLDER
        self._written = written
        self._clock = clock
        self._lock = threading.Lock()
        self._tasks: dict[str, UserTask] = {}
        """By id, without answers, oldest first."""
        self._kept: set[str] = set()
        """Ids of those that have files."""
        self._restore()

    def _restore(self) -> None:
        self.reload(sorted(self.folder.glob("*.task.json")))

    def reload(self, paths: Iterable[Path]) -> None:
        """Read these files again, which another service has written."""
        found = []
        for path in paths:
            if not path.exists():
                continue
            try:
                found.append(self._read(path))
            except ConfigError as exc:
                _log.warning("%s", exc, extra=named(LogEvent.REQUEST_FAILED))
        with self._lock:
            for task in found:
                self._tasks[task.task_id] = task.model_copy(update={"answer": None})
                self._kept.add(task.task_id)
            tasks = sorted(self._tasks.values(), key=lambda t: (t.started_at_ms, t.task_id))
            self._tasks = {task.task_id: task for task in tasks}
            for endpoint in {task.endpoint for task in found}:
                self._forget_old(endpoint)

    def _path(self, task_id: str) -> Path:
        return self.folder / f"{task_id}.task.json"

    def _read(self, path: Path) -> UserTask:
        found = validate_document(UserTask, read_sealed(path, KIND, "request it again"), path)
        if self._path(found.task_id) != path:
            raise ConfigError(f"{path} holds the task {found.task_id}; give it its own name again")
        return found

    def begin(self, request: Request, client: str, *, kept: bool) -> UserTask:
        """A new task that is being worked on; kept: in a file.

        Raises ConfigError where that cannot be written.
        """
        task = UserTask(
            task_id=str(uuid.uuid4()),
            endpoint=request.endpoint.name,
            parameters=request.pairs,
            body=request.body,
            client=client,
            started_at_ms=int(1000 * self._clock()),
            status=TaskStatus.ACTIVE,
        )
        with self._lock:
            if kept:
                self._write(task)
            self._tasks[task.task_id] = task
            self._forget_old(task.endpoint)
        return task

    def end(self, task_id: str, answer: Answer, status: TaskStatus, **facts: str) -> UserTask:
        """Keep the answer of a task; facts: `plan_hash` and `operation`, where there are any.

        Raises ConfigError where its file cannot be written; it has the answer until a restart.
        """
        with self._lock:
            return self._end(task_id, answer, status, facts)

    def end_unless_over(
        self, task_id: str, answer: Answer, status: TaskStatus, **facts: str
    ) -> bool:
        """As `end`, but leave a task that is over as it is; whether it was not."""
        with self._lock:
            before = self._tasks.get(task_id)
            if before is None or before.status.is_over:
                return False
            self._end(task_id, answer, status, facts)
            return True

    def _end(
        self, task_id: str, answer: Answer, status: TaskStatus, facts: Mapping[str, str]
    ) -> UserTask:
        before = self._tasks[task_id].model_copy(update=dict(facts))
        task = before.answered(answer, status)
        self._tasks[task_id] = task.model_copy(update={"answer": None})
        if task_id in self._kept:
            self._write(task)
        return task

    def become(self, task_id: str, status: TaskStatus) -> None:
        """Change the status of a task that has its answer.

        Raises ConfigError as `read` does, or where its file cannot be written.
        """
        with self._lock:
            if self._tasks[task_id].status is status:
                return
            task = self._read(self._path(task_id)).model_copy(update={"status": status})
            self._write(task)
            self._tasks[task_id] = task.model_copy(update={"answer": None})

    def find(self, task_id: str) -> UserTask | None:
        """A task without its answer; None where there is none."""
        with self._lock:
            return self._tasks.get(task_id)

    def read(self, task_id: str) -> UserTask:
        """A task with its answer, where that was kept. Raises ConfigError: its file is damaged."""
        with self._lock:
            if task_id not in self._kept:
                return self._tasks[task_id]
            return self._read(self._path(task_id))

    def all(self) -> list[UserTask]:
        """All tasks without their answers, oldest first."""
        with self._lock:
            return [*self._tasks.values()]

    def _write(self, task: UserTask) -> None:
        try:
            make_folder(self.folder)
        except OSError as exc:
            raise ConfigError(f"cannot create {self.folder}: {exc.strerror}") from exc
        path = self._path(task.task_id)
        write_document(path, task.sealed().model_dump(mode="json"), private=True)
        self._kept.add(task.task_id)
        self._written(path)

    def _forget_old(self, endpoint: str) -> None:
        over = [t for t in self._tasks.values() if t.endpoint == endpoint and t.status.is_over]
        for task in over[:-MOST_KEPT]:
            del self._tasks[task.task_id]
            if task.task_id in self._kept:
                self._kept.discard(task.task_id)
                self._path(task.task_id).unlink(missing_ok=True)


# ---- the answer to `user_tasks`


def tasks_document(tasks: UserTasks, request: Request) -> dict[str, Any]:
    """The newest tasks that the request asks for, newest first.

    Raises BadRequest where it asks for less than one, ConfigError as `UserTasks.read`.
    """
    values = request.values
    most = values.get("entries", MOST_KEPT * len(ENDPOINTS))
    if most < 1:
        raise BadRequest("entries is at least 1")
    found = [task for task in reversed(tasks.all()) if _is_wanted(task, values)][:most]
    full = request.flag("fetch_completed_task", False)
    return {"userTasks": [_row(tasks, task, full=full) for task in found], "version": 1}


def _is_wanted(task: UserTask, values: Mapping[str, Any]) -> bool:
    ids, clients = values.get("user_task_ids"), values.get("client_ids")
    endpoints, types = values.get("endpoints"), values.get("types")
    return (
        (ids is None or task.task_id in ids)
        and (clients is None or task.address in clients)
        and (endpoints is None or task.endpoint in _endpoints(endpoints))
        and (types is None or task.status.value.upper() in _types(types))
    )


def _endpoints(names: Iterable[str]) -> set[str]:
    return {found.name for found in map(endpoint_of, names) if found is not None}


def _types(items: Iterable[str]) -> set[str]:
    """Statuses as `COMPLETED_WITH_ERROR` or `CompletedWithError`, in upper case."""
    return {item.replace("_", "").upper() for item in items}


def _row(tasks: UserTasks, task: UserTask, *, full: bool) -> Mapping[str, Any]:
    endpoint = ENDPOINTS.get(task.endpoint)
    method = "POST" if endpoint is None else endpoint.method
    try:
        url = task.request().url
    except BadRequest:
        url = f"{method} {PREFIX}/{task.endpoint}"
    found = {
        "UserTaskId": task.task_id,
        "Status": task.status.value,
        "StartMs": str(task.started_at_ms),
        "ClientIdentity": task.address,
        "RequestURL": url,
    }
    if full and task.status is TaskStatus.FAILED:
        found["originalResponse"] = TaskStatus.FAILED.value
    elif full and task.answer_status:
        answer = tasks.read(task.task_id).answer
        if answer is not None:
            found["originalResponse"] = Answer(status=200, document=answer).body(as_json=True)
    return found
