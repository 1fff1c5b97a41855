"""Runs kafka-tools' assigner offline, in an environment that holds kafka-tools.

`python peer_kafka_tools.py rate|even|count IN OUT`; the files are those of
`benchmarks.peers`. The rate that `rate` levels is a partition's sum of shares of all
resources, in millionths of a broker's level.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from kafka.tools.assigner.actions.balancemodules.count import ActionBalanceCount
from kafka.tools.assigner.actions.balancemodules.even import ActionBalanceEven
from kafka.tools.assigner.actions.balancemodules.rate import ActionBalanceRate
from kafka.tools.models.broker import Broker
from kafka.tools.models.cluster import Cluster
from kafka.tools.models.topic import Topic

MODULES = {"rate": ActionBalanceRate, "even": ActionBalanceEven, "count": ActionBalanceCount}
UNIT = 1e-6


def read(given: dict[str, Any]) -> Any:
    """The cluster as the assigner models it."""
    cluster = Cluster()
    for entry in given["brokers"]:
        broker = Broker(str(entry["id"]), id=entry["id"])
        broker.rack = entry["rack"]
        cluster.add_broker(broker)
    counts: dict[str, int] = {}
    for name, *_ in given["partitions"]:
        counts[name] = counts.get(name, 0) + 1
    for name, count in counts.items():
        cluster.add_topic(Topic(name, count))
    for name, number, replicas, weight in given["partitions"]:
        partition = cluster.topics[name].partitions[number]
        partition.size = partition.scaled_size = round(weight / UNIT)
        for position, replica in enumerate(replicas):
            partition.add_replica(cluster.brokers[replica], position)
    return cluster


def main() -> None:
    """Read, balance, write."""
    _, kind, given, out = sys.argv
    cluster = read(json.loads(Path(given).read_text()))
    module = MODULES[kind](argparse.Namespace(exclude_topics=[]), cluster)
    started = time.process_time()
    module.process_cluster()
    cpu_s = time.process_time() - started
    placed = [[p.topic.name, p.num, [r.id for r in p.replicas]] for p in cluster.partitions()]
    Path(out).write_text(json.dumps({"cpu_s": cpu_s, "partitions": placed}))


if __name__ == "__main__":
    main()
