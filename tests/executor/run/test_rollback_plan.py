"""The plan that undoes a run, from what the cluster shows of its moves."""

from dataclasses import replace
from pathlib import Path

import pytest

from executor.journal.run_history import PastRun, past_run
from executor.platforms.platform import Progress, Stage
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
        stood_down=None,
        shortened=None,
        cancelling=frozenset(),
        moves={m.id: replace(done, move=m) for m in moves},
    )


def test_what_arrived_goes_back_last_first_and_nothing_else() -> None:
    after = ids([3, 2])
    found = {
        MOVES[0].id: Progress(stage=Stage.DONE, view=view(MOVES[0], after)),
        MOVES[1].id: Progress(stage=Stage.NOT_BEGUN, view=view(MOVES[1])),
        MOVES[2].id: Progress(stage=Stage.LOST, reason="orders-2 is on [9]"),
        MOVES[3].id: Progress(
            stage=Stage.ARRIVED, view=view(MOVES[3], after, leader=2)
        ),
    }
    back, left = plan_rollback(past(MOVES), found, ids([1, 2, 3]), NOW_MS)
    assert [(m.partition, m.leader_before) for m in back.moves] == [(3, 2), (0, 3)]
    assert {m.replicas_before for m in back.moves} == {after}
    assert {(m.replicas_after, m.leader_after) for m in back.moves} == {
        (ids([1, 2]), 1)
    }
    assert left == ["orders-2 is on [9]"]
    assert back.hash != plan(MOVES).hash


def test_what_still_moves_is_not_turned_round() -> None:
    moving = view(MOVES[0], (3, 2, 1), leader=1)
    found = {MOVES[0].id: Progress(stage=Stage.MOVING, view=moving)}
    with pytest.raises(GuardrailRefused, match=r"orders-0 is still being moved"):
        plan_rollback(past(MOVES), found, ids([1, 2, 3]), NOW_MS)


@pytest.mark.parametrize(
    ("state", "alive"), [(MoveState.DONE, (1, 2, 3)), (MoveState.ISSUED, (1, 2))]
)
def test_a_broker_that_dies_under_its_new_replicas_can_be_left_again(
    state: MoveState, alive: tuple[int, ...]
) -> None:
    """The journal has seen the move end, or nobody is left to be waited for."""
    run = past(MOVES[:1])
    run.moves[MOVES[0].id] = replace(run.moves[MOVES[0].id], state=state)
    lagging = view(MOVES[0], (3, 2), in_sync=(2,), leader=2)
    found = {MOVES[0].id: Progress(stage=Stage.MOVING, view=lagging)}
    back, left = plan_rollback(run, found, ids(alive), NOW_MS)
    (undoing,) = back.moves
    assert (undoing.replicas_before, undoing.leader_before) == ((3, 2), 2)
    assert undoing.replicas_after == (1, 2)
    assert left == []


def test_a_new_replica_that_a_live_broker_still_copies_is_not_left() -> None:
    run = past(MOVES[:1])
    run.moves[MOVES[0].id] = replace(run.moves[MOVES[0].id], state=MoveState.ISSUED)
    copying = view(MOVES[0], (3, 2), in_sync=(2,), leader=2)
    found = {MOVES[0].id: Progress(stage=Stage.MOVING, view=copying)}
    with pytest.raises(GuardrailRefused, match=r"orders-0 is still being moved"):
        plan_rollback(run, found, ids([1, 2, 3]), NOW_MS)


def test_shared_storage_rests_for_a_minute() -> None:
    shared = [move(0, (1,), (2,), storage=StorageKind.SHARED)]
    done = view(shared[0], (2,))
    found = {shared[0].id: Progress(stage=Stage.DONE, view=done)}
    with pytest.raises(GuardrailRefused, match=r"Roll back in 50 s"):
        plan_rollback(past(shared), found, ids([1, 2]), NOW_MS)
    back, _ = plan_rollback(past(shared), found, ids([1, 2]), NOW_MS + 50_000)
    assert back.moves[0].replicas_after == ids([1])


def test_what_came_halfway_goes_back_from_there() -> None:
    both = [move(0, (1, 2), (3, 4))]
    halfway = view(both[0], (1, 4))
    found = {both[0].id: Progress(stage=Stage.HALFWAY, view=halfway)}
    back, _ = plan_rollback(past(both), found, ids([1, 2, 3, 4]), NOW_MS)
    assert (back.moves[0].replicas_before, back.moves[0].leader_before) == ((1, 4), 1)
    assert back.moves[0].replicas_after == (1, 2)


def test_replicas_go_back_to_the_directories_they_lay_in() -> None:
    told = move(0, (1, 2), (3, 2), dirs_before=("/a", "/b"), dirs_after=("/c", "/c"))
    done = Progress(
        stage=Stage.DONE, view=view(told, (3, 2)), log_dirs=("/c", "/elsewhere")
    )
    back, _ = plan_rollback(past([told]), {told.id: done}, ids([1, 2, 3]), NOW_MS)
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
