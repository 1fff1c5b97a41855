"""The lines at the top of every screen: the cluster, and the loop's state."""

import textwrap

from control.loop.view import LoopView, Mode, Phase
from control.tasks.broker_task import brokers_text
from model.plan.plan import Plan
from model.run import RunState
from model.snapshot.replication import Replication
from model.units import bytes_text, count_text, seconds_text
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_troubles import BROKERS_NAMED, alarms
from tui.viewmodel.brokers.gauges import gauges
from tui.viewmodel.brokers.headline import balance_line, over_capacity, worst_of
from tui.viewmodel.cells import Cell, Role, Span, cell, flow, plain, shorten, shorten_words
from tui.viewmodel.disabled_reasons import refusal
from tui.viewmodel.plan.shown_plan import WHAT_IF
from tui.viewmodel.plan.spread import left_furthest
from tui.viewmodel.plan.stages import quick_text
from tui.viewmodel.run.progress import ACTIVE, share_done
from tui.viewmodel.staleness import age_s, is_stale, ticking

NAME_WIDTH = 24
SHORT_ID = 8
ROOMY = 116
"""Width from which the whole cluster id is shown and no word is abbreviated."""

NARROW = 70
"""Width below which the cluster's name stands alone, and fewer counts are shown."""

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
    """Cluster, mode, age of the data; balance; the state of the loop and its reason."""
    roomy, replication = width >= ROOMY, moment.view.replication
    data = _data(moment)
    stale = data[:1] if is_stale(moment.view, moment.now_ms) else ()
    degraded = (*alarms(moment.view), *_degraded(replication), *_over_capacity(moment))
    alarming = (
        _cluster(moment.view, width),
        *_size(moment.view, roomy=roomy),
        _mode(moment.view.mode),
        *degraded,
        *stale,
    )
    items = (*alarming, *data[len(stale) :])
    lines = flow((*items, *_whole(moment, width, roomy=roomy)), width)
    # Nothing that is wrong is left out, however much it is.
    most = max(2 if degraded else 1, len(flow(alarming, width)) if degraded or stale else 1)
    if len(lines) > most:
        lines = flow((*items, *_whole(moment, width, roomy=False)), width)
    return (
        *lines[:most],
        *_balance(moment, width),
        *_auto(moment, width),
        *_what_if(moment, width),
    )


def _cluster(view: LoopView, width: int) -> Cell:
    if view.snapshot is None:
        return cell(shorten(view.cluster_name or view.bootstrap, 36), Role.STRONG)
    cluster_id = view.snapshot.header.cluster_id
    shown = cluster_id if width >= ROOMY else shorten(cluster_id, SHORT_ID + 1)
    if view.cluster_name == cluster_id[:SHORT_ID]:
        return cell(shown, Role.STRONG)
    name = shorten(view.cluster_name, NAME_WIDTH)
    if width < NARROW:
        return cell(name, Role.STRONG)
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


def _size(view: LoopView, *, roomy: bool) -> tuple[Cell, ...]:
    if view.snapshot is None or not roomy:
        return ()
    brokers = view.snapshot.header.brokers
    racks = {broker.rack for broker in brokers if broker.rack}
    words = count_text(len(brokers), "broker")
    return (cell(f"{words} · {count_text(len(racks), 'rack')}" if racks else words),)


def _balance(moment: Moment, width: int) -> tuple[Cell, ...]:
    if moment.view.snapshot is None:
        return ()
    return (balance_line(moment.view, moment.goals, width),)


def _degraded(found: Replication | None) -> tuple[Cell, ...]:
    """Offline partitions and those that lack in-sync replicas; never truncated."""
    if found is None:
        return ()
    offline = cell(f"! {found.offline:,} OFFLINE", Role.ALARM)
    behind = cell(f"! {found.under_replicated:,} under-replicated", Role.OVER)
    below = cell(f"! {found.below_min_isr:,} BELOW MIN ISR", Role.ALARM)
    counts = (found.offline, found.below_min_isr, found.under_replicated)
    shown = zip((offline, below, behind), counts, strict=True)
    return tuple(item for item, count in shown if count)


def _over_capacity(moment: Moment) -> tuple[Cell, ...]:
    over = over_capacity(moment.view, moment.goals)
    if not over:
        return ()
    return (cell(f"! {brokers_text(over, BROKERS_NAMED)} OVER CAPACITY", Role.ALARM),)


def _whole(moment: Moment, width: int, *, roomy: bool) -> tuple[Cell, ...]:
    """What is not wrong, so that its absence does not have to be guessed."""
    found, words = moment.view.replication, []
    if found is not None and not found.offline:
        words.append("offline 0")
    if found is not None and not found.under_replicated:
        words.append("under-replicated 0" if roomy else "URP 0")
    known = gauges(moment.view, moment.goals).values() if width >= NARROW else ()
    if any(g.capacity for g in known) and not over_capacity(moment.view, moment.goals):
        words.append("over capacity 0")
    return (cell(" · ".join(words)),) if words else ()


def _auto(moment: Moment, width: int) -> tuple[Cell, ...]:
    """What `run --auto` decides in another process, and the key where its plan waits."""
    auto = moment.auto
    if auto is None:
        return ()
    asked = auto.waiting
    if asked is None:
        words = f"run --auto: {auto.decision}{f': {auto.why}' if auto.why else ''}"
        again = f"reconsidered {auto.reconsidered}"
        if len(words) + len(again) + 2 <= width:
            return (cell(f"{words}; {again}", Role.MUTED),)
        return tuple(cell(shorten_words(line, width), Role.MUTED) for line in (words, again))
    word, how = " PLAN WAITS ", f"plimsoll approve {asked.plan_hash[:12]}"
    if refusal("approve_waiting", moment) is None:
        how = f"[{moment.keys.get('auto.approve', 'W').partition(',')[0]}] shows it"
    words = f" run --auto asks about {count_text(asked.moves, 'move')}: {asked.why}"
    room = max(0, width - len(word) - len(how) - 2)
    return ((Span(word, Role.UNDER), Span(shorten_words(words, room)), Span(f"  {how}")),)


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
    if view.phase is Phase.PLAN_READY and view.plan is not None and view.plan.moves:
        return (*_plan_ready(view.plan, moment, width), *_waiting(view, width))
    if view.phase is Phase.BALANCED and _is_outside(moment):
        word = "NO MOVES"
    role = PHASE_ROLES.get(view.phase, Role.STRONG)
    message, again = view.status(moment.now_ms), f"; {view.again}" if view.again else ""
    if moment.leaving:
        message, again = "quitting once the run has stopped", ""
    room = max(20, width - len(word) - 3)
    first, *more = textwrap.wrap(message + again, room) or [""]
    if more and view.phase not in SHOWN_IN_FULL:
        # The time is short, and stays.
        first = shorten_words(message, max(0, room - len(again))) + again
        first, more = shorten_words(first, room), []
    indent = " " * (len(word) + 3)
    return (
        (Span(f" {word} ", role), Span(" " + first)),
        *(cell(indent + line) for line in more[: MOST_LINES - 1]),
    )


def _waiting(view: LoopView, width: int) -> tuple[Cell, ...]:
    """Why `--auto` leaves its plan to a person, and when it reconsiders."""
    if not view.again:
        return ()
    again = f"; {view.again}"
    return (cell(f" {shorten_words(view.message, max(0, width - 1 - len(again)))}{again}"),)


def _is_outside(moment: Moment) -> bool:
    worst = worst_of(moment.view.evaluation, moment.goals)
    return worst is not None and worst.outside


def _plan_ready(plan: Plan, moment: Moment, width: int) -> tuple[Cell, ...]:
    """What the plan does, costs and takes, and which keys do it."""
    word = Span(f" {Phase.PLAN_READY.value.upper()} ", Role.UNDER)
    after = max((plan.spread(key, after=True) for key in plan.levels), default=0.0)
    figures = [
        count_text(len(plan.moves), "move"),
        bytes_text(plan.bytes_to_copy),
        *([f"about {seconds_text(moment.estimate.seconds)}"] if moment.estimate else []),
    ]
    text = f" {', '.join(figures)}"
    used, items = len(word.text) + len(text), _keys(moment)
    # What is worst now is in the line above, of newer loads than those of the plan.
    worst = f": worst {after:.0%} after it" if plan.levels else ""
    effects = (f"{worst}{left_furthest(plan, plan.levels)}", worst, "")
    effect = next(words for words in effects if used + len(words) <= width or not words)
    text, used = text + effect, used + len(effect)
    words = Span(shorten_words(text, width - len(word.text)))
    while items and used + sum(len(plain(item)) + 2 for item in items) > width:
        items = items[:-1]
    keys = [span for item in items for span in (Span("  "), *item)]
    # After the keys, or one would not know which of the two is approved.
    quick = f"   or {found}" if (found := quick_text(plan)) else ""
    used += sum(len(span.text) for span in keys)
    return ((word, words, *keys, *([Span(quick)] if used + len(quick) <= width else [])),)


def _keys(moment: Moment) -> list[Cell]:
    """The keys that act on the plan; none that is refused."""
    found: list[Cell] = []
    for binding, key, action, words in (
        ("plan.approve", "A", "approve", "approve"),
        ("screen.plan", "2", "show_mode", "review"),
        ("plan.what_if", "w", "what_if", "what if"),
    ):
        if refusal(action, moment) is None:
            shown = moment.keys.get(binding, key).partition(",")[0]
            found.append((Span(f"[{shown}]", Role.STRONG), Span(f" {words}")))
    return found
