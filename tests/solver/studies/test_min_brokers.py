"""The smallest number of brokers: the bound by counting, the plan that reaches it."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Broker, BrokerState, Snapshot
from model.snapshot.what_if import Scenario, suppose
from solver.problem.problem import compile_problem
from solver.studies.min_brokers import (
    Fewest,
    broker_lower_bound,
    fewest_brokers,
    too_large_to_share,
)
from tests.support.solver.exact_oracle import (
    Row,
    allowed_placements,
    broker,
    cluster,
    goals,
    remaining_violations,
)

pytestmark = pytest.mark.search

LIMITS = SolveLimits(work=2.0)


def brokers(count: int, capacity: float | None = None, racks: str = "") -> list[Broker]:
    names = list(racks) or [None] * count  # type: ignore[list-item]
    return [broker(i + 1, names[i], capacity=capacity) for i in range(count)]


def even(count: int, homes: Sequence[tuple[int, ...]], load: float = 1.0) -> list[Row]:
    return [Row(replicas=homes[i % len(homes)], load=(load, load)) for i in range(count)]


def found(snapshot: Snapshot, given_goals: Goals | None = None) -> Fewest:
    return fewest_brokers(snapshot, given_goals or goals(), LIMITS)


def test_the_capacity_limit_bounds_it() -> None:
    """20 of load at 85 % of 10 each."""
    state = cluster(brokers(4, 10.0), even(20, [(1,), (2,), (3,), (4,)]))
    answer = found(state).answer
    assert answer is not None
    assert (answer.bound, answer.fewest, answer.present) == (3, 3, 4)
    assert "of bytes in have to be carried" in answer.binding


def test_the_plan_drains_the_surplus_brokers() -> None:
    state = cluster(brokers(4, 10.0), even(20, [(1,), (2,), (3,), (3,), (4,)]))
    fewest = found(state)
    assert fewest.answer is not None
    assert len(fewest.answer.removed) == 1
    plan = fewest.result.best
    assert plan is not None
    assert not evaluate(fewest.snapshot, plan.goals, plan.moves).violations
    after = {b.id: b.replicas_after for b in plan.brokers}
    assert [b for b, replicas in after.items() if not replicas] == [*fewest.answer.removed]


def test_the_emptiest_brokers_go_first() -> None:
    state = cluster(brokers(3, 100.0), even(7, [(1,), (1,), (3,), (3,), (2,), (1,)]))
    answer = found(state).answer
    assert answer is not None
    assert answer.removed == (2, 3)


def test_an_answer_leaves_no_broker_over_its_limit() -> None:
    """18 of load on broker 1 alone, which may carry 8.5: it needs two others."""
    state = cluster(brokers(3, 10.0), even(9, [(1,)], load=2.0))
    fewest = found(state)
    assert fewest.answer is not None
    assert (fewest.answer.bound, fewest.answer.fewest) == (3, 3)
    assert "18 B/s of bytes in have to be carried, and a broker may carry 8 B/s" in (
        fewest.need.words
    )


def test_a_partition_that_no_broker_may_carry_is_named() -> None:
    state = cluster(brokers(3, 10.0), even(2, [(1,)], load=9.0))
    fewest = found(state)
    assert fewest.answer is None
    assert fewest.need.words == (
        "one partition alone carries 9 B/s of bytes in, and a broker may carry 8 B/s"
    )
    assert fewest.limited_by == ""


def test_the_replication_factor_bounds_it() -> None:
    state = cluster(brokers(4), even(3, [(1, 2, 3)]))
    answer = found(state).answer
    assert answer is not None
    assert (answer.bound, answer.fewest) == (3, 3)
    assert "no capacity is known" in answer.binding


def test_replicas_per_broker_bound_it() -> None:
    state = cluster(brokers(4), even(6, [(1,), (2,), (3,), (4,)]))
    answer = found(state, goals(replicas_per_broker=2)).answer
    assert answer is not None
    assert (answer.bound, answer.fewest) == (3, 3)


def test_partitions_too_large_to_share_a_broker_bound_it() -> None:
    """Three of 5 fit into 17 by their sum, but no two into 8.5."""
    state = cluster(brokers(4, 10.0), even(3, [(1,), (2,), (3,)], load=5.0))
    answer = found(state).answer
    assert answer is not None
    assert (answer.bound, answer.fewest) == (3, 3)
    assert "too large" in answer.binding


def test_every_rack_holds_its_share() -> None:
    """Two racks hold one replica of each: 12 of load in each, 8.5 a broker."""
    homes = [(1, 2), (3, 4), (5, 6)]
    state = cluster(brokers(6, 10.0, "ababab"), even(6, homes, load=2.0))
    answer = found(state).answer
    assert answer is not None
    assert (answer.bound, answer.fewest) == (4, 4)


def test_brokers_are_added_where_the_present_ones_do_not_suffice() -> None:
    state = cluster(brokers(2, 10.0), even(8, [(1,), (2,)], load=2.0))
    one = suppose(state, Scenario(remove=()))
    header = one.header.model_copy(update={"brokers": (*one.header.brokers[:1], draining(2, 10.0))})
    answer = found(Snapshot(header, one.partitions)).answer
    assert answer is not None
    assert (answer.present, answer.bound) == (1, 2)
    assert answer.fewest == len(answer.added) + 1


def draining(number: int, capacity: float) -> Broker:
    return broker(number, state=BrokerState.DRAINING, capacity=capacity)


def test_there_may_be_no_sufficient_number_of_brokers() -> None:
    """The pinned partitions fit on no one broker, however many join."""
    rows = even(4, [(1,), (1,), (2,), (2,)], load=5.0)
    pins = [{"topics": {"exact": ["orders"]}, "brokers": [1]}]
    fewest = found(cluster(brokers(2, 10.0), rows), goals(pins=pins))
    assert fewest.answer is None
    assert fewest.result.best is None


def test_an_empty_cluster_needs_one_broker() -> None:
    answer = found(cluster(brokers(3), [])).answer
    assert answer is not None
    assert (answer.bound, answer.fewest) == (1, 1)


@st.composite
def loaded(draw: st.DrawFn) -> Snapshot:
    """Up to 3 brokers and 3 partitions."""
    count = draw(st.integers(2, 3))
    rf = draw(st.integers(1, 2))
    racks = draw(st.sampled_from(["", "aba"[:count]]))
    places = list(itertools.permutations(range(1, count + 1), rf))
    rows = [
        Row(replicas=draw(st.sampled_from(places)), load=(load, load))
        for load in draw(st.lists(st.floats(0.5, 4.0), min_size=1, max_size=3))
    ]
    return cluster(brokers(count, draw(st.sampled_from([6.0, 12.0])), racks), rows)


@settings(max_examples=20, deadline=None)
@given(loaded())
def test_no_fewer_brokers_than_the_bound_suffice(state: Snapshot) -> None:
    """Every set of brokers is tried, with every placement."""
    bound = broker_lower_bound(compile_problem(state, goals())).brokers
    ids = [b.id for b in state.header.brokers]
    racks = len({b.rack for b in state.header.brokers})
    for remaining in itertools.chain.from_iterable(
        itertools.combinations(ids, size) for size in range(1, bound)
    ):
        if len({state.broker[b].rack for b in remaining}) < racks:
            continue
        removed = tuple(b for b in ids if b not in remaining)
        supposed = suppose(state, Scenario(remove=removed))
        for result in allowed_placements(supposed, goals()):
            assert remaining_violations(result)[1] > 0, "no broker is over a limit"


@given(st.lists(st.integers(1, 10), min_size=1, max_size=6))
def test_the_bound_of_large_items_is_never_over_the_least_bins(sizes: list[int]) -> None:
    bound = too_large_to_share(np.array(sizes, np.float64), 10.0)
    assert bound <= least_bins(sizes)
    assert bound >= sum(sizes) / 10.0 - 1e-6


def least_bins(sizes: list[int]) -> int:
    """Every assignment of items to bins of 10."""
    for bins in range(1, len(sizes) + 1):
        for where in itertools.product(range(bins), repeat=len(sizes)):
            filled = [0] * bins
            for size, at in zip(sizes, where, strict=True):
                filled[at] += size
            if max(filled) <= 10:
                return bins
    return pytest.fail("each item fits into a bin of its own")
