"""Why moves are made, and why others are not, by figures that the evaluator gives."""

import pytest

from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.plan import Plan
from model.snapshot.snapshot import BrokerState, Snapshot, dimension_words
from solver.problem.placement import Placement, objective
from solver.problem.problem import compile_problem
from solver.report.counterfactual import WhyNot, move_values, why_not
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, moved
from tests.support.solver.zipf_clusters import synthetic

WORK = SolveLimits(work=5.0)


def planned(snapshot: Snapshot, given_goals: Goals) -> Plan:
    best = solve(snapshot, given_goals, WORK).best
    assert best is not None
    return best


def asked(
    snapshot: Snapshot, given_goals: Goals, row: int, to: int, plan: Plan | None = None
) -> WhyNot:
    return why_not(snapshot, plan or planned(snapshot, given_goals), row, BrokerId(to))


@pytest.fixture(scope="module")
def skewed() -> Snapshot:
    return synthetic(4, 40, rf=2, seed=3, young=0.5)


def test_a_plan_becomes_the_placement_that_it_was_made_from(skewed: Snapshot) -> None:
    plan = planned(skewed, Goals())
    problem = compile_problem(skewed, Goals())
    assert objective(problem, Placement.after(problem, plan.moves)) == pytest.approx(plan.objective)


def test_deviations_without_a_move_agree_with_the_evaluator(skewed: Snapshot) -> None:
    plan = planned(skewed, Goals())
    problem = compile_problem(skewed, Goals())
    assert plan.moves
    for worth in move_values(problem, plan, range(1, len(plan.moves) + 1)):
        others = [m for m in plan.moves if m.id != worth.partition]
        whole = evaluate(skewed, Goals(), plan.moves)
        without = evaluate(skewed, Goals(), others)
        assert worth.gain == pytest.approx(without.objective - whole.objective)
        assert worth.price == pytest.approx(whole.prices - without.prices)
        for effect in worth.effects:
            key, b = effect.dimension, effect.broker
            assert effect.after == pytest.approx(whole.deviations[key][b])
            assert effect.without == pytest.approx(without.deviations[key][b])


def test_the_broker_relieved_is_the_one_that_the_reason_names(skewed: Snapshot) -> None:
    plan = planned(skewed, Goals())
    problem = compile_problem(skewed, Goals())
    (worth,) = move_values(problem, plan, [1])
    assert worth.goal is not None
    assert f"broker {worth.relieved} ({dimension_words(worth.goal)} " in worth.reason


def test_reasons_mention_pins_and_drained_brokers() -> None:
    brokers = [broker(1, state=BrokerState.DRAINING), broker(2), broker(3)]
    plan = planned(cluster(brokers, [Row(replicas=(1,))]), goals())
    assert plan.moves[0].reason == "leaves broker 1, which is draining"
    pin = {"topics": {"exact": ("orders",)}, "brokers": (2,)}
    pinned = planned(cluster(brokers[1:], [Row(replicas=(3,))]), goals(pins=(pin,)))
    assert pinned.moves[0].reason == ("leaves broker 3, where a pin or placement forbids it")


def test_reasons_mention_topics_balanced_on_their_own() -> None:
    balance = ({"resource": "topic_replicas"},)
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 4)
    plan = planned(snapshot, Goals.model_validate({"balance": balance}, strict=False))
    assert {m.reason for m in plan.moves} == {"spreads topic orders"}


# ---- moves that are not made

TWO = [Row(replicas=(1,), load=(5.0, 5.0)), Row(replicas=(2,), load=(4.0, 4.0))]
THREE = [broker(1), broker(2), broker(3)]


def test_a_move_not_worth_its_cost_reports_gain_and_cost() -> None:
    """The cost is the evaluator's, split into evenness and price."""
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 3)
    given_goals = goals(1.0)
    result = asked(snapshot, given_goals, 0, 2, planned(snapshot, goals(9.0)))
    assert result.forbidden == ()
    assert result.cost == pytest.approx(result.price + _even(result))
    expensive = asked(snapshot, goals(9.0, tolerance_first=False), 0, 2)
    assert expensive.price == pytest.approx(9.45)
    assert expensive.words[0].startswith("allowed, and the imbalance score would rise by")
    assert "+9.45 from the cost of moves" in expensive.words[0]


def _even(result: WhyNot) -> float:
    return result.cost - result.price


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (
            {"excluded_topics": ("orders",)},
            "movable partitions: orders-0 stays: its topic is excluded",
        ),
        (
            {"replicas_per_broker": 1},
            "replicas per broker: broker 2 would hold 2 replicas; the limit is 1",
        ),
        (
            {"pins": ({"topics": {"exact": ("orders",)}, "brokers": (1, 3)},)},
            "pins: orders-0 would lie on broker 2, outside its pins",
        ),
    ],
)
def test_the_rule_that_forbids_a_move_is_named(others: dict[str, object], message: str) -> None:
    rows = [Row(replicas=(1,)), Row(replicas=(3,)) if "pins" in others else TWO[1]]
    result = asked(cluster(THREE, rows), goals(5.0, **others), 0, 2)
    assert message in result.forbidden
    assert result.words == result.forbidden


def test_a_cooldown_names_the_time_since_the_move() -> None:
    snapshot = cluster(THREE, TWO, recent=[moved(0, 2, 60)])
    result = asked(snapshot, goals(5.0), 0, 3)
    assert result.forbidden == ("cooldown: orders-0 moved 60 s ago and rests for 600 s",)


def test_a_broker_that_would_overflow_is_named() -> None:
    members = [broker(1), broker(2, capacity=8 / 0.85), broker(3)]
    result = asked(cluster(members, TWO), goals(5.0), 0, 2)
    assert result.forbidden[0] == (
        "capacity: broker 2 would carry 9 B/s of bytes in, 1 B/s over its limit of 8 B/s"
    )


def test_going_back_would_undo_the_plans_own_move() -> None:
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 2)
    plan = planned(snapshot, goals())
    (move,) = plan.moves
    result = asked(snapshot, goals(), snapshot.row_of[move.id], 1, plan)
    assert result.cost == pytest.approx(move.gain)
    assert result.words[0] == f"it would undo the plan's move of {move.id}"


def test_the_broker_that_would_get_worse_and_the_moves_instead_are_named() -> None:
    rows = [Row(replicas=(1,), load=(4.0, 4.0)), Row(replicas=(1,), load=(4.1, 4.1))]
    snapshot = cluster([broker(1), broker(2)], rows)
    plan = planned(snapshot, goals(0.01))
    (move,) = plan.moves
    other = 1 - move.partition
    result = asked(snapshot, goals(0.01), other, 2, plan)
    assert result.words[1:] == (
        "broker 2 would be 100 % over its level in bytes out, with the plan it is 1 % "
        f"{'over' if move.partition else 'under'} its level",
        f"the plan sends {move.id} to broker 2 instead",
    )


def test_a_move_already_in_the_plan_is_recognised() -> None:
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 2)
    plan = planned(snapshot, goals())
    (move,) = plan.moves
    row = snapshot.row_of[move.id]
    assert asked(snapshot, goals(), row, 2, plan).words == (
        f"{move.id} is led by broker 2 after the plan: the plan moves it there",
    )
    assert asked(snapshot, goals(), 1 - row, 1, plan).words == (
        f"orders-{1 - row} is led by broker 1 after the plan: it is there already, and stays there",
    )


def test_of_several_replicas_the_best_to_replace_is_judged(skewed: Snapshot) -> None:
    """No other way of sending the partition there costs less."""
    plan = planned(skewed, Goals())
    still = {m.id for m in plan.moves}
    row = next(r for r in range(len(skewed)) if skewed.id(r) not in still)
    to = next(b for b in skewed.broker if b not in skewed.replicas(row))
    result = asked(skewed, Goals(), row, to, plan)
    assert result.forbidden == ()
    assert result.cost >= -plan.gap - 1e-9
    assert "in place of broker" in result.words[0]
