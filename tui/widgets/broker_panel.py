"""The panel of all brokers."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Resize

from control.loop.view import Phase
from tui.screen_state import Moment
from tui.viewmodel.brokers.brokers import HISTORY_FROM, broker_table, drawable, drawn_at
from tui.viewmodel.brokers.headline import NAMES, averages_line
from tui.viewmodel.brokers.load_history import NO_HISTORY, Recent, Trail
from tui.viewmodel.cells import Table
from tui.viewmodel.memoize import memoized
from tui.viewmodel.sort_filter import Wish, arranged
from tui.viewmodel.staleness import is_stale
from tui.widgets.table_pane import TablePane
from tui.widgets.titles import entitle


class BrokerPanel(Vertical):
    """A diverging bar for each broker and resource."""

    HELP = """\
## Brokers

Each bar is a broker's deviation from the average, which is in the middle: to the right
the broker carries more, to the left less. `░` is the tolerance band; a bar has a colour
only outside it. `◆` is where the plan brings the broker.

`worst` names the resource in which the broker deviates most; `!` is above the tolerance
band, `<` below it. The worst broker comes first. A percentage before the deviation is
the load's share of the broker's capacity, reversed above the limit.

`tab` draws the next resource where not all fit.
"""
    BINDINGS = [
        Binding(
            "tab",
            "next_resource",
            "Next resource",
            tooltip="Draw the next resource; there is no room for all of them",
            id="overview.resource",
        )
    ]

    moment: Moment | None = None
    first = 0
    """The resource drawn first, counted from the left."""

    def compose(self) -> ComposeResult:
        yield TablePane(self._table, table_id="brokers")

    def show(self, moment: Moment) -> None:
        """Show this moment."""
        self.moment = moment
        self.query_one(TablePane).show(moment)
        self._entitle(moment)
        view = moment.view
        unreachable = view.phase is Phase.UNREACHABLE
        self.set_class(unreachable or is_stale(view, moment.now_ms), "-stale")

    def _entitle(self, moment: Moment) -> None:
        view, goals = moment.view, moment.goals
        real = " of the real cluster" if view.proposed.supposed is not None else ""
        plan = ", ◆ planned" if view.plan is not None and not real else ""
        drawn, known = self._drawn(), drawable(view, goals)
        what = "deviation from the average, "
        if len(drawn) == 1 < len(known):
            turn = f"{self.first % len(known) + 1} of {len(known)}"
            what = f"{NAMES[drawn[0]]} ({turn}), "
        words = f"Brokers{real}: {what}░ tolerance{plan}"
        entitle(self, words, averages_line(view, goals))

    def _drawn(self) -> tuple[str, ...]:
        if self.moment is None:
            return ()
        pane = self.query_one(TablePane)
        return drawn_at(self.moment.view, self.moment.goals, pane.table_width, self.first)

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        recent = _recent(moment.trail) if width >= HISTORY_FROM else NO_HISTORY
        return arranged(broker_table(moment.view, moment.goals, width, self.first, recent), wish)

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.call_after_refresh(self._entitle, self.moment)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the next resource only where not all are drawn."""
        if action != "next_resource" or self.moment is None:
            return True
        known = drawable(self.moment.view, self.moment.goals)
        return len(self._drawn()) < len(known)

    def action_next_resource(self) -> None:
        """Draw the next resource."""
        if self.moment is not None:
            self.first += 1
            self.show(self.moment)


@memoized
def _recent(trail: Trail) -> Recent:
    return trail.recent
