"""The approval of a task's plan."""

from collections.abc import Callable, Sequence

from textual.binding import Binding

from model.plan.plan import Plan
from tui.screen_state import Moment
from tui.screens.approve import PlanDialog, Preview, run_lines
from tui.viewmodel.plan.approval import balance, touched
from tui.viewmodel.tasks.task_questions import LATER_PLANS


class TaskPlanScreen(PlanDialog):
    """Approve the plan of a task, by its hash, once the cluster's name is typed."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="task.plan_cancel")]

    def __init__(
        self,
        words: str,
        plan: Plan,
        moment: Moment,
        start: Callable[[Plan], None],
        preview: Preview,
        notes: Sequence[str] = (),
    ) -> None:
        """words: what the task does, as `remove broker 4`. notes: on its plan."""
        super().__init__(
            plan,
            moment,
            lambda: start(plan),
            preview,
            title=f"Approve the plan to {words}?",
            texts=[
                *notes,
                f"{balance(plan)}{run_lines(moment)}brokers: {touched(plan)}\n"
                f"plan {plan.hash[:12]}, cluster {moment.view.cluster_name}, id {plan.cluster_id}",
                LATER_PLANS,
            ],
            aim="approve",
            yes="Approve and run",
            refused="Not approved",
        )
