"""Changes of load in the samples of a window: of brokers, and of their largest partitions.

What a broker takes in as leader is added up sample by sample; a partition counts for its
newest leader all along, so that a move of a leader is not a change of load.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from collector.change_points import agrees, began_before, last_levels, relative_error
from collector.spark.vectors import LEAST_SPAN_MS
from model.ids import BrokerId
from model.snapshot.steadiness import Steadiness

LARGE: Final = 0.2
"""Partitions with at least this share of what their broker takes in are watched, too."""
UNREAD: Final = 0.15
"""Least difference of what groups read from what arrives, as a share of that."""
LEAST_SAMPLES: Final = 4
"""Fewer samples show no change."""
MOST_POINTS: Final = 60
"""Rates per series that are looked at; of a longer window the newest ones."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_PARTITION_BITS: Final = 32
_COLUMNS: Final = (
    "partition",
    "broker",
    "latest",
    "earliest_local",
    "local_bytes",
    "groups",
    "group_offsets",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChanges:
    """When loads last changed; times in milliseconds, as in the samples."""

    steadiness: Steadiness | None
    """None with too few samples."""
    brokers: dict[int, int] = field(default_factory=dict)
    """First sample that is wholly of the present load, by leader."""
    partitions: dict[tuple[str, int], int] = field(default_factory=dict)
    """The same of large partitions that changed later than their broker."""

    def kept(self, samples: pa.Table) -> pa.Table:
        """Return the samples of the present load only, schema `SAMPLES` as given.

        A partition is judged by its newest leader.
        """
        if not self.brokers and not self.partitions:
            return samples
        rows = _Rows.of(samples)
        since = np.zeros(len(rows.leaders), np.int64)
        for broker, since_ms in self.brokers.items():
            since[rows.leaders == broker] = since_ms
        for (topic, number), since_ms in self.partitions.items():
            since[rows.find(topic, number)] = since_ms
        return samples.filter(pa.array(rows.time_ms >= since[rows.group]))

    def of(self, vectors: pa.Table) -> Steadiness | None:
        """How steady the loads in these vectors are, schema `VECTORS`; None as in `steadiness`.

        They are not measured while any stands on samples from before a change of its broker. Later
        changes of single partitions do not count, since there are many by mere noise.
        """
        if self.steadiness is None:
            return None
        since = np.zeros(len(vectors), np.int64)
        leader = vectors["broker"].to_numpy()
        for broker, since_ms in self.brokers.items():
            since[leader == broker] = since_ms
        for (topic, number), since_ms in self.partitions.items():
            named = pc.equal(vectors["topic"], topic)
            same = pc.and_(named, pc.equal(vectors["partition"], number)).to_numpy()
            since[same] = np.minimum(since[same], since_ms)
        began = pc.subtract(vectors["time_ms"], vectors["span_ms"]).to_numpy()
        return replace(self.steadiness, measured=bool((began >= since).all()))


NO_CHANGES: Final = LoadChanges(steadiness=None)
"""What is known without samples."""


def load_changes(samples: pa.Table) -> LoadChanges:
    """Find when the load of brokers and large partitions last changed.

    samples: of a window, schema `SAMPLES`, in any order. The result depends on nothing else.
    """
    rows = _Rows.of(samples)
    times = rows.time_ms
    if not len(times):
        return LoadChanges(steadiness=None)
    series = list(_series(rows))
    found = _Found(newest_ms=int(times.max()), since_ms=int(times.min()), unread=_unread(rows))
    for same in _by_length(series):
        rates = np.stack([one.rates for one in same])
        starts = last_levels(rates)
        agreeing = agrees(rates, starts)
        for one, start, agreed in zip(same, starts.tolist(), agreeing.tolist(), strict=True):
            found.add(one, start, agreed)
    return found.changes()


@dataclass(frozen=True, slots=True)
class _Series:
    """Rates of a broker as leader, or of one of its partitions."""

    broker: int
    partition: tuple[str, int] | None
    rates: Floats
    """(points,) bytes/s, oldest first."""
    times_ms: Ints
    """(points,) ends of the intervals."""

    def began_ms(self, start: int) -> int:
        """Start of the interval of the rate `start`."""
        step_ms = int(self.times_ms[1] - self.times_ms[0])
        return int(self.times_ms[start]) - step_ms


@dataclass(slots=True)
class _Found:
    newest_ms: int
    since_ms: int
    unread: frozenset[BrokerId]
    changed_ms: int | None = None
    agrees: bool = True
    noise: dict[BrokerId, float] = field(default_factory=dict)
    brokers: dict[int, int] = field(default_factory=dict)
    partitions: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, one: _Series, start: int, agreed: bool) -> None:
        if one.partition is None:
            self.agrees &= agreed
            error = relative_error(one.rates, start + bool(start))
            self.noise[BrokerId(one.broker)] = error
        if not start:
            return
        began_ms = one.began_ms(start)
        # The load may have changed within the first interval, so that is left out. Where samples
        # are seldom, it is kept if the change shows in the interval before.
        seldom = int(one.times_ms[start]) - began_ms >= LEAST_SPAN_MS
        whole = seldom and began_before(one.rates, start)
        first_ms = began_ms if whole else int(one.times_ms[start])
        if one.partition is None:
            self.brokers[one.broker] = first_ms
            self.changed_ms = max(self.changed_ms or 0, began_ms)
        else:
            self.partitions[one.partition] = first_ms

    def changes(self) -> LoadChanges:
        steadiness = Steadiness(
            newest_ms=self.newest_ms,
            since_ms=self.since_ms,
            changed_ms=self.changed_ms,
            agrees=self.agrees,
            noise=self.noise,
            unread=self.unread,
        )
        return LoadChanges(
            steadiness=steadiness if self.noise else None,
            brokers=self.brokers,
            partitions=self.partitions,
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Samples with a leader, by partition."""

    names: list[str]
    key: Ints
    """(partitions,) code of the topic and number of the partition."""
    group: Ints
    """(n,) position of the sample's partition in `key`."""
    time_ms: Ints
    """(n,) times, in the order of the samples."""
    order: Ints
    """(n,) rows by partition, then time."""
    leaders: Ints
    """(partitions,) newest leader."""
    columns: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, samples: pa.Table) -> "_Rows":
        topics = samples["topic"].combine_chunks().dictionary_encode()
        columns = {name: samples[name].to_numpy() for name in _COLUMNS}
        time_ms = samples["time_ms"].to_numpy()
        codes = topics.indices.to_numpy().astype(np.int64)
        keys = (codes << _PARTITION_BITS) + columns["partition"]
        # Samples come in order of time, so that both sorts find long runs.
        by_time = np.argsort(time_ms, kind="stable")
        order = by_time[np.argsort(keys[by_time], kind="stable")]
        ordered = keys[order]
        starts = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
        group = np.empty(len(keys), np.int64)
        group[order] = np.cumsum(starts) - 1
        last = np.append(np.flatnonzero(starts)[1:], len(ordered)) - 1 if len(ordered) else order
        return cls(
            topics.dictionary.to_pylist(),
            ordered[starts],
            group,
            time_ms,
            order,
            columns["broker"][order[last]].astype(np.int64),
            columns,
        )

    def find(self, topic: str, number: int) -> Ints:
        """Positions of a partition: one, or none."""
        key = (self.names.index(topic) << _PARTITION_BITS) + number
        return np.flatnonzero(self.key == key)


def _series(rows: _Rows) -> Iterator[_Series]:
    """Yield the series of each leader, and of its large partitions."""
    order, group = rows.order, rows.group[rows.order]
    times, latest = rows.time_ms[order], rows.columns["latest"][order]
    same = np.append(False, group[1:] == group[:-1])
    # A step back is a topic created again, or an unclean election.
    records = np.where(same, np.maximum(np.diff(latest, prepend=latest[:1]), 0), 0)
    brought = records * _record_bytes(rows)[group]
    leaders = rows.leaders[group]
    per_partition = np.bincount(group, brought, len(rows.leaders))
    once = ~(same & (np.diff(times, prepend=times[:1]) == 0))
    samples = np.bincount(group, once, len(rows.leaders)).astype(np.int64)
    for broker in np.unique(rows.leaders[rows.leaders >= 0]).tolist():
        own = leaders == broker
        led = np.flatnonzero(rows.leaders == broker)
        whole = _rates(broker, None, times[own], brought[own], int(samples[led].max()))
        if whole is None:
            continue
        yield whole
        least = LARGE * per_partition[led].sum()
        for at in led[(per_partition[led] >= least) & (per_partition[led] > 0)].tolist():
            name = rows.names[int(rows.key[at]) >> _PARTITION_BITS]
            number = int(rows.key[at]) & ((1 << _PARTITION_BITS) - 1)
            mine = group == at
            one = _rates(broker, (name, number), times[mine], brought[mine], int(samples[at]))
            if one is not None:
                yield one


def _unread(rows: _Rows) -> frozenset[BrokerId]:
    """Leaders whose groups do not read just what arrives; those without groups do."""
    order, group = rows.order, rows.group[rows.order]
    columns = {name: rows.columns[name][order] for name in _COLUMNS[2:]}
    same = np.append(False, (group[1:] == group[:-1]) & (np.diff(columns["groups"]) == 0))
    arrived = np.diff(columns["latest"], prepend=columns["latest"][:1])
    read = np.diff(columns["group_offsets"], prepend=columns["group_offsets"][:1])
    known = columns["group_offsets"] >= 0
    known &= np.append(False, known[:-1])
    counted = same & known & (columns["groups"] > 0) & (arrived >= 0) & (read >= 0)
    weight = _record_bytes(rows)[group] * counted
    # Ids may be large numbers.
    ids, position = np.unique(rows.leaders, return_inverse=True)
    leader = position[group]
    due = np.bincount(leader, arrived * columns["groups"] * weight, len(ids))
    done = np.bincount(leader, read * weight, len(ids))
    differ = np.abs(done - due) > UNREAD * np.maximum(due, done)
    return frozenset(map(BrokerId, ids[differ & (ids >= 0)].tolist()))


def _record_bytes(rows: _Rows) -> Floats:
    """(partitions,) bytes per record of the newest local log; else the mean of all, else 1."""
    last = np.zeros(len(rows.leaders), np.int64)
    last[rows.group[rows.order]] = rows.order
    size = rows.columns["local_bytes"][last].astype(np.float64)
    start = rows.columns["earliest_local"][last]
    count = (rows.columns["latest"][last] - start).astype(np.float64)
    known = (size > 0) & (start >= 0) & (count > 0)
    mean = float(size[known].sum() / count[known].sum()) if known.any() else 1.0
    found = np.full(len(size), mean)
    found[known] = size[known] / count[known]
    return found


def _rates(
    broker: int, partition: tuple[str, int] | None, times_ms: Ints, brought: Floats, samples: int
) -> _Series | None:
    """Rates at equal intervals, back from the newest sample; None with too few samples.

    samples: how many there are of the partition that has most; each partition may have been
    sampled at times of its own.
    """
    at_ms, position = np.unique(times_ms, return_inverse=True)
    if min(len(at_ms), samples) < LEAST_SAMPLES:
        return None
    summed = np.cumsum(np.bincount(position, brought, len(at_ms)))
    step_ms = max(1, round(int(at_ms[-1] - at_ms[0]) / (samples - 1)))
    points = min(MOST_POINTS, samples - 1)
    grid = at_ms[-1] - step_ms * np.arange(points, -1, -1)
    rates = np.diff(np.interp(grid, at_ms, summed)) * 1000 / step_ms
    return _Series(broker, partition, rates, grid[1:])


def _by_length(series: list[_Series]) -> list[list[_Series]]:
    by_length: dict[int, list[_Series]] = defaultdict(list)
    for one in series:
        by_length[len(one.rates)].append(one)
    return [by_length[length] for length in sorted(by_length) if length >= 2]
