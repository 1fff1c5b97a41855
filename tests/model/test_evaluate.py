"""F by hand: deviations, averages, costs."""

import pytest

from model.dimensions import Dimension, replica_loads
from model.errors import InvalidCluster
from model.evaluate import evaluate, evaluate_proposal
from model.goals.goals import Goal, Goals
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Resource, StorageKind
from tests.support.model.clusters import NO_FLOOR, RATES, brokers, change, move, propose, snapshot

DRAINING = BrokerState.DRAINING


def priced(price: float) -> Goals:
    return NO_FLOOR.model_copy(update={"move_price": price})


def test_one_loaded_broker_of_two_deviates_fully() -> None:
    """Deviations +1 and -1 in two resources: F is 4."""
    result = evaluate(snapshot(brokers(2), [(1,), (1,)]), NO_FLOOR, [])
    assert result.objective == pytest.approx(4.0)
    assert result.prices == 0.0
    assert result.levels == {Resource.NET_IN: 1.0, Resource.NET_OUT: 1.0}
    assert result.deviations[Resource.NET_IN] == {1: 1.0, 2: -1.0}
    assert not result.within_band(NO_FLOOR)


def test_a_balanced_cluster_has_the_objective_zero() -> None:
    result = evaluate(snapshot(brokers(2), [(1,), (2,)]), NO_FLOOR, [])
    assert result.objective == 0.0
    assert result.within_band(NO_FLOOR)


def test_a_move_changes_loads_and_adds_its_cost() -> None:
    """One replica and one leader: a cost of 1.05."""
    state = snapshot(brokers(2), [(1,), (1,)])
    result = evaluate(state, priced(0.2), [move(0, (1,), (2,))])
    assert result.deviation == pytest.approx(0.0)
    assert result.prices == pytest.approx(0.21)
    assert result.loads[BrokerId(2)] == {Resource.NET_IN: 1.0, Resource.NET_OUT: 1.0}


def test_the_default_price_is_tolerance_by_brokers_by_partitions() -> None:
    result = evaluate(snapshot(brokers(2), [(1,)] * 8), NO_FLOOR, [])
    assert result.move_price == pytest.approx(0.1 * 2 / 8)


def test_weights_count() -> None:
    balance = (Goal(resource=Resource.NET_IN, floor=0.0, weight=3.0),)
    result = evaluate(snapshot(brokers(2), [(1,)]), Goals(balance=balance), [])
    assert result.objective == pytest.approx(6.0)


def test_a_resource_under_its_floor_does_not_count() -> None:
    """Mean load 1 per broker, floor 1.5."""
    balance = (
        Goal(resource=Resource.NET_IN, floor=1.5),
        Goal(resource=Resource.NET_OUT, floor=1.0),
        Goal(resource=Resource.DISK, floor=0.0),
    )
    result = evaluate(snapshot(brokers(2), [(1,), (1,)]), Goals(balance=balance), [])
    assert list(result.levels) == [Resource.NET_OUT]
    assert result.objective == pytest.approx(2.0)


def test_a_larger_broker_is_balanced_at_equal_utilisation() -> None:
    """Capacities 30 and 10 with loads 3 and 1."""
    state = snapshot(brokers(2, capacity={1: 30.0, 2: 10.0}), [(1,)] * 3 + [(2,)])
    assert evaluate(state, NO_FLOOR, []).objective == pytest.approx(0.0)


def test_one_unknown_capacity_makes_all_brokers_count_as_equal() -> None:
    state = snapshot(brokers(2, capacity={1: 30.0}), [(1,), (2,)])
    assert evaluate(state, NO_FLOOR, []).objective == pytest.approx(0.0)


def test_a_draining_broker_is_not_balanced_but_its_load_counts() -> None:
    """Two holding brokers share four rows, two of which are not placed yet."""
    state = snapshot(brokers(3, states={3: DRAINING}), [(1,), (2,), (3,), (3,)])
    result = evaluate(state, NO_FLOOR, [])
    assert result.levels[Resource.NET_IN] == 2.0
    assert result.deviations[Resource.NET_IN] == {1: -0.5, 2: -0.5}


def test_followers_add_incoming_and_leaders_outgoing_traffic() -> None:
    """Three replicas of 5 in and 7 out: the leader sends 7 + 2 x 5."""
    state = snapshot(brokers(3), [(1, 2, 3)], [(5.0, 7.0)])
    taken, sent = (replica_loads(state, Dimension(measure=r)) for r in RATES)
    assert [column.tolist() for column in taken] == [[5.0], [5.0]]
    assert [column.tolist() for column in sent] == [[17.0], [0.0]]
    loads = evaluate(state, NO_FLOOR, []).loads
    assert loads[BrokerId(1)] == {Resource.NET_IN: 5.0, Resource.NET_OUT: 17.0}
    assert loads[BrokerId(2)] == {Resource.NET_IN: 5.0, Resource.NET_OUT: 0.0}


def test_an_unknown_load_counts_as_zero() -> None:
    state = snapshot(brokers(2), [(1,), (2,)], [(float("nan"), 1.0), (1.0, 1.0)])
    assert evaluate(state, NO_FLOOR, []).loads[BrokerId(1)][Resource.NET_IN] == 0.0


def test_a_leader_change_costs_a_share_of_a_move() -> None:
    state = snapshot(brokers(2), [(1, 2)])
    result = evaluate_proposal(propose(state, change(0, 2, 1), goals=priced(1.0)))
    assert result.prices == pytest.approx(0.05)


def test_forced_moves_are_free() -> None:
    """Two new replicas, one of them for the draining broker's: one has a cost."""
    state = snapshot(brokers(5, states={1: DRAINING}), [(2, 1, 3)])
    changed = propose(state, change(0, 2, 4, 5), goals=priced(1.0))
    assert evaluate_proposal(changed).prices == pytest.approx(1.0)
    forced = propose(state, change(0, 2, 4, 3), goals=priced(1.0))
    assert evaluate_proposal(forced).prices == 0.0


@pytest.mark.parametrize(
    ("storage", "local", "price"),
    [
        (StorageKind.SHARED, 400, 1.0),
        (StorageKind.TIERED, 400, 2.0),
        (StorageKind.TIERED, 50, 1.0),
        (StorageKind.REPLICATED, 400, 2.0),
        (StorageKind.REPLICATED, 50, 0.25),
        (StorageKind.REPLICATED, -1, 1.0),
    ],
)
def test_a_replica_costs_as_much_as_it_copies(
    storage: StorageKind, local: int, price: float
) -> None:
    """Against a mean log of 200 bytes; the leader stays."""
    state = snapshot(
        brokers(3), [(1, 2), (1, 2)], storage=storage, local_bytes=[local, 0], size_bytes=[100, 300]
    )
    result = evaluate_proposal(propose(state, change(0, 1, 3), goals=priced(1.0)))
    assert result.prices == pytest.approx(price)


def test_a_move_of_an_unknown_partition_is_refused() -> None:
    with pytest.raises(InvalidCluster, match="no partition orders-7"):
        evaluate(snapshot(brokers(2), [(1,)]), NO_FLOOR, [move(7, (1,), (2,))])


def test_violations_are_part_of_the_evaluation() -> None:
    result = evaluate(snapshot(brokers(2), [(1,)]), NO_FLOOR, [move(0, (1,), (1, 2))])
    assert {v.rule for v in result.violations} >= {"replication factor"}
