"""A task on a simulated cluster whose process can be killed at any change."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.s3 import S3Settings
from control.tasks import broker_marks, task_files
from control.tasks.broker_marks import MarkedBrokers
from control.tasks.broker_task import BrokerTask, Operation
from control.tasks.task_archive import TaskArchive
from control.tasks.task_files import TaskFiles
from control.tasks.task_parts import TaskParts
from control.tasks.task_runner import TaskRunner
from executor.executor import Executor
from executor.journal.archive import Archive
from executor.journal.lease import Lease
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import (
    CORDONED,
    SimulatedBroker,
    SimulatedPartition,
    steady,
)
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.files import write_document
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan
from model.run import RunProgress
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
from solver.report.result import Result
from solver.solve import solve
from tests.support.executor.s3_server import CALL_S, Host
from tests.support.executor.simulated_runs import Killed

MB = 10**6
TOPIC = TopicName("orders")
DISK_BYTES = 1e12
"""Of each broker."""
RESOURCES = (Resource.NET_IN, Resource.NET_OUT, Resource.DISK)
WORK = SolveLimits(work=1.0)
LEAST_CHANGES = 10
"""Changes of any task: of the cluster, and of the files of tasks and marks."""


@dataclass(slots=True, kw_only=True)
class SimulatedTask:
    """A cluster, a state folder, and a task on brokers; each call is a new process."""

    folder: Path
    places: Sequence[tuple[int, ...]]
    """Replicas of each partition, leader first."""
    brokers: int = 4
    remove: tuple[int, ...] = (4,)
    """The brokers that the task is about, whatever its operation."""
    operation: Operation = Operation.REMOVE
    onto: int | None = None
    racks: str = "abca"
    storage: StorageKind = StorageKind.REPLICATED
    log_bytes: float = 20.0 * MB
    goals: Goals = field(default_factory=Goals)
    limits: RunLimits = field(default_factory=lambda: RunLimits(moves_in_flight=2))
    approve: Callable[[BrokerTask, Plan], str] = lambda _task, _plan: "ada"
    store: S3Settings | None = None
    """Of the archive; None without one."""
    operator: str = "ada"
    """As of `TaskParts`."""
    name: str = "a"
    """Of the host."""
    shared: SimulatedCluster | None = None
    """The cluster, where another host has made it."""
    cluster: SimulatedCluster = field(init=False)
    host: Host | None = field(init=False, default=None)
    """The client of the archive of all processes of this host."""
    faults: Faults = field(init=False, default_factory=Faults)
    steering: Steering = field(init=False, default_factory=Steering)
    said: list[str] = field(init=False, default_factory=list)
    on_progress: Callable[[RunProgress], None] = lambda _progress: None

    def __post_init__(self) -> None:
        members = range(1, self.brokers + 1)
        self.cluster = self.shared or SimulatedCluster(
            "simulated",
            [SimulatedBroker(id=BrokerId(b), rack=self.racks[b - 1]) for b in members],
            [self.partition(n, place) for n, place in enumerate(self.places)],
            now_s=1_800_000_000.0,
        )
        if self.store is not None:
            self.host = Host(self.store, self.cluster.timing, self.name)

    def partition(
        self, number: int, place: tuple[int, ...], topic: str = TOPIC
    ) -> SimulatedPartition:
        return SimulatedPartition(
            id=PartitionId(TopicName(topic), number),
            topic_id=f"id of {topic}",
            storage=self.storage,
            replicas=[BrokerId(b) for b in place],
            leader=BrokerId(place[0]),
            bytes_in=steady(1.0 * MB),
            log_bytes=self.log_bytes,
        )

    @property
    def files(self) -> TaskFiles:
        if self.host is None:
            return TaskFiles(self.folder)
        timing, name = self.cluster.timing, self.name
        # Simulated time passes in pauses alone, so no thread renews the lease.
        archive = TaskArchive(self.host.bucket, timing, holder=name, renew_s=None)
        return TaskFiles(self.folder, archive)

    @property
    def held(self) -> dict[int, int]:
        """Number of replicas by broker; those without any are absent."""
        found: dict[int, int] = {}
        for partition in self.cluster.partitions.values():
            for broker in partition.replicas:
                found[broker] = found.get(broker, 0) + 1
        return found

    @property
    def states(self) -> dict[int, BrokerState]:
        """The states that marks give to brokers."""
        marks = self.files.marks("simulated")
        return {int(b): s for b, s in broker_marks.states_of(marks, "simulated").items()}

    @property
    def cordons(self) -> dict[int, str]:
        """The value of `cordoned.log.dirs` by broker, where it is set."""
        found = ((int(b.id), b.configs.get(CORDONED)) for b in self.cluster.brokers.values())
        return {broker: value for broker, value in found if value is not None}

    def executor(self) -> Executor:
        admin = SimulatedAdmin(self.cluster, self.faults)
        archive = None
        if self.host is not None:
            timing = self.cluster.timing
            lease = Lease(self.host.bucket, timing, call_s=CALL_S, holder=self.name)
            archive = Archive(self.host.bucket, lease, timing)
        return Executor(admin, timing=self.cluster.timing, limits=self.limits, archive=archive)

    def snapshot(self) -> Snapshot:
        """What a collector would see, with the marks of the state folder."""
        partitions = [p for _, p in sorted(self.cluster.partitions.items())]
        names = sorted({p.id.topic for p in partitions})
        topics = [
            Topic(name=name, topic_id=f"id of {name}", storage=self.storage) for name in names
        ]
        rows = [
            PartitionRow(
                id=p.id,
                topic_id=p.topic_id,
                storage=p.storage,
                internal=False,
                replicas=tuple(p.replicas),
                leader=p.leader,
                size_bytes=int(p.log_bytes),
                local_bytes=0 if p.storage is StorageKind.SHARED else int(p.log_bytes),
            )
            for p in partitions
        ]
        # As every broker reports it, so that plans need the size of each partition that they name.
        disk = {Resource.DISK: DISK_BYTES}
        brokers = tuple(
            Broker(id=b.id, rack=b.rack, state=_state(b), capacity=disk)
            for b in self.cluster.brokers.values()
        )
        marks = MarkedBrokers(self.folder, self.files.mirror_marks)
        header = SnapshotHeader(
            cluster_id=self.cluster.cluster_id,
            taken_at_ms=int(1000 * self.cluster.now_s),
            brokers=marks(self.cluster.cluster_id, brokers),
            topics=tuple(topics),
            resources=RESOURCES,
        )
        size = 0.0 if self.storage is StorageKind.SHARED else self.log_bytes
        loads = np.array([[1.0 * MB, 1.0 * MB, size]] * len(rows)).reshape(-1, 3)
        return Snapshot(header, partitions_from_rows(topics, rows, loads))

    def parts(self) -> TaskParts:
        return TaskParts(
            files=self.files,
            executor=self.executor(),
            journal_dir=self.folder / "journal",
            observe=self.snapshot,
            solve=self._solve,
            goals=self.goals,
            approve=self.approve,
            say=self.said.append,
            watch=self.on_progress,
            steered=lambda: nullcontext(self.steering),
            moves_in_flight=2,
            now_ms=lambda: int(1000 * self.cluster.now_s),
            operator=self.operator,
        )

    def request(self) -> BrokerTask:
        """Record the task."""
        brokers = tuple(map(BrokerId, self.remove))
        ms = int(1000 * self.cluster.now_s)
        onto = None if self.onto is None else BrokerId(self.onto)
        return self.files.add("simulated", self.operation, brokers, "ada", ms, onto)

    def work(self, task: BrokerTask | None = None) -> BrokerTask:
        """Request the task if there is none, and work on it in a new process."""
        found = [t for t in self.files.all() if t.is_open]
        return TaskRunner(task or (found[0] if found else self.request()), self.parts()).run()

    def another_run(self) -> None:
        """Make a run on a topic that is deleted then."""
        topic = TopicName("payments")
        more = self.partition(0, (1, 2), topic)
        self.cluster.partitions[more.id] = more
        request = BrokerTask.requested(
            "set-replicas-new",
            "simulated",
            Operation.SET_REPLICAS,
            (),
            by="ada",
            ms=int(1000 * self.cluster.now_s),
            topics=(topic,),
            replicas=1,
        )
        assert self.work(self.files.store(request)).plans
        del self.cluster.partitions[more.id]

    def continued(self) -> BrokerTask:
        """The only task, which a new process has worked on if it was open, or not requested."""
        (task,) = self.files.all() or [self.request()]
        return self.work(task) if task.is_open else task

    @staticmethod
    def _solve(snapshot: Snapshot, goals: Goals) -> Result:
        return solve(snapshot, goals, WORK)


def _state(broker: SimulatedBroker) -> BrokerState:
    """The state of a broker as a collector sees it."""
    if not broker.alive:
        return BrokerState.DEAD
    cordoned = all(map(broker.is_cordoned, broker.log_dirs))
    return BrokerState.CORDONED if cordoned else BrokerState.ALIVE


@dataclass(slots=True)
class KillSwitch:
    """Kills the process at one change of the cluster or of a file, and at all later ones."""

    change: int
    """Number of the change, from 0."""
    after: bool
    """Right after the change; otherwise right before it."""
    seen: int = 0

    def on_call(self, _call: str, *, made: bool) -> None:
        """Count a call of the cluster."""
        if made == self.after:
            self._hit()

    def write(self, path: Path, document: Mapping[str, Any], *, private: bool = False) -> None:
        """Count the write of a file."""
        if not self.after:
            self._hit()
        write_document(path, document, private=private)
        if self.after:
            self._hit()

    def _hit(self) -> None:
        self.seen += 1
        if self.seen > self.change:
            raise Killed


def killed_tasks(
    folder: Path,
    make: Callable[[Path], SimulatedTask],
    monkeypatch: pytest.MonkeyPatch,
    *,
    made: bool,
    exists: bool = False,
    least: int = LEAST_CHANGES,
) -> Iterator[SimulatedTask]:
    """A task killed at its first change, at its second, ...; the last one is not killed.

    `made`: right after the change, otherwise right before it. `exists`: whether `make` makes the
    folder. least: changes that the whole task makes at the least.
    """
    for change in itertools.count():
        at = make(folder / f"{change}")
        at.folder.mkdir(exist_ok=exists)
        switch = KillSwitch(change, made)
        at.faults.on_call = switch.on_call
        with monkeypatch.context() as patched:
            for module in (broker_marks, task_files):
                patched.setattr(module, "write_document", switch.write)
            try:
                at.work()
            except Killed:
                pass
            else:
                assert change > least
                return
        at.faults.on_call = Faults().on_call
        yield at
