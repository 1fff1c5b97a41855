"""A plan, a topic's spread and the estimate of a run as text and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from control.cli.output import Form
from control.cli.output_types import PlanAnswer
from control.planning.plan_gain import PlanGain
from control.render.effort_table import gain_answer, gain_line
from control.render.forecast_text import plan_lines
from control.render.text import ids_text, json_text, load_cell, range_text, table
from model.goals.effort import Effort
from model.plan.plan import BrokerChange, Move, Plan
from model.plan.remaining import repaired_text
from model.snapshot.topic_skew import BrokerSkew, TopicSkew
from model.units import bytes_text, count_text, percent_text, rate_text, seconds_text

if TYPE_CHECKING:
    from control.planning.topic_mode import SkewChange
    from executor.schedule.estimate import Forecast
    from executor.schedule.simulate import Peak
    from solver.report.result import Result


LEAST_GAIN: Final = 1e-12
"""The lowest gain that is shown, in units of F."""

# ---- a plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPlan:
    """The plan that was made: at which effort, what it gains, and how long a run takes."""

    effort: Effort
    gain: PlanGain
    seconds: float | None
    """Estimated duration of a run; None where it is not known."""

    @property
    def line(self) -> str:
        """All of it in one line."""
        return gain_line(self.effort, self.gain, self.seconds)


def result_text(
    result: "Result",
    chosen: ChosenPlan | None,
    skew: "Sequence[SkewChange]",
    output: Form,
    notes: Sequence[str],
) -> str:
    """What `plan` prints: status, plan, its gain, spread of chosen topics and notes."""
    if output is Form.JSON:
        optional: dict[str, object] = {"notes": notes} if notes else {}
        optional |= {"skew": {s.before.topic: s for s in skew}} if skew else {}
        if chosen is not None:
            gain = gain_answer(chosen.gain, chosen.seconds)
            optional |= {"effort": chosen.effort, "gain": gain}
        return json_text(PlanAnswer.of(result, plan=result.best, **optional))
    text = result.summary() + "\n"
    if result.best is not None:
        text = plan_text(result.best, result.summary(), chosen)
    text += "".join("\n" + skew_text(s.before, s.after) for s in skew)
    return text + "".join(f"\n{note}\n" for note in notes)


def plan_text(plan: Plan, summary: str, chosen: ChosenPlan | None = None) -> str:
    """A plan as text: result, its gain, brokers now and after, moves and their reasons."""
    gap = f"{plan.gap:.3g}"
    if not plan.raises_objective:
        gap += f" ({percent_text(plan.gap_share)} of the possible improvement)"
    by = "" if plan.bound_method == "none" else f" by {plan.bound_method}"
    ended = f"; {plan.limited_by}" if plan.limited_by else ""
    leaders_only = f"{plan.leaders_only_text}; plan --leaders-only plans such changes only"
    lines = [
        summary,
        f"imbalance {plan.objective_before:.6g} -> {plan.objective:.6g}; proved bound "
        f"{plan.bound:.6g}{by}; gap {gap}{ended}",
        f"{count_text(len(plan.moves), 'move')}, {bytes_text(plan.bytes_to_copy)} to "
        f"copy, {count_text(plan.leader_changes, 'leader change')}; a move costs "
        f"{plan.move_price:.3g}; plan {plan.hash[:12]}",
        *([chosen.line] if chosen is not None and plan.moves else []),
        *([leaders_only] if plan.leaders_only_text else []),
        *(f"warning: {words}" for words in plan.warnings),
        *plan_lines(plan),
        *repaired_text(plan.over_limit, plan.rack_violations),
    ]
    text = "\n".join(lines) + "\n\n" + _brokers_text(plan)
    return text + ("\n" + _moves_text(plan.moves) if plan.moves else "")


def _brokers_text(plan: Plan) -> str:
    shown = {d for b in plan.brokers for d in b.deviation_before}
    # Forecast hours are many; their largest deviations are listed with them.
    counted = [d for d in plan.levels if d in shown and "@" not in d]
    rows = [
        [
            str(b.id),
            b.rack or "-",
            *(cell for r in counted for cell in _now_and_after(b, r)),
            f"{b.replicas_before} -> {b.replicas_after}",
        ]
        for b in plan.brokers
    ]
    headers = [h for r in counted for h in (f"{r} now", "after")]
    return table(["broker", "rack", *headers, "replicas"], rows)


def _now_and_after(broker: BrokerChange, dimension: str) -> tuple[str, str]:
    return (
        load_cell(dimension, broker.before, broker.deviation_before),
        load_cell(dimension, broker.after, broker.deviation_after),
    )


def _gain_text(gain: float) -> str:
    """A gain, or 0 for what rounding has left of terms that cancel each other."""
    return f"{gain:.4g}" if abs(gain) >= LEAST_GAIN else "0"


def _moves_text(moves: Sequence[Move]) -> str:
    rows = [
        [
            str(m.id),
            f"{ids_text(m.replicas_before)} -> {ids_text(m.replicas_after)}",
            bytes_text(m.bytes_to_copy),
            _gain_text(m.gain),
            m.reason_text,
        ]
        for m in moves
    ]
    return table(["partition", "brokers", "to copy", "gain", "reason"], rows)


# ---- spread of a topic

_SHARES = {
    "brokers skewed": "brokers_skewed",
    "leaders skewed": "leaders_skewed",
    "spread": "spread",
    "preferred leaders": "preferred_leaders",
}
"""Kafka Manager's words for the shares of a `TopicSkew`."""


def skew_text(before: TopicSkew, after: TopicSkew) -> str:
    """The spread of a topic now and after a plan, as text."""
    shares = [
        f"{words} {percent_text(getattr(before, share))} -> {percent_text(getattr(after, share))}"
        for words, share in _SHARES.items()
    ]
    lines = [
        f"topic {before.topic}, {count_text(before.partitions, 'partition')}: the "
        f"optimum is {range_text(*before.optimum)} replicas and "
        f"{range_text(*before.leader_optimum)} leaders per broker",
        ", ".join(shares),
    ]
    later = {b.id: b for b in after.brokers}
    now = {b.id: b for b in before.brokers}
    rows = [
        [
            str(b),
            *_skew_cells(now.get(b), "replicas", "skewed"),
            *_skew_cells(later.get(b), "replicas", "skewed"),
            *_skew_cells(now.get(b), "leaders", "leader_skewed"),
            *_skew_cells(later.get(b), "leaders", "leader_skewed"),
        ]
        for b in sorted(now | later)
    ]
    headers = ["broker", "replicas now", "after", "leaders now", "after"]
    return "\n".join(lines) + "\n\n" + table(headers, rows)


def _skew_cells(broker: BrokerSkew | None, count: str, skewed: str) -> list[str]:
    if broker is None:
        return ["0"]
    words = " skewed" if getattr(broker, skewed) else ""
    return [f"{getattr(broker, count)}{words}"]


# ---- a run


def forecast_text(estimate: "Forecast") -> str:
    """The estimated duration of a run, and each broker's peak load during it."""
    basis = "default figures"
    if estimate.known:
        basis = f"{count_text(estimate.known, 'move')} of previous runs"
    faster = (
        f"takes less than {seconds_text(estimate.least_s)}"
        if estimate.seconds > 1.005 * estimate.least_s
        else "is faster"
    )
    text = (
        f"will take about {seconds_text(estimate.seconds)} and copy "
        f"{bytes_text(estimate.bytes_to_copy)} (based on {basis}); no order of the "
        f"moves {faster}\n"
    )
    if estimate.unknown:
        text += (
            f"{count_text(estimate.unknown, 'move')} of unknown size not included: the "
            "run will take longer and copy more\n"
        )
    if estimate.unfit:
        more = f", and {len(estimate.unfit) - 1} more" if len(estimate.unfit) > 1 else ""
        text += f"not all moves can be made: {estimate.unfit[0]}{more}\n"
    peaks = {b: p for b, p in estimate.peaks.items() if p.copied_bytes}
    if not peaks:
        return text
    headers = ["broker", "disk at most", "in", "at most", "out", "at most"]
    inside = any(p.inside_bytes for p in peaks.values())
    rows = [
        _peak_cells(broker, peak, estimate.free_bytes.get(broker))
        + ([bytes_text(peak.inside_bytes)] if inside else [])
        for broker, peak in peaks.items()
    ]
    return f"{text}\n{table([*headers, *(['inside'] if inside else [])], rows)}"


def _peak_cells(broker: int, peak: "Peak", free: int | None) -> list[str]:
    room = f" of {bytes_text(free)} free" if free and free > 0 else ""
    return [
        str(broker),
        f"+{bytes_text(peak.more_bytes)}{room}",
        bytes_text(peak.in_bytes),
        rate_text(peak.in_per_s),
        bytes_text(peak.out_bytes),
        rate_text(peak.out_per_s),
    ]
