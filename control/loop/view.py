"""What the loop shows of itself: one immutable value, again and again."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from control.planning.plan_view import NONE, PlanningView
from model.evaluate import Evaluation
from model.plan.plan import Plan
from model.run import RunProgress
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, Snapshot

LOG_LINES: Final = 500
"""Decisions kept for the screen."""


class Mode(StrEnum):
    """Who may approve a plan."""

    READ_ONLY = "read-only"
    """Nobody; nothing is changed."""
    APPROVE = "approve"
    """A person."""
    AUTO = "auto"
    """The limits of `--auto`."""
    RECORDING = "recording"
    """Nobody; what is shown was recorded before."""


class Phase(StrEnum):
    """Where the loop stands."""

    CONNECTING = "connecting"
    UNREACHABLE = "cannot connect"
    MEASURING = "measuring"
    """Loads are not known well enough yet."""
    BALANCED = "balanced"
    SOLVING = "solving"
    NO_PLAN = "no plan"
    """Uneven, but no plan helps, or none may be made; the message says why."""
    PLAN_READY = "plan ready"
    RUNNING = "running"
    SETTLING = "settling"
    """After a run, until loads show the new placement alone."""
    FAILED = "failed"

    @classmethod
    def _missing_(cls, value: object) -> "Phase | None":
        # The name of `BALANCED` in recordings of 0.1.
        return cls.BALANCED if value == "level" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One decision, in words."""

    at_ms: int
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The next attempt to reach the cluster."""

    attempt: int
    """Its number; the first one was 1."""
    since_ms: int
    """When the one before failed."""
    wait_s: float
    """Time between the two."""

    def words(self, now_ms: int) -> str:
        """When it is due, or that it goes on; a clock that jumped makes it no later."""
        left_s = min(self.wait_s, self.wait_s - (now_ms - self.since_ms) / 1000)
        if left_s <= 0:
            return f"attempt {self.attempt} in progress"
        return f"attempt {self.attempt} in {math.ceil(left_s)} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopView:
    """The loop at one moment."""

    at_ms: int
    phase: Phase
    mode: Mode
    cluster_name: str
    """The profile's name, else the start of the cluster's id; empty if unknown."""
    bootstrap: str
    message: str
    """One sentence on where things stand."""
    brokers: tuple[Broker, ...]
    snapshot: Snapshot | None
    evaluation: Evaluation | None
    """The snapshot judged as it is, without moves."""
    plan: Plan | None
    run: RunProgress | None
    """The run that goes on, else the last one."""
    log: tuple[LogLine, ...]
    proposed: PlanningView = NONE
    """Plans under way, what was asked of them, and plans in thought."""
    replication: Replication | None = None
    """Partitions that are not whole; None before the cluster has answered."""
    retry: Retry | None = None
    """Only while the cluster cannot be reached."""

    def sentence(self, now_ms: int) -> str:
        """The message, and when a cluster that cannot be reached is asked again."""
        if self.retry is None or self.phase is not Phase.UNREACHABLE:
            return self.message
        return f"{self.message.rstrip('.')}; {self.retry.words(now_ms)}"
