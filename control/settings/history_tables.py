"""What is told of history and forecasts in the settings."""

from typing import TYPE_CHECKING, Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from model.files import FileModel

if TYPE_CHECKING:
    from collector.history.history_settings import HistorySettings


class HistoryTable(FileModel):
    """`[history]`."""

    folder: Annotated[str, Field(min_length=1)] | None = None
    """Where compacted days are kept: a folder, or a URL that Spark reaches."""
    raw_days: Annotated[int, Field(ge=1, le=14)] = 3
    """Loads of each window of as many days are kept."""
    weeks: Annotated[int, Field(ge=1, le=52)] = 8
    """Compacted days of as many weeks are kept."""
    sample_store: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")] = (
        "__KafkaCruiseControlPartitionMetricSamples"
    )
    """Cruise Control's `partition.metric.sample.store.topic`."""


class ForecastTable(FileModel):
    """`[forecast]`."""

    horizon: Literal["day", "week", "off"] = "day"
    """How far ahead plans look."""
    time_zone: str = "UTC"
    """By whose clocks hours of the week are told apart."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        try:
            ZoneInfo(self.time_zone)
        except (KeyError, OSError, ValueError) as exc:
            raise ValueError(
                f"there is no time zone {self.time_zone!r}; name one as "
                "Europe/Berlin, or UTC"
            ) from exc
        return self


def history_settings(
    history: HistoryTable, forecast: ForecastTable
) -> "HistorySettings":
    """For the collector."""
    from collector.history.history_settings import HistorySettings, Horizon

    return HistorySettings(
        url=history.folder,
        raw_days=history.raw_days,
        weeks=history.weeks,
        horizon=Horizon(forecast.horizon),
        time_zone=forecast.time_zone,
        sample_store=history.sample_store,
    )
