"""What plans and `status` say of the hours to come."""

from model.forecast import LoadForecast, SlotReason
from model.units import count_text, percent_text


def forecast_lines(told: LoadForecast | None) -> list[str]:
    """By what loads were foretold, how far off that was, and each slot with its why."""
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
    return lines + [f"  {slot.name}: {_why(slot)}" for slot in told.slots]


def _why(slot: SlotReason) -> str:
    return slot.why + (f", most of it in {slot.topic}" if slot.topic else "")
