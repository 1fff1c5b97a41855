"""The panels beside the moves: the brokers now and after, or the frontier."""

from textwrap import wrap

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Resize
from textual.message import Message

from control.planning.frontier_points import point_of
from control.planning.plan_view import TracedFrontier
from model.plan.plan import Move
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_diff import broker_table
from tui.viewmodel.cells import Role, Table, cell
from tui.viewmodel.plan.frontier import MEASURES, plot, point_text, start_of
from tui.viewmodel.plan.moves import move_lines
from tui.viewmodel.plan.shown_plan import Shown, shown
from tui.viewmodel.sort_filter import Wish, arranged
from tui.viewmodel.staleness import ticking
from tui.widgets.table_pane import TablePane
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle


class MoveDetail(Lines):
    """The selected move in full."""

    _of: tuple[Move | None, Shown] | None = None

    def show_move(self, move: Move | None, shown: Shown) -> None:
        """Show this move of the plan; None if no move is selected."""
        self._of = move, shown
        self.display = shown.plan is not None
        self._draw()

    def _draw(self) -> None:
        if self._of is not None and self.content_size.width:
            self.show(move_lines(*self._of, self.content_size.width))

    def on_resize(self, _event: Resize) -> None:
        self._draw()


class BrokersAfter(Vertical):
    """Each broker now and after the plan; below, the selected move."""

    HELP = """\
## Brokers now and after

Each broker's deviation from the average now and after the plan; `!` is above the
tolerance band, `<` below it. The broker that deviates most now comes first; `s` sorts by
the deviation after the plan. Where there is room, a bar shows the deviation now, `◆` the
one after, `░` the band. A single bar is that of the measure in which the broker deviates
most now.
"""

    def compose(self) -> ComposeResult:
        yield TablePane(_brokers, table_id="after")
        yield MoveDetail(id="move")

    def show(self, moment: Moment) -> None:
        """Show this moment."""
        entitle(self, shown(moment.view).title("Brokers now → after, worst now first"))
        self.query_one(TablePane).show(moment)


def _brokers(moment: Moment, width: int, wish: Wish) -> Table:
    return arranged(broker_table(shown(moment.view).plan, width), wish)


class FrontierPlot(Lines, can_focus=True):
    """Imbalance over moves; left and right pick a point, enter makes it the plan."""

    HELP = """\
## Frontier

Each point is a plan: further right costs more, in moves (a change of leader costs less
than one); lower means better balance, on a logarithmic axis. `■` is the current plan. No
plan can reach the shaded area. Left and right pick a point; enter makes its plan the
current one, with a hash of its own.
"""
    BINDINGS = [
        Binding(
            "left",
            "pick(-1)",
            "Fewer moves",
            tooltip="Pick the next point to the left",
            id="frontier.fewer",
        ),
        Binding(
            "right",
            "pick(1)",
            "More moves",
            tooltip="Pick the next point to the right",
            id="frontier.more",
        ),
        Binding(
            "enter",
            "choose",
            "Use point",
            tooltip="Make the plan of the picked point the current plan",
            id="frontier.choose",
        ),
    ]

    class Chosen(Message):
        """The plan of a point was chosen."""

        def __init__(self, point: int) -> None:
            super().__init__()
            self.point = point

    traced: TracedFrontier | None = None
    picked: int = 0
    _planned: int | None = None

    def show_moment(self, moment: Moment) -> None:
        """Show the frontier of this moment, or the progress of tracing it."""
        proposed = moment.view.proposed
        plan = moment.view.plan
        if proposed.traced is not self.traced:
            self.traced = proposed.traced
            self.picked = start_of(self.traced, plan) if self.traced is not None else 0
        if self.traced is not None:
            self._planned = point_of(self.traced, plan)
        entitle(self, "Frontier", self._measure)
        if self.traced is not None:
            self._draw()
        elif proposed.tracing is not None:
            seconds = max(0, moment.now_ms - proposed.tracing.started_at_ms) // 1000
            since = ticking(seconds)
            self._say(f"Tracing the frontier for {since}. Press b to end it now.")
        else:
            self._say("There is no frontier of this plan; press f to trace it.")

    def _say(self, words: str) -> None:
        # Before the first layout there is no width yet; the next moment has one.
        width = self.content_size.width or len(words)
        self.show([cell(line, Role.MUTED) for line in wrap(words, width)])

    @property
    def _measure(self) -> str:
        if self.traced is None or not self.traced.frontier.points:
            return ""
        measure = MEASURES[self.traced.frontier.measure].partition(":")[0]
        return f"{measure}, log; ■ plan, ░ out of reach"

    def _draw(self) -> None:
        width, height = self.content_size
        if self.traced is None or not width:
            return
        frontier = self.traced.frontier
        if not frontier.points:
            reason = "; ".join(frontier.reasons) or "no plan was found"
            self._say(f"no frontier: {reason}")
            return
        words = point_text(frontier, self.picked, width, self._planned)
        drawn = plot(frontier, self.picked, width, height - len(words), self._planned)
        self.show([*drawn, *(cell(w) for w in words)])

    def on_resize(self, _event: Resize) -> None:
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Apply the screen's rules to picking a point as well."""
        return self.screen.check_action(action, parameters)

    def action_pick(self, step: int) -> None:
        """Pick the next point on this side."""
        points = self.traced.frontier.points if self.traced is not None else ()
        self.picked = max(0, min(len(points) - 1, self.picked + step))
        self._draw()

    def action_choose(self) -> None:
        """Choose the plan of the picked point."""
        if self.traced is not None and self.traced.frontier.points:
            self.post_message(self.Chosen(self.picked))
