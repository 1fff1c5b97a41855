"""A broker takes over the replicas of another, one for one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.removal import drained
from control.tasks.replacement import exchanged, refuse_replacement
from control.tasks.task_steps import RAN
from model.errors import GuardrailRefused
from model.goals.goals import Budgets, Goals
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Resource, Snapshot, StorageKind
from tests.support.control.simulated_tasks import SimulatedTask, killed_tasks
from tests.support.model import clusters

PLACES = [(4, 1), (1, 4), (2, 3), (4, 2), (3, 4)]
AFTER = [(5, 1), (1, 5), (2, 3), (5, 2), (3, 5)]


def site(folder: Path, **more: object) -> SimulatedTask:
    chosen = {
        "operation": Operation.REPLACE,
        "places": PLACES,
        "brokers": 5,
        "onto": 5,
        "racks": "abcdd",
        **more,
    }
    return SimulatedTask(folder=folder, **chosen)  # type: ignore[arg-type]


def lists(at: SimulatedTask) -> list[tuple[int, ...]]:
    return [tuple(map(int, p.replicas)) for _, p in sorted(at.cluster.partitions.items())]


def leaders(at: SimulatedTask) -> list[int]:
    return [int(p.leader) for _, p in sorted(at.cluster.partitions.items())]


@pytest.mark.parametrize("storage", [StorageKind.REPLICATED, StorageKind.TIERED])
def test_replicas_go_one_for_one_to_the_same_places(tmp_path: Path, storage: StorageKind) -> None:
    at = site(tmp_path, storage=storage)
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    (plan,) = task.plans
    assert (plan.moves, plan.replicas, plan.closed) == (4, 4, RAN)
    assert plan.bytes_to_copy == plan.least_bytes
    assert lists(at) == AFTER
    assert leaders(at) == [held[0] for held in AFTER]
    assert at.states == {4: BrokerState.DRAINING}
    kept = at.files.read_plan(task, plan.plan_hash)
    assert {m.reason for m in kept.moves} == {"broker 5 replaces broker 4"}


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_killed_at_any_change_the_replacement_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    for cut in killed_tasks(tmp_path, site, monkeypatch, made=made):
        task = cut.continued()
        assert task.phase is TaskPhase.DONE
        assert task.onto == 5
        assert lists(cut) == AFTER
        assert leaders(cut) == [held[0] for held in AFTER]
        assert not any(cut.cluster.topic_configs.values())


def test_budgets_spread_the_replacement_over_plans(tmp_path: Path) -> None:
    at = site(tmp_path, goals=Goals(budgets=Budgets(replica_moves=3)))
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    assert [plan.moves for plan in task.plans] == [3, 1]
    assert lists(at) == AFTER


def refusal(racks: str, places: list[tuple[int, ...]], new: int = 5, **states: BrokerState) -> str:
    found = {int(b[1:]): s for b, s in states.items()}
    members = clusters.brokers(len(racks), racks, states=found)
    state = clusters.snapshot(members, places, storage=StorageKind.REPLICATED)
    with pytest.raises(GuardrailRefused) as refused:
        refuse_replacement(drained(state, [BrokerId(4)]), Goals(), BrokerId(4), BrokerId(new))
    return str(refused.value)


def test_another_rack_is_refused_where_the_rule_would_be_broken() -> None:
    words = refusal("abcda", [(4, 1), (2, 4)])
    assert words.startswith("cannot replace broker 4 with 5: orders-0 would lie in 1 rack where 2")


def test_a_partition_in_too_few_racks_stays_in_them_within_a_rack() -> None:
    members = clusters.brokers(5, "abcaa")
    state = clusters.snapshot(members, [(4, 1), (2, 4)], storage=StorageKind.REPLICATED)
    leaving = drained(state, [BrokerId(4)])
    _, places = refuse_replacement(leaving, Goals(), BrokerId(4), BrokerId(5))
    assert places == {0: ((5, 1), 5), 1: ((2, 5), 2)}


def test_a_disk_that_is_too_small_is_refused() -> None:
    sizes = {4: 1000.0, 5: 300.0}
    members = [
        b.model_copy(update={"capacity": {Resource.DISK: sizes.get(b.id, 1000.0)}})
        for b in clusters.brokers(5, "abcdd")
    ]
    state = clusters.snapshot(
        members, [(4,), (4,), (1,)], storage=StorageKind.REPLICATED, local_bytes=[200, 200, 200]
    )
    header = state.header.model_copy(update={"resources": (Resource.DISK,)})
    loads = state.partitions.local_bytes.astype(float)[:, None]
    columns = replace(state.partitions, loads=loads, measured=np.ones_like(loads, np.bool_))
    leaving = drained(Snapshot(header, columns), [BrokerId(4)])
    with pytest.raises(GuardrailRefused) as refused:
        refuse_replacement(leaving, Goals(), BrokerId(4), BrokerId(5))
    assert str(refused.value).startswith("cannot replace broker 4 with 5: broker 5")
    assert "disk" in str(refused.value)


def test_a_partition_that_both_hold_is_named() -> None:
    words = refusal("abcdd", [(4, 1), (4, 5), (5, 4)])
    assert "broker 5 holds a replica of orders-1 (and 1 more) already" in words
    assert "plimsoll broker remove 4" in words


@pytest.mark.parametrize(
    "state", [BrokerState.DEAD, BrokerState.EXCLUDED, BrokerState.DEMOTED, BrokerState.CORDONED]
)
def test_a_broker_that_takes_nothing_replaces_none(state: BrokerState) -> None:
    assert f"broker 5 is {state} and takes no new replicas" in refusal("abcdd", [(4, 1)], b5=state)


def test_a_broker_does_not_replace_itself() -> None:
    assert "name two brokers" in refusal("abcdd", [(4, 1)], new=4)


def test_a_follower_that_leads_hands_over_to_the_preferred_replica() -> None:
    members = clusters.brokers(5, "abcdd")
    state = clusters.snapshot(members, [(1, 4), (4, 1), (2, 4)], leaders=[4, 1, 2])
    old, new = BrokerId(4), BrokerId(5)
    assert exchanged(state, 0, old, new) == ((1, 5), 1)
    assert exchanged(state, 1, old, new) == ((5, 1), 1)
    assert exchanged(state, 2, old, new) == ((2, 5), 2)
