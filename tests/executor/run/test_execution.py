"""A run on a platform with faults that real clusters cannot show quickly."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from executor.journal.run_history import past_run, read_journal
from executor.journal.run_journal import RunJournal
from executor.throttle.quota import RATES
from executor.timing import RunLimits
from model.errors import PlanOutdated
from model.ids import BrokerId, PartitionId
from model.run import JournalEvent, MoveState, RunReport, RunState
from tests.support.executor.fake_platform import Fault
from tests.support.executor.fake_runs import FIRST, FOUR, FakeRun, interrupted_runs, kill_at
from tests.support.executor.plan_builders import CLUSTER_ID, move, plan
from tests.support.executor.simulated_runs import Killed


def states(report: RunReport) -> list[MoveState]:
    return [m.state for m in report.moves]


def test_a_plan_is_executed_and_journalled(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    report = bench.run()
    assert (report.state, report.reason) == (RunState.DONE, "")
    assert states(report) == [MoveState.DONE] * 4
    assert all(m.bytes_copied == 200 and m.duration_s for m in report.moves)
    assert all(m.note == "ready" for m in report.moves)
    events = [(r.id, r.event) for r in read_journal(bench.journal.path)]
    assert events[0] == (None, JournalEvent.STARTED)
    assert events[-1] == (None, JournalEvent.ENDED)
    assert [e for pid, e in events if pid == FIRST] == [
        JournalEvent.PREPARED,
        JournalEvent.ISSUING,
        JournalEvent.ISSUED,
        JournalEvent.MOVED,
    ]


def test_findings_after_moves_are_reported_and_journalled(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.REFUSED})
    bench.platform.has_notes = True
    dropped, *others = bench.run().moves
    assert [m.note for m in others] == ["ready; uploaded"] * 3
    assert dropped.note.startswith("refused")
    noted = [r for r in read_journal(bench.journal.path) if r.event is JournalEvent.NOTED]
    assert [(r.id, r.detail) for r in noted] == [
        (m.id, {"note": "ready; uploaded", "left": 0}) for m in FOUR.moves[1:]
    ]
    past = past_run(tmp_path, CLUSTER_ID)
    assert past.moves[FOUR.moves[1].id].note == "ready; uploaded"


def test_observers_see_every_stage(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    bench.run()
    seen = [(t.state, t.count(MoveState.ISSUED), t.count(MoveState.DONE)) for t in bench.shown]
    assert seen[0] == (RunState.CHECKING, 0, 0)
    assert (RunState.RUNNING, 2, 0) in seen
    assert (RunState.RUNNING, 0, 4) in seen
    assert seen[-1] == (RunState.DONE, 0, 4)


def test_a_freed_slot_starts_the_next_move(tmp_path: Path) -> None:
    """A slow move holds one slot while the others go through the second one."""
    bench = FakeRun(tmp_path, faults={FIRST: Fault.STUCK})
    bench.after(20.0, _faults={})
    report = bench.run()
    assert bench.platform.most_at_once == 2
    assert report.state is RunState.DONE
    slow, *others = (m.duration_s or 0.0 for m in report.moves)
    assert max(others) < 2.0 < slow


def test_a_plan_that_does_not_fit_leaves_no_journal(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    with pytest.raises(PlanOutdated):
        bench.run(PlanOutdated("orders-0 is on [3]"))
    assert not bench.platform.sent
    assert not list(tmp_path.iterdir())


def test_the_operator_stops_a_run_after_in_flight_moves(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    bench.time.after.append((bench.time.now_s + 0.1, bench.steering.stop))
    report = bench.run()
    assert (report.state, report.reason) == (RunState.STOPPED, "stopped by the operator")
    assert states(report) == [MoveState.DONE] * 2 + [MoveState.PLANNED] * 2
    assert RunState.STOPPING in {t.state for t in bench.shown}


def test_a_stop_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, plan=plan([move()]))
    bench.time.after.append((bench.time.now_s + 0.1, bench.steering.stop))
    assert bench.run().state is RunState.DONE


def test_a_stuck_move_ends_the_run_by_name(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.STUCK, move(1).id: Fault.STUCK})
    report = bench.run()
    assert report.state is RunState.FAILED
    assert report.reason == "orders-0 made no progress for 600 s"
    assert states(report) == [MoveState.STUCK] * 2 + [MoveState.PLANNED] * 2
    assert bench.events()[FIRST, JournalEvent.STUCK] == 1


def test_no_further_move_starts_after_a_target_dies(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.STUCK, move(1).id: Fault.STUCK})
    bench.after(0.1, ill="broker 2 is dead")
    bench.after(5.0, _faults={})
    report = bench.run()
    assert (report.state, report.reason) == (RunState.FAILED, "broker 2 is dead")
    assert states(report) == [MoveState.DONE] * 2 + [MoveState.PLANNED] * 2


def test_an_unhealthy_cluster_is_not_changed(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    bench.platform.ill = "orders-2 is offline"
    assert bench.run().state is RunState.FAILED
    assert not bench.platform.sent


def test_a_request_without_an_answer_is_checked_before_it_is_repeated(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.ANSWER_LOST})
    assert bench.run().state is RunState.DONE
    assert bench.platform.sent[FIRST] == 1


def test_a_lost_request_is_repeated_after_a_poll(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.REQUEST_LOST})
    report = bench.run()
    assert report.state is RunState.DONE
    assert [(m.requests, m.retries) for m in report.moves] == [(2, 1), *[(1, 0)] * 3]
    assert bench.platform.sent[FIRST] == 2
    assert bench.events()[FIRST, JournalEvent.ISSUING] == 2


def test_a_request_that_never_arrives_is_given_up(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.UNHEARD})
    report = bench.run()
    assert bench.platform.sent[FIRST] == 3
    assert states(report) == [MoveState.DROPPED] + [MoveState.DONE] * 3
    assert report.state is RunState.FAILED
    assert report.reason.startswith("1 of 4 moves could not be made, the first of ord")


def test_a_refused_move_does_not_block_the_others(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.REFUSED})
    report = bench.run()
    assert states(report) == [MoveState.DROPPED] + [MoveState.DONE] * 3
    assert report.moves[0].note == "refused: no such broker is registered"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault.STOLEN, "orders-0 is on [9]"),
        (Fault.CANCELLED, "someone else cancelled the move of orders-0"),
    ],
)
def test_interference_by_someone_else_ends_the_run(
    tmp_path: Path, fault: Fault, message: str
) -> None:
    """An accepted move that was undone is not requested again."""
    bench = FakeRun(tmp_path, faults={FIRST: fault}, limits=RunLimits(moves_in_flight=1))
    report = bench.run()
    assert (report.state, report.reason) == (RunState.FAILED, message)
    assert bench.platform.sent == {FIRST: 1}


def test_an_election_is_journalled_before_the_request(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.ELECTION})
    assert bench.run().state is RunState.DONE
    assert bench.platform.elections == {FIRST: 1}
    assert bench.events()[FIRST, JournalEvent.ELECTING] == 1


def test_the_second_replica_is_requested_after_the_first(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, faults={FIRST: Fault.HALFWAY})
    report = bench.run()
    assert report.state is RunState.DONE
    assert (report.moves[0].requests, report.moves[0].retries) == (2, 0)
    assert bench.platform.sent[FIRST] == 2
    assert bench.events()[FIRST, JournalEvent.ISSUING] == 2


def test_nothing_starts_in_a_silent_cluster(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    bench.platform.silent = True
    report = bench.run()
    assert states(report) == [MoveState.PLANNED] * 4
    assert bench.events()[FIRST, JournalEvent.ISSUING] == 0


def test_a_short_silence_is_waited_out(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    bench.after(0.1, silent=True)
    bench.after(30.0, silent=False)
    assert bench.run().state is RunState.DONE


def test_a_long_silence_ends_the_run_and_names_open_moves(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    bench.after(0.1, silent=True)
    report = bench.run()
    assert report.state is RunState.FAILED
    assert "no answer for 60 s" in report.reason
    assert states(report) == [MoveState.STUCK] * 2 + [MoveState.PLANNED] * 2
    assert report.moves[0].note == "its end was not seen"


FAULTS = [{}, {FIRST: Fault.ELECTION}, {FIRST: Fault.ANSWER_LOST}]


@pytest.mark.parametrize("faults", FAULTS, ids=["smooth", "election", "lost answer"])
@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_killed_at_any_record_a_run_is_resumed_to_its_end(
    tmp_path: Path, faults: dict[PartitionId, Fault], written: bool
) -> None:
    theirs = {RATES[0]: "77"}

    def make(folder: Path) -> FakeRun:
        bench = FakeRun(folder, faults=faults, throttle=10)
        bench.configs.brokers[BrokerId(2)] = dict(theirs)
        return bench

    for bench in interrupted_runs(tmp_path, make, written=written):
        if not bench.journal.path.exists():
            assert not bench.platform.sent
            continue
        report = bench.resume()
        assert (report.state, report.reason) == (RunState.DONE, "")
        assert states(report) == [MoveState.DONE] * 4
        assert all(bench.platform.begun[m.id] == 0 for m in FOUR.moves)
        # Only moves that had not started were requested again.
        assert max(bench.platform.sent.values()) == 1
        assert bench.platform.most_at_once <= 2
        assert (bench.configs.brokers, bench.configs.topics) == ({2: theirs}, {})


def test_a_move_undone_by_someone_else_is_not_repeated(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path)
    kill_at(bench, 7, written=True)
    with pytest.raises(Killed):
        bench.run()
    bench.platform._faults = {FIRST: Fault.STOLEN}
    report = bench.resume()
    assert report.state is RunState.FAILED
    assert report.reason == "orders-0 is on [9]"
    assert states(report)[0] is MoveState.DROPPED
    assert MoveState.PLANNED in states(report)


def test_moves_that_no_longer_fit_are_not_started(tmp_path: Path) -> None:
    """In-flight moves are followed to their end."""
    bench = FakeRun(tmp_path)
    kill_at(bench, 8, written=True)
    with pytest.raises(Killed):
        bench.run()
    past = past_run(tmp_path, CLUSTER_ID, bench.journal.run_id)
    bench.journal = RunJournal(tmp_path, FOUR, past.run_id, bench.time.timing, resumed=True)
    report = bench.run(PlanOutdated("broker 3 is dead"), past)
    assert (report.state, report.reason) == (RunState.FAILED, "broker 3 is dead")
    assert states(report) == [MoveState.DONE] * 2 + [MoveState.PLANNED] * 2


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    faults=st.lists(st.sampled_from(Fault), min_size=1, max_size=6),
    in_flight=st.integers(1, 4),
    silent_s=st.tuples(st.floats(0, 10), st.floats(0, 80)),
    stop_s=st.none() | st.floats(0, 20),
)
@pytest.mark.slow
def test_any_faults_end_in_a_legal_state(
    tmp_path: Path,
    faults: list[Fault],
    in_flight: int,
    silent_s: tuple[float, float],
    stop_s: float | None,
) -> None:
    """Whatever happens: journalled before sent, within limits, an honest end."""
    moves = [move(i) for i in range(len(faults))]
    bench = FakeRun(
        tmp_path,
        plan=plan(moves),
        faults={m.id: f for m, f in zip(moves, faults, strict=True)},
        limits=RunLimits(moves_in_flight=in_flight),
    )
    begin_s, length_s = silent_s
    bench.after(begin_s, silent=True)
    bench.after(begin_s + length_s, silent=False)
    if stop_s is not None:
        bench.time.after.append((bench.time.now_s + stop_s, bench.steering.stop))
    report = bench.run()
    assert bench.platform.most_at_once <= in_flight
    for at, m in zip(report.moves, moves, strict=True):
        sent, moved = bench.platform.sent[m.id], bench.platform.begun.get(m.id)
        assert at.state is not MoveState.ISSUED
        assert (at.state is MoveState.PLANNED) <= (sent == 0)
        assert (at.state is MoveState.DONE) <= (moved == 0)
        assert bench.events()[m.id, JournalEvent.ISSUING] >= sent
    all_done = set(states(report)) == {MoveState.DONE}
    assert (report.state is RunState.DONE) == all_done
    assert bool(report.reason) == (report.state is not RunState.DONE)
    assert read_journal(bench.journal.path)[-1].event is JournalEvent.ENDED
