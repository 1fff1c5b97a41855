"""A run on a platform with faults that real clusters cannot show quickly."""

import itertools
import threading
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from executor.execution import Execution
from executor.journal import Journal, read_journal
from executor.timing import RunLimits
from model.errors import PlanOutdated
from model.ids import PartitionId
from model.plan import Move, Plan
from model.run import JournalEvent, MoveState, RunProgress, RunReport, RunState
from model.snapshot import StorageKind
from tests.executor.fake import FakePlatform, FakeTime, Fault
from tests.executor.plans import move, plan

FOUR = plan([move(i) for i in range(4)])
FIRST = FOUR.moves[0].id
_numbers = itertools.count()


@dataclass
class Bench:
    """One run put together, to be looked at afterwards."""

    folder: Path
    plan: Plan = FOUR
    faults: dict[PartitionId, Fault] = field(default_factory=dict)
    limits: RunLimits = field(default_factory=lambda: RunLimits(moves_in_flight=2))

    def __post_init__(self) -> None:
        self.time = FakeTime()
        self.stop = threading.Event()
        self.told: list[RunProgress] = []
        self.platform = FakePlatform(self.faults, self.check_journal)
        name = f"run-{next(_numbers)}"
        self.journal = Journal(self.folder, self.plan, name, self.time.timing)

    def run(self, check_error: Exception | None = None) -> RunReport:
        def check() -> None:
            if check_error is not None:
                raise check_error

        with closing(self.journal):
            return Execution(
                self.plan,
                {StorageKind.REPLICATED: self.platform},
                self.journal,
                check=check,
                limits=self.limits,
                timing=self.time.timing,
                observe=self.told.append,
                stop=self.stop,
            ).run()

    def after(self, seconds: float, **changes: object) -> None:
        """Change the platform at some time of the run."""
        for name, value in changes.items():
            at_s = self.time.now_s + seconds
            action = partial(setattr, self.platform, name, value)
            self.time.after.append((at_s, action))

    def check_journal(self, sent: Move) -> None:
        """The last thing on disk about what is being sent is that it will be."""
        about = [r.event for r in read_journal(self.journal.path) if r.id == sent.id]
        assert about[-1] is JournalEvent.ISSUING

    def events(self) -> Counter[tuple[PartitionId | None, JournalEvent]]:
        return Counter((r.id, r.event) for r in read_journal(self.journal.path))


def states(report: RunReport) -> list[MoveState]:
    return [m.state for m in report.moves]


def test_a_plan_is_carried_out_and_journalled(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
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


def test_observers_see_every_stage(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    seen = [
        (t.state, t.count(MoveState.ISSUED), t.count(MoveState.DONE))
        for t in bench.told
    ]
    assert seen[0] == (RunState.CHECKING, 0, 0)
    assert (RunState.RUNNING, 2, 0) in seen
    assert (RunState.RUNNING, 0, 4) in seen
    assert seen[-1] == (RunState.DONE, 0, 4)


def test_a_freed_slot_starts_the_next_move(tmp_path: Path) -> None:
    """A slow move holds one slot while the others go through the second one."""
    bench = Bench(tmp_path, faults={FIRST: Fault.STUCK})
    bench.after(20.0, _faults={})
    report = bench.run()
    assert bench.platform.most_at_once == 2
    assert report.state is RunState.DONE
    slow, *others = (m.duration_s or 0.0 for m in report.moves)
    assert max(others) < 2.0 < slow


def test_a_plan_that_does_not_fit_leaves_no_journal(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(PlanOutdated):
        bench.run(PlanOutdated("orders-0 is on [3]"))
    assert not bench.platform.sent
    assert not list(tmp_path.iterdir())


def test_the_operator_stops_it_after_what_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.time.after.append((bench.time.now_s + 0.1, bench.stop.set))
    report = bench.run()
    assert (report.state, report.reason) == (
        RunState.STOPPED,
        "stopped by the operator",
    )
    assert states(report) == [MoveState.DONE] * 2 + [MoveState.PLANNED] * 2
    assert RunState.STOPPING in {t.state for t in bench.told}


def test_a_stop_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, plan=plan([move()]))
    bench.time.after.append((bench.time.now_s + 0.1, bench.stop.set))
    assert bench.run().state is RunState.DONE


def test_a_stuck_move_ends_the_run_by_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path, faults={FIRST: Fault.STUCK, move(1).id: Fault.STUCK})
    report = bench.run()
    assert report.state is RunState.FAILED
    assert report.reason == "orders-0 made no progress for 120 s"
    assert states(report) == [MoveState.STUCK] * 2 + [MoveState.PLANNED] * 2
    assert bench.events()[FIRST, JournalEvent.STUCK] == 1


def test_a_dead_target_starts_nothing_further(tmp_path: Path) -> None:
    bench = Bench(tmp_path, faults={FIRST: Fault.STUCK, move(1).id: Fault.STUCK})
    bench.after(0.1, ill="broker 2 is dead")
    bench.after(5.0, _faults={})
    report = bench.run()
    assert (report.state, report.reason) == (RunState.FAILED, "broker 2 is dead")
    assert states(report) == [MoveState.DONE] * 2 + [MoveState.PLANNED] * 2


def test_an_ill_cluster_is_not_touched(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.platform.ill = "orders-2 is offline"
    assert bench.run().state is RunState.FAILED
    assert not bench.platform.sent


def test_a_lost_answer_is_looked_up_and_not_sent_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, faults={FIRST: Fault.ANSWER_LOST})
    assert bench.run().state is RunState.DONE
    assert bench.platform.sent[FIRST] == 1


def test_a_lost_request_is_sent_again_after_a_look(tmp_path: Path) -> None:
    bench = Bench(tmp_path, faults={FIRST: Fault.REQUEST_LOST})
    assert bench.run().state is RunState.DONE
    assert bench.platform.sent[FIRST] == 2
    assert bench.events()[FIRST, JournalEvent.ISSUING] == 2


def test_a_request_that_never_arrives_is_given_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, faults={FIRST: Fault.UNHEARD})
    report = bench.run()
    assert bench.platform.sent[FIRST] == 3
    assert states(report) == [MoveState.DROPPED] + [MoveState.DONE] * 3
    assert report.state is RunState.FAILED
    assert report.reason.startswith("1 of 4 moves could not be made, the first of ord")


def test_a_refused_move_does_not_hold_the_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path, faults={FIRST: Fault.REFUSED})
    report = bench.run()
    assert states(report) == [MoveState.DROPPED] + [MoveState.DONE] * 3
    assert report.moves[0].note == "refused: no such broker is registered"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.STOLEN, "orders-0 is on [9]"),
        (Fault.CANCELLED, "somebody else cancelled the move of orders-0"),
    ],
)
def test_somebody_elses_hand_ends_the_run(
    tmp_path: Path, fault: Fault, words: str
) -> None:
    """What was accepted and then undone is not asked for again."""
    bench = Bench(tmp_path, faults={FIRST: fault}, limits=RunLimits(moves_in_flight=1))
    report = bench.run()
    assert (report.state, report.reason) == (RunState.FAILED, words)
    assert bench.platform.sent == {FIRST: 1}


def test_an_election_is_journalled_before_it_is_asked_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, faults={FIRST: Fault.ELECTION})
    assert bench.run().state is RunState.DONE
    assert bench.platform.elections == {FIRST: 1}
    assert bench.events()[FIRST, JournalEvent.ELECTING] == 1


def test_nothing_is_begun_in_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.platform.silent = True
    report = bench.run()
    assert states(report) == [MoveState.PLANNED] * 4
    assert bench.events()[FIRST, JournalEvent.ISSUING] == 0


def test_a_short_silence_is_waited_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.after(0.1, silent=True)
    bench.after(30.0, silent=False)
    assert bench.run().state is RunState.DONE


def test_a_long_silence_ends_the_run_with_open_ends_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.after(0.1, silent=True)
    report = bench.run()
    assert report.state is RunState.FAILED
    assert "no answer for 60 s" in report.reason
    assert states(report) == [MoveState.STUCK] * 2 + [MoveState.PLANNED] * 2
    assert report.moves[0].note == "its end was not seen"


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    faults=st.lists(st.sampled_from(Fault), min_size=1, max_size=6),
    in_flight=st.integers(1, 4),
    silent_s=st.tuples(st.floats(0, 10), st.floats(0, 80)),
    stop_s=st.none() | st.floats(0, 20),
)
def test_any_faults_end_in_a_legal_state(
    tmp_path: Path,
    faults: list[Fault],
    in_flight: int,
    silent_s: tuple[float, float],
    stop_s: float | None,
) -> None:
    """Whatever happens: journalled before sent, within limits, an honest end."""
    moves = [move(i) for i in range(len(faults))]
    bench = Bench(
        tmp_path,
        plan=plan(moves),
        faults={m.id: f for m, f in zip(moves, faults, strict=True)},
        limits=RunLimits(moves_in_flight=in_flight),
    )
    begin_s, length_s = silent_s
    bench.after(begin_s, silent=True)
    bench.after(begin_s + length_s, silent=False)
    if stop_s is not None:
        bench.time.after.append((bench.time.now_s + stop_s, bench.stop.set))
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
