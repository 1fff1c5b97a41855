"""Which lines of the log report a condition, and which report its end."""

from collections.abc import Mapping
from typing import Final

from control.settings.notify_table import NotifyLevel
from model.log_events import LogEvent

_ANY: Final = frozenset(NotifyLevel)
_QUIET: Final = frozenset({NotifyLevel.INFO})
_ENDS: Final[Mapping[LogEvent, Mapping[LogEvent, frozenset[NotifyLevel]]]] = {
    LogEvent.PLAN_WAITING: dict.fromkeys(
        (LogEvent.PLAN_APPROVED, LogEvent.PLAN_REJECTED, LogEvent.PLAN_WITHDRAWN), _ANY
    ),
    # A phase that needs attention is a warning or an error, such as an unreachable cluster.
    LogEvent.LOOP_PHASE: {LogEvent.LOOP_PHASE: _QUIET},
    LogEvent.SETTINGS_REJECTED: {LogEvent.SETTINGS_READ: _ANY},
    # With the settings, the certificate is read again, and warned of again where it still ends.
    LogEvent.CERTIFICATE_ENDS: {LogEvent.SETTINGS_READ: _ANY},
    LogEvent.POLICY_REJECTED: dict.fromkeys(
        (LogEvent.POLICY_CHANGED, LogEvent.SETTINGS_READ), _ANY
    ),
    LogEvent.RUN_INTERRUPTED: {LogEvent.RUN_STATE: _ANY},
}
"""The end of each condition, by events and their levels; other lines report facts, without end."""


def lasts(event: str, level: NotifyLevel) -> bool:
    """Whether a line reports a condition that another line ends."""
    return event in _ENDS and event not in ended_by(event, level)


def ended_by(event: str, level: NotifyLevel) -> frozenset[str]:
    """The events of the conditions that a line ends."""
    # The names of events are strings; others, such as `notify.test`, are in no row.
    return frozenset(
        str(condition)
        for condition, ends in _ENDS.items()
        if any(end == event and level in levels for end, levels in ends.items())
    )
