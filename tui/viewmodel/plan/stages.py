"""How far one may go: changes of leader alone, or all of the plan."""

from control.planning.plan_gain import PlanGain
from model.goals.effort import Effort
from model.plan.plan import Plan
from model.units import bytes_text, count_text, seconds_text, share_text
from tui.viewmodel.brokers.headline import close_up


def quick_text(plan: Plan, seconds: float | None = None) -> str:
    """`quick: 20 leader changes, 0 B, about 3.00 s, gain 71.0%`; empty where nothing is gained.

    seconds: estimated duration; None where it is not known.
    """
    if plan.leaders_only is None or plan.leaders_only_share <= 0 or plan.bytes_to_copy == 0:
        return ""
    changes = count_text(plan.leaders_only.leader_changes, "leader change")
    gain = close_up(share_text(plan.leaders_only_share))
    about = f"about {seconds_text(seconds)}, " if seconds is not None else ""
    return f"{Effort.QUICK}: {changes}, {bytes_text(0)}, {about}gain {gain}"


def whole_text(plan: Plan, effort: Effort | None, seconds: float | None) -> str:
    """`good: 41 moves, 9.10 GB, about 2 min, gain 93.0%`.

    effort: that of the plan, if it is known. seconds: estimated duration; None where it is
    not known.
    """
    figures = [
        count_text(len(plan.moves), "move"),
        bytes_text(plan.bytes_to_copy),
        *([f"about {seconds_text(seconds)}"] if seconds is not None else []),
        f"gain {close_up(PlanGain.of(plan).share_text)}",
    ]
    return f"{effort or 'this plan'}: {', '.join(figures)}"
