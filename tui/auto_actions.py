"""What `run --auto` decides in another process, and the approval of the plan that it asks for."""

import asyncio

from control.service.auto_watch import AutoSeen
from model.errors import PlimsollError
from tui.host import Host
from tui.loop_port import Engine
from tui.screens.approve import Preview
from tui.screens.waiting_plan import WaitingPlanScreen
from tui.viewmodel.disabled_reasons import refusal


class AutoActions:
    """Looks for decisions, and passes an approval on after a confirmation."""

    def __init__(self, app: Host, engine: Engine, user: str, preview: Preview) -> None:
        """preview: estimates the run of a plan."""
        self._app, self._engine, self._user = app, engine, user
        self._preview = preview
        self._looking = False

    async def look(self) -> AutoSeen | None:
        """The newest decision; None where no other process decides about the cluster."""
        watch, moment = self._engine.auto_watch, self._app.moment
        snapshot = moment.view.snapshot
        if watch is None or snapshot is None or self._looking:
            return moment.auto
        self._looking = True
        try:
            cluster_id = snapshot.header.cluster_id
            return await asyncio.to_thread(watch.seen, cluster_id, moment.now_ms)
        except PlimsollError:
            # Such as a folder that cannot be read: what it says can wait.
            return None
        finally:
            self._looking = False

    def approve(self) -> None:
        """Show the plan that waits, and approve it after a confirmation."""
        if refusal("approve_waiting", self._app.moment) is None:
            self._app.run_worker(self._ask(), group="auto", exclusive=True)

    async def _ask(self) -> None:
        watch, moment = self._engine.auto_watch, self._app.moment
        if watch is None or moment.auto is None or moment.auto.waiting is None:
            return
        question = moment.auto.waiting
        try:
            plan = await asyncio.to_thread(watch.plan, question.plan_hash)
        except PlimsollError as exc:
            self._app.notify(str(exc), severity="error", timeout=15, markup=False)
            return
        self._app.push_screen(
            WaitingPlanScreen(plan, question.why, moment, self._approve, self._preview)
        )

    def _approve(self, plan_hash: str) -> None:
        """From another thread."""
        watch = self._engine.auto_watch
        if watch is not None:
            watch.approve(plan_hash, self._user, self._app.moment.now_ms)
            self._app.call_from_thread(self._app.log_action, f"approve plan {plan_hash[:12]}")
