"""Topics deleted and recreated: which loads belong to which topic."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from collector.assemble import FRESH_MS
from collector.brokers.topic_recreation import TopicRecreations
from collector.metadata import ClusterState
from collector.spark.vectors import VECTORS
from tests.support.collector.sample_rows import START_MS, cluster, topic


def at(second: int, *topics: dict[str, Any]) -> ClusterState:
    return replace(cluster(*topics), taken_at_ms=START_MS + 1000 * second)


def vectors(*rows: tuple[str, int]) -> pa.Table:
    """Vectors of topics at seconds."""
    made = [{"topic": name, "time_ms": START_MS + 1000 * s} for name, s in rows]
    return pa.Table.from_pylist(made, schema=VECTORS)


def own_vectors(recreations: TopicRecreations, *rows: tuple[str, int]) -> list[tuple[str, int]]:
    result = recreations.own(vectors(*rows)).to_pylist()
    return [(v["topic"], (v["time_ms"] - START_MS) // 1000) for v in result]


OLD, OTHER = topic("orders", [[1]]), topic("other", [[1]])
NEW = {**OLD, "topic_id": "another"}


def test_topics_in_the_first_state_are_not_new() -> None:
    recreations = TopicRecreations()
    assert recreations.see(at(0, OLD, OTHER)) == frozenset()
    assert own_vectors(recreations, ("orders", -5)) == [("orders", -5)]


def test_a_topic_with_another_id_has_no_earlier_load() -> None:
    recreations = TopicRecreations()
    recreations.see(at(0, OLD, OTHER))
    assert recreations.see(at(5, NEW, OTHER)) == {"orders"}
    rows = (("orders", 4), ("orders", 5), ("other", 4))
    assert own_vectors(recreations, *rows) == [("orders", 5), ("other", 4)]


def test_a_topic_that_was_absent_has_no_earlier_load() -> None:
    recreations = TopicRecreations()
    for second, topics in ((0, (OLD,)), (5, ()), (9, (NEW,))):
        recreations.see(at(second, *topics))
    assert own_vectors(recreations, ("orders", 4), ("orders", 9)) == [("orders", 9)]


def test_a_recreation_is_forgotten_once_earlier_vectors_are_too_old_anyway() -> None:
    recreations = TopicRecreations()
    recreations.see(at(0, OLD))
    recreations.see(at(5, NEW))
    recreations.see(at(6 + FRESH_MS // 1000, NEW))
    assert recreations._since_ms == {}
