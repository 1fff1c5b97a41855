"""The confirmation of a rollback."""

from collections.abc import Callable, Sequence

from textual.binding import Binding

from model.plan.plan import Plan
from tui.screen_state import Moment
from tui.screens.approve import PlanDialog, Preview
from tui.viewmodel.plan.approval import balance, touched


class RollBackScreen(PlanDialog):
    """Execute the rollback plan shown, once the cluster's name is typed."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="rollback.cancel")]

    def __init__(
        self,
        run_id: str,
        plan: Plan,
        left: Sequence[str],
        moment: Moment,
        roll_back: Callable[[Plan], None],
        preview: Preview,
    ) -> None:
        """left: what is left alone, a clause each."""
        name = moment.view.cluster_name
        text = (
            f"{balance(plan)}brokers: {touched(plan)}\n"
            f"plan {plan.hash[:12]}, cluster {name}, id {plan.cluster_id}"
        )
        super().__init__(
            plan,
            moment,
            lambda: roll_back(plan),
            preview,
            title=f"Roll back run {run_id}?",
            texts=[text, f"Left alone: {'; '.join(left)}"] if left else [text],
            aim="roll back",
            yes="Roll back",
            refused="Not rolled back",
        )
