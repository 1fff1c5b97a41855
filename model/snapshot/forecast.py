"""The forecast hours that a plan has to balance besides now, and their accuracy."""

from typing import Annotated

from pydantic import Field

from model.files import FileModel
from model.ids import TopicName

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SlotReason(FileModel):
    """One of a snapshot's slots, and why it matters."""

    name: str
    """As in `SnapshotHeader.slots`: day and hour, `tue-14`."""
    begins_ms: int
    why: str
    topic: TopicName | None = None
    """In which most of the difference lies, where that is why."""


class LoadForecast(FileModel):
    """Where the loads of a snapshot's slots come from, and how good they are."""

    method: str
    time_zone: str
    """IANA time zone in which slots are named and weeks begin."""
    days: int
    """Of history."""
    held_back_days: int
    """The newest so many were forecast from those before them."""
    missed: dict[str, Share]
    """By resource: how far that was off, as a share of the load that came."""
    missed_as_now: dict[str, Share]
    """The same if each day were forecast as the last hour before it."""
    partitions: int
    as_now: int
    """Of these partitions, those with too little history: their load at each slot is
    that of now. All where there are no slots."""
    slots: tuple[SlotReason, ...] = ()
    unused: str = ""
    """Why there are no slots, in words; empty where there are."""
