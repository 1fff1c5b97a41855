"""The order of moves, its quality, and its proved bound."""

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.schedule.admission import brokers_of, bytes_per_replica, is_internal, is_leader_change
from executor.schedule.concurrency import Concurrency
from executor.schedule.list_scheduling import list_schedule
from executor.schedule.order import Schedule, schedule, urgent_of
from executor.schedule.simulate import Timeline, simulated
from executor.schedule.task import CopySpeed, ScheduleConstraints, tasks_of
from executor.timing import RunLimits
from model.ids import BrokerId, PartitionId
from model.plan.plan import BrokerChange, Move
from model.snapshot.snapshot import BrokerState, StorageKind
from tests.support.executor.plan_builders import ids, move, plan
from tests.support.executor.simulated_runs import MB

SPEED = CopySpeed(network=100.0 * MB, inside=50.0 * MB, seconds=0.0)


def copy(number: int, source: int, target: int, seconds: float, **more: float) -> Move:
    """A move that copies for so long where it shares nothing."""
    made = move(number, (source,), (target,), bytes_to_copy=int(seconds * 100 * MB))
    return made.model_copy(update=more)


def terms(
    in_flight: int = 8,
    speed: CopySpeed = SPEED,
    free: Mapping[int, int] | None = None,
    urgent: Sequence[PartitionId] = (),
    per_broker: int = 10,
) -> ScheduleConstraints:
    return ScheduleConstraints(
        limits=RunLimits(moves_in_flight=in_flight, moves_per_broker=per_broker),
        speed=speed,
        free_bytes={BrokerId(b): n for b, n in (free or {}).items()},
        urgent=frozenset(urgent),
    )


def scheduled(moves: Sequence[Move], of: ScheduleConstraints) -> Schedule:
    return schedule(tasks_of(moves), of)


def simulated_in_order(moves: Sequence[Move], of: ScheduleConstraints) -> Timeline:
    return simulated(tasks_of(moves), of.speed, Concurrency(of.limits), of.free_bytes)


def test_the_longest_queue_is_not_left_to_the_end() -> None:
    """Broker 1 has to send for 30 s; begun last, its copies share it for 20 of them."""
    others = [copy(n, 2 + 2 * n, 3 + 2 * n, 10.0) for n in range(3)]
    queued = [copy(9 + n, 1, 10 + n, 10.0) for n in range(3)]
    of = terms(in_flight=2)
    assert simulated_in_order([*others, *queued], of).seconds == pytest.approx(40.0)
    result = scheduled([*others, *queued], of)
    assert result.timeline.seconds == pytest.approx(30.0)
    assert result.least_s == pytest.approx(30.0)


def test_cp_sat_finds_and_proves_what_list_scheduling_misses() -> None:
    """3, 3, 2, 2 and 2 s in two slots: the longest first end after 7 s, 6 will do."""
    lengths = (3.0, 3.0, 2.0, 2.0, 2.0)
    moves = [copy(n, 2 * n, 2 * n + 1, s) for n, s in enumerate(lengths)]
    of = terms(in_flight=2)
    by_list = list_schedule(tasks_of(moves), of, slack=1.0)
    assert simulated_in_order([w.move for w in by_list], of).seconds == pytest.approx(7.0)
    result = scheduled(moves, of)
    assert result.timeline.seconds == pytest.approx(6.0)
    assert result.least_s == pytest.approx(6.0, rel=1e-3)


def test_the_proof_accounts_for_indivisible_moves() -> None:
    """Three moves of 4 s have 12 s to share in two slots, and take 8 all the same."""
    moves = [copy(n, 2 * n, 2 * n + 1, 4.0) for n in range(3)]
    result = scheduled(moves, terms(in_flight=2))
    assert result.timeline.seconds == pytest.approx(8.0)
    assert result.least_s == pytest.approx(8.0, rel=1e-3)


def test_the_proof_holds_for_copies_that_share_a_broker() -> None:
    """Three brokers send for 4 s each, and three receive for as long."""
    moves = [
        copy(3 * a + b, 1 + a, 4 + b, (2.0, 1.0, 1.0)[(a + b) % 3])
        for a in range(3)
        for b in range(3)
    ]
    result = scheduled(moves, terms(in_flight=3))
    assert result.least_s == pytest.approx(4.0)
    assert result.timeline.seconds == pytest.approx(4.0, rel=0.01)


def test_large_gains_come_early_if_that_costs_no_time() -> None:
    moves = [copy(n, 1, 2 + n, 10.0, gain=float(n)) for n in range(4)]
    order = scheduled(moves, terms(in_flight=1)).order
    assert [w.move.partition for w in order] == [3, 2, 1, 0]


def test_moves_off_a_draining_broker_come_first_and_internal_topics_last() -> None:
    """Although broker 2 has much more to send."""
    moves = [copy(n, 2, 3 + n, 10.0) for n in range(3)]
    leaving = copy(9, 1, 3, 1.0)
    groups = copy(0, 1, 4, 1.0).model_copy(update={"topic": "__consumer_offsets"})
    drained = plan([groups, *moves, leaving]).model_copy(
        update={"brokers": (state_of(1, BrokerState.DRAINING), state_of(2))}
    )
    urgent = urgent_of(drained)
    assert urgent == {leaving.id, groups.id}
    order = scheduled(drained.moves, terms(in_flight=1, urgent=[*urgent])).order
    assert [order[0].move, order[-1].move] == [leaving, groups]


def state_of(broker: int, state: BrokerState = BrokerState.ALIVE) -> BrokerChange:
    return BrokerChange(
        id=BrokerId(broker),
        rack=None,
        state=state,
        before={},
        after={},
        deviation_before={},
        deviation_after={},
        replicas_before=0,
        replicas_after=0,
    )


def test_replicas_of_a_partition_are_copied_one_after_the_other() -> None:
    both = move(0, (1, 2, 3), (1, 4, 5), bytes_to_copy=2000 * MB)
    result = scheduled([both], terms())
    assert result.timeline.seconds == pytest.approx(20.0)
    assert result.timeline.peaks[BrokerId(1)].out_per_s == pytest.approx(100.0 * MB)


def test_a_broker_copies_into_one_directory_at_a_time() -> None:
    """Two copies of 1 GB at 50 MB/s; the broker temporarily has both."""
    moves = [
        move(n, (1, 2), (1, 2), dirs_before=("/a", "/a"), dirs_after=("/b", "any"))
        for n in range(2)
    ]
    sizes = {(m.id, BrokerId(1)): 1000 * MB for m in moves}
    result = schedule(tasks_of(moves, sizes), terms())
    assert result.timeline.seconds == result.least_s == pytest.approx(40.0)
    peak = result.timeline.peaks[BrokerId(1)]
    assert (peak.inside_bytes, peak.in_bytes) == (2000 * MB, 0)
    assert peak.more_bytes == 2000 * MB


def test_a_plan_is_scheduled_the_same_each_time() -> None:
    """Also by another process, whose strings have other hashes."""
    code = (
        "from tests.executor.schedule.test_order import *\n"
        "moves = [copy(n, n % 3, 3 + n % 4, 1.0 + n % 5, gain=n % 4) "
        "for n in range(24)]\n"
        "found = scheduled(moves, terms(in_flight=3))\n"
        "print([w.move.partition for w in found.order], found.least_s)"
    )
    messages = {
        subprocess.run(
            [sys.executable, "-P", "-c", code],
            capture_output=True,
            check=True,
            text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(messages) == 1


@st.composite
def moves(draw: st.DrawFn) -> list[Move]:
    made = []
    for number in range(draw(st.integers(1, 9))):
        brokers = draw(st.permutations(range(1, 6)))
        copies = draw(st.integers(1, 2))
        added = draw(st.integers(0, copies))
        after = [*brokers[copies : copies + added], *brokers[added:copies]]
        shared = draw(st.booleans()) and copies == 1
        each = 0 if shared else draw(st.integers(1, 30)) * 100 * MB
        one = move(
            number,
            brokers[:copies],
            after,
            topic=draw(st.sampled_from(["orders", "orders", "__internal"])),
            storage=StorageKind.SHARED if shared else StorageKind.REPLICATED,
            bytes_to_copy=each * added,
        )
        made.append(one.model_copy(update={"gain": draw(st.floats(-1, 5))}))
    return made


ROOM = st.dictionaries(st.integers(1, 5), st.integers(0, 6000).map(lambda n: n * MB))


@settings(max_examples=120, deadline=None)
@given(
    planned=moves(),
    in_flight=st.integers(1, 9),
    per_broker=st.integers(1, 4),
    free=ROOM,
    some=st.sets(st.integers(0, 9)),
)
def test_limits_hold_at_every_moment(
    planned: list[Move], in_flight: int, per_broker: int, free: dict[int, int], some: set[int]
) -> None:
    urgent = [m.id for m in planned if m.partition in some]
    speed = CopySpeed(network=100.0 * MB, inside=50.0 * MB, seconds=1.5)
    of = terms(in_flight, speed, free, urgent, per_broker)
    result = scheduled(planned, of)
    timeline = result.timeline
    left_out = {m.id for m, _ in timeline.unfit}
    assert timeline.spans.keys() | left_out == {m.id for m in planned}
    assert not timeline.spans.keys() & left_out
    assert timeline.seconds >= result.least_s * (1 - 1e-9)
    check_slots(planned, timeline, Concurrency(of.limits).widest)
    check_disk_space(planned, timeline, of)
    check_stages(planned, timeline, urgent)
    for peak in timeline.peaks.values():
        assert max(peak.in_per_s, peak.out_per_s) <= speed.network * (1 + 1e-9)


def check_slots(planned: list[Move], timeline: Timeline, limits: RunLimits) -> None:
    spans = [(m, timeline.spans[m.id]) for m in planned if m.id in timeline.spans]
    for _, (at, _) in spans:
        now = [m for m, (begin, end) in spans if begin <= at < end]
        copying = [m for m in now if not is_leader_change(m)]
        assert len(copying) <= limits.moves_in_flight
        assert len(now) - len(copying) <= limits.leader_changes_in_flight
        assert len(now) == 1 or not any(map(is_internal, now))
        busy = Counter(broker for m in copying for broker in brokers_of(m))
        assert max(busy.values(), default=0) <= limits.moves_per_broker


def check_stages(planned: list[Move], timeline: Timeline, urgent: list[PartitionId]) -> None:
    """No move that may wait for the leader changes begins before the last of them ends."""
    held = {m.id for m in planned if not is_leader_change(m)} - set(urgent)
    leads = [timeline.spans[m.id][1] for m in planned if is_leader_change(m)]
    begun = [span[0] for pid, span in timeline.spans.items() if pid in held]
    assert max(leads, default=0.0) <= min(begun, default=float("inf"))


def check_disk_space(planned: list[Move], timeline: Timeline, of: ScheduleConstraints) -> None:
    """Additional bytes on disks, recomputed from starts and ends."""
    changes: dict[BrokerId, list[tuple[float, int]]] = defaultdict(list)
    for one in (m for m in planned if m.id in timeline.spans):
        begin, end = timeline.spans[one.id]
        for broker in one.added:
            changes[broker].append((begin, bytes_per_replica(one)))
        for broker in one.removed:
            changes[broker].append((end, -bytes_per_replica(one)))
    for broker, events in changes.items():
        used, most = 0, 0
        for _, size in sorted(events):
            used += size
            most = max(most, used)
        if most > 0:
            assert most <= of.free_bytes.get(broker, most)
        assert timeline.peaks[broker].more_bytes == max(0, most)


@settings(max_examples=60, deadline=None)
@given(planned=moves(), in_flight=st.integers(1, 4))
def test_no_other_order_is_much_better_or_beats_the_bound(
    planned: list[Move], in_flight: int
) -> None:
    of = terms(in_flight)
    result = scheduled(planned, of)
    tasks = tasks_of(planned)
    leads = [task for task in tasks if is_leader_change(task.move)]
    beside = [task for task in tasks if not task.is_alone and task not in leads]
    for slack in (0.0, 0.1, 0.2, 1.0):
        order = [*leads, *list_schedule(beside, of, slack=slack)]
        order += [task for task in tasks if task.is_alone]
        by_list = simulated_in_order([w.move for w in order], of).seconds
        assert by_list >= result.least_s * (1 - 1e-9)
        if slack:
            assert result.timeline.seconds <= by_list * 1.02 + 1e-9


def test_leader_changes_end_before_copies_begin() -> None:
    """Twelve in two rounds of ten, then one copy of 10 s; the bound is exact."""
    leads = [move(10 + n, (1, 2), (2, 1)) for n in range(12)]
    speed = CopySpeed(network=100.0 * MB, inside=50.0 * MB, seconds=1.5)
    result = scheduled([copy(0, 1, 2, 10.0), *leads], terms(speed=speed))
    assert [task.move for task in result.order[:12]] == leads
    assert result.timeline.spans[PartitionId(leads[0].topic, 0)] == pytest.approx((3.0, 14.5))
    assert result.least_s == pytest.approx(14.5)


def test_a_move_that_never_fits_is_named() -> None:
    big = copy(0, 1, 2, 100.0)
    result = scheduled([big, copy(1, 1, 3, 1.0)], terms(free={2: 500 * MB}))
    ((named, reason),) = result.timeline.unfit
    assert named == big
    assert reason == ("broker 2 has 500 MB free beyond its reserve, and orders-0 needs 10.0 GB")


def test_completed_moves_use_and_free_disk_space() -> None:
    """1 GB fits twice once the first replica of broker 2 has gone."""
    into = [copy(n, 1, 2, 10.0) for n in range(2)]
    away = copy(5, 2, 3, 10.0)
    alone = scheduled(into, terms(in_flight=1, free={2: 1500 * MB}))
    assert len(alone.timeline.unfit) == 1
    freed = scheduled([*into, away], terms(in_flight=1, free={2: 1500 * MB}))
    assert not freed.timeline.unfit
    assert ids([2])[0] in freed.timeline.peaks
