"""Limits still exceeded after a plan, as text."""

import pytest

from model.ids import BrokerId
from model.plan.remaining import OverLimit, load_text, present_text, remaining_text, repaired_text


def over(broker: int) -> OverLimit:
    return OverLimit(
        broker=BrokerId(broker), dimension="net_in", before=9e6, after=8e6, limit=4e6, capacity=5e6
    )


def test_every_broker_over_its_limit_is_named_with_the_figure() -> None:
    messages = list(remaining_text([over(b) for b in range(20)], ()))
    assert messages == [
        f"broker {b} stays over its limit of bytes in: 8.00 MB/s, "
        "the limit is 4.00 MB/s (80 % of 5.00 MB/s)"
        for b in range(20)
    ]


@pytest.mark.parametrize(("brokers", "end"), [(100, "s stay"), (31, " stays")])
def test_a_long_list_ends_with_the_count_of_the_rest(brokers: int, end: str) -> None:
    messages = list(remaining_text([over(b) for b in range(brokers)], ()))
    assert messages[-1] == f"{brokers - 30} more limit{end} exceeded"
    assert len(messages) == 31


def test_long_lists_of_present_and_repaired_limits_end_with_a_count() -> None:
    many = [over(b) for b in range(32)]
    assert list(present_text(many, ()))[-1] == "2 more limits are exceeded"
    repaired = [each.model_copy(update={"after": 3e6}) for each in many]
    assert list(repaired_text(repaired, ()))[-1] == "2 more exceeded limits are repaired"


def test_large_counts_are_written_in_full() -> None:
    texts = [load_text("replicas", count) for count in (2.25, 9_999.0, 10_000.0, 11_108.0)]
    assert texts == ["2.25", "9999", "10,000", "11,108"]
