"""Samples and load vectors of a synthetic cluster, as plimsoll would measure them."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collector.samples import SAMPLES
from collector.spark.vectors import VECTORS, Window
from lab.synthetic.load_curves import DAY_MS, HOUR_MS, LoadCurves, Rhythm
from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.errors import ConfigError
from model.snapshot.snapshot import Floats, Ints, Snapshot, StorageKind

END_MS: Final = 1_699_963_200_000
"""End of the history, and time of the snapshot: Tuesday 2023-11-14, 12:00 UTC."""
WINDOW: Final = Window(window_ms=15_000)
RECORD_BYTES: Final = 1000
LEAST_STEP_MS: Final = 60_000
_MEASURES: Final = ("net_in", "net_out", "disk", "total_bytes")
HISTORY: Final = pa.schema(
    [
        VECTORS.field(name)
        for name in (
            *("topic", "partition", "time_ms", "broker", "samples", "span_ms"),
            *_MEASURES,
            *("in_measured", "out_measured"),
        )
    ]
)
"""The columns of `VECTORS` that the probe fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Options of a synthetic cluster and its history.

    Raises ConfigError if the combination is not possible.
    """

    shape: ClusterShape
    storage: StorageKind
    rhythm: Rhythm
    seed: int
    days: int = 14
    """Days of history; 0: none."""
    step_ms: int = HOUR_MS
    """Time between two vectors of the history, ms."""

    def __post_init__(self) -> None:
        if self.storage is StorageKind.SHARED and self.shape.rf > 1:
            raise ConfigError(
                f"{self.shape.rf} replicas are not possible: on shared storage a partition has one"
            )
        if not LEAST_STEP_MS <= self.step_ms <= DAY_MS:
            raise ConfigError(f"{self.step_ms / 1000:g} s is not a valid step; give 1m to 24h")


class SyntheticCluster:
    """A cluster at any time, as tables with a row per partition."""

    def __init__(self, order: Order) -> None:
        shape, seed = order.shape, order.seed
        name = ClusterName(
            cluster_id=f"synthetic-{shape.brokers}x{shape.partitions}-{seed}", taken_at_ms=END_MS
        )
        rng = np.random.default_rng([seed, shape.brokers, shape.partitions, shape.rf])
        self.mean: Snapshot = cluster(shape, order.storage, name, rng)
        """Snapshot with mean loads."""
        columns = self.mean.partitions
        self._curves = LoadCurves(columns.topic, order.rhythm, seed=seed, end_ms=END_MS)
        self._net_in, self._net_out = columns.loads[:, 0], columns.loads[:, 1]
        tiered = order.storage is StorageKind.TIERED
        self._local = columns.local_bytes if tiered else columns.size_bytes
        names = [str(t.name) for t in self.mean.header.topics]
        self._topic = pa.array(names).take(pa.array(columns.topic))

    def vectors(self, time_ms: int) -> pa.Table:
        """All load vectors at a time (ms since the epoch), in the schema `HISTORY`."""
        net_in, net_out = self._rates(time_ms)
        sizes = self._curves.sizes(time_ms)
        held = np.rint(sizes * self._local), np.rint(sizes * self._size)
        figures = dict(zip(_MEASURES, (net_in, net_out, *held), strict=True))
        return self._table(
            HISTORY,
            figures
            | {
                "time_ms": time_ms,
                "samples": WINDOW.window_ms // 1000,
                "span_ms": WINDOW.window_ms,
                "in_measured": True,
                "out_measured": True,
            },
        )

    def samples(self, time_ms: int) -> pa.Table:
        """Samples of the probe at a time shortly before the end; schema `SAMPLES`.

        Rates are those at the end.
        """
        net_in, net_out = self._rates(END_MS)
        left_s = (END_MS - time_ms) / 1000
        latest = _records(self._size) - _records(net_in * left_s)
        start = _records(self._size) - _records(self._local)
        fan_out = net_out / net_in
        return self._table(
            SAMPLES,
            {
                "time_ms": time_ms,
                "flags": 0,
                "groups": np.ceil(fan_out),
                "latest": latest,
                "earliest_local": start,
                "earliest": 0,
                "local_bytes": (latest - start) * RECORD_BYTES,
                "total_bytes": latest * RECORD_BYTES,
                "group_offsets": np.rint(fan_out * latest),
            },
        )

    @property
    def _size(self) -> Ints:
        return self.mean.partitions.size_bytes

    def _rates(self, time_ms: int) -> tuple[Floats, Floats]:
        """(n,) whole bytes/s from producers, and to consumers."""
        factors = self._curves.rates(time_ms)
        net_in = np.maximum(1.0, np.rint(factors * self._net_in))
        return net_in, np.rint(factors * self._net_out)

    def _table(self, schema: pa.Schema, columns: dict[str, Any]) -> pa.Table:
        """Table of columns that have one value for all rows, or one per row."""
        n = len(self.mean)
        known = columns | {
            "topic": self._topic,
            "partition": self.mean.partitions.partition,
            "broker": self.mean.partitions.leader,
        }
        arrays = [
            known[field.name]
            if field.name == "topic"
            else pa.array(
                np.broadcast_to(known[field.name], n).astype(field.type.to_pandas_dtype())
            )
            for field in schema
        ]
        return pa.table(arrays, schema=schema)


def _records(size: Any) -> Ints:
    """(n,) whole records in `size` bytes."""
    found: Ints = np.asarray(size // RECORD_BYTES, np.int64)
    return found
