"""Other replication factors: how good the places are, and that the plan's claims hold."""

import itertools

import numpy as np
import pytest

from control.cli.plan_claims import claims
from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.evaluate import evaluate_proposal
from model.goals.goals import Goals, RackRule, SolveLimits
from model.plan.plan import Plan
from model.plan.proposal import Change, Proposal
from model.plan.replication_change import ReplicationChange
from model.snapshot.snapshot import BrokerState, Resource, Snapshot, StorageKind
from solver.replication.placing import NoRoom
from solver.replication.replication_plan import replication_plan
from tests.support.model.clusters import NO_FLOOR, TOPIC, brokers, snapshot

LIMITS = SolveLimits()


def planned(state: Snapshot, replicas: int, goals: Goals = NO_FLOOR) -> Plan:
    plan = replication_plan(state, goals, LIMITS, {TOPIC: replicas})
    assert plan is not None
    return plan


def refuted(plan: Plan, state: Snapshot) -> list[str]:
    return [f"{c.name}: {c.words}" for c in claims(plan, state) if c.holds is False]


def after(plan: Plan) -> list[tuple[int, ...]]:
    return [tuple(map(int, m.replicas_after)) for m in plan.moves]


def optimum(state: Snapshot, replicas: int, goals: Goals) -> float:
    """The least F of all ways to add or remove replicas that no rule forbids."""
    ids = [b.id for b in state.header.brokers]
    choices = []
    for row in range(len(state)):
        here = state.row(row)
        sets = itertools.combinations([b for b in ids if b != here.leader], replicas - 1)
        lists = [(here.leader, *rest) for rest in sets]
        now = {*here.replicas}
        choices.append([held for held in lists if {*held} <= now or now <= {*held}])
    best = np.inf
    before = len(state.replicas(0))
    wanted = (ReplicationChange(topic=TOPIC, before=before, after=replicas),)
    for held in itertools.product(*choices):
        changes = tuple(Change(row, to, to[0]) for row, to in enumerate(held))
        found = evaluate_proposal(Proposal(state, goals, changes, wanted))
        if not found.violations:
            best = min(best, found.objective)
    return float(best)


def places(rng: np.random.Generator, rows: int, count: int, of: int) -> list[tuple[int, ...]]:
    return [tuple((rng.permutation(of)[:count] + 1).tolist()) for _ in range(rows)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("before", "replicas"), [(1, 2), (1, 3), (3, 2), (3, 1), (2, 3)])
def test_places_are_close_to_the_best_ones(seed: int, before: int, replicas: int) -> None:
    """Within 10 % of the range between the best places and the worst broker's whole load."""
    rng = np.random.default_rng(seed)
    loads = [(float(x), float(y)) for x, y in rng.pareto(1.5, (4, 2)) * 1e6 + 1e4]
    state = snapshot(brokers(4, racks="abcd"), places(rng, 4, before, 4), loads)
    plan = planned(state, replicas)
    assert refuted(plan, state) == []
    best = optimum(state, replicas, NO_FLOOR)
    assert plan.objective <= best * 1.1 + 1e-9


def test_a_partition_that_has_enough_replicas_stays() -> None:
    state = snapshot(brokers(3), [(1, 2), (2, 3, 1)])
    plan = planned(state, 3)
    assert after(plan) == [(1, 2, 3)]
    assert replication_plan(state, NO_FLOOR, LIMITS, {TOPIC: 2}) is not None
    same = snapshot(brokers(3), [(1, 2)])
    assert replication_plan(same, NO_FLOOR, LIMITS, {TOPIC: 2}) is None


def test_racks_come_before_loads() -> None:
    state = snapshot(
        brokers(4, racks="aabb"), [(1,), (2,), (3,)], [(9e6, 9e6), (1e6, 1e6)] * 1 + [(9e6, 9e6)]
    )
    racks = {int(b.id): b.rack for b in state.header.brokers}
    for held in after(planned(state, 2)):
        assert len({racks[b] for b in held}) == 2


def test_the_leader_stays_and_the_fullest_rack_gives_up_a_replica() -> None:
    state = snapshot(brokers(5, racks="aabbc"), [(1, 2, 3), (3, 4, 5), (5, 1, 2)])
    plan = planned(state, 2)
    assert [m.leader_after for m in plan.moves] == [m.leader_before for m in plan.moves]
    assert after(plan)[0] == (1, 3)
    assert after(plan)[2][0] == 5


def test_replicas_on_brokers_that_leave_go_first() -> None:
    leaving = {2: BrokerState.DRAINING, 3: BrokerState.DEAD}
    state = snapshot(brokers(4, states=leaving), [(1, 2, 4), (1, 3, 4)])
    assert after(planned(state, 2)) == [(1, 4), (1, 4)]


def test_brokers_without_room_get_no_replica() -> None:
    tight = brokers(3, capacity={1: 9e7, 2: 1e6, 3: 9e7})
    state = snapshot(tight, [(1,), (3,)], [(1e7, 1e6), (1e7, 1e6)])
    assert after(planned(state, 2)) == [(1, 3), (3, 1)]
    with pytest.raises(NoRoom):
        planned(state, 3)
    few = NO_FLOOR.model_copy(update={"replicas_per_broker": 1})
    with pytest.raises(NoRoom):
        planned(state, 2, few)


def test_a_leader_serves_each_of_its_followers() -> None:
    state = snapshot(brokers(3), [(1,)], [(1e6, 2e6)])
    (one, *_) = planned(state, 3).brokers
    assert one.before[Resource.NET_OUT] == 2e6
    assert one.after[Resource.NET_OUT] == 2e6 + 2 * 1e6


@pytest.mark.parametrize("seed", range(12))
def test_claims_hold_on_hostile_clusters(seed: int) -> None:
    """Heavy tails, partitions as large as brokers, unequal brokers and racks."""
    rng = np.random.default_rng(seed)
    shape = ClusterShape(
        brokers=9,
        partitions=60,
        rf=2,
        racks=3 + seed % 4,
        topic_skew=2.0,
        partition_skew=1.5,
        hot=seed % 2 == 0,
        unequal=seed % 3 == 0,
    )
    name = ClusterName(cluster_id="c", taken_at_ms=1_700_000_000_000)
    state = cluster(shape, StorageKind.REPLICATED, name, rng)
    goals = Goals(capacity_limit=1.0, rack_rule=[*RackRule][seed % len(RackRule)])
    wanted = {t.name: 1 + 2 * (seed % 2) for t in state.header.topics[:3]}
    plan = replication_plan(state, goals, LIMITS, wanted)
    assert plan is not None
    left = [c for c in refuted(plan, state) if not c.startswith("rules: capacity: ")]
    assert left == []
    assert len({m.topic for m in plan.moves}) == len(plan.replication)
