"""The lag of consumer groups, from the offsets they have committed."""

import pyarrow as pa
import pytest

from collector.group_lag import consumer_lag
from collector.samples import SAMPLES
from model.ids import TopicName

ORDERS, CLICKS = TopicName("orders"), TopicName("clicks")


def samples(at_ms: int, *rows: tuple[str, int, int, int, int]) -> pa.Table:
    """Rows of topic, partition, groups, latest offset and summed commits."""
    filled = [
        {
            "topic": topic,
            "partition": partition,
            "time_ms": at_ms,
            "broker": 1,
            "flags": 0,
            "groups": groups,
            "latest": latest,
            "earliest_local": 0,
            "earliest": 0,
            "local_bytes": 0,
            "total_bytes": 0,
            "group_offsets": commits,
        }
        for topic, partition, groups, latest, commits in rows
    ]
    return pa.Table.from_pylist(filled, SAMPLES)


BEFORE = samples(
    0, ("orders", 0, 2, 1000, 1900), ("orders", 1, 1, 500, 500), ("clicks", 0, 1, 9, 0)
)
AFTER = samples(
    1000, ("clicks", 0, 1, 9, 0), ("orders", 1, 1, 600, 550), ("orders", 0, 2, 1100, 2000)
)


def test_records_of_all_groups_behind_the_latest_offsets_are_summed() -> None:
    lag = consumer_lag(BEFORE, AFTER, {ORDERS})
    assert lag is not None
    assert (lag.records, lag.topic) == (200 + 50, ORDERS)


def test_seconds_are_by_the_rate_at_which_records_arrive() -> None:
    lag = consumer_lag(BEFORE, AFTER, {ORDERS})
    assert lag is not None
    # Two groups read 100 records per second each of partition 0, one those of partition 1.
    assert lag.seconds == pytest.approx(250 / 300)


def test_without_arriving_records_there_are_no_seconds() -> None:
    lag = consumer_lag(BEFORE, AFTER, {CLICKS})
    assert lag is not None
    assert (lag.records, lag.seconds) == (9, None)


def test_the_topic_furthest_behind_is_named() -> None:
    busy = samples(1000, ("clicks", 0, 1, 10, 0), ("orders", 0, 2, 1100, 2000))
    before = samples(0, ("clicks", 0, 1, 9, 0), ("orders", 0, 2, 1000, 1900))
    lag = consumer_lag(before, busy, {ORDERS, CLICKS})
    assert lag is not None
    assert (lag.topic, lag.seconds) == (CLICKS, 10.0)


@pytest.mark.parametrize("groups", [0, -1], ids=["none has committed", "hidden"])
def test_topics_without_known_commits_have_no_lag(groups: int) -> None:
    assert consumer_lag(None, samples(0, ("orders", 0, groups, 100, groups)), {ORDERS}) is None


def test_a_first_sample_and_another_placement_give_records_alone() -> None:
    for before in (None, samples(0, ("orders", 7, 1, 5, 5))):
        lag = consumer_lag(before, AFTER, {ORDERS})
        assert lag is not None
        assert (lag.records, lag.seconds) == (250, None)
