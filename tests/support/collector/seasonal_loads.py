"""Loads with daily and weekly cycles and noise, as vectors and as hours."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.history.hours import HOURS, QUANTITIES
from collector.spark.vectors import VECTORS

MONDAY = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
FIRST_HOUR = int(MONDAY.timestamp()) // 3600
Partition = tuple[str, int]


def daily(hours: int, *, peak: int, growth: float = 0.0, first: int = 0) -> Any:
    """(hours,) from 1 to 3 with the most at the hour `peak`, growing by the day."""
    hour = np.arange(first, first + hours)
    cycle = 2 + np.cos(2 * np.pi * (hour % 24 - peak) / 24)
    return cycle * (1 + growth) ** (hour // 24)


def vectors_of(
    partitions: Sequence[Partition], times_ms: Sequence[int], net_in: NDArray[Any]
) -> pa.Table:
    """Schema `VECTORS`, net_in: (partitions, times)."""
    rows = [
        dict.fromkeys(VECTORS.names)
        | {"topic": topic, "partition": number, "time_ms": time_ms, "broker": 1}
        | {"samples": 16, "span_ms": 15_000, "net_in": float(net_in[p, t])}
        | {"net_out": 2 * float(net_in[p, t]), "disk": 1e9, "total_bytes": 1e9}
        | {"in_measured": True, "out_measured": True}
        for p, (topic, number) in enumerate(partitions)
        for t, time_ms in enumerate(times_ms)
    ]
    return pa.Table.from_pylist(rows, schema=VECTORS)


def hours_of(partitions: Sequence[Partition], net_in: NDArray[Any]) -> pa.Table:
    """Schema `HOURS` from Monday on, ten vectors an hour, net_in: (partitions, h).

    NaN: no observation.
    """
    n, h = net_in.shape
    column = {
        "topic": np.repeat([topic for topic, _ in partitions], h),
        "partition": np.repeat([number for _, number in partitions], h),
        "hour": np.tile(FIRST_HOUR + np.arange(h), n),
    }
    values = net_in.ravel()
    for quantity in QUANTITIES:
        known = values if quantity in ("net_in", "net_out") else np.full(n * h, np.nan)
        factors = (("mean", 1.0), ("p95", 1.2), ("max", 1.5))
        column |= {f"{quantity}_{s}": known * factor for s, factor in factors}
        column[f"{quantity}_samples"] = np.where(np.isnan(known), 0, 10)
    table = pa.table([pa.array(column[f.name], f.type) for f in HOURS], schema=HOURS)
    return table.filter(pa.array(~np.isnan(values)))


def same(left: pa.Table, right: pa.Table) -> bool:
    """Whether all figures are equal; NaN is equal to itself."""
    return repr(left.to_pydict()) == repr(right.to_pydict())
