"""What plans and `status` say of the hours to come."""

from collections.abc import Mapping

from model.plan.plan import Plan
from model.snapshot.forecast import LoadForecast, SlotReason
from model.units import count_text, percent_text


def plan_lines(plan: Plan) -> list[str]:
    """As `forecast_lines`, with how far brokers are off at each hour now and after."""
    slots = plan.forecast.slots if plan.forecast is not None else ()
    return forecast_lines(plan.forecast, {s.name: _spread(plan, s.name) for s in slots})


def _spread(plan: Plan, slot: str) -> str:
    """The largest of all that counts at that hour; empty where nothing does."""
    keys = [key for key in plan.levels if key.endswith(f"@{slot}")]
    if not keys:
        return ""
    before, after = (
        percent_text(max(plan.spread(key, after=late) for key in keys))
        for late in (False, True)
    )
    return f"; brokers off by {before} -> {after} at most"


def forecast_lines(
    told: LoadForecast | None, more: Mapping[str, str] | None = None
) -> list[str]:
    """By what loads were foretold, how far off that was, and each slot with its why.

    more: what else is said of a slot, by its name.
    """
    if told is None:
        return []
    if told.unused:
        return [f"level now alone, not at hours to come: {told.unused}"]
    missed = ", ".join(
        f"{percent_text(share)} of {resource} "
        f"({percent_text(told.missed_as_now[resource])} if taken as now)"
        for resource, share in told.missed.items()
    )
    lines = [
        f"hours to come are foretold by {told.method} from "
        f"{count_text(told.days, 'day')}; on {count_text(told.held_back_days, 'day')} "
        f"held back it missed {missed}"
    ]
    if told.as_now:
        lines.append(
            f"{told.as_now} of {count_text(told.partitions, 'partition')} have too "
            "little history: at each hour as now"
        )
    more = more or {}
    return lines + [
        f"  {slot.name}: {_why(slot)}{more.get(slot.name, '')}" for slot in told.slots
    ]


def _why(slot: SlotReason) -> str:
    return slot.why + (f", most of it in {slot.topic}" if slot.topic else "")
