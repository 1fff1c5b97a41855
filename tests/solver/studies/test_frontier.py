"""The frontier against every placement of tiny clusters."""

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from model.evaluate import evaluate_proposal
from model.files import canonical
from model.goals.goals import Budgets, Goals, ObjectiveKind, SolveLimits
from model.plan.frontier import Frontier
from model.plan.proposal import Proposal
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.trace_frontier import trace_plans
from tests.support.solver.exact_oracle import Row, _all_places, broker, cluster, goals
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

LIMITS = SolveLimits(work=10.0)
NEAR = 1e-5


@dataclass(frozen=True, slots=True)
class Place:
    """One allowed placement of all partitions."""

    cost: float
    balance: float
    moves: int


def every_place(snapshot: Snapshot, given_goals: Goals) -> list[Place]:
    result = []
    for places in itertools.product(*_all_places(snapshot, given_goals)):
        changes = tuple(p for p in places if p is not None)
        proposal = Proposal(snapshot, given_goals, changes)
        judged = evaluate_proposal(proposal)
        if not judged.violations:
            band = given_goals.objective is ObjectiveKind.BAND
            moves = sum(len(set(c.replicas) - set(snapshot.replicas(c.row))) for c in changes)
            cost = judged.prices / judged.move_price
            balance = judged.excess if band else judged.deviation
            result.append(Place(cost, balance, moves))
    return result


def traced(snapshot: Snapshot, given_goals: Goals) -> Frontier:
    return trace_plans(snapshot, given_goals, LIMITS, SolveObserver())[0]


def proved(frontier: Frontier, cost: float) -> float:
    return max([0.0, *(line.at(cost) for line in frontier.lines)])


def skewed(loads: list[float], brokers: int = 3) -> Snapshot:
    rows = [Row(replicas=(1,), load=(load, load)) for load in loads]
    return cluster([broker(i) for i in range(1, brokers + 1)], rows)


@settings(max_examples=4, deadline=None)
@given(st.lists(st.floats(0.5, 9.0), min_size=1, max_size=4), st.sampled_from(ObjectiveKind))
@example([1.0, 3.0], ObjectiveKind.BAND)
def test_no_placement_is_below_the_proved_lines(loads: list[float], kind: ObjectiveKind) -> None:
    snapshot, given_goals = skewed(loads), goals(objective=kind)
    frontier = traced(snapshot, given_goals)
    for place in every_place(snapshot, given_goals):
        assert place.balance >= proved(frontier, place.cost) - NEAR


@settings(max_examples=4, deadline=None)
@given(st.lists(st.floats(0.5, 9.0), min_size=2, max_size=4))
def test_every_corner_of_the_true_frontier_at_1_2_4_moves_is_found(loads: list[float]) -> None:
    """As far as the price of the least costly solve tells plans apart."""
    snapshot, given_goals = skewed(loads), goals()
    frontier = traced(snapshot, given_goals)
    least = min(p.move_price for p in frontier.points)
    places = every_place(snapshot, given_goals)
    for budget in (0, 1, 2, 4):
        best = min(p.balance for p in places if p.moves <= budget)
        result = min(p.balance for p in frontier.points if p.moves <= budget)
        assert result <= best + 1.05 * budget * 0.2 * least + NEAR


def test_points_rise_in_cost_and_fall_in_balance() -> None:
    frontier = traced(skewed([5, 4, 3, 2, 1, 1]), goals())
    costs = [p.cost for p in frontier.points]
    balances = [p.balance for p in frontier.points]
    assert costs == sorted(set(costs))
    assert balances == sorted(set(balances), reverse=True)


def test_it_starts_with_the_cluster_as_it_is() -> None:
    frontier = traced(skewed([5, 4, 3]), goals())
    first = frontier.points[0]
    assert (first.cost, first.moves) == (0.0, 0)
    assert first.balance == frontier.balance_before


def test_the_chosen_point_is_the_plan_at_the_present_cost() -> None:
    snapshot = skewed([5, 4, 3, 2, 1, 1])
    frontier = traced(snapshot, goals())
    plan = solve(snapshot, goals(), LIMITS).best
    assert plan is not None
    assert frontier.chosen is not None
    chosen = frontier.points[frontier.chosen]
    assert chosen.moves == len(plan.moves)
    value = chosen.balance + frontier.move_price * chosen.cost
    assert value == pytest.approx(plan.objective)


def test_a_balanced_cluster_has_one_point() -> None:
    rows = [Row(replicas=(i,)) for i in (1, 2, 3)]
    level = cluster([broker(i) for i in (1, 2, 3)], rows)
    frontier = traced(level, goals())
    assert [(p.cost, p.balance) for p in frontier.points] == [(0.0, 0.0)]
    assert frontier.knee is None


def test_forced_moves_cost_nothing() -> None:
    brokers = [broker(1, state=BrokerState.DRAINING), broker(2), broker(3)]
    rows = [Row(replicas=(1,)), Row(replicas=(1,)), Row(replicas=(2,))]
    frontier = traced(cluster(brokers, rows), goals())
    assert min(p.moves for p in frontier.points) >= 2
    assert frontier.points[0].cost == pytest.approx(0.1, abs=1e-6)


def test_an_infeasible_frontier_has_reasons_instead_of_points() -> None:
    brokers = [broker(1, state=BrokerState.DRAINING)]
    stuck = cluster(brokers, [Row(replicas=(1,))])
    frontier = traced(stuck, goals())
    assert frontier.points == ()
    assert frontier.reasons


def test_budgets_of_the_goals_hold() -> None:
    given_goals = goals(budgets=Budgets(replica_moves=2))
    frontier = traced(skewed([5, 4, 3, 2, 1, 1]), given_goals)
    assert max(p.moves for p in frontier.points) == 2


def test_equal_arguments_give_equal_bytes() -> None:
    def made() -> bytes:
        frontier = traced(synthetic(4, 20, seed=5), Goals())
        return canonical(frontier.model_dump(mode="json"))

    assert made() == made()


def test_a_frontier_round_trips_through_its_file() -> None:
    frontier = traced(skewed([5, 4, 3]), goals())
    assert Frontier.model_validate_json(frontier.model_dump_json()) == frontier
