"""The partitions of one broker, over the overview."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from model.ids import BrokerId
from tui.screen_state import Moment
from tui.screens.backdrop import Over
from tui.screens.reason import open_move
from tui.viewmodel.brokers.broker_detail import detail_title
from tui.viewmodel.brokers.broker_partitions import partitions_of_broker
from tui.viewmodel.cells import Table
from tui.viewmodel.sort_filter import Wish
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.table_pane import TablePane
from tui.widgets.titles import entitle


class BrokerPartitionsScreen(Over[None]):
    """The replicas of a broker as they were when it was opened; escape closes it."""

    BINDINGS = [Binding("escape,q", "close", "Close", id="broker.close")]
    AUTO_FOCUS = "#held"

    def __init__(self, moment: Moment, broker: BrokerId) -> None:
        super().__init__()
        self._moment, self._broker = moment, broker

    def compose(self) -> ComposeResult:
        with Vertical(classes="list-panel"):
            yield TablePane(self._table, table_id="held")

    def on_mount(self) -> None:
        panel = self.query_one(".list-panel")
        title = detail_title(self._moment, self._broker)
        entitle(panel, f"Overview > {title} > replicas", "enter opens a move, escape closes")
        self.query_one(TablePane).show(self._moment)

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        return partitions_of_broker(moment.view, self._broker, width, wish)

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        open_move(self, self._moment.view, event.row_key.value or "")

    def action_close(self) -> None:
        self.dismiss()
