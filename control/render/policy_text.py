"""What a policy of `--auto` allows, in words."""

import math
from collections.abc import Iterator
from typing import Final

from control.settings.auto_limits import AutoLimits
from control.settings.auto_policy import AutoPolicy, by_reason
from control.settings.never_acts import obstacles
from control.settings.schedule_table import ScheduleTable
from control.settings.trigger_table import Response, Trigger
from model.goals.effort import Effort
from model.stop_rules import Reaction
from model.units import bytes_text, count_text, seconds_text, share_text

NAMES: Final = {
    Trigger.UNDER_MIN_ISR: "partitions below min.insync.replicas",
    Trigger.DEAD_BROKER: "dead brokers",
    Trigger.DEAD_LOG_DIR: "failed log directories",
    Trigger.OVER_CAPACITY: "exceeded capacity",
    Trigger.RULE_VIOLATED: "broken rules",
    Trigger.SLOW_BROKER: "slow brokers",
    Trigger.EMPTY_BROKER: "empty brokers",
    Trigger.UNEVEN_LOAD: "uneven load",
}


def allowances(policy: AutoPolicy, now_s: float) -> tuple[str, ...]:
    """What a policy allows, one sentence each; now_s: seconds since the epoch."""
    return (
        *_triggers(policy),
        *_never(policy, now_s),
        *_run(policy.limits),
        *_effort(policy.limits),
        *_day(policy.limits),
        *_schedule(policy.schedule),
        *_times(policy),
    )


def _triggers(policy: AutoPolicy) -> Iterator[str]:
    does = {Response.ACT: "Acts on", Response.ASK: "Asks a person about", Response.OFF: "Ignores"}
    for response, words in does.items():
        found = [t for t in Trigger if policy.triggers.response(t) is response]
        if found:
            yield f"{words} {_joined([NAMES[t] for t in found])}."
    if policy.triggers.dead_broker is not Response.OFF:
        after_s = policy.dead_broker_after_s
        if after_s == math.inf:
            yield "Waits for dead brokers for ever."
        else:
            yield f"Waits {_span(after_s)} for a dead broker to return."


def _never(policy: AutoPolicy, now_s: float) -> Iterator[str]:
    for reason, triggers in by_reason(obstacles(policy, now_s)):
        yield f"Nothing is ever done about {_joined([NAMES[t] for t in triggers])}: {reason}."


def _run(limits: AutoLimits) -> Iterator[str]:
    yield (
        f"A run adds at most {count_text(limits.replica_moves, 'replica')}, changes "
        f"{count_text(limits.leader_changes, 'leader')}, copies {bytes_text(limits.bytes)} and "
        f"changes {count_text(limits.partitions_per_topic, 'partition')} of a topic, with "
        f"{count_text(limits.moves_in_flight, 'move')} at once."
    )
    yield (
        f"Balancing needs a gain of {share_text(limits.min_gain)} and "
        f"{seconds_text(limits.confirm)} out of tolerance; repairs need neither."
    )


def _effort(limits: AutoLimits) -> Iterator[str]:
    if limits.leader_changes == 0:
        yield "Leaders stay where they are; so do partitions with one replica."
    if limits.effort is Effort.QUICK:
        yield "Plans change leaders only; what has to be copied is not repaired."
    elif limits.effort is not None:
        yield f"Plans are made at the effort {limits.effort}."


def _day(limits: AutoLimits) -> Iterator[str]:
    yield f"Between two runs are at least {_span(limits.pause)}."
    if limits.runs_per_day is not None:
        yield f"Within 24 hours {count_text(limits.runs_per_day, 'run')} may start."
    if limits.bytes_per_day is not None:
        yield f"Within 24 hours {bytes_text(limits.bytes_per_day)} may be copied."


def _schedule(schedule: ScheduleTable) -> Iterator[str]:
    for window in schedule.windows:
        yield (
            f"Runs may start for {_span(window.duration)} from each `{window.start}` on, "
            f"{window.zone}."
        )
    for freeze in schedule.freezes:
        yield f"No run starts from {freeze.first} to the end of {freeze.last}, {freeze.zone}."
    if schedule.exempt and (schedule.windows or schedule.freezes):
        yield f"{_joined([NAMES[t] for t in schedule.exempt]).capitalize()} do not wait for that."


def _times(policy: AutoPolicy) -> Iterator[str]:
    rules = policy.stop_rules
    if rules.window is Reaction.OFF:
        return
    if rules.window_hours:
        yield f"Moves start only in the hours {rules.window_hours}, local time."
    if rules.window_end is not None:
        yield f"Moves start only until {rules.window_end.isoformat()}."


def _span(seconds: float) -> str:
    """A time span, with all digits below a second."""
    return seconds_text(seconds) if seconds >= 1 else f"{seconds:g} s"


def _joined(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
