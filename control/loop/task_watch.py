"""Look for tasks that `--auto` may continue, in a thread beside the loop."""

from collections.abc import Callable
from functools import partial
from typing import Final

from control.loop.dependencies import OpenTask, OpenTasks
from control.planning.background_call import Background, InBackground, in_thread, outcome
from model.errors import PlimsollError

EVERY_S: Final = 10.0
"""Time between two looks."""


class TaskWatch:
    """Look every `EVERY_S`. Only the loop's thread may call it."""

    def __init__(
        self,
        tasks: OpenTasks,
        warn: Callable[[str], None],
        steady: Callable[[], float],
        background: InBackground = in_thread,
    ) -> None:
        """Set up without looking yet.

        warn: receives what keeps tasks from being read, once until that changes. steady: seconds
        of a clock that is never set. background: where looks happen.
        """
        self._tasks, self._warn, self._steady = tasks, warn, steady
        self._background = background
        self._thread: Background | None = None
        self._looked_at_s: float | None = None
        self._found: OpenTask | None = None
        self._failure = ""

    @property
    def is_first(self) -> bool:
        """Whether the first look has not ended yet."""
        return self._thread is None or (self._looked_at_s is None and self._thread.is_alive())

    def look(self, cluster_id: str) -> None:
        """Start to look for a task if that is due; return at once."""
        if self._thread is not None and self._thread.is_alive():
            return
        if self._looked_at_s is not None and self._steady() - self._looked_at_s < EVERY_S:
            return
        self._thread = self._background(partial(self._look, cluster_id), "tasks")
        self._thread.start()

    def look_again(self) -> None:
        """Forget what was found, and look with the next call."""
        self._thread, self._looked_at_s, self._found = None, None, None

    def take(self) -> OpenTask | None:
        """The task that was found last, once."""
        found, self._found = self._found, None
        return found

    def _look(self, cluster_id: str) -> None:
        found = outcome(lambda: self._tasks.next(cluster_id), "the look for tasks")
        failure = str(found) if isinstance(found, PlimsollError) else ""
        self._found = None if isinstance(found, PlimsollError) else found
        if failure and failure != self._failure:
            self._warn(failure)
        self._failure = failure
        self._looked_at_s = self._steady()
