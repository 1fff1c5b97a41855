"""What the loop is made of: how it behaves, and what it drives."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

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

_RULES: Final = StopRules()


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How the loop behaves; the same for every front end."""

    bootstrap: str
    operator: str = field(default_factory=operator)
    """Who uses it; the log says so."""
    name: str | None
    """What the cluster is called; None for the start of its id."""
    mode: Mode
    goals: Goals
    solve: SolveLimits
    limits: AutoLimits
    journal_dir: Path
    patient: bool = False
    """Go on trying when the first contact fails, as a screen and a service do."""
    tick_s: float = 0.5
    dead_broker_after_s: float = 3600.0
    """How long `--auto` waits for a dead broker before it moves its replicas; inf
    for ever. Plans that a person approves do not wait."""
    throttle: int | Literal["auto"] | None = None
    """What moves may copy into a broker and out of it, bytes/s, as a run begins."""
    stop_rules: StopRules = _RULES
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of the screen, by the ids of what they do."""


@dataclass(frozen=True, kw_only=True)
class LoopParts:
    """What the loop drives."""

    observer: Callable[[], Observer]
    """Makes a new observer; called again after a lost connection."""
    planner: Planner
    executor: Callable[[], PlanExecutor] | None
    """Makes the one object that changes a cluster; None when read-only."""
    recent_moves: Callable[[str, int], tuple[RecentMove, ...]]
    """Moves on a cluster (id) since a time (ms), from the journal."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch; for stamps alone, since somebody may set this clock."""
    steady: Callable[[], float] = steady_s
    """Seconds since some moment; nobody sets this clock, so waiting goes by it."""
