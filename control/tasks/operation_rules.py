"""What the runner needs to know of an operation: a row of the table of operations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from control.tasks.broker_marks import MarkState
from control.tasks.broker_task import BrokerTask, TopicAtMinIsr
from control.tasks.task_cordons import cordon, cordoned_by_others, uncordon
from control.tasks.task_parts import FoundPlan, TaskParts
from model.goals.goals import Goals
from model.snapshot.snapshot import BrokerState, Snapshot
from model.units import listed

MOST_NAMED: Final = 3
"""Partitions named in a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left to do of a task, as the cluster shows it."""

    count: int
    """0 where the task is done."""
    words: str
    """`4 partitions still on broker 4 (orders-0, orders-1, ...)`.

    Where the task is done: what it cannot do, if anything.
    """

    @classmethod
    def of(cls, partitions: Sequence[object], words: str) -> "Left":
        """Partitions that are left; words: what is wrong with them, as a clause."""
        if not partitions:
            return cls(count=0, words="")
        noun = "partition" if len(partitions) == 1 else "partitions"
        named = listed(sorted(map(str, partitions)), MOST_NAMED)
        return cls(count=len(partitions), words=f"{len(partitions):,} {noun} {words} ({named})")

    @classmethod
    def none(cls, words: str = "") -> "Left":
        """Nothing that the task can do; words: what it cannot."""
        return cls(count=0, words=words)


Observe = Callable[[], Snapshot]
"""The newest snapshot; takes one where the last is outdated."""


def cordon_brokers(task: BrokerTask, parts: TaskParts) -> None:
    """Cordon the brokers of a task as a whole."""
    cordon(parts.executor, task.brokers, parts.journal_dir, task.cluster_id, task.by, parts.say)


def uncordon_brokers(task: BrokerTask, parts: TaskParts) -> bool:
    """End own cordons of whole brokers that no other mark wants; whether any was changed."""
    wanted = cordoned_by_others(parts.files.marks(task.cluster_id), task)
    brokers = [b for b in task.brokers if b not in wanted]
    return bool(brokers) and uncordon(
        parts.executor, brokers, parts.journal_dir, task.cluster_id, task.by, parts.say
    )


def nothing_forbids(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    """Refuse nothing: the plan names what cannot be done."""


def always_needed(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> bool:
    """A request is recorded whatever the cluster shows: it marks or cordons something, too."""
    del task, snapshot, goals
    return False


def no_cordon(task: BrokerTask, parts: TaskParts) -> None:
    """The operation needs no cordon."""


def nothing_cordoned(task: BrokerTask, parts: TaskParts) -> bool:
    """Nothing was cordoned, so that nothing is changed."""
    del task, parts
    return False


def none_at_min_isr(task: BrokerTask, parts: TaskParts) -> tuple[TopicAtMinIsr, ...]:
    """The brokers are not meant to be stopped, or hold nothing."""
    del task, parts
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRules:
    """How the runner does one operation; files, steps and runs are common to all."""

    refuse: Callable[[BrokerTask, Snapshot, Goals], None]
    """Raise GuardrailRefused where the request is impossible, before anything is stored."""
    needless: Callable[[BrokerTask, Snapshot, Goals], bool] = always_needed
    """Whether the cluster is as requested, so that no task is recorded."""
    find: Callable[[BrokerTask, Snapshot, TaskParts], FoundPlan]
    """Find its next plan. Raises GuardrailRefused where it is impossible, else NoPlan."""
    left: Callable[[BrokerTask, TaskParts, Observe], Left]
    """Read what is left to do."""
    mark: MarkState | None
    """The state of its brokers from the request on; None leaves their marks."""
    mark_approved: MarkState | None
    """The same once a plan is approved; None removes their marks."""
    marks: bool = True
    """Whether it sets or removes marks of brokers at all."""
    cordon: Callable[[BrokerTask, TaskParts], None] = cordon_brokers
    """Let Kafka keep new replicas away, too, where it can; again changes nothing."""
    uncordon: Callable[[BrokerTask, TaskParts], bool] = uncordon_brokers
    """End own cordons; whether any was changed."""
    rests: bool = False
    """Whether a plan without moves ends it: nothing more is worth its cost."""
    replaces: frozenset[BrokerState] = frozenset()
    """States of marks that it may replace, besides those of its own task."""
    at_min_isr: Callable[[BrokerTask, TaskParts], tuple[TopicAtMinIsr, ...]] = none_at_min_isr
    """Topics that its brokers must not be stopped for, though they lead nothing."""
    verified: Callable[[BrokerTask], str]
    """What the cluster shows at the end."""
    done: Callable[[BrokerTask], str]
    """What that means for the operator."""
    besides: Callable[[BrokerTask], str] = lambda _task: ""
    """What it does where nothing has to move, as a clause without a subject; empty for nothing."""
    advise: Callable[[BrokerTask, TaskParts], None] | None = None
    """Say at the end what depends on the cluster. None: operations without marks say so where
    there was nothing to do."""
