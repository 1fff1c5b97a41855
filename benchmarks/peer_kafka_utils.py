"""Runs kafka-utils' balancers offline, in an environment that holds kafka-utils.

`python peer_kafka_utils.py count|genetic IN OUT`; the files are those of
`benchmarks.peers`. Partitions weigh the sum of their shares of all resources.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

# Types are checked where kafka-utils is not installed.
from kafka_utils.kafka_cluster_manager.cluster_info import (  # type: ignore[import-not-found]
    cluster_topology,
    genetic_balancer,
    partition_count_balancer,
    partition_measurer,
)

BALANCERS = {
    "count": partition_count_balancer.PartitionCountBalancer,
    "genetic": genetic_balancer.GeneticBalancer,
}
GENERATIONS_PER_BROKER = 10
"""The genetic balancer makes one change a generation; its default is 100."""


class Shares(partition_measurer.PartitionMeasurer):  # type: ignore[misc]
    """Weighs partitions by what `benchmarks.peers` wrote."""

    def __init__(self, weights: dict[tuple[str, int], float]) -> None:
        self._weights = weights

    def get_weight(self, partition_name: tuple[str, int]) -> float:
        return self._weights[partition_name]

    def get_size(self, partition_name: tuple[str, int]) -> float:
        return self._weights[partition_name]


def main() -> None:
    """Read, balance, write."""
    _, kind, given, out = sys.argv
    cluster: dict[str, Any] = json.loads(Path(given).read_text())
    rows = cluster["partitions"]
    racks = {b["id"]: b["rack"] for b in cluster["brokers"]}
    topology = cluster_topology.ClusterTopology(
        assignment={(topic, number): list(r) for topic, number, r, _ in rows},
        brokers={broker: {"host": str(broker)} for broker in racks},
        partition_measurer=Shares({(t, n): weight for t, n, _, weight in rows}),
        extract_group=lambda broker: racks[broker.id],
    )
    generations = max(100, GENERATIONS_PER_BROKER * len(racks))
    arguments = argparse.Namespace(
        replication_groups=True,
        brokers=True,
        leaders=True,
        max_partition_movements=None if kind == "count" else generations,
        max_leader_changes=None if kind == "count" else generations,
        max_movement_size=None,
        balancer_args=[] if kind == "count" else [f"--num-gens {generations}"],
    )
    started = time.process_time()
    BALANCERS[kind](topology, arguments).rebalance()
    cpu_s = time.process_time() - started
    placed = [[t, n, list(r)] for (t, n), r in topology.assignment.items()]
    Path(out).write_text(json.dumps({"cpu_s": cpu_s, "partitions": placed}))


if __name__ == "__main__":
    main()
