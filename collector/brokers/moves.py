"""Which partitions are being moved, as the controller tells it."""

import logging
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Final

from collector.brokers.asking import ANSWER_S
from collector.client import answer, begin, failure_of, post

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_PATIENCE_S: Final = 5.0
"""Then another broker is asked; that one may hang, too."""
_log = logging.getLogger("plimsoll.collector")


class Moves:
    """Asks for reassignments; brokers hand the question on to the controller.

    While there is none, or it hangs, what it said last is believed: nobody else would
    begin or end a move. One thread owns it.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = min(timeout_s, _PATIENCE_S)
        self._pending: Future[Any] | None = None
        self._late = False
        self._known: frozenset[tuple[str, int]] = frozenset()

    def ask(self, admin: "KafkaAdminClient", broker: int) -> frozenset[tuple[str, int]]:
        """Topics and partition numbers. `broker`: whom metadata call the controller.

        Raises the driver's errors for rights that are missing.
        """
        if self._pending is None:
            self._pending = begin(admin, lambda: self._ask(admin, broker))
        wait([self._pending], 0.0 if self._late else ANSWER_S)
        pending, self._late = self._pending, not self._pending.done()
        if not self._late:
            self._pending = None
            self._take(pending)
        return self._known

    def forget(self) -> None:
        """Nothing is waited for any more."""
        self._pending = None

    async def _ask(self, admin: "KafkaAdminClient", broker: int) -> Any:
        from kafka.protocol.admin import ListPartitionReassignmentsRequest

        timeout_ms = int(1000 * self._timeout_s)
        request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)
        posted = post(admin, request, broker, self._timeout_s)
        return await answer(admin, posted, self._timeout_s)

    def _take(self, pending: "Future[Any]") -> None:
        from kafka.errors import AuthorizationError, for_code

        error = pending.exception()
        if error is None and pending.result().error_code:
            error = for_code(pending.result().error_code)()
        if isinstance(error, AuthorizationError):
            raise error
        if error is not None:
            _log.debug("moves in progress are not told: %s", failure_of(error))
            return
        self._known = frozenset(
            (topic.name, partition.partition_index)
            for topic in pending.result().topics
            for partition in topic.partitions
        )
