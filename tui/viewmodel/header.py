"""The lines at the top of every screen: the cluster, and the loop's state."""

import textwrap

from control.loop.view import LoopView, Mode, Phase
from model.run import RunState
from model.snapshot.replication import Replication
from tui.screen_state import Moment
from tui.viewmodel.cells import Cell, Role, Span, cell, flow, shorten, shorten_words
from tui.viewmodel.plan.shown_plan import WHAT_IF
from tui.viewmodel.run.progress import ACTIVE, share_done
from tui.viewmodel.staleness import age_s, is_stale, ticking

NAME_WIDTH = 24
SHORT_ID = 8
ROOMY = 116
"""Width from which the whole cluster id is shown and no word is abbreviated."""

SHOWN_IN_FULL = (Phase.UNREACHABLE, Phase.FAILED, Phase.NO_PLAN)
"""Phases whose message matters more than a steady layout."""
MOST_LINES = 4
ALL_MEASURED = 0.995
"""A share of the loads that is shown as 100 %."""

PHASE_ROLES = {
    Phase.UNREACHABLE: Role.ALARM,
    Phase.FAILED: Role.ALARM,
    Phase.NO_PLAN: Role.UNDER,
    Phase.PLAN_READY: Role.UNDER,
    Phase.BALANCED: Role.GOOD,
}


def header(moment: Moment, width: int) -> tuple[Cell, ...]:
    """Cluster, mode, age of the data; below, the state of the loop and its reason."""
    roomy, replication = width >= ROOMY, moment.view.replication
    degraded = _degraded(replication)
    items = (
        _cluster(moment.view, roomy=roomy),
        _mode(moment.view.mode),
        *degraded,
        *_data(moment),
        *_whole(replication, roomy=roomy),
        *_objective(moment.view),
    )
    lines = flow(items, width)
    return (*lines[: 2 if degraded else 1], *_what_if(moment, width))


def _cluster(view: LoopView, *, roomy: bool) -> Cell:
    if view.snapshot is None:
        return cell(shorten(view.cluster_name or view.bootstrap, 36), Role.STRONG)
    cluster_id = view.snapshot.header.cluster_id
    shown = cluster_id if roomy else shorten(cluster_id, SHORT_ID + 1)
    if view.cluster_name == cluster_id[:SHORT_ID]:
        return cell(shown, Role.STRONG)
    name = shorten(view.cluster_name, NAME_WIDTH)
    return (Span(name, Role.STRONG), Span(f" {shown}", Role.MUTED))


def _mode(mode: Mode) -> Cell:
    role = Role.MUTED if mode is Mode.READ_ONLY else Role.STRONG
    return cell(mode.value.upper(), role)


def _data(moment: Moment) -> tuple[Cell, ...]:
    age = age_s(moment.view, moment.now_ms)
    if age is None or moment.view.snapshot is None:
        return (cell("no data yet", Role.MUTED),)
    words = f"{ticking(age)} old"
    stale = is_stale(moment.view, moment.now_ms)
    old = cell(f"STALE {words}", Role.ALARM) if stale else cell(f"data {words}")
    shares = [s.measured_share for s in moment.view.snapshot.header.sources]
    if not shares:
        return (old,)
    share = sum(shares)
    if share < ALL_MEASURED:
        return old, cell(f"{share:.0%} measured, rest estimated", Role.UNDER)
    return old, cell(f"{share:.0%} measured")


def _objective(view: LoopView) -> tuple[Cell, ...]:
    if view.evaluation is None:
        return ()
    return (cell(f"imbalance {view.evaluation.objective:.4g}"),)


def _degraded(found: Replication | None) -> tuple[Cell, ...]:
    """Offline and under-replicated partitions; never truncated."""
    if found is None:
        return ()
    offline = cell(f"! {found.offline:,} OFFLINE", Role.ALARM)
    behind = cell(f"! {found.under_replicated:,} under-replicated", Role.OVER)
    return (*((offline,) if found.offline else ()), *((behind,) if found.under_replicated else ()))


def _whole(found: Replication | None, *, roomy: bool) -> tuple[Cell, ...]:
    if found is None or found.under_replicated:
        return ()
    return (cell("0 under-replicated" if roomy else "0 URP"),)


def _what_if(moment: Moment, width: int) -> tuple[Cell, ...]:
    """The what-if scenario, in place of the real plan's state."""
    supposed = moment.view.proposed.supposed
    if supposed is None:
        return _state(moment, width)
    words = (
        f"{supposed.words},",
        "on the plan screen only;",
        "it cannot be approved;",
        "escape there ends it",
    )
    items = [cell(f" {WHAT_IF} ", Role.ALARM), *(cell(f" {w}") for w in words)]
    urgent = moment.running or moment.view.phase in (Phase.UNREACHABLE, Phase.FAILED)
    return (*flow(items, width, ""), *(_state(moment, width) if urgent else ()))


def _state(moment: Moment, width: int) -> tuple[Cell, ...]:
    view, run = moment.view, moment.view.run
    word = view.phase.value.upper()
    if moment.running and run is not None and run.state in ACTIVE:
        stopping = run.state is RunState.STOPPING or moment.leaving
        paused = "PAUSED" if run.state is RunState.PAUSED else "RUNNING"
        word = f"{'STOPPING' if stopping else paused} {share_done(run):.0%}"
    solving = view.proposed.solving
    if view.phase is Phase.SOLVING and solving is not None:
        word += f" {ticking(max(0, moment.now_ms - solving.started_at_ms) // 1000)}"
    role = PHASE_ROLES.get(view.phase, Role.STRONG)
    message = view.sentence(moment.now_ms)
    if moment.leaving:
        message = "quitting once the run has stopped"
    room = max(20, width - len(word) - 3)
    first, *more = textwrap.wrap(message, room) or [""]
    if more and view.phase not in SHOWN_IN_FULL:
        first, more = shorten_words(message, room), []
    indent = " " * (len(word) + 3)
    return (
        (Span(f" {word} ", role), Span(" " + first)),
        *(cell(indent + line) for line in more[: MOST_LINES - 1]),
    )
