"""What the operator says that brokers can carry: a file or a table of the settings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from control.loop.view import LoopView
from model.errors import ConfigError
from model.exchange.capacity import read_capacities
from model.files import FileModel
from model.quantities import Rate, as_size
from model.snapshot.capacities import (
    DEFAULT,
    Capacities,
    Entry,
    capacity_notes,
)
from model.snapshot.snapshot import CapacitySource, Resource, Snapshot

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.settings.settings import Settings

TABLE: Final = "[capacities]"
"""Of the settings."""


class CapacityTable(FileModel):
    """What one broker can carry; what is left out is not told."""

    net_in: Rate | None = None
    """Bytes/s, or `125MB/s`; a follower's share counts too."""
    net_out: Rate | None = None
    """The same, to consumers and followers."""
    disk: Annotated[int, Field(gt=0), as_size] | None = None
    """Bytes, or `1TB`, of all log directories together."""
    cpu: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Cores."""

    def known(self) -> dict[Resource, float]:
        """As a snapshot has it: CPU in percent of one core."""
        found = {
            Resource.NET_IN: self.net_in,
            Resource.NET_OUT: self.net_out,
            Resource.DISK: self.disk,
            Resource.CPU: None if self.cpu is None else 100 * self.cpu,
        }
        return {r: float(value) for r, value in found.items() if value is not None}


class CapacitySettings(FileModel):
    """`[capacities]`: what brokers can carry."""

    default: CapacityTable = CapacityTable()
    """Of every broker, but for what its own table says."""
    brokers: dict[Annotated[int, Field(ge=0, lt=2**31)], CapacityTable] = {}
    """By broker id."""


def capacities_of(settings: "Settings", file: Path | None = None) -> Capacities | None:
    """What the operator gives; None where that is nothing.

    file: the one that was typed, over that of the settings.

    Raises
    ------
    ConfigError
        File and table are both given, or the file cannot be used.
    """
    file, table = file or settings.capacity_file, settings.capacities
    tabled = table != CapacitySettings()
    if file is not None and tabled:
        raise ConfigError(
            f"both {file} and {TABLE} of the settings tell what brokers can carry; "
            "keep one of them"
        )
    if file is not None:
        return read_capacities(file)
    return _of_table(table) if tabled else None


def _of_table(table: CapacitySettings) -> Capacities:
    default = table.default.known()
    own = {b: default | entry.known() for b, entry in table.brokers.items()}
    return Capacities(
        source=CapacitySource.SETTINGS,
        place=TABLE,
        by_broker={b: Entry(capacity=c) for b, c in {DEFAULT: default, **own}.items()},
    )


class CapacityNotes:
    """Keeps a loop's log told of what is to be said of capacities, each once."""

    def __init__(self, loop: "Loop", given: Capacities | None) -> None:
        self._loop, self._given = loop, given
        self._seen: Snapshot | None = None
        self._told: tuple[str, ...] = ()

    def __call__(self, view: LoopView) -> None:
        """Look at the newest snapshot."""
        if view.snapshot is None or view.snapshot is self._seen:
            return
        self._seen, before = view.snapshot, self._told
        self._told = capacity_notes(view.snapshot, self._given)
        for words in self._told:
            if words not in before:
                self._loop.note(words, level="warning")
