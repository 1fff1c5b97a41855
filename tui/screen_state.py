"""The state that every screen shows at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from control.loop.view import LoopView
from control.service.auto_watch import AutoSeen
from executor.journal.run_history import PastRun
from executor.run.operator_control import AskedRate
from executor.schedule.estimate import Forecast
from model.goals.effort import Effort
from model.goals.goals import Goals
from model.run import RunReport
from model.stop_rules import StopRules
from tui.viewmodel.brokers.load_history import Trail


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moment:
    """The loop's latest view, and the time.

    Compared by identity, because columns of numbers have no equality.
    """

    view: LoopView
    goals: Goals
    now_ms: int
    """The current time, which advances even if no views arrive, so that age shows."""
    running: bool
    """Whether a run is in progress, from the loop itself, not from the view."""
    trail: Trail = field(default_factory=Trail)
    paused: bool = False
    """The user has paused the run (a stop rule would not set this)."""
    leaving: bool = False
    """The user has asked to quit once the run has stopped."""
    throttle: int | str | None = None
    """The initial throttle of a run: bytes/s, `auto`, or None for none."""
    asked: AskedRate | None = None
    """A throttle requested during the run."""
    stop_rules: StopRules = field(default_factory=StopRules)
    report: RunReport | None = None
    """The report of the last run that ended in this process."""
    interrupted: PastRun | None = None
    """The most recent run, if it was interrupted."""
    auto: AutoSeen | None = None
    """What `run --auto` decides about the cluster in another process."""
    estimate: Forecast | None = None
    """What the plan's run would take; None while that is not known."""
    approved: Forecast | None = None
    """The same of the plan that the run executes, as it was approved."""
    effort: Effort = Effort.GOOD
    """How far plans go."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys redefined by the user, by binding id."""
