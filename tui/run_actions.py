"""The operator's requests about runs: change the throttle, resume, roll back."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from executor.journal.journal_replay import Replay
from model.errors import PlimsollError
from model.plan.plan import Plan
from model.run import RunProgress
from tui.host import Host
from tui.loop_port import Engine
from tui.screens.question import Question
from tui.screens.roll_back import RollBackScreen
from tui.screens.throttle import ThrottleScreen
from tui.viewmodel.disabled_reasons import refusal
from tui.viewmodel.run.past_runs import Listed, listed
from tui.viewmodel.run.throttle import throttle_text

T = TypeVar("T")

RESUME_TEXT = (
    "The state of its moves is read from the cluster. Moves that have not started are "
    "made now if they still apply."
)


class RunActions:
    """Confirm what needs confirmation, then pass the request on to the loop."""

    def __init__(self, app: Host, engine: Engine, user: str) -> None:
        self._app = app
        self._engine = engine
        self._user = user

    def runs(self) -> tuple[Listed, ...]:
        """Return the previous runs, newest first; reads their journals."""
        return listed(self._engine.previous_runs.runs())

    def replay(self, run_id: str) -> Replay:
        """Read a run's journal; raises ConfigError if there is none."""
        return self._engine.previous_runs.replay(run_id)

    def throttle(self) -> None:
        """Ask for a new throttle and request it."""
        if refusal("throttle", self._app.moment) is None:
            moment = self._app.moment
            now = throttle_text(moment.throttle, moment.asked)
            asked = ThrottleScreen(now, self._engine.steering.throttle)
            self._app.push_screen(asked)

    def resume(self) -> None:
        """Resume the paused run, or the most recent run after a confirmation."""
        if self._app.moment.running:
            if self._app.moment.paused:
                self._app.action_pause_run()
            return
        run = self.run_shown
        if refusal("resume", self._app.moment) is None and run is not None:
            question = Question(f"Resume run {run.run_id}?", RESUME_TEXT, yes="Resume", no="Cancel")
            self._app.push_screen(question, self._resume_if)

    def roll_back(self, run_id: str | None = None) -> None:
        """Roll back a run, by default the one shown, after a confirmation."""
        shown = self.run_shown
        requested = run_id or (shown.run_id if shown is not None else None)
        if refusal("roll_back", self._app.moment) is not None:
            return
        if requested is None:
            self._app.notify("there is no run to roll back", timeout=5)
            return
        self._app.notify("comparing the run with the cluster", timeout=3)
        self._app.run_worker(self._ask_back(requested), group="runs", exclusive=True)

    def _resume_if(self, yes: bool | None) -> None:
        if yes:
            self._app.run_worker(self._resume(), group="runs")

    async def _resume(self) -> None:
        # Off the event loop: the loop may hold its lock for a moment.
        await self._result(lambda: self._engine.previous_runs.resume(self._user))

    async def _ask_back(self, run_id: str) -> None:
        answer = await self._result(lambda: self._engine.previous_runs.plan_rollback(run_id))
        if answer is None:
            return
        plan, left = answer
        if not plan.moves:
            words = "; ".join(left) or "this run has nothing to roll back"
            self._app.notify(words, timeout=10, markup=False)
            return
        parts = self._app.moment, self._roll_back, self._engine.preview
        question = RollBackScreen(run_id, plan, left, *parts)
        self._app.push_screen(question)

    def _roll_back(self, plan: Plan) -> None:
        self._engine.previous_runs.roll_back(plan, self._user)

    async def _result(self, ask: Callable[[], T]) -> T | None:
        """Return the result, or None after showing why the request was refused."""
        try:
            return await asyncio.to_thread(ask)
        except PlimsollError as exc:
            self._app.notify(str(exc), severity="error", timeout=15, markup=False)
            return None

    @property
    def run_shown(self) -> RunProgress | None:
        """The run that the run screen shows."""
        moment = self._app.moment
        if moment.view.run is not None:
            return moment.view.run
        return None if moment.interrupted is None else moment.interrupted.progress
