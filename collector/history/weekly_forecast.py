"""Forecasts by hour of the week and partition, kept in a file."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.history.slots import RATES, WEEK, Floats, Ints
from collector.history.weekly_profile import SUMS
from collector.parquet import read_whole, write_whole
from model.bounded import parse_json
from model.snapshot.forecast import LoadForecast
from model.snapshot.snapshot import Resource, Snapshot

COLUMNS: Final = (
    *("topic", "partition"),
    *(f"{q}_ahead" for q in RATES),
    *(f"{q}_{s}" for q in RATES for s in SUMS),
)
"""Of `WEEKS`, what a forecast needs."""
_FACTS: Final = ("method", "zone", "days", "newest_day", "held_back_days")
_META: Final = b"plimsoll"
_log = logging.getLogger("plimsoll.collector")


@dataclass(frozen=True)
class WeeklyForecast:
    """Forecast loads of each partition by hour of the week, and their accuracy."""

    table: pa.Table
    """`COLUMNS`, one row per partition, by topic and partition."""
    method: str
    zone: str
    days: int
    """Of history."""
    newest_day: str
    """Of them, `YYYY-MM-DD`."""
    held_back_days: int

    def write(self, path: Path) -> None:
        """Write the forecast to a file in one step, for the next start.

        Raises OSError if the file cannot be written.
        """
        facts = {name: getattr(self, name) for name in _FACTS}
        meta = {_META: json.dumps(facts).encode()}
        write_whole(self.table.replace_schema_metadata(meta), path)

    @cached_property
    def topics(self) -> list[str]:
        """Names of the topics with a forecast, sorted."""
        names: list[str] = pc.unique(self.table["topic"]).to_pylist()
        return names

    def accuracy(self, resources: Sequence[Resource]) -> LoadForecast:
        """Return how far backtests of these resources were off, as a share of the load.

        Shares are of all partitions together, to 4 digits; resources that are not forecast,
        or had no load in the backtest, are omitted. Partitions and slots are still empty.
        """
        known = [str(r) for r in resources if self.knows(r)]
        missed, as_now, carried = (
            {q: float(pc.sum(self.table[f"{q}_{s}"]).as_py() or 0) for q in known} for s in SUMS
        )
        some = [q for q in known if carried[q] > 0]
        return LoadForecast(
            method=self.method,
            time_zone=self.zone,
            days=self.days,
            held_back_days=self.held_back_days,
            missed={q: round(missed[q] / carried[q], 4) for q in some},
            missed_as_now={q: round(as_now[q] / carried[q], 4) for q in some},
            partitions=0,
            as_now=0,
        )

    def knows(self, resource: Resource) -> bool:
        """Whether history keeps this resource, so that it is forecast."""
        return str(resource) in RATES

    def by_topic(self, resource: Resource) -> Floats:
        """Return (topics, 168) the sum of the forecast loads of each topic's partitions.

        In the units of the resource; partitions without a forecast count as 0. Raises
        KeyError for a resource for which `knows` is False.
        """
        topic = self.table["topic"].combine_chunks().dictionary_encode()
        sums = np.zeros((len(self.topics), WEEK))
        loads = np.nan_to_num(self._matrices[resource][:-1].astype(np.float64))
        np.add.at(sums, topic.indices.to_numpy(), loads)
        return sums

    def rows(self, snapshot: Snapshot) -> Ints:
        """(n,) row of each of a snapshot's partitions; the number of rows for none."""
        names = [str(t.name) for t in snapshot.header.topics]
        columns = snapshot.partitions
        keys = zip(columns.topic.tolist(), columns.partition.tolist(), strict=True)
        none = len(self.table)
        return np.array([self._row_of.get((names[t], p), none) for t, p in keys], int)

    def loads(self, resource: Resource, rows: Ints, week: Sequence[int]) -> Floats:
        """Return (n, hours) the forecast loads, NaN where too little is known.

        rows: (n,) as `rows` returns them. week: hours of the week, 0 to 167. In the units of
        the resource; raises KeyError for one for which `knows` is False.
        """
        at = np.ix_(rows, np.array(week, np.int64))
        return self._matrices[resource][at].astype(np.float64)

    @cached_property
    def _row_of(self) -> dict[tuple[str, int], int]:
        topics, numbers = (self.table[c].to_pylist() for c in ("topic", "partition"))
        pairs = zip(topics, numbers, strict=True)
        return {pair: row for row, pair in enumerate(pairs)}

    @cached_property
    def _matrices(self) -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
        """(n + 1, 168) forecasts by quantity; the last row stands for unknown partitions."""
        found = {}
        for name in RATES:
            values = self.table[f"{name}_ahead"].combine_chunks().flatten().to_numpy()
            none = np.full(WEEK, np.nan, np.float32)
            found[name] = np.append(values, none).reshape(-1, WEEK)
        return found


def read_weekly_forecast(path: Path) -> WeeklyForecast | None:
    """Read a kept forecast; None if there is none or it cannot be used."""
    try:
        table = read_whole(path)
        facts = parse_json(table.schema.metadata[_META])
        return WeeklyForecast(
            table.select(COLUMNS).replace_schema_metadata(),
            **{name: facts[name] for name in _FACTS},
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as exc:
        _log.warning("the forecast %s is passed over: %s", path, exc)
        return None
