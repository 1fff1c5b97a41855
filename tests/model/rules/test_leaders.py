"""Minimum leaders per broker, as the evaluator checks them."""

from model.evaluate import evaluate
from model.goals.goals import Goals
from model.snapshot.snapshot import BrokerState
from tests.support.model.clusters import brokers, snapshot

WANTED = Goals.model_validate(
    {"min_leaders": [{"topics": {"exact": ["orders"]}, "leaders": 2}]}, strict=False
)


def broken(state: dict[int, BrokerState], goals: Goals = WANTED) -> list[str]:
    found = evaluate(
        snapshot(brokers(3, states=state), [(1, 2), (2, 1), (1, 2), (1, 2)]), goals, ()
    )
    return [v.words for v in found.violations if v.rule == "minimum leaders"]


def test_each_broker_that_leads_too_few_is_named() -> None:
    assert broken({}) == [
        "broker 2 would lead 1 partitions of orders, fewer than the minimum of 2",
        "broker 3 would lead 0 partitions of orders, fewer than the minimum of 2",
    ]


def test_brokers_that_take_no_load_need_not_lead() -> None:
    assert len(broken({3: BrokerState.EXCLUDED})) == 1
    assert len(broken({3: BrokerState.DEAD, 2: BrokerState.DRAINING})) == 0


def test_the_first_entry_that_matches_a_topic_counts_and_may_name_brokers() -> None:
    first = {"topics": {"prefix": ["ord"]}, "brokers": [1]}
    goals = Goals.model_validate(
        {"min_leaders": [first, {"topics": {"exact": ["orders"]}}]}, strict=False
    )
    assert broken({}, goals) == []


def test_other_topics_have_no_minimum() -> None:
    goals = Goals.model_validate({"min_leaders": [{"topics": {"exact": ["x"]}}]}, strict=False)
    assert broken({}, goals) == []
