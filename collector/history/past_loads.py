"""Loads of past days by the hour, read back from the compacted history."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from clients.jvm.java import find_java
from collector.history.history_settings import HistorySettings
from collector.history.hours import HOUR_MS
from collector.history.retention import store_url
from collector.history.slots import RATES, first_hour
from collector.history.store import CompactedHistory
from collector.spark.deployment import SparkSite
from model.errors import ConfigError
from model.paths import path_part
from model.units import count_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: Final = ("topic", "partition", "hour", *(f"{q}_mean" for q in RATES))
"""Of the schema `HOURS`: what is simulated. Sizes are not."""


@dataclass(frozen=True, slots=True)
class PastLoads:
    """Mean loads by partition and hour over consecutive days, UTC."""

    days: tuple[str, ...]
    """`YYYY-MM-DD`, oldest first; at least one."""
    hours: pa.Table
    """`COLUMNS`, in no particular order; bytes/s, cores and requests/s. Topics are a dictionary."""

    @property
    def begin_ms(self) -> int:
        """Begin of the first day, milliseconds since the epoch."""
        return first_hour(self.days[0]) * HOUR_MS


def read_past_loads(
    site: SparkSite,
    settings: HistorySettings,
    *,
    state_dir: Path,
    cluster_id: str,
    days: int | None,
    log_file: Path,
) -> PastLoads:
    """Read a cluster's newest `days` with a Spark that runs meanwhile; None: all without a gap.

    log_file: where its Java writes.

    Raises ConfigError where the history has fewer days, or Spark cannot read the state folder;
    PlimsollError where Spark or the store cannot be used.
    """
    # PySpark costs half a second.
    from collector.spark.session import Spark

    folder = state_dir / "clusters" / path_part(cluster_id)
    spark = Spark(find_java(), master=site.master, properties=site.properties, log_file=log_file)
    try:
        if settings.url is None:
            site.require_samples(spark.master, state_dir, None)
        url = store_url(settings, folder, cluster_id)
        return past_loads_in(spark.start(), url, cluster_id, days)
    finally:
        spark.close()


def past_loads_in(
    session: "SparkSession", url: str, cluster_id: str, days: int | None
) -> PastLoads:
    """Read as `read_past_loads` does, in a running Spark session."""
    store = CompactedHistory(session, url)
    found = newest_days(store.days(), cluster_id, days)
    # Day by day, since Spark's Java holds what it hands over, in little memory.
    tables = [_encoded(store.read_days([day]).select(*COLUMNS).toArrow()) for day in found]
    return PastLoads(found, pa.concat_tables(tables).unify_dictionaries())


def _encoded(hours: pa.Table) -> pa.Table:
    """The table with each topic's name once."""
    at = hours.schema.get_field_index("topic")
    return hours.set_column(at, "topic", hours["topic"].dictionary_encode())


def newest_days(known: Sequence[str], cluster_id: str, count: int | None) -> tuple[str, ...]:
    """The newest days without a gap between them; None: as many as there are.

    known: `YYYY-MM-DD`, oldest first. Raises ConfigError where they are fewer than `count`.
    """
    if not known:
        raise ConfigError(
            f"the history of the cluster {cluster_id} has no complete day; observe it, as with "
            "plimsoll run, until a day in UTC has ended"
        )
    present, day = set(known), dt.date.fromisoformat(known[-1])
    found: list[str] = []
    while day.isoformat() in present and len(found) != count:
        found.insert(0, day.isoformat())
        day -= dt.timedelta(days=1)
    if count is not None and len(found) < count:
        raise ConfigError(
            f"the history of the cluster {cluster_id} has {count_text(len(found), 'day')} without "
            f"a gap, from {found[0]} to {found[-1]}, fewer than --days {count}; lower --days"
        )
    return tuple(found)
