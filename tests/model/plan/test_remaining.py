"""Limits still exceeded after a plan, as text."""

from model.ids import BrokerId
from model.plan.remaining import OverLimit, remaining_text


def over(broker: int) -> OverLimit:
    return OverLimit(
        broker=BrokerId(broker), dimension="net_in", before=9e6, after=8e6, limit=4e6, capacity=5e6
    )


def test_every_broker_over_its_limit_is_named_with_the_figure() -> None:
    messages = list(remaining_text([over(b) for b in range(20)], ()))
    assert messages == [
        f"broker {b} stays over its limit of net_in: 8.00 MB/s, "
        "the limit is 4.00 MB/s (80.0 % of 5.00 MB/s)"
        for b in range(20)
    ]


def test_a_long_list_ends_with_the_count_of_the_rest() -> None:
    messages = list(remaining_text([over(b) for b in range(100)], ()))
    assert messages[-1] == "70 more limits stay exceeded"
    assert len(messages) == 31
