"""The approval of a plan that `run --auto` leaves to a person."""

from collections.abc import Callable
from typing import Final

from textual.binding import Binding

from model.plan.plan import Plan
from tui.screen_state import Moment
from tui.screens.approve import PlanDialog, Preview
from tui.viewmodel.plan.approval import balance, touched

EXECUTED_ELSEWHERE: Final = (
    "The process that asks executes it, with its own throttle and stop rules, which this screen "
    "does not know."
)


class WaitingPlanScreen(PlanDialog):
    """Approve the plan of another process, by its hash, once the cluster's name is typed."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="auto.plan_cancel")]

    def __init__(
        self,
        plan: Plan,
        reason: str,
        moment: Moment,
        approve: Callable[[str], None],
        preview: Preview,
    ) -> None:
        """reason: why it waits."""
        super().__init__(
            plan,
            moment,
            lambda: approve(plan.hash),
            preview,
            title=f"Approve plan {plan.hash[:12]} of run --auto?",
            texts=[
                f"waits because: {reason}\n{balance(plan)}"
                f"brokers: {touched(plan)}\n"
                f"cluster: {moment.view.cluster_name}, id {plan.cluster_id}",
                EXECUTED_ELSEWHERE,
            ],
            aim="approve",
            yes="Approve",
            refused="Not approved",
        )
