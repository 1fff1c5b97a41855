"""The part of a large repair that fits the budgets."""

import pytest

from control.planning.staging import staged
from model.evaluate import evaluate
from model.goals.goals import Budgets, Goals
from model.goals.topic_placement import with_topic_placements
from model.ids import BrokerId
from model.plan.plan import PlanStatus
from model.plan.unplaceable import placeless
from model.snapshot.snapshot import BrokerState
from solver.solve import solve
from tests.support.control.loop_parts import (
    EASY,
    MB,
    WORK,
    cluster,
    constrained,
    one_of_twelve_dead,
    with_state,
)

LAST = BrokerId(11)


def within(**budgets: int) -> Goals:
    return EASY.model_copy(update={"budgets": Budgets(**budgets)})


@pytest.mark.parametrize(
    ("goals", "deferred"),
    [
        (EASY, 0),
        (within(replica_moves=22), 0),
        (within(replica_moves=10), 12),
        (within(partitions=5), 17),
        (within(partitions_per_topic=5), 17),
        (within(replica_moves_out_per_broker=3), 19),
        (within(replica_moves_in_per_broker=1), 11),
        (within(replica_moves=0), 22),
    ],
)
def test_repairs_beyond_the_budgets_are_deferred(goals: Goals, deferred: int) -> None:
    """The dead broker's 22 partitions are of one topic; 11 brokers are alive."""
    snapshot = one_of_twelve_dead()
    actual, over = staged(snapshot, goals)
    assert over == deferred
    result = solve(snapshot, actual, WORK)
    if deferred == 22:
        assert result.best is None or not result.best.moves
        return
    assert result.best is not None
    assert sum(LAST in m.replicas_before for m in result.best.moves) == 22 - deferred
    assert not evaluate(snapshot, actual, result.best.moves).violations


def test_without_deferring_a_repair_beyond_the_budgets_is_infeasible() -> None:
    result = solve(one_of_twelve_dead(), within(replica_moves=10), WORK)
    assert result.status is PlanStatus.INFEASIBLE


def test_a_dead_broker_that_is_waited_for_keeps_its_replicas() -> None:
    snapshot = one_of_twelve_dead()
    actual, over = staged(snapshot, EASY, waited={LAST})
    assert over == 0
    result = solve(snapshot, actual, WORK)
    moves = result.best.moves if result.best else ()
    assert not any(LAST in m.replicas_before for m in moves)


def test_partitions_that_cannot_wait_leave_the_dead_broker_and_nothing_else_moves() -> None:
    snapshot = one_of_twelve_dead()
    hurried = [row for row in range(len(snapshot)) if LAST in snapshot.replicas(row)][:2]
    actual, over = staged(snapshot, EASY, waited={LAST}, hurried=hurried)
    assert over == 0
    result = solve(snapshot, actual, WORK)
    assert result.best is not None
    assert {m.id for m in result.best.moves} == {snapshot.id(row) for row in hurried}
    assert not any(LAST in m.replicas_after for m in result.best.moves)
    assert staged(snapshot, EASY, hurried=hurried) == staged(snapshot, EASY)


def test_moves_forced_by_new_constraints_are_deferred_by_leader_changes() -> None:
    """Twelve partitions of RF 1 are in the racks b and c, and all must go to a."""
    snapshot = constrained(cluster([2, 3] * 6, [MB] * 12), a=1)
    goals = with_topic_placements(within(leader_changes=5), snapshot)
    actual, over = staged(snapshot, goals)
    assert over == 7
    result = solve(snapshot, actual, WORK)
    assert result.best is not None
    assert len(result.best.moves) == 5


def test_partitions_whose_rack_has_too_few_live_brokers_cannot_be_placed() -> None:
    snapshot = constrained(cluster([1, 2], [MB] * 2), a=1)
    goals = with_topic_placements(EASY, snapshot)
    assert placeless(snapshot, goals) == frozenset()
    assert placeless(with_state(snapshot, 1, BrokerState.DEAD), goals) == {0, 1}


def test_missing_leaders_wait_until_rules_may_be_repaired() -> None:
    """Those that are there must stay in any case."""
    wanted = Goals.model_validate({"min_leaders": [{"topics": {"prefix": [""]}}]}, strict=False)
    unled, led = cluster([1, 2, 2], [MB] * 3), cluster([1, 2, 3], [MB] * 3)
    assert staged(unled, wanted, repair_rules=False)[0].min_leaders == ()
    assert staged(led, wanted, repair_rules=False)[0].min_leaders == wanted.min_leaders
    assert staged(unled, wanted)[0].min_leaders == wanted.min_leaders
