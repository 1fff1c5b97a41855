"""The panel of all brokers."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Resize

from control.loop.view import Phase
from model.ids import BrokerId
from model.snapshot.snapshot import Broker
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_map import MAP_FROM
from tui.viewmodel.brokers.broker_troubles import brokers_of
from tui.viewmodel.brokers.brokers import HISTORY_FROM, broker_table, drawable, drawn_at
from tui.viewmodel.brokers.headline import NAMES, averages_line, worst_of
from tui.viewmodel.brokers.load_history import NO_HISTORY, Recent, Trail
from tui.viewmodel.cells import Table
from tui.viewmodel.memoize import memoized
from tui.viewmodel.sort_filter import Wish, arranged
from tui.viewmodel.staleness import is_stale
from tui.widgets.map_pane import MapPane
from tui.widgets.table_pane import TablePane
from tui.widgets.titles import entitle


class BrokerPanel(Vertical):
    """A diverging bar for each broker and resource."""

    HELP = """\
## Brokers

Each bar is a broker's deviation from the average, which is in the middle: to the right
the broker carries more, to the left less. `░` is the tolerance band, and `▓` below a bar
that leaves it; a bar has a colour only there. `◆` is where the plan brings the broker.

`worst` names the resource in which the broker deviates most; `!` is above the tolerance
band, `<` below it. The worst broker comes first. A percentage before the deviation is
the load's share of the broker's capacity, reversed above the limit.

`tab` draws the next resource where not all fit. From 40 brokers, `m` shows a map.
"""
    BINDINGS = [
        Binding(
            "tab",
            "next_resource",
            "Next resource",
            tooltip="Draw the next resource; there is no room for all of them",
            id="overview.resource",
        ),
        Binding(
            "m",
            "toggle_map",
            "Map",
            tooltip="Show a map of all brokers, racks as rows, or the table again",
            id="overview.map",
        ),
    ]

    moment: Moment | None = None
    first: int | None = None
    """The resource drawn first, counted from the left; None until loads are known."""

    def compose(self) -> ComposeResult:
        yield TablePane(self._table, table_id="brokers")
        yield MapPane(id="map")

    def on_mount(self) -> None:
        self.query_one(MapPane).display = False

    @property
    def selected(self) -> BrokerId | None:
        """The broker under the cursor of the map or the table."""
        drawn = self.query_one(MapPane)
        if drawn.display:
            return drawn.selected
        key = self.query_one(TablePane).table.key_at_cursor
        return BrokerId(int(key)) if key is not None else None

    def show(self, moment: Moment) -> None:
        """Show this moment."""
        self.moment = moment
        if self.first is None:
            self.first = _first_of(moment)
        if self.query_one(MapPane).display:
            self.query_one(MapPane).show_moment(moment)
        else:
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
            turn = f"{(self.first or 0) % len(known) + 1} of {len(known)}"
            what = f"{NAMES[drawn[0]]} ({turn}), "
        words = f"Brokers{real}: {what}░ tolerance{plan}"
        if self.query_one(MapPane).display:
            unit = " in tens of percent" if self.query_one(MapPane).percent is False else ""
            words = f"Brokers{real}: largest deviation{unit}, · within tolerance"
        entitle(self, words, averages_line(view, goals))

    def _drawn(self) -> tuple[str, ...]:
        if self.moment is None:
            return ()
        pane = self.query_one(TablePane)
        return drawn_at(self.moment.view, self.moment.goals, pane.table_width, self.first or 0)

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        recent = _recent(moment.trail) if width >= HISTORY_FROM else NO_HISTORY
        return arranged(
            broker_table(moment.view, moment.goals, width, self.first or 0, recent), wish
        )

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.call_after_refresh(self._entitle, self.moment)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the next resource only where not all are drawn."""
        if self.moment is None:
            return True
        if action == "toggle_map":
            return len(self._brokers()) >= MAP_FROM or self.query_one(MapPane).display
        if action != "next_resource":
            return True
        if self.query_one(MapPane).display:
            return False
        known = drawable(self.moment.view, self.moment.goals)
        return len(self._drawn()) < len(known)

    def _brokers(self) -> tuple[Broker, ...]:
        view = self.moment.view if self.moment is not None else None
        if view is None:
            return ()
        return brokers_of(view)

    def action_toggle_map(self) -> None:
        """Show the map, or the table; both select the same broker."""
        drawn, pane, selected = self.query_one(MapPane), self.query_one(TablePane), self.selected
        drawn.display, pane.display = pane.display, drawn.display
        if self.moment is None:
            return
        if drawn.display:
            drawn.moment = self.moment
            drawn.select(selected)
            drawn.focus()
        else:
            pane.show(self.moment)
            pane.table.select_key(str(selected))
            pane.table.focus()
        self._entitle(self.moment)
        self.refresh_bindings()

    def on_map_pane_unit_changed(self, event: MapPane.UnitChanged) -> None:
        event.stop()
        if self.moment is not None:
            self._entitle(self.moment)

    def action_next_resource(self) -> None:
        """Draw the next resource."""
        if self.moment is not None:
            self.first = (self.first or 0) + 1
            self.show(self.moment)


def _first_of(moment: Moment) -> int | None:
    """The resource of the largest deviation, which the rows are ordered by."""
    worst, known = (
        worst_of(moment.view.evaluation, moment.goals),
        drawable(moment.view, moment.goals),
    )
    if worst is None or worst.dimension not in known:
        return None
    return known.index(worst.dimension)


@memoized
def _recent(trail: Trail) -> Recent:
    return trail.recent
