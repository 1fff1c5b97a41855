"""Large segments on stock Kafka get short for a run, and are as before afterwards."""

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from executor.admin import Admin, local_bytes
from executor.connect import Executor, connect
from executor.history import left_set
from executor.kafka_admin import KafkaAdmin
from executor.s3 import S3Settings
from executor.segments import LOCAL, SEGMENT
from executor.steering import Steering
from executor.tail import Patience
from executor.timing import RunLimits
from lab.load import Load, LoadOrder
from lab.local import LocalCluster
from model.ids import BrokerId, TopicName
from model.plan import Plan, write_plan
from model.run import MoveState, RunProgress, RunReport, RunState
from tests.executor.plans import plan_for

pytestmark = pytest.mark.kafka

MIB = 2**20
KEEPS_ALL = {"remote.storage.enable": "true", "file.delete.delay.ms": "200"}
"""Segments of 1 GiB, and local retention without end."""
OWN_SEGMENTS = KEEPS_ALL | {SEGMENT: str(512 * MIB), "segment.ms": "600000000"}
FILL_BYTES = 48 * MIB
KEYS = (SEGMENT, LOCAL, "local.retention.ms", "segment.ms", *KEEPS_ALL)
SHORTENING = RunLimits(shorten_segments=True)
DIES_WITH_A_MOVE_UNDER_WAY = """
import os, signal, sys
from pathlib import Path
from executor.connect import connect
from executor.steering import Steering
from executor.timing import RunLimits
from model.plan import read_plan
from model.run import MoveState

def die(progress):
    if progress.count(MoveState.ISSUED):
        os.kill(os.getpid(), signal.SIGKILL)

bootstrap, plan, folder = sys.argv[1:]
limits = RunLimits(shorten_segments=True)
with connect(bootstrap, timeout_s=10.0, limits=limits) as executor:
    executor.execute(
        read_plan(Path(plan)),
        journal_dir=Path(folder),
        observe=die,
        steering=Steering(),
    )
"""


@pytest.fixture
def topic() -> str:
    return f"segments-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def admin(local_cluster: LocalCluster) -> Iterator[Admin]:
    with KafkaAdmin(local_cluster.bootstrap, 10.0) as opened:
        yield opened


@pytest.fixture
def executor(local_cluster: LocalCluster) -> Iterator[Executor]:
    s3 = S3Settings(
        endpoint_url=local_cluster.s3.endpoint,
        bucket=local_cluster.s3.bucket,
        access_key=local_cluster.s3.access_key,
        secret_key=local_cluster.s3.secret_key,
    )
    with connect(
        local_cluster.bootstrap, timeout_s=10.0, s3=s3, limits=SHORTENING
    ) as opened:
        yield opened


def filled(cluster: LocalCluster, topic: str, partitions: int = 1) -> Load:
    """A load that has filled each partition, and goes on slowly."""
    shares = (1.0,) * partitions
    order = LoadOrder(topic=topic, bytes_per_s=25e6, weights=shares)
    load = Load(cluster.processes, cluster.bootstrap, order, name=topic)
    load.start()
    end_s = time.monotonic() + 60.0
    while min(load.status().acknowledged_bytes) < FILL_BYTES:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    load.shift(shares, 1e6)
    return load


def own(admin: Admin, topic: str) -> dict[str, str]:
    name = TopicName(topic)
    return admin.own_topic_configs([name], KEYS)[name]


def shows(admin: Admin, topic: str, wanted: dict[str, str]) -> bool:
    """Every broker is asked, some time or other."""
    end_s = time.monotonic() + 10.0
    while own(admin, topic) != wanted:
        if time.monotonic() > end_s:
            return False
        time.sleep(0.1)
    return True


def execute(
    executor: Executor,
    plan: Plan,
    folder: Path,
    observe: Callable[[RunProgress], None] = lambda _: None,
) -> RunReport:
    return executor.execute(
        plan, journal_dir=folder, observe=observe, steering=Steering()
    )


@pytest.mark.parametrize("before", [KEEPS_ALL, OWN_SEGMENTS], ids=["unset", "set"])
def test_large_segments_move_under_load_by_their_tail_and_are_as_before(
    local_cluster: LocalCluster,
    executor: Executor,
    admin: Admin,
    topic: str,
    tmp_path: Path,
    before: dict[str, str],
) -> None:
    local_cluster.create_topic(topic, [[1, 2], [1, 3]], before)
    load = filled(local_cluster, topic, partitions=2)
    plan = plan_for(local_cluster.bootstrap, topic, {0: [3, 2], 1: [1, 2]})
    seen: list[dict[str, str]] = []

    def look(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED):
            seen.append(own(admin, topic))

    report = execute(executor, plan, tmp_path, look)
    balance = load.finish()
    assert (report.state, report.reason) == (RunState.DONE, "")
    for move in report.moves:
        assert move.bytes_copied is not None
        assert move.bytes_copied < FILL_BYTES / 8
        assert "in the tier, seen through S3" in move.note
    assert report.preparation_s > 0.0
    assert int(seen[0][SEGMENT]) < 2 * MIB
    assert LOCAL in seen[0]
    assert shows(admin, topic, before)
    assert balance.acknowledged_records == balance.read_records > 0
    assert (balance.lost_records, balance.duplicated_records) == (0, 0)


def test_a_log_that_stands_still_copies_its_active_segment_and_says_so(
    local_cluster: LocalCluster,
    executor: Executor,
    admin: Admin,
    topic: str,
    tmp_path: Path,
) -> None:
    local_cluster.create_topic(topic, [[1]], KEEPS_ALL)
    filled(local_cluster, topic).finish()
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    (move,) = execute(executor, plan, tmp_path).moves
    assert move.state is MoveState.DONE
    assert (move.bytes_copied or 0) >= FILL_BYTES
    assert "its log stands still, and an append is what rolls a segment" in move.note
    assert shows(admin, topic, KEEPS_ALL)


def test_brokers_tell_how_often_they_upload_and_delete(
    local_cluster: LocalCluster, admin: Admin, topic: str
) -> None:
    local_cluster.create_topic(topic, [[1]], KEEPS_ALL)
    moves = plan_for(local_cluster.bootstrap, topic, {0: [2]}).moves
    assert Patience.with_brokers(admin, moves, 30.0) == Patience(
        wait_s=30.0, upload_s=0.5, delete_s=0.5
    )


def test_without_consent_nothing_is_set_and_the_note_says_what_would_help(
    local_cluster: LocalCluster, admin: Admin, topic: str, tmp_path: Path
) -> None:
    local_cluster.create_topic(topic, [[1]], KEEPS_ALL)
    filled(local_cluster, topic).finish()
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    seen: list[dict[str, str]] = []
    with connect(local_cluster.bootstrap, timeout_s=10.0) as executor:
        report = execute(
            executor, plan, tmp_path, lambda _: seen.append(own(admin, topic))
        )
    (move,) = report.moves
    assert (move.bytes_copied or 0) >= FILL_BYTES
    assert "with --shorten-segments about 2.10 MB, while records come" in move.note
    assert all(shown == KEEPS_ALL for shown in seen)


def test_a_run_that_is_killed_leaves_to_cleanup_what_it_has_set(
    local_cluster: LocalCluster,
    executor: Executor,
    admin: Admin,
    topic: str,
    tmp_path: Path,
) -> None:
    local_cluster.create_topic(topic, [[1]], OWN_SEGMENTS)
    filled(local_cluster, topic).finish()
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    write_plan(tmp_path / "plan.json", plan)
    journals = tmp_path / "journal"
    process = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            DIES_WITH_A_MOVE_UNDER_WAY,
            local_cluster.bootstrap,
            str(tmp_path / "plan.json"),
            str(journals),
        ],
        check=False,
        timeout=120.0,
    )
    assert process.returncode == -signal.SIGKILL
    assert own(admin, topic) != OWN_SEGMENTS
    (said,) = executor.clean_up(journals)
    assert said.endswith("its topics' segments are as before")
    assert shows(admin, topic, OWN_SEGMENTS)
    assert left_set(journals, plan.cluster_id) == []


def test_a_log_with_nothing_on_the_disk_is_not_sent_to_where_it_would_hang(
    local_cluster: LocalCluster,
    executor: Executor,
    admin: Admin,
    topic: str,
    tmp_path: Path,
) -> None:
    """Kafka 4.3.1 lets its new replica join with the next append, and not before."""
    local_cluster.create_topic(topic, [[1]], KEEPS_ALL | {LOCAL: "0"})
    filled(local_cluster, topic).finish()
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    end_s = time.monotonic() + 30.0
    while local_bytes(admin, BrokerId(1), [plan.moves[0].id]) != {plan.moves[0].id: 0}:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    (move,) = execute(executor, plan, tmp_path).moves
    assert move.state is MoveState.DROPPED
    assert "nothing on its leader's disk" in move.note
    assert admin.reassignments() == {}
    load = filled(local_cluster, topic)
    (move,) = execute(executor, plan, tmp_path).moves
    assert move.state is MoveState.DONE
    load.kill()
