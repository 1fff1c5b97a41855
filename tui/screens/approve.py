"""The question whether exactly this plan is to be carried out."""

from collections.abc import Callable

from textual.binding import Binding

from model.plan import Plan
from tui.moment import Moment
from tui.screens.dialog import NamedDialog
from tui.viewmodel.approval import asked, counts, replaced, throttle_line, touched


class ApproveScreen(NamedDialog):
    """Acts on the plan it shows, by its hash, and only for the typed name.

    It never takes up a newer plan: it says that there is one.
    """

    BINDINGS = [Binding("escape", "no", "Cancel", id="approve.cancel")]

    def __init__(
        self, plan: Plan, moment: Moment, approve: Callable[[str], None]
    ) -> None:
        cluster_name = moment.view.cluster_name
        super().__init__(
            cluster_name,
            lambda: approve(plan.hash),
            title=f"Approve plan {plan.hash[:12]}?",
            texts=[
                f"{counts(plan)}\n"
                f"brokers: {touched(plan)}\n"
                f"{asked(moment.view)}{throttle_line(moment.throttle)}"
                f"cluster {cluster_name}, id {plan.cluster_id}"
            ],
            aim="approve",
            yes="Approve and run",
            refused="Not approved",
        )
        self._plan = plan
        self._gone = ""
        """Why the plan can no longer be approved; empty while it can."""

    def on_mount(self) -> None:
        self.watch(self.app, "moment", self._arrived)

    def _arrived(self, moment: Moment) -> None:
        if self._gone or self._sent:
            return
        self._gone = replaced(moment.view, self._plan)
        if self._gone:
            self.say(self._gone)
            self.arm()

    @property
    def armed(self) -> bool:
        """Also, whether the plan can still be approved."""
        return super().armed and not self._gone
