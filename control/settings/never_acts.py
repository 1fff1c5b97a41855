"""Which triggers of a policy of `--auto` can never lead to a move, and why."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from control.settings.auto_limits import tightened
from control.settings.opening_times import MOST_S, opens_in_s
from control.settings.schedule_table import ScheduleTable
from control.settings.trigger_table import Response, Trigger
from model.goals.effort import Effort
from model.goals.goals import Budgets
from model.stop_rules import Reaction
from model.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from control.settings.auto_policy import AutoPolicy

COPIED: Final = frozenset(
    {Trigger.UNDER_MIN_ISR, Trigger.DEAD_BROKER, Trigger.DEAD_LOG_DIR, Trigger.EMPTY_BROKER}
)
"""Triggers that only new replicas help."""
LED: Final = frozenset({Trigger.SLOW_BROKER})
"""Triggers that only other leaders help; either helps the rest."""
CONFIRMED: Final = frozenset({Trigger.EMPTY_BROKER, Trigger.UNEVEN_LOAD})
"""Triggers that wait for `confirm`."""
LEAST_COPY: Final = 61
"""Bytes of the header of a record batch: no partition that holds a record is smaller."""
LEAST_OPEN_S: Final = 10.0
"""Within a shorter maintenance window, no plan is made and approved."""
_OF_ALL: Final = ("partitions", "partitions_per_topic")
_OF_COPIES: Final = (
    "replica_moves",
    "replica_moves_per_topic",
    "replica_moves_in_per_broker",
    "replica_moves_out_per_broker",
    *_OF_ALL,
)


def obstacles(policy: "AutoPolicy", now_s: float) -> dict[Trigger, str]:
    """Why each trigger that acts or asks, and can never lead to a move, cannot: a clause.

    now_s: seconds since the epoch.
    """
    found = {}
    budgets = tightened(policy.goals, policy.limits).budgets
    effort = policy.limits.effort or policy.effort
    no_copies, no_leaders = _no_copies(budgets, effort), _no_leaders(budgets)
    opens_in = _opens_in_s(policy.schedule, now_s)
    for trigger in Trigger:
        response = policy.triggers.response(trigger)
        if response is Response.OFF:
            continue
        waits = response is Response.ACT and trigger not in policy.schedule.exempt
        reasons = (
            *_of_moves(trigger, no_copies, no_leaders),
            *_of_times(policy, trigger, now_s, opens_in if waits else 0.0),
        )
        if reasons:
            found[trigger] = reasons[0]
    return found


def _of_moves(trigger: Trigger, no_copies: str, no_leaders: str) -> Iterator[str]:
    if no_copies and no_leaders:
        yield f"nothing may move: {no_copies}, and {no_leaders}"
    elif trigger in COPIED and no_copies:
        yield f"replicas would have to be copied, but {no_copies}"
    elif trigger in LED and no_leaders:
        yield f"leaders would have to change, but {no_leaders}"


def _of_times(
    policy: "AutoPolicy", trigger: Trigger, now_s: float, opens_in: float
) -> Iterator[str]:
    """opens_in: seconds until the schedule lets it act."""
    after_s = policy.dead_broker_after_s
    if trigger is Trigger.DEAD_BROKER and after_s > MOST_S:
        span = "off" if after_s == math.inf else seconds_text(after_s)
        yield f"dead_broker_after is {span}"
    if trigger in CONFIRMED and policy.limits.confirm > MOST_S:
        yield f"confirm is {seconds_text(policy.limits.confirm)}"
    if opens_in == math.inf:
        yield _closed_words(policy.schedule)
    end, rules = policy.stop_rules.window_end, policy.stop_rules
    if rules.window is Reaction.OFF or end is None:
        return
    if now_s >= end.timestamp():
        yield f"stop_rules.window_end, {end.isoformat()}, has passed"
    elif now_s + opens_in >= end.timestamp():
        yield f"the schedule allows no run before stop_rules.window_end, {end.isoformat()}"


def _no_copies(budgets: Budgets, effort: Effort) -> str:
    """Why no plan copies a replica; empty where one may."""
    if effort is Effort.QUICK:
        return "effort is quick, which changes leaders only"
    if zero := _zero(budgets, _OF_COPIES):
        return zero
    if budgets.bytes is not None and budgets.bytes < LEAST_COPY:
        return f"bytes is {bytes_text(budgets.bytes)}, less than any partition with a record takes"
    return ""


def _no_leaders(budgets: Budgets) -> str:
    """Why no plan changes a leader; empty where one may."""
    return _zero(budgets, ("leader_changes", *_OF_ALL))


def _zero(budgets: Budgets, names: tuple[str, ...]) -> str:
    return next((f"{name} is 0" for name in names if getattr(budgets, name) == 0), "")


def _opens_in_s(schedule: ScheduleTable, now_s: float) -> float:
    """As `opens_in_s`, by the windows that are long enough."""
    long = tuple(window for window in schedule.windows if window.duration >= LEAST_OPEN_S)
    if schedule.windows and not long:
        return math.inf
    return opens_in_s(schedule.model_copy(update={"windows": long}), now_s)


def _closed_words(schedule: ScheduleTable) -> str:
    if schedule.windows and all(window.duration < LEAST_OPEN_S for window in schedule.windows):
        return (
            "the windows of its schedule last less than "
            f"{seconds_text(LEAST_OPEN_S)}, too short to make a plan"
        )
    return "no run may start within ten years by its schedule"
