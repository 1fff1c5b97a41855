"""A topic's spread and a plan's figures as exact text."""

import pytest

from control.cli.output_types import SkewAnswer
from control.render.plan_text import skew_text
from control.render.text import load_text
from model.snapshot.topic_skew import topic_skew
from tests.support.model.clusters import TOPIC, brokers, move, snapshot

STATE = snapshot(brokers(3), [(1, 2), (1, 2), (2, 1), (1, 3)])
AFTER = topic_skew(STATE, TOPIC, [move(0, (1, 2), (3, 2))])


def test_the_spread_is_shown_now_and_after() -> None:
    assert skew_text(topic_skew(STATE, TOPIC), AFTER) == (
        "topic orders, 4 partitions: the optimum is 2 to 3 replicas and 1 to 2 leaders "
        "per broker\n"
        "brokers skewed 33.3 % -> 0.0 %, leaders skewed 33.3 % -> 0.0 %, "
        "spread 100.0 % -> 100.0 %, preferred leaders 100.0 % -> 100.0 %\n"
        "\n"
        "broker  replicas now  after  leaders now  after\n"
        "     1      4 skewed      3     3 skewed      2\n"
        "     2             3      3            1      1\n"
        "     3             1      2            0      1\n"
    )


def test_programs_get_the_same_figures() -> None:
    answer = SkewAnswer.of(before=topic_skew(STATE, TOPIC), after=AFTER)
    after = answer.model_dump(mode="json")["after"]
    assert after["brokers"][0] == {
        "id": 1,
        "replicas": 3,
        "leaders": 2,
        "skewed": False,
        "leader_skewed": False,
    }
    assert (after["optimum"], after["leader_optimum"]) == ([2, 3], [1, 2])
    assert (after["partitions"], after["spread"]) == (4, 1.0)


@pytest.mark.parametrize(
    ("dimension", "message"),
    [
        ("net_in", "1.50 MB/s"),
        ("net_out@monday 9h", "1.50 MB/s"),
        ("leader_net_in", "1.50 MB/s"),
        ("disk", "1.50 MB"),
        ("replicas", "1,500,000"),
    ],
)
def test_a_figure_has_the_unit_of_its_dimension(dimension: str, message: str) -> None:
    assert load_text(dimension, 1_500_000.0) == message
