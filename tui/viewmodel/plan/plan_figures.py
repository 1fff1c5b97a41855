"""The lines above the moves: what the plan achieves, proves and costs."""

from collections.abc import Iterator
from textwrap import wrap

from control.planning.plan_view import Solving
from model.goals.effort import Effort
from model.plan.plan import Plan
from model.plan.remaining import OverLimit, remaining_text
from model.snapshot.snapshot import in_words
from model.units import bytes_text, count_text, seconds_text, share_text
from tui.screen_state import Moment
from tui.viewmodel.brokers.gauges import short_name
from tui.viewmodel.brokers.headline import amount, close_up
from tui.viewmodel.cells import Cell, Role, Span, cell, flow, shorten_words
from tui.viewmodel.disabled_reasons import refusal
from tui.viewmodel.plan.shown_plan import Shown
from tui.viewmodel.plan.spread import outside_text, spread_text
from tui.viewmodel.plan.stages import quick_text, whole_text
from tui.viewmodel.staleness import ticking

CHANGES_SHOWN = 3
"""Changes listed; further ones are counted."""

LIMITS_SHOWN = 2
"""Exceeded limits listed; further ones are counted."""

NO_GAP = 1e-6
"""A share of the possible gain that is only rounding error."""


def figures(shown: Shown, moment: Moment, width: int, room: int | None = None) -> tuple[Cell, ...]:
    """All lines, wrapped only where necessary.

    room: lines that there are, so that moves are left on a low screen. Where they do not
    suffice, proof and search go first, then the stages; no warning does, but its end, which the
    approval shows.
    """
    full = _lines(shown, moment, width)
    if room is None or len(full) <= room or shown.plan is None:
        return full
    for stages in (True, False):
        brief = _lines(shown, moment, width, brief=True, stages=stages)
        if len(brief) <= room:
            return brief
    return _lines(shown, moment, width, brief=True, stages=False, cut=True)


def _lines(
    shown: Shown,
    moment: Moment,
    width: int,
    *,
    brief: bool = False,
    stages: bool = True,
    cut: bool = False,
) -> tuple[Cell, ...]:
    found: list[Cell] = []
    if shown.lost:
        lost = count_text(shown.lost, "partition")
        words = f"{lost} would lose all replicas and stay offline"
        found += flow([cell(words, Role.OVER)], width)
    if _in_progress(shown, moment):
        words = "is being executed; see the run screen"
        found += flow([cell(" THIS PLAN ", Role.MARK), cell(words)], width, " ")
    elif shown.changes:
        found += flow(list(_changes(shown.changes)), width)
    if not shown.supposed and shown.plan is not None:
        for words in moment.view.proposed.rivals:
            found += flow([cell(" REBALANCER ", Role.ALARM), cell(words)], width, " ")
    if shown.solving is not None:
        found += flow(_solving(shown.solving, moment.now_ms), width)
    if shown.plan is not None:
        reach = tuple(_stages(shown, moment, width)) if stages else ()
        seconds = None if reach or shown.supposed else _seconds(moment)
        items = _effect(shown.plan, seconds, brief=brief)
        found += flow([*items, *([] if brief else _proof(shown.plan))], width)
        found += reach
        found += _notes(shown.plan, width, cut=cut)
    if not shown.supposed and (asked := moment.view.proposed.asks.words()):
        *others, last = asked
        awaited = moment.view.proposed.awaited
        label = "requested for the next plan:" if awaited else "requested:"
        texts = (label, *(f"{one};" for one in others), last)
        found += flow([cell(one) for one in texts], width, " ")
    return tuple(found)


def _stages(shown: Shown, moment: Moment, width: int) -> Iterator[Cell]:
    """What a part of the plan would reach that copies nothing, beside all of it."""
    plan, proposed = shown.plan, moment.view.proposed
    if plan is None or shown.supposed:
        return
    leaders_s = moment.estimate.leaders_s if moment.estimate is not None else None
    effort, quick = proposed.asks.effort or moment.effort, quick_text(plan, leaders_s)
    if not quick and effort is Effort.GOOD:
        return
    items = [cell(quick)] if quick else []
    items.append(cell(whole_text(plan, None if proposed.awaited else effort, _seconds(moment))))
    if refusal("next_effort", moment) is None:
        key = moment.keys.get("plan.effort", "E").partition(",")[0]
        items.append((Span(f"[{key}]", Role.STRONG), Span(" plans at another effort")))
    yield from flow(items, width)


def _notes(plan: Plan, width: int, *, cut: bool) -> Iterator[Cell]:
    """Limits and rules that stay violated, and warnings; cut: in a line each."""
    if left := [o for o in plan.over_limit if o.remains]:
        items = [cell("! over the limit after the plan:", Role.OVER)]
        items += [cell(_over(one), Role.OVER) for one in left[:LIMITS_SHOWN]]
        if len(left) > LIMITS_SHOWN:
            items.append(cell(f"and {len(left) - LIMITS_SHOWN} more", Role.OVER))
        yield from flow(items, width)
    for words in (*_left(plan), *map(in_words, plan.warnings)):
        text = f"! {close_up(words)}"
        lines = [shorten_words(text, width)] if cut else wrap(text, width, subsequent_indent="  ")
        yield from (cell(line, Role.OVER) for line in lines)


def _left(plan: Plan) -> Iterator[str]:
    yield from remaining_text((), plan.rack_violations)
    yield from outside_text(plan)


def _over(one: OverLimit) -> str:
    """`broker 1 in 3.00 MB/s, limit 1.70 MB/s`."""
    resource = one.dimension.partition("@")[0]
    load, limit = amount(resource, one.after), amount(resource, one.limit)
    return f"broker {one.broker} {short_name(one.dimension)} {load}, limit {limit}"


def _in_progress(shown: Shown, moment: Moment) -> bool:
    """Whether this plan is the one being executed."""
    run = moment.view.run if moment.running else None
    plan = shown.plan if not shown.supposed else None
    return run is not None and plan is not None and run.plan_hash == plan.hash


def _changes(changes: tuple[str, ...]) -> Iterator[Cell]:
    yield cell(" OUTDATED ", Role.ALARM)
    yield from (cell(f"{change};") for change in changes[:CHANGES_SHOWN])
    more = len(changes) - CHANGES_SHOWN
    if more > 0:
        yield cell(f"and {count_text(more, 'more change')}")


def _solving(solving: Solving, now_ms: int) -> list[Cell]:
    """The state of the search: best so far, bound, gap, time."""
    seconds = max(0, now_ms - solving.started_at_ms) // 1000
    items = [cell(f" SOLVING {ticking(seconds)} ", Role.ALARM)]
    best, bound = solving.objective, solving.bound
    if best is None:
        items.append(cell("no plan found yet"))
    else:
        moves = count_text(solving.moves, "move")
        items.append(cell(f"best so far {best:.4g} with {moves}"))
    if bound is not None:
        items.append(cell(f"bound {bound:.4g}"))
    if best is not None and bound is not None:
        items.append(cell(f"gap {max(0.0, best - bound):.2g}"))
    if solving.stopping:
        items.append(cell("ending with the best so far", Role.UNDER))
    elif best is not None:
        items.append(cell("press b to use it", Role.MUTED))
    return items


def _seconds(moment: Moment) -> float | None:
    """How long the plan would take; None where it is not known."""
    return moment.estimate.seconds if moment.estimate is not None else None


def _effect(plan: Plan, seconds: float | None, *, brief: bool) -> list[Cell]:
    """What the plan does to the cluster, and how long it takes unless the stages say so."""
    spreads = [spread_text(plan, key, name=not brief) for key in plan.levels]
    about = [] if seconds is None else [cell(f"about {seconds_text(seconds)}")]
    moves, copied = count_text(len(plan.moves), "move"), bytes_text(plan.bytes_to_copy)
    reached = [cell(f"largest deviation {', '.join(spreads)}", Role.STRONG)] if spreads else []
    if brief:
        # One line at 80 columns, where each one takes the place of a move.
        reached = [cell(", ".join(spreads), Role.STRONG)] if spreads else []
        return [cell(moves, Role.STRONG), cell(copied), *about, *reached]
    changes = cell(count_text(plan.leader_changes, "leader change"))
    return [cell(moves, Role.STRONG), changes, cell(f"{copied} to copy"), *about, *reached]


def _proof(plan: Plan) -> list[Cell]:
    """How good the plan is, and what limited the search."""
    raises = plan.raises_objective
    closed = plan.proves(plan.limits.gap) if raises else plan.gap_share <= NO_GAP
    gap_words = f"{0.0 if closed else plan.gap:.2g}"
    if not raises:
        gap_words += f" ({close_up(share_text(plan.gap_share))} of the possible gain)"
    items = [
        cell(
            f"{plan.status.value.upper()}: imbalance score {plan.objective_before:.4g} → "
            f"{plan.objective:.4g}"
        ),
        cell(f"bound {plan.bound:.4g}"),
        cell(f"gap {gap_words}"),
    ]
    if plan.limited_by.startswith("proved optimal "):
        items.append(cell(in_words(plan.limited_by)))
    elif plan.limited_by and plan.limited_by != "proved optimal":
        items.append(cell(f"limited by: {in_words(plan.limited_by)}"))
    return items
