"""Each rule with each reaction, in whole runs on a simulated cluster."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from executor.journal.run_history import read_journal
from executor.timing import RunLimits
from lab.simulated_cluster.cluster_state import SimulatedPartition
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.run import JournalEvent, MoveState, RunReport, RunState
from model.snapshot.snapshot import StorageKind
from model.stop_rules import Reaction, StopRules
from tests.support.executor.plan_builders import ids
from tests.support.executor.simulated_runs import MB, TOPIC, Killed, SimulatedRun

BESIDE = PartitionId(TOPIC, 9)
FEW_S = 60.0
"""When something goes wrong: one move is done, one runs, one waits."""


def site(folder: Path, storage: StorageKind = StorageKind.REPLICATED, **rules: Any) -> SimulatedRun:
    """Three moves of 48 s, one after the other, and one partition outside the plan."""
    return SimulatedRun(
        folder=folder,
        before={0: (1,), 1: (1,), 2: (1,), 9: (6, 7, 8)},
        after={0: (2,), 1: (3,), 2: (4,)},
        brokers=8,
        log_bytes=6000.0 * MB,
        limits=RunLimits(
            moves_in_flight=1,
            throttle_bytes_per_s=125 * MB,
            stop_rules=StopRules.model_validate(rules),
        ),
    )


def states(report: RunReport) -> list[MoveState]:
    return [m.state for m in report.moves]


def events(at: SimulatedRun) -> list[JournalEvent]:
    path = min(at.folder.glob("*.jsonl"))
    return [r.event for r in read_journal(path) if r.id is None]


def of(at: SimulatedRun) -> SimulatedPartition:
    return at.cluster.partitions[BESIDE]


def nothing(_: SimulatedRun) -> None:
    """It recovers by itself."""


def lose_broker(at: SimulatedRun) -> None:
    at.cluster.kill(BrokerId(8))


def find_broker(at: SimulatedRun) -> None:
    at.cluster.revive(BrokerId(8))


def lose_leader(at: SimulatedRun) -> None:
    of(at).leader = NO_BROKER


def find_leader(at: SimulatedRun) -> None:
    of(at).leader = BrokerId(6)


def lag(at: SimulatedRun, *brokers: int) -> None:
    for broker in ids(brokers):
        of(at).held[broker] = 0.0
        of(at).in_sync.discard(broker)


def change_controller_twice(at: SimulatedRun) -> None:
    at.cluster.elections += 2


def answer_slowly(at: SimulatedRun) -> None:
    at.faults.slow_s = 1.5


def answer_fast(at: SimulatedRun) -> None:
    at.faults.slow_s = 0.0


def fill_disk(at: SimulatedRun) -> None:
    used = at.cluster.used_bytes(BrokerId(4))
    at.cluster.brokers[BrokerId(4)].disk_bytes = used + 1


def grow_disk(at: SimulatedRun) -> None:
    at.cluster.brokers[BrokerId(4)].disk_bytes = float("inf")


def cut_network(at: SimulatedRun) -> None:
    at.cluster.brokers[BrokerId(3)].network_bytes_per_s = 0.0


def mend_network(at: SimulatedRun) -> None:
    at.cluster.brokers[BrokerId(3)].network_bytes_per_s = 125.0 * MB


@dataclass(frozen=True)
class Case:
    """A broken rule: its cause, its recovery and its message."""

    rule: str
    breaks: Callable[[SimulatedRun], None]
    heals: Callable[[SimulatedRun], None]
    says: str
    least: str = "1"
    """`min.insync.replicas`."""


BESIDE_WORDS = "orders-9, which the plan leaves alone, "
CASES = [
    Case("broker_lost", lose_broker, find_broker, "broker 8 died or was fenced"),
    Case("offline", lose_leader, find_leader, BESIDE_WORDS + "went offline"),
    Case(
        "under_min_isr",
        lambda at: lag(at, 7, 8),
        nothing,
        "orders-9 has fewer than 2 replicas in sync, its minimum",
        least="2",
    ),
    Case(
        "under_replicated", lambda at: lag(at, 7), nothing, BESIDE_WORDS + "lost replicas in sync"
    ),
    Case(
        "controller_changes",
        change_controller_twice,
        nothing,
        "the controller changed 2 times within a minute",
    ),
    Case("slow_requests", answer_slowly, answer_fast, "brokers take 1.51 s to answer"),
    Case("disk", fill_disk, grow_disk, "the disk of broker 4 is down to its reserve"),
    Case("no_progress", cut_network, mend_network, "orders-1 made no progress for 600 s"),
]
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)


def broken(folder: Path, case: Case, reaction: Reaction, heals_s: float) -> SimulatedRun:
    """Only this rule is armed."""
    rules: dict[str, Any] = {c.rule: Reaction.OFF for c in CASES}
    at = site(folder, **(rules | {"isr_shrink": Reaction.OFF, case.rule: reaction}))
    at.cluster.topic_configs = {TOPIC: {"min.insync.replicas": case.least}}
    at.cluster.after(FEW_S, partial(case.breaks, at))
    at.cluster.after(FEW_S + heals_s, partial(case.heals, at))
    return at


@EACH
def test_a_rule_that_stops_waits_for_in_flight_moves(tmp_path: Path, case: Case) -> None:
    at = broken(tmp_path, case, Reaction.STOP, heals_s=1500.0)
    report = at.run()
    assert report.state is RunState.FAILED
    assert report.reason.startswith(case.says)
    hangs = case.rule == "no_progress"
    second = MoveState.STUCK if hangs else MoveState.DONE
    assert states(report) == [MoveState.DONE, second, MoveState.PLANNED]
    assert report.rollback is None


@EACH
@pytest.mark.slow
def test_a_paused_run_continues_when_all_is_well(tmp_path: Path, case: Case) -> None:
    at = broken(tmp_path, case, Reaction.PAUSE, heals_s=1500.0)
    report = at.run()
    assert (report.state, report.reason) == (RunState.DONE, "")
    assert states(report) == [MoveState.DONE] * 3
    assert [e for e in events(at) if e in (JournalEvent.PAUSED, JournalEvent.PAUSE_ENDED)] == [
        JournalEvent.PAUSED,
        JournalEvent.PAUSE_ENDED,
    ]
    reasons = {s.reason for s in at.shown if s.state is RunState.PAUSED}
    assert len(reasons) == 1
    assert reasons.pop().startswith(case.says)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.heals is not nothing], ids=lambda case: case.rule
)
@pytest.mark.slow
def test_a_pause_without_an_end_stops_the_run(tmp_path: Path, case: Case) -> None:
    at = broken(tmp_path, case, Reaction.PAUSE, heals_s=10_000.0)
    report = at.run()
    assert report.state is RunState.FAILED
    assert report.reason.startswith(case.says)
    assert report.reason.endswith("not better after 1 h 00 min")


@EACH
def test_a_rule_that_rolls_back_restores_the_placement(tmp_path: Path, case: Case) -> None:
    at = broken(tmp_path, case, Reaction.ROLL_BACK, heals_s=1500.0)
    before = {n: tuple(r) for n, r in at.before.items()}
    report = at.run()
    assert report.state is RunState.FAILED
    assert report.reason.startswith(case.says)
    assert {n: r for n, (r, _) in at.placement.items()} == before
    done = {m.partition for m in report.moves if m.state is MoveState.DONE}
    cancelled = {m.note for m in report.moves if m.state is MoveState.DROPPED}
    assert cancelled <= {"cancelled since the run is rolled back"}
    assert report.rollback is not None
    assert report.rollback.state is RunState.DONE
    assert {m.partition for m in report.rollback.moves} == done >= {0}
    assert f"rolled back by the run {report.rollback.run_id}" in report.reason
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


@EACH
def test_a_rule_that_is_off_changes_nothing(tmp_path: Path, case: Case) -> None:
    at = broken(tmp_path, case, Reaction.OFF, heals_s=20.0)
    report = at.run()
    assert (report.state, report.reason) == (RunState.DONE, "")


def test_a_stuck_move_is_named_and_left_if_its_rule_is_off(tmp_path: Path) -> None:
    at = broken(tmp_path, CASES[-1], Reaction.OFF, heals_s=1500.0)
    report = at.run()
    assert states(report) == [MoveState.DONE, MoveState.STUCK, MoveState.DONE]
    assert report.state is RunState.FAILED
    assert report.reason.startswith("1 of 3 moves could not be made, the first of ord")


def test_a_dead_target_stops_a_run_even_if_that_rule_is_off(tmp_path: Path) -> None:
    at = site(tmp_path, broker_lost=Reaction.OFF)
    at.cluster.after(FEW_S, partial(at.cluster.kill, BrokerId(4)))
    report = at.run()
    first, *rest = report.reason.split("; ")
    assert first == "broker 4, where orders-2 goes, is dead or fenced"
    assert rest[0] == "broker 4 did not answer and keeps its throttle"
    assert states(report)[2] is MoveState.PLANNED


def test_replicas_that_keep_leaving_the_isr_pause_a_run(tmp_path: Path) -> None:
    """One was behind when it began; another follows."""
    at = site(tmp_path)
    lag(at, 7)
    at.cluster.brokers[BrokerId(7)].network_bytes_per_s = 0.0
    at.cluster.after(FEW_S, partial(lag, at, 8))
    assert at.run().state is RunState.DONE
    (reason,) = {t.reason for t in at.shown if t.state is RunState.PAUSED}
    assert reason == BESIDE_WORDS + "lost still more replicas in sync"


def test_a_topic_created_during_a_run_does_not_end_it(tmp_path: Path) -> None:
    """It has no leader for a moment."""
    at = site(tmp_path)
    made = PartitionId(TopicName("new"), 0)

    def make() -> None:
        new = replace(of(at), id=made, leader=NO_BROKER, in_sync={BrokerId(6)}, held={})
        at.cluster.partitions[made] = new

    at.cluster.after(FEW_S, make)
    assert at.run().state is RunState.DONE


def test_the_most_severe_reaction_counts(tmp_path: Path) -> None:
    at = site(tmp_path, broker_lost=Reaction.PAUSE, under_replicated=Reaction.STOP)
    at.cluster.after(FEW_S, partial(lose_broker, at))
    report = at.run()
    assert report.reason == BESIDE_WORDS + "lost replicas in sync"


def test_moves_wait_for_their_window_with_nothing_set(tmp_path: Path) -> None:
    at = site(tmp_path)
    opens_s = at.cluster.now_s + 7200.0
    at.limits = in_hours(at.limits, opens_s, opens_s + 3600.0)
    at.cluster.after(3600.0, lambda: seen.append(at.is_clean))
    seen: list[bool] = []
    report = at.run()
    assert seen == [True]
    assert report.state is RunState.DONE
    assert at.cluster.now_s > opens_s
    (reason,) = {t.reason for t in at.shown if t.state is RunState.PAUSED}
    assert reason == "the window for moves is closed"


def site_with_closing_window(tmp_path: Path, reaction: Reaction) -> SimulatedRun:
    """A site where the window closes after few moves."""
    at = site(tmp_path)
    end = datetime.fromtimestamp(at.cluster.now_s + FEW_S, UTC)
    at.limits = replace(at.limits, stop_rules=StopRules(window_end=end, window=reaction))
    return at


def test_a_closing_window_ends_a_run_if_configured(tmp_path: Path) -> None:
    at = site_with_closing_window(tmp_path, Reaction.STOP)
    report = at.run()
    assert (report.state, report.reason) == (RunState.STOPPED, "the window for moves is closed")
    assert states(report) == [MoveState.DONE] * 2 + [MoveState.PLANNED]


def test_a_rollback_ignores_the_window(tmp_path: Path) -> None:
    at = site_with_closing_window(tmp_path, Reaction.ROLL_BACK)
    report = at.run()
    assert report.rollback is not None
    assert report.rollback.state is RunState.DONE
    assert {n: r for n, (r, _) in at.placement.items()} == at.before


def test_a_rollback_on_shared_storage_waits_for_the_platform(tmp_path: Path) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1,), 1: (1,), 9: (5,)},
        after={0: (2,), 1: (3,)},
        storage=StorageKind.SHARED,
        limits=RunLimits(
            moves_in_flight=1, watch_s=1.0, stop_rules=StopRules(broker_lost=Reaction.ROLL_BACK)
        ),
    )
    at.cluster.after(1.5, partial(at.cluster.kill, BrokerId(4)))
    report = at.run()
    assert report.rollback is not None
    assert report.rollback.state is RunState.DONE
    assert report.rollback.started_at_ms - report.started_at_ms > 60_000
    assert {n: r for n, (r, _) in at.placement.items()} == at.before


def test_moves_that_cannot_be_rolled_back_are_reported(tmp_path: Path) -> None:
    """The broker that is to get it back is the one that died."""
    at = site(tmp_path, broker_lost=Reaction.ROLL_BACK)
    at.cluster.after(FEW_S, partial(at.cluster.kill, BrokerId(1)))
    report = at.run()
    assert report.rollback is None
    assert "not rolled back: The plan cannot be executed: broker 1, where" in (report.reason)


def test_the_operator_pauses_and_resumes_a_run(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.cluster.after(FEW_S, at.steering.pause)
    at.cluster.after(FEW_S + 20_000.0, at.steering.resume)
    report = at.run()
    assert report.state is RunState.DONE
    assert events(at).count(JournalEvent.PAUSED) == 1
    second, third = (m for m in report.moves if m.partition)
    assert (second.duration_s or 0) < 60.0
    assert (third.duration_s or 0) < 60.0
    assert report.duration_s > 20_000.0


def test_a_pause_ends_with_a_stop(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.cluster.after(FEW_S, at.steering.pause)
    at.cluster.after(FEW_S + 500.0, at.steering.stop)
    report = at.run()
    assert (report.state, report.reason) == (RunState.STOPPED, "stopped by the operator")


def test_a_run_killed_while_paused_is_resumed(tmp_path: Path) -> None:
    at = site(tmp_path)

    def die() -> None:
        raise Killed

    at.cluster.after(FEW_S, at.steering.pause)
    at.cluster.after(FEW_S + 500.0, die)
    with pytest.raises(Killed):
        at.run()
    at.reset_steering()
    report = at.resume()
    assert states(report) == [MoveState.DONE] * 3


def in_hours(limits: RunLimits, begin_s: float, end_s: float) -> RunLimits:
    """Moves only at these hours, by the local clock."""
    begin, end = (datetime.fromtimestamp(at_s, UTC).astimezone() for at_s in (begin_s, end_s))
    hours = f"{begin:%H:%M}-{end:%H:%M}"
    return replace(limits, stop_rules=StopRules(window_hours=hours))
