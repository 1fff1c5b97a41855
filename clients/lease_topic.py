"""Leases in a compacted topic of Kafka, each written in transactions of one transactional id.

A write compares and replaces in one:

1. Only the producer that has initialised the key's transactional id last can commit: with that,
   Kafka raises the epoch, aborts what an earlier producer has begun, and fences it.
2. The record is written, but not committed. Since nobody can read beyond it, the log is read up to
   it; a broker that has fallen behind does not have it, and is asked again.
3. If the last committed version is the expected one, the transaction is committed, else aborted.

So whoever commits has seen every version before its own. A producer that is fenced in between, by
a service that acted on an outdated version, initialises the id again and compares again.

A version is the offset of its record. A process that dies within a transaction delays nobody: the
next one to initialise the id aborts it.
"""

import time
from typing import TYPE_CHECKING, Final

from clients.connection import Connection
from clients.driver_configs import lease_consumer, lease_producer, topic_config
from clients.driver_errors import has_lost_offset, is_end, is_fenced, lease_topic_error
from clients.s3 import Stored
from model.errors import ArchiveUnreachable, ConfigError, PlimsollError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

_TIMEOUT_S: Final = 5.0
"""Seconds that each step of a call may take."""
_TRIES: Final = 3
_PARTITION: Final = 0
_BEGIN: Final = -2
"""librdkafka's OFFSET_BEGINNING."""
_UNKNOWN: Final = -3
"""Instead of an offset; lower than all others."""
_POLICY, _COMPACT = "cleanup.policy", "compact"


class LeaseTopic:
    """Leases in the first partition of a topic. One thread uses it.

    Every call raises ArchiveUnreachable, RightsMissing, or ConfigError where the topic is missing
    or not compacted.
    """

    def __init__(self, connection: Connection, topic: str, timeout_s: float = _TIMEOUT_S) -> None:
        self._connection = connection
        self._topic = topic
        self._timeout_s = timeout_s
        self._consumer: Consumer | None = None
        self._next = _BEGIN
        """Offset up to which the log has been read."""
        self._read: dict[str, Stored] = {}
        """The last committed version of each key, up to there."""
        self._producers: dict[str, Producer] = {}
        """By key; each has initialised the transactional id of its key."""

    def where(self, key: str) -> str:
        """Return the address of a lease for messages."""
        return f"{key} in topic {self._topic}"

    def get(self, key: str, most: int) -> Stored | None:
        """Return a lease of at most `most` bytes; None if there is none."""
        from confluent_kafka import KafkaException

        what = f"read {self.where(key)}"
        try:
            self._read_to(_BEGIN, what)
        except KafkaException as exc:
            raise self._error(what, exc.args[0]) from exc
        found = self._read.get(key)
        if found is not None and len(found.body) > most:
            raise ConfigError(f"{self.where(key)} is larger than {most:,} bytes")
        return found

    def put_new(self, key: str, body: bytes) -> str | None:
        """Create a lease and return its version; None if another one exists."""
        return self._put(key, body, "")

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        """Replace the lease of this version, return the new one; None if it is gone."""
        return self._put(key, body, etag)

    def keeps_conditions(self, key: str, probe: bytes) -> bool:
        """Whether writes whose condition fails are refused; else `probe` is written."""
        return self.put_new(key, probe) is None

    # ---- writing

    def _put(self, key: str, body: bytes, etag: str) -> str | None:
        from confluent_kafka import KafkaException

        what = f"write {self.where(key)}"
        self._opened(what)
        for _ in range(_TRIES):
            try:
                return self._transact(key, body, etag, what)
            except KafkaException as exc:
                # Whatever has become of the transaction: the next initialisation ends it.
                self._producers.pop(key, None)
                if not is_fenced(exc.args[0]):
                    raise self._error(what, exc.args[0]) from exc
            except BaseException:
                self._producers.pop(key, None)
                raise
        raise ArchiveUnreachable(f"Other writers keep changing {self.where(key)}; try again.")

    def _transact(self, key: str, body: bytes, etag: str, what: str) -> str | None:
        producer = self._producer(key)
        producer.begin_transaction()
        offset = self._written(producer, key, body, what)
        self._read_to(offset, what)
        found = self._read.get(key)
        if ("" if found is None else found.etag) != etag:
            producer.abort_transaction(self._timeout_s)
            return None
        producer.commit_transaction(self._timeout_s)
        return str(offset)

    def _producer(self, key: str) -> "Producer":
        if key not in self._producers:
            found = lease_producer(self._connection, f"{self._topic}-{key}", self._timeout_s)
            found.init_transactions(self._timeout_s)
            self._producers[key] = found
        return self._producers[key]

    def _written(self, producer: "Producer", key: str, body: bytes, what: str) -> int:
        """The offset of a record that is not committed yet."""
        from confluent_kafka import KafkaException

        answers: list[tuple[KafkaError | None, Message]] = []
        producer.produce(
            self._topic,
            body,
            key,
            partition=_PARTITION,
            on_delivery=lambda error, message: answers.append((error, message)),
        )
        try:
            producer.flush(self._timeout_s)
        except SystemError as exc:
            # The driver's fatal error, where it came up while the answer was being noted.
            if not isinstance(exc.__cause__, KafkaException):
                raise
            raise exc.__cause__ from exc
        if not answers:
            raise self._error(what, None)
        ((error, message),) = answers
        if error is not None:
            raise KafkaException(error)
        return _offset(message)

    # ---- reading

    def _read_to(self, offset: int, what: str) -> None:
        """Read what is committed, to the end of the log, which has to be at `offset` or later."""
        from confluent_kafka import TopicPartition

        consumer, ends_s = self._opened(what), time.monotonic() + self._timeout_s
        error: KafkaError | None = None
        try:
            while (left_s := ends_s - time.monotonic()) > 0:
                # The end is reported once for each assignment.
                consumer.assign([TopicPartition(self._topic, _PARTITION, self._next)])
                end, error = self._read_on(consumer, left_s, what)
                if end >= offset:
                    return
        finally:
            consumer.unassign()
        raise self._error(what, error)

    def _read_on(
        self, consumer: "Consumer", wait_s: float, what: str
    ) -> "tuple[int, KafkaError | None]":
        """Read to the end and return its offset; `_UNKNOWN` and the last error if that fails."""
        ends_s = time.monotonic() + wait_s
        last: KafkaError | None = None
        while (left_s := ends_s - time.monotonic()) > 0:
            message = consumer.poll(left_s)
            if message is None:
                continue
            error, offset = message.error(), _offset(message)
            if error is None:
                self._note(message, offset)
            elif is_end(error):
                self._next = max(self._next, offset)
                return offset, None
            elif has_lost_offset(error):
                # The topic is another one, or records were deleted: read all of it again.
                self._forget()
                return _UNKNOWN, error
            else:
                last = error
                self._raise_final(what, error)
        return _UNKNOWN, last

    def _note(self, message: "Message", offset: int) -> None:
        key, body = (message.key() or b"").decode("utf-8", "replace"), message.value()
        self._next = offset + 1
        if body is None:
            self._read.pop(key, None)
        else:
            self._read[key] = Stored(body, str(offset))

    def _opened(self, what: str) -> "Consumer":
        if self._consumer is None:
            self._refuse_without_compaction(what)
            self._forget()
            self._consumer = lease_consumer(self._connection)
        return self._consumer

    def _forget(self) -> None:
        self._next = _BEGIN
        self._read.clear()

    def _refuse_without_compaction(self, what: str) -> None:
        """Raise ConfigError where the topic is missing, or would lose leases with time."""
        from confluent_kafka import KafkaException

        try:
            found = topic_config(self._connection, self._topic, _POLICY, self._timeout_s)
        except KafkaException as exc:
            raise self._error(what, exc.args[0]) from exc
        if found != _COMPACT:
            raise ConfigError(
                f"Cannot {what}: the topic has {_POLICY}={found}, so Kafka would delete leases. "
                f"Set it to {_COMPACT}."
            )

    def _raise_final(self, what: str, error: "KafkaError") -> None:
        """Raise an error that does not pass by itself."""
        found = self._error(what, error)
        if not isinstance(found, ArchiveUnreachable):
            # The topic is checked again by the next call.
            self._consumer = None
            raise found

    def _error(self, what: str, error: "KafkaError | None") -> PlimsollError:
        return lease_topic_error(error, what, self._connection.bootstrap, self._topic)


def _offset(message: "Message") -> int:
    found = message.offset()
    return _UNKNOWN if found is None else found
