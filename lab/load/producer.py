"""The load generator's producer, started as `python -P -m lab.load.producer`.

Each message on stdin and stdout is a line of JSON. The first says where to send and at
which rates; later ones change the rates or end the load. Twice a second the producer
reports the acknowledged records and the longest stall.
"""

import time
from functools import partial
from queue import Empty
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lab.load.ack_latency import PartitionGaps
from lab.load.json_lines import Inbox, Line, Reports, serve
from lab.load.load_records import NUMBER_BYTES, Pacer, filler

TICK_S: Final = 0.02
"""Interval of sending: few requests, and stalls measured to 20 ms."""
_FLUSH_S: Final = 60.0
_MAX_BEHIND_S: Final = 1.0


class NumberedRecords:
    """What a producer is to send, and what became of it, by partition."""

    def __init__(self, order: Line) -> None:
        self._topic: str = order["topic"]
        self._record_bytes: int = order["record_bytes"]
        self._filler = filler(self._record_bytes, order["seed"])
        self._pacer = Pacer(self._rates(order), _MAX_BEHIND_S)
        partitions = range(len(order["bytes_per_s"]))
        self._sent = [0 for _ in partitions]
        self._acknowledged = [0 for _ in partitions]
        self._failed: list[list[int]] = [[] for _ in partitions]

    def change(self, order: Line) -> None:
        """Change the rates."""
        self._pacer.rates = self._rates(order)

    def _next_value(self, partition: int) -> bytes:
        """The next record of a partition."""
        return self._sent[partition].to_bytes(NUMBER_BYTES, "big") + self._filler

    def _rates(self, order: Line) -> list[float]:
        """Records per second of each partition."""
        return [rate / self._record_bytes for rate in order["bytes_per_s"]]


class NumberedProducer(NumberedRecords):
    """Send numbered records to each partition at its rate; count acknowledgements."""

    def __init__(self, order: Line) -> None:
        super().__init__(order)
        self._gaps = [PartitionGaps() for _ in self._sent]
        self._error: str | None = None
        self._client = Producer(settings_of(order["bootstrap"]))

    def send_due(self, elapsed_s: float) -> None:
        """Send the records due after `elapsed_s` seconds, and take acknowledgements."""
        self._client.poll(0)
        due = self._pacer.advance(elapsed_s)
        if self._error is not None:
            return
        try:
            for partition, count in enumerate(due):
                for _ in range(count):
                    self._send(partition)
        except BufferError:
            # The brokers are slow or unreachable: the rate drops, no record is lost.
            return
        except KafkaException as exc:
            self._error = str(exc)

    def flush(self) -> None:
        """Wait for all acknowledgements; records without one count as failed."""
        self._client.flush(_FLUSH_S)
        for partition, failed in enumerate(self._failed):
            answered = self._acknowledged[partition] + len(failed)
            failed.extend(range(answered, self._sent[partition]))

    def report(self) -> Line:
        """Counts so far, and the longest stall since the last report."""
        return {
            "acknowledged": self._acknowledged,
            "failed": self._failed,
            "stall": self._longest_stall(),
            "error": self._error,
        }

    def _send(self, partition: int) -> None:
        number = self._sent[partition]
        self._client.produce(
            self._topic,
            self._next_value(partition),
            partition=partition,
            on_delivery=partial(self._answered, partition, number),
        )
        self._sent[partition] += 1
        self._gaps[partition].sent(time.monotonic())

    def _answered(
        self, partition: int, number: int, error: KafkaError | None, _record: Message
    ) -> None:
        if error is None:
            self._acknowledged[partition] += 1
            self._gaps[partition].acknowledged(time.monotonic())
        else:
            self._failed[partition].append(number)
            self._gaps[partition].gave_up()

    def _longest_stall(self) -> list[float] | None:
        now_s = time.monotonic()
        # Offset from the monotonic clock to the time of day.
        origin_s = time.time() - now_s
        stalls = []
        for partition, gaps in enumerate(self._gaps):
            if (found := gaps.take(now_s)) is not None:
                begin_s, length_s = found
                stalls.append([length_s, partition, round(1000 * (origin_s + begin_s))])
        return max(stalls, default=None)


def settings_of(bootstrap: str) -> dict[str, str | int | bool]:
    """A producer's settings with which no record is lost."""
    return {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "enable.idempotence": True,
        # With several, a batch may reach a new leader before the one ahead of it does. librdkafka
        # then begins a new epoch for all partitions, in which it repeats or drops records of
        # others (issue 4953). Brokers serve one request of a connection at a time anyway.
        "max.in.flight.requests.per.connection": 1,
        "linger.ms": 5,
        # Fetches of 1 MB truncate the last batch, but throttles count all of it: with
        # large batches a sixth of the throttle would be unused.
        "batch.size": 131_072,
        # No record may be lost when a leader moves or dies.
        "message.timeout.ms": 600_000,
        "queue.buffering.max.kbytes": 131_072,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 200,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }


def run(order: Line, inbox: Inbox) -> None:
    """Send until a message says to finish, or until stdin closes."""
    producer = NumberedProducer(order)
    reports, last_s = Reports(producer.report), time.monotonic()
    while True:
        now_s = time.monotonic()
        producer.send_due(now_s - last_s)
        last_s = now_s
        reports.write_due()
        try:
            message = inbox.get(timeout=TICK_S)
        except Empty:
            continue
        if message is None:
            return
        if "finish" in message:
            break
        producer.change(message)
    producer.flush()
    reports.write(final=True)


if __name__ == "__main__":
    serve(run)
