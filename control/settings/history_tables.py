"""Settings of the load history and the forecast."""

from typing import TYPE_CHECKING, Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from model.files import FileModel

if TYPE_CHECKING:
    from collector.history.history_settings import HistorySettings


class HistoryTable(FileModel):
    """`[history]`: how much load history is kept, and where."""

    folder: Annotated[str, Field(min_length=1)] | None = None
    """Where compacted days are kept: a folder, or a URL that Spark can access."""
    raw_days: Annotated[int, Field(ge=1, le=14)] = 3
    """Days for which the loads of every window are kept."""
    weeks: Annotated[int, Field(ge=1, le=52)] = 8
    """Weeks for which compacted days are kept."""
    sample_store: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")] = (
        "__KafkaCruiseControlPartitionMetricSamples"
    )
    """Cruise Control's `partition.metric.sample.store.topic`."""


class ForecastTable(FileModel):
    """`[forecast]`: how far plans look ahead."""

    horizon: Literal["day", "week", "off"] = "day"
    """How far ahead plans look; `off` for current loads only."""
    time_zone: str = "UTC"
    """Time zone of the hours of the week."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        try:
            ZoneInfo(self.time_zone)
        except (KeyError, OSError, ValueError) as exc:
            raise ValueError(
                f"unknown time zone {self.time_zone!r}; use a name such as Europe/Berlin or UTC"
            ) from exc
        return self


def history_settings(history: HistoryTable, forecast: ForecastTable) -> "HistorySettings":
    """The two tables in the form of the collector."""
    from collector.history.history_settings import HistorySettings, Horizon

    return HistorySettings(
        url=history.folder,
        raw_days=history.raw_days,
        weeks=history.weeks,
        horizon=Horizon(forecast.horizon),
        time_zone=forecast.time_zone,
        sample_store=history.sample_store,
    )
