"""Moves on the real AutoMQ, with traffic on every partition that moves."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.moves_on import Carried, balance, filled, next_of, spread
from benchmarks.sections import table
from executor.client.kafka_admin import KafkaAdmin
from executor.timing import RunLimits
from lab.load.load_generator import Load
from lab.local_cluster.processes import Processes
from model.ids import PartitionId, TopicName
from tests.support.automq import AutoMQCluster, automq_home
from tests.support.executor.plan_builders import plan_for

NODES: Final = (0, 1, 2)
BIG_BYTES: Final = 520e6
REST_S: Final = 6.0
"""Between two runs, so that moves of one partition do not meet."""
LIMITS: Final = RunLimits(moves_in_flight=100, moves_per_broker=100)
CASES: Final = (
    # topic, partitions, bytes of each, traffic of all, runs
    ("big", 1, BIG_BYTES, 1e6, 12),
    ("eight", 8, 20e6, 4e6, 8),
    ("hundred", 100, 2e6, 4e6, 4),
)


def automq() -> str:
    """The section, or why there is none."""
    home = automq_home()
    if home is None:
        return "Not measured: no AutoMQ was there (PLIMSOLL_AUTOMQ_HOME).\n"
    with TemporaryDirectory(prefix="plimsoll-") as folder:
        cluster = AutoMQCluster(home, Path(folder) / "automq")
        processes = Processes(Path(folder) / "load")
        try:
            return _measured(cluster.wait_ready(), processes)
        finally:
            processes.close()
            cluster.close()


def _measured(cluster: AutoMQCluster, processes: Processes) -> str:
    rows, reports = [], []
    for topic, count, size, traffic, runs in CASES:
        cluster.create_topic(topic, [[NODES[0]]] * count)
        load = filled(
            processes,
            cluster.bootstrap,
            topic,
            [size] * count,
            fill_bytes_per_s=25e6,
            then_bytes_per_s=traffic,
        )
        rows.append(_case(cluster.bootstrap, topic, count, load, runs))
        reports.append(load.finish())
    headers = [
        "partitions at once",
        "runs",
        "one move, median / worst",
        "from first request to last leader, median / worst",
        "overhead of plimsoll per run, median / worst",
        "longest stall of the producer, median / worst",
    ]
    return table(headers, rows) + f"\n{balance(reports)}.\n"


def _case(bootstrap: str, topic: str, count: int, load: Load, runs: int) -> list[str]:
    seconds, batches, overheads, stalls = [], [], [], []
    for _ in range(runs):
        plan = plan_for(bootstrap, topic, _round(bootstrap, topic, count))
        begun_ms = round(1000 * time.time())
        ran = Carried(bootstrap, plan, LIMITS)
        seconds += ran.seconds
        batches.append(ran.broker_s)
        overheads.append(ran.wall_s - ran.broker_s)
        time.sleep(REST_S)
        stall = load.longest_stall(begun_ms)
        stalls.append(stall.duration_s if stall else 0.0)
        print(topic, ran.broker_s, ran.wall_s, stalls[-1], flush=True)
    return [
        str(count),
        str(runs),
        spread(seconds),
        spread(batches),
        spread(overheads),
        spread(stalls),
    ]


def _round(bootstrap: str, topic: str, count: int) -> dict[int, list[int]]:
    """Each partition goes on to the next node; of several, every other by two."""
    name = TopicName(topic)
    with KafkaAdmin(bootstrap, 10.0) as admin:
        views = admin.partitions([PartitionId(name, p) for p in range(count)])
    return {
        pid.partition: next_of(view.leader, NODES, by=1 + pid.partition % 2)
        for pid, view in views.items()
    }
