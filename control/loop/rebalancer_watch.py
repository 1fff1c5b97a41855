"""Whether others move partitions of the cluster, asked beside the loop."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from model.errors import PlimsollError

EVERY_S: Final = 60.0
"""Between two looks at the cluster while one plan is offered."""
_log = logging.getLogger("plimsoll.control")

Found = tuple[str, ...]


class Rivals:
    """Looks when a plan becomes ready and now and then; the loop's thread uses it."""

    def __init__(
        self,
        ask: Callable[[bool], Found],
        tell: Callable[[Found], None],
        steady: Callable[[], float],
    ) -> None:
        """ask: asks the cluster, whether or not AutoMQ's balancer matters.

        tell: called from a thread of its own with what was found.
        """
        self._ask, self._tell, self._steady = ask, tell, steady
        self._plan = ""
        self._looked_at_s = 0.0
        self._thread: threading.Thread | None = None

    def look(self, plan_hash: str, shared: bool) -> None:
        """Begin to look, if it is time to; returns at once."""
        now_s = self._steady()
        if self._thread is not None and self._thread.is_alive():
            return
        if plan_hash == self._plan and now_s - self._looked_at_s < EVERY_S:
            return
        self._plan, self._looked_at_s = plan_hash, now_s
        self._thread = threading.Thread(
            target=self._look, args=(shared,), name="rivals", daemon=True
        )
        self._thread.start()

    def _look(self, shared: bool) -> None:
        try:
            found = self._ask(shared)
        except PlimsollError as exc:
            # The approval asks again, and says why it cannot.
            _log.debug("competing rebalancers could not be looked for: %s", exc)
            return
        self._tell(found)
