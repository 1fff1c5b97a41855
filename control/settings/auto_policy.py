"""A policy of `--auto`: all that bounds what it does, its faults, and its changes."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from control.settings.auto_limits import AutoLimits
from control.settings.never_acts import LEAST_OPEN_S, obstacles
from control.settings.schedule_table import ScheduleTable
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.goals.effort import Effort
from model.goals.goals import Goals
from model.stop_rules import StopRules
from model.units import seconds_text

TIMES: Final = frozenset({"pause", "confirm"})
"""Limits that are times."""
LEAST_PAUSE_S: Final = 1.0
"""A shorter pause between runs bounds nothing."""
BOUNDLESS_RUNS: Final = round(86_400 / LEAST_PAUSE_S)
"""Neither do so many runs per day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoPolicy:
    """What bounds one `run --auto`."""

    limits: AutoLimits
    triggers: TriggerTable
    dead_broker_after_s: float
    """inf: for ever."""
    stop_rules: StopRules
    schedule: ScheduleTable = field(default_factory=ScheduleTable)
    goals: Goals = field(default_factory=Goals)
    """Their budgets hold as well."""
    effort: Effort = Effort.GOOD
    """How far plans go where the limits have no effort."""

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
    return (*_off(policy), *_never(policy, now_s), *_unbounded(policy.limits))


def change_faults(before: AutoPolicy, after: AutoPolicy, now_s: float) -> tuple[str, ...]:
    """Faults that forbid to replace a policy by another while `--auto` runs; empty if it may be.

    Triggers may all be off, since this is how `--auto` is stopped without ending it. What
    the policy in force has as well is not held against the other. now_s: seconds since the epoch.
    """
    idle = () if any(_never(before, now_s)) else _never(after, now_s)
    unbounded = () if any(_unbounded(before.limits)) else _unbounded(after.limits)
    return (*idle, *unbounded)


def policy_changes(before: AutoPolicy, after: AutoPolicy) -> Iterator[str]:
    """A clause on each difference: `uneven_load is off, it was act`."""
    for trigger in Trigger:
        was, now = before.triggers.response(trigger), after.triggers.response(trigger)
        if was is not now:
            yield f"{trigger} is {now}, it was {was}"
    for name in AutoLimits.model_fields:
        old, new = getattr(before.limits, name), getattr(after.limits, name)
        if old != new:
            yield f"{name} is {_value(name, new)}, it was {_value(name, old)}"
    for name in ScheduleTable.model_fields:
        if getattr(before.schedule, name) != getattr(after.schedule, name):
            yield f"schedule.{name} is another one"
    if before.dead_broker_after_s != after.dead_broker_after_s:
        old_s, new_s = before.dead_broker_after_s, after.dead_broker_after_s
        yield f"dead_broker_after is {_span(new_s)}, it was {_span(old_s)}"


def _value(name: str, value: object) -> str:
    """A limit as words; times in seconds."""
    if name in TIMES:
        return f"{value:,.10g} s"
    return "not set" if value is None else f"{value:,}" if isinstance(value, int) else f"{value}"


def _span(seconds: float) -> str:
    return "off" if seconds == math.inf else seconds_text(seconds)


def by_reason(found: Mapping[Trigger, str]) -> Iterator[tuple[str, list[Trigger]]]:
    """Each reason once, with its triggers."""
    for reason in dict.fromkeys(found.values()):
        yield reason, [trigger for trigger, why in found.items() if why == reason]


def _off(policy: AutoPolicy) -> Iterator[str]:
    if not policy.firing(Response.ACT) and not policy.firing(Response.ASK):
        dead = policy.triggers.dead_broker is not Response.OFF
        yield "it can never act: every trigger is off" + (
            " but dead_broker, and dead_broker_after is off" if dead else ""
        )


def _never(policy: AutoPolicy, now_s: float) -> Iterator[str]:
    """A fault where nothing can ever happen, or nothing within a window."""
    if idle := [*_idle(policy, now_s)]:
        yield from idle
        return
    for window in policy.schedule.windows:
        if window.duration < LEAST_OPEN_S:
            yield (
                f"it can never act in the window from `{window.start}` on, which lasts "
                f"{window.duration:g} s; a plan needs {LEAST_OPEN_S:g} s or more"
            )


def _idle(policy: AutoPolicy, now_s: float) -> Iterator[str]:
    """A fault where something prevents every trigger that is not off."""
    firing = {*policy.firing(Response.ACT), *policy.firing(Response.ASK)}
    found = obstacles(policy, now_s)
    if not firing or not firing <= found.keys():
        return
    clauses = [
        (reason, ", ".join(triggers))
        for reason, triggers in by_reason({t: why for t, why in found.items() if t in firing})
    ]
    (reason, _), *others = clauses
    words = (f"{why} ({names})" for why, names in clauses)
    yield f"it can never act: {'; '.join(words) if others else reason}"


def _unbounded(limits: AutoLimits) -> Iterator[str]:
    runs = limits.runs_per_day
    if limits.pause >= LEAST_PAUSE_S or (runs is not None and runs < BOUNDLESS_RUNS):
        return
    pause = f"{limits.pause:g} s" if limits.pause else "0"
    daily = "is not set" if runs is None else f"is {runs:,}"
    # Runs that change leaders copy nothing.
    copies = " (bytes_per_day bounds copies alone)" if limits.bytes_per_day is not None else ""
    yield (
        f"it has no bounds: pause is {pause}, and runs_per_day {daily}, so that any number of runs "
        f"may follow each other{copies}; set pause to 1 s or more, or runs_per_day to less than "
        f"{BOUNDLESS_RUNS:,}"
    )
