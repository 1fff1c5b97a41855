"""Ongoing reassignments as the controller lists them (KIP-455)."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clients.admin_connection import exchange, run_in_driver
from clients.driver_errors import failure_of
from collector.brokers.fan_out import ANSWER_S

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_PATIENCE_S: Final = 5.0
"""Another broker is asked after this; the first one may hang, too."""
_log = logging.getLogger("plimsoll.collector")


class ReassignmentPoll:
    """Asks for reassignments; brokers hand the question on to the controller.

    While there is no controller, or it hangs, the last answer stays valid: only the
    controller begins or ends moves. One thread owns it.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = min(timeout_s, _PATIENCE_S)
        self._pending: Future[Any] | None = None
        self._asked_s = 0.0
        self._known: Mapping[tuple[str, int], int] = {}

    def ask(self, admin: "KafkaAdminClient", broker: int | None) -> None:
        """Send the request, unless a response is pending; does not wait.

        broker: id of the controller according to the metadata; None for any broker.
        """
        from kafka.protocol.admin import ListPartitionReassignmentsRequest

        if self._pending is None:
            timeout_ms = int(1000 * self._timeout_s)
            request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)
            asking = partial(exchange, admin, request, broker, self._timeout_s)
            self._pending = run_in_driver(admin, asking)
            self._asked_s = time.monotonic()

    def latest(self) -> Mapping[tuple[str, int], int]:
        """By topic and partition number: how many of its replicas are being added.

        Waits until `ANSWER_S` after the request at most. Raises the driver's
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
        """Drop the pending request; its answer is ignored."""
        self._pending = None

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
