"""Why an action is disabled; the reason is the tooltip of its greyed key."""

from control.loop.view import LoopView, Mode, Phase
from model.run import UNFINISHED, RunProgress, RunState
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_map import MAP_FROM
from tui.viewmodel.brokers.broker_troubles import brokers_of
from tui.viewmodel.plan.shown_plan import shown


def refusal(action: str, moment: Moment) -> str | None:
    """Return why the action is disabled, or None if it is enabled."""
    name = action.removeprefix("app.")
    if moment.view.mode is Mode.RECORDING and name in ACTIONS:
        return RECORDING
    match name:
        case "approve":
            return _not_approve(moment)
        case "stop_run" | "throttle":
            return _not_stop(moment)
        case "pause_run":
            return _not_pause(moment)
        case "resume":
            return _not_resume(moment)
        case "roll_back" | "resume_task" | "operate":
            return _not_begin(moment)
        case "approve_waiting":
            return _not_approve_waiting(moment)
        case "cancel_task" if moment.view.mode is Mode.READ_ONLY:
            return READ_ONLY
        case "solve_again":
            supposed = moment.view.proposed.supposed
            return _not_solve(moment) if supposed is None else HYPOTHETICAL
        case _:
            return _not_of_plan(action, moment)


HYPOTHETICAL = "a what-if is shown; press escape on the plan screen to end it"
READ_ONLY = "plimsoll is read-only; start it with --allow-changes"
RECORDING = "this is a recording; it cannot be changed"


def _not_approve(moment: Moment) -> str | None:
    view = moment.view
    if view.mode is Mode.READ_ONLY:
        return READ_ONLY
    if view.proposed.supposed is not None:
        return HYPOTHETICAL
    if view.phase is Phase.FAILED:
        return "plimsoll has stopped; quit and restart it"
    if view.phase is Phase.UNREACHABLE:
        return "the cluster cannot be reached; wait until it can"
    if moment.running:
        return "a run is in progress; wait for it to end, or stop it"
    if view.plan is None or not view.plan.moves:
        return "there is no plan with moves to approve"
    if view.proposed.awaited:
        return "another plan is being computed; wait for it"
    if view.proposed.changes:
        return f"the cluster has changed since this plan: {view.proposed.changes[0]}"
    return None


def _not_approve_waiting(moment: Moment) -> str | None:
    if moment.auto is None or moment.auto.waiting is None:
        return "no plan of run --auto waits for a person"
    return READ_ONLY if moment.view.mode is Mode.READ_ONLY else None


def _not_stop(moment: Moment) -> str | None:
    if moment.view.mode is Mode.READ_ONLY:
        return READ_ONLY
    return None if moment.running else "no run is in progress"


def _not_pause(moment: Moment) -> str | None:
    run = moment.view.run
    if run is not None and run.state is RunState.STOPPING:
        return _not_stop(moment) or "the run is being stopped"
    return _not_stop(moment)


def _not_solve(moment: Moment) -> str | None:
    if moment.view.phase is Phase.FAILED:
        return "plimsoll has stopped; quit and restart it"
    if moment.running:
        return "a run is in progress; a new plan follows it"
    if moment.view.snapshot is None:
        return "no loads have been measured yet"
    return None


OF_MOVES = ("drop_move", "pin_partition", "export", "copy_command")
"""Actions that need a plan with moves."""
OF_THE_REAL = (
    "drop_move",
    "pin_partition",
    "take_back",
    "edit_goals",
    "next_effort",
    "frontier",
    "choose",
    "plan_topic",
    "copy_command",
)
"""Actions on the real cluster's plan, disabled during a what-if."""
WHILE_IDLE = (*OF_THE_REAL[:-1], "what_if")
"""Actions that make other plans, which a run would outdate."""
ACTIONS = (
    *("approve", "stop_run", "pause_run", "throttle", "resume", "roll_back"),
    *("resume_task", "cancel_task", "operate", "approve_waiting"),
    *("solve_again", "what_if", "use_best", *OF_THE_REAL),
)
"""All actions that can be disabled, on any screen."""


def _not_of_plan(action: str, moment: Moment) -> str | None:
    view, proposed = moment.view, moment.view.proposed
    if action in OF_THE_REAL and proposed.supposed is not None:
        return HYPOTHETICAL
    if action in WHILE_IDLE and (reason := _not_solve(moment)):
        return reason
    if action in OF_MOVES and shown(view).plan is None:
        return "there is no plan with moves"
    if action == "take_back" and not proposed.asks.words():
        return "there is no request to undo"
    if action == "use_best" and not _solves(view):
        return "no plan is being computed"
    return _not_map(view) if action == "toggle_map" else None


def _not_map(view: LoopView) -> str | None:
    few = len(brokers_of(view)) < MAP_FROM
    return f"the map is for {MAP_FROM} brokers or more" if few else None


def _solves(view: LoopView) -> bool:
    """Whether the plan or frontier shown is still being computed."""
    proposed = view.proposed
    tracing = proposed.supposed is None and proposed.tracing is not None
    return tracing or shown(view).solving is not None


def _not_resume(moment: Moment) -> str | None:
    """A paused run can be resumed, and so can one that did not finish."""
    if moment.running and moment.paused:
        return _not_pause(moment)
    if reason := _not_begin(moment):
        return reason
    run = moment.view.run
    unfinished = run is not None and _is_unfinished(run)
    return None if unfinished or moment.interrupted else "no run is unfinished"


def _is_unfinished(run: RunProgress) -> bool:
    """Whether resuming would do anything; a failed run may have left settings."""
    is_left = any(move.state in UNFINISHED for move in run.moves)
    return run.state is RunState.FAILED or (run.state is RunState.STOPPED and is_left)


def _not_begin(moment: Moment) -> str | None:
    """Why no resumed run or rollback may start."""
    if moment.view.mode is Mode.READ_ONLY:
        return READ_ONLY
    if moment.view.phase is Phase.FAILED:
        return "plimsoll has stopped; quit and restart it"
    return "a run is in progress; wait for it to end, or stop it" if moment.running else None
