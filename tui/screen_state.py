"""What every screen shows at one moment."""

from dataclasses import dataclass, field

from control.loop.view import LoopView
from executor.journal.run_history import PastRun
from executor.run.operator_control import AskedRate
from model.goals.goals import Goals
from model.run import RunReport
from model.stop_rules import StopRules
from tui.viewmodel.brokers.load_history import Trail


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moment:
    """The loop's newest view, and what the clock says.

    Compared by identity: each is a new one, and columns of numbers have no equality.
    """

    view: LoopView
    goals: Goals
    now_ms: int
    """Goes on when views stop to come, so that age shows."""
    running: bool
    """Whether a run goes on; the loop's word, not read from the view."""
    trail: Trail = field(default_factory=Trail)
    paused: bool = False
    """The user has paused the run, which no rule has."""
    leaving: bool = False
    """The user has asked to leave once the run has stopped."""
    throttle: int | str | None = None
    """What a run begins with: bytes/s, `auto`, or None for none."""
    asked: AskedRate | None = None
    """Another throttle that was asked for while the run goes on."""
    stop_rules: StopRules = field(default_factory=StopRules)
    report: RunReport | None = None
    """Of the last run of this plimsoll that ended."""
    interrupted: PastRun | None = None
    """The newest run, where its process ended before it did."""
