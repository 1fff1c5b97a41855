"""What forbids a removal, and how close its plans come to the fewest bytes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from control.settings.solve_table import TASK_WORK, SolveTable, task_limits
from control.tasks.broker_task import BrokerTask, Operation, PhaseChange, TaskPhase
from control.tasks.removal import (
    bound_text,
    brokers_of,
    drained,
    plan_removal,
    refuse_conflicts,
    refuse_removal,
    removal_goals,
)
from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.errors import ConfigError, GuardrailRefused
from model.goals.effort import Effort
from model.goals.goals import Budgets, Goals, RackRule, SolveLimits
from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState, Resource, Snapshot, StorageKind
from solver.report.result import Result
from solver.solve import solve
from tests.support.model import clusters

GOALS = Goals()


def refusal(snapshot: Snapshot, *brokers: int, goals: Goals = GOALS) -> str:
    ids = tuple(map(BrokerId, brokers))
    with pytest.raises(GuardrailRefused) as refused:
        refuse_removal(drained(snapshot, ids), goals, ids)
    return str(refused.value)


def spread(racks: str = "abca", **states: BrokerState) -> Snapshot:
    members = clusters.brokers(len(racks), racks, states={int(b[1:]): s for b, s in states.items()})
    return clusters.snapshot(members, [(1, 2, 3), (2, 3, 4)], storage=StorageKind.REPLICATED)


# ---- which brokers


@pytest.mark.parametrize(
    ("ids", "racks", "words"),
    [
        ([9], [], "there is no broker 9; known: 1, 2, 3, 4"),
        ([3], [], "broker 3 is dead; start it, or create its replicas on other"),
        ([], ["z"], "rack 'z' does not exist; known: a, b, c"),
        ([], ["c"], "rack 'c' has no live broker; known: a, b, c"),
        ([], [], "no broker is named; give ids or --rack RACK"),
    ],
)
def test_brokers_that_cannot_be_meant_are_named(
    ids: list[int], racks: list[str], words: str
) -> None:
    members = clusters.brokers(4, "abca", states={3: BrokerState.DEAD})
    with pytest.raises(ConfigError) as refused:
        brokers_of(members, ids, racks)
    assert words in str(refused.value)


def test_ids_and_racks_name_each_broker_once() -> None:
    assert brokers_of(clusters.brokers(4, "abca"), [4, 2, 4], ["a"]) == [1, 2, 4]


def test_contradictory_tasks_are_refused_by_name() -> None:
    def task(name: str, phase: TaskPhase) -> BrokerTask:
        return BrokerTask(
            task_id=name,
            cluster_id="c",
            operation=Operation.REMOVE,
            brokers=(BrokerId(3), BrokerId(4)),
            by="ada",
            phases=(PhaseChange(phase=phase, at_ms=1),),
        )

    over = [task("a", TaskPhase.DONE), task("b", TaskPhase.CANCELLED)]
    refuse_conflicts(over, [BrokerId(4)])
    moving = task("remove-3-4", TaskPhase.MOVING)
    refuse_conflicts([moving], [BrokerId(2)])
    refuse_conflicts([moving], [BrokerId(4)], but="remove-3-4")
    with pytest.raises(GuardrailRefused) as refused:
        refuse_conflicts([*over, moving], [BrokerId(2), BrokerId(4)])
    assert str(refused.value).startswith(
        "task remove-3-4 (remove brokers 3, 4, moving) names broker 4, too; finish it with "
        "plimsoll task resume remove-3-4, or cancel it with"
    )


# ---- what forbids it


def test_the_last_broker_is_not_removed() -> None:
    alone = clusters.snapshot(clusters.brokers(1), [(1,)])
    assert refusal(alone, 1).startswith("cannot remove broker 1: no other broker may take")
    excluded = spread(b1=BrokerState.EXCLUDED, b2=BrokerState.CORDONED, b3=BrokerState.DRAINING)
    assert "no other broker may take replicas" in refusal(excluded, 4)


def test_more_replicas_than_remaining_brokers_are_refused() -> None:
    three = clusters.snapshot(clusters.brokers(3), [(1, 2), (1, 2, 3)])
    words = refusal(three, 3)
    assert "orders-1 has 3 replicas, and only 2 brokers that may take them would remain (1, 2)" in (
        words
    )
    excluded = spread(b1=BrokerState.EXCLUDED)
    assert "orders-1 has 3 replicas, and only 2 brokers" in refusal(excluded, 4)
    refuse_removal(drained(spread(), [BrokerId(4)]), GOALS, [BrokerId(4)])


def test_a_rack_whose_brokers_all_leave_is_refused_where_topics_need_it() -> None:
    state = spread("abcab")
    words = refusal(state, 3)
    assert (
        "rack c would have no broker left, and orders-0 (and 1 more) would lie in 2 racks "
        "instead of 3"
    ) in words
    off = Goals(rack_rule=RackRule.OFF)
    refuse_removal(drained(state, [BrokerId(3)]), off, [BrokerId(3)])
    # Two replicas need two racks, which remain.
    members = clusters.brokers(5, "abcab")
    two = clusters.snapshot(members, [(1, 3), (2, 3)])
    refuse_removal(drained(two, [BrokerId(3)]), GOALS, [BrokerId(3)])


def test_a_partition_without_a_leader_is_named() -> None:
    state = clusters.snapshot(clusters.brokers(4), [(4, 1), (1, 2)], leaders=[-1, 1])
    assert "orders-0 has no leader to copy from" in refusal(state, 4)


def test_too_little_room_is_refused_with_the_figures() -> None:
    sized = clusters.snapshot(
        [_disk(b, 1000.0) for b in clusters.brokers(3)],
        [(3,), (3,), (1,), (2,)],
        storage=StorageKind.REPLICATED,
        local_bytes=[300, 300, 600, 600],
    )
    header = sized.header.model_copy(update={"resources": (Resource.DISK,)})
    loads = sized.partitions.local_bytes.astype(float)[:, None]
    columns = replace(sized.partitions, loads=loads, measured=np.ones_like(loads, np.bool_))
    state = Snapshot(header, columns)
    words = refusal(state, 3)
    assert "have 500 B of disk left up to their limit of 85 %, and 600 B would have to" in words
    roomy = Goals(capacity_limits={Resource.DISK: 1.0})
    refuse_removal(drained(state, [BrokerId(3)]), roomy, [BrokerId(3)])


def _disk(broker: Broker, size: float) -> Broker:
    return broker.model_copy(update={"capacity": {Resource.DISK: size}})


# ---- its plans


def find(snapshot: Snapshot, goals: Goals) -> Result:
    return solve(snapshot, goals, SolveLimits(work=1.0))


def test_partitions_that_only_a_dead_broker_forces_are_left_alone() -> None:
    members = clusters.brokers(6, states={5: BrokerState.DEAD})
    state = clusters.snapshot(
        members, [(1, 5), (4, 1), (2, 3)], storage=StorageKind.REPLICATED, leaders=[1, 4, 2]
    )
    found = plan_removal(state, (BrokerId(4),), GOALS, find)
    assert [m.partition for m in found.plan.moves if m.added] == [1]
    assert found.entry.bytes_to_copy == found.entry.least_bytes == 100


def test_budgets_leave_the_rest_to_the_next_plan() -> None:
    state = clusters.snapshot(
        clusters.brokers(4), [(4, 1), (4, 2), (4, 3)], storage=StorageKind.REPLICATED
    )
    goals = Goals(budgets=Budgets(replica_moves=2))
    leaving = drained(state, [BrokerId(4)])
    found = removal_goals(leaving, goals, [BrokerId(4)])
    assert (found.replicas, found.deferred, found.least_bytes) == (3, 1, 200)
    planned = plan_removal(state, (BrokerId(4),), goals, find)
    assert "budgets leave 1 partition to the next plan of the task" in planned.note


@pytest.mark.parametrize("load", [(0.0, 0.0), (1.0, 1.0)], ids=["no traffic", "below the floor"])
def test_replicas_are_spread_by_number_where_no_load_counts(load: tuple[float, float]) -> None:
    places = [(5, 1 + n % 4) for n in range(24)]
    state = clusters.snapshot(
        clusters.brokers(5), places, [load] * len(places), storage=StorageKind.REPLICATED
    )
    found = plan_removal(state, (BrokerId(5),), GOALS, find)
    held = Counter(broker for move in found.plan.moves for broker in move.replicas_after)
    assert held == {1: 12, 2: 12, 3: 12, 4: 12}
    assert found.note.endswith("no plan empties broker 5 with fewer bytes")


def test_a_limit_on_replicas_decides_where_they_go() -> None:
    members = clusters.brokers(4, "aabb")
    state = clusters.snapshot(members, [(1, 4), (2, 4)], storage=StorageKind.REPLICATED)
    found = plan_removal(state, (BrokerId(4),), Goals(replicas_per_broker=2), find)
    assert found.entry.bytes_to_copy == found.entry.least_bytes
    assert found.note.endswith("no plan empties broker 4 with fewer bytes")


def test_the_bound_is_stated_with_its_figures() -> None:
    assert bound_text(100, 100, [4]) == "no plan empties broker 4 with fewer bytes"
    assert bound_text(110, 100, [4, 5]) == (
        "no plan empties brokers 4, 5 with fewer than 100 B; this one copies 10 % more, since "
        "rules or limits need further moves"
    )
    assert bound_text(None, 100, [4]) == bound_text(100, None, [4]) == ""


def test_a_search_budget_that_is_set_takes_precedence() -> None:
    assert task_limits(SolveTable(work=7.0), 5_000, 50).work == 7.0
    assert task_limits(SolveTable(effort=Effort.BEST), 5_000, 50).work > 100.0


def test_larger_clusters_get_a_larger_search_budget() -> None:
    sizes = ((1, 1), (5_000, 50), (5_000, 100), (40_000, 200), (900_000, 215))
    works = [task_limits(SolveTable(), *size).work for size in sizes]
    assert works == [0.25, 0.25, 0.5, TASK_WORK, TASK_WORK]


@pytest.mark.search
def test_one_of_fifty_brokers_is_planned_away_with_the_fewest_bytes() -> None:
    shape = ClusterShape(brokers=50, partitions=5000, rf=3, racks=5, hot=False, young=False)
    name = ClusterName(cluster_id="c", taken_at_ms=10**12)
    state = cluster(shape, StorageKind.REPLICATED, name, np.random.default_rng(3))
    broker = state.header.brokers[7].id

    def limited(snapshot: Snapshot, goals: Goals) -> Result:
        found = solve(snapshot, goals, task_limits(SolveTable(), 5_000, 50))
        # Work units are about seconds of one core.
        assert found.work < 1.0
        return found

    found = plan_removal(state, (broker,), GOALS, limited)
    assert found.entry.bytes_to_copy is not None
    assert found.entry.least_bytes is not None
    assert found.entry.bytes_to_copy <= 1.02 * found.entry.least_bytes
    assert found.plan.objective < found.plan.objective_before
