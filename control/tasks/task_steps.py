"""What to do next about a task, as one pure function of what is known."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from control.tasks.broker_task import BrokerTask

MOST_OUTDATED: Final = 3
"""Plans in a row that may be outdated before their run begins."""

RAN: Final = "its run ended"
OUTDATED: Final = "the cluster changed before its run"
SUPERSEDED: Final = "another run began before it ended"
EMPTY: Final = "it has no moves"


class Step(StrEnum):
    """One step of working on a task."""

    CHECK = "check"
    """Read from the cluster which replicas the brokers still hold."""
    PLAN = "plan"
    ASK = "ask"
    """Ask for approval of the newest plan."""
    EXECUTE = "execute"
    RESUME = "resume"
    """Resume the interrupted run of the newest plan."""
    CLOSE = "close"
    """Note that the newest plan's run has ended."""
    FINISH = "finish"
    GIVE_UP = "give up"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """The run of the newest plan, as its journal has it."""

    unfinished: bool
    newest: bool
    """Whether no other run on the cluster began after it; only such a run can be resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known besides the task itself."""

    left: int | None = None
    """Replicas on the brokers, read since the last run; None if not read yet."""
    run: RunSeen | None = None
    """None where the newest plan has no run."""
    ran_from: int | None = None
    """Replicas before the last run of this process; None where it has run none."""
    outdated: int = 0
    """Plans in a row that this process found outdated."""


def next_step(task: BrokerTask, seen: Seen) -> Step:
    """The next step of a task."""
    if not task.is_open:
        return Step.END
    plan = task.plan
    if plan is None:
        if seen.left is None:
            return Step.CHECK
        if seen.left == 0:
            return Step.FINISH
        moved_none = seen.ran_from is not None and seen.left >= seen.ran_from
        return Step.GIVE_UP if moved_none or seen.outdated >= MOST_OUTDATED else Step.PLAN
    if plan.approved_at_ms is None:
        return Step.ASK
    if seen.run is None:
        return Step.EXECUTE if plan.moves else Step.CLOSE
    if seen.run.unfinished and seen.run.newest:
        return Step.RESUME
    return Step.CLOSE
