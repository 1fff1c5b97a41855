"""The read-only API: what `status`, `why` and `plan` print with `-o json`, of the loop's own state.

Documents are computed in one thread beside the server, one at a time, and returned again for
ten times as long as that took, so that clients that poll cost a tenth of a core at most.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from control.cli.output import Form
from control.loop.decision_file import MOST_LINES
from control.planning.plan_gain import PlanGain
from control.render.cluster_status import cluster_text
from control.render.decision_answers import why_answer
from control.render.plan_text import ChosenPlan, result_text
from control.render.text import json_text
from control.service.service_state import ServiceState
from model.errors import PlimsollError

FRESH_S: Final = 1.0
"""Seconds for which a document is returned again, at least."""
IDLE_FACTOR: Final = 10
"""The same as a multiple of the time that it took."""


class NotYetKnown(PlimsollError):
    """The loop has not come to what a document would show."""


class ReadApi:
    """The documents of the API; called by the server's thread."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="api")
        self._one = asyncio.Lock()
        self._kept: dict[str, tuple[float, str]] = {}

    def close(self) -> None:
        """End the thread after the document that it computes."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def status(self, *, partitions: bool = True) -> str:
        """As `status -o json`; partitions: whether it lists them.

        Raises NotYetKnown before the first observation.
        """
        name = "status" if partitions else "brokers"
        return await self._document(name, lambda: self._status(partitions=partitions))

    async def plan(self) -> str:
        """The result of the newest solve, as `plan -o json`. Raises NotYetKnown before it."""
        return await self._document("plan", self._plan)

    async def why(self, last: int) -> str:
        """The newest decisions, as `why -o json`; last: their number, up to `MOST_LINES`.

        Raises ConfigError where they cannot be read.
        """
        last = min(last, MOST_LINES)
        return await self._document(f"why {last}", lambda: self._why(last))

    async def _document(self, name: str, compute: Callable[[], str]) -> str:
        loop = asyncio.get_running_loop()
        async with self._one:
            until_s, text = self._kept.get(name, (0.0, ""))
            if not text or loop.time() > until_s:
                began_s = loop.time()
                text = await loop.run_in_executor(self._worker, compute)
                until_s = loop.time() + max(FRESH_S, IDLE_FACTOR * (loop.time() - began_s))
                # `why` has many names, of which the newest is enough.
                others = {k: v for k, v in self._kept.items() if k.split()[0] != name.split()[0]}
                self._kept = others | {name: (until_s, text)}
        return text

    def _status(self, *, partitions: bool) -> str:
        view = self._state.view
        if view is None or view.snapshot is None:
            raise NotYetKnown("the first observation of the cluster is not complete yet")
        return cluster_text(
            view.snapshot,
            self._state.goals,
            Form.JSON,
            now_ms=_now_ms(),
            replication=view.replication,
            notes=view.proposed.rivals,
            partitions=partitions,
        )

    def _plan(self) -> str:
        view = self._state.view
        result = view.proposed.result if view is not None else None
        if result is None:
            raise NotYetKnown("no plan has been computed yet; balanced clusters need none")
        chosen = None
        if result.best is not None:
            gain = PlanGain.of(result.best)
            chosen = ChosenPlan(effort=self._state.effort, gain=gain, seconds=None)
        return result_text(result, chosen, (), Form.JSON, ())

    def _why(self, last: int) -> str:
        folder = self._state.decisions_dir
        if folder is None:
            raise NotYetKnown("the loop has not begun yet")
        return json_text(why_answer(folder, last, _now_ms()))


def _now_ms() -> int:
    return int(1000 * time.time())
