"""Broker capacities given by the operator: a file, or a table of the settings."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from model.errors import ConfigError
from model.exchange.capacity import read_capacities
from model.files import FileModel
from model.quantities import Rate, as_size
from model.snapshot.capacities import DEFAULT, Capacities, Entry
from model.snapshot.snapshot import CapacitySource, Resource

TABLE: Final = "[capacities]"
"""The table's name in the settings."""


class CapacityTable(FileModel):
    """Capacities of one broker; an absent one is unknown."""

    net_in: Rate | None = None
    """Bytes/s, or `125MB/s`, from producers and as a follower."""
    net_out: Rate | None = None
    """Bytes/s, or `125MB/s`, to consumers and followers."""
    disk: Annotated[int, Field(gt=0), as_size] | None = None
    """Bytes, or `1TB`, of all log directories together."""
    cpu: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Cores."""

    def known(self) -> dict[Resource, float]:
        """Known capacities in the units of a snapshot: bytes/s, bytes and cores."""
        return {Resource(name): float(value) for name, value in self if value is not None}


class CapacitySettings(FileModel):
    """`[capacities]`: broker capacities."""

    default: CapacityTable = CapacityTable()
    """Of every broker, except for values in its own table."""
    brokers: dict[Annotated[int, Field(ge=0, lt=2**31)], CapacityTable] = {}
    """By broker id."""


def capacities_of(table: CapacitySettings, file: Path | None) -> Capacities | None:
    """Capacities from the table or the file; None where neither gives any.

    Raises
    ------
    ConfigError
        File and table are both given, or the file cannot be used.
    """
    tabled = table != CapacitySettings()
    if file is not None and tabled:
        raise ConfigError(
            f"both {file} and {TABLE} of the settings give broker capacities; remove one of them"
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
