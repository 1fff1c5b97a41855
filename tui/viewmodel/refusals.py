"""Why an action cannot be taken now; the reason greys its key and is its tooltip."""

from control.view import Mode, Phase
from tui.moment import Moment


def refusal(action: str, moment: Moment) -> str | None:
    """Why not, in words; None where the action can be taken."""
    match action:
        case "approve":
            return _not_approve(moment)
        case "stop_run" | "pause_run":
            return _not_stop(moment)
        case "solve_again":
            return _not_solve(moment)
        case _:
            return None


READ_ONLY = "plimsoll is read-only; start it with --allow-changes"


def _not_approve(moment: Moment) -> str | None:
    view = moment.view
    if view.mode is Mode.READ_ONLY:
        return READ_ONLY
    if view.phase is Phase.FAILED:
        return "plimsoll has stopped; quit and start it again"
    if moment.running:
        return "a run goes on; wait for its end or stop it"
    if view.plan is None or not view.plan.moves:
        return "there is no plan with moves to approve"
    return None


def _not_stop(moment: Moment) -> str | None:
    if moment.view.mode is Mode.READ_ONLY:
        return READ_ONLY
    return None if moment.running else "no run goes on"


def _not_solve(moment: Moment) -> str | None:
    if moment.view.phase is Phase.FAILED:
        return "plimsoll has stopped; quit and start it again"
    if moment.running:
        return "a run goes on; there will be a new answer after it"
    if moment.view.snapshot is None:
        return "loads are not known yet"
    return None
