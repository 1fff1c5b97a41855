"""A plan that violates its own rules is refused on a running cluster, hash or not."""

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from executor.executor import Executor
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import GuardrailRefused
from model.goals.goals import Budgets, MinLeaders, Pin, SolveLimits
from model.ids import BrokerId
from model.names import Names
from model.plan.plan import BrokerChange, Move, Plan
from model.run import MoveState, RunState
from model.snapshot.snapshot import BrokerState, Resource, Snapshot, StorageKind
from solver.solve import solve
from tests.support.executor.simulated_runs import MB
from tests.support.executor.simulated_runs import SimulatedRun as HandMade
from tests.support.lab.simulated_clusters import simulated_of
from tests.support.model.clusters import NO_FLOOR, brokers, ids, snapshot

CAPACITY = 1e9
WORK = SolveLimits(work=1.0)
CLUSTER = snapshot(
    brokers(6, racks="aabbcc", capacity=dict.fromkeys(range(1, 7), CAPACITY)),
    [(1, 3)] * 6 + [(2, 5)] * 2,
    [(1e7, 1e7)] * 6 + [(1e6, 1e6)] * 2,
    storage=StorageKind.REPLICATED,
)


@cache
def planned() -> Plan:
    return plan_of(CLUSTER)


def plan_of(of: Snapshot) -> Plan:
    plan = solve(of, NO_FLOOR, WORK).best
    assert plan is not None
    assert plan.moves
    return plan


def with_move(plan: Plan, to: tuple[int, ...]) -> Plan:
    """The plan, its first move going elsewhere, under a hash that fits."""
    first = plan.moves[0].model_copy(
        update={"replicas_after": ids(*to), "leader_after": BrokerId(to[0])}
    )
    return plan.model_copy(update={"moves": (first, *plan.moves[1:])}).seal()


def with_goals(plan: Plan, **changes: object) -> Plan:
    goals = plan.goals.model_copy(update=changes)
    return plan.model_copy(update={"goals": goals}).seal()


def with_state(plan: Plan, state: BrokerState) -> Plan:
    """The plan, were the first broker that takes a replica in another state."""
    taking = plan.moves[0].added[0]
    changed = [b.model_copy(update={"state": state}) if b.id == taking else b for b in plan.brokers]
    return plan.model_copy(update={"brokers": tuple(changed)}).seal()


def with_capacity(plan: Plan, capacity: float) -> Plan:
    changed = [
        b.model_copy(update={"capacity": {Resource.NET_IN.value: capacity}}) for b in plan.brokers
    ]
    return plan.model_copy(update={"brokers": tuple(changed)}).seal()


def with_loads(plan: Plan, **loads: float) -> Plan:
    """The plan, all loads of its moves being these."""
    moves = [
        m.model_copy(update={"leader_load": loads, "follower_load": loads, "bytes_to_copy": 0})
        for m in plan.moves
    ]
    return plan.model_copy(update={"moves": tuple(moves)}).seal()


FORGED: dict[str, Callable[[Plan], Plan]] = {
    r"rack spread: orders-\d would lie in 1 rack where": lambda p: with_move(p, (1, 2)),
    r"movable partitions: orders-\d stays: its topic is excluded": lambda p: with_goals(
        p, excluded_topics=Names(exact=("orders",))
    ),
    r"pins: orders-\d would lie on broker": lambda p: with_goals(
        p, pins=(Pin(topics=Names(exact=("orders",)), brokers=ids(1, 3)),)
    ),
    "budgets: .* replicas would move": lambda p: with_goals(p, budgets=Budgets(replica_moves=0)),
    "budgets: .* would be copied": lambda p: with_goals(p, budgets=Budgets(bytes=1)),
    "eligible brokers: .* which is excluded": lambda p: with_state(p, BrokerState.EXCLUDED),
    "replicas per broker: broker": lambda p: with_goals(p, replicas_per_broker=1),
    r"capacity: broker . would carry [\d.]+ MB/s of bytes in, [\d.]+ MB/s over its limit "
    "of 1 B/s": lambda p: with_capacity(p, 1.0),
    "it has no figures for broker 1; it has no figures for broker 2": lambda p: p.model_copy(
        update={"brokers": ()}
    ).seal(),
    "capacity: broker . would carry .* of bytes in": lambda p: with_capacity(
        with_state(p, BrokerState.DEAD), 1.0
    ),
    "it has no net_in of orders": lambda p: with_loads(p),
    "budgets: orders-. would copy 2.00 GB by its load on disk, not 0 B": lambda p: with_goals(
        with_loads(p, net_in=1.0, net_out=1.0, disk=1e9), budgets=Budgets(bytes=1)
    ),
    r"it has no figures for broker .; it": lambda p: p.model_copy(
        update={"brokers": p.brokers[:1]}
    ).seal(),
}


class SimulatedRun:
    """A simulated cluster and an executor on it."""

    def __init__(self, of: Snapshot, folder: Path) -> None:
        self.cluster = simulated_of(of)
        self.folder = folder
        self.executor = Executor(SimulatedAdmin(self.cluster, Faults()), timing=self.cluster.timing)

    @property
    def places(self) -> list[tuple[BrokerId, ...]]:
        result = sorted(self.cluster.partitions.items())
        return [tuple(p.replicas) for _, p in result]

    def execute(self, plan: Plan) -> RunState:
        return self.executor.execute(
            plan, journal_dir=self.folder, observe=lambda _: None, steering=Steering()
        ).state


@pytest.mark.parametrize("message", FORGED)
def test_a_resealed_plan_that_violates_a_rule_changes_nothing(message: str, tmp_path: Path) -> None:
    site = SimulatedRun(CLUSTER, tmp_path)
    before, forged = site.places, FORGED[message](planned())
    with pytest.raises(GuardrailRefused, match=f"violates rules of its own.*{message}"):
        site.execute(forged)
    with pytest.raises(GuardrailRefused, match=message):
        site.executor.dry_run(forged)
    assert site.places == before


def test_racks_come_from_the_cluster_and_not_from_the_plan(tmp_path: Path) -> None:
    forged = with_move(planned(), (1, 2))
    split = [b.model_copy(update={"rack": str(b.id)}) for b in forged.brokers]
    forged = forged.model_copy(update={"brokers": tuple(split)}).seal()
    with pytest.raises(GuardrailRefused, match="rack spread"):
        SimulatedRun(CLUSTER, tmp_path).execute(forged)


def test_the_real_plan_is_executed_and_rolled_back(tmp_path: Path) -> None:
    """Rules do not apply to a rollback, which restores the previous placement."""
    crowded = dataclasses.replace(
        CLUSTER,
        partitions=dataclasses.replace(
            CLUSTER.partitions, replica_broker=CLUSTER.partitions.replica_broker.copy()
        ),
    )
    columns = crowded.partitions
    columns.replica_broker[columns.replica_broker == 3] = 2
    site = SimulatedRun(crowded, tmp_path)
    before = site.places
    assert site.execute(plan_of(crowded)) is RunState.DONE
    assert site.places != before
    back, left = site.executor.plan_rollback(tmp_path, None)
    assert not left
    assert site.execute(back) is RunState.DONE
    assert sorted(map(sorted, site.places)) == sorted(map(sorted, before))


def test_minimum_leaders_are_not_judged_by_the_moves_alone(tmp_path: Path) -> None:
    """Partitions that stay are led, too, and the plan does not name them."""
    minimum = MinLeaders(topics=Names(prefix=("",)))
    plan = with_goals(planned(), min_leaders=(minimum,))
    assert {m.leader_after for m in plan.moves} < {b.id for b in plan.brokers}
    assert SimulatedRun(CLUSTER, tmp_path).execute(plan) is RunState.DONE


def test_a_plan_of_an_earlier_version_without_capacities_passes(tmp_path: Path) -> None:
    plan = planned()
    bare = [b.model_copy(update={"capacity": {}}) for b in plan.brokers]
    bare_moves: list[Move] = [
        m.model_copy(update={"leader_load": {}, "follower_load": {}}) for m in plan.moves
    ]
    update = {"brokers": tuple(bare), "moves": tuple(bare_moves)}
    old = plan.model_copy(update=update | {"schema_version": "1.1"}).seal()
    assert SimulatedRun(CLUSTER, tmp_path).execute(old) is RunState.DONE


def test_a_plans_claim_to_be_a_rollback_is_verified(tmp_path: Path) -> None:
    """A rollback must restore what the journal says, or the rules apply."""
    site = SimulatedRun(CLUSTER, tmp_path)
    assert site.execute(planned()) is RunState.DONE
    before = site.places
    back, _ = site.executor.plan_rollback(tmp_path, None)
    for forged in (
        with_move(back, (1, 2)),
        with_capacity(planned(), 1.0).model_copy(update={"limited_by": "what run 7 had moved"}),
    ):
        with pytest.raises(GuardrailRefused, match="violates rules of its own"):
            site.executor.dry_run(forged.seal(), tmp_path)
        with pytest.raises(GuardrailRefused, match="violates rules of its own"):
            site.execute(forged.seal())
    assert site.places == before
    assert site.executor.dry_run(with_capacity(back, 1.0), tmp_path)


def swap(folder: Path) -> tuple[HandMade, Plan]:
    """Broker 1 sends a partition of 100 MB/s and receives another; one of them fits."""
    at = HandMade(
        folder=folder,
        before={0: (1,), 1: (2,)},
        after={0: (3,), 1: (1,)},
        brokers=3,
        log_bytes=3000.0 * MB,
        limits=RunLimits(moves_in_flight=1, throttle_bytes_per_s=250 * MB),
    )
    load = {Resource.NET_IN.value: 100e6}
    moves = [
        m.model_copy(update={"leader_load": load, "follower_load": load}) for m in at.plan.moves
    ]
    changes = [
        BrokerChange(
            id=b,
            rack=None,
            state=BrokerState.ALIVE,
            before=load if b != 3 else {Resource.NET_IN.value: 0.0},
            after=load if b != 2 else {Resource.NET_IN.value: 0.0},
            deviation_before={},
            deviation_after={},
            replicas_before=int(b != 3),
            replicas_after=int(b != 2),
            capacity={Resource.NET_IN.value: 150e6},
        )
        for b in at.plan.live_brokers
    ]
    update = {"moves": tuple(moves), "brokers": tuple(changes)}
    return at, at.plan.model_copy(update=update).seal()


def test_a_resumed_run_is_checked_without_skipped_moves(tmp_path: Path) -> None:
    at, plan = swap(tmp_path)
    at.cluster.after(3.0, at.steering.abort)
    assert [m.state for m in at.run(plan).moves] == [MoveState.DROPPED, MoveState.PLANNED]
    at.reset_steering()
    report = at.resume()
    assert report.state is RunState.FAILED
    assert "capacity: broker 1 would carry 200 MB/s of bytes in" in report.reason
    assert at.placement == {0: ((1,), 1), 1: ((2,), 2)}
    assert at.is_clean


def test_the_rest_of_a_run_is_resumed_if_it_fits(tmp_path: Path) -> None:
    at, plan = swap(tmp_path)
    at.cluster.after(3.0, at.steering.stop)
    assert at.run(plan).state is RunState.STOPPED
    at.reset_steering()
    assert at.resume().state is RunState.DONE
    assert at.placement == {0: ((3,), 3), 1: ((1,), 1)}


def test_a_plan_without_any_figures_says_that_capacity_is_not_checked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = SimulatedRun(CLUSTER, tmp_path)
    site.executor.dry_run(planned())
    assert "not checked" not in caplog.text
    bare = with_loads(planned()).model_copy(update={"brokers": (), "levels": {}}).seal()
    site.executor.dry_run(bare)
    assert site.execute(bare) is RunState.DONE
    message = "The plan has no loads and no brokers, so neither capacity limits nor the"
    assert caplog.text.count(message) == 1
