"""The loop as front ends see it: one immutable value per change."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from control.loop.run_lag import RunLag
from control.planning.plan_view import NONE, PlanningView
from model.evaluate import Evaluation
from model.plan.plan import Plan
from model.run import RunProgress
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, Snapshot

LOG_LINES: Final = 500
"""Log lines kept for the screen."""


class Mode(StrEnum):
    """Who may approve a plan."""

    READ_ONLY = "read-only"
    """Nobody; nothing is changed."""
    APPROVE = "approve"
    """The operator."""
    AUTO = "auto"
    """The limits of `--auto`."""
    RECORDING = "recording"
    """Nobody; a recording is played back."""


class Phase(StrEnum):
    """What the loop is doing."""

    CONNECTING = "connecting"
    UNREACHABLE = "cannot connect"
    MEASURING = "measuring"
    """Not enough load measurements yet."""
    BALANCED = "balanced"
    SOLVING = "solving"
    NO_PLAN = "no plan"
    """Out of tolerance, but without a plan; the message gives the reason."""
    PLAN_READY = "plan ready"
    RUNNING = "running"
    SETTLING = "settling"
    """After a run, until loads cover only the new placement."""
    STANDBY = "standing by"
    """Another service leads."""
    FAILED = "failed"

    @classmethod
    def _missing_(cls, value: object) -> "Phase | None":
        # The name of `BALANCED` in recordings of 0.1.
        return cls.BALANCED if value == "level" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of the log."""

    at_ms: int
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The next attempt to reach the cluster."""

    attempt: int
    """Its number; the first attempt is 1."""
    since_ms: int
    """When the previous attempt failed, milliseconds since the epoch."""
    wait_s: float
    """Time between the two attempts."""

    def words(self, now_ms: int) -> str:
        """When the attempt is due, or that it is in progress.

        A clock set back does not make it later.
        """
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
    """Name of the profile, else the start of the cluster id; empty if unknown."""
    bootstrap: str
    message: str
    """One sentence on the phase."""
    brokers: tuple[Broker, ...]
    snapshot: Snapshot | None
    evaluation: Evaluation | None
    """Evaluation of the snapshot without moves."""
    plan: Plan | None
    run: RunProgress | None
    """The run in progress, else the last one."""
    log: tuple[LogLine, ...]
    proposed: PlanningView = NONE
    """Solves in progress, the operator's requests, and the what-if."""
    replication: Replication | None = None
    """Under-replicated and offline partitions; None before the first response."""
    lag: RunLag | None = None
    """Lag of consumer groups on the topics that a run moves."""
    retry: Retry | None = None
    """Only while the cluster cannot be reached."""
    reconsidered: str = ""
    """When `--auto` reconsiders its decision, in words; empty without one."""

    def sentence(self, now_ms: int) -> str:
        """The message, and when the loop reconsiders or tries again."""
        return "; ".join(filter(None, (self.status(now_ms), self.again)))

    def status(self, now_ms: int) -> str:
        """The message, and the next attempt while the cluster is unreachable."""
        if self.retry is None or self.phase is not Phase.UNREACHABLE:
            return self.message
        return f"{self.message.rstrip('.')}; {self.retry.words(now_ms)}"

    @property
    def again(self) -> str:
        """When `--auto` reconsiders its decision, as a clause; empty without one."""
        return f"reconsidered {self.reconsidered}" if self.reconsidered else ""
