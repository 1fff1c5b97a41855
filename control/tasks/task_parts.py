"""What a task is worked on with, and the plans that are found for it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from control.loop.dependencies import RunExecutor
from control.tasks.broker_task import BrokerTask, TaskPlan
from control.tasks.task_cordons import CordonExecutor
from control.tasks.task_files import TaskFiles
from executor.run.operator_control import Steering
from model.errors import PlimsollError
from model.goals.goals import Goals
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan, PlanStatus
from model.run import RunProgress
from model.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from executor.client.responses import ClusterView, PartitionView
    from executor.journal.run_history import PastRun
    from solver.report.result import Result

Solve = Callable[[Snapshot, Goals], "Result"]
"""Finds the best plan for a snapshot under goals."""


class NoPlan(PlimsollError):
    """No plan does what the task asks for; `status` says whether that is proved."""

    def __init__(self, message: str, status: PlanStatus) -> None:
        super().__init__(message)
        self.status = status


class TaskExecutor(RunExecutor, CordonExecutor, Protocol):
    """What a task does on the cluster; `executor.executor.Executor` fits."""

    def cluster(self) -> "ClusterView":
        """The cluster's id, its live brokers and their racks."""
        ...

    def replicas_on(
        self, brokers: Collection[BrokerId]
    ) -> Mapping[PartitionId, tuple[BrokerId, ...]]:
        """Replica lists of the partitions that any of these brokers holds."""
        ...

    def replica_lists(self) -> Mapping[PartitionId, tuple[BrokerId, ...]]:
        """Replica lists of all partitions."""
        ...

    def replicas_in(self, broker: BrokerId, paths: Collection[str]) -> Sequence[PartitionId]:
        """Partitions whose replica on this broker is in one of these log directories."""
        ...

    def knows_cordons(self, broker: BrokerId) -> bool:
        """Whether a live broker has `cordoned.log.dirs`."""
        ...

    def metadata_dir(self, broker: BrokerId) -> str:
        """The log directory in which a broker keeps the cluster's metadata; empty if unknown."""
        ...

    def views_on(self, brokers: Collection[BrokerId]) -> "Mapping[PartitionId, PartitionView]":
        """The partitions that any of these brokers holds."""
        ...

    def min_in_sync(self, topics: Collection[TopicName]) -> Mapping[TopicName, int]:
        """`min.insync.replicas` by topic."""
        ...

    def runs(self, journal_dir: Path, cluster_id: str) -> "list[PastRun]":
        """The newest runs on a cluster, oldest first."""
        ...

    def runs_of(
        self, journal_dir: Path, cluster_id: str, plans: Collection[str]
    ) -> "list[PastRun]":
        """The runs of the plans with these hashes, oldest first, of any age."""
        ...

    def plan_rollback(self, journal_dir: Path, run_id: str | None) -> tuple[Plan, list[str]]:
        """Plan the rollback of a run; the plan, and why moves are left alone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParts:
    """What a task is worked on with; the command line, a loop or a service provide it."""

    files: TaskFiles
    executor: TaskExecutor
    journal_dir: Path
    observe: Callable[[], Snapshot]
    """Take a snapshot of the cluster, with loads."""
    solve: Solve
    """Find the best plan."""
    goals: Goals
    approve: Callable[[BrokerTask, Plan], str]
    """Ask about a plan; return who approves it, or nothing."""
    say: Callable[[str], None]
    """Report a sentence to whoever watches."""
    watch: Callable[[RunProgress], None]
    """Receives the progress of runs."""
    steered: Callable[[], AbstractContextManager[Steering]]
    """Entered around each run; its steering may end the run early."""
    moves_in_flight: int
    now_ms: Callable[[], int]
    """Milliseconds since the epoch."""
    operator: str = ""
    """The person who may stop its runs; empty where the steering says who has stopped one."""
    planned: Callable[[str], None] = lambda _plan_hash: None
    """Is passed the hash of the task's newest plan; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPlan:
    """A plan of a task, and what is known about it."""

    plan: Plan
    entry: TaskPlan
    note: str

    @classmethod
    def of(cls, plan: Plan, note: str, *, left: int, least_bytes: int | None = None) -> "FoundPlan":
        """The plan with its entry in the task's file; `left` and `least_bytes` as there."""
        entry = TaskPlan(
            plan_hash=plan.hash,
            moves=len(plan.moves),
            bytes_to_copy=plan.bytes_to_copy,
            least_bytes=least_bytes,
            replicas=left,
        )
        return cls(plan=plan, entry=entry, note=note)
