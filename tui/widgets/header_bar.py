"""The header of every screen."""

from textual.binding import Binding
from textual.events import Resize

from tui.screen_state import Moment
from tui.viewmodel.header import header
from tui.widgets.text_lines import Lines


class HeaderBar(Lines, can_focus=True):
    """The cluster and its data; below, the state of the loop."""

    HELP = """\
## Header

The cluster and its data, whether it is balanced, and what plimsoll does. Enter lists what is
counted: partitions that are offline or under-replicated, and brokers over their capacity.
"""
    BINDINGS = [Binding("enter", "app.problems", "Problems", show=False, id="header.open")]

    moment: Moment | None = None

    def show_moment(self, moment: Moment) -> None:
        """Show this moment."""
        self.moment = moment
        if width := self.content_size.width:
            self.show(header(moment, width))

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.show_moment(self.moment)
