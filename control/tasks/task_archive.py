"""Tasks and marks in the archive's bucket, so that any host lists, continues and cancels them.

    tasks/<cluster id>/broker-marks.json
    tasks/<cluster id>/<task id>/task.json
    tasks/<cluster id>/<task id>/lease.json      held by the process that works on the task
    tasks/<cluster id>/<task id>/<hash>.plan     the first 12 digits of the plan's hash

Each object is changed by conditional writes only, so of several processes that change one state,
a single one succeeds, and the others read again. The lease is the task's own: a plan may wait for
its approval for hours, and must not keep others from changing the cluster meanwhile. Runs of the
task have the cluster's lease besides.
"""

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clients.s3 import Bucket, S3Settings
from control.tasks.broker_marks import KIND as MARKS_KIND
from control.tasks.broker_marks import BrokerMark, MarksFile, sealed_marks
from control.tasks.broker_task import KIND, TASK_ID, BrokerTask
from control.tasks.sealed_files import parse_sealed
from control.tasks.task_hold import TaskHold
from executor.journal.archive import Archive
from executor.journal.lease import Lease, LeaseUse, Sightings, this_process
from executor.timing import Timing
from model.errors import ConfigError
from model.files import canonical, validate_document
from model.paths import path_part
from model.plan.plan import Plan

FOLDER: Final = "tasks/"
CALL_S: Final = 5.0
"""Seconds that one change of a task takes at most; the lease outlasts it."""
SPARE_S: Final = 15.0
"""Seconds by which the lease of a task outlasts a change."""
RENEW_S: Final = 5.0
"""Seconds between two looks of the thread that renews the lease."""
_TASK, _LEASE, _MARKS, _PLAN = "task.json", "lease.json", "broker-marks.json", ".plan"
_REAL_TIME: Final = Timing()
_UNUSED: Final = LeaseUse("", "")
"""Of a lease that is not taken."""


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task as the listing has it."""

    folder: str
    """The cluster's id, quoted."""
    task_id: str
    size: int
    """Bytes of `task.json`."""


class TaskArchive:
    """The tasks and marks of clusters in a bucket.

    Every call raises as `Bucket` does, and ConfigError for objects that cannot be read.
    """

    def __init__(
        self,
        bucket: Bucket,
        timing: Timing = _REAL_TIME,
        *,
        holder: str,
        renew_s: float | None = RENEW_S,
        sightings: Sightings | None = None,
    ) -> None:
        self.timing = timing
        self._bucket = bucket
        self._holder = holder
        self._renew_s = renew_s
        self._sightings = sightings

    @property
    def where(self) -> str:
        """Where the tasks lie, for messages."""
        return self._bucket.where(FOLDER)

    # ---- tasks

    def entries(self) -> list[TaskEntry]:
        """List the tasks of all clusters, by one listing; what is not a task's is ignored."""
        found = []
        for name, size in self._bucket.sizes(FOLDER).items():
            folder, _, rest = name.partition("/")
            task_id, _, file = rest.partition("/")
            if folder and file == _TASK and re.fullmatch(TASK_ID, task_id):
                found.append(TaskEntry(folder, task_id, size))
        return found

    def task(self, folder: str, task_id: str) -> tuple[BrokerTask | None, str]:
        """Read a task of the cluster with this quoted id; None and no ETag where there is none."""
        key = f"{FOLDER}{folder}/{task_id}/{_TASK}"
        found = self._bucket.get(key)
        if found is None:
            return None, ""
        where = self._bucket.where(key)
        document = parse_sealed(found.body, where, KIND, "request the task again")
        task = validate_document(BrokerTask, document, where)
        if (task.task_id, path_part(task.cluster_id)) != (task_id, folder):
            raise ConfigError(
                f"{where} holds the task {task.task_id} of the cluster {task.cluster_id}; give "
                "the object its own name again"
            )
        # Sealed again, since fields of a newer minor version were left out.
        return task.sealed(), found.etag

    def put_task(self, task: BrokerTask, etag: str) -> bool:
        """Replace the task of this ETag, or create it without one; whether it was so."""
        return self._put(f"{_folder(task)}{_TASK}", canonical(task.model_dump(mode="json")), etag)

    def plan(self, task: BrokerTask, plan_hash: str) -> bytes:
        """Read a plan of a task, not validated; raises ConfigError where it is missing."""
        key = f"{_folder(task)}{plan_hash[:12]}{_PLAN}"
        found = self._bucket.get(key)
        if found is None:
            raise ConfigError(
                f"{self._bucket.where(key)} is missing; restore it, or cancel task {task.task_id} "
                "and request it again"
            )
        return found.body

    def put_plan(self, task: BrokerTask, plan: Plan) -> None:
        """Write a plan beside its task; the same plan again changes nothing."""
        key = f"{_folder(task)}{plan.hash[:12]}{_PLAN}"
        if not self._put(key, canonical(plan.model_dump(mode="json")), ""):
            raise ConfigError(f"{self._bucket.where(key)} is another plan; move it away")

    # ---- workers

    @contextlib.contextmanager
    def working_on(self, task: BrokerTask) -> Iterator[TaskHold]:
        """Hold the lease of a task.

        Waits until the lease of a worker that seems to have died has ended. Raises
        GuardrailRefused where another process works on the task.
        """
        named = task.task_id
        use = LeaseUse(
            f"works on task {named}",
            f"Wait until it ends, or cancel the task with plimsoll task cancel {named}.",
        )
        lease = self._lease(use)
        hold = TaskHold(lease, self.timing)
        with (
            lease.held_at(f"{_folder(task)}{_LEASE}", threading.Event()),
            hold.renewed(self._renew_s),
        ):
            yield hold

    def worker_of(self, task: BrokerTask) -> str:
        """Which process works on a task, by its host's clock; empty where none does."""
        return self._lease(_UNUSED).holder_of(f"{_folder(task)}{_LEASE}")

    def _lease(self, use: LeaseUse) -> Lease:
        return Lease(
            self._bucket,
            self.timing,
            call_s=CALL_S,
            spare_s=SPARE_S,
            holder=self._holder,
            use=use,
            sightings=self._sightings,
        )

    # ---- marks

    def marks(self, cluster_id: str) -> tuple[tuple[BrokerMark, ...] | None, str]:
        """Read the marks of a cluster; None and no ETag where there is no object."""
        key = _marks_key(cluster_id)
        found = self._bucket.get(key)
        if found is None:
            return None, ""
        where = self._bucket.where(key)
        document = parse_sealed(
            found.body, where, MARKS_KIND, "set its marks again with plimsoll broker exclude"
        )
        marks = validate_document(MarksFile, document, where).marks
        if any(mark.cluster_id != cluster_id for mark in marks):
            raise ConfigError(f"{where} has marks of another cluster; move it away")
        return marks, found.etag

    def put_marks(self, cluster_id: str, marks: tuple[BrokerMark, ...], etag: str) -> bool:
        """Replace the marks of this ETag, or create them without one; whether it was so."""
        return self._put(_marks_key(cluster_id), canonical(sealed_marks(marks)), etag)

    def fetch_cordons(self, journal_dir: Path, cluster_id: str) -> None:
        """Download the journals of a cluster's cordons, as `Archive.fetch_cordons`."""
        runs = Archive(self._bucket, self._lease(_UNUSED), self.timing)
        runs.fetch_cordons(journal_dir, cluster_id)

    def _put(self, key: str, body: bytes, etag: str) -> bool:
        if not etag:
            return self._bucket.put_new(key, body) is not None
        return self._bucket.put_over(key, body, etag) is not None


def task_archive_of(settings: S3Settings, sightings: Sightings | None = None) -> TaskArchive:
    """Open the tasks in a bucket for this process; sightings: shared with its other leases."""
    return TaskArchive(Bucket(settings), holder=this_process(), sightings=sightings)


def _folder(task: BrokerTask) -> str:
    return f"{FOLDER}{path_part(task.cluster_id)}/{task.task_id}/"


def _marks_key(cluster_id: str) -> str:
    return f"{FOLDER}{path_part(cluster_id)}/{_MARKS}"
