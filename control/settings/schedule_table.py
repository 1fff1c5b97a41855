"""`[schedule]`: when `--auto` may start runs, by maintenance windows and freezes."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, model_validator

from control.settings.trigger_table import Trigger
from model.files import FileModel
from model.quantities import as_span

CRON_FIELDS = 5


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError) as exc:
        raise ValueError(
            f"{name!r} is not a time zone; give one of the IANA database, such as Europe/Berlin"
        ) from exc
    return name


def _cron(text: str) -> str:
    fields = text.split()
    if len(fields) > CRON_FIELDS or "?" in text:
        raise ValueError(
            f"{text!r} is an expression of Quartz; leave out seconds and years, and write * for ?"
        )
    if len(fields) < CRON_FIELDS:
        raise ValueError(
            f"{text!r} is not a cron expression: give minute, hour, day of the month, month and "
            "day of the week, such as 0 2 * * SAT"
        )
    try:
        next(CronSim(text, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as exc:
        raise ValueError(f"{text!r} is not a cron expression: {exc}") from exc
    except StopIteration:
        raise ValueError(f"{text!r} never comes") from None
    return text


Day = Annotated[date, Field(ge=date(1970, 1, 2), le=date(2999, 12, 31))]
Zone = Annotated[str, AfterValidator(_zone)]


class MaintenanceWindow(FileModel):
    """Times at which runs may start: from each start of a cron expression on."""

    start: Annotated[str, AfterValidator(_cron)]
    """When it opens, as in cron: minute, hour, day of the month, month, day of the week."""
    duration: Annotated[float, Field(gt=0, le=31 * 86_400), as_span]
    """How long it stays open: seconds, or `4h`; whatever clocks do meanwhile."""
    zone: Zone = "UTC"
    """Time zone of `start`, by its name in the IANA database."""


class Freeze(FileModel):
    """Days on which no run may start, from the first one to the end of the last one."""

    first: Day
    """The first day."""
    last: Day
    """The last day."""
    zone: Zone = "UTC"
    """Time zone in which these days begin and end."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last < self.first:
            raise ValueError(f"the last day, {self.last}, is before the first, {self.first}")
        return self

    @property
    def span_s(self) -> tuple[float, float]:
        """Its beginning and its end, in seconds since the epoch."""
        zone, after = ZoneInfo(self.zone), self.last + timedelta(days=1)
        begin = datetime(self.first.year, self.first.month, self.first.day, tzinfo=zone)
        end = datetime(after.year, after.month, after.day, tzinfo=zone)
        return begin.timestamp(), end.timestamp()


class ScheduleTable(FileModel):
    """When `--auto` may start runs by itself; runs that a person approves may always start."""

    windows: tuple[MaintenanceWindow, ...] = ()
    """Maintenance windows; without any, runs may start at any time."""
    freezes: tuple[Freeze, ...] = ()
    """Days on which no run may start."""
    exempt: tuple[Trigger, ...] = (Trigger.UNDER_MIN_ISR, Trigger.DEAD_BROKER, Trigger.DEAD_LOG_DIR)
    """Triggers that `--auto` acts on at any time."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        ordered = sorted(self.freezes, key=lambda freeze: freeze.span_s)
        for one, other in pairwise(ordered):
            if other.span_s[0] < one.span_s[1]:
                raise ValueError(
                    f"the freezes from {one.first} to {one.last} and from {other.first} to "
                    f"{other.last} overlap; join them, or change a date"
                )
        return self
