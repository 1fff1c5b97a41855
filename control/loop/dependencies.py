"""Settings of the loop, and the parts it drives."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from control.cli.console import operator
from control.loop.ports import Observer, PlanExecutor
from control.loop.view import Mode
from control.planning.planner import Planner
from control.settings.auto_limits import AutoLimits
from control.settings.screen_settings import ScreenSettings
from executor.timing import steady_s
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import RecentMove
from model.stop_rules import StopRules


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """Settings of the loop; the same for every front end."""

    bootstrap: str
    operator: str = field(default_factory=operator)
    """User name, for the log."""
    name: str | None
    """Name of the cluster; None shows the start of its id."""
    mode: Mode
    goals: Goals
    solve: SolveLimits
    limits: AutoLimits
    journal_dir: Path
    patient: bool = False
    """Retry when the first connection fails, as the screen and the service do."""
    tick_s: float = 0.5
    dead_broker_after_s: float = 3600.0
    """How long `--auto` waits for a dead broker before it moves its replicas; inf:
    for ever. Plans for an operator do not wait."""
    throttle: int | Literal["auto"] | None = None
    """Throttle of each broker and direction at the start of a run, bytes/s."""
    stop_rules: StopRules = field(default_factory=StopRules)
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of the screen by action id."""


@dataclass(frozen=True, kw_only=True)
class LoopParts:
    """Parts that the loop drives; the real ones and those of tests fit."""

    observer: Callable[[], Observer]
    """Create an observer; called again after a lost connection."""
    planner: Planner
    executor: Callable[[], PlanExecutor] | None
    """Connect the only object that changes the cluster; None when read-only."""
    recent_moves: Callable[[str, int], tuple[RecentMove, ...]]
    """Moves in the journal by cluster id and start (ms since the epoch)."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch; for timestamps only, since this clock may be set."""
    steady: Callable[[], float] = steady_s
    """Seconds of a clock that is never set; all waiting uses it."""
