"""Load and skew of the topics, and the partitions of one of them."""

from dataclasses import replace
from typing import Final, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from model.ids import TopicName
from model.printable import printable
from tui.host import Host
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.screens.reason import open_move
from tui.viewmodel.cells import Table, shorten_middle
from tui.viewmodel.sort_filter import Wish
from tui.viewmodel.topics.partitions import partition_table
from tui.viewmodel.topics.topics import topic_table
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.table_pane import TablePane
from tui.widgets.titles import entitle

PARTITIONS_OF: Final = "Partitions of "
CORNERS: Final = 6
"""Columns of a border that its title leaves."""


class TopicPanel(Vertical):
    """All topics."""

    HELP = """\
## Topics

The figures are those of CMAK (Kafka Manager). `brokers`: how many have a replica of
the topic; `spread`: their share of all brokers. `skew`: the share of its brokers that
have more of its replicas than the average over its brokers, rounded up; `leader skew`
or `lead`: the same of its leaders. `pref`: the share of its partitions led by their
preferred leader. `under-replicated` or `URP`: the share of its partitions with fewer
replicas in sync than replicas.

`per broker`: the fewest and most replicas on a broker, and how many each would have if
they were spread evenly; `!` if they are not.

Enter shows the partitions; `t` plans the selected topic alone.
"""

    def compose(self) -> ComposeResult:
        yield TablePane(_topics, table_id="topics")

    def on_mount(self) -> None:
        self.border_title = "Topics"


class PartitionPanel(Vertical):
    """The partitions of the opened topic."""

    HELP = """\
## Partitions

Replicas are listed in order, the preferred leader first; `2, not 1` means that the
leader is not the preferred one. The last column is what the plan moves, or until when a
partition that was moved is in cooldown and not moved again. Enter shows a planned move.
"""

    BINDINGS = [Binding("escape", "screen.close", "Close", id="topics.close")]

    topic: TopicName | None = None

    def compose(self) -> ComposeResult:
        yield TablePane(self._table, table_id="partitions")

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        topic = self.topic or TopicName("")
        return partition_table(moment.view, moment.goals, topic, width, wish)

    def open(self, topic: TopicName, moment: Moment) -> None:
        """Show this topic's partitions."""
        self.topic = topic
        room = self.app.size.width - len(PARTITIONS_OF) - CORNERS
        entitle(self, PARTITIONS_OF + shorten_middle(printable(topic), room))
        self.display = True
        pane = self.query_one(TablePane)
        pane.show(moment)
        pane.table.focus()


class TopicsScreen(LiveScreen):
    """All topics; below them, on request, the partitions of one."""

    MODE = "topics"
    AUTO_FOCUS = "#topics"
    BINDINGS = [
        Binding(
            "t",
            "plan_topic",
            "Plan topic",
            tooltip="Make a plan that moves only partitions of this topic",
            id="topics.plan",
        )
    ]

    def body(self) -> ComposeResult:
        yield TopicPanel()
        yield PartitionPanel()

    def on_mount(self) -> None:
        self.query_one(PartitionPanel).display = False

    def show(self, moment: Moment) -> None:
        for pane in self.query(TablePane):
            pane.show(moment)

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        key = event.row_key.value
        if key is None or self.moment is None:
            return
        if event.data_table.id == "topics":
            self.open_topic(TopicName(key))
        else:
            topic = self.query_one(PartitionPanel).topic
            open_move(self, self.moment.view, f"{topic}-{key}")

    def open_topic(self, topic: TopicName) -> None:
        """Show the partitions of a topic."""
        if self.moment is not None:
            self.query_one(TopicPanel).query_one(TablePane).table.select_key(topic)
            self.query_one(PartitionPanel).open(topic, self.moment)
            self.show_crumbs()

    @property
    def crumbs(self) -> tuple[str, ...]:
        panel = self.query_one(PartitionPanel)
        return (str(panel.topic), "partitions") if panel.display and panel.topic else ()

    def action_plan_topic(self) -> None:
        """Plan the selected topic alone, and show that plan."""
        key = self.query_one(TopicPanel).query_one(TablePane).table.key_at_cursor
        if key is None or self.moment is None:
            return
        app = cast("Host", self.app)
        asks = replace(self.moment.view.proposed.asks, topics=(TopicName(key),))
        self._request(lambda: app.proposals.ask(asks), f"planning {key} alone")
        app.action_show_mode("plan")

    def action_close(self) -> None:
        """Hide the partitions."""
        self.query_one(PartitionPanel).display = False
        self.query_one(TopicPanel).query_one(TablePane).table.focus()
        self.show_crumbs()


def _topics(moment: Moment, width: int, wish: Wish) -> Table:
    return topic_table(moment.view, moment.goals, width, wish)
