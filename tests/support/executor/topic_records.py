"""Records in real topics: written before and during a run, read after it."""

import hashlib
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from tests.support.cli_on_cluster import wait_until

RECORD_BYTES = 1000
PATIENCE_S = 300.0
_LOOK_S = 2.0


def fill(bootstrap: str, topic: str, megabytes: Sequence[int]) -> None:
    """Write this many bytes into each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for partition, size in enumerate(megabytes):
        for number in range(size * 1000):
            value = f"{partition} {number} ".encode().ljust(RECORD_BYTES, b".")
            producer.produce(topic, value, partition=partition)
            producer.poll(0)
            if number % 10_000 == 0:
                producer.flush(PATIENCE_S)
    assert producer.flush(PATIENCE_S) == 0


def loaded(cluster: LocalCluster, topic: str, size: float, *, partitions: int, rate: float) -> Load:
    """A continuous load, once it has written so many bytes into each partition."""
    order = LoadOrder(topic=topic, bytes_per_s=rate, weights=(1.0,) * partitions)
    load = Load(cluster.processes, cluster.bootstrap, order, name=topic)
    load.start()
    wait_until(lambda: min(load.status().acknowledged_bytes) > size)
    return load


def slow_down(load: Load, partitions: int, rate: float) -> None:
    """Continue at this total rate, once the producer has no faster records left to send."""
    load.shift((1.0,) * partitions, rate)

    def is_slow() -> bool:
        before = sum(load.status().acknowledged_bytes)
        time.sleep(_LOOK_S)
        return 0 < sum(load.status().acknowledged_bytes) - before < 2 * _LOOK_S * rate

    wait_until(is_slow)


def assert_exact(load: Load) -> None:
    """End a load: every record that was acknowledged was read, and once."""
    balance = load.finish()
    # A failing test shows it.
    print(balance)
    # What a producer has given up may have been written.
    assert balance.read_records - balance.failed_but_read_records == balance.acknowledged_records
    assert balance.acknowledged_records > 0
    assert (balance.lost_records, balance.duplicated_records) == (0, 0)


def contents(bootstrap: str, topic: str, partitions: int) -> list[str]:
    """A digest of offsets and values of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "contents"})
    try:
        return [_digest(consumer, topic, p) for p in range(partitions)]
    finally:
        consumer.close()


def _digest(consumer: Consumer, topic: str, partition: int) -> str:
    place = TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
    consumer.assign([place])
    result, offset = hashlib.sha256(), -1
    while offset < end - 1:
        # It waits until it has as many as requested.
        most = min(1000, end - 1 - offset)
        records = consumer.consume(most, timeout=PATIENCE_S)
        assert records, f"{place} has nothing after {offset}, and ends at {end}"
        for record in records:
            assert record.error() is None, record.error()
            offset = record.offset() or 0
            result.update(f"{offset} ".encode() + (record.value() or b""))
    return result.hexdigest()
