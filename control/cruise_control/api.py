"""The HTTP side of Cruise Control's API: endpoints, user tasks, and answers that take a while.

A request that takes longer than ten seconds is answered with its progress, and once more with
its result when the client asks again: by the header `User-Task-ID`, or by its session cookie.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Final

from aiohttp import web

from control.cruise_control.answers import (
    ILLEGAL,
    NO_WINDOWS,
    REFUSED,
    Answer,
    Failed,
    done,
    error,
    failure,
    progress,
)
from control.cruise_control.cluster_documents import cluster_state
from control.cruise_control.executing import Execution
from control.cruise_control.load_documents import load, partition_load
from control.cruise_control.planning import Planning
from control.cruise_control.requests import (
    ENDPOINTS,
    PERMISSIONS,
    PLANNED,
    PREFIX,
    REVIEW_ID,
    SETTLED,
    BadRequest,
    Endpoint,
    Request,
    bad,
    endpoint_of,
    parsed,
)
from control.cruise_control.reviews import REVIEWED, review_board, reviewed
from control.cruise_control.settled_answers import permissions, settled
from control.cruise_control.state_documents import StateSources, state
from control.cruise_control.user_tasks import (
    MOST_ACTIVE,
    MOST_BODY,
    TaskStatus,
    UserTask,
    UserTasks,
    tasks_document,
)
from control.loop.view import LoopView
from control.service.http_access import CLIENT
from control.service.logins import Role
from model import __version__
from model.errors import PlimsollError
from model.log_events import LogEvent, named
from model.printable import printable
from model.snapshot.snapshot import Snapshot

TASK_ID: Final = "User-Task-ID"
"""The header that names a user task."""
COOKIE: Final = "JSESSIONID"
"""The cookie of a session, which clients send back without a look at it."""
SESSION_S: Final = 60.0
"""Seconds after its last use that a session is forgotten."""
MOST_SESSIONS: Final = 1_000
SETTLE_S: Final = 1.0
"""Seconds between two looks at what became of orders, at least."""
SETTLE_FACTOR: Final = 20
"""The same as a multiple of the time that one takes."""
BLOCK_S: Final = 10.0
"""Seconds after which a request is answered with its progress, as in Cruise Control."""
HEADERS: Final = {
    # Clients trust the protocol of answers that take a while from 2.0.61 on.
    "Cruise-Control-Version": "2.5.146",
    "Cruise-Control-Commit_Id": f"plimsoll-{__version__}",
    "Cache-Control": "no-store",
}
WITH_BODY: Final = "topic_configuration"
"""The endpoint whose requests may have a body."""
logger = logging.getLogger("plimsoll.service")

Work = Callable[[Request], Answer]
Effortful = Callable[[Request, UserTask], Answer]
"""Work on a task."""


class CruiseControlApi:
    """Handlers of the endpoints; called by the server's thread, but for `close`."""

    def __init__(
        self,
        sources: StateSources,
        tasks: UserTasks,
        planning: Planning,
        execution: Execution,
        *,
        block_s: float = BLOCK_S,
    ) -> None:
        """block_s: seconds after which a request is answered with its progress."""
        self._sources, self._tasks, self._block_s = sources, tasks, block_s
        self._planning, self._execution = planning, execution
        self._settling: Future[None] | None = None
        self._settle_at_s = 0.0
        """When the status of orders may be read again, by the monotonic clock."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """Of the server; None before it begins."""
        self._resumed = False
        """Whether the tasks of an earlier service have been continued."""
        self._sessions = _Sessions()
        # `state` must not wait for anything else.
        self._quick = ThreadPoolExecutor(1, thread_name_prefix="cruise-state")
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="cruise-reads")
        self._plans = ThreadPoolExecutor(1, thread_name_prefix="cruise-plans")
        # A stop must not wait for anything else, either.
        self._stops = ThreadPoolExecutor(1, thread_name_prefix="cruise-stops")
        self._reviews = ThreadPoolExecutor(1, thread_name_prefix="cruise-reviews")
        self._settler = ThreadPoolExecutor(1, thread_name_prefix="cruise-orders")
        self._pools = (
            *(self._quick, self._reads, self._plans),
            *(self._stops, self._reviews, self._settler),
        )
        self._jobs: dict[str, asyncio.Future[Answer]] = {}
        self._quickly: Mapping[str, tuple[Executor, Work]] = {
            "state": (self._quick, lambda request: done(state(sources, request))),
            "kafka_cluster_state": (self._reads, self._cluster_state),
            "user_tasks": (self._reads, lambda request: done(tasks_document(tasks, request))),
            "review_board": (self._reads, self._review_board),
        } | dict.fromkeys(SETTLED, (self._reads, lambda request: settled(sources, request)))
        """Endpoints that are answered at once, whatever it takes."""
        self._steering: Mapping[str, tuple[Executor, Callable[[Request, str], Answer]]] = {
            "stop_proposal_execution": (self._stops, execution.stop),
            "review": (self._reviews, execution.review),
        }
        """The same that change something, with the address of their client."""
        self._patiently: Mapping[str, tuple[Executor, Effortful]] = {
            "load": (self._reads, lambda request, _task: done(load(self._snapshot(), request))),
            "partition_load": (
                self._reads,
                lambda request, _task: done(partition_load(self._snapshot(), request)),
            ),
        } | dict.fromkeys(PLANNED, (self._plans, self._planned))
        """Endpoints that may be answered with their progress."""
        self.requests: Counter[str] = Counter()
        """By the name of the endpoint, since the start."""

    def close(self) -> None:
        """End the threads after the answers that they compute."""
        self._planning.close()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.on_startup.append(self._begun)
        app.router.add_route("*", f"{PREFIX}/{{endpoint}}", self.handle)
        app.router.add_route("*", "/{tail:.*}", self.handle)

    async def _begun(self, _app: web.Application) -> None:
        self._loop = asyncio.get_running_loop()
        if self._sources.service.view is not None:
            self.loads_known()

    def loads_known(self) -> None:
        """Continue the dry runs of an earlier service; any thread may call, as often as it likes.

        They need loads, which are not known at its start.
        """
        if self._loop is not None and not self._resumed:
            self._resumed = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._continue)

    def stand_by(self) -> None:
        """Leave the dry runs of other services to them, until `loads_known` is called again."""
        self._resumed = False

    def settle(self, cluster_id: str) -> None:
        """Bring the status of orders up to date, in a thread; any thread may call, often."""
        executing = any(t.status is TaskStatus.EXECUTING for t in self._tasks.all())
        if not executing or (self._settling is not None and not self._settling.done()):
            return
        if time.monotonic() < self._settle_at_s:
            return
        with contextlib.suppress(RuntimeError):
            self._settling = self._settler.submit(self._settle, cluster_id)

    def _settle(self, cluster_id: str) -> None:
        began_s = time.monotonic()
        self._execution.settle(cluster_id)
        ended_s = time.monotonic()
        # Long journals take a while to read.
        self._settle_at_s = ended_s + max(SETTLE_S, SETTLE_FACTOR * (ended_s - began_s))

    def _continue(self) -> None:
        for task in self._tasks.all():
            if task.status is TaskStatus.ACTIVE and task.task_id not in self._jobs:
                with contextlib.suppress(BadRequest, KeyError):
                    self._start(task, task.request())

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        sent, method = request.match_info.get("endpoint", ""), request.method
        path = f"/{sent}" if sent else request.path
        as_json = _wants_json(request)
        if method not in ("GET", "POST"):
            return _response(error(405, f"{printable(method)} is not supported"), as_json=as_json)
        endpoint = endpoint_of(sent)
        if endpoint is None or endpoint.method != method:
            return _response(_unknown(method, path), as_json=as_json)
        name = endpoint.name
        self.requests[name] += 1
        try:
            asked = parsed(endpoint, [*request.query.items()], path, await _body(request, endpoint))
        except BadRequest as exc:
            return _response(error(400, str(exc)), as_json=as_json)
        except web.HTTPRequestEntityTooLarge:
            found = _response(error(413, _too_large(endpoint)), as_json=as_json)
            found.force_close()
            return found
        client = _client(request)
        if name == PERMISSIONS:
            return _response(permissions(_role(request)), as_json=asked.wants_json)
        if name in self._quickly or name in self._steering:
            if name in self._quickly:
                pool, work = self._quickly[name]
            else:
                pool, steer = self._steering[name]
                work = partial(_steered, steer, client)
            answer = await _in_pool(pool, partial(self._answer, asked, work))
            return self._at_once(answer, asked, client)
        return await self._task(request, asked, client)

    def _at_once(self, answer: Answer, asked: Request, client: str) -> web.Response:
        """Respond with an answer that needed no waiting; its task is not kept in a file."""
        task = self._tasks.begin(asked, client, kept=False)
        status = TaskStatus.FAILED if answer.failed else TaskStatus.COMPLETED
        self._tasks.end(task.task_id, Answer(status=0, document={}), status)
        return _response(answer, as_json=asked.wants_json, task_id=task.task_id)

    async def _task(self, request: web.Request, asked: Request, client: str) -> web.Response:
        """Answer a request that may take a while."""
        respond = partial(_response, as_json=asked.wants_json)
        method, path = asked.endpoint.method, f"/{asked.endpoint.name}"
        header, session = request.headers.get(TASK_ID), request.cookies.get(COOKIE)
        stops = self._execution.stops
        if header is not None:
            task = self._tasks.find(header.strip().lower())
            if task is None or not task.is_of(asked):
                why = f"Unexpected header {TASK_ID} (value: {printable(header)}) in the request."
                return respond(failure(method, path, f"{ILLEGAL}: {why}"))
        else:
            known = self._sessions.task_of(session, asked)
            task = None if known is None else self._tasks.find(known)
        if task is None and asked.endpoint.name in PLANNED:
            # Not behind a plan in progress, nor as one of the few active tasks.
            refused = await _in_pool(self._reads, partial(self._answer, asked, self._refused))
            if refused.failed:
                return self._at_once(refused, asked, client)
        if task is None:
            active = sum(t.status is TaskStatus.ACTIVE for t in self._tasks.all())
            if active >= MOST_ACTIVE:
                why = (
                    f"There are already {active} active user tasks, which has reached the servlet "
                    "capacity."
                )
                return respond(failure(method, path, f"java.lang.RuntimeException: {why}"))
            try:
                task = self._begin(asked, client, stops)
            except PlimsollError as exc:
                return respond(failure(method, path, f"{REFUSED}: {exc}"))
        answer = await self._result(task, asked)
        found = respond(answer, task_id=task.task_id)
        if answer.status == 202:
            session = self._sessions.keep(session, asked, task.task_id)
            found.set_cookie(COOKIE, session, path="/", httponly=True, samesite="Strict")
        else:
            self._sessions.forget(session, asked)
        return found

    def _begin(self, asked: Request, client: str, stops: int) -> UserTask:
        """Begin to work on a request; raises ConfigError where its task cannot be kept.

        stops: the stops of orders before it came.
        """
        task = self._tasks.begin(asked, client, kept=asked.endpoint.name in PLANNED)
        if _is_order(asked) and stops != self._execution.stops:
            # It came before a stop that has not seen its task.
            self._execution.end_order(task)
        self._start(task, asked)
        return task

    def _start(self, task: UserTask, asked: Request) -> None:
        pool, work = self._patiently[asked.endpoint.name]
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(pool, partial(self._finish, task, asked, work))
        self._jobs[task.task_id] = job
        job.add_done_callback(lambda _job: self._jobs.pop(task.task_id, None))

    def _finish(self, task: UserTask, asked: Request, work: Effortful) -> Answer:
        """Compute an answer, and keep it."""
        answer = self._answer(asked, lambda request: work(request, task))
        if self._planning.ended and asked.endpoint.name in PLANNED:
            # The next service continues it.
            return answer
        if answer.executes:
            # Kept already, before the run began.
            return answer
        status = TaskStatus.FAILED if answer.failed else TaskStatus.COMPLETED
        is_read = not (answer.failed or asked.endpoint.name in PLANNED)
        kept = Answer(status=answer.status, document={}) if is_read else answer
        try:
            self._tasks.end(task.task_id, kept, status, plan_hash=answer.plan_hash)
        except PlimsollError as exc:
            logger.warning(
                "the answer to task %s is not kept: %s",
                task.task_id,
                exc,
                extra=named(LogEvent.REQUEST_FAILED),
            )
        return answer

    async def _result(self, task: UserTask, asked: Request) -> Answer:
        """The answer to a task, or its progress."""
        job = self._jobs.get(task.task_id)
        is_planned = asked.endpoint.name in PLANNED
        if is_planned and task.answer_status and (job is None or task.status.is_over):
            return self._answer(asked, lambda _request: self._kept_answer(task))
        if job is None and not is_planned:
            # A read that is over is read again.
            self._start(task, asked)
            job = self._jobs[task.task_id]
        step, words = "COMPUTING", "The plan or the loads are being computed."
        if job is None:
            step, words = "WAITING_FOR_CLUSTER_MODEL", "No loads are known yet since the start."
            await asyncio.sleep(min(1.0, self._block_s))
        else:
            finished, _ = await asyncio.wait({job}, timeout=self._block_s)
            if finished:
                return job.result()
        elapsed_ms = max(0, self._sources.service.now_ms() - task.started_at_ms)
        return progress(asked.endpoint.operation, step, words, elapsed_ms)

    def _kept_answer(self, task: UserTask) -> Answer:
        found = self._tasks.read(task.task_id)
        return Answer(status=found.answer_status, document=found.answer or {})

    # ---- in threads beside the server

    def _answer(self, asked: Request, work: Work) -> Answer:
        """Compute an answer; errors are answers, too."""
        method, path = asked.endpoint.method, f"/{asked.endpoint.name}"
        try:
            if REVIEW_ID in asked.values and asked.endpoint.name != REVIEWED:
                # Nothing that has not been reviewed is done under an id.
                reviewed(self._tasks.state_dir, asked)
            return work(asked)
        except BadRequest as exc:
            return error(400, bad(method, path, str(exc)))
        except Failed as exc:
            return failure(method, path, printable(str(exc)))
        except PlimsollError as exc:
            return failure(method, path, f"{REFUSED}: {printable(str(exc))}")
        except Exception as exc:
            logger.exception(
                "the request %s failed", printable(asked.url), extra=named(LogEvent.SERVICE)
            )
            return failure(method, path, f"internal error: {printable(repr(exc))}")

    def _review_board(self, asked: Request) -> Answer:
        now_ms = self._sources.service.now_ms()
        return done(review_board(self._tasks.state_dir, asked, now_ms))

    def _planned(self, asked: Request, task: UserTask) -> Answer:
        if REVIEW_ID in asked.values:
            return self._execution.reviewed(asked, task, self._snapshot())
        if _is_order(asked):
            return self._execution.order(asked, task, self._snapshot())
        return self._planning.dry_run(asked, task, self._snapshot())

    def _refused(self, asked: Request) -> Answer:
        """An error where it is clear without a plan that a request fails."""
        # What is under review is checked against its own plan.
        if REVIEW_ID not in asked.values:
            snapshot = self._snapshot()
            self._planning.refuse_impossible(asked, snapshot)
            self._execution.refuse_others(asked, snapshot)
            if _is_order(asked):
                self._execution.refuse_now()
        return done({})

    def _snapshot(self) -> Snapshot:
        """The newest snapshot. Raises Failed before the first."""
        return self._view()[1]

    def _view(self) -> tuple[LoopView, Snapshot]:
        service = self._sources.service
        view = service.view
        if view is None or view.snapshot is None:
            raise Failed(service.not_ready() or "no loads are known yet", NO_WINDOWS)
        return view, view.snapshot

    def _cluster_state(self, asked: Request) -> Answer:
        view, snapshot = self._view()
        return done(cluster_state(snapshot, view.replication, asked))


def role_for(request: web.Request) -> Role:
    """The role that a request needs; every login may ask for what does not exist."""
    # As `handle` finds it, so that no other spelling of a path needs less.
    endpoint = endpoint_of(request.match_info.get("endpoint", ""))
    return Role.VIEWER if endpoint is None else endpoint.role


def _is_order(asked: Request) -> bool:
    """Whether a request for a plan is to be executed."""
    return asked.endpoint.method == "POST" and not asked.flag("dryrun", True)


def _client(request: web.Request) -> str:
    """The address of a client, after its name where it has logged in."""
    known = request.get(CLIENT)
    return (request.remote or "") if known is None else f"{known.name}@{known.address}"


def _role(request: web.Request) -> Role:
    """The role of a client; without logins, every client may do everything."""
    known = request.get(CLIENT)
    return Role.ADMIN if known is None else known.role


class _Sessions:
    """Which task a session's next request for the same URL means."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, Request], tuple[float, str]] = {}
        """When it was used last, and the task; oldest first."""

    def keep(self, session: str | None, asked: Request, task_id: str) -> str:
        """Remember a task; returns the session, a new one where there is none."""
        found = session or secrets.token_hex(16)
        self._tasks.pop((found, asked), None)
        self._tasks[found, asked] = asyncio.get_running_loop().time(), task_id
        while len(self._tasks) > MOST_SESSIONS:
            del self._tasks[next(iter(self._tasks))]
        return found

    def task_of(self, session: str | None, asked: Request) -> str | None:
        """The task that is meant; None for a new one."""
        if session is None:
            return None
        used_s, task_id = self._tasks.get((session, asked), (0.0, None))
        return task_id if asyncio.get_running_loop().time() - used_s < SESSION_S else None

    def forget(self, session: str | None, asked: Request) -> None:
        """The next request for the same URL is a new one."""
        if session is not None:
            self._tasks.pop((session, asked), None)


def _steered(steer: Callable[[Request, str], Answer], client: str, asked: Request) -> Answer:
    return steer(asked, client)


async def _in_pool(pool: Executor, work: Callable[[], Answer]) -> Answer:
    return await asyncio.get_running_loop().run_in_executor(pool, work)


async def _body(request: web.Request, endpoint: Endpoint) -> str:
    """The body of a request. Raises HTTPRequestEntityTooLarge, BadRequest where it is not text."""
    if not request.body_exists:
        return ""
    if endpoint.name != WITH_BODY:
        # Not read: the connection is closed after the response.
        raise web.HTTPRequestEntityTooLarge(max_size=0, actual_size=1)
    try:
        return (await request.read()).decode()
    except UnicodeDecodeError:
        raise BadRequest(
            bad(endpoint.method, f"/{endpoint.name}", "its body is not valid UTF-8")
        ) from None


def _too_large(endpoint: Endpoint) -> str:
    if endpoint.name == WITH_BODY:
        return f"the body has more than {MOST_BODY:,} bytes"
    return f"requests of {endpoint.name} have no body"


def _unknown(method: str, path: str) -> Answer:
    supported = ", ".join(e.name.upper() for e in ENDPOINTS.values() if e.method == method)
    return error(
        404,
        f"Unrecognized endpoint in request '{printable(path)}'\n"
        f"Supported {method} endpoints: [{supported}]",
    )


def _wants_json(request: web.Request) -> bool:
    """Whether an error is JSON, also where the parameters are not valid."""
    return any(
        name.lower() == "json" and value.lower() == "true" for name, value in request.query.items()
    )


def _response(answer: Answer, *, as_json: bool, task_id: str = "") -> web.Response:
    headers = HEADERS | ({TASK_ID: task_id} if task_id else {})
    return web.Response(
        status=answer.status,
        text=answer.body(as_json=as_json),
        content_type="application/json" if as_json else "text/plain",
        headers=headers,
    )
