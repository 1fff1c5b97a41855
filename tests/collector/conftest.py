"""Fixtures of the collector's tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from clients.jvm.java import find_java
from collector.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A real Spark in this process, with two threads."""
    log_file = tmp_path_factory.mktemp("spark") / "spark.log"
    spark = Spark(find_java(), master="local[2]", log_file=log_file)
    try:
        yield spark.start()
    finally:
        spark.close()
