"""The load forecast of a plan or a snapshot, as text."""

from collections.abc import Mapping

from model.plan.plan import Plan
from model.snapshot.forecast import LoadForecast, SlotReason
from model.snapshot.snapshot import dimension_words
from model.units import count_text, percent_text


def plan_lines(plan: Plan) -> list[str]:
    """`forecast_lines` with the largest deviation of each hour, now and after."""
    slots = plan.forecast.slots if plan.forecast is not None else ()
    return forecast_lines(plan.forecast, {s.name: _spread(plan, s.name) for s in slots})


def _spread(plan: Plan, slot: str) -> str:
    """The largest deviation that counts at that hour; empty if none does."""
    keys = [key for key in plan.levels if key.endswith(f"@{slot}")]
    if not keys:
        return ""
    before, after = (
        percent_text(max(plan.spread(key, after=late) for key in keys)) for late in (False, True)
    )
    return f"; largest deviation {before} -> {after}"


def forecast_lines(
    forecast: LoadForecast | None, more: Mapping[str, str] | None = None
) -> list[str]:
    """Method and error of the forecast, and each of its hours with the reason.

    more: text that follows an hour's line, by the name of its slot.
    """
    if forecast is None:
        return []
    if forecast.unused:
        return [f"balanced for current loads only, without a forecast: {forecast.unused}"]
    missed = ", ".join(
        f"{percent_text(share)} of {dimension_words(resource)} "
        f"({percent_text(forecast.missed_as_now[resource])} if current loads were kept)"
        for resource, share in forecast.missed.items()
    )
    held_back = count_text(forecast.held_back_days, "day")
    lines = [
        f"forecast by {forecast.method} from {count_text(forecast.days, 'day')}; on "
        f"{held_back} held back its error was {missed}"
    ]
    if forecast.as_now:
        partitions = count_text(forecast.partitions, "partition")
        lines.append(
            f"{forecast.as_now} of {partitions} have too little history and are "
            "forecast at their current load"
        )
    more = more or {}
    return lines + [
        f"  {slot.name}: {_reason(slot)}{more.get(slot.name, '')}" for slot in forecast.slots
    ]


def _reason(slot: SlotReason) -> str:
    return slot.why + (f", mostly in {slot.topic}" if slot.topic else "")
