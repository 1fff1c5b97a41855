"""The approval of exactly one plan."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from executor.schedule.estimate import Forecast
from model.errors import GuardrailRefused, PlanOutdated, PlimsollError
from model.plan.plan import Plan
from tui.screen_state import Moment
from tui.screens.dialog import NamedDialog, labelled
from tui.viewmodel.plan.approval import (
    asked,
    balance,
    counts,
    leaders_only,
    left_wrong,
    replaced,
    rivals_line,
    rules_lines,
    takes,
    throttle_line,
    touched,
)

UNKNOWN: Final = "duration, peak disk use and traffic: unknown"
ESTIMATING: Final = "duration, peak disk use and traffic: being estimated"
CHECKING: Final = "competing rebalancers: being checked"
CHECKED: Final = "competing rebalancers: none found"
"""The estimate begins with the checks of a run, which fail if there is one."""

WAITS: Final = "The estimate and the check for rebalancers are not done yet."

Preview = Callable[[Plan], Forecast]
"""Estimates a run; called in another thread, and may raise PlimsollError."""


class PlanDialog(NamedDialog):
    """Execute exactly one plan, once its estimate was shown and the cluster's name is typed."""

    def __init__(
        self,
        plan: Plan,
        moment: Moment,
        act: Callable[[], None],
        preview: Preview,
        *,
        title: str,
        texts: Sequence[str],
        aim: str,
        yes: str,
        refused: str,
    ) -> None:
        """Show `texts` below figures and estimate of the plan; the rest as in `NamedDialog`."""
        super().__init__(
            moment.view.cluster_name,
            act,
            title=title,
            texts=texts,
            aim=aim,
            yes=yes,
            refused=refused,
        )
        self._plan, self._preview = plan, preview
        self._known: Forecast | None = None
        """The estimate, where it is known already."""
        self._is_checked = False
        """Whether the estimate and the checks of a run have ended."""
        self._stale = ""
        """Why the plan can no longer be executed; empty while it can."""

    def on_mount(self) -> None:
        # The dialog is painted first: an estimate of thousands of moves takes a second.
        self.call_after_refresh(self._estimate)

    @work
    async def _estimate(self) -> None:
        """Estimate duration and disk use; check whether the plan could start now."""
        try:
            estimate = await asyncio.to_thread(self._preview, self._plan)
        except (GuardrailRefused, PlanOutdated) as exc:
            self._refuse(f"This plan cannot start now: {exc}")
            words = UNKNOWN
        except PlimsollError as exc:
            words = f"{UNKNOWN} ({exc})"
        else:
            self._known, words = estimate, f"{takes(estimate)}\n{CHECKED}"
        self._is_checked = True
        if self.is_current:
            self.query_one("#takes", Static).update(labelled(words))
            self.measure()

    def _refuse(self, reason: str) -> None:
        if not (self._stale or self._sent) and self.is_current:
            self._stale = reason
            self.say(reason)
            self.arm()

    def first(self) -> ComposeResult:
        """What the plan does, the estimate, which arrives a moment later, and what it leaves."""
        yield Static(counts(self._plan), markup=False)
        words = ESTIMATING if self._known is None else f"{takes(self._known)}\n{CHECKING}"
        yield Static(labelled(words), id="takes")
        if wrong := left_wrong(self._plan):
            yield Static(labelled(wrong), classes="left-wrong")

    @property
    def armed(self) -> bool:
        """Whether the button may act, the plan is checked and can still be approved."""
        return super().armed and self._is_checked and not self._stale

    def why_not(self) -> str:
        """Why Enter does nothing; empty where it acts, or where a message says so already."""
        waits = "" if self._is_checked or self._stale else WAITS
        return super().why_not() or waits


class ApproveScreen(PlanDialog):
    """Approve the plan shown, by its hash, once the cluster's name is typed.

    A newer plan is never approved in its place; the dialog says that there is one.
    """

    BINDINGS = [Binding("escape", "no", "Cancel", id="approve.cancel")]

    def __init__(
        self, plan: Plan, moment: Moment, approve: Callable[[str], None], preview: Preview
    ) -> None:
        super().__init__(
            plan,
            moment,
            lambda: approve(plan.hash),
            preview,
            title=f"Approve plan {plan.hash[:12]}?",
            texts=[
                f"{balance(plan)}{leaders_only(plan)}"
                f"{asked(moment.view)}{run_lines(moment)}"
                f"afterwards: {afterwards(moment)}\n"
                f"brokers: {touched(plan)}\n"
                f"cluster: {moment.view.cluster_name}, id {plan.cluster_id}"
            ],
            aim="approve",
            yes="Approve and run",
            refused="Not approved",
        )
        self._known = moment.estimate
        """The estimate that the header shows."""

    def on_mount(self) -> None:
        self.watch(self.app, "moment", self._arrived)

    def _arrived(self, moment: Moment) -> None:
        if self._stale or self._sent:
            return
        if reason := replaced(moment.view, self._plan):
            self._refuse(reason)


def afterwards(moment: Moment) -> str:
    """What can still be done about the run."""
    stop, back = (
        moment.keys.get(name, key).partition(",")[0]
        for name, key in (("run.stop", "X"), ("run.rollback", "B"))
    )
    return f"[{stop}] stops the run, [{back}] rolls it back once it has ended"


def run_lines(moment: Moment) -> str:
    """Lines on how a run is throttled, and on what ends it."""
    return (
        f"{throttle_line(moment.throttle)}{rivals_line(moment.view)}"
        f"{rules_lines(moment.stop_rules)}"
    )
