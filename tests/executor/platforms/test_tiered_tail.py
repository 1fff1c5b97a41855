"""The bytes that a tiered move copies, and how long the run waits for a short tail."""

import dataclasses
import threading
from collections.abc import Collection, Sequence

import pytest

from executor.client.cluster_admin import OffsetKind
from executor.platforms.tiered_tail import (
    AwaitedTail,
    Retention,
    Tail,
    TailReader,
    TailWait,
    nothing_local,
    wait_for_short_tails,
)
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.ids import BrokerId, PartitionId
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.plan_builders import move

MIB = 2**20
EARLIEST = OffsetKind.EARLIEST
EARLIEST_LOCAL = OffsetKind.EARLIEST_LOCAL
LATEST = OffsetKind.LATEST
RETENTION = Retention(segment_bytes=MIB, local_bytes=1, local_ms=-1, skips_tiered=True)
LONG = Tail(
    first=0,
    first_local=4000,
    last_tiered=4999,
    end=10_000,
    local_bytes=6 * MIB,
    retention=RETENTION,
)
"""6,000 records on the disk, of which 1,000 are in the tier too."""
SHORT = dataclasses.replace(LONG, last_tiered=8999)


def test_only_data_after_the_last_tiered_offset_is_copied() -> None:
    assert LONG.bytes_to_copy == 5 * MIB
    assert SHORT.bytes_to_copy == MIB


def test_everything_local_is_copied_before_a_segment_has_left_the_disk() -> None:
    assert dataclasses.replace(SHORT, first=4000).bytes_to_copy == 6 * MIB


def test_everything_local_is_copied_where_brokers_do_not_skip_the_tier() -> None:
    old = dataclasses.replace(RETENTION, skips_tiered=False)
    assert dataclasses.replace(SHORT, retention=old).bytes_to_copy == 6 * MIB


def test_an_empty_log_is_short() -> None:
    empty = Tail(first=0, first_local=0, last_tiered=-1, end=0, local_bytes=0, retention=RETENTION)
    assert empty.is_short
    assert empty.bytes_to_copy == 0


@pytest.mark.parametrize("local_bytes", [-1, 7 * MIB])
def test_waiting_is_pointless_if_local_retention_keeps_everything(local_bytes: int) -> None:
    keeps = dataclasses.replace(RETENTION, local_bytes=local_bytes)
    remaining = dataclasses.replace(LONG, first=4000, retention=keeps)
    assert not remaining.may_get_short(30.0)
    assert remaining.why_long == "its local retention keeps every segment"


def test_local_retention_falls_back_on_the_topics_retention() -> None:
    configs = {
        "segment.bytes": "1048576",
        "retention.bytes": "-1",
        "retention.ms": "3600000",
        "local.retention.bytes": "4194304",
        "local.retention.ms": "-2",
    }
    assert Retention.of(configs, skips_tiered=True) == Retention(
        segment_bytes=MIB, local_bytes=4 * MIB, local_ms=3_600_000, skips_tiered=True
    )


class CannedReader(TailReader):
    """Shows these tails of one partition, the last one again and again."""

    def __init__(self, *tails: Tail) -> None:
        self._tails = list(tails)

    def read(self, ids: object = None) -> dict[PartitionId, Tail]:
        result = self._tails.pop(0) if len(self._tails) > 1 else self._tails[0]
        return {move().id: result}


def waited(*tails: Tail, wait_s: float = 30.0, stop: bool = False) -> tuple[Tail, float]:
    event = threading.Event()
    if stop:
        event.set()
    reader, time = CannedReader(*tails), FakeTime()
    (result,) = wait_for_short_tails(reader, TailWait(wait_s=wait_s), time.timing, event).values()
    return result.tail, result.seconds


def test_a_short_tail_is_not_waited_for() -> None:
    assert waited(SHORT) == (SHORT, 0.0)


def test_a_move_waits_until_the_tail_is_short() -> None:
    assert waited(LONG, LONG, SHORT) == (SHORT, 0.5)


def test_waiting_for_an_idle_log_ends_early() -> None:
    assert waited(LONG) == (LONG, 5.0)


def test_waiting_for_a_growing_log_ends() -> None:
    growing = [dataclasses.replace(LONG, end=LONG.end + i) for i in range(500)]
    _, seconds = waited(*growing)
    assert seconds == 30.0


def test_a_long_wait_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        "executor.platforms.tiered_tail._log.warning", lambda _, *of, **_event: reported.append(of)
    )
    waited(LONG, wait_s=60.0)
    assert reported == []
    waited(LONG, wait_s=660.0)
    assert reported == [("11 min 00 s", "1 partition")]


def test_the_operator_can_end_the_wait() -> None:
    assert waited(LONG, stop=True) == (LONG, 0.0)


def test_brokers_get_time_to_apply_new_settings() -> None:
    tail_wait = TailWait(wait_s=30.0, upload_s=30.0, delete_s=300.0)
    assert tail_wait.most_s == 660.0
    assert tail_wait.idle_s(dataclasses.replace(LONG, first=4000)) == 335.0
    assert tail_wait.idle_s(LONG) == 35.0, "nothing has to be deleted any more"


@pytest.mark.parametrize(("more", "stands"), [(0, True), (1, False)])
def test_an_idle_log_is_named_as_the_reason(more: int, stands: bool) -> None:
    before = AwaitedTail(tail=LONG, seconds=0.0, changed_at_s=0.0)
    grown = dataclasses.replace(LONG, end=LONG.end + more)
    assert ("gets no records" in before.next(grown, 5.0, 0.0).why_long) is stands
    assert "gets no records" not in before.why_long


def test_a_log_without_local_data_differs_from_an_empty_one() -> None:
    moves = [move(n) for n in range(3)]
    local, end = {0: 9, 1: 0, 2: 8}, {0: 9, 1: 0, 2: 9}
    admin = Offsets({EARLIEST: {0: 0, 1: 0, 2: 0}, EARLIEST_LOCAL: local, LATEST: end})
    assert nothing_local(admin, moves) == {moves[0].id}
    admin.skips = "false"
    assert nothing_local(admin, moves) == set()


class Offsets(SimulatedAdmin):
    """Answers with these offsets of partitions of one topic."""

    def __init__(self, offsets: dict[OffsetKind, dict[int, int]]) -> None:
        self._offsets = offsets
        self.skips = "true"

    def offsets(
        self, leader: BrokerId, ids: Collection[PartitionId], kind: OffsetKind
    ) -> dict[PartitionId, int]:
        return {pid: self._offsets[kind][pid.partition] for pid in ids}

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(keys, self.skips)
