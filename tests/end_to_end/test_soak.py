"""Long tests outside `make test`: `make soak MINUTES=60`."""

import os
import time
import uuid
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from executor.executor import connect
from executor.run.operator_control import Steering
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from executor.timing import RunLimits
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from lab.local_cluster.processes import Processes
from model.ids import BrokerId, TopicName
from model.run import MoveState, RunProgress, RunState
from tests.end_to_end.test_resume import PARTITIONS, killed_resumed_and_rolled_back
from tests.support.automq import AutoMQCluster
from tests.support.cli_on_cluster import Shell, placement, wait_until
from tests.support.executor.plan_builders import plan_for
from tests.support.executor.topic_records import fill

pytestmark = pytest.mark.soak

MINUTES = float(os.environ.get("PLIMSOLL_SOAK_MINUTES", "60"))
MOVES = 200
MEGABYTES = 1
THROTTLE = 10_000_000
SLACK = 1.2
"""Kafka measures a throttle over 11 windows of a second, and passes single fetches."""
AROUND = ([2, 3], [3, 1], [1, 2])


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(default_cache_dir(), LocalPlan(tier=False)) as started:
        yield started


@pytest.fixture
def topic() -> str:
    return f"soak-{uuid.uuid4().hex[:6]}"


@pytest.mark.kafka
@pytest.mark.parametrize("records", [*range(1, 24, 2), 30])
def test_a_run_that_is_killed_after_so_many_records_is_resumed_on_kafka(
    cluster: LocalCluster, topic: str, tmp_path: Path, records: int
) -> None:
    cluster.create_topic(topic, [[1, 2]] * PARTITIONS)
    after = {p: [3, 2 - p % 2] for p in range(PARTITIONS)}
    plan = plan_for(cluster.bootstrap, topic, after)
    shell = Shell(tmp_path, cluster.bootstrap)
    killed_resumed_and_rolled_back(shell, plan, records)


@pytest.mark.automq
@pytest.mark.parametrize("records", range(1, 20, 2))
def test_a_run_that_is_killed_after_so_many_records_is_resumed_on_automq(
    automq_cluster: AutoMQCluster, topic: str, tmp_path: Path, records: int
) -> None:
    automq_cluster.create_topic(topic, [[1]] * PARTITIONS)
    after = {p: [2] for p in range(PARTITIONS)}
    plan = plan_for(automq_cluster.bootstrap, topic, after)
    shell = Shell(tmp_path, automq_cluster.bootstrap)
    killed_resumed_and_rolled_back(shell, plan, records)


@pytest.mark.kafka
def test_many_throttled_moves_keep_to_their_throttle(
    cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    cluster.create_topic(topic, [[1, 2]] * MOVES)
    fill(cluster.bootstrap, topic, [MEGABYTES] * MOVES)
    plan = plan_for(cluster.bootstrap, topic, {n: [1, 3] for n in range(MOVES)})
    limits = RunLimits(throttle_bytes_per_s=THROTTLE)
    copied: list[tuple[float, int]] = []

    def observe(run: RunProgress) -> None:
        total = sum(m.bytes_copied or 0 for m in run.moves)
        copied.append((time.monotonic(), total))

    with connect(cluster.bootstrap, timeout_s=10.0, limits=limits) as executor:
        report = executor.execute(plan, journal_dir=tmp_path, observe=observe, steering=Steering())
    assert (report.state, report.reason) == (RunState.DONE, "")
    assert [m.state for m in report.moves] == [MoveState.DONE] * MOVES
    moved = [(at_s, total) for at_s, total in copied if total]
    (begun_s, _), (ended_s, total) = moved[0], moved[-1]
    assert total >= MOVES * MEGABYTES * 10**6
    print(f"{total / (ended_s - begun_s) / THROTTLE:.0%} of the throttle was used")
    assert total <= SLACK * THROTTLE * (ended_s - begun_s + 11.0)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        name = TopicName(topic)

        def left() -> bool:
            brokers = (admin.own_broker_configs(BrokerId(b), RATES) for b in (1, 2, 3))
            lists = admin.own_topic_configs([name], (LEADERS, FOLLOWERS))[name]
            return any([*brokers, lists])

        wait_until(lambda: not left())


@pytest.mark.kafka
def test_moves_to_and_fro_lose_no_record_on_kafka(
    cluster: LocalCluster, processes: Processes, topic: str, tmp_path: Path
) -> None:
    cluster.create_topic(topic, [[1, 2]] * PARTITIONS)
    rounds = move_around(cluster.bootstrap, processes, topic, AROUND, tmp_path)
    print(f"{rounds} times {PARTITIONS} partitions")


@pytest.mark.automq
def test_moves_to_and_fro_lose_no_record_on_automq(
    automq_cluster: AutoMQCluster, processes: Processes, topic: str, tmp_path: Path
) -> None:
    automq_cluster.create_topic(topic, [[0]] * PARTITIONS)
    lists = ([1], [2], [0])
    rounds = move_around(automq_cluster.bootstrap, processes, topic, lists, tmp_path)
    print(f"{rounds} times {PARTITIONS} partitions")


def move_around(
    bootstrap: str, processes: Processes, topic: str, lists: tuple[list[int], ...], folder: Path
) -> int:
    """Move all partitions between two placements under a load; return how often."""
    order = LoadOrder(topic=topic, bytes_per_s=1e6, weights=(1.0,) * PARTITIONS)
    load = Load(processes, bootstrap, order)
    load.start()
    end_s = time.monotonic() + 60 * MINUTES
    rounds = 0
    for replicas in cycle(lists):
        plan = plan_for(bootstrap, topic, dict.fromkeys(range(PARTITIONS), replicas))
        with connect(bootstrap, timeout_s=10.0) as executor:
            report = executor.execute(
                plan, journal_dir=folder, observe=lambda _: None, steering=Steering()
            )
        assert (report.state, report.reason) == (RunState.DONE, "")
        rounds += 1
        if time.monotonic() >= end_s:
            break
    assert placement(bootstrap, topic) == dict.fromkeys(range(PARTITIONS), replicas)
    balance = load.finish(timeout_s=180.0)
    assert balance.read_records == balance.acknowledged_records > 0
    assert (balance.lost_records, balance.duplicated_records) == (0, 0)
    return rounds
