"""Phase and message of the loop after a decision or the result of a solve."""

from typing import NamedTuple

from control.loop.policy import Decision
from control.loop.view import Phase
from control.planning.validate import spread_words
from model.evaluate import Evaluation
from model.plan.plan import PlanStatus
from solver.report.result import Result


class Status(NamedTuple):
    """A phase, its message and the level of its log line."""

    phase: Phase
    message: str
    level: str = "info"


def after_decision(
    step: Decision, why: str, evaluation: Evaluation, result: Result | None
) -> Status:
    """Status after a decision that neither plans nor approves."""
    summary = result.summary() if result else ""
    spread = spread_words(evaluation)
    match step:
        case Decision.SETTLE:
            return Status(Phase.SETTLING, why)
        case Decision.REST:
            return Status(Phase.BALANCED, "; ".join(filter(None, (spread, why))))
        case Decision.CONFIRM:
            return Status(Phase.MEASURING, f"{spread}; {why}")
        case Decision.REFUSE:
            return Status(Phase.NO_PLAN, f"not approved: {why}", "warning")
        case Decision.RETRY:
            return Status(Phase.NO_PLAN, why, "warning")
        case Decision.HOLD:
            return Status(Phase.NO_PLAN, summary)
        case _:
            return Status(Phase.PLAN_READY, summary)


def after_result(result: Result) -> Status:
    """Status after the result of a solve."""
    if result.best is not None and result.best.moves:
        return Status(Phase.PLAN_READY, result.summary())
    if result.status is PlanStatus.ALREADY_BALANCED:
        return Status(Phase.BALANCED, result.summary())
    return Status(Phase.NO_PLAN, result.summary())
