"""Views for the plan screen: each of its states, over the demo's cluster."""

import functools
from dataclasses import replace

from control.loop.view import LoopView, Mode, Phase
from control.planning.plan_overrides import PlanOverrides
from control.planning.plan_view import PlanningView, Solving, TracedFrontier, WhatIfView
from model.goals.goals import SolveLimits
from model.ids import BrokerId, PartitionId
from model.plan.plan import Plan, PlanStatus
from model.plan.remaining import OverLimit, RackViolation
from model.plan.warnings import rack_warning
from model.snapshot.what_if import Scenario, WhatIf, suppose
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.trace_frontier import trace_plans
from tests.support.tui.loop_views import AT_MS, GOALS, moves, plan, plan_ready, skewed, solving

WORK = SolveLimits(work=1.0)
SCENARIO = Scenario(remove=(BrokerId(3),))
SO_FAR = Solving(started_at_ms=AT_MS - 4000, objective=0.2381, moves=5, bound=0.1502)


def answered(status: PlanStatus, *reasons: str, ways_out: tuple[str, ...] = ()) -> LoopView:
    """An answer without moves."""
    result = Result(
        status=status,
        best=None,
        objective=None,
        bound=None,
        work=1.0,
        seconds=1.0,
        reasons=reasons,
        relaxation=ways_out,
    )
    level = status is PlanStatus.ALREADY_BALANCED
    return replace(
        solving(),
        phase=Phase.BALANCED if level else Phase.NO_PLAN,
        message=result.summary(),
        proposed=PlanningView(result=result),
    )


def still_solving() -> LoopView:
    return replace(solving(), proposed=PlanningView(solving=SO_FAR))


def asked() -> LoopView:
    """A plan that was edited."""
    asks = PlanOverrides().dropping(PartitionId(moves()[0].topic, 5))
    return replace(plan_ready(), proposed=PlanningView(asks=asks))


def awaited() -> LoopView:
    """A request for a plan other than the present one."""
    view = asked()
    proposed = replace(view.proposed, awaited=True, solving=SO_FAR)
    return replace(view, phase=Phase.SOLVING, proposed=proposed)


def outdated() -> LoopView:
    changes = ("broker 4 is new", "orders-0 is on 3, it was on 1")
    message = "brokers or placement changed since the plan was made"
    return replace(
        plan_ready(),
        phase=Phase.SOLVING,
        message=message,
        proposed=PlanningView(changes=changes, solving=SO_FAR),
    )


def leaving_faults() -> LoopView:
    """A plan after which three limits are exceeded and a partition shares racks."""
    over = tuple(
        OverLimit(
            broker=BrokerId(b),
            dimension="net_in",
            before=9e6,
            after=b * 1e6 + 2e6,
            limit=1.7e6,
            capacity=2e6,
        )
        for b in (1, 2, 3)
    )
    rack = RackViolation(
        topic=moves()[0].topic,
        partition=7,
        repaired=False,
        reason="it is in cooldown after a recent move",
    )
    faults = {
        "over_limit": over,
        "rack_violations": (rack,),
        "warnings": (rack_warning(skewed(), (BrokerId(2),)),),
    }
    return plan_ready(of=plan().model_copy(update=faults))


@functools.cache
def loaded_plan() -> Plan:
    """The solver's own plan, whose moves have the loads of brokers."""
    best = solve(skewed(), GOALS, WORK).best
    assert best is not None
    return best


@functools.cache
def traced() -> TracedFrontier:
    frontier, answers = trace_plans(skewed(), GOALS, WORK, SolveObserver())
    return TracedFrontier(frontier=frontier, snapshot=skewed(), answers=answers)


def with_frontier(mode: Mode = Mode.APPROVE) -> LoopView:
    return replace(plan_ready(mode), proposed=PlanningView(traced=traced()))


@functools.cache
def what_if_answer() -> WhatIf:
    supposed = suppose(skewed(), SCENARIO)
    result = solve(supposed, GOALS, WORK)
    return WhatIf(
        scenario=SCENARIO,
        words=SCENARIO.words(),
        lost=0,
        status=result.status,
        reasons=result.reasons,
        plan=result.best,
    )


def what_if(mode: Mode = Mode.APPROVE) -> LoopView:
    """A what-if with a drained broker, beside a real plan that is ready."""
    supposed = WhatIfView(
        words=SCENARIO.words(), snapshot=suppose(skewed(), SCENARIO), answer=what_if_answer()
    )
    return replace(plan_ready(mode), proposed=PlanningView(supposed=supposed))


STATES: dict[str, LoopView] = {
    "solving": still_solving(),
    "level_already": answered(
        PlanStatus.ALREADY_BALANCED, "every broker is within its tolerance band: 10.0 % in net_in"
    ),
    "no_improvement": answered(
        PlanStatus.NO_IMPROVEMENT,
        "no allowed move gains more than its cost, 0.0263 of F",
        "3 of 12 partitions are kept in place by the goals",
    ),
    "infeasible": answered(
        PlanStatus.INFEASIBLE,
        "broker 3 is draining",
        "the budget allows 2 moves",
        ways_out=(
            "it would be feasible with a budget of 4 moves",
            "it would be feasible without draining broker 3",
        ),
    ),
    "no_plan_in_time": answered(
        PlanStatus.NONE_IN_TIME, "no placement that keeps every rule was found within the limits"
    ),
    "plan_ready": plan_ready(of=plan()),
    "asked": asked(),
    "leaving_faults": leaving_faults(),
    "outdated": outdated(),
    "what_if": what_if(),
}
