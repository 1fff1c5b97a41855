"""`[[notify]]`: who is notified of what the service logs."""

from enum import StrEnum
from typing import Self

from pydantic import field_validator, model_validator

from model.files import FileModel
from model.log_events import LogEvent
from model.paths import UserPath
from model.quantities import Duration


class ReceiverKind(StrEnum):
    """How a receiver is notified."""

    WEBHOOK = "webhook"
    """A POST of a JSON object."""
    SLACK = "slack"
    """An incoming webhook of Slack."""
    PAGERDUTY = "pagerduty"
    """PagerDuty's Events API v2."""
    ALERTMANAGER = "alertmanager"
    """The API v2 of Prometheus' Alertmanager."""
    COMMAND = "command"
    """A program, with the JSON object on stdin."""


class NotifyLevel(StrEnum):
    """Levels of log lines."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ReceiverTable(FileModel):
    """A receiver of notifications: `plimsoll service` sends it lines of its log."""

    kind: ReceiverKind
    """`webhook`, `slack`, `pagerduty`, `alertmanager` or `command`."""

    url: str | None = None
    """Where to send to, `http` or `https`; of Alertmanager, without `/api/v2/alerts`; PagerDuty's
    own by default."""

    url_file: UserPath | None = None
    """File with the URL, which others must not be able to read, for URLs that are secrets, such as
    Slack's."""

    key_file: UserPath | None = None
    """File with PagerDuty's integration key, or with the bearer token of a webhook or Alertmanager;
    others must not be able to read it."""

    command: tuple[str, ...] = ()
    """The program and its arguments; no shell runs it."""

    level: NotifyLevel = NotifyLevel.WARNING
    """Least level of the lines: `info`, `warning` or `error`."""

    events: tuple[str, ...] = ()
    """Names of log events; by default all."""

    repeat: Duration = 3600.0
    """Time before an equal line is sent again, figures in it aside."""

    @field_validator("events")
    @classmethod
    def _known(cls, events: tuple[str, ...]) -> tuple[str, ...]:
        known = {event.value for event in LogEvent}
        for event in events:
            if event not in known:
                raise ValueError(f"there is no log event {event!r}")
        return events

    @model_validator(mode="after")
    def _complete(self) -> Self:
        given = [self.url is not None, self.url_file is not None, bool(self.command)]
        if self.kind is ReceiverKind.COMMAND:
            if given != [False, False, True]:
                raise ValueError("a command needs command, and neither url nor url_file")
        elif self.command or (sum(given) != 1 and not self._is_default(given)):
            raise ValueError(f"{self.kind} needs url or url_file, one of them")
        if self.kind is ReceiverKind.PAGERDUTY and self.key_file is None:
            raise ValueError("pagerduty needs key_file")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url begins with http:// or https://")
        return self

    def _is_default(self, given: list[bool]) -> bool:
        return self.kind is ReceiverKind.PAGERDUTY and not any(given)
