"""Which partitions are being moved, as the controller tells it."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clients.admin_connection import post_request, response_to, run_in_driver
from clients.driver_errors import failure_of
from collector.brokers.fan_out import ANSWER_S

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_PATIENCE_S: Final = 5.0
"""Then another broker is asked; that one may hang, too."""
_log = logging.getLogger("plimsoll.collector")


class ReassignmentPoll:
    """Asks for reassignments; brokers hand the question on to the controller.

    While there is none, or it hangs, what it said last is believed: nobody else would
    begin or end a move. One thread owns it.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = min(timeout_s, _PATIENCE_S)
        self._pending: Future[Any] | None = None
        self._asked_s = 0.0
        self._known: Mapping[tuple[str, int], int] = {}

    def ask(self, admin: "KafkaAdminClient", broker: int | None) -> None:
        """Ask, unless an answer is still to come, and wait for nothing.

        `broker`: whom metadata call the controller; None for any.
        """
        if self._pending is None:
            self._pending = run_in_driver(admin, partial(self._ask, admin, broker))
            self._asked_s = time.monotonic()

    def latest(self) -> Mapping[tuple[str, int], int]:
        """By topic and partition number: how many of its replicas are being added.

        Told `ANSWER_S` after the question at the latest. Raises the driver's
        errors for rights that are missing.
        """
        if (pending := self._pending) is None:
            return self._known
        left_s = self._asked_s + ANSWER_S - time.monotonic()
        wait([pending], max(0.0, left_s))
        if pending.done():
            self._pending = None
            self._take(pending)
        return self._known

    def forget(self) -> None:
        """Nothing is waited for any more."""
        self._pending = None

    async def _ask(self, admin: "KafkaAdminClient", broker: int | None) -> Any:
        from kafka.protocol.admin import ListPartitionReassignmentsRequest

        timeout_ms = int(1000 * self._timeout_s)
        request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)
        posted = post_request(admin, request, broker, self._timeout_s)
        return await response_to(admin, posted, self._timeout_s)

    def _take(self, pending: "Future[Any]") -> None:
        from kafka.errors import AuthorizationError, for_code

        error = pending.exception()
        if error is None and pending.result().error_code:
            error = for_code(pending.result().error_code)()
        if isinstance(error, AuthorizationError):
            raise error
        if error is not None:
            _log.debug("reassignments cannot be listed: %s", failure_of(error))
            return
        self._known = {
            (topic.name, partition.partition_index): len(partition.adding_replicas)
            for topic in pending.result().topics
            for partition in topic.partitions
        }
