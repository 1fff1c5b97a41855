"""The question whether to exclude or include many brokers."""

from collections.abc import Callable

from textual.binding import Binding

from tui.screens.dialog import NamedDialog


class ManyBrokersScreen(NamedDialog):
    """Act once all brokers were shown and the cluster's name is typed."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="brokers.cancel")]

    def __init__(
        self, title: str, text: str, cluster_name: str, act: Callable[[], None], what: str
    ) -> None:
        """text: what it does, and the brokers. act: as in `NamedDialog`. what: as `Exclude`."""
        super().__init__(
            cluster_name,
            act,
            title=title,
            texts=[text],
            aim=what.lower(),
            yes=what,
            refused=f"Not {what.lower()}d",
        )
