"""The proposed plan, its reasons, and the operator's edits."""

from collections.abc import Callable
from typing import cast

from textual.app import ComposeResult
from textual.widgets import ContentSwitcher

from control.cli.console import in_browser
from control.render.plan_export import folder_of, shell_commands, write_answer, write_files
from model.errors import PlimsollError
from model.goals.effort import Effort
from model.ids import BrokerId
from model.plan.plan import Move
from tui.host import Host
from tui.loop_port import Asking
from tui.plan_actions import PLAN_KEYS
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.screens.broker_partitions import BrokerPartitionsScreen
from tui.screens.form import FormScreen
from tui.screens.reason import ReasonScreen
from tui.viewmodel.plan.forms import (
    WHAT_IF_LINES,
    FormLine,
    Typed,
    goals_lines,
    goals_of,
    pin_lines,
    pin_of,
    scenario_of,
)
from tui.viewmodel.plan.moves import GONE
from tui.viewmodel.plan.shown_plan import WHAT_IF, shown
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.moves_panel import MovesPanel
from tui.widgets.plan_side import BrokersAfter, FrontierPlot, MoveDetail


class PlanScreen(LiveScreen):
    """The plan, to be reviewed, edited and approved."""

    MODE = "plan"
    AUTO_FOCUS = "#moves"
    BINDINGS = [*PLAN_KEYS]

    def body(self) -> ComposeResult:
        yield MovesPanel()
        with ContentSwitcher(initial="brokers-after", id="side"):
            yield BrokersAfter(id="brokers-after")
            yield FrontierPlot(id="frontier")

    def show(self, moment: Moment) -> None:
        self.query_one(MovesPanel).show(moment)
        if moment.view.proposed.supposed is not None:
            self._switch("brokers-after")
        self.query_one(BrokersAfter).show(moment)
        self.query_one(FrontierPlot).show_moment(moment)
        self._show_move()

    @property
    def crumbs(self) -> tuple[str, ...]:
        if self.query_one("#side", ContentSwitcher).current == "frontier":
            return ("frontier",)
        return ("moves",)

    def on_screen_suspend(self) -> None:
        """Leave the screen: what is new in the plan has been viewed."""
        if isinstance(self.app.screen, LiveScreen):
            self.query_one(MovesPanel).viewed()
            self._drawn = None

    @property
    def _asking(self) -> Asking:
        return cast("Host", self.app).proposals

    @property
    def _now(self) -> Moment:
        if self.moment is None:
            raise PlimsollError("internal error: the screen has no state to show")
        return self.moment

    # ---- moves

    def on_data_table_row_highlighted(self, event: KeyedTable.RowHighlighted) -> None:
        event.stop()
        self._show_move()

    def _show_move(self) -> None:
        if self.moment is not None:
            move = self.query_one(MovesPanel).move
            self.query_one(MoveDetail).show_move(move, shown(self.moment.view))

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        panel, now = self.query_one(MovesPanel), shown(self._now.view)
        if event.data_table.id == "moves" and panel.move and now.plan:
            self.app.push_screen(ReasonScreen(panel.move, shown=now))
        elif event.data_table.id == "moves" and event.row_key.value is not None:
            partition = event.row_key.value.removeprefix(GONE)
            self.notify(f"{partition} is no longer planned", timeout=4, markup=False)
        elif event.data_table.id == "after" and event.row_key.value is not None:
            broker = BrokerId(int(event.row_key.value))
            self.app.push_screen(BrokerPartitionsScreen(self._now, broker))

    def action_drop_move(self) -> None:
        """Remove the selected move; keep the others as far as the rules allow."""
        move = self._move_in_sight
        if move is not None:
            asks = self._now.view.proposed.asks.dropping(move.id)
            self._request(lambda: self._asking.ask(asks), f"removing {move.id}")

    def action_pin_partition(self) -> None:
        """Ask which brokers are to hold the selected partition."""
        move = self._move_in_sight
        if move is None:
            return

        def submit(typed: Typed) -> None:
            pin = pin_of(move, typed)
            self._asking.ask(self._now.view.proposed.asks.pinning(pin))

        self._fill_in(
            f"Pin {move.id} to brokers",
            pin_lines(move),
            check=lambda typed: pin_of(move, typed),
            submit=submit,
            done="Replan",
        )

    @property
    def _move_in_sight(self) -> Move | None:
        """The selected move; what cannot be seen is not changed."""
        panel = self.query_one(MovesPanel)
        if panel.display:
            return panel.move
        words = "the frontier covers the moves; press escape to return to them"
        self.notify(words, severity="warning", timeout=5, markup=False)
        return None

    def action_take_back(self) -> None:
        """Undo the last request."""
        self._request(self._asking.undo, "last request undone")

    # ---- the plan

    def action_edit_goals(self) -> None:
        """Ask for new goals, weights and limits."""
        moment = self._now
        asks, snapshot = moment.view.proposed.asks, moment.view.snapshot
        if snapshot is None:
            return
        before = asks.goals or moment.goals

        def submit(typed: Typed) -> None:
            goals = goals_of(before, typed)
            self._asking.ask(asks.with_goals(goals))

        self._fill_in(
            "Goals of this session",
            goals_lines(before, snapshot),
            check=lambda typed: goals_of(before, typed),
            submit=submit,
            done="Replan",
        )

    def action_next_effort(self) -> None:
        """Plan at the next effort."""
        asks, configured = self._now.view.proposed.asks, self._now.effort
        efforts = tuple(Effort)
        after = efforts[(efforts.index(asks.effort or configured) + 1) % len(efforts)]
        chosen = asks.at_effort(None if after is configured else after)
        self._request(lambda: self._asking.ask(chosen), f"planning at the effort {after}")

    def action_use_best(self) -> None:
        """End the search with the best plan so far."""
        self._asking.use_best()

    def action_frontier(self) -> None:
        """Show the frontier, tracing it if necessary, or the brokers again."""
        proposed = self._now.view.proposed
        is_known = proposed.traced is not None or proposed.tracing is not None
        side = self.query_one("#side", ContentSwitcher)
        if side.current == "frontier" and is_known:
            self._switch("brokers-after")
            return
        self._switch("frontier")
        if not is_known:
            self._request(self._asking.trace)

    def _switch(self, part: str) -> None:
        side = self.query_one("#side", ContentSwitcher)
        if side.current != part:
            side.current = part
            # In a small terminal it takes the place of the moves.
            self.query_one("#body").set_class(part == "frontier", "-frontier")
            self.query_one("#frontier" if part == "frontier" else "#moves").focus()
            self.show_crumbs()

    def on_frontier_plot_chosen(self, event: FrontierPlot.Chosen) -> None:
        event.stop()
        point = event.point
        if not self.refused("choose"):
            self._request(lambda: self._asking.choose(point), "using the plan at this point")

    def action_what_if(self) -> None:
        """Ask for a what-if scenario."""
        self._fill_in(
            f"{WHAT_IF}: which brokers and traffic? Nothing is changed",
            WHAT_IF_LINES,
            check=scenario_of,
            submit=lambda typed: self._asking.suppose(scenario_of(typed)),
            done="Plan the what-if",
        )

    def action_back(self) -> None:
        """End the what-if, else close the frontier, else go to the overview."""
        if self._now.view.proposed.supposed is not None:
            self._asking.suppose(None)
        elif self.query_one("#side", ContentSwitcher).current == "frontier":
            self._switch("brokers-after")
        else:
            cast("Host", self.app).action_show_mode("overview")

    # ---- export

    def action_export(self) -> None:
        """Ask for a folder, and write the plan there."""
        view = self._now.view
        plan, supposed = shown(view).plan, view.proposed.supposed
        answer = supposed.answer if supposed is not None else None
        if plan is None:
            return
        if in_browser():
            words = "no files are written from a browser; use plimsoll plan --out FILE"
            self.notify(words, severity="warning", timeout=8, markup=False)
            return

        def submit(typed: Typed) -> None:
            folder = folder_of(typed["folder"])
            if answer is not None:
                write_answer(folder, answer)
            else:
                write_files(folder, plan)

        what = f"{WHAT_IF} answer" if supposed is not None else "plan"
        name = "plimsoll" if supposed is None else "what-if"
        folder = f"{name}-{plan.hash[:12]}"
        self._fill_in(
            f"Write the {what} to a folder",
            (FormLine("folder", "folder", folder, "a new folder"),),
            check=lambda typed: folder_of(typed["folder"]),
            submit=submit,
            done="Write",
        )

    def action_copy_command(self) -> None:
        """Copy the plan as commands for Kafka's own tools."""
        view = self._now.view
        if view.plan is not None:
            self.app.copy_to_clipboard(shell_commands(view.plan, view.bootstrap))
            self.notify("copied as kafka-reassign-partitions commands", timeout=3)

    # ---- forms

    def _fill_in(
        self,
        title: str,
        lines: tuple[FormLine, ...],
        *,
        check: Callable[[Typed], object],
        submit: Callable[[Typed], None],
        done: str,
    ) -> None:
        self.app.push_screen(FormScreen(title, lines, check=check, submit=submit, done=done))
