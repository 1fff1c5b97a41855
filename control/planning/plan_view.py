"""What the loop shows of its plans while they are made, and of those in thought."""

from dataclasses import dataclass
from typing import Final

from control.planning.plan_overrides import NOTHING, PlanOverrides
from model.plan.frontier import Frontier
from model.snapshot.file import SnapshotDocument
from model.snapshot.what_if import WhatIf
from solver.report.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Solving:
    """A solve that goes on, and what it has come to."""

    started_at_ms: int
    objective: float | None = None
    """F of the best plan so far; None before there is one."""
    moves: int = 0
    """Of that plan."""
    bound: float | None = None
    """Proved so far; None before anything is."""
    stopping: bool = False
    """It was asked to end with the best plan so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFrontier:
    """A frontier with the plan behind each of its points."""

    frontier: Frontier
    snapshot: SnapshotDocument
    answers: tuple[Result | None, ...]
    """By point; None for the cluster as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfView:
    """A cluster that is only supposed, and its plan. Nobody can approve that."""

    words: str
    """What is supposed."""
    snapshot: SnapshotDocument
    """Of the cluster that is supposed."""
    solving: Solving | None = None
    """None once there is an answer."""
    answer: WhatIf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningView:
    """All that the screen shows of plans, beside the plan itself."""

    asks: PlanOverrides = NOTHING
    awaited: bool = False
    """The plan was made before that was asked; another one is being made."""
    solving: Solving | None = None
    result: Result | None = None
    """The last answer."""
    changes: tuple[str, ...] = ()
    """Why the plan is outdated; empty while it is not."""
    rivals: tuple[str, ...] = ()
    """Others that move or may move partitions of the cluster, in words."""
    tracing: Solving | None = None
    """The frontier is being traced."""
    traced: TracedFrontier | None = None
    supposed: WhatIfView | None = None


NONE: Final = PlanningView()
