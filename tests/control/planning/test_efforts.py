"""Goals at an effort: `quick` copies nothing and says what it leaves."""

import pytest

from control.planning.efforts import goals_at
from model.evaluate import evaluate
from model.goals.effort import Effort
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import BrokerState
from solver.solve import solve
from tests.support.control.loop_parts import EASY, MB, WORK, cluster, one_of_twelve_dead, with_state
from tests.support.model.clusters import brokers, snapshot

LED_BY_ONE = snapshot(brokers(2), [(1, 2)] * 6, [(MB, 9 * MB)] * 6)


@pytest.mark.parametrize("effort", [Effort.GOOD, Effort.BEST])
def test_good_and_best_keep_the_goals(effort: Effort) -> None:
    found = goals_at(one_of_twelve_dead(), EASY, effort)
    assert found.goals is EASY
    assert found.notes == ()


def test_quick_changes_leaders_and_adds_no_replica() -> None:
    found = goals_at(LED_BY_ONE, EASY, Effort.QUICK)
    plan = solve(LED_BY_ONE, found.goals, WORK).best
    assert plan is not None
    assert found.notes == ()
    assert plan.leader_changes == 3
    assert not any(move.added for move in plan.moves)


@pytest.mark.parametrize("state", [BrokerState.DEAD, BrokerState.DRAINING])
def test_quick_leaves_what_would_have_to_be_copied_and_says_so(state: BrokerState) -> None:
    state_of_it = one_of_twelve_dead(state)
    found = goals_at(state_of_it, EASY, Effort.QUICK)
    result = solve(state_of_it, found.goals, WORK)
    assert result.status is not PlanStatus.INFEASIBLE
    moves = () if result.best is None else result.best.moves
    assert not any(move.added for move in moves)
    assert not evaluate(state_of_it, found.goals, moves).violations
    assert found.notes == (
        f"22 partitions that would have to leave broker 11 ({state}) stay, since quick copies "
        "nothing; --effort good moves them",
    )


def test_without_a_second_replica_there_is_no_leader_to_change() -> None:
    single = cluster([2] * 8, [MB] * 8)
    found = goals_at(single, EASY, Effort.QUICK)
    (note,) = found.notes
    assert note.startswith("no partition has a second replica that could lead")
    plan = solve(single, found.goals, WORK).best
    assert plan is None or not plan.moves


def test_a_single_partition_is_named_in_the_singular() -> None:
    one = with_state(cluster([1, 2, 3], [MB] * 3), 3, BrokerState.DEAD)
    assert (
        "1 partition that would have to leave broker 3 (dead) stays"
        in (goals_at(one, EASY, Effort.QUICK).notes[-1])
    )


def test_a_cluster_without_partitions_has_nothing_to_say() -> None:
    assert goals_at(cluster([], []), EASY, Effort.QUICK).notes == ()
