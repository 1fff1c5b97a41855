"""Whether others move partitions of the cluster, asked beside the loop."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from model.errors import PlimsollError

EVERY_S: Final = 60.0
"""Between two looks at the cluster while one plan is offered."""
_log = logging.getLogger("plimsoll.control")

Rebalancers = tuple[str, ...]


class RebalancerWatch:
    """Looks when a plan becomes ready and now and then; the loop's thread uses it."""

    def __init__(
        self,
        find: Callable[[bool], Rebalancers],
        report: Callable[[Rebalancers], None],
        steady: Callable[[], float],
    ) -> None:
        """ask: asks the cluster, whether or not AutoMQ's balancer matters.

        tell: called from a thread of its own with what was found.
        """
        self._find, self._report, self._steady = find, report, steady
        self._plan_hash = ""
        self._searched_at_s = 0.0
        self._thread: threading.Thread | None = None

    def search(self, plan_hash: str, shared: bool) -> None:
        """Begin to look, if it is time to; returns at once."""
        now_s = self._steady()
        if self._thread is not None and self._thread.is_alive():
            return
        if plan_hash == self._plan_hash and now_s - self._searched_at_s < EVERY_S:
            return
        self._plan_hash, self._searched_at_s = plan_hash, now_s
        self._thread = threading.Thread(
            target=self._search, args=(shared,), name="rebalancers", daemon=True
        )
        self._thread.start()

    def _search(self, shared: bool) -> None:
        try:
            found = self._find(shared)
        except PlimsollError as exc:
            # Approving the plan repeats the search and reports the error.
            _log.debug("cannot search for competing rebalancers: %s", exc)
            return
        self._report(found)
