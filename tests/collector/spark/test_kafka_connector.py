from pathlib import Path

from clients.connection import Connection
from collector.spark.kafka_connector import Connector

CLUSTER = Connection("a:1")


def test_nothing_is_fetched_for_a_cluster_without_topics_to_read(tmp_path: Path) -> None:
    connector = Connector(CLUSTER, tmp_path)
    assert not connector.at_hand
    assert connector.jars(needed=False) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_spark_that_includes_the_connector_gets_no_other(tmp_path: Path) -> None:
    connector = Connector(CLUSTER, tmp_path, loaded=True)
    assert connector.at_hand
    assert connector.jars(needed=True) == ()
    assert list(tmp_path.iterdir()) == []
