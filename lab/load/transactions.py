"""The load generator's transactional producer, started as `python -P -m lab.load.transactions`.

Its messages are those of `lab.load.producer`, which has no transactions. Records count as
acknowledged once their transaction is committed.
"""

import time
from collections.abc import Callable
from queue import Empty
from typing import Final
from uuid import uuid4

from confluent_kafka import KafkaException, Producer

from lab.load.json_lines import Inbox, Line, Reports, serve
from lab.load.producer import TICK_S, NumberedRecords, settings_of

LENGTH_S: Final = 0.5
"""Length of a transaction, before its end is requested."""
ABORTED_EACH: Final = 10
"""The first of so many transactions is aborted."""
_CALL_S: Final = 10.0


class TransactionalProducer(NumberedRecords):
    """Send numbered records in transactions; commit most, and abort the others."""

    def __init__(self, order: Line) -> None:
        super().__init__(order)
        self._begun = list(self._sent)
        """First number of each partition in the transaction in progress."""
        self._count = 0
        self._settings = settings_of(order["bootstrap"]) | {
            "transactional.id": f"plimsoll-load-{uuid4().hex[:8]}",
            # The coordinator must not abort while a broker is down.
            "transaction.timeout.ms": 900_000,
        }
        self._client = self._begun_client()

    def begin(self) -> None:
        """Begin a transaction."""
        self._begun = list(self._sent)
        self._client.begin_transaction()

    def send_due(self, elapsed_s: float) -> None:
        """Send the records due after `elapsed_s` seconds."""
        for partition, count in enumerate(self._pacer.advance(elapsed_s)):
            for _ in range(count):
                value = self._next_value(partition)
                try:
                    self._client.produce(self._topic, value, partition=partition)
                except BufferError:
                    # The brokers are slow or unreachable: the rate drops, no record is lost.
                    return
                except KafkaException as exc:
                    # Unless it is fatal, the end of the transaction reports it.
                    self._is_broken |= exc.args[0].fatal()
                    return
                self._sent[partition] += 1
        self._serve(0)

    def end(self) -> None:
        """Commit the transaction, or abort it; return once its outcome is known.

        Raises KafkaException where the producer fails while it commits.
        """
        committed = self._count % ABORTED_EACH != 0
        self._count += 1
        while len(self._client) and not self._is_broken:
            # So that fatal errors come before the request to commit.
            self._serve(TICK_S)
        if self._is_broken:
            # Another producer of the same id aborts the transaction.
            committed, self._client = False, self._begun_client()
        elif committed:
            committed = self._is_committed()
        else:
            self._retried(lambda: self._client.abort_transaction(_CALL_S))
        for partition, (first, last) in enumerate(zip(self._begun, self._sent, strict=True)):
            if committed:
                self._acknowledged[partition] += last - first
            else:
                self._failed[partition].extend(range(first, last))

    def report(self) -> Line:
        """Counts so far."""
        return {
            "acknowledged": self._acknowledged,
            "failed": self._failed,
            "stall": None,
            "error": None,
        }

    def _serve(self, timeout_s: float) -> None:
        """Let the driver work, and note where it cannot go on."""
        try:
            self._client.poll(timeout_s)
        except KafkaException as exc:
            self._is_broken |= exc.args[0].fatal()

    def _is_committed(self) -> bool:
        """Commit; False where the transaction had to be aborted."""
        try:
            self._retried(lambda: self._client.commit_transaction(_CALL_S))
        except KafkaException as exc:
            if not exc.args[0].txn_requires_abort():
                raise
            self._retried(lambda: self._client.abort_transaction(_CALL_S))
            return False
        return True

    def _begun_client(self) -> Producer:
        client = Producer(self._settings)
        self._retried(lambda: client.init_transactions(_CALL_S))
        self._is_broken = False
        return client

    @staticmethod
    def _retried(call: Callable[[], None]) -> None:
        """Repeat a call while its outcome is not known."""
        while True:
            try:
                return call()
            except KafkaException as exc:
                if not exc.args[0].retriable():
                    raise
                time.sleep(TICK_S)


def run(order: Line, inbox: Inbox) -> None:
    """Send until a message says to finish, or until stdin closes."""
    producer = TransactionalProducer(order)
    reports, last_s, finishing = Reports(producer.report), time.monotonic(), False
    while not finishing:
        producer.begin()
        ends_s = time.monotonic() + LENGTH_S
        while not finishing and time.monotonic() < ends_s:
            now_s = time.monotonic()
            producer.send_due(now_s - last_s)
            last_s = now_s
            try:
                message = inbox.get(timeout=TICK_S)
            except Empty:
                continue
            if message is None:
                return
            finishing = "finish" in message
            if not finishing:
                producer.change(message)
        producer.end()
        reports.write_due()
    reports.write(final=True)


if __name__ == "__main__":
    serve(run)
