"""The confirmation of a rollback."""

from collections.abc import Callable, Sequence

from textual.binding import Binding

from model.plan.plan import Plan
from tui.screens.dialog import NamedDialog
from tui.viewmodel.plan.approval import counts, touched


class RollBackScreen(NamedDialog):
    """Execute the rollback plan shown, once the cluster's name is typed."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="rollback.cancel")]

    def __init__(
        self,
        run_id: str,
        plan: Plan,
        left: Sequence[str],
        cluster_name: str,
        roll_back: Callable[[Plan], None],
    ) -> None:
        text = (
            f"{counts(plan)}\n"
            f"brokers: {touched(plan)}\n"
            f"plan {plan.hash[:12]}, cluster {cluster_name}, id {plan.cluster_id}"
        )
        super().__init__(
            cluster_name,
            lambda: roll_back(plan),
            title=f"Roll back run {run_id}?",
            texts=[text, f"Left alone: {'; '.join(left)}"] if left else [text],
            aim="roll back",
            yes="Roll back",
            refused="Not rolled back",
        )
