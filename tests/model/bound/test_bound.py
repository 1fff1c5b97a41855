"""The bound by prices: never above the best plan, tight at the right prices."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.bound.bound import Dual, price_bound
from model.bound.cheapest import cheapest_placements
from model.bound.rack_caps import RackCaps
from model.evaluate import counted_dimensions, evaluate, evaluate_proposal, planned_price
from model.goals.goals import Budgets, Goal, Goals, ObjectiveKind, RackRule, Stay
from model.ids import BrokerId, TopicName
from model.names import Names
from model.plan.proposal import Proposal
from model.snapshot.snapshot import BrokerState, Count, RecentMove, Snapshot
from tests.support.model.clusters import (
    NO_FLOOR,
    TAKEN_AT_MS,
    TOPIC,
    brokers,
    change,
    propose,
    snapshot,
)
from tests.support.model.placement_oracle import (
    is_present,
    least_objective,
    priced_clusters,
    row_changes,
)

pytestmark = pytest.mark.search


@settings(deadline=None, max_examples=30)
@given(case=priced_clusters(rows=2, most=3))
def test_no_allowed_plan_is_better_than_the_bound(case: tuple) -> None:
    state, goals, prices = case
    best = least_objective(state, goals)
    if best is not None:
        assert price_bound(state, goals, prices) <= best.objective + 1e-12


@settings(deadline=None)
@given(data=st.data())
def test_cheapest_placements_are_the_cheapest_of_all_placements(data: st.DataObject) -> None:
    """Against every set and leader, with any racks and caps."""
    count, rf = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    racks = data.draw(st.integers(1, count))
    rack = data.draw(st.lists(st.integers(0, racks - 1), min_size=count, max_size=count))
    caps = data.draw(st.lists(st.integers(0, 3), min_size=racks, max_size=racks))
    price = st.integers(-9, 9).map(float) | st.just(np.inf)
    follow = data.draw(st.lists(price, min_size=count, max_size=count))
    extra = data.draw(st.lists(price, min_size=count, max_size=count))
    follow = [np.inf if caps[r] == 0 else f for r, f in zip(rack, follow, strict=True)]
    lead = [f + e for f, e in zip(follow, extra, strict=True)]
    best = np.inf
    for chosen in itertools.combinations(range(count), rf):
        if all(sum(rack[b] == r for b in chosen) <= caps[r] for r in range(racks)):
            whole = sum(follow[b] for b in chosen)
            best = min([best, *(whole + extra[b] for b in chosen)])
    caps_of = RackCaps(rack=np.array(rack), caps=np.array(caps), may_lead=np.ones(count, bool))
    result = cheapest_placements(np.array([follow]), np.array([lead]), rf, caps_of)
    assert result.tolist() == [best]


def lagrangians(
    state: Snapshot, goals: Goals, prices: dict[BrokerId, dict[str, float]]
) -> list[float]:
    """Priced loads and paid moves of every allowed placement of the only row."""
    result = []
    for chosen in row_changes(state, 0):
        changes = () if is_present(state, chosen) else (chosen,)
        evaluation = evaluate_proposal(Proposal(state, goals, changes))
        if not evaluation.violations:
            priced = sum(
                prices[b][key] * (1 + deviation)
                for key, by_broker in evaluation.deviations.items()
                if any(g.resource == key and g.weight for g in goals.balance)
                for b, deviation in by_broker.items()
            )
            result.append(priced + evaluation.prices)
    return result


@settings(deadline=None, max_examples=100)
@given(case=priced_clusters(rows=1))
def test_the_cost_of_a_row_is_that_of_its_cheapest_placement(case: tuple) -> None:
    """At least; exactly where the rack rule is a cap for each rack.

    The bound does not keep leaders from returning to brokers that they left.
    """
    state, goals, prices = case
    recent = [m.model_copy(update={"leader_left": None}) for m in state.header.recent_moves]
    header = state.header.model_copy(update={"recent_moves": tuple(recent)})
    returning = replace(state, header=header)
    # In range for both objectives, so that no price is cut.
    goals = goals.model_copy(update={"excess_price": 1e9})
    proposal = Proposal(state, goals, ())
    counted = counted_dimensions(proposal)
    plain = tuple(g for g in counted if g.key in evaluate(state, goals, []).deviations)
    if not plain:
        return
    price = planned_price(proposal, counted)
    dual = Dual(proposal=proposal, dimensions=plain, price=price, prices=prices)
    allowed = lagrangians(state, goals, prices)
    if allowed:
        (cost,) = dual.rows.costs.tolist()
        assert cost <= min(allowed) + 1e-9
        if goals.rack_rule is RackRule.OFF or len(state.replicas(0)) == 1:
            least = min(lagrangians(returning, goals, prices))
            assert cost == pytest.approx(least, abs=1e-9)


def skewed() -> Snapshot:
    return snapshot(brokers(3), [(1,)] * 5 + [(2,)] * 2 + [(3,)] * 2)


@pytest.mark.parametrize(
    "others",
    [
        {"excluded_topics": Names(prefix=("",))},
        {"stay": (Stay(topic=TopicName("orders"), partitions=tuple(range(9))),)},
        {"move_price": 100.0},
        {"excluded_topics": Names(prefix=("",)), "objective": ObjectiveKind.BAND},
    ],
)
def test_if_no_move_pays_off_the_bound_is_the_present_objective(others: dict) -> None:
    """F's own slope as prices."""
    state, goals = skewed(), NO_FLOOR.model_copy(update=others)
    evaluation = evaluate(state, goals, [])
    prices: dict[BrokerId, dict[str, float]] = {b: {} for b in state.broker}
    for key, by_broker in evaluation.deviations.items():
        for broker, v in by_broker.items():
            slope = 2 * v
            if goals.objective is ObjectiveKind.BAND:
                slope = np.sign(v) * goals.excess_price if abs(v) > 0.1 else 0.0
            prices[broker][key] = slope
    assert evaluation.objective > 0.1
    assert price_bound(state, goals, prices) == pytest.approx(evaluation.objective, rel=1e-8)
    assert price_bound(state, goals, prices) <= evaluation.objective


def test_a_plan_is_proved_at_the_right_prices() -> None:
    """Many small rows: the remaining gap is a small part of a move's cost."""
    state = snapshot(brokers(2), [(1,)] * 150 + [(2,)] * 50)
    goals = NO_FLOOR.model_copy(update={"move_price": 0.004})
    # One row moves four squared deviations by 0.01 and costs 1.05 prices: moves pay
    # until 4 x 2 v x 0.01 = 0.0042.
    v = 0.0525
    evaluation = evaluate_proposal(propose(state, *(change(i, 2) for i in range(45)), goals=goals))
    prices = {
        BrokerId(b): dict.fromkeys(("net_in", "net_out"), sign * 2 * v)
        for b, sign in ((1, 1), (2, -1))
    }
    bound = price_bound(state, goals, prices)
    assert evaluation.objective - 0.0001 < bound <= evaluation.objective


def test_prices_that_cannot_count_are_omitted() -> None:
    """Prices of unknown dimensions, of draining brokers, and NaN."""
    state = snapshot(brokers(3, states={3: BrokerState.DRAINING}), [(1,), (1,), (2,), (3,)])
    odd = {
        BrokerId(1): {"net_in": float("nan"), "net_out": 1e300, "disk": 5.0},
        BrokerId(3): {"net_in": -7.0},
        BrokerId(9): {"net_in": 1.0},
    }
    assert price_bound(state, NO_FLOOR, odd) == price_bound(state, NO_FLOOR, {})


def test_a_bound_is_never_negative() -> None:
    prices = {BrokerId(1): {"net_in": 1e9}, BrokerId(2): {"net_in": -1e9}}
    assert price_bound(skewed(), NO_FLOOR, prices) == 0.0


def test_an_empty_cluster_has_the_bound_zero() -> None:
    assert price_bound(snapshot((), []), NO_FLOOR, {}) == 0.0


@pytest.mark.parametrize("goals", [NO_FLOOR, Goals(balance=(Goal(resource=Count.TOPIC_REPLICAS),))])
def test_forced_moves_are_counted_where_no_load_is(goals: Goals) -> None:
    """Nothing, or topics alone, is balanced; two replicas must leave a broker that drains."""
    members = brokers(3, states={3: BrokerState.DRAINING})
    state = snapshot(members, [(1,), (2,), (3,), (3,)], [(0.0, 0.0)] * 4)
    best = least_objective(state, goals)
    assert best is not None
    assert best.objective > 0
    assert price_bound(state, goals, {}) == pytest.approx(best.objective)


def test_the_price_of_new_leaders_instead_of_demoted_ones_is_counted() -> None:
    members = brokers(3, states={3: BrokerState.DEMOTED})
    state = snapshot(members, [(3, 1), (3, 2), (1, 2)], [(0.0, 0.0)] * 3)
    best = least_objective(state, NO_FLOOR)
    assert best is not None
    assert best.objective > 0
    assert price_bound(state, NO_FLOOR, {}) == pytest.approx(best.objective)


def test_topics_add_the_imbalance_forced_by_fixed_partitions() -> None:
    """Of five replicas on two brokers the four in cooldown stay on broker 1."""
    recent = [RecentMove(topic=TOPIC, partition=i, left=(), at_ms=TAKEN_AT_MS) for i in range(4)]
    state = snapshot(brokers(2), [(1,)] * 5, recent=recent)
    for measure in (Count.TOPIC_REPLICAS, Count.TOPIC_LEADERS):
        goals = Goals(balance=(Goal(resource=measure),))
        assert price_bound(state, goals, {}) == pytest.approx(2 * (1.5 / 2.5) ** 2)


def test_topics_add_the_imbalance_forced_by_integrality() -> None:
    """Three replicas on two brokers: 2 and 1 against the average 1.5."""
    goals = Goals(balance=(Goal(resource=Count.TOPIC_REPLICAS, weight=3.0),))
    state = snapshot(brokers(2), [(1,)] * 3)
    assert price_bound(state, goals, {}) == pytest.approx(3 * 2 * (0.5 / 1.5) ** 2)


@settings(deadline=None, max_examples=60)
@given(
    case=priced_clusters(rows=2, most=3),
    most=st.lists(st.none() | st.integers(0, 2), min_size=3, max_size=3),
    prices=st.lists(st.sampled_from([0.0, 0.01, 0.3, 5.0]), min_size=3, max_size=3),
)
def test_no_plan_within_the_budgets_is_better_than_their_bound(
    case: tuple, most: list[int | None], prices: list[float]
) -> None:
    state, goals, of_deviation = case
    names = ("replica_moves", "bytes", "leader_changes")
    budgets = Budgets(**{name: k for name, k in zip(names, most, strict=True) if k is not None})
    goals = goals.model_copy(update={"budgets": budgets})
    of_budgets = dict(zip(names, prices, strict=True))
    best = least_objective(state, goals)
    if best is not None:
        bound = price_bound(state, goals, of_deviation, (), of_budgets)
        assert bound <= best.objective + 1e-12


def test_a_price_of_a_budget_raises_the_bound_up_to_the_best_plan() -> None:
    """Of four equal rows on one of two brokers, one may move: a squared deviation of 1/2."""
    state = snapshot(brokers(2), [(1,)] * 4)
    budgets = Budgets(replica_moves=1)
    goals = NO_FLOOR.model_copy(update={"budgets": budgets, "move_price": 0.01})
    best = least_objective(state, goals)
    assert best is not None
    # Two dimensions on two brokers; one more move lowers each deviation from 1/2 to 0.
    prices = {BrokerId(1): dict.fromkeys(("net_in", "net_out"), 1.0)}
    prices[BrokerId(2)] = dict.fromkeys(("net_in", "net_out"), -1.0)
    moved = 2.0 * 2 * 0.5 - 0.01 * (1 + goals.leader_price_share)
    bound = price_bound(state, goals, prices, (), {"replica_moves": moved})
    assert price_bound(state, goals, prices) < 0.1 * best.objective
    assert 0.99 * best.objective < bound <= best.objective


@pytest.mark.parametrize(
    "odd",
    [
        {"replica_moves": -1.0},
        {"replica_moves": float("nan")},
        {"replica_moves": float("inf")},
        {"replica_moves": 1e300},
        {"leader_changes": 1.0},
        {"partitions": 1.0},
        {"nothing": 1.0},
    ],
    ids=str,
)
def test_prices_of_budgets_that_cannot_count_are_omitted(odd: dict[str, float]) -> None:
    """Below 0, not finite, of a budget without a limit, and of what has no price."""
    state = skewed()
    budgets = Budgets(replica_moves=1, partitions=2)
    goals = NO_FLOOR.model_copy(update={"budgets": budgets})
    prices = {BrokerId(1): {"net_in": 0.5}, BrokerId(2): {"net_in": -0.5}}
    plain = price_bound(state, goals, prices)
    assert price_bound(state, goals, prices, (), odd) == plain


def test_charges_that_no_row_pays_leave_the_bound_as_it_is() -> None:
    """A budget of nothing has a high price, and 30,000 replicas could pay it."""
    state = snapshot(brokers(4), [(1, 2, 3)] * 10_000)
    goals = NO_FLOOR.model_copy(update={"budgets": Budgets(replica_moves=0)})
    # Deviations are 1/3 three times, and -1.
    prices = {b: {"net_in": -2.0 if b == 4 else 2 / 3} for b in state.broker}
    bound = price_bound(state, goals, prices, (), {"replica_moves": 1e3})
    assert bound == pytest.approx(4 / 3, rel=1e-8)
