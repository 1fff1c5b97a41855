"""A policy of `--auto`: all that bounds what it does, its faults, and its changes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from control.settings.auto_limits import AutoLimits
from control.settings.opening_times import opens_in_s
from control.settings.schedule_table import ScheduleTable
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.stop_rules import Reaction, StopRules
from model.units import seconds_text


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoPolicy:
    """What bounds one `run --auto`."""

    limits: AutoLimits
    triggers: TriggerTable
    dead_broker_after_s: float
    """inf: for ever."""
    stop_rules: StopRules
    schedule: ScheduleTable = field(default_factory=ScheduleTable)

    def firing(self, response: Response) -> tuple[Trigger, ...]:
        """Triggers with this response that can fire at all, most urgent first."""
        return tuple(
            t
            for t in Trigger
            if self.triggers.response(t) is response
            and (t is not Trigger.DEAD_BROKER or self.dead_broker_after_s < math.inf)
        )


def policy_faults(policy: AutoPolicy, now_s: float) -> tuple[str, ...]:
    """Why a policy can never act, or has no bounds; empty for a sound one.

    now_s: seconds since the epoch.
    """
    return (*_idle(policy), *_closed(policy, now_s), *_unbounded(policy.limits))


def change_faults(before: AutoPolicy, after: AutoPolicy, now_s: float) -> tuple[str, ...]:
    """Faults that forbid to replace a policy by another while `--auto` runs; empty if it may be.

    Triggers may all be off, since this is how `--auto` is stopped without ending it. What
    the policy in force has as well is not held against the other. now_s: seconds since the epoch.
    """
    found = (*_closed(after, now_s), *_unbounded(after.limits))
    known = policy_faults(before, now_s)
    return tuple(fault for fault in found if fault not in known)


def policy_changes(before: AutoPolicy, after: AutoPolicy) -> Iterator[str]:
    """A clause on each difference: `uneven_load is off, it was act`."""
    for trigger in Trigger:
        was, now = before.triggers.response(trigger), after.triggers.response(trigger)
        if was is not now:
            yield f"{trigger} is {now}, it was {was}"
    for name in AutoLimits.model_fields:
        old, new = getattr(before.limits, name), getattr(after.limits, name)
        if old != new:
            yield f"{name} is {_value(new)}, it was {_value(old)}"
    for name in ScheduleTable.model_fields:
        if getattr(before.schedule, name) != getattr(after.schedule, name):
            yield f"schedule.{name} is another one"
    if before.dead_broker_after_s != after.dead_broker_after_s:
        old_s, new_s = before.dead_broker_after_s, after.dead_broker_after_s
        yield f"dead_broker_after is {_span(new_s)}, it was {_span(old_s)}"


def _value(value: object) -> str:
    """A limit; times in seconds, as in the settings."""
    return "not set" if value is None else f"{value:,}" if isinstance(value, int) else f"{value}"


def _span(seconds: float) -> str:
    return "off" if seconds == math.inf else seconds_text(seconds)


def _idle(policy: AutoPolicy) -> Iterator[str]:
    if not policy.firing(Response.ACT) and not policy.firing(Response.ASK):
        dead = policy.triggers.dead_broker is not Response.OFF
        yield "it can never act: every trigger is off" + (
            " but dead_broker, and dead_broker_after is off" if dead else ""
        )


def _closed(policy: AutoPolicy, now_s: float) -> Iterator[str]:
    if opens_in_s(policy.schedule, now_s) == math.inf:
        yield "it can never act: no run may start within ten years by its schedule"
    end, rules = policy.stop_rules.window_end, policy.stop_rules
    if rules.window is not Reaction.OFF and end is not None and now_s >= end.timestamp():
        yield f"it can never act: stop_rules.window_end, {end.isoformat()}, has passed"


def _unbounded(limits: AutoLimits) -> Iterator[str]:
    if limits.pause == 0 and limits.runs_per_day is None and limits.bytes_per_day is None:
        yield (
            "it has no bounds: pause is 0, and neither runs_per_day nor bytes_per_day is set, so "
            "that any number of runs may follow each other; set one of them"
        )
