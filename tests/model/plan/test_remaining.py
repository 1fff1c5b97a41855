"""What stays over a limit, in words."""

from model.ids import BrokerId
from model.plan.remaining import OverLimit, remaining_words


def over(broker: int) -> OverLimit:
    return OverLimit(
        broker=BrokerId(broker),
        dimension="net_in",
        before=9e6,
        after=8e6,
        limit=4e6,
        capacity=5e6,
    )


def test_every_broker_over_its_limit_is_named_with_the_figure() -> None:
    words = list(remaining_words([over(b) for b in range(20)], ()))
    assert words == [
        f"broker {b} stays over its limit of net_in: 8.00 MB/s, "
        "the limit is 4.00 MB/s (80.0 % of 5.00 MB/s)"
        for b in range(20)
    ]


def test_of_very_many_the_rest_is_counted() -> None:
    words = list(remaining_words([over(b) for b in range(100)], ()))
    assert words[-1] == "70 more limits stay exceeded"
    assert len(words) == 31
