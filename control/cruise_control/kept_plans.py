"""Plans of dry runs, kept under what was requested, so that exactly they are executed."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from control.cruise_control.requests import FORM, Request
from control.cruise_control.user_tasks import FOLDER
from control.tasks.broker_task import TaskPlan
from control.tasks.sealed_files import checksum_of, read_sealed
from model.errors import ConfigError
from model.files import VersionedModel, digest, make_folder, validate_document, write_document
from model.log_events import LogEvent, named
from model.plan.plan import Plan, read_plan

KIND: Final = "plimsoll.kept-plan"
MOST_KEPT: Final = 50
"""Plans kept; the oldest are removed when there are more."""
_IGNORED: Final = FORM | {"dryrun", "reason", "stop_ongoing_execution"}
"""Parameters that do not change the plan."""
_log = logging.getLogger("plimsoll.service")


class KeptPlan(VersionedModel):
    """Which plan the newest dry run of a request made."""

    kind: Literal["plimsoll.kept-plan"] = KIND
    schema_version: str = "1.0"
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """`key_of` the request."""
    plan_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    task_id: str
    """The user task of the dry run."""
    made_at_ms: int
    """Milliseconds since the epoch."""
    entry: TaskPlan | None = None
    """As the task on brokers notes the plan; None where no task executes it."""
    checksum: str = ""
    """Of the file without it."""


def key_of(request: Request) -> str:
    """What two requests for the same plan share: endpoint, parameters and body."""
    pairs = [
        [name, value.strip().lower() if value.strip().lower() in ("true", "false") else value]
        for name, value in request.pairs
        if name not in _IGNORED
    ]
    return digest({"endpoint": request.endpoint.name, "pairs": pairs, "body": request.body})


class KeptPlans:
    """The kept plans in the state folder; any thread may call."""

    def __init__(
        self, state_dir: Path, written: Callable[[Path], None] = lambda _path: None
    ) -> None:
        """state_dir: the state folder. written: called with each file that has been written
        or removed by `forget`.
        """
        self._written = written
        self._folder = state_dir / FOLDER
        self._lock = threading.Lock()

    def keep(
        self, request: Request, plan: Plan, task_id: str, now_ms: int, entry: TaskPlan | None
    ) -> None:
        """Keep the plan of a dry run instead of that of an earlier one.

        Raises ConfigError where that cannot be written.
        """
        kept = KeptPlan(
            key=key_of(request),
            plan_hash=plan.hash,
            task_id=task_id,
            made_at_ms=now_ms,
            entry=entry,
        )
        with self._lock:
            make_folder(self._folder)
            document = plan.model_dump(mode="json")
            write_document(self.plan_path(plan.hash), document, private=True)
            checksum = checksum_of(kept.model_dump(mode="json"))
            sealed = kept.model_copy(update={"checksum": checksum})
            write_document(self._path(kept.key), sealed.model_dump(mode="json"), private=True)
            for path in (self.plan_path(plan.hash), self._path(kept.key)):
                self._written(path)
            self._forget_old()

    def forget(self, request: Request) -> None:
        """Forget the plan of a request, as where its newest dry run moves nothing."""
        with self._lock:
            path = self._path(key_of(request))
            path.unlink(missing_ok=True)
            self._written(path)

    def forget_old(self) -> None:
        """Keep as many as `keep` does, as after files of another service have come."""
        with self._lock:
            self._forget_old()

    def find(self, request: Request) -> tuple[KeptPlan, Plan] | None:
        """The plan of the newest dry run of a request; None without one.

        Raises ConfigError where a file of it is damaged.
        """
        with self._lock:
            path = self._path(key_of(request))
            if not path.exists():
                return None
            kept = self._read(path)
            plan = read_plan(self.plan_path(kept.plan_hash))
            if plan.hash != kept.plan_hash:
                raise ConfigError(f"{self.plan_path(kept.plan_hash)} is another plan")
            return kept, plan

    def plan_path(self, plan_hash: str) -> Path:
        """The sealed plan."""
        return self._folder / f"{plan_hash}.plan.json"

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.kept.json"

    def _read(self, path: Path) -> KeptPlan:
        document = read_sealed(path, KIND, "request a dry run again")
        kept = validate_document(KeptPlan, document, path)
        if self._path(kept.key) != path:
            raise ConfigError(f"{path} is about another request; request a dry run again")
        return kept

    def _forget_old(self) -> None:
        """Remove the oldest, and plans that no request has."""
        found = []
        for path in self._folder.glob("*.kept.json"):
            try:
                found.append(self._read(path))
            except ConfigError as exc:
                _log.warning("%s", exc, extra=named(LogEvent.REQUEST_FAILED))
        found.sort(key=lambda kept: kept.made_at_ms)
        for kept in found[:-MOST_KEPT]:
            self._path(kept.key).unlink(missing_ok=True)
        used = {kept.plan_hash for kept in found[-MOST_KEPT:]}
        for path in self._folder.glob("*.plan.json"):
            if path.name.removesuffix(".plan.json") not in used:
                path.unlink(missing_ok=True)
