"""How much of the loads is kept, where, and what it is used for."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SAMPLE_STORE: Final = "__KafkaCruiseControlPartitionMetricSamples"


class Horizon(StrEnum):
    """How far ahead plans balance forecast loads."""

    DAY = "day"
    WEEK = "week"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """Settings of one cluster's history: its place, and how long it is kept."""

    url: str | None = None
    """Where compacted days are, by cluster id; None for the cluster's own folder."""
    raw_days: int = 3
    """Raw vectors of as many days stay beside their compacted form."""
    weeks: int = 8
    """Compacted days of as many weeks stay; they say what is usual."""
    horizon: Horizon = Horizon.DAY
    time_zone: str = "UTC"
    """IANA name of the time zone that hours of the week are those of."""
    sample_store: str = SAMPLE_STORE
    """Cruise Control's topic of what it kept; a history without days begins with it."""
