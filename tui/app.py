"""The app: it shows the loop's views and passes on the operator's decisions."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from textual import work
from textual.app import SystemCommand
from textual.binding import Binding
from textual.dom import DOMNode
from textual.driver import Driver
from textual.events import ScreenSuspend
from textual.screen import Screen

from control.cli.console import operator
from control.loop.view import LogLine, LoopView, Mode, Phase
from model.errors import PlimsollError
from model.ids import BrokerId, TopicName
from model.plan.plan import Plan
from tui.auto_actions import AutoActions
from tui.base_app import BREAK_KEY, HELP_KEY, driver_for, show
from tui.events import ViewArrived
from tui.host import Host, Runs, Tasks
from tui.keys import MODE_KEYS, RUN_KEYS
from tui.loop_port import Asking, Engine
from tui.palette import commands
from tui.run_actions import RunActions
from tui.screen_state import Moment
from tui.screens.approve import ApproveScreen
from tui.screens.base import LiveScreen
from tui.screens.command_line import CommandLine
from tui.screens.log import LogScreen
from tui.screens.overview import OverviewScreen
from tui.screens.past_runs import HistoryScreen
from tui.screens.plan import PlanScreen
from tui.screens.problems import ProblemsScreen
from tui.screens.question import Question
from tui.screens.run import RunScreen
from tui.screens.tasks import TasksScreen
from tui.screens.too_small import is_too_small
from tui.screens.topics import TopicsScreen
from tui.task_actions import TaskActions
from tui.terminal import vanished
from tui.viewmodel.brokers.load_history import Trail
from tui.viewmodel.disabled_reasons import refusal
from tui.viewmodel.modes import MODES

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.service.auto_watch import AutoSeen
    from executor.schedule.estimate import Forecast

STOP_TEXT = "In-flight moves finish and no further move starts. Completed moves stay as they are."
ABORT_TEXT = (
    "In-flight moves are cancelled and reverted where the platform supports it. "
    "Completed moves stay as they are."
)
AUTO_EVERY_S = 2.0
"""Time between two looks at what another process decides."""
AHEAD_S = 1.0
"""How long after the first picture the other screens are built."""
BETWEEN_S = 0.2
"""Between two of them, so that keys are answered in the meantime."""
ALLOWED_WHEN_TOO_SMALL = ("quit", "no", "close")
"""Actions that keys still trigger on a terminal too small to read."""


SCREENS: Final[tuple[type[LiveScreen], ...]] = (
    OverviewScreen,
    PlanScreen,
    RunScreen,
    TopicsScreen,
    HistoryScreen,
    LogScreen,
    TasksScreen,
)


class PlimsollApp(Host):
    """Show one loop. The app decides nothing and opens no connection."""

    TITLE = "plimsoll"
    CSS_PATH = "plimsoll.tcss"
    MODES = {screen.MODE: screen for screen in SCREENS}
    DEFAULT_MODE = "overview"
    BINDINGS = [
        *MODE_KEYS,
        *RUN_KEYS,
        Binding(
            "A",
            "approve",
            "Approve",
            tooltip="Execute the plan shown, after a confirmation",
            id="plan.approve",
        ),
        Binding(
            "W",
            "approve_waiting",
            "Approve waiting plan",
            tooltip="Show the plan that run --auto leaves to a person, and approve it",
            show=False,
            id="auto.approve",
        ),
        Binding(
            "r",
            "solve_again",
            "Replan",
            tooltip="Make a new plan from the latest loads",
            id="plan.solve",
        ),
        # The header names it on every screen; on the plan screen, its own is in the key bar.
        Binding(
            "w",
            "what_if",
            "What-if",
            tooltip="Plan for other brokers or traffic; changes nothing",
            show=False,
            id="plan.what_if",
        ),
        Binding(
            "X",
            "stop_run",
            "Stop run",
            tooltip="Start no further moves; finish or cancel those in flight",
            id="run.stop",
        ),
        Binding(
            "B",
            "roll_back",
            "Roll back",
            tooltip="Roll the most recent run back, after a confirmation",
            show=False,
            id="run.rollback",
        ),
        HELP_KEY,
        Binding("q", "quit", "Quit", tooltip="Leave plimsoll", id="app.quit"),
        BREAK_KEY,
    ]

    def __init__(
        self,
        engine: Engine,
        *,
        user: str,
        clock: Callable[[], float] = time.time,
        terminal_gone: Callable[[], bool] = vanished,
        driver: type[Driver] | None = None,
        ahead_s: float | None = None,
    ) -> None:
        """Show the loop.

        ahead_s: when to build the screens not visited yet; None for never.
        """
        super().__init__(engine.settings, driver)
        self._ahead_s = ahead_s
        self._runs = RunActions(self, engine, user)
        self._tasks = TaskActions(self, engine, user, engine.preview)
        self._auto = AutoActions(self, engine, user, engine.preview)
        self._auto_seen: AutoSeen | None = None
        self._engine = engine
        self._user = user
        self._clock = clock
        self._terminal_gone = terminal_gone
        self._leaving = False
        self._has_arrived = False
        """Whether a view has arrived since the last tick."""
        self._shown_error = _last_error(engine.view)
        self._trail = Trail()
        self._estimate: tuple[str, Forecast | None] = ("", None)
        """The hash of the last plan estimated, and its estimate."""
        self._asked_for = ""
        """The hash of the last plan whose estimate was requested."""
        self._previous_mode = self.DEFAULT_MODE
        self.set_reactive(PlimsollApp.moment, self._at(engine.view))

    # ---- views from the loop

    def on_mount(self) -> None:
        self._engine.subscribe(self._receive)
        self._renew(self._engine.view)
        self.set_interval(1.0, self._tick)
        self.set_interval(AUTO_EVERY_S, self._look_for_auto)
        if self._ahead_s is not None:
            self.set_timer(self._ahead_s, self._build_ahead)

    @work(group="ahead")
    async def _build_ahead(self) -> None:
        """Build all screens: with its first visit, one takes twice as long to be shown."""
        for mode in self.MODES:
            if mode not in self._screen_stacks:
                await self._init_mode(mode)
                screen = self._screen_stacks[mode][0]
                if isinstance(screen, LiveScreen):
                    # Once it has its widgets.
                    screen.call_later(screen.prepare)
                screen.post_message(ScreenSuspend())
                await asyncio.sleep(BETWEEN_S)

    def _receive(self, view: LoopView) -> None:
        """Take a view from a thread of the loop, possibly after the app has ended."""
        with contextlib.suppress(RuntimeError):
            self.post_message(ViewArrived(view))

    def on_view_arrived(self, message: ViewArrived) -> None:
        self._has_arrived = True
        self._renew(message.view)

    def _tick(self) -> None:
        if self._terminal_gone():
            self.leave_at_once(signal.SIGHUP)
        # A view that has come since the last tick has brought its ages along.
        if not self._has_arrived:
            self._renew(self.moment.view)
        self._has_arrived = False

    @work(group="look for auto")
    async def _look_for_auto(self) -> None:
        """Read what another process decides, from its files."""
        self._auto_seen = await self._auto.look()

    def _renew(self, view: LoopView) -> None:
        self._show_error(view)
        self.moment = self._at(view)
        if (plan := self._wants_estimate()) is not None:
            self._asked_for = plan.hash
            self._estimate_plan(plan)
        if self._leaving and not self.moment.running:
            self.exit()

    def _show_error(self, view: LoopView) -> None:
        """Show why a run could not start or continue; the phase does so briefly."""
        error = _last_error(view)
        if error is None or error == self._shown_error:
            return
        if self.moment.view.phase is Phase.RUNNING:
            self.notify(error.text, severity="error", timeout=30, markup=False)
        self._shown_error = error

    def _at(self, view: LoopView) -> Moment:
        self._remember(view)
        return Moment(
            view=view,
            goals=self._engine.settings.goals,
            now_ms=int(1000 * self._clock()),
            running=self._engine.running,
            trail=self._trail,
            paused=self._engine.steering.paused,
            leaving=self._leaving,
            throttle=self._engine.settings.throttle,
            asked=self._engine.steering.asked,
            stop_rules=self._engine.settings.stop_rules,
            report=next(reversed(self._engine.reports), None),
            interrupted=self._engine.previous_runs.interrupted,
            auto=self._auto_seen,
            estimate=self._estimate_of(view),
            approved=self._estimate_of_run(view),
            effort=self._engine.settings.effort,
            keys=self._engine.settings.keys,
        )

    # ---- what the plan would take

    def _estimate_of(self, view: LoopView) -> "Forecast | None":
        plan_hash, known = self._estimate
        return known if view.plan is not None and view.plan.hash == plan_hash else None

    def _estimate_of_run(self, view: LoopView) -> "Forecast | None":
        plan_hash, known = self._estimate
        return known if view.run is not None and view.run.plan_hash == plan_hash else None

    def _wants_estimate(self) -> Plan | None:
        """The plan to be estimated, once for each plan that could be approved."""
        plan = self.moment.view.plan
        if plan is None or plan.hash in (self._estimate[0], self._asked_for):
            return None
        return plan if refusal("approve", self.moment) is None else None

    # With a description: Textual's own would be the text of all moves of the plan.
    @work(group="estimate", exclusive=True, description="estimate a plan")
    async def _estimate_plan(self, plan: Plan) -> None:
        with contextlib.suppress(PlimsollError):
            await asyncio.to_thread(self._preview, plan)
        self._renew(self.moment.view)

    def _preview(self, plan: Plan) -> "Forecast":
        """Estimate a run; header and approval show the same figures."""
        found = self._engine.preview(plan)
        self._estimate = plan.hash, found
        # The header shows the same from now on.
        self.call_later(self._renew_shown)
        return found

    def _renew_shown(self) -> None:
        self._renew(self.moment.view)

    def _remember(self, view: LoopView) -> None:
        if view.snapshot is None or view.evaluation is None:
            return
        at_ms, samples = view.snapshot.header.taken_at_ms, self._trail.samples
        if not samples or samples[-1].at_ms != at_ms:
            self._trail = self._trail.with_sample(at_ms, view.evaluation)

    # ---- actions of the operator

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return None, which greys the key, if the action is refused.

        Keys typed after the one that ends the app do nothing.
        """
        if self.return_code is not None:
            return False
        return None if refusal(action, self.moment) else True

    async def run_action(
        self,
        action: str | tuple[str, str, tuple[object, ...]],
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run the action, or show why it is disabled, as the tooltip does for a mouse.

        On a terminal too small to read, no action runs whose effect could not be seen.
        """
        if is_too_small(*self.size) and _name_of(action) not in ALLOWED_WHEN_TOO_SMALL:
            return True
        if await super().run_action(action, default_namespace, namespaces):
            return True
        states = (self.moment, self._shown) if isinstance(action, str) else ()
        reason = next(filter(None, (refusal(str(action), at) for at in states)), None)
        if reason is not None:
            self.notify(reason, severity="warning", timeout=5, markup=False)
        return reason is not None

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Run what the key is bound to; a key of another screen is answered with its name."""
        if await super()._check_bindings(key, priority):
            return True
        if priority or not isinstance(self.screen, LiveScreen):
            return False
        answer = self._of_another_screen(key)
        if answer:
            self.notify(answer, timeout=5, markup=False)
        return bool(answer)

    def _of_another_screen(self, key: str) -> str:
        """Name the screen that a key belongs to; empty for a key of none."""
        keys = self.moment.keys
        classes = {screen.MODE: screen for screen in SCREENS}
        for number, mode in enumerate(MODES, 1):
            own = (b for b in classes[mode.name].BINDINGS if isinstance(b, Binding))
            for binding in Binding.make_bindings(
                b.with_key(keys.get(b.id or "", b.key)) for b in own
            ):
                if binding.key == key:
                    shown = self.get_key_display(binding)
                    opens = keys.get(mode.binding, str(number)).partition(",")[0]
                    name = f"{shown} ({binding.description})"
                    return f"{name} is a key of the {mode.name} screen, which {opens} opens"
        return ""

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        builtin = {c.title: c for c in super().get_system_commands(screen)}
        own = {c.title: c for c in commands(screen)}
        yield from (builtin | own).values()

    def action_show_mode(self, mode: str) -> None:
        """Switch to another screen."""
        if mode != self.current_mode:
            self._previous_mode = self.current_mode
            self.switch_mode(mode)

    def action_previous_mode(self) -> None:
        """Switch back to the previous screen; a second time returns to this one."""
        self.action_show_mode(self._previous_mode)

    def action_command(self) -> None:
        """Ask for the name of what to open."""
        self.push_screen(CommandLine(lambda: self.moment.view), self._run_named)

    def _run_named(self, action: str | None) -> None:
        if action:
            self.call_later(self.run_action, f"app.{action}")

    def action_problems(self) -> None:
        """List what the header counts."""
        self.push_screen(ProblemsScreen(self._shown))

    async def action_open_broker(self, broker: int) -> None:
        """Show the partitions of a broker, over the overview."""
        await self._go("overview")
        if isinstance(self.screen, OverviewScreen):
            self.screen.call_after_refresh(self.screen.open_broker, BrokerId(broker))

    async def action_open_topic(self, topic: str) -> None:
        """Show the partitions of a topic, on the topics screen."""
        await self._go("topics")
        if isinstance(self.screen, TopicsScreen):
            self.screen.call_after_refresh(self.screen.open_topic, TopicName(topic))

    async def action_what_if(self) -> None:
        """Ask for a what-if scenario, on the plan screen, which shows its plan."""
        if refusal("what_if", self.moment) is None:
            await self._go("plan")
            if isinstance(self.screen, PlanScreen):
                self.screen.call_after_refresh(self.screen.action_what_if)

    async def _go(self, mode: str) -> None:
        if mode != self.current_mode:
            self._previous_mode = self.current_mode
            await self.switch_mode(mode)

    def log_action(self, message: str) -> None:
        """Log what the operator did, without waiting for the loop's lock."""
        self.run_worker(asyncio.to_thread(self._engine.acted, message), group="acted")

    @property
    def proposals(self) -> Asking:
        """Requests about plans."""
        return self._engine.proposals

    @property
    def past_runs(self) -> Runs:
        """Requests about previous runs."""
        return self._runs

    @property
    def tasks(self) -> Tasks:
        """Requests about tasks."""
        return self._tasks

    def action_approve(self) -> None:
        view = self._shown.view
        if view.plan is not None and refusal("approve", self.moment) is None:
            self.push_screen(ApproveScreen(view.plan, self.moment, self._approve, self._preview))

    def action_approve_waiting(self) -> None:
        """Approve the plan that `run --auto` leaves to a person."""
        self._auto.approve()

    @property
    def _shown(self) -> Moment:
        """What the user sees; a frozen screen does not follow the latest moment."""
        frozen = self.screen.moment if isinstance(self.screen, LiveScreen) else None
        return frozen or self.moment

    def _approve(self, plan_hash: str) -> None:
        self._engine.approve(plan_hash, by=self._user)

    def action_solve_again(self) -> None:
        if refusal("solve_again", self.moment) is None:
            self.notify("replanning", timeout=3)
            self._ask_for_plan()

    @work(group="solve")
    async def _ask_for_plan(self) -> None:
        # Off the event loop: the loop may hold its lock for a moment.
        await asyncio.to_thread(self._engine.plan_again)

    def action_stop_run(self) -> None:
        """Stop the run, or abort it if it is already being stopped."""
        if refusal("stop_run", self.moment) is not None:
            return
        if self._engine.steering.stopping.is_set():
            question = Question(
                "Abort the run?", ABORT_TEXT, yes="Cancel in-flight moves", no="Keep running"
            )
            self.push_screen(question, self._abort_if)
        else:
            question = Question(
                "Stop the run?", STOP_TEXT, yes="Stop after in-flight moves", no="Keep running"
            )
            self.push_screen(question, self._stop_if)

    def _stop_if(self, yes: bool | None) -> None:
        if yes:
            self._engine.steering.stop()

    def _abort_if(self, yes: bool | None) -> None:
        if yes:
            self._engine.steering.abort()

    def action_pause_run(self) -> None:
        """Pause the run, or resume it if it is paused."""
        if refusal("pause_run", self.moment) is None:
            steering = self._engine.steering
            if steering.paused:
                steering.resume()
            else:
                steering.pause()
            change = "pausing the run; R resumes it" if steering.paused else "resuming"
            self.notify(change, timeout=3)
            self._renew(self.moment.view)

    def action_throttle(self) -> None:
        self._runs.throttle()

    def action_resume(self) -> None:
        self._runs.resume()

    def action_roll_back(self) -> None:
        self._runs.roll_back()

    async def action_quit(self) -> None:
        """Quit; during a run, ask first, unless this is only a recording."""
        is_recording = self.moment.view.mode is Mode.RECORDING
        if self._leaving or is_recording or not self._engine.running:
            self.exit()
        elif not isinstance(self.screen, Question):
            question = Question(
                "Quit during a run?",
                STOP_TEXT + " plimsoll quits when they are done.",
                yes="Stop the run and quit",
                no="Keep running",
            )
            self.push_screen(question, self._leave_if)

    def _leave_if(self, yes: bool | None) -> None:
        if yes:
            self._leaving = True
            self._engine.steering.leave()
            self._renew(self.moment.view)


def _name_of(action: str | tuple[str, str, tuple[object, ...]]) -> str:
    """The action without its namespace: `app.quit` is `quit`."""
    name = action if isinstance(action, str) else action[1]
    return name.rpartition(".")[2]


def _last_error(view: LoopView) -> LogLine | None:
    return next((line for line in reversed(view.log) if line.level == "error"), None)


def run(loop: "Loop") -> None:
    """Show the loop until the user leaves.

    Raises ConfigError where the configuration names an unknown key or theme, and as `show`.
    """
    driver = driver_for(loop.settings)
    show(PlimsollApp(loop, user=operator(), clock=loop.clock, driver=driver, ahead_s=AHEAD_S))
