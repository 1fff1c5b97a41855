"""The plan that undoes a run, from what the cluster shows of its moves."""

from dataclasses import replace

import pytest

from executor.back import plan_back
from executor.dialect import Progress, Stage
from executor.history import PastRun
from model.errors import GuardrailRefused
from model.plan import Move
from model.run import MoveProgress, MoveState
from model.snapshot import StorageKind
from tests.executor.plans import ids, move, plan

NOW_MS = 1_800_000_000_000
MOVES = [move(p, (1, 2), (3, 2)) for p in range(4)]


def past(moves: list[Move]) -> PastRun:
    done = MoveProgress(
        move=moves[0],
        state=MoveState.DONE,
        issued_at_ms=NOW_MS - 20_000,
        done_at_ms=NOW_MS - 10_000,
    )
    return PastRun(
        run_id="run-1",
        plan=plan(moves),
        started_at_ms=NOW_MS - 30_000,
        moves={m.id: replace(done, move=m) for m in moves},
    )


def test_what_arrived_goes_back_last_first_and_nothing_else() -> None:
    stages = (Stage.DONE, Stage.NOT_BEGUN, Stage.LOST, Stage.ARRIVED)
    found = {
        m.id: Progress(stage=stage, reason="orders-2 is on [9]")
        for m, stage in zip(MOVES, stages, strict=True)
    }
    back, left = plan_back(past(MOVES), found, ids([1, 2, 3]), NOW_MS)
    assert [m.partition for m in back.moves] == [3, 0]
    assert {m.replicas_before for m in back.moves} == {ids([3, 2])}
    assert {m.replicas_after for m in back.moves} == {ids([1, 2])}
    assert {(m.leader_before, m.leader_after) for m in back.moves} == {(3, 1)}
    assert left == ["orders-2 is on [9]"]
    assert back.hash != plan(MOVES).hash


def test_what_still_moves_is_not_turned_round() -> None:
    found = {MOVES[0].id: Progress(stage=Stage.MOVING)}
    with pytest.raises(GuardrailRefused, match=r"orders-0 is still being moved"):
        plan_back(past(MOVES), found, ids([1, 2, 3]), NOW_MS)


def test_shared_storage_rests_for_a_minute() -> None:
    shared = [move(0, (1,), (2,), storage=StorageKind.SHARED)]
    found = {shared[0].id: Progress(stage=Stage.DONE)}
    with pytest.raises(GuardrailRefused, match=r"Roll back in 50 s"):
        plan_back(past(shared), found, ids([1, 2]), NOW_MS)
    back, _ = plan_back(past(shared), found, ids([1, 2]), NOW_MS + 50_000)
    assert back.moves[0].replicas_after == ids([1])
