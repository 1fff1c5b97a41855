"""Requests that any broker can answer, with failover from silent ones."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from clients.admin_connection import send_request
from collector.brokers.fan_out import ANSWER_S

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

STAYS_S: Final = 5.0
"""Another broker is asked after this, so that one without contact to the others does not
decide for long."""
AVOIDED_S: Final = 30.0
"""A broker that was silent is asked after the others for so long."""
_log = logging.getLogger("plimsoll.collector")


class AnyBroker:
    """Asks one broker for a while, and the next when it fails. One thread owns it."""

    def __init__(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeout_s, self._clock = timeout_s, clock
        self._order: list[int] = []
        self._since_s = float("-inf")
        self._failed_s: dict[int, float] = {}
        self.last = -1
        """The broker that answered last."""

    def ask(self, admin: "KafkaAdminClient", request: Any) -> Any:
        """Send a request to one broker after another; return the first response.

        Each broker has `ANSWER_S` seconds; if all fail, the first one gets the connection's full
        time-out. Raises AuthorizationError and IncompatibleBrokerVersion at once, the last
        KafkaError or OSError after all brokers, and OSError if no broker is known.
        """
        from kafka.errors import AuthorizationError, IncompatibleBrokerVersion, KafkaError

        error: Exception | None = None
        for broker, timeout_s in self._tries(admin):
            try:
                found = send_request(admin, request, broker, timeout_s)
            except (AuthorizationError, IncompatibleBrokerVersion):
                raise
            except (KafkaError, OSError) as exc:
                _log.debug("broker %s did not answer: %r", broker, exc)
                self._failed_s[broker] = self._clock()
                error = exc
            else:
                self.last = broker
                _prefer(admin, broker)
                return found
        raise error or OSError("no broker is known")

    def _tries(self, admin: "KafkaAdminClient") -> Iterator[tuple[int, float]]:
        known = [b.node_id for b in admin._manager.cluster.brokers()]  # noqa: SLF001 - as in `send_request`
        order = self._next(known)
        for broker in order:
            yield broker, min(ANSWER_S, self._timeout_s)
        # A large cluster may need longer for its metadata.
        yield from ((broker, self._timeout_s) for broker in order[:1])

    def _next(self, known: list[int]) -> list[int]:
        """Brokers in the order to ask them: that of the last call comes first for a while."""
        now_s = self._clock()
        order = [b for b in self._order if b in known]
        order += sorted(set(known) - set(order))
        if now_s - self._since_s >= STAYS_S:
            order, self._since_s = order[1:] + order[:1], now_s
        order.sort(key=lambda b: now_s - self._failed_s.get(b, -AVOIDED_S) < AVOIDED_S)
        self._order = order
        return list(order)


def _prefer(admin: "KafkaAdminClient", broker: int) -> None:
    """Direct the driver's own calls for any broker to this one, too."""
    manager = admin._manager  # noqa: SLF001 - as in `send_request`
    manager.least_loaded_node = lambda: broker
