"""When `--auto` restores settings that previous runs left on the cluster."""

from pathlib import Path
from typing import Final

from control.planning.backoff import Backoff
from model.errors import ConfigError

FIRST_S: Final = 5.0
"""Time between the first two attempts; doubles with each further one."""
MOST_S: Final = 60.0


class CleanupSchedule:
    """Decide when to try; a run that failed may have left settings in force.

    Times are seconds of a clock that is never set.
    """

    def __init__(self, journal_dir: Path) -> None:
        self._journal_dir = journal_dir
        self._possible = True
        self._attempts = Backoff(first_s=FIRST_S, most_s=MOST_S)
        self._tried_for = ""
        """Hash of the plan before which it was tried."""

    def run_failed(self, now_s: float) -> None:
        """Expect leftovers of a run that failed and has itself tried to clean up."""
        self._possible, self._tried_for = True, ""
        self._attempts = self._attempts.reset().again(now_s)

    def leader_changed(self) -> None:
        """Expect leftovers of another process."""
        self._possible, self._tried_for = True, ""
        self._attempts = self._attempts.reset()

    def due(self, cluster_id: str, now_s: float, plan_hash: str = "") -> bool:
        """Whether to try now; once for each plan that is about to be executed.

        Reads the journals, unless nothing can be left.
        """
        if not self._possible:
            return False
        wait = plan_hash == self._tried_for if plan_hash else self._attempts.left_s(now_s) > 0
        if wait:
            return False
        self._possible = self._is_anything_left(cluster_id)
        if self._possible:
            self._attempts = self._attempts.again(now_s)
            self._tried_for = plan_hash
        return self._possible

    def _is_anything_left(self, cluster_id: str) -> bool:
        from executor.journal.run_history import left_set

        try:
            return any(p.left_set for p in left_set(self._journal_dir, cluster_id))
        except ConfigError:
            # An operator has to decide what a damaged journal may hide.
            return False
