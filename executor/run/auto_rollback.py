"""What a run has finished, moved back at its end because a rule asks for that."""

from collections.abc import Callable
from typing import Final

from executor.run.operator_control import Steering
from executor.timing import Timing
from model.errors import GuardrailRefused, PlimsollError
from model.plan.plan import Plan
from model.run import RunReport, RunState

_CALM_S: Final = 180.0
"""Until then AutoMQ takes everything back (`executor.run.rollback_plan`)."""
_LOOK_S: Final = 1.0


def rolled_back(
    report: RunReport,
    *,
    plan_rollback: Callable[[], tuple[Plan, list[str]]],
    attempt: Callable[[Plan], RunReport],
    steering: Steering,
    timing: Timing,
) -> RunReport:
    """The report of a run, with what became of moving it back; raises nothing of ours.

    `plan_back` is asked again for a while where it refuses because it is too early.
    """
    try:
        plan, left = _patiently(plan_rollback, steering, timing)
        if not plan.moves:
            return _with(report, "nothing had to be moved back", None)
        back = attempt(plan)
    except PlimsollError as exc:
        return _with(report, f"not rolled back: {exc}", None)
    words = [f"rolled back by the run {back.run_id}"]
    if back.state is not RunState.DONE:
        words = [f"the run {back.run_id}, which rolls it back, {back.state}"]
    return _with(report, "; ".join([*words, *left]), back)


def _patiently(
    plan_rollback: Callable[[], tuple[Plan, list[str]]],
    steering: Steering,
    timing: Timing,
) -> tuple[Plan, list[str]]:
    end_s = timing.steady_s() + _CALM_S
    while True:
        try:
            return plan_rollback()
        except GuardrailRefused:
            if timing.steady_s() >= end_s or steering.stopping.is_set():
                raise
            timing.pause(_LOOK_S)


def _with(report: RunReport, words: str, back: RunReport | None) -> RunReport:
    reason = f"{report.reason}; {words}"
    return report.model_copy(update={"reason": reason, "rollback": back})
