"""Plans that relieve slow brokers of leaders."""

import random

import pytest

from control.planning.plan_needs import Reason, plan_needs
from control.planning.slow_brokers import relieving, with_slow
from control.planning.staging import staged
from control.settings.trigger_table import Trigger
from model.evaluate import evaluate
from model.goals.goals import Budgets, Goals
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Snapshot, StorageKind
from solver.solve import solve
from tests.support.control.loop_parts import WORK
from tests.support.model import clusters
from tests.support.model.clusters import brokers

GOALS = Goals()
PLACES = [(2, 1), (2, 3), (1, 3), (2,), (3, 2)]
SLOW = frozenset({BrokerId(2)})


def slow(places: list[tuple[int, ...]], count: int, *ids: int) -> Snapshot:
    seen = clusters.snapshot(brokers(count), places, storage=StorageKind.REPLICATED)
    return with_slow(seen, {BrokerId(b) for b in ids})


def test_leaders_change_where_another_replica_can_lead() -> None:
    """The only replica of a partition stays, and keeps leading."""
    seen = slow(PLACES, 3, 2)
    goals = relieving(seen, GOALS)
    plan = solve(seen, goals, WORK).best
    assert plan is not None
    assert plan.schema_version == "1.8"
    assert evaluate(seen, goals, plan.moves).violations == ()
    moved = {m.partition: m for m in plan.moves}
    assert all(moved[row].leader_after != 2 for row in (0, 1))
    assert moved[0].reason == "relieves broker 2, which is slow"
    assert 3 not in moved
    violations = evaluate(seen, goals, ()).violations
    assert [v.rule for v in violations] == ["slow brokers"] * 2
    assert "orders-0 would still be led by broker 2, which is slow" in violations[0].words


@pytest.mark.parametrize("seed", range(6))
def test_no_plan_leaves_a_slow_broker_leading_or_gives_it_more(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(3, 6)
    places = [
        tuple(rng.sample(range(1, count + 1), rng.randint(1, 3))) for _ in range(rng.randint(4, 40))
    ]
    seen = slow(places, count, 1)
    goals = relieving(seen, GOALS)
    plan = solve(seen, goals, WORK).best
    assert plan is not None
    assert evaluate(seen, goals, plan.moves).violations == ()
    assert plan.bound <= plan.objective + 1e-6 * abs(plan.objective)
    after = {m.partition: m for m in plan.moves}
    for row, place in enumerate(places):
        leader = after[row].leader_after if row in after else place[0]
        replicas = after[row].replicas_after if row in after else place
        assert leader != 1 or len(place) == 1
        assert 1 not in replicas or 1 in place


def test_budgets_of_leaders_limit_the_relief_and_rules_that_ask_do_not() -> None:
    seen = slow(PLACES, 3, 2)
    one = GOALS.model_copy(update={"budgets": Budgets(leader_changes=1)})
    goals, over = staged(seen, relieving(seen, one), repair_rules=False)
    assert over == 1
    plan = solve(seen, goals, WORK).best
    assert plan is not None
    assert [m.partition for m in plan.moves] == [0]


def test_the_need_names_the_broker_its_leaders_and_its_times() -> None:
    seen = slow(PLACES, 3, 2)
    words = {BrokerId(2): "it answers in 2 s, the others in 5 ms"}
    needs = plan_needs(seen, GOALS, evaluate(seen, GOALS, ()), given_up=(), slow=words)
    found = next(need for need in needs if need.reason is Reason.SLOW_BROKER)
    assert found.trigger is Trigger.SLOW_BROKER
    assert found.message == (
        "broker 2 is slow and leads 2 partitions: it answers in 2 s, the others in 5 ms"
    )
    idle = slow([(1, 2), (2,)], 3, 2)
    needs = plan_needs(idle, GOALS, evaluate(idle, GOALS, ()), given_up=())
    assert Reason.SLOW_BROKER not in {need.reason for need in needs}


def test_states_that_say_more_are_kept_and_goals_stay_where_no_broker_is_slow() -> None:
    members = brokers(3, states={2: BrokerState.DRAINING})
    seen = clusters.snapshot(members, [(1, 3)])
    assert with_slow(seen, SLOW) is seen
    assert relieving(seen, GOALS) is GOALS
