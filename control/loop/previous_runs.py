"""Previous runs on the loop's cluster: list, replay, resume and roll back."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from control.loop.run_thread import Runner
from control.loop.view import LoopView
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.plan.plan import Plan
from model.run import RunProgress, RunState

if TYPE_CHECKING:
    from executor.journal.journal_replay import Replay
    from executor.journal.run_history import PastRun


class PreviousRuns:
    """Runs in the journals of the cluster; subscribe it to the loop's views.

    With the first view that names the cluster, and after `look_again`, it checks whether the most
    recent run was interrupted and warns of settings that runs left behind.
    """

    def __init__(
        self,
        runner: Runner,
        journal_dir: Path,
        *,
        begin: Callable[[str, Callable[[], None], str], None],
        warn: Callable[[str], None],
    ) -> None:
        """Set up without reading a journal yet.

        begin: starts a run with a message for the log and the hash of its plan, empty where that
        is not known; raises GuardrailRefused while another one is in progress.
        warn: writes a warning to the loop's log.
        """
        self._runner, self._journal_dir = runner, journal_dir
        self._begin, self._warn = begin, warn
        self._cluster_id: str | None = None
        self.interrupted: PastRun | None = None
        """The most recent run, if its process ended before the run did and none has begun since."""

    def __call__(self, view: LoopView) -> None:
        """Remember the cluster, and check once for an interrupted run."""
        if view.snapshot is None:
            return
        first = self._cluster_id is None
        self._cluster_id = view.snapshot.header.cluster_id
        if first:
            self._check(self._cluster_id)

    def _check(self, cluster_id: str) -> None:
        from executor.journal.left_settings import left_settings
        from executor.journal.lock import is_changing
        from executor.journal.run_history import past_run

        for warning in left_settings(self._journal_dir, cluster_id):
            self._warn(warning)
        found = None
        with contextlib.suppress(ConfigError):
            newest = past_run(self._journal_dir, cluster_id)
            interrupted = newest.state is RunState.INTERRUPTED and newest.is_unfinished
            if interrupted and not is_changing(self._journal_dir, cluster_id):
                found = newest
        # Another process may have resumed or rolled back what was found before.
        self.interrupted = found

    def saw(self, run: RunProgress) -> None:
        """Forget the interrupted run once another one has begun: only the newest resumes.

        run: progress of a run of this process.
        """
        # One that fails its checks leaves no journal.
        began, found = run.state is not RunState.CHECKING, self.interrupted
        if began and found is not None and found.run_id != run.run_id:
            self.interrupted = None

    def look_again(self) -> None:
        """Check for an interrupted run with the next view once more."""
        self._cluster_id = None

    def runs(self) -> "tuple[PastRun, ...]":
        """Read the most recent runs on the cluster from their journals, newest first.

        Empty until the cluster is known.
        """
        from executor.journal.lock import is_changing
        from executor.journal.run_history import past_runs

        if self._cluster_id is None:
            return ()
        # Before the journals: a run that ends in between must not look interrupted.
        changing = is_changing(self._journal_dir, self._cluster_id)
        found = past_runs(self._journal_dir, self._cluster_id)
        if changing and found and found[-1].state is RunState.INTERRUPTED:
            found[-1] = replace(found[-1], state=RunState.RUNNING)
        return tuple(reversed(found))

    def replay(self, run_id: str) -> "Replay":
        """Read the state of a run after each record of its journal."""
        from executor.journal.journal_replay import read_replay

        return read_replay(self._journal_dir, run_id)

    def resume(self, by: str) -> None:
        """Start resuming the most recent run; return at once.

        Raises
        ------
        GuardrailRefused
            plimsoll is read-only, or a run is in progress.
        """
        message = f"resuming the most recent run, requested by {by}"
        plan_hash = "" if self.interrupted is None else self.interrupted.plan.hash
        self._start(message, lambda: self._runner.resume(by), plan_hash)

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        """Return the plan that undoes a run, and what it cannot undo, in words.

        Asks the cluster.

        Raises
        ------
        GuardrailRefused
            plimsoll is read-only.
        PlimsollError
            The executor cannot plan it; the log says why, too.
        """
        self._runner.check_allowed()
        try:
            return self._runner.plan_rollback(run_id)
        except PlimsollError as exc:
            # A screen shows the error for a few seconds only.
            self._warn(f"run {run_id} cannot be rolled back now: {exc}")
            raise

    def roll_back(self, plan: Plan, by: str) -> None:
        """Start executing exactly this plan of `plan_rollback`; return at once.

        Raises
        ------
        GuardrailRefused
            plimsoll is read-only, or a run is in progress.
        """
        # The plan names the run that it undoes.
        message = f"rolling back {plan.limited_by}: plan {plan.hash[:12]} approved by {by}"
        self._start(message, lambda: self._runner.roll_back(plan, by), plan.hash)

    def _start(self, message: str, start: Callable[[], None], plan_hash: str) -> None:
        self._runner.check_allowed()
        # Before the run, which may fail at once and leave it interrupted.
        before, self.interrupted = self.interrupted, None
        try:
            self._begin(message, start, plan_hash)
        except GuardrailRefused:
            self.interrupted = before
            raise
