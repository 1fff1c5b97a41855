"""Records at known rates into a topic, and out of it again."""

import threading
import time
from collections.abc import Mapping
from typing import Self

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

RECORD = b"x" * 1000
_STEP_S = 0.1


class Traffic:
    """Producer and consumer until the block ends; the consumer commits nothing."""

    def __init__(self, bootstrap: str, topic: str, rates: Mapping[int, int]) -> None:
        """rates: records per second, by partition."""
        self._bootstrap, self._topic, self._rates = bootstrap, topic, rates
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "log_level": 0})
        begun, sent = time.monotonic(), dict.fromkeys(self._rates, 0)
        while not self._ended.wait(_STEP_S):
            for partition, rate in self._rates.items():
                due = int(rate * (time.monotonic() - begun))
                for _ in range(due - sent[partition]):
                    producer.produce(self._topic, RECORD, partition=partition)
                sent[partition] = due
            producer.poll(0)
        producer.flush(10)

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "reads-without-commits",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        places = [TopicPartition(self._topic, p, OFFSET_END) for p in self._rates]
        consumer.assign(places)
        while not self._ended.is_set():
            consumer.consume(1000, _STEP_S)
        consumer.close()
