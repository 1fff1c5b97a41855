"""The texts of the approval dialog."""

from collections import Counter

from control.loop.view import LoopView
from executor.schedule.estimate import Forecast
from model.ids import BrokerId
from model.plan.plan import Plan
from model.plan.remaining import remaining_text
from model.snapshot.snapshot import in_words
from model.stop_rules import StopRules
from model.units import bytes_text, count_text, rate_text, seconds_text
from tui.viewmodel.brokers.headline import close_up
from tui.viewmodel.plan.spread import outside_text, spread_text
from tui.viewmodel.plan.wording import listed
from tui.viewmodel.run.stop_rules import armed

PEAKS_NAMED = 3
"""Brokers whose peak is named, and moves that do not fit; those of full disks always are."""
NEARLY_FULL = 0.8
"""Share of the free space from which a broker's peak is named in any case."""
NAMED = 20
"""Brokers listed individually; the plan screen has all of them."""


def counts(plan: Plan) -> str:
    """What the plan does, in numbers."""
    return ", ".join(
        (
            count_text(len(plan.moves), "move"),
            count_text(plan.leader_changes, "leader change"),
            f"{bytes_text(plan.bytes_to_copy)} to copy",
        )
    )


def touched(plan: Plan) -> str:
    """Outgoing and incoming replicas by broker: `1: 5 outgoing; 2: 3 incoming`.

    The broker that deviates most now comes first.
    """
    off = {b.id: max(map(abs, b.deviation_before.values()), default=0.0) for b in plan.brokers}
    outgoing = Counter(b for m in plan.moves for b in m.removed)
    incoming = Counter(b for m in plan.moves for b in m.added)
    parts = []
    for broker in sorted({*outgoing, *incoming}, key=lambda b: (-off.get(b, 0.0), b)):
        counts = [f"{outgoing[broker]} outgoing"] if outgoing[broker] else []
        counts += [f"{incoming[broker]} incoming"] if incoming[broker] else []
        parts.append(f"{broker}: {', '.join(counts)}")
    if parts:
        more = len(parts) - NAMED
        parts[NAMED:] = [f"and {count_text(more, 'more broker')}"] if more > 0 else []
        return "; ".join(parts)
    leaders = {b for m in plan.moves for b in (m.leader_before, m.leader_after)}
    return f"leadership only, on {listed(tuple(sorted(leaders)))}"


def balance(plan: Plan) -> str:
    """A line on the largest deviation from the average, before and after."""
    found = ", ".join(spread_text(plan, key) for key in plan.levels)
    return f"largest deviation: {found}\n" if found else ""


def left_wrong(plan: Plan) -> str:
    """What is wrong after the plan, and what it was made without, a line each."""
    found = (
        *remaining_text(plan.over_limit, plan.rack_violations),
        *outside_text(plan),
        *map(in_words, plan.warnings),
    )
    return "\n".join(f"! {close_up(words)}" for words in found)


def leaders_only(plan: Plan) -> str:
    """A line on what leader changes alone would achieve; empty if nothing."""
    text = close_up(plan.leaders_only_text)
    return f"instead: {text} removed\n" if text else ""


def takes(found: Forecast) -> str:
    """Duration, and the brokers whose disks come closest to full in the meantime."""
    lines = [f"duration: about {seconds_text(found.seconds)}"]
    grown = [b for b, peak in found.peaks.items() if peak.more_bytes > 0]
    grown.sort(key=lambda b: (-_filled(b, found), -found.peaks[b].more_bytes, b))
    named = max(PEAKS_NAMED, sum(_filled(b, found) >= NEARLY_FULL for b in grown))
    words = [_peak(broker, found) for broker in grown[:named]]
    more = len(grown) - named
    words += [f"and {count_text(more, 'more broker')}"] if more > 0 else []
    lines.append(f"peak disk use: {', '.join(words) or 'as now'}")
    lines.append(f"peak extra traffic: {_traffic(found)}")
    if found.unknown:
        unknown = count_text(found.unknown, "move")
        lines.append(f"not included: {unknown} of unknown size")
    lines += [f"not all moves fit: {words}" for words in found.unfit[:PEAKS_NAMED]]
    more = len(found.unfit) - PEAKS_NAMED
    lines += [f"not all moves fit: and {count_text(more, 'more move')}"] if more > 0 else []
    return "\n".join(lines)


def _filled(broker: BrokerId, found: Forecast) -> float:
    """The share of its free space that a broker needs at most; 0 where that is unknown."""
    free = found.free_bytes.get(broker)
    return 0.0 if free is None else found.peaks[broker].more_bytes / max(1, free)


def _traffic(found: Forecast) -> str:
    """The brokers that send and receive most at once."""
    ends = []
    for word, rate in (("into", "in_per_s"), ("out of", "out_per_s")):
        most, broker = max(((getattr(p, rate), b) for b, p in found.peaks.items()), default=(0, 0))
        if most > 0:
            ends.append(f"{rate_text(most)} {word} broker {broker}")
    return ", ".join(ends) or "none"


def _peak(broker: BrokerId, found: Forecast) -> str:
    free = found.free_bytes.get(broker)
    of = f" of {bytes_text(free)} free" if free is not None else ""
    mark = "! " if _filled(broker, found) >= NEARLY_FULL else ""
    return f"{mark}broker {broker} +{bytes_text(found.peaks[broker].more_bytes)}{of}"


def replaced(view: LoopView, plan: Plan) -> str:
    """Why the plan in the dialog can no longer be approved; empty if it can."""
    if view.plan is not None and view.plan.hash == plan.hash:
        changes = "; ".join(view.proposed.changes)
        return f"The cluster has changed: {changes}." if changes else ""
    if view.plan is None:
        return "This plan no longer applies: the cluster has changed. Cancel."
    return (
        f"A newer plan, {view.plan.hash[:12]}, has replaced this one. "
        "Cancel, then review and approve the newer plan."
    )


def asked(view: LoopView) -> str:
    """A line on the operator's requests; empty if there are none."""
    words = ", ".join(view.proposed.asks.words())
    return f"requested: {words}\n" if words else ""


def rivals_line(view: LoopView) -> str:
    """A line on competing rebalancers; empty while none is known."""
    found = "; ".join(view.proposed.rivals)
    return f"! competing rebalancers: {found}\n" if found else ""


def rules_lines(rules: StopRules) -> str:
    """What will pause or stop the run, a line for each reaction."""
    return "".join(f"{line}\n" for line in armed(rules)) or "! no stop rule is armed\n"


def throttle_line(throttle: int | str | None) -> str:
    """A line on the throttle of the run."""
    if throttle is None:
        return "throttle: none\n"
    if isinstance(throttle, int):
        return f"throttle: {rate_text(throttle)}\n"
    return "throttle: follows what clients leave free\n"
