"""Begin a history with what another tool kept."""

import datetime as dt
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from collector.history.compaction import ROWS_PER_FILE
from collector.history.history_settings import HistorySettings
from collector.history.hours import HOUR_MS
from collector.history.sample_store import hours_of
from collector.history.slots import DAY, first_hour
from collector.history.store import CompactedHistory, reason_of
from collector.metadata import ClusterState
from collector.reports.metric_topics import sight
from collector.spark.kafka_connector import Connector
from model.errors import PlimsollError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SampleStoreReader = Callable[["SparkSession"], "DataFrame"]
"""Records of Cruise Control's sample store, column `value`."""
_log = logging.getLogger("plimsoll.collector")


def past_of(
    cluster: ClusterState, connector: Connector | None, settings: HistorySettings
) -> SampleStoreReader | None:
    """Return a reader of Cruise Control's sample store; None without its topic.

    Calling the reader raises PlimsollError where the topic cannot be read.
    """
    topic = settings.sample_store
    if connector is None or sight(cluster, topic).topic_id is None:
        return None

    def records(session: "SparkSession") -> "DataFrame":
        options = {
            **connector.options(session),
            "subscribe": topic,
            "startingOffsets": "earliest",
            "failOnDataLoss": "false",
        }
        return session.read.format("kafka").options(**options).load().select("value")

    return records


def begin_with(
    past: SampleStoreReader, session: "SparkSession", store: CompactedHistory, first: str, end: str
) -> None:
    """Write the sample store's days from `first` up to `end`, exclusive, to the store.

    A sample store that cannot be read is reported in the log and left out.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        hours = hours_of(past(session), HOUR_MS * first_hour(first), HOUR_MS * first_hour(end))
        count = _write(hours, store)
    except (Py4JError, PySparkException) as exc:
        _log.warning(
            "Cruise Control's sample store cannot be read (%s). Give plimsoll's user "
            "the right READ on its topic.",
            reason_of(exc),
        )
    except PlimsollError as exc:
        _log.warning("Cruise Control's sample store cannot be read: %s", exc)
    else:
        _log.info("the history begins with %d days of Cruise Control's sample store", count)


def _write(hours: "DataFrame", store: CompactedHistory) -> int:
    """Write the hours day by day; return the number of days."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as sql

    dated = hours.withColumn("day", sql.floor(hours.hour / DAY))
    dated = dated.persist(StorageLevel.DISK_ONLY)
    try:
        counts = dated.groupBy("day").count().collect()
        for day, rows in sorted(counts):
            of_day = dated.filter(dated.day == day).drop("day")
            date = dt.date(1970, 1, 1) + dt.timedelta(days=day)
            store.write_day(date.isoformat(), of_day.coalesce(1 + rows // ROWS_PER_FILE))
    finally:
        dated.unpersist()
    return len(counts)
