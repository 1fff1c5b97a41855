"""Large segments on stock Kafka are shortened for a run and restored afterwards."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.client.cluster_admin import ClusterAdmin, local_bytes
from executor.executor import Executor, connect
from executor.journal.run_history import left_set
from executor.platforms.tiered_segments import LOCAL, SEGMENT
from executor.platforms.tiered_tail import TailWait
from executor.timing import RunLimits
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import BrokerId, TopicName
from model.plan.plan import Plan, write_plan
from model.run import MoveState, RunProgress
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.plan_builders import plan_for
from tests.support.executor.real_runs import assert_done, execute, executor_with_tier
from tests.support.executor.topic_records import assert_exact, fill, loaded

pytestmark = pytest.mark.kafka

MIB = 2**20
KEEPS_ALL = {"remote.storage.enable": "true", "file.delete.delay.ms": "200"}
"""Segments of 1 GiB, and local retention without end."""
OWN_SEGMENTS = KEEPS_ALL | {SEGMENT: str(512 * MIB), "segment.ms": "600000000"}
MEGABYTES = 40
"""Bytes in each partition, enough for lowering segment.bytes to be worthwhile."""
FILLED = MEGABYTES * 10**6
"""A fourth of it tells moves that copy all from those that copy a tail: bytes are polled."""
SLOWLY = 1e6
KEYS = (SEGMENT, LOCAL, "local.retention.ms", "segment.ms", *KEEPS_ALL)
SHORTENING = RunLimits(lower_segments=True)
DIES_DURING_A_MOVE = """
import os, signal, sys
from pathlib import Path
from executor.executor import connect
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from model.plan.plan import read_plan
from model.run import MoveState

def die(progress):
    if progress.count(MoveState.ISSUED):
        os.kill(os.getpid(), signal.SIGKILL)

bootstrap, plan, folder = sys.argv[1:]
limits = RunLimits(lower_segments=True)
with connect(bootstrap, timeout_s=10.0, limits=limits) as executor:
    executor.execute(
        read_plan(Path(plan)),
        journal_dir=Path(folder),
        observe=die,
        steering=Steering(),
    )
"""


def plan_of_one(cluster: LocalCluster, topic: str, settings: dict[str, str]) -> Plan:
    """Fill one partition on broker 1, and plan its move to broker 2."""
    cluster.create_topic(topic, [[1]], settings)
    fill(cluster.bootstrap, topic, [MEGABYTES])
    return plan_for(cluster.bootstrap, topic, {0: [2]})


@pytest.fixture
def executor(local_cluster: LocalCluster) -> Iterator[Executor]:
    with executor_with_tier(local_cluster, SHORTENING) as opened:
        yield opened


def own(admin: ClusterAdmin, topic: str) -> dict[str, str]:
    name = TopicName(topic)
    return admin.own_topic_configs([name], KEYS)[name]


@pytest.mark.parametrize("before", [KEEPS_ALL, OWN_SEGMENTS], ids=["unset", "set"])
def test_large_segments_under_load_copy_the_tail_and_are_restored(
    local_cluster: LocalCluster,
    executor: Executor,
    admin: ClusterAdmin,
    topic: str,
    tmp_path: Path,
    before: dict[str, str],
) -> None:
    local_cluster.create_topic(topic, [[1, 2], [1, 3]], before)
    fill(local_cluster.bootstrap, topic, [MEGABYTES] * 2)
    load = loaded(local_cluster, topic, 0, partitions=2, rate=SLOWLY)
    plan = plan_for(local_cluster.bootstrap, topic, {0: [3, 2], 1: [1, 2]})
    seen: list[dict[str, str]] = []

    def look(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED):
            seen.append(own(admin, topic))

    report = execute(executor, plan, tmp_path, look)
    assert_exact(load)
    assert_done(report)
    for move in report.moves:
        assert move.bytes_copied is not None
        assert move.bytes_copied < FILLED / 4
        assert "in the tier, seen through S3" in move.note
    assert report.preparation_s > 0.0
    assert int(seen[0][SEGMENT]) < 2 * MIB
    assert LOCAL in seen[0]
    # Every broker is queried at some time.
    wait_until(lambda: own(admin, topic) == before)


def test_an_idle_log_copies_its_active_segment_and_notes_it(
    local_cluster: LocalCluster, executor: Executor, admin: ClusterAdmin, topic: str, tmp_path: Path
) -> None:
    plan = plan_of_one(local_cluster, topic, KEEPS_ALL)
    (move,) = execute(executor, plan, tmp_path).moves
    assert move.state is MoveState.DONE
    assert (move.bytes_copied or 0) > FILLED / 4
    assert "its log gets no records, and only an append rolls a segment" in move.note
    wait_until(lambda: own(admin, topic) == KEEPS_ALL)


def test_brokers_report_their_upload_and_delete_intervals(
    local_cluster: LocalCluster, admin: ClusterAdmin, topic: str
) -> None:
    local_cluster.create_topic(topic, [[1]], KEEPS_ALL)
    moves = plan_for(local_cluster.bootstrap, topic, {0: [2]}).moves
    assert TailWait.with_brokers(admin, moves, 30.0) == TailWait(
        wait_s=30.0, upload_s=0.5, delete_s=0.5
    )


def test_without_consent_nothing_is_set_and_the_note_names_the_option(
    local_cluster: LocalCluster, admin: ClusterAdmin, topic: str, tmp_path: Path
) -> None:
    plan = plan_of_one(local_cluster, topic, KEEPS_ALL)
    seen: list[dict[str, str]] = []
    with connect(local_cluster.bootstrap, timeout_s=10.0) as executor:
        report = execute(executor, plan, tmp_path, lambda _: seen.append(own(admin, topic)))
    (move,) = report.moves
    assert (move.bytes_copied or 0) > FILLED / 4
    assert "with --lower-segment-bytes about 2.10 MB, while records come" in move.note
    assert all(shown == KEEPS_ALL for shown in seen)


def test_settings_of_a_killed_run_are_left_to_cleanup(
    local_cluster: LocalCluster, executor: Executor, admin: ClusterAdmin, topic: str, tmp_path: Path
) -> None:
    plan = plan_of_one(local_cluster, topic, OWN_SEGMENTS)
    write_plan(tmp_path / "plan.json", plan)
    journals = tmp_path / "journal"
    process = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            DIES_DURING_A_MOVE,
            local_cluster.bootstrap,
            str(tmp_path / "plan.json"),
            str(journals),
        ],
        check=False,
        timeout=300.0,
    )
    assert process.returncode == -signal.SIGKILL
    assert own(admin, topic) != OWN_SEGMENTS
    (output,) = executor.clean_up(journals)
    assert output.endswith("its topics' segments are as before")
    wait_until(lambda: own(admin, topic) == OWN_SEGMENTS)
    assert left_set(journals, plan.cluster_id) == []


def test_a_log_without_local_data_is_not_moved_where_it_would_hang(
    local_cluster: LocalCluster, executor: Executor, admin: ClusterAdmin, topic: str, tmp_path: Path
) -> None:
    """Kafka 4.3.1 lets its new replica join with the next append, and not before."""
    local_cluster.create_topic(topic, [[1]], KEEPS_ALL | {LOCAL: "0"})
    fill(local_cluster.bootstrap, topic, [MEGABYTES])
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    pid = plan.moves[0].id
    wait_until(lambda: local_bytes(admin, BrokerId(1), [pid]) == {pid: 0})
    (move,) = execute(executor, plan, tmp_path).moves
    assert move.state is MoveState.DROPPED
    assert "nothing on its leader's disk" in move.note
    assert admin.reassignments() == {}
    load = loaded(local_cluster, topic, 0, partitions=1, rate=SLOWLY)
    (move,) = execute(executor, plan, tmp_path).moves
    assert move.state is MoveState.DONE
    load.kill()
