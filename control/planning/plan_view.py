"""Views of solves, frontiers and what-ifs for the screen."""

from dataclasses import dataclass
from typing import Final

from control.planning.plan_overrides import NOTHING, PlanOverrides
from model.plan.frontier import Frontier
from model.snapshot.file import SnapshotDocument
from model.snapshot.what_if import WhatIf
from solver.report.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Solving:
    """Progress of a solve."""

    started_at_ms: int
    objective: float | None = None
    """Objective F of the best plan so far; None before there is one."""
    moves: int = 0
    """Moves of that plan."""
    bound: float | None = None
    """Lower bound proved so far; None before the first."""
    stopping: bool = False
    """It was asked to stop with the best plan so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFrontier:
    """A frontier with the plan behind each of its points."""

    frontier: Frontier
    snapshot: SnapshotDocument
    answers: tuple[Result | None, ...]
    """Result per point; None for the current placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfView:
    """A what-if cluster and its plan, which cannot be approved."""

    words: str
    """The scenario in words."""
    snapshot: SnapshotDocument
    """Snapshot of the what-if cluster."""
    solving: Solving | None = None
    """None once the solve has ended."""
    answer: WhatIf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningView:
    """What the screen shows beside the plan itself."""

    asks: PlanOverrides = NOTHING
    awaited: bool = False
    """The plan is older than these requests; another one is being made."""
    solving: Solving | None = None
    result: Result | None = None
    """Result of the last solve."""
    changes: tuple[str, ...] = ()
    """Changes that outdate the plan, in words; empty while it is current."""
    rivals: tuple[str, ...] = ()
    """Competing rebalancers, one sentence each."""
    tracing: Solving | None = None
    """Progress of tracing the frontier."""
    traced: TracedFrontier | None = None
    supposed: WhatIfView | None = None


NONE: Final = PlanningView()
