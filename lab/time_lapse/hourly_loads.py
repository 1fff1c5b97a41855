"""Loads of every partition by the hour, as a history has them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lab.time_lapse.varying_loads import rate_columns
from model.snapshot.snapshot import Floats, Ints, Snapshot

HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class HourlyLoads:
    """Means over consecutive hours; the first and the last one hold before and after them."""

    loads: Floats
    rates: Ints
    """Columns that the hours replace."""
    begin_ms: int
    """Begin of the first hour, since the epoch."""
    hours: NDArray[np.float32]
    """(hours, n, rates)."""

    def at(self, time_ms: int) -> Floats:
        """As `VaryingLoads` has it."""
        hour = min(max(0, (time_ms - self.begin_ms) // HOUR_MS), len(self.hours) - 1)
        found = self.loads.copy()
        found[:, self.rates] = self.hours[hour]
        return found


def hourly_loads(snapshot: Snapshot, hours: pa.Table, begin_ms: int, count: int) -> HourlyLoads:
    """Arrange means by partition and hour for the cluster of a snapshot.

    hours: columns topic, partition, hour (since the epoch) and `RESOURCE_mean` of each resource;
    null or NaN where unknown. A partition without a figure keeps that of the hour before, else its
    first one, else the snapshot's load; sizes stay. Partitions that the snapshot does not have are
    left out. count: hours, at least one.
    """
    rates = rate_columns(snapshot)
    row, hour, inside = _cells(snapshot, hours, begin_ms // HOUR_MS, count)
    found = np.empty((count, len(snapshot), len(rates)), np.float32)
    for at, column in enumerate(rates):
        name = f"{snapshot.header.resources[column]}_mean"
        figures = hours[name].cast(pa.float32()).to_numpy(zero_copy_only=False)
        table = np.full((count, len(snapshot)), np.nan, np.float32)
        table[hour, row] = figures[inside]
        found[:, :, at] = _filled(table, snapshot.partitions.loads[:, column])
    return HourlyLoads(snapshot.partitions.loads, rates, begin_ms, found)


def _cells(
    snapshot: Snapshot, hours: pa.Table, first: int, count: int
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Row and hour of each row of the table, and (rows,) whether they are in the cells."""
    names = [str(topic.name) for topic in snapshot.header.topics]
    topics = hours["topic"].combine_chunks()
    if not pa.types.is_dictionary(topics.type):
        topics = topics.dictionary_encode()
    known = {name: at for at, name in enumerate(names)}
    topic = np.array([known.get(name, -1) for name in topics.dictionary.to_pylist()], np.int64)
    numbers = hours["partition"].to_numpy().astype(np.int64)
    columns = snapshot.partitions
    most = max(int(numbers.max(initial=0)), int(columns.partition.max(initial=0))) + 1
    own = columns.topic.astype(np.int64) * most + columns.partition
    order = np.argsort(own)
    asked = topic[topics.indices.to_numpy()] * most + numbers
    place = np.minimum(np.searchsorted(own[order], asked), len(own) - 1)
    row = order[place]
    hour = hours["hour"].to_numpy().astype(np.int64) - first
    inside = (own[row] == asked) & (asked >= 0) & (hour >= 0) & (hour < count)
    return row[inside], hour[inside], inside


def _filled(table: NDArray[np.float32], otherwise: Floats) -> NDArray[np.float32]:
    """The table, (hours, n), with the last known figure in place of NaN."""
    known = ~np.isnan(table)
    at = np.where(known, np.arange(len(table))[:, None], -1)
    last = np.maximum.accumulate(at, axis=0)
    first = np.where(known.any(axis=0), known.argmax(axis=0), 0)
    found = np.take_along_axis(table, np.where(last >= 0, last, first), axis=0)
    return np.where(np.isnan(found), otherwise.astype(np.float32), found)
