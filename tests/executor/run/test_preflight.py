"""A plan starts only on the cluster it was made for."""

import dataclasses

import pytest

from executor.client.responses import PartitionView
from executor.run.preflight import Observed, check
from model.errors import GuardrailRefused, PlanOutdated
from model.ids import TopicName
from model.plan.plan import Move
from model.plan.replication_change import ReplicationChange
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import ids, move, observed, plan, view

MOVE = move(7, (2,), (3,))
WIDE = move(8, (1, 2), (3, 2))
PLAN = plan([MOVE, WIDE])


def test_the_cluster_as_planned_passes() -> None:
    check(PLAN, observed(PLAN))


def test_another_cluster_is_refused_by_its_id() -> None:
    other = plan([MOVE], cluster_id="cluster-two")
    with pytest.raises(GuardrailRefused, match="cluster-two, but this is cluster-one"):
        check(other, observed(other))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (view(MOVE, (3,)), r"orders-7 is on \[3\], the plan expects \[2\]"),
        (view(WIDE, (2, 1)), r"orders-8 is on \[2, 1\], the plan expects \[1, 2\]"),
        (view(WIDE, leader=2), "orders-8 is led by broker 2, the plan expects broker 1"),
        (view(MOVE, leader=-1), "orders-7 is led by nobody"),
        (view(MOVE, topic_id="new"), "orders was deleted and created again"),
    ],
)
def test_a_partition_that_drifted_is_named(result: PartitionView, message: str) -> None:
    with pytest.raises(PlanOutdated, match=message):
        check(PLAN, observed(PLAN, result))


@pytest.mark.parametrize("dirs", [(), ("/a", "/b")])
def test_a_move_that_changes_nothing_is_named(dirs: tuple[str, ...]) -> None:
    """It was sent, and then taken for someone else's move."""
    idle = plan([MOVE, move(8, (1, 2), (1, 2), dirs_before=dirs, dirs_after=dirs)])
    message = r"its move of orders-8 changes nothing: replicas \[1, 2\], led by broker 1, before"
    with pytest.raises(GuardrailRefused, match=message):
        check(idle, observed(idle))


@pytest.mark.parametrize(
    "changing",
    [
        move(8, (1, 2), (2, 1)),
        move(8, (1, 2), (1, 2), leader_before=2),
        move(8, (1, 2), (1, 2), dirs_before=("/a", "/b"), dirs_after=("/a", "/c")),
    ],
)
def test_a_move_of_a_leader_or_directory_changes_something(changing: Move) -> None:
    assert not changing.changes_nothing


def test_at_most_five_differences_are_listed() -> None:
    many = plan([move(i, (2,), (3,)) for i in range(8)])
    drifted = [view(m, (1,)) for m in many.moves]
    with pytest.raises(PlanOutdated, match=r"orders-4 is on .*; and 3 more\. Plan"):
        check(many, observed(many, *drifted))


def test_a_deleted_partition_is_named() -> None:
    seen = dataclasses.replace(observed(PLAN), partitions={})
    with pytest.raises(PlanOutdated, match="orders-7 does not exist"):
        check(PLAN, seen)


def test_a_topic_with_another_storage_kind_is_named() -> None:
    seen = dataclasses.replace(observed(PLAN), storage={MOVE.topic: StorageKind.TIERED})
    with pytest.raises(PlanOutdated, match="orders is tiered, the plan took it for re"):
        check(PLAN, seen)


@pytest.mark.parametrize(
    ("alive", "message"),
    [((1, 2), "broker 3 is dead or fenced"), ((1, 2, 3, 4), "broker 4 is new")],
)
def test_brokers_that_came_or_went_are_named(alive: tuple[int, ...], message: str) -> None:
    with pytest.raises(PlanOutdated, match=message):
        check(PLAN, observed(PLAN, alive=alive))


def with_reassignment() -> Observed:
    listed = {move(3).id: ids([9])}
    return dataclasses.replace(observed(PLAN), reassignments=listed)


def test_any_reassignment_is_waited_for() -> None:
    with pytest.raises(GuardrailRefused, match=r"orders-3 is being moved to \[9\] by s"):
        check(PLAN, with_reassignment())


def test_a_reassignment_of_an_earlier_run_names_that_run() -> None:
    with pytest.raises(GuardrailRefused, match=r"orders-3 is still being .* run run-1"):
        check(PLAN, with_reassignment(), {move(3).id: "run-1"})


def test_a_target_that_was_dead_when_planned_is_refused() -> None:
    to_dead = plan([MOVE], live=(1, 2))
    with pytest.raises(GuardrailRefused, match="broker 3, where orders-7 goes, is dead"):
        check(to_dead, observed(to_dead, alive=(1, 2)))


def test_a_partition_that_was_offline_when_planned_is_refused() -> None:
    leaderless = plan([move(7, (2,), (3,), leader_before=-1)])
    with pytest.raises(GuardrailRefused, match="orders-7 is offline"):
        check(leaderless, observed(leaderless))


def test_the_replication_factor_never_changes_unasked() -> None:
    wider = plan([move(7, (2,), (3, 2))])
    with pytest.raises(GuardrailRefused, match="replication factor of orders-7 from 1"):
        check(wider, observed(wider))


def resizing(before: int, after: int) -> ReplicationChange:
    return ReplicationChange(topic=TopicName("orders"), before=before, after=after)


def test_the_replication_factor_changes_where_the_plan_says_so() -> None:
    wider = plan([move(7, (2,), (2, 3))], replication=[resizing(1, 2)])
    check(wider, observed(wider))


@pytest.mark.parametrize(
    ("before", "after", "asked", "reason"),
    [
        ((2,), (2, 3, 1), (1, 2), "would have 3 replicas, the plan asks for 2"),
        ((2,), (3, 1), (1, 2), "would exchange replicas"),
        ((2, 1, 3), (2, 1), (1, 2), "has 3 replicas, the plan expects 1"),
    ],
)
def test_no_more_replicas_change_than_the_plan_says(
    before: tuple[int, ...], after: tuple[int, ...], asked: tuple[int, int], reason: str
) -> None:
    other = plan([move(7, before, after)], replication=[resizing(*asked)])
    with pytest.raises(GuardrailRefused, match=reason):
        check(other, observed(other))


def test_fewer_replicas_than_must_be_in_sync_are_refused_by_name() -> None:
    fewer = plan([move(7, (1, 2, 3), (1, 2))], replication=[resizing(3, 2)])
    seen = observed(fewer)
    check(fewer, dataclasses.replace(seen, min_in_sync={TopicName("orders"): 2}))
    with pytest.raises(GuardrailRefused, match=r"min\.insync\.replicas of orders is 3"):
        check(fewer, dataclasses.replace(seen, min_in_sync={TopicName("orders"): 3}))


def test_no_replica_is_removed_while_one_that_stays_is_not_in_sync() -> None:
    fewer = plan([move(7, (1, 2, 3), (1, 2))], replication=[resizing(3, 2)])
    behind = {MOVE.id: view(fewer.moves[0], in_sync=(1, 3))}
    with pytest.raises(GuardrailRefused, match="broker 2, whose replica of orders-7 is to stay"):
        check(fewer, dataclasses.replace(observed(fewer), partitions=behind))
