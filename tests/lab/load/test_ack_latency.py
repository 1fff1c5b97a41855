"""Which delays count as a stall of the producer."""

import pytest

from lab.load.ack_latency import AckStall, PartitionGaps


def test_a_gap_between_acknowledgements_is_a_stall_while_records_wait() -> None:
    gaps = PartitionGaps()
    gaps.sent(10.0)
    gaps.sent(10.0)
    gaps.acknowledged(10.1)
    gaps.acknowledged(10.9)
    assert gaps.take(11.0) == pytest.approx((10.1, 0.8))


def test_a_partition_with_nothing_to_send_does_not_stall() -> None:
    gaps = PartitionGaps()
    gaps.sent(10.0)
    gaps.acknowledged(10.01)
    gaps.sent(70.0)
    gaps.acknowledged(70.01)
    assert gaps.take(80.0) is None


def test_a_continuing_stall_is_reported_as_it_grows() -> None:
    gaps = PartitionGaps()
    gaps.sent(10.0)
    assert gaps.take(10.5) == (10.0, 0.5)
    assert gaps.take(13.0) == (10.0, 3.0)


def test_a_stall_is_reported_once() -> None:
    gaps = PartitionGaps()
    gaps.sent(10.0)
    gaps.acknowledged(11.0)
    assert gaps.take(11.0) is not None
    assert gaps.take(11.0) is None


def test_a_record_given_up_no_longer_waits() -> None:
    gaps = PartitionGaps()
    gaps.sent(10.0)
    gaps.gave_up()
    assert gaps.take(20.0) is None


def test_the_end_of_a_stall_is_in_milliseconds() -> None:
    assert AckStall(partition=0, started_at_ms=1000, duration_s=0.25).ended_at_ms == 1250
