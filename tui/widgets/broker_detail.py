"""The panel of the selected broker."""

import textwrap

from textual.events import Resize

from model.ids import BrokerId
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_detail import broker_detail, detail_title, span_text
from tui.viewmodel.cells import Role, cell
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle


class BrokerDetail(Lines):
    """The selected broker's recent loads and its heaviest replicas."""

    moment: Moment | None = None
    broker: BrokerId | None = None

    def show_broker(self, moment: Moment, broker: BrokerId | None) -> None:
        """Show this broker at this moment; None if no broker is selected."""
        self.moment, self.broker = moment, broker
        width, height = self.content_size
        if not width or not height:
            return
        if broker is None:
            entitle(self, "Broker")
            words = "Select a broker to see its recent loads and its replicas."
            lines = textwrap.wrap(words, width)
            self.show([cell(line, Role.MUTED) for line in lines])
        else:
            entitle(self, detail_title(moment, broker), span_text(moment))
            self.show(broker_detail(moment, broker, width, height))

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.show_broker(self.moment, self.broker)
