"""Spark's Kafka connector, fetched when a topic is first to be read."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clients.connection import Connection
from clients.driver_configs import spark_options
from clients.jvm.jars import SPARK_KAFKA_PINS, fetch, is_fetched, read_pins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Connector:
    """The Kafka connector of one Spark, and how it reaches one cluster."""

    def __init__(self, connection: Connection, cache_dir: Path, *, loaded: bool = False) -> None:
        """loaded: whether Spark already has the connector."""
        self._connection, self._cache_dir = connection, cache_dir
        self._pins = read_pins(SPARK_KAFKA_PINS, "spark-kafka")
        self._loaded = loaded
        self._fetching = threading.Lock()

    @property
    def at_hand(self) -> bool:
        """Whether the connector's jars are loaded or cached; none is fetched then."""
        return self._loaded or is_fetched(self._pins, self._cache_dir)

    def jars(self, *, needed: bool) -> tuple[Path, ...]:
        """Return the jars for a Spark that is to be started: cached ones cost it little.

        Missing ones are fetched if `needed`; raises DownloadFailed where that fails.
        """
        if self._loaded or not (needed or self.at_hand):
            return ()
        self._loaded = True
        return fetch(self._pins, self._cache_dir)

    def options(self, session: "SparkSession") -> Mapping[str, str]:
        """Return the options of a Spark reader of topics; adds missing jars first.

        Raises DownloadFailed.
        """
        options = spark_options(self._connection)
        with self._fetching:
            if not self._loaded:
                for jar in fetch(self._pins, self._cache_dir):
                    session.sql(f"ADD JAR '{jar.absolute().as_uri()}'")
                self._loaded = True
        return options
