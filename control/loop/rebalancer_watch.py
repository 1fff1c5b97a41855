"""Search for competing rebalancers in a thread beside the loop."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from control.planning.background_call import Background, InBackground, in_thread
from model.errors import PlimsollError
from model.log_events import LogEvent, named

EVERY_S: Final = 60.0
"""Time between two searches while the same plan is offered."""
_log = logging.getLogger("plimsoll.control")


class RebalancerWatch:
    """Search when a plan becomes ready, then every `EVERY_S`.

    Only the loop's thread may call it.
    """

    def __init__(
        self,
        find: Callable[[bool], tuple[str, ...]],
        report: Callable[[tuple[str, ...]], None],
        steady: Callable[[], float],
        background: InBackground = in_thread,
    ) -> None:
        """Set up without searching yet.

        find: asks the cluster for competing rebalancers, one sentence each; True where AutoMQ's
        own balancer competes. report: called with them from the thread of the search. steady:
        seconds of a clock that is never set. background: where searches run.
        """
        self._find, self._report, self._steady = find, report, steady
        self._background = background
        self._plan_hash = ""
        self._searched_at_s = 0.0
        self._thread: Background | None = None

    def search(self, plan_hash: str, shared: bool) -> None:
        """Start a search for this plan if one is due; return at once."""
        now_s = self._steady()
        if self._thread is not None and self._thread.is_alive():
            return
        if plan_hash == self._plan_hash and now_s - self._searched_at_s < EVERY_S:
            return
        self._plan_hash, self._searched_at_s = plan_hash, now_s
        self._thread = self._background(partial(self._search, shared), "rebalancers")
        self._thread.start()

    def _search(self, shared: bool) -> None:
        try:
            found = self._find(shared)
        except PlimsollError as exc:
            # Approving the plan repeats the search and reports the error.
            _log.debug(
                "cannot search for competing rebalancers: %s",
                exc,
                extra=named(LogEvent.REBALANCER_UNKNOWN),
            )
            return
        self._report(found)
