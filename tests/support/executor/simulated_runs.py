"""Runs on a simulated cluster that can be killed at any call and resumed."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from executor.executor import Executor
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import Curve, SimulatedBroker, SimulatedPartition, steady
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move, Plan
from model.plan.replication_change import ReplicationChange
from model.run import RunProgress, RunReport
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move, plan
from tests.support.lab.simulated_clusters import LaggingCluster, check_leaders

MB = 10**6
TOPIC = TopicName("orders")


class Killed(BaseException):
    """As SIGKILL: nothing is caught, written or cleaned up after it."""


@dataclass(slots=True, kw_only=True)
class SimulatedRun:
    """A simulated cluster, a folder for journals, and a plan for the cluster."""

    folder: Path
    before: Mapping[int, Sequence[int]]
    """Replicas of each partition of the topic, leader first."""
    after: Mapping[int, Sequence[int]]
    storage: StorageKind = StorageKind.REPLICATED
    brokers: int = 5
    log_bytes: float = 200.0 * MB
    bytes_in: Curve = steady(0.0)  # noqa: RUF009 - it holds nothing
    disk_bytes: float = float("inf")
    leads: Mapping[int, int] = field(default_factory=dict)
    """Leaders before that are not the first of their replicas."""
    leader_check_s: float | None = None
    lags_s: Mapping[int, float] = field(default_factory=dict)
    """Seconds by which brokers' metadata lag behind the controller."""
    log_dirs: tuple[str, ...] = ("/data",)
    """Of each broker; every replica is in the first at the beginning."""
    dirs_after: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Log directories of each replica, where the plan names any."""
    limits: RunLimits = field(default_factory=RunLimits)
    replication: tuple[ReplicationChange, ...] = ()
    """Change of the replication factor of the topic, if any."""
    cluster: SimulatedCluster = field(init=False)
    faults: Faults = field(init=False, default_factory=Faults)
    shown: list[RunProgress] = field(init=False, default_factory=list)
    """Progress shown to the observer."""
    steering: Steering = field(init=False, default_factory=Steering)

    def __post_init__(self) -> None:
        numbers = range(1, self.brokers + 1)
        lags_s = {BrokerId(b): seconds for b, seconds in self.lags_s.items()}
        self.cluster = (partial(LaggingCluster, lags_s=lags_s) if lags_s else SimulatedCluster)(
            CLUSTER_ID,
            [self._broker(b) for b in ids(numbers)],
            [self._partition(number) for number in self.before],
            now_s=1_800_000_000.0,
        )
        if self.leader_check_s is not None:
            check_leaders(self.cluster, self.leader_check_s)

    @property
    def plan(self) -> Plan:
        """From `before` to `after`."""
        return plan(
            [
                self._sized(
                    move(
                        n,
                        self.before[n],
                        to,
                        storage=self.storage,
                        leader_before=self.leads.get(n),
                        dirs_before=[self.log_dirs[0] for _ in self._named(n)],
                        dirs_after=self._named(n),
                    )
                )
                for n, to in self.after.items()
            ],
            live=range(1, self.brokers + 1),
            replication=self.replication,
        )

    @property
    def placement(self) -> dict[int, tuple[tuple[int, ...], int]]:
        """Replicas and leader of each partition."""
        return {
            pid.partition: (tuple(p.replicas), p.leader)
            for pid, p in self.cluster.partitions.items()
        }

    @property
    def partitions(self) -> list[SimulatedPartition]:
        """By their numbers."""
        return [of for _, of in sorted(self.cluster.partitions.items())]

    @property
    def dirs(self) -> dict[int, tuple[str, ...]]:
        """Log directories by partition, where the plan names them."""
        return {
            pid.partition: tuple(p.dirs.get(b, self.log_dirs[0]) for b in p.replicas)
            for pid, p in self.cluster.partitions.items()
            if pid.partition in self.dirs_after
        }

    @property
    def is_clean(self) -> bool:
        """Whether no setting is left anywhere."""
        brokers = [b.configs for b in self.cluster.brokers.values()]
        return not any([*self.cluster.topic_configs.values(), *brokers])

    def executor(self) -> Executor:
        """An executor as in a new process, which knows only the disk and the cluster."""
        admin = SimulatedAdmin(self.cluster, self.faults)
        return Executor(admin, timing=self.cluster.timing, limits=self.limits)

    def run(
        self, to_run: Plan | None = None, observe: Callable[[RunProgress], None] | None = None
    ) -> RunReport:
        """Execute the plan, or another one."""
        return self.executor().execute(
            to_run or self.plan,
            journal_dir=self.folder,
            observe=observe or self.shown.append,
            steering=self.steering,
        )

    def reset_steering(self) -> None:
        """Forget the requests to the previous run."""
        self.steering = Steering()

    def resume(self) -> RunReport:
        """Resume the newest run."""
        return self.executor().resume(
            journal_dir=self.folder, observe=lambda _: None, steering=self.steering
        )

    def roll_back(self) -> RunReport:
        """Undo the newest run."""
        back, left = self.executor().plan_rollback(self.folder, None)
        assert not left
        return self.run(back)

    def kill_at(self, change: int, *, made: bool) -> None:
        """Die right before or after the n-th call that changes something; stay dead."""
        count = itertools.count()

        def on_call(_call: str, *, made: bool) -> None:
            if made == kill_after and next(count) >= change:
                raise Killed

        kill_after, self.faults.on_call = made, on_call

    def stop_killing(self) -> None:
        """Stop killing."""
        self.faults.on_call = Faults().on_call

    def _named(self, number: int) -> Sequence[str]:
        return self.dirs_after.get(number, ())

    def _broker(self, broker: BrokerId) -> SimulatedBroker:
        return SimulatedBroker(id=broker, disk_bytes=self.disk_bytes, log_dirs=self.log_dirs)

    def _sized(self, of: Move) -> Move:
        size = 0 if self.storage is StorageKind.SHARED else int(self.log_bytes)
        return of.model_copy(update={"bytes_to_copy": size * len(of.added)})

    def _partition(self, number: int) -> SimulatedPartition:
        replicas = ids(self.before[number])
        return SimulatedPartition(
            id=PartitionId(TOPIC, number),
            topic_id=move().topic_id,
            storage=self.storage,
            replicas=list(replicas),
            leader=BrokerId(self.leads.get(number, replicas[0])),
            bytes_in=self.bytes_in,
            log_bytes=self.log_bytes,
        )


def run_until_stopped(
    simulated: SimulatedCluster, plan: Plan, folder: Path, stop_after_s: float
) -> tuple[RunReport, Executor]:
    """Execute one move at a time, and stop after some simulated seconds."""
    steering = Steering()
    simulated.after(stop_after_s, steering.stop)
    executor = Executor(
        SimulatedAdmin(simulated, Faults()),
        timing=simulated.timing,
        limits=RunLimits(moves_in_flight=1),
    )
    report = executor.execute(plan, journal_dir=folder, observe=lambda _: None, steering=steering)
    return report, executor


def interrupted_runs(
    folder: Path, make: Callable[[Path], SimulatedRun], *, made: bool, least: int = 2
) -> Iterator[SimulatedRun]:
    """A run killed at its first call that changes something, at its second, ...

    Right before the call or after it is `made`; there are `least` calls or more.
    """
    for change in itertools.count():
        cut = make(folder / f"{change}")
        cut.kill_at(change, made=made)
        try:
            cut.run()
        except Killed:
            cut.stop_killing()
        else:
            break
        yield cut
    assert change >= least
