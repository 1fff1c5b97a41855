"""The plans of all efforts beside each other, to choose how far to go."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from control.planning.efforts import goals_at
from control.planning.plan_gain import PlanGain
from control.planning.planner import Planner
from control.planning.validate import refuse_broken
from control.settings.solve_table import limits_at
from model.goals.effort import Effort
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import ROUNDING, Plan, PlanStatus
from model.plan.tolerance import OUTSIDE, OutsideTolerance
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver

Duration = Callable[[Plan], float | None]
"""Estimated seconds of a run of a plan; None where it cannot be estimated."""


def unknown_duration(_plan: Plan) -> None:
    """Estimate nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortStage:
    """What one effort reaches, at which expense."""

    effort: Effort
    status: PlanStatus
    plan: Plan | None
    """The sealed plan; None where there is none."""
    replica_moves: int = 0
    """New replicas."""
    leader_changes: int = 0
    bytes_to_copy: int | None = 0
    """None where the size of any moved partition is unknown."""
    seconds: float | None = None
    """Estimated duration of a run; None where it is not known."""
    outside: tuple[OutsideTolerance, ...] | None = ()
    """Brokers that stay outside their tolerance, the furthest first; None without a plan."""
    gain: PlanGain | None = None
    """None without a plan."""
    notes: tuple[str, ...] = ()
    """What the effort leaves, or why there is no plan; a sentence each."""

    @property
    def moves(self) -> bool:
        """Whether anything would be changed."""
        return bool(self.replica_moves or self.leader_changes)


def stage_of(
    effort: Effort,
    result: Result,
    duration: Duration = unknown_duration,
    notes: tuple[str, ...] = (),
) -> EffortStage:
    """The stage of the result of a solve; `notes` are those of `goals_at`."""
    plan, reasons = result.best, result.reasons
    if effort is Effort.QUICK and plan is not None:
        # Why leader changes alone come no closer needs no explanation.
        reasons = tuple(r for r in reasons if not r.startswith(OUTSIDE))
    if plan is None:
        return EffortStage(
            effort=effort,
            status=result.status,
            plan=None,
            outside=None,
            notes=(*notes, *(reasons or ("no reason known",))),
        )
    return EffortStage(
        effort=effort,
        status=result.status,
        plan=plan,
        replica_moves=sum(len(move.added) for move in plan.moves),
        leader_changes=plan.leader_changes,
        bytes_to_copy=plan.bytes_to_copy,
        seconds=duration(plan) if plan.moves else 0.0,
        outside=plan.outside,
        gain=PlanGain.of(plan),
        notes=(*notes, *reasons),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageInputs:
    """What the plans of all efforts are made of."""

    snapshot: Snapshot
    goals: Goals
    """Those of `good`; as `plan` would get them."""
    limits: SolveLimits
    """As configured (`Settings.solve`): limits that are set hold for every effort."""
    planner: Planner
    duration: Duration = unknown_duration
    efforts: Collection[Effort] = tuple(Effort)


FINAL: Final = (PlanStatus.OPTIMAL, PlanStatus.INFEASIBLE, PlanStatus.ALREADY_BALANCED)
"""Outcomes of `good` that no further search changes."""
OPTIMAL: Final = "the plan of good is proved optimal"
KEPT: Final = "no better plan was found than that of good"


def solve_stages(inputs: StageInputs, observer: SolveObserver) -> tuple[EffortStage, ...]:
    """Solve once per effort, the cheapest first.

    `best` has the plan of `good` unless a better one is found; none is searched where that is
    proved optimal. An observer that stops ends the solve in progress with its best plan so far,
    and the efforts after it are left out. Raises PlimsollError if the evaluator rejects a plan.
    """
    stages: list[EffortStage] = []
    for effort in (e for e in Effort if e in inputs.efforts):
        good = next((s for s in stages if s.effort is Effort.GOOD), None)
        stages.append(_next_stage(inputs, observer, effort, good))
        if observer.stops():
            break
    return tuple(stages)


def _next_stage(
    inputs: StageInputs, observer: SolveObserver, effort: Effort, good: EffortStage | None
) -> EffortStage:
    if effort is Effort.BEST and good is not None and good.status in FINAL:
        notes = (OPTIMAL,) if good.status is PlanStatus.OPTIMAL else good.notes
        return replace(good, effort=effort, notes=notes)
    wanted = goals_at(inputs.snapshot, inputs.goals, effort)
    limits = limits_at(inputs.limits, effort)
    result = inputs.planner(inputs.snapshot, wanted.goals, limits, observer, None)
    refuse_broken(inputs.snapshot, result.best)
    stage = stage_of(effort, result, inputs.duration, wanted.notes)
    if effort is Effort.BEST and good is not None and not _is_better(stage, good):
        return replace(good, effort=effort, notes=(KEPT,))
    return stage


def _is_better(stage: EffortStage, good: EffortStage) -> bool:
    """Whether a plan is better in the first respect in which they differ by more than the gap."""
    if stage.plan is None or good.plan is None:
        return good.plan is None
    for now, then in zip(_rank(stage.plan), _rank(good.plan), strict=True):
        if abs(now - then) > stage.plan.limits.gap + ROUNDING * max(abs(now), abs(then)):
            return now < then
    return False


def _rank(plan: Plan) -> tuple[float, ...]:
    """What plans are compared by, most important first; less is better."""
    return (
        sum(not v.repaired for v in plan.rack_violations),
        sum(o.after / o.limit - 1.0 for o in plan.over_limit if o.remains and o.limit),
        sum(o.excess for o in plan.outside) if plan.goals.tolerance_first else 0.0,
        plan.objective,
    )
