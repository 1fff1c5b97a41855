"""The lag of a run's topics over time."""

from control.loop.run_lag import followed
from model.ids import TopicName
from model.snapshot.consumer_lag import ConsumerLag


def lag(records: int, seconds: float | None) -> ConsumerLag:
    return ConsumerLag(records=records, seconds=seconds, topic=TopicName("orders"))


def test_the_first_and_the_largest_lag_of_a_run_are_kept() -> None:
    found = None
    for records, seconds in ((900, 0.5), (5000, 2.0), (100, None)):
        found = followed(found, "run-1", lag(records, seconds))
    assert found is not None
    assert (found.first_records, found.now.records, found.most_seconds) == (900, 100, 2.0)


def test_another_run_starts_over_and_a_missing_sample_keeps_the_last() -> None:
    first = followed(None, "run-1", lag(900, 3.0))
    assert followed(first, "run-1", None) is first
    second = followed(first, "run-2", lag(10, 1.0))
    assert second is not None
    assert (second.first_records, second.most_seconds) == (10, 1.0)
    assert followed(first, "run-2", None) is None
