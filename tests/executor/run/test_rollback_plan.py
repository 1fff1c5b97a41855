"""The rollback plan of a run, made from the observed state of its moves."""

from dataclasses import replace
from pathlib import Path

import pytest

from executor.journal.run_history import PastRun, past_run
from executor.platforms.platform import MoveStage, ObservedMove
from executor.run.rollback_plan import plan_rollback
from model.errors import GuardrailRefused
from model.plan.plan import Move
from model.run import MoveProgress, MoveState
from model.snapshot.snapshot import StorageKind
from tests.executor.journal.test_left_settings import site
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move, plan, view
from tests.support.executor.simulated_runs import Killed

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
        last_at_ms=NOW_MS - 30_000,
        throttled=None,
        suspended_balancer=None,
        lowered_segments=None,
        cancelling=frozenset(),
        moves={m.id: replace(done, move=m) for m in moves},
    )


def test_only_completed_moves_are_rolled_back_in_reverse_order() -> None:
    after = ids([3, 2])
    result = {
        MOVES[0].id: ObservedMove(stage=MoveStage.DONE, view=view(MOVES[0], after)),
        MOVES[1].id: ObservedMove(stage=MoveStage.NOT_BEGUN, view=view(MOVES[1])),
        MOVES[2].id: ObservedMove(stage=MoveStage.LOST, reason="orders-2 is on [9]"),
        MOVES[3].id: ObservedMove(stage=MoveStage.ARRIVED, view=view(MOVES[3], after, leader=2)),
    }
    back, left = plan_rollback(past(MOVES), result, ids([1, 2, 3]), NOW_MS)
    assert [(m.partition, m.leader_before) for m in back.moves] == [(3, 2), (0, 3)]
    assert {m.replicas_before for m in back.moves} == {after}
    assert {(m.replicas_after, m.leader_after) for m in back.moves} == {(ids([1, 2]), 1)}
    assert left == ["orders-2 is on [9]"]
    assert back.hash != plan(MOVES).hash


def test_a_move_in_progress_is_not_reversed() -> None:
    moving = view(MOVES[0], (3, 2, 1), leader=1)
    result = {MOVES[0].id: ObservedMove(stage=MoveStage.MOVING, view=moving)}
    with pytest.raises(GuardrailRefused, match=r"orders-0 is still being moved"):
        plan_rollback(past(MOVES), result, ids([1, 2, 3]), NOW_MS)


@pytest.mark.parametrize(
    ("state", "alive"), [(MoveState.DONE, (1, 2, 3)), (MoveState.ISSUED, (1, 2))]
)
def test_moves_to_a_broker_that_died_can_be_rolled_back(
    state: MoveState, alive: tuple[int, ...]
) -> None:
    """The journal has the end of the move, or only dead brokers lag."""
    run = past(MOVES[:1])
    run.moves[MOVES[0].id] = replace(run.moves[MOVES[0].id], state=state)
    lagging = view(MOVES[0], (3, 2), in_sync=(2,), leader=2)
    result = {MOVES[0].id: ObservedMove(stage=MoveStage.MOVING, view=lagging)}
    back, left = plan_rollback(run, result, ids(alive), NOW_MS)
    (undoing,) = back.moves
    assert (undoing.replicas_before, undoing.leader_before) == ((3, 2), 2)
    assert undoing.replicas_after == (1, 2)
    assert left == []


def test_a_replica_still_copied_by_a_live_broker_is_not_rolled_back() -> None:
    run = past(MOVES[:1])
    run.moves[MOVES[0].id] = replace(run.moves[MOVES[0].id], state=MoveState.ISSUED)
    copying = view(MOVES[0], (3, 2), in_sync=(2,), leader=2)
    result = {MOVES[0].id: ObservedMove(stage=MoveStage.MOVING, view=copying)}
    with pytest.raises(GuardrailRefused, match=r"orders-0 is still being moved"):
        plan_rollback(run, result, ids([1, 2, 3]), NOW_MS)


def test_a_rollback_on_shared_storage_waits_for_a_minute() -> None:
    shared = [move(0, (1,), (2,), storage=StorageKind.SHARED)]
    done = view(shared[0], (2,))
    result = {shared[0].id: ObservedMove(stage=MoveStage.DONE, view=done)}
    with pytest.raises(GuardrailRefused, match=r"Roll back in 50 s"):
        plan_rollback(past(shared), result, ids([1, 2]), NOW_MS)
    back, _ = plan_rollback(past(shared), result, ids([1, 2]), NOW_MS + 50_000)
    assert back.moves[0].replicas_after == ids([1])


def test_a_halfway_move_is_rolled_back_from_there() -> None:
    both = [move(0, (1, 2), (3, 4))]
    halfway = view(both[0], (1, 4))
    result = {both[0].id: ObservedMove(stage=MoveStage.HALFWAY, view=halfway)}
    back, _ = plan_rollback(past(both), result, ids([1, 2, 3, 4]), NOW_MS)
    assert (back.moves[0].replicas_before, back.moves[0].leader_before) == ((1, 4), 1)
    assert back.moves[0].replicas_after == (1, 2)


def test_replicas_return_to_their_previous_directories() -> None:
    reported = move(0, (1, 2), (3, 2), dirs_before=("/a", "/b"), dirs_after=("/c", "/c"))
    done = ObservedMove(
        stage=MoveStage.DONE, view=view(reported, (3, 2)), log_dirs=("/c", "/elsewhere")
    )
    back, _ = plan_rollback(past([reported]), {reported.id: done}, ids([1, 2, 3]), NOW_MS)
    assert back.moves[0].log_dirs_before == ("/c", "/elsewhere")
    assert back.moves[0].log_dirs_after == ("/a", "/b")


@pytest.mark.parametrize("change", [0, 3, 6, 9])
def test_a_killed_rollback_is_finished_by_default(tmp_path: Path, change: int) -> None:
    at = site(tmp_path)
    at.run()
    at.cluster.advance(100.0)
    back, _ = at.executor().plan_rollback(tmp_path, None)
    at.kill_at(change, made=True)
    with pytest.raises(Killed):
        at.run(back)
    at.stop_killing()
    cut = past_run(tmp_path, CLUSTER_ID).run_id
    at.cluster.advance(100.0)
    with pytest.raises(GuardrailRefused, match=f"{cut} is a rollback that has not"):
        at.executor().plan_rollback(tmp_path, None)

    at.resume()
    assert {n: list(of) for n, (of, _) in at.placement.items()} == {
        n: list(of) for n, of in at.before.items()
    }
    assert at.is_clean
    # A rollback that has finished is a run like any other.
    again, _ = at.executor().plan_rollback(tmp_path, None)
    assert len(again.moves) == len(at.before)


def test_a_killed_rollback_can_be_undone_by_its_id(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.run()
    at.cluster.advance(100.0)
    back, _ = at.executor().plan_rollback(tmp_path, None)
    at.kill_at(9, made=True)
    with pytest.raises(Killed):
        at.run(back)
    at.stop_killing()
    at.cluster.advance(100.0)
    cut = past_run(tmp_path, CLUSTER_ID).run_id
    again, _ = at.executor().plan_rollback(tmp_path, cut)
    assert again.moves
