"""What one process does about the task of its world: request, continue or cancel it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from benchmarks.fire.scenarios import CLUSTER_ID, RACKS, Scenario, TaskRequest, twin
from benchmarks.fire.task_invariants import TaskInvariants
from clients.s3 import Bucket
from control.tasks.broker_marks import read_marks
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase
from control.tasks.task_archive import TaskArchive
from control.tasks.task_files import TaskFiles
from control.tasks.task_hold import FREE, TaskHold
from control.tasks.task_parts import TaskParts
from control.tasks.task_runner import TaskRunner, cancel
from executor.client.cluster_admin import ClusterAdmin
from executor.executor import Executor
from executor.run.operator_control import Steering
from executor.timing import Timing
from model.goals.goals import Goals, SolveLimits
from model.ids import NO_BROKER, BrokerId
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)
from solver.report.given_plan import given_plan

_RESOURCES: Final = (Resource.NET_IN, Resource.DISK)
_GOALS: Final = Goals()
_RENEW_S: Final = 5.0
OPERATOR: Final = "operator"


class WatchedArchive(TaskArchive):
    """The shipped archive of tasks, whose writes by workers are checked as they are sent."""

    process: "TaskProcess"

    def put_task(self, task: BrokerTask, etag: str) -> bool:
        """As of the archive."""
        self.process.sends(task.task_id)
        return super().put_task(task, etag)


@dataclass(frozen=True)
class WatchedFiles(TaskFiles):
    """The shipped files of tasks, whose answers are noted as acknowledged."""

    process: Any = None

    def add(self, *request: Any) -> BrokerTask:
        """As of the files."""
        task = super().add(*request)
        self.process.told(task)
        return task

    def change(self, *how: Any, **options: Any) -> BrokerTask:
        """As of the files."""
        task = super().change(*how, **options)
        self.process.told(task)
        return task

    def _change(self, task_id: str, change: Any, hold: TaskHold) -> BrokerTask:
        with self.process.working(hold):
            return super()._change(task_id, change, hold)

    @contextmanager
    def working_on(self, task_id: str) -> Iterator[TaskHold]:
        """As of the files."""
        with super().working_on(task_id) as hold:
            self.process.hold = hold
            yield hold


@dataclass(slots=True, kw_only=True)
class TaskProcess:
    """One process that works on tasks; it knows only its disk and the bucket."""

    scenario: Scenario
    request: TaskRequest
    name: str
    folder: Path
    timing: Timing
    executor: Executor
    admin: ClusterAdmin
    bucket: Bucket | None
    steering: Steering
    holder_of: Callable[[str], str]
    """Who has the lease of a task."""
    invariants: TaskInvariants
    patient: bool
    """Whether the operator approves every plan, and at once."""
    hold: TaskHold = FREE
    _is_worker: bool = field(default=False, init=False)

    # ---- what it does

    def act(self, way: str) -> bool:
        """Do about the newest task what its state asks for; whether nothing is left to do."""
        files = self.files()
        newest = self._newest(files)
        if newest is None or (newest.phase is TaskPhase.FAILED and not newest.is_open):
            newest = self._add(files)
        elif not newest.is_open:
            return True
        elif way != "resume":
            cancel(files, newest, self.name, self.timing.now_ms())
            return True
        else:
            self.invariants.continued += 1
        return not TaskRunner(newest, self._parts(files)).run().is_open

    def rest(self) -> BrokerTask | None:
        """Bring the newest task to an end; how it ended, None where none was requested.

        Raises PlimsollError where it has to be tried again.
        """
        files = self.files()
        newest = self._newest(files)
        if newest is not None and newest.is_open:
            newest = TaskRunner(newest, self._parts(files)).run()
        return newest

    def newest(self) -> BrokerTask | None:
        """The newest task, as this host knows it."""
        return self._newest(self.files())

    def marks(self) -> dict[BrokerId, str]:
        """The task of each mark by broker, as this host knows them once it has asked."""
        self.files().marks(CLUSTER_ID)
        return {m.broker: m.task_id for m in read_marks(self.folder)}

    def files(self) -> WatchedFiles:
        """The tasks of this host."""
        archive = None
        if self.bucket is not None:
            # Time passes in pauses alone, so no thread renews the lease.
            archive = WatchedArchive(self.bucket, self.timing, holder=self.name, renew_s=None)
            archive.process = self
        return WatchedFiles(self.folder, archive, self)

    def _newest(self, files: TaskFiles) -> BrokerTask | None:
        found = files.of(CLUSTER_ID)
        return next((t for t in found if t.is_open), found[-1] if found else None)

    def _add(self, files: TaskFiles) -> BrokerTask:
        onto = twin(self.request.broker) if self.request.replaces else None
        operation = Operation.REPLACE if self.request.replaces else Operation.REMOVE
        brokers, now_ms = (self.request.broker,), self.timing.now_ms()
        return files.add(CLUSTER_ID, operation, brokers, OPERATOR, now_ms, onto)

    def _parts(self, files: TaskFiles) -> TaskParts:
        return TaskParts(
            files=files,
            executor=self.executor,
            journal_dir=self.folder,
            observe=self._observe,
            solve=self._solve,
            goals=_GOALS,
            approve=self._approve,
            say=lambda _: None,
            watch=lambda _: None,
            steered=lambda: nullcontext(self.steering),
            moves_in_flight=self.scenario.moves_in_flight,
            now_ms=self.timing.now_ms,
            operator=OPERATOR,
        )

    # ---- the operator

    def _approve(self, task: BrokerTask, plan: Plan) -> str:
        if not self.patient:
            asked_s = 0.0
            while asked_s < self.request.asks_s:
                self.timing.pause(_RENEW_S)
                # The thread that keeps the lease does so while a person reads.
                self.hold.keep()
                asked_s += _RENEW_S
            if self.request.refuses > self.invariants.asked:
                self.invariants.asked += 1
                return ""
        self.invariants.invariants.approve(plan)
        return OPERATOR

    # ---- plans

    def _observe(self) -> Snapshot:
        """A snapshot, as a collector would take it; raises as the cluster's calls do."""
        found, views = self.admin.cluster(), self.admin.partitions()
        moving = self.admin.reassignments()
        pids = sorted(views)
        ids = {pid.topic: views[pid].topic_id for pid in pids}
        topics = [
            Topic(name=name, topic_id=topic_id, storage=StorageKind.REPLICATED)
            for name, topic_id in sorted(ids.items())
        ]
        size = int(self.scenario.log_bytes)
        rows = [
            PartitionRow(
                id=pid,
                topic_id=views[pid].topic_id,
                storage=StorageKind.REPLICATED,
                internal=False,
                replicas=moving.get(pid, views[pid].replicas),
                leader=views[pid].leader,
                size_bytes=size,
                local_bytes=size,
            )
            for pid in pids
        ]
        header = SnapshotHeader(
            cluster_id=found.cluster_id,
            taken_at_ms=self.timing.now_ms(),
            brokers=tuple(
                Broker(
                    id=BrokerId(b),
                    rack=rack,
                    state=BrokerState.ALIVE if b in found.alive else BrokerState.DEAD,
                )
                for b, rack in enumerate(RACKS, 1)
            ),
            topics=tuple(topics),
            resources=_RESOURCES,
        )
        loads = np.array([[1.0, float(size)]] * len(rows)).reshape(-1, 2)
        return Snapshot(header, partitions_from_rows(topics, rows, loads))

    def _solve(self, snapshot: Snapshot, goals: Goals) -> Any:
        """A plan that empties the broker onto its twin; none where that is dead."""
        old, new = self.request.broker, twin(self.request.broker)
        places = {}
        for row in range(len(snapshot)):
            partition = snapshot.row(row)
            if old in partition.replicas and partition.leader != NO_BROKER:
                held = tuple(new if b == old else b for b in partition.replicas)
                places[row] = held, held[0] if partition.leader == old else partition.leader
        if snapshot.broker[new].state is BrokerState.DEAD:
            return SimpleNamespace(best=None, status=PlanStatus.STOPPED, reasons=("it is dead",))
        plan = given_plan(snapshot, goals, SolveLimits(), places, "drawn")
        return SimpleNamespace(best=plan, status=plan.status, reasons=())

    # ---- what is noted

    def told(self, task: BrokerTask) -> None:
        """Note what a call has acknowledged."""
        self.invariants.acknowledge(task.task_id, task.model_dump(mode="json"))

    def sends(self, task_id: str) -> None:
        """Check a change that is sent to the bucket."""
        if self._is_worker:
            self.invariants.held(self.name, self.holder_of(task_id), task_id)

    @contextmanager
    def working(self, hold: TaskHold) -> Iterator[None]:
        """Changes inside are those of whoever works on the task."""
        before, self._is_worker = self._is_worker, hold is not FREE
        try:
            yield
        finally:
            self._is_worker = before
