"""The throttle of whole runs on a simulated cluster: minimum and following."""

import itertools
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from executor.executor import Executor
from executor.journal.run_history import read_journal
from executor.throttle.auto import ANY_BROKER, AutoThrottle
from executor.throttle.quota import FOLLOWER_RATE, FOLLOWERS, LEADER_RATE, LEADERS
from executor.timing import RunLimits
from lab.simulated_cluster.cluster_state import steady
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import GuardrailRefused
from model.ids import BrokerId, PartitionId
from model.run import JournalEvent, MoveState, RunState
from model.snapshot.snapshot import Resource
from tests.support.executor.simulated_runs import MB, TOPIC, SimulatedRun, interrupted_runs

CARD = dict.fromkeys((Resource.NET_IN, Resource.NET_OUT), 125.0 * MB)
ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
MOVED, BESIDE = PartitionId(TOPIC, 0), PartitionId(TOPIC, 1)


def auto(*, floor: int = MB, ceiling: int | None = None, known: bool = True) -> RunLimits:
    capacity = {ANY_BROKER: CARD if known else {}}
    return RunLimits(
        throttle_follows=True,
        poll_s=1.0,
        auto_throttle=AutoThrottle(floor=floor, ceiling=ceiling, capacity=capacity),
    )


def site(folder: Path, limits: RunLimits, *, log_bytes: float = 20_000.0 * MB) -> SimulatedRun:
    """A long copy from broker 1 to 3, while clients write to another partition."""
    at = SimulatedRun(
        folder=folder,
        before={0: (1, 2), 1: (1, 2)},
        after={0: (1, 3)},
        log_bytes=log_bytes,
        limits=limits,
    )
    produce(at, BESIDE, 20 * MB)
    return at


def produce(at: SimulatedRun, pid: PartitionId, rate: float) -> None:
    at.cluster.partitions[pid].bytes_in = steady(rate)


@dataclass
class Seen:
    """The outgoing rate of broker 1, second by second."""

    at: SimulatedRun
    rates: list[int] = field(default_factory=list)

    def look(self) -> None:
        if rate := self.at.cluster.brokers[ONE].configs.get(LEADER_RATE):
            self.rates.append(int(rate))
        self.at.cluster.after(1.0, self.look)

    @property
    def changes(self) -> list[float]:
        """In MB/s."""
        return [round(rate / MB, 1) for rate, _ in itertools.groupby(self.rates)]


def watched(at: SimulatedRun) -> Seen:
    seen = Seen(at)
    at.cluster.after(1.0, seen.look)
    return seen


def events(at: SimulatedRun) -> list[JournalEvent]:
    return [r.event for p in at.folder.glob("*.jsonl") for r in read_journal(p)]


def test_less_than_twice_what_replicas_fetch_is_refused_with_the_figure(tmp_path: Path) -> None:
    at = site(tmp_path, RunLimits(throttle_bytes_per_s=30 * MB))
    produce(at, MOVED, 8.3 * MB)
    message = (
        r"A throttle of 30.0 MB/s is too low: with 1 move at once, .* needs 33.2 MB/s "
        r"out of broker 1, .* Use 34.0MB/s or more"
    )
    with pytest.raises(GuardrailRefused, match=message):
        at.run()
    with pytest.raises(GuardrailRefused, match=message):
        at.executor().dry_run(at.plan)
    assert at.is_clean
    assert not events(at)
    at.limits = RunLimits(throttle_bytes_per_s=34 * MB)
    assert at.run().moves[0].note == ""


def test_only_simultaneous_moves_count_towards_the_minimum_throttle(tmp_path: Path) -> None:
    """And into the throttle itself: under it all at once would never arrive."""
    at = SimulatedRun(
        folder=tmp_path,
        before=dict.fromkeys(range(12), (1, 2)),
        after=dict.fromkeys(range(12), (1, 3)),
        bytes_in=steady(4.0 * MB),
        limits=RunLimits(throttle_bytes_per_s=33 * MB, moves_in_flight=2),
    )
    report = at.run()
    assert report.state is RunState.DONE
    assert [m.note for m in report.moves] == [""] * 12
    at = SimulatedRun(
        folder=tmp_path / "four",
        before=at.before,
        after=at.after,
        bytes_in=steady(4.0 * MB),
        limits=RunLimits(throttle_bytes_per_s=33 * MB, moves_in_flight=4),
    )
    with pytest.raises(GuardrailRefused, match="with 4 moves at once"):
        at.run()


def test_moves_are_listed_from_their_beginning_to_their_end(tmp_path: Path) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before=dict.fromkeys(range(3), (1, 2)),
        after=dict.fromkeys(range(3), (1, 3)),
        limits=RunLimits(throttle_bytes_per_s=50 * MB, moves_in_flight=1),
    )
    listed = []

    def look(call: str, *, made: bool) -> None:
        if call == "reassign" and not made:
            of = at.cluster.topic_configs[TOPIC]
            listed.append((of[LEADERS], of[FOLLOWERS]))

    at.faults.on_call = look
    assert at.run().state is RunState.DONE
    assert listed == [(f"{n}:1,{n}:2", f"{n}:3") for n in range(3)]


def test_a_rate_follows_the_bandwidth_that_clients_leave_free(tmp_path: Path) -> None:
    """0.9 x (125 - the traffic to replicas other than the copy)."""
    at = site(tmp_path, auto(), log_bytes=30_000.0 * MB)
    seen = watched(at)
    at.cluster.after(70.0, partial(produce, at, BESIDE, 80.0 * MB))
    at.cluster.after(190.0, partial(produce, at, BESIDE, 10.0 * MB))
    assert at.run().state is RunState.DONE
    assert seen.changes[0] == pytest.approx(0.9 * 105, abs=0.1)
    assert min(seen.changes) == pytest.approx(0.9 * 45, abs=0.1)
    assert seen.changes[-1] == pytest.approx(0.9 * 115, rel=0.1)
    assert at.is_clean


def test_each_broker_and_direction_has_its_own_rate(tmp_path: Path) -> None:
    at = site(tmp_path, auto())
    at.cluster.partitions[BESIDE].leader = TWO
    reported: list[dict[str, str]] = []

    def look(call: str, *, made: bool) -> None:
        if call == "reassign" and not made:
            reported.extend(dict(at.cluster.brokers[b].configs) for b in (ONE, TWO, THREE))

    at.faults.on_call = look
    at.run()
    rates = [
        [round(int(of[key]) / (0.9 * MB)) for key in (LEADER_RATE, FOLLOWER_RATE)]
        for of in reported
    ]
    assert rates == [[125, 105], [105, 105], [125, 125]]


def test_a_rate_stays_within_floor_and_ceiling(tmp_path: Path) -> None:
    at = site(tmp_path, auto(floor=60 * MB, ceiling=80 * MB))
    seen = watched(at)
    at.cluster.after(70.0, partial(produce, at, BESIDE, 110.0 * MB))
    at.run()
    assert seen.changes == [80.0, 60.0]


def test_needs_of_moves_override_the_ceiling(tmp_path: Path) -> None:
    at = site(tmp_path, auto(ceiling=20 * MB))
    seen = watched(at)
    at.cluster.after(70.0, partial(produce, at, MOVED, 10.0 * MB))
    assert at.run().state is RunState.DONE
    assert seen.changes[0] == 20.0
    assert seen.changes[-1] == pytest.approx(40.0, abs=0.1)


def test_a_ceiling_below_what_moves_need_is_refused(tmp_path: Path) -> None:
    at = site(tmp_path, auto(ceiling=20 * MB))
    produce(at, MOVED, 10.0 * MB)
    with pytest.raises(GuardrailRefused, match=r"A ceiling of 20.0 MB/s is too low"):
        at.run()
    assert at.is_clean


def test_a_change_by_less_than_a_tenth_is_not_made(tmp_path: Path) -> None:
    at = site(tmp_path, auto())
    at.cluster.after(70.0, partial(produce, at, BESIDE, 28.0 * MB))
    at.run()
    assert events(at).count(JournalEvent.THROTTLED) == 1


def test_the_rate_is_safe_without_a_known_capacity(tmp_path: Path) -> None:
    at = site(tmp_path, auto(known=False), log_bytes=500.0 * MB)
    seen = watched(at)
    at.run()
    assert seen.changes == [10.0]


def test_the_rate_is_safe_and_reported_if_nothing_can_be_measured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker without replicas still has its whole bandwidth free."""
    at = site(tmp_path, auto(), log_bytes=500.0 * MB)
    admin = SimulatedAdmin(at.cluster, at.faults)
    admin.log_dirs = lambda broker, ids: ()  # type: ignore[method-assign]
    executor = Executor(admin, timing=at.cluster.timing, limits=at.limits)
    seen = watched(at)
    report = executor.execute(
        at.plan, journal_dir=at.folder, observe=lambda _: None, steering=at.steering
    )
    assert report.state is RunState.DONE
    assert seen.changes == [10.0]
    assert "the produce rate of orders-0, which could not be measured" in caplog.text


def test_settings_changed_by_someone_else_stay(tmp_path: Path) -> None:
    at = site(tmp_path, auto())
    theirs = at.cluster.brokers[TWO].configs
    at.cluster.after(65.0, partial(theirs.update, {LEADER_RATE: "77"}))
    at.cluster.after(70.0, partial(produce, at, BESIDE, 80.0 * MB))
    at.run()
    assert theirs == {LEADER_RATE: "77"}
    theirs.clear()
    assert at.is_clean


@pytest.mark.parametrize(("asked", "then"), [(50 * MB, 50.0), (None, 0.9 * 105), (3 * MB, 10.0)])
def test_an_operator_changes_the_rate_of_a_run(
    tmp_path: Path, asked: int | None, then: float
) -> None:
    """To another rate, to following clients, but not to one that is too low."""
    limits = RunLimits(throttle_bytes_per_s=10 * MB, auto_throttle=auto().auto_throttle)
    at = site(tmp_path, limits, log_bytes=2000.0 * MB)
    produce(at, MOVED, 1.0 * MB)
    produce(at, BESIDE, 19.0 * MB)
    seen = watched(at)
    at.cluster.after(20.0, partial(at.steering.throttle, asked))
    assert at.run().state is RunState.DONE
    assert seen.changes[0] == 10.0
    assert seen.changes[-1] == pytest.approx(then, abs=0.1)
    reported = [x for x in at.steering.recorded() if x.startswith("throttle")]
    assert reported[0] == "throttle set: 3 brokers, 10.0 MB/s"
    changed = [x for x in reported if x.startswith("throttle changed as asked")]
    assert len(changed) == (then != 10.0)
    assert at.is_clean


def test_an_operator_throttles_a_run_that_had_no_throttle(tmp_path: Path) -> None:
    at = site(tmp_path, RunLimits(), log_bytes=2000.0 * MB)
    seen = watched(at)
    at.cluster.after(5.0, partial(at.steering.throttle, 40 * MB))
    report = at.run()
    assert report.state is RunState.DONE
    assert report.duration_s > 30.0
    assert seen.changes == [40.0]
    assert at.is_clean
    asked, then = at.steering.recorded()
    assert asked == "change the throttle to 40.0 MB/s"
    assert then == "throttle set: 3 brokers, 40.0 MB/s"


def test_a_rate_refused_during_a_run_is_set_later(tmp_path: Path) -> None:
    at = site(tmp_path, RunLimits(throttle_bytes_per_s=10 * MB), log_bytes=2000.0 * MB)
    refused = {"alter_broker_configs": "not now"}
    seen = watched(at)
    at.cluster.after(5.0, partial(at.faults.refusals.update, refused))
    at.cluster.after(6.0, partial(at.steering.throttle, 40 * MB))
    at.cluster.after(20.0, at.faults.refusals.clear)
    assert at.run().state is RunState.DONE
    assert seen.changes == [10.0, 40.0]
    assert seen.rates.count(10 * MB) > 50
    assert at.is_clean


def test_a_dead_broker_does_not_prevent_rates_on_others(tmp_path: Path) -> None:
    """The old follower dies, then the copy falls behind."""
    at = site(tmp_path, RunLimits(throttle_bytes_per_s=30 * MB))
    at.cluster.after(5.0, partial(at.cluster.kill, TWO))
    at.cluster.after(5.0, partial(produce, at, MOVED, 40.0 * MB))
    report = at.run()
    assert report.moves[0].state is MoveState.DONE
    assert "so the throttle was raised to 60.0 MB/s" in report.moves[0].note
    assert "broker 2 did not answer and keeps its throttle" in report.reason
    at.cluster.revive(TWO)
    at.executor().clean_up(at.folder)
    assert at.is_clean


def test_several_lagging_copies_raise_the_rate_once(tmp_path: Path) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before=dict.fromkeys(range(3), (1, 2)),
        after=dict.fromkeys(range(3), (1, 3)),
        log_bytes=2000.0 * MB,
        limits=RunLimits(throttle_bytes_per_s=30 * MB),
    )
    for n in range(3):
        pid = PartitionId(TOPIC, n)
        at.cluster.after(5.0, partial(produce, at, pid, 6.0 * MB))
    seen = watched(at)
    assert at.run().state is RunState.DONE
    assert seen.changes == [30.0, 60.0]


def test_a_deleted_topic_leaves_no_throttle_on_brokers(tmp_path: Path) -> None:
    at = site(tmp_path, RunLimits(throttle_bytes_per_s=50 * MB))

    def delete() -> None:
        at.cluster.partitions.clear()
        at.cluster.topic_configs.clear()

    at.cluster.after(20.0, delete)
    report = at.run()
    assert report.reason.endswith("the first of orders-0: orders-0 no longer exists")
    assert at.is_clean


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("resumed", [False, True], ids=["cleaned up", "resumed"])
def test_killed_at_any_call_a_run_whose_rate_changes_leaves_nothing_set(
    tmp_path: Path, made: bool, resumed: bool
) -> None:
    def steered(folder: Path) -> SimulatedRun:
        at = site(folder, auto(), log_bytes=8_000.0 * MB)
        at.cluster.brokers[TWO].configs[LEADER_RATE] = "77"
        at.cluster.after(5.0, partial(produce, at, BESIDE, 60.0 * MB))
        return at

    for at in interrupted_runs(tmp_path, steered, made=made, least=11):
        at.cluster.brokers[THREE].configs[LEADER_RATE] = "55"
        if resumed:
            assert at.resume().state is RunState.DONE
        at.executor().clean_up(at.folder)
        assert at.cluster.brokers[TWO].configs.pop(LEADER_RATE) == "77"
        assert at.cluster.brokers[THREE].configs.pop(LEADER_RATE) == "55"
        assert at.is_clean
    assert events(at).count(JournalEvent.THROTTLED) > 1
