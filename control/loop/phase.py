"""Where the loop stands after a decision or an answer: the phase, and one sentence."""

from typing import NamedTuple

from control.loop.policy import Step
from control.loop.view import Phase
from control.planning.validate import spread_words
from model.evaluate import Evaluation
from model.plan.plan import PlanStatus
from solver.report.result import Result


class Standing(NamedTuple):
    """A phase, what is said of it, and how loud."""

    phase: Phase
    message: str
    level: str = "info"


def after_step(
    step: Step, why: str, evaluation: Evaluation, result: Result | None
) -> Standing:
    """Where a step leads that neither plans nor approves."""
    answer = result.summary() if result else ""
    spread = spread_words(evaluation)
    match step:
        case Step.SETTLE:
            return Standing(Phase.SETTLING, why)
        case Step.REST:
            return Standing(Phase.LEVEL, "; ".join(filter(None, (spread, why))))
        case Step.CONFIRM:
            return Standing(Phase.MEASURING, f"{spread}; {why}")
        case Step.REFUSE:
            return Standing(Phase.NO_PLAN, f"not approved: {why}", "warning")
        case Step.RETRY:
            return Standing(Phase.NO_PLAN, why, "warning")
        case Step.HOLD:
            return Standing(Phase.NO_PLAN, answer)
        case _:
            return Standing(Phase.PLAN_READY, answer)


def after_answer(result: Result) -> Standing:
    """Where the answer of a solve leads."""
    if result.best is not None and result.best.moves:
        return Standing(Phase.PLAN_READY, result.summary())
    if result.status is PlanStatus.LEVEL_ALREADY:
        return Standing(Phase.LEVEL, result.summary())
    return Standing(Phase.NO_PLAN, result.summary())
