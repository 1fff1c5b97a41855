"""Rules that stop or pause a run, and the reaction to each."""

import math
import re
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from model.files import FileModel
from model.quantities import Duration, as_span

_MINUTES: Final = 2 * 24 * 60
"""Minutes within which daily hours begin or end, also where clocks change."""
_HOURS: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


class StopRule(StrEnum):
    """What stops or pauses a run; the values are the settings of `StopRules`, described there."""

    BROKER_LOST = "broker_lost"
    OFFLINE = "offline"
    UNDER_MIN_ISR = "under_min_isr"
    UNDER_REPLICATED = "under_replicated"
    ISR_SHRINK = "isr_shrink"
    CONTROLLER_CHANGES = "controller_changes"
    SLOW_REQUESTS = "slow_requests"
    DISK = "disk"
    NO_PROGRESS = "no_progress"
    WINDOW = "window"
    FOREIGN = "foreign"
    """Another rebalancer moves partitions; always ends a run."""


class Reaction(StrEnum):
    """What a run does where a rule is broken."""

    OFF = "off"
    PAUSE = "pause"
    """Start no moves until the rule holds again."""
    STOP = "stop"
    """Start no further moves, and wait for in-flight moves to end."""
    ROLL_BACK = "roll back"
    """Cancel in-flight moves where possible, and move finished ones back."""


def _checked_hours(text: str) -> str:
    if text and (not _HOURS.fullmatch(text) or text[:5] == text[6:]):
        raise ValueError(f"{text!r} is not a window; write it as 22:00-06:00")
    return text


class StopRules(FileModel):
    """A reaction to each rule, and from where on it is broken."""

    broker_lost: Reaction = Reaction.STOP
    """A broker that served when the run began no longer does."""
    offline: Reaction = Reaction.STOP
    """A partition lost its leader."""
    under_min_isr: Reaction = Reaction.STOP
    """A partition has fewer in-sync replicas than its `min.insync.replicas`."""
    under_replicated: Reaction = Reaction.STOP
    """A partition outside the plan that was complete no longer is."""
    isr_shrink: Reaction = Reaction.PAUSE
    """A partition outside the plan that was incomplete lost an in-sync replica."""
    controller_changes: Reaction = Reaction.PAUSE
    """The controller changed twice within a minute."""
    slow_requests: Reaction = Reaction.PAUSE
    """Brokers answer small requests far more slowly than when the run began."""
    disk: Reaction = Reaction.PAUSE
    """A disk that receives copies has less free space than its reserve."""
    no_progress: Reaction = Reaction.STOP
    """A move that copies has made no progress for `no_progress_s`."""
    window: Reaction = Reaction.PAUSE
    """The time is outside `window_hours`, or past `window_end`."""
    slow_times: Annotated[float, Field(gt=1)] = 5.0
    """How much later than at the beginning an answer is slow."""
    slow_s: Annotated[float, Field(gt=0), as_span] = 1.0
    """Answers within this time are never slow."""
    no_progress_s: Annotated[float, Field(gt=0), as_span] = 600.0
    """How long a move that copies may make no progress; 120 seconds on AutoMQ."""
    window_hours: Annotated[str, AfterValidator(_checked_hours)] = ""
    """Local hours in which moves may be started, `22:00-06:00`; empty for all."""
    window_end: datetime | None = None
    """When the last move may be started; local time where it has no zone."""
    calm_s: Duration = 30.0
    """How long all must have been well again before a pause ends."""
    pause_limit_s: Annotated[float, Field(gt=0), as_span] = 3600.0
    """A pause that lasts longer ends the run; not one for the window."""

    def reaction(self, rule: StopRule) -> Reaction:
        """The reaction to a broken rule; STOP for a rule without a setting."""
        found: Reaction = getattr(self, rule.value, Reaction.STOP)
        return found

    def slow_limit_s(self, begun_s: float) -> float:
        """Seconds from which an answer is slow, where the first ones took `begun_s`."""
        return max(self.slow_s, self.slow_times * begun_s)

    def for_rollback(self) -> "StopRules":
        """The rules for a rollback: no rollback of it, and at any hour."""
        harder = {
            rule.value: Reaction.STOP
            for rule in StopRule
            if self.reaction(rule) is Reaction.ROLL_BACK
        }
        return self.model_copy(update=harder | {"window": Reaction.OFF})

    def is_open(self, now_s: float) -> bool:
        """Whether moves may be started at a time (seconds since the epoch).

        The window is in local time.
        """
        now = datetime.fromtimestamp(now_s, UTC).astimezone()
        if self.window_end is not None and now >= self.window_end.astimezone():
            return False
        if not self.window_hours:
            return True
        begin, end = map(time.fromisoformat, self.window_hours.split("-"))
        at = now.time().replace(tzinfo=None)
        return begin <= at < end if begin < end else at >= begin or at < end

    def next_change_s(self, now_s: float) -> float:
        """When `is_open` changes next, seconds since the epoch; inf for never."""
        end_s = math.inf if self.window_end is None else self.window_end.astimezone().timestamp()
        if not self.window_hours:
            return end_s if now_s < end_s else math.inf
        was_open, first = self.is_open(now_s), int(now_s // 60) + 1
        minutes = (60.0 * minute for minute in range(first, first + _MINUTES))
        found = next((at_s for at_s in minutes if self.is_open(at_s) != was_open), math.inf)
        return min(found, end_s) if was_open else found
