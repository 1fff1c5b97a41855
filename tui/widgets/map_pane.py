"""The map of many brokers; the arrows select one."""

from textual.binding import Binding
from textual.events import Click, Resize
from textual.message import Message

from model.ids import BrokerId
from tui.driver import draws_ascii
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_map import CURSOR, BrokerMap, broker_map
from tui.widgets.keyed_table import CURSOR_ASCII
from tui.widgets.text_lines import Lines

PADDING = 1
"""Blank columns at the left edge."""


class MapPane(Lines, can_focus=True):
    """One cell per broker, racks as rows."""

    HELP = """\
## Map of brokers

Each cell is a broker, each row a rack. `+58%` is a broker 58 % above the average in the
resource in which it deviates most, `·` one within its tolerance band. Where there is little
room, `+6` stands for 60 % above the average, `-5` for 50 % below it, `»` for more than 95 %.
A broker that is dead, slow or draining, for example, has a mark instead, which the first
lines explain. The arrows select a broker, which is shown below.
"""
    BINDINGS = [
        Binding("left", "step(-1, 0)", "Left", show=False, id="map.left"),
        Binding("right", "step(1, 0)", "Right", show=False, id="map.right"),
        Binding("up", "step(0, -1)", "Up", show=False, id="map.up"),
        Binding("down", "step(0, 1)", "Down", show=False, id="map.down"),
        Binding("enter", "choose", "Open", show=False, id="map.open"),
    ]

    class Moved(Message):
        """Another broker was selected."""

    class Chosen(Message):
        """The selected broker was chosen."""

    class UnitChanged(Message):
        """The cells are in another unit than before."""

    moment: Moment | None = None
    percent: bool | None = None
    """Whether the cells are in percent, not in tens of percent; None until they are drawn."""
    selected: BrokerId | None = None

    def show_moment(self, moment: Moment) -> None:
        """Show the brokers of this moment."""
        self.moment = moment
        if (drawn := self._map()) is not None:
            if drawn.percent != self.percent:
                self.percent = drawn.percent
                self.post_message(self.UnitChanged())
            self.show((*drawn.legend, *drawn.lines))

    def select(self, broker: BrokerId | None) -> None:
        """Select a broker."""
        self.selected = broker
        if self.moment is not None:
            self.show_moment(self.moment)
        self.post_message(self.Moved())

    def _map(self) -> BrokerMap | None:
        width, height = self.content_size
        if self.moment is None or not width:
            return None
        cursor = CURSOR_ASCII if draws_ascii(self.app) else CURSOR
        view, goals = self.moment.view, self.moment.goals
        return broker_map(view, goals, width, height, self.selected, cursor)

    def action_step(self, right: int, down: int) -> None:
        """Select a broker beside the selected one."""
        if (drawn := self._map()) is not None:
            self.select(drawn.beside(self.selected, right, down))

    def action_choose(self) -> None:
        """Open the selected broker."""
        if self.selected is not None:
            self.post_message(self.Chosen())

    def on_click(self, event: Click) -> None:
        drawn = self._map()
        if drawn is None:
            return
        broker = drawn.at(event.x - PADDING, event.y - len(drawn.legend))
        if broker is not None:
            self.select(broker)

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.show_moment(self.moment)
