"""Runs of before on the loop's cluster: to look at, to go on with, to undo."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from control.loop.run_thread import Runner
from control.loop.view import LoopView
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.plan.plan import Plan
from model.run import RunState

if TYPE_CHECKING:
    from executor.journal.journal_replay import Replay
    from executor.journal.run_history import PastRun

READ_ONLY = "plimsoll is read-only; start it with --allow-changes"


class Host(Protocol):
    """The loop, as far as runs of before need it."""

    @property
    def view(self) -> LoopView:
        """The loop as it stands."""
        ...

    def begin(self, words: str, start: Callable[[], None]) -> None:
        """Let a run begin that is no run of the loop's newest plan.

        Raises GuardrailRefused while one goes on.
        """

    def warn(self, text: str) -> None:
        """Say in the log what came to nothing."""


class Past:
    """What journals of the cluster tell, and what can be done with it.

    The loop calls it with each view; once the cluster is known it looks whether its
    newest run was cut off.
    """

    def __init__(self, host: Host, runner: Runner | None, journal_dir: Path) -> None:
        self._host = host
        self._runner = runner
        self._journal_dir = journal_dir
        self._poll = False
        self.cut_off: PastRun | None = None
        """The newest run, where its process ended before it did."""

    def __call__(self, view: LoopView) -> None:
        """Look for a run that was cut off, once."""
        if self._poll or view.snapshot is None:
            return
        self._poll = True
        from executor.journal.left_settings import left_settings
        from executor.journal.lock import is_changing
        from executor.journal.run_history import past_run

        cluster_id = view.snapshot.header.cluster_id
        for words in left_settings(self._journal_dir, cluster_id):
            self._host.warn(words)
        with contextlib.suppress(ConfigError):
            newest = past_run(self._journal_dir, cluster_id)
            lost = newest.state is RunState.INTERRUPTED and newest.is_unfinished
            if lost and not is_changing(self._journal_dir, cluster_id):
                self.cut_off = newest

    def runs(self) -> "tuple[PastRun, ...]":
        """The newest runs on the cluster, newest first; reads their files."""
        from executor.journal.lock import is_changing
        from executor.journal.run_history import past_runs

        snapshot = self._host.view.snapshot
        if snapshot is None:
            return ()
        cluster_id = snapshot.header.cluster_id
        # Asked first, so that a run that ends meanwhile is not taken for interrupted.
        changing = is_changing(self._journal_dir, cluster_id)
        found = past_runs(self._journal_dir, cluster_id)
        if changing and found and found[-1].state is RunState.INTERRUPTED:
            found[-1] = replace(found[-1], state=RunState.RUNNING)
        return tuple(reversed(found))

    def replay(self, run_id: str) -> "Replay":
        """A run after each record of its journal; reads it."""
        from executor.journal.journal_replay import read_replay

        return read_replay(self._journal_dir, run_id)

    def resume(self, by: str) -> None:
        """Go on with the newest run; returns at once. Raises GuardrailRefused."""
        runner = self._allowed()
        self._host.begin(
            f"going on with a run, as {by} asked", lambda: runner.resume(by)
        )
        self.cut_off = None

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        """The plan that undoes a run, and what it leaves alone; asks the cluster.

        Raises GuardrailRefused where nothing may be changed, else as the executor.
        """
        runner = self._allowed()
        try:
            return runner.plan_rollback(run_id)
        except PlimsollError as exc:
            # Also in the log: a screen tells it for some seconds only.
            self._host.warn(f"run {run_id} cannot be rolled back now: {exc}")
            raise

    def roll_back(self, plan: Plan, by: str) -> None:
        """Carry out exactly this plan; returns at once. Raises GuardrailRefused."""
        runner = self._allowed()
        words = (
            f"moving back {plan.limited_by}: plan {plan.hash[:12]}, approved by {by}"
        )
        self._host.begin(words, lambda: runner.roll_back(plan, by))
        self.cut_off = None

    def _allowed(self) -> Runner:
        if self._runner is None:
            raise GuardrailRefused(READ_ONLY)
        return self._runner
