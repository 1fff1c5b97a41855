"""What a run leaves: exceeded limits, rack violations and deferred partitions."""

from collections.abc import Iterator

from model.plan.plan import Plan
from model.plan.remaining import OverLimit, RackViolation
from model.run import MoveState, RunReport

NOT_MADE = "its move was not completed"


def with_remaining(report: RunReport, plan: Plan) -> RunReport:
    """The report of a run with what remains broken of what its plan names.

    Loads are those that the run achieved. Where they are not known, a run that
    completed all moves leaves what the plan foresees, any other what it found.
    """
    return report.model_copy(
        update={
            "over_limit": tuple(_over_limit(report, plan)),
            "rack_violations": tuple(_rack_violations(report, plan)),
            "deferred": plan.goals.deferred,
        }
    )


def _over_limit(report: RunReport, plan: Plan) -> Iterator[OverLimit]:
    achieved = {b.id: b.achieved for b in report.brokers}
    complete = all(m.state is MoveState.DONE for m in report.moves)
    for one in plan.over_limit:
        foreseen = one.after if complete else one.before
        load = achieved.get(one.broker, {}).get(one.dimension, foreseen)
        if (left := one.model_copy(update={"after": load})).remains:
            yield left


def _rack_violations(report: RunReport, plan: Plan) -> Iterator[RackViolation]:
    done = {(m.topic, m.partition) for m in report.moves if m.state is MoveState.DONE}
    for one in plan.rack_violations:
        if not one.repaired:
            yield one
        elif (one.topic, one.partition) not in done:
            yield one.model_copy(update={"repaired": False, "reason": NOT_MADE})
