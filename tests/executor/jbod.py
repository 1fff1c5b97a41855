"""Brokers with several log directories: what lies where, and plans that change it."""

import hashlib
import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from executor.admin import Admin
from executor.directories import lying
from lab.local import LocalCluster
from model.ids import BrokerId, PartitionId, TopicName
from model.plan import ANY_DIR, Move, Plan
from tests.executor.plans import plan_for

RECORD_BYTES = 1000
IO_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Places = dict[int, dict[int, str]]
"""By partition and broker, the log directory."""


def fill(bootstrap: str, topic: str, megabytes: Sequence[int]) -> None:
    """Write so much into each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for partition, size in enumerate(megabytes):
        for number in range(size * 1000):
            value = f"{partition} {number} ".encode().ljust(RECORD_BYTES, b".")
            producer.produce(topic, value, partition=partition)
            producer.poll(0)
            if number % 10_000 == 0:
                producer.flush(30)
    assert producer.flush(30) == 0


def contents(bootstrap: str, topic: str, partitions: int) -> list[str]:
    """A digest of offsets and values of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "contents"})
    try:
        return [_digest(consumer, topic, p) for p in range(partitions)]
    finally:
        consumer.close()


def _digest(consumer: Consumer, topic: str, partition: int) -> str:
    place = TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=10)
    consumer.assign([place])
    found, offset = hashlib.sha256(), -1
    while offset < end - 1:
        for record in consumer.consume(1000, timeout=10):
            assert record.error() is None
            offset = record.offset() or 0
            found.update(f"{offset} ".encode() + (record.value() or b""))
    return found.hexdigest()


def places(admin: Admin, topic: str, replicas: Mapping[int, Sequence[int]]) -> Places:
    """Where the replicas of a topic lie; `replicas` by partition."""
    name = TopicName(topic)
    return {
        partition: {b: place(admin, PartitionId(name, partition), b) for b in brokers}
        for partition, brokers in replicas.items()
    }


def place(admin: Admin, pid: PartitionId, broker: int) -> str:
    """Where one replica lies, once its broker has made it and is at rest."""
    end_s = time.monotonic() + 30
    while True:
        paths = lying(pid, admin.log_dirs(BrokerId(broker), [pid]))
        if len(paths) == 1:
            return paths[0]
        assert time.monotonic() < end_s


def other(cluster: LocalCluster, broker: int, path: str) -> str:
    """The other one of a broker's two directories."""
    known = map(str, cluster.kafka.brokers[BrokerId(broker)].log_dirs)
    (found,) = (p for p in known if p != path)
    return found


def turned(cluster: LocalCluster, before: Places) -> Places:
    """Every replica in the other directory of its broker."""
    return {
        partition: {b: other(cluster, b, path) for b, path in at.items()}
        for partition, at in before.items()
    }


def plan_to(
    cluster: LocalCluster,
    topic: str,
    after: Mapping[int, Sequence[int]],
    before: Places,
    wanted: Places,
) -> Plan:
    """A plan of these replica lists; `wanted` names a directory or leaves it."""
    plan = plan_for(cluster.bootstrap, topic, after)

    def told(move: Move) -> Move:
        old, new = before[move.partition], wanted.get(move.partition, {})
        names = {
            "log_dirs_before": tuple(old[b] for b in move.replicas_before),
            "log_dirs_after": tuple(new.get(b, ANY_DIR) for b in move.replicas_after),
        }
        return move.model_copy(update=names)

    return plan.model_copy(update={"moves": tuple(map(told, plan.moves))}).seal()
