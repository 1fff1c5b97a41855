"""Compact history and renew the forecast, without delaying the stream."""

import datetime as dt
import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from collector.history.backfill import SampleStoreReader, begin_with
from collector.history.compaction import compact
from collector.history.forecast_slots import SlotForecaster
from collector.history.forecasters import METHOD, held_back
from collector.history.history_settings import HistorySettings, Horizon
from collector.history.slots import DAY, WEEK, Calendar, first_hour
from collector.history.store import CompactedHistory, spark_type
from collector.history.weekly_forecast import COLUMNS, WeeklyForecast
from collector.history.weekly_profile import WEEKS, week_of
from collector.spark.arrow_transfer import whole
from model.errors import PlimsollError
from model.paths import path_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATE_S: Final = 300
"""A day is compacted this long after its end, when its last batches are there."""
HOUR_S: Final = 3600
ROWS_PER_TASK: Final = 1_000_000
_POOL: Final = "history"
_log = logging.getLogger("plimsoll.collector")


class HistoryKeeper:
    """Compacts finished days, deletes old ones, and renews the forecast.

    folder: the cluster's, with its raw days in `history`.
    """

    def __init__(
        self,
        settings: HistorySettings,
        folder: Path,
        cluster_id: str,
        clock: Callable[[], float] = time.time,
        past: SampleStoreReader | None = None,
    ) -> None:
        """past: reads earlier hours, with which a store without days begins."""
        self._settings, self._folder, self._clock = settings, folder, clock
        self._past = past
        self._raw = folder / "history"
        self._url = store_url(settings, folder, cluster_id)

    def run(self, session: "SparkSession", closing: threading.Event, ahead: SlotForecaster) -> None:
        """Renew history and forecast once an hour until `closing` is set.

        A failure is reported in the log and retried after an hour.
        """
        # So that a batch of the stream does not wait for all of its tasks.
        session.sparkContext.setLocalProperty("spark.scheduler.pool", _POOL)
        while not closing.is_set():
            try:
                forecast = self.renew(session, ahead.forecast)
                if forecast is not None:
                    ahead.learn(forecast, self._folder)
            except PlimsollError as exc:
                if not closing.is_set():
                    _log.warning("%s It is tried again in an hour.", exc)
            closing.wait(HOUR_S - self._clock() % HOUR_S + LATE_S)

    def renew(self, session: "SparkSession", known: WeeklyForecast | None) -> WeeklyForecast | None:
        """Compact finished days, delete old ones, and renew the forecast if due.

        Returns None if `known` is still the latest forecast. Raises PlimsollError where
        the store cannot be used.
        """
        store = CompactedHistory(session, self._url)
        over = dt.datetime.fromtimestamp(self._clock() - LATE_S, dt.UTC).date()
        oldest = (over - dt.timedelta(weeks=self._settings.weeks)).isoformat()
        days = store.days()
        if not days and self._past is not None:
            begin_with(self._past, session, store, oldest, over.isoformat())
            days = store.days()
        for folder in sorted(self._raw.glob("date=*")):
            day = folder.name.removeprefix("date=")
            if day not in days and day < over.isoformat():
                compact(session, folder, store)
        days = store.days()
        self._forget_raw(days, over)
        if days and days[0] < oldest:
            store.prune(oldest)
        days = [day for day in days if day >= oldest]
        zone = self._settings.time_zone
        if self._settings.horizon is Horizon.OFF or not days:
            return None
        made_of = (known.newest_day, known.days, known.zone) if known is not None else None
        if made_of == (days[-1], len(days), zone):
            return None
        return forecast_of(store, session, days, zone)

    def _forget_raw(self, days: Sequence[str], over: dt.date) -> None:
        oldest = (over - dt.timedelta(days=self._settings.raw_days)).isoformat()
        for day in days:
            folder = self._raw / f"date={day}"
            if day < oldest and folder.exists():
                shutil.rmtree(folder, ignore_errors=True)


def store_url(settings: HistorySettings, folder: Path, cluster_id: str) -> str:
    """URL of a cluster's compacted days. folder: the cluster's."""
    if settings.url is None:
        return (folder / "hours").absolute().as_uri()
    return f"{url_of(settings.url)}/{path_part(cluster_id)}"


def url_of(place: str) -> str:
    """Return a folder or URL as a URL for Spark, without a trailing slash."""
    is_url = re.match(r"[a-z][a-z0-9]+:", place) is not None
    return (place if is_url else Path(place).absolute().as_uri()).rstrip("/")


def forecast_of(
    store: CompactedHistory, session: "SparkSession", days: Sequence[str], zone: str
) -> WeeklyForecast:
    """Compute weekly profiles of these days with Spark, and return their forecast.

    days: `YYYY-MM-DD`, oldest first. zone: IANA name of the time zone.
    """
    begin, end = first_hour(days[0]), first_hour(days[-1]) + DAY
    calendar = Calendar.of(begin, end - begin, ZoneInfo(zone))
    ahead = Calendar.of(end, WEEK, ZoneInfo(zone))
    hours = store.read_days(days)
    tasks = 1 + hours.count() // ROWS_PER_TASK
    weeks = hours.repartition(tasks, "topic", "partition").mapInArrow(
        whole(lambda table: week_of(table, calendar, ahead)), spark_type(WEEKS)
    )
    store.write_weeks(weeks)
    table = store.read_weeks(COLUMNS).select(COLUMNS)
    return WeeklyForecast(
        table.sort_by([("topic", "ascending"), ("partition", "ascending")]),
        method=METHOD,
        zone=zone,
        days=len(days),
        newest_day=days[-1],
        held_back_days=held_back(end - begin),
    )
