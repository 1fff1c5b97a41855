"""Segments of topics are short while a run moves them, and restored afterwards."""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.journal.run_history import left_set, read_journal
from executor.journal.run_journal import RunJournal
from executor.platforms.tiered_segments import (
    LOCAL,
    SEGMENT,
    LoweredSegments,
    RunSegmentSettings,
    SegmentSettings,
    shorter,
)
from executor.platforms.tiered_tail import Retention, Tail
from executor.timing import RunLimits
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import SimulatedBroker, SimulatedPartition, steady
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import ExecutionStopped
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.run import JournalEvent, MoveState, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move, plan
from tests.support.executor.simulated_runs import MB, TOPIC, Killed, SimulatedRun, interrupted_runs

MIB = 2**20
GIB = 2**30
LIMIT = Retention(segment_bytes=GIB, local_bytes=-1, local_ms=-1, skips_tiered=True)
WHOLE = Tail(
    first=0,
    first_local=0,
    last_tiered=999_999,
    end=2_000_000,
    local_bytes=100 * GIB,
    retention=LIMIT,
)
"""Half of it is in the tier, and all of it on the leader's disk."""
BEHIND = dataclasses.replace(WHOLE, first_local=1000)
"""A segment has left the disk, so new replicas skip what is in the tier."""
SHORTENING = RunLimits(moves_in_flight=2, lower_segments=True)
OWN = {SEGMENT: "8388608", "max.message.bytes": "2000000"}
"""Of the topic before: one of the two settings, and something else."""


def of(tail: Tail, size: int, **limits: Any) -> Tail:
    retention = dataclasses.replace(tail.retention, **limits)
    return dataclasses.replace(tail, local_bytes=size, retention=retention)


def test_each_log_loses_one_segment_if_replicas_skip_the_tier() -> None:
    logs = [WHOLE, of(WHOLE, 50 * GIB)]
    assert shorter(logs, MIB)[LOCAL] == str(49 * GIB)


def test_all_uploaded_segments_leave_if_replicas_do_not_skip_the_tier() -> None:
    assert shorter([of(WHOLE, GIB, skips_tiered=False)], MIB)[LOCAL] == "1"


def test_a_log_of_one_segment_is_not_emptied() -> None:
    assert shorter([of(WHOLE, GIB // 2)], MIB) == {SEGMENT: str(8 * MIB), LOCAL: "1"}


def test_local_retention_stays_if_replicas_already_skip_the_tier() -> None:
    assert shorter([of(BEHIND, 10 * GIB)], MIB) == {SEGMENT: str(160 * MIB)}


def test_local_retention_is_never_raised() -> None:
    assert LOCAL not in shorter([of(WHOLE, 10 * GIB, local_bytes=5 * GIB)], MIB)


def test_segments_hold_the_largest_append() -> None:
    assert shorter([of(WHOLE, GIB)], 64 * MIB)[SEGMENT] == str(64 * MIB)


def test_segments_that_are_small_already_stay() -> None:
    assert SEGMENT not in shorter([of(WHOLE, GIB, segment_bytes=8 * MIB)], MIB)


@pytest.mark.parametrize("size", [0, 30 * MIB])
def test_nothing_is_changed_for_a_few_bytes(size: int) -> None:
    assert shorter([of(WHOLE, size)], MIB) == {}


@given(
    sizes=st.lists(st.integers(0, 2**45), min_size=1, max_size=5),
    segment=st.integers(MIB, 2 * GIB),
    local=st.integers(-1, 2**45),
    least=st.integers(MIB, 2**27),
    skips=st.booleans(),
    behind=st.booleans(),
)
def test_values_are_lower_and_valid_for_kafka(
    sizes: list[int], segment: int, local: int, least: int, skips: bool, behind: bool
) -> None:
    limit = Retention(segment_bytes=segment, local_bytes=local, local_ms=-1, skips_tiered=skips)
    tail = dataclasses.replace(BEHIND if behind else WHOLE, retention=limit)
    values = shorter([dataclasses.replace(tail, local_bytes=n) for n in sizes], least)
    if SEGMENT in values:
        assert least <= int(values[SEGMENT]) < segment
    if LOCAL in values:
        assert int(values[LOCAL]) >= 1
        assert local < 0 or int(values[LOCAL]) < local


def test_the_journal_returns_what_was_written() -> None:
    settings = LoweredSegments(
        before={TOPIC: {SEGMENT: None, LOCAL: "5"}}, now={TOPIC: {SEGMENT: "1048576", LOCAL: "1"}}
    )
    assert LoweredSegments.read(settings.document()) == settings


def site(folder: Path, limits: RunLimits = SHORTENING, bytes_in: float = 0.1 * MB) -> SimulatedRun:
    """Four logs of 200 MB on the disks."""
    at = SimulatedRun(
        folder=folder,
        before=dict.fromkeys(range(4), (1, 2)),
        after={0: (3, 2), 1: (1, 3), 2: (4, 3), 3: (2, 1)},
        storage=StorageKind.TIERED,
        bytes_in=steady(bytes_in),
        limits=limits,
    )
    at.cluster.topic_configs[TOPIC] = dict(OWN)
    return at


def own(at: SimulatedRun) -> dict[str, str]:
    return at.cluster.topic_configs.get(TOPIC, {})


def test_moves_copy_short_tails_and_the_topic_is_restored(tmp_path: Path) -> None:
    at = site(tmp_path, bytes_in=0.0)
    seen: list[dict[str, str]] = []
    at.cluster.after(0.5, lambda: seen.append(dict(own(at))))
    report = at.run()
    assert (report.state, report.reason) == (RunState.DONE, "")
    assert report.preparation_s > 0.0
    assert all((m.bytes_copied or 0) < 30 * MB for m in report.moves)
    assert seen == [OWN | {SEGMENT: "3125000", LOCAL: "191611392"}]
    assert own(at) == OWN


def test_without_consent_nothing_is_set_and_the_note_names_the_option(tmp_path: Path) -> None:
    at = site(tmp_path, limits=RunLimits())
    at.faults.refusals["alter_topic_configs"] = "nothing may be changed"
    report = at.run()
    assert report.state is RunState.DONE
    assert "with --lower-segment-bytes about 6." in report.moves[0].note


def test_a_dry_run_shows_settings_to_change(tmp_path: Path) -> None:
    at = site(tmp_path, bytes_in=0.0)
    assert at.executor().dry_run(at.plan)[:2] == [
        f"IncrementalAlterConfigs topic orders: {SEGMENT} = 3125000",
        f"IncrementalAlterConfigs topic orders: {LOCAL} = 191611392",
    ]
    assert own(at) == OWN


@pytest.mark.parametrize(
    ("key", "value"), [("cleanup.policy", "compact,delete"), ("remote.log.copy.disable", "true")]
)
def test_topics_whose_segments_must_stay_local_are_left_alone(
    tmp_path: Path, key: str, value: str
) -> None:
    at = site(tmp_path)
    at.cluster.topic_configs[TOPIC][key] = value
    at.faults.refusals["alter_topic_configs"] = "nothing may be changed"
    assert at.run().state is RunState.DONE


def test_a_segment_holds_the_largest_fetch_and_batch(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.cluster.brokers[BrokerId(5)].configs["replica.fetch.max.bytes"] = "5000000"
    first = f"IncrementalAlterConfigs topic orders: {SEGMENT} ="
    assert at.executor().dry_run(at.plan)[0] == f"{first} 5000000"
    at.cluster.topic_configs[TOPIC]["max.message.bytes"] = "6000000"
    assert at.executor().dry_run(at.plan)[0] == f"{first} 6000000"


def test_a_cluster_that_refuses_the_change_ends_the_run_before_its_first_move(
    tmp_path: Path,
) -> None:
    at = site(tmp_path)
    at.faults.refusals["alter_topic_configs"] = "POLICY_VIOLATION"
    with pytest.raises(ExecutionStopped, match="POLICY_VIOLATION"):
        at.run()
    assert at.placement == {n: (tuple(of), of[0]) for n, of in at.before.items()}
    assert own(at) == OWN


def stop(at: SimulatedRun) -> None:
    at.cluster.after(1.0, at.steering.stop)


def fail(at: SimulatedRun) -> None:
    at.cluster.after(1.0, lambda: at.cluster.kill(BrokerId(4)))


def interrupt(at: SimulatedRun) -> None:
    def by_ctrl_c() -> None:
        raise KeyboardInterrupt

    at.cluster.after(1.0, by_ctrl_c)


@pytest.mark.parametrize("happen", [stop, fail, interrupt])
def test_the_topic_is_restored_on_every_exit(
    tmp_path: Path, happen: Callable[[SimulatedRun], None]
) -> None:
    at = site(tmp_path, limits=RunLimits(moves_in_flight=1, lower_segments=True))
    happen(at)
    with suppress(KeyboardInterrupt):
        assert at.run().state is not RunState.DONE
    assert JournalEvent.SEGMENTS_LOWERED in events(at)
    assert own(at) == OWN
    assert left_set(tmp_path, CLUSTER_ID) == []


def events(at: SimulatedRun) -> list[JournalEvent]:
    (path,) = at.folder.glob("*.jsonl")
    return [record.event for record in read_journal(path)]


@pytest.mark.parametrize("by", ["resume", "resume without consent", "cleanup"])
@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_killed_at_any_call_the_topics_settings_are_restored(
    tmp_path: Path, by: str, made: bool
) -> None:
    for at in interrupted_runs(tmp_path, site, made=made, least=6):
        if by == "cleanup":
            at.executor().clean_up(at.folder)
        else:
            at.limits = RunLimits(lower_segments=by == "resume")
            assert at.resume().state is RunState.DONE
        assert own(at) == OWN
        assert left_set(at.folder, CLUSTER_ID) == []


def test_a_rollback_restores_the_topic_too(tmp_path: Path) -> None:
    at = site(tmp_path)
    assert at.run().state is RunState.DONE
    report = at.roll_back()
    assert report.state is RunState.DONE
    assert at.placement == {n: (tuple(of), of[0]) for n, of in at.before.items()}
    assert own(at) == OWN


def test_settings_changed_by_someone_else_are_kept_and_reported(tmp_path: Path) -> None:
    at = site(tmp_path)
    theirs = {SEGMENT: "9000000", LOCAL: "7"}
    at.cluster.after(0.7, lambda: at.cluster.topic_configs[TOPIC].update(theirs))
    report = at.run()
    assert report.state is RunState.DONE
    assert report.reason == (
        f"someone else has set {LOCAL} of orders to 7 in the meantime, which stays; someone else "
        f"has set {SEGMENT} of orders to 9000000 in the meantime, which stays"
    )
    assert own(at) == OWN | theirs


def test_a_deleted_topic_needs_no_restoring(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.kill_at(1, made=False)
    with suppress(Killed):
        at.run()
    at.stop_killing()
    at.cluster.partitions.clear()
    at.cluster.topic_configs.clear()
    at.executor().clean_up(at.folder)
    assert own(at) == {}
    assert left_set(at.folder, CLUSTER_ID) == []


def when_moves_start(at: SimulatedRun, happen: Callable[[], None]) -> None:
    """Let something happen while the segments are short and replicas are copied."""

    def on_call(call: str, *, made: bool) -> None:
        if made and call == "reassign":
            happen()

    at.faults.on_call = on_call


def test_a_silent_cluster_is_reported_and_left_to_cleanup(tmp_path: Path) -> None:
    at = site(tmp_path)
    when_moves_start(at, lambda: setattr(at.faults, "away", True))
    report = at.run()
    assert report.state is RunState.FAILED
    assert "no answer came, so orders may keep a lower segment.bytes" in report.reason
    assert "plimsoll cleanup restores the rest" in report.reason
    at.faults.away = False
    (output,) = at.executor().clean_up(tmp_path)
    assert output.endswith("its topics' segments are as before")
    assert own(at) == OWN


def test_a_topic_that_cannot_be_restored_is_reported_with_the_clusters_message(
    tmp_path: Path,
) -> None:
    at = site(tmp_path)
    refused = {"alter_topic_configs": "local.retention.bytes is too large"}
    when_moves_start(at, lambda: at.faults.refusals.update(refused))
    report = at.run()
    assert report.state is RunState.FAILED
    assert "orders keeps a lower segment.bytes: the cluster did not" in report.reason
    assert "local.retention.bytes is too large; plimsoll cleanup" in report.reason
    at.faults.refusals.clear()
    at.executor().clean_up(tmp_path)
    assert own(at) == OWN


def test_a_topic_is_restored_with_its_last_move(tmp_path: Path) -> None:
    moves = [tiered(0, "orders"), tiered(1, "orders"), tiered(0, "items")]
    cluster = SimulatedCluster(
        CLUSTER_ID,
        [SimulatedBroker(id=b) for b in ids([1, 2])],
        [partition(of.id) for of in moves],
        now_s=1_800_000_000.0,
    )
    at = SimulatedRun(folder=tmp_path, before={}, after={})
    admin = SimulatedAdmin(cluster, at.faults)
    journal = RunJournal(tmp_path, plan(moves), "run-1", cluster.timing)
    settings = RunSegmentSettings(SegmentSettings(admin, cluster.timing), journal, consent=True)
    settings.begin(moves)
    topics = cluster.topic_configs
    assert set(topics) == {"orders", "items"}
    settings.release(moves[0])
    assert set(topics) == {"orders", "items"}
    settings.release(moves[1])
    assert set(topics) == {"items"}
    assert settings.end() == ""
    assert topics == {}
    journal.close()


def test_a_run_waits_until_every_broker_shows_the_lower_settings(tmp_path: Path) -> None:
    """Otherwise a later read may ask a broker that lags, and take a long tail for a short one."""
    moves = [tiered(0, "orders")]
    cluster = SimulatedCluster(
        CLUSTER_ID,
        [SimulatedBroker(id=b) for b in ids([1, 2, 3])],
        [partition(moves[0].id)],
        now_s=1_800_000_000.0,
    )
    at = SimulatedRun(folder=tmp_path, before={}, after={})
    admin = LaggingBroker(cluster, at.faults)
    settings = SegmentSettings(admin, cluster.timing)
    began_s = cluster.timing.steady_s()
    settings.set(settings.plan(moves))
    assert cluster.timing.steady_s() - began_s >= LAG_S
    cluster.topic_configs.clear()
    admin.lags_until_s = cluster.timing.steady_s() + 60.0
    unseen = LoweredSegments(before={ORDERS: {SEGMENT: None}}, now={ORDERS: {SEGMENT: "1"}})
    with pytest.raises(ExecutionStopped, match=r"orders does not accept segment\.bytes = 1"):
        settings.set(unseen)


LAG_S = 3.0
ORDERS = TopicName("orders")


class LaggingBroker(SimulatedAdmin):
    """Broker 3 learns of topics' settings a while after the others."""

    def __init__(self, cluster: SimulatedCluster, faults: Faults) -> None:
        super().__init__(cluster, faults)
        self.clock = cluster.timing
        self.lags_until_s = self.clock.steady_s() + LAG_S

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str], broker: BrokerId | None = None
    ) -> dict[TopicName, dict[str, str]]:
        if broker == 3 and self.clock.steady_s() < self.lags_until_s:
            return {topic: {} for topic in topics}
        return super().own_topic_configs(topics, keys, broker)


def tiered(number: int, topic: str) -> Move:
    return move(number, topic=topic, storage=StorageKind.TIERED)


def partition(pid: PartitionId) -> SimulatedPartition:
    return SimulatedPartition(
        id=PartitionId(TopicName(pid.topic), pid.partition),
        topic_id=move().topic_id,
        storage=StorageKind.TIERED,
        replicas=list(ids([1])),
        leader=BrokerId(1),
        bytes_in=steady(0.0),
        log_bytes=200.0 * MB,
    )


def test_a_log_without_local_data_is_not_moved(tmp_path: Path) -> None:
    at = site(tmp_path, bytes_in=0.0)
    at.cluster.partitions[PartitionId(TOPIC, 2)].tail_bytes = 0.0
    report = at.run()
    assert [m.state for m in report.moves] == [
        *[MoveState.DONE] * 2,
        MoveState.DROPPED,
        MoveState.DONE,
    ]
    assert "nothing on its leader's disk" in report.moves[2].note
    assert at.placement[2] == ((1, 2), 1)
