"""Plans that move replicas out of failed log directories."""

import random

import pytest

from control.planning.staging import staged
from model.evaluate import evaluate
from model.goals.goals import Budgets, Goals
from model.plan.proposal import Proposal
from model.plan.unplaceable import placeless, placeless_warnings, with_placeless_deferred
from model.snapshot.file import as_document, of_document
from model.snapshot.snapshot import Snapshot
from solver.solve import solve
from tests.support.control.loop_parts import WORK
from tests.support.model.clusters import ids, words
from tests.support.model.failed_disks import with_failed_disks

GOALS = Goals()
FOUR = with_failed_disks(4, [(1, 2), (2, 3), (3, 1), (3,), (1, 4)], {(1, 3), (2, 3), (3, 3)})
"""Broker 3 has lost three replicas, of which that of row 3 was the only one."""


def test_replicas_leave_a_failed_disk_where_there_is_something_to_copy() -> None:
    plan = solve(FOUR, GOALS, WORK).best
    assert plan is not None
    after = {m.partition: m.replicas_after for m in plan.moves}
    assert all(3 not in after[row] for row in (1, 2))
    assert 3 not in after
    found = next(m.reason for m in plan.moves if m.partition == 1)
    assert found == "leaves /b of broker 3, which has failed"
    assert evaluate(FOUR, GOALS, plan.moves).violations == ()


def test_a_plan_that_leaves_replicas_on_a_failed_disk_is_rejected() -> None:
    kept = words(Proposal(FOUR, GOALS, ()), "failed directories")
    assert kept == [
        "orders-1 would stay in /b of broker 3, which has failed",
        "orders-2 would stay in /b of broker 3, which has failed",
    ]


@pytest.mark.parametrize("seed", range(7))
def test_every_plan_empties_failed_disks_and_keeps_every_rule(seed: int) -> None:
    rng = random.Random(seed)
    brokers = rng.randint(4, 7)
    places = [
        tuple(rng.sample(range(1, brokers + 1), rng.randint(1, 3)))
        for _ in range(rng.randint(5, 40))
    ]
    lost = {
        (row, b) for row, place in enumerate(places) for b in place if b <= 2 and rng.random() < 0.5
    }
    seen = with_failed_disks(brokers, places, lost)
    goals = with_placeless_deferred(GOALS, seen)
    plan = solve(seen, goals, WORK).best
    assert plan is not None
    assert evaluate(seen, goals, plan.moves).violations == ()
    assert plan.bound <= plan.objective + 1e-6 * abs(plan.objective)
    after = {m.partition: m.replicas_after for m in plan.moves}
    stays = placeless(seen, GOALS)
    for row, broker in lost:
        led = seen.partitions.leader[row] >= 0
        assert not led or row in stays or broker not in after[row]


def test_replicas_that_no_other_broker_may_take_stay_and_are_named() -> None:
    seen = with_failed_disks(3, [(1, 2, 3), (1, 2)], {(0, 3), (1, 2)})
    goals = with_placeless_deferred(GOALS, seen)
    assert "orders-0" in "".join(placeless_warnings(seen, goals))
    plan = solve(seen, goals, WORK).best
    assert plan is not None
    assert {m.partition: set(m.replicas_after) for m in plan.moves} == {1: {1, 3}}


def test_the_budgets_and_the_trigger_limit_the_repair() -> None:
    one = GOALS.model_copy(update={"budgets": Budgets(replica_moves=1)})
    goals, over = staged(FOUR, one)
    assert over == 1
    plan = solve(FOUR, goals, WORK).best
    assert plan is not None
    assert len(plan.moves) == 1
    kept, over = staged(FOUR, GOALS, repair_dirs=False)
    assert over == 0
    assert words(Proposal(FOUR, kept, ()), "failed directories") == []
    assert {stay.partitions for stay in kept.deferred} == {(1, 2)}


def test_a_failed_disk_is_read_back_from_a_snapshot_file() -> None:
    document = as_document(FOUR)
    assert document["schema_version"] == "1.5"
    again: Snapshot = of_document(document)
    assert again.in_failed_dir.tolist() == FOUR.in_failed_dir.tolist()
    assert FOUR.in_failed_dir.sum() == 3
    whole = with_failed_disks(2, [(1, 2)], ())
    assert as_document(whole)["schema_version"] == "1.4"
    assert ids(3) == tuple(b.id for b in again.header.brokers if any(d.failed for d in b.log_dirs))
