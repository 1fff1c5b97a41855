"""Topic mode: goals of a plan for some topics, and its moves."""

from pathlib import Path

import numpy as np
import pytest

from control.planning.topic_mode import goals_for, skew_changes
from model.errors import ConfigError
from model.evaluate import evaluate
from model.exchange.offline_snapshot import ClusterFiles, read_cluster
from model.goals.goals import Goal, Goals, SolveLimits
from model.names import Names
from model.snapshot.snapshot import Count, Resource, Snapshot
from solver.solve import solve
from tests.support.cluster_files import described, write_cluster_files

LIMITS = SolveLimits(work=5.0, seed=1)


@pytest.fixture
def loaded(tmp_path: Path) -> Snapshot:
    """8 partitions of audit and orders on brokers 1 to 3, and their loads."""
    write_cluster_files(tmp_path)
    return read_cluster(
        ClusterFiles(describe=tmp_path / "describe.txt", loads=tmp_path / "loads.csv")
    )


def spread(folder: Path, topics: dict[str, list[tuple[int, ...]]]) -> Snapshot:
    """Topics whose loads are not known."""
    text = "".join(described(name, places) for name, places in topics.items())
    (folder / "d.txt").write_text(text)
    return read_cluster(ClusterFiles(describe=folder / "d.txt"))


def test_every_other_topic_is_excluded(loaded: Snapshot) -> None:
    goals = goals_for(Goals(), loaded, ["orders"])
    assert goals.excludes("audit")
    assert not goals.excludes("orders")


def test_topics_excluded_by_goals_stay_excluded(loaded: Snapshot) -> None:
    names = Names(prefix=("au",), exact=("other",))
    goals = goals_for(Goals(excluded_topics=names), loaded, ["orders"])
    assert goals.excluded_topics.exact == ("audit", "other")
    assert goals.excluded_topics.prefix == ("au",)


def test_counts_are_balanced_besides_the_loads(loaded: Snapshot) -> None:
    goals = goals_for(Goals(), loaded, ["orders"])
    assert [g.resource for g in goals.balance] == [
        Resource.NET_IN,
        Resource.NET_OUT,
        Count.TOPIC_REPLICAS,
        Count.TOPIC_LEADERS,
    ]


def test_a_count_that_is_a_goal_keeps_its_weight(loaded: Snapshot) -> None:
    own = Goal(resource=Count.TOPIC_REPLICAS, weight=7.0)
    goals = goals_for(Goals(balance=(own,)), loaded, ["orders"])
    assert goals.balance[0] == own
    assert [g.resource for g in goals.balance[1:]] == [Count.TOPIC_LEADERS]


def test_an_unknown_topic_is_named_with_the_nearest(loaded: Snapshot) -> None:
    with pytest.raises(ConfigError, match="no topic 'order'; did you mean 'orders'"):
        goals_for(Goals(), loaded, ["order"])


@pytest.mark.parametrize("per_broker", [2, 10, 40])
def test_a_difference_of_two_is_worth_a_move(tmp_path: Path, per_broker: int) -> None:
    """Whatever the replica counts of brokers: one moves from broker 1 to broker 2."""
    uneven: list[tuple[int, ...]]
    uneven = [*[(1,)] * (per_broker + 1), *[(2,)] * (per_broker - 1)]
    even: list[tuple[int, ...]] = [(1,), (2,)] * 50
    state = spread(tmp_path, {"uneven": uneven, "even": even})
    goals = goals_for(Goals(), state, ["uneven"])
    result = solve(state, goals, LIMITS)
    assert result.best is not None
    (change,) = skew_changes(state, result.best, ["uneven"])
    assert [b.replicas for b in change.after.brokers] == [per_broker] * 2
    assert len(result.best.moves) == 1


def test_only_the_named_topics_move(loaded: Snapshot) -> None:
    goals = goals_for(Goals(), loaded, ["orders"])
    result = solve(loaded, goals, LIMITS)
    assert result.best is not None
    assert {m.topic for m in result.best.moves} == {"orders"}
    assert evaluate(loaded, goals, result.best.moves).violations == ()
    (change,) = skew_changes(loaded, result.best, ["orders", "orders"])
    assert change.after.brokers_skewed == 0 < change.before.brokers_skewed


def test_without_a_plan_the_spread_stays(loaded: Snapshot) -> None:
    (change,) = skew_changes(loaded, None, ["audit"])
    assert change.before == change.after
    assert np.sum([b.replicas for b in change.after.brokers]) == 2
