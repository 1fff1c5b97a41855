"""The load generator's consumer, started as `python -P -m lab.load.consumer`.

Each message on stdin and stdout is a line of JSON. The first says what to read; the answer follows
once the end of the topic is known, since only later records count. The second, after the end of the
producer, has the acknowledged counts: the consumer then reads to the end and reports the totals.
"""

import time
from collections.abc import Sequence
from typing import Final, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lab.load.json_lines import Inbox, Line, Reports, serve
from lab.load.load_records import Tally, failed_but_read_count, lost_count, number_of

_CALL_S: Final = 10.0
_BATCH: Final = 1000
_WAIT_S: Final = 0.2


class CountingConsumer:
    """The only member of its group; counts the records it reads per partition."""

    def __init__(self, order: Line) -> None:
        self._topic: str = order["topic"]
        self._client = Consumer(_settings(order["bootstrap"], order["group"]))
        count = range(order["partitions"])
        self._tallies = [Tally(next_offset=self._end(number)) for number in count]
        self._client.subscribe([self._topic], on_assign=self._assigned)

    def read(self) -> None:
        """Count the records that have arrived; wait up to 0.2 s for some."""
        for record in self._client.consume(_BATCH, _WAIT_S):
            error = record.error()
            if error is None:
                self._count(record)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - has no other name
                # The ends of transactions have offsets, too, but are no records.
                tally = self._tallies[cast("int", record.partition())]
                tally.next_offset = max(tally.next_offset, cast("int", record.offset()))

    def ends(self) -> list[int]:
        """Offsets after the last record of each partition."""
        return [self._end(number) for number in range(len(self._tallies))]

    def has_read(self, ends: Sequence[int]) -> bool:
        """Whether every partition has been read up to these offsets."""
        pairs = zip(self._tallies, ends, strict=True)
        return all(tally.next_offset >= end for tally, end in pairs)

    def report(self) -> Line:
        """Records read per partition so far."""
        return {"read": [tally.read for tally in self._tallies]}

    def totals(self, order: Line) -> Line:
        """Numbers of lost, unexpected and duplicated records."""
        sent = list(zip(self._tallies, order["acknowledged"], order["failed"], strict=True))
        return {
            "lost": sum(lost_count(*partition) for partition in sent),
            "failed_but_read": sum(failed_but_read_count(t, failed) for t, _, failed in sent),
            "duplicated": sum(tally.duplicated for tally in self._tallies),
            "final": True,
        }

    def close(self) -> None:
        """Commit and leave the group."""
        self._client.close()

    def _count(self, record: Message) -> None:
        # Records without an error always have these.
        partition, offset = cast("int", record.partition()), record.offset()
        value = cast("bytes", record.value())
        self._tallies[partition].see(cast("int", offset), number_of(value))

    def _assigned(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        """Continue where counting stopped, whatever was committed."""
        for partition in partitions:
            partition.offset = self._tallies[partition.partition].next_offset
        client.assign(partitions)

    def _end(self, partition: int) -> int:
        where = TopicPartition(self._topic, partition)
        while True:
            try:
                _low, high = self._client.get_watermark_offsets(where, timeout=_CALL_S)
            except KafkaException:
                # The leader is just moving; the load generator has a timeout.
                time.sleep(_WAIT_S)
            else:
                return int(high)


def _settings(bootstrap: str, group: str) -> dict[str, str | int | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.commit.interval.ms": 1000,
        # Fewer, larger responses: a tenth of the CPU for 0.1 s of delay.
        "fetch.min.bytes": 65_536,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }


def run(order: Line, inbox: Inbox) -> None:
    """Read until the totals are reported, or until stdin closes."""
    consumer = CountingConsumer(order)
    reports = Reports(consumer.report)
    reports.write()
    while inbox.empty():
        consumer.read()
        reports.write_due()
    final = inbox.get()
    if final is not None:
        ends = consumer.ends()
        while not consumer.has_read(ends):
            consumer.read()
        consumer.close()
        reports.write(**consumer.totals(final))


if __name__ == "__main__":
    serve(run)
