"""What the service knows of its loop: the newest view, and counts since the start.

The loop's threads write, and the HTTP server reads; nothing here waits for the loop's lock
or for the cluster.
"""

import logging
import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control.loop.holding_rule import holding_rule
from control.loop.policy import SILENCE_S, Decision
from control.loop.view import LoopView, Phase
from control.service.metric_specs import SOLVE_BUCKETS_S
from executor.timing import steady_s
from model.goals.effort import Effort
from model.goals.goals import Goals
from model.ids import PartitionId
from model.run import MoveState, RunProgress, RunState
from model.units import seconds_text

if TYPE_CHECKING:
    from control.loop.policy import DecisionInputs
    from control.service.leadership import Leadership, Standing
    from model.errors import PlimsollError
    from solver.report.result import Result

MOST_TIMES: Final = 1_000
"""Durations of the same kind that are kept."""
MISSED_BEATS: Final = 120
"""Turns that the loop may miss before it counts as hanging."""
ENDED_RUNS: Final = (RunState.DONE, RunState.STOPPED, RunState.FAILED, RunState.REFUSED)
ENDED_MOVES: Final = (MoveState.DONE, MoveState.DROPPED, MoveState.STUCK)
ASKING: Final = (Decision.ASK, Decision.REFUSE)
"""Decisions that leave a plan to a person."""


@dataclass
class Tallies:
    """Counts since the start of the service."""

    errors: Counter[str] = field(default_factory=Counter)
    """By class of the error."""
    messages: Counter[str] = field(default_factory=Counter)
    """By level."""
    reloads: Counter[str] = field(default_factory=Counter)
    """By result."""
    decisions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By decision and rule."""
    solves: Counter[str] = field(default_factory=Counter)
    """By status of the result."""
    solve_s: float = 0.0
    solve_buckets: list[int] = field(default_factory=lambda: [0] * (len(SOLVE_BUCKETS_S) + 1))
    """Solves by the first bucket that holds them; the last is for longer ones."""
    solve_times: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_TIMES))
    """Seconds of the newest solves."""
    model_times: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_TIMES))
    """Seconds of the newest models of the cluster."""
    runs: Counter[str] = field(default_factory=Counter)
    """By state."""
    moves: Counter[str] = field(default_factory=Counter)
    """By state."""
    moved_bytes: int = 0


class ServiceState:
    """The newest view and the counts; the lock guards the counts alone."""

    def __init__(
        self, *, clock: Callable[[], float] = time.time, steady: Callable[[], float] = steady_s
    ) -> None:
        """clock: seconds since the epoch, for timestamps.

        steady: seconds of a clock that is never set.
        """
        self._clock, self._steady = clock, steady
        self._tick_s = 0.5
        """Time between two turns of the loop."""
        self._lock = threading.Lock()
        self.tallies = Tallies()
        self.view: LoopView | None = None
        """None before the first one."""
        self.goals = Goals()
        """Of the loop."""
        self.effort = Effort.GOOD
        """Of the loop, as is the next."""
        self.decisions_dir: Path | None = None
        self.decision: tuple[str, str] | None = None
        """Decision and rule in force."""
        self.decision_reason = ""
        """Its reason, as it was given last."""
        self.inputs: DecisionInputs | None = None
        """What it was decided by last; None before the first decision."""
        self.decided_at_s = 0.0
        """Seconds since the epoch, as are the next two."""
        self.beat_at_s = clock()
        self.read_at_s = clock()
        self.unready = ""
        """Why the service as a whole is not ready; empty where the loop decides."""
        self.certificate_until_s: float | None = None
        """When the certificate of the listener ends, in seconds since the epoch; None without."""
        self.leadership: Leadership | None = None
        """Who leads; None where the service has no standby."""
        self.paused = False
        """Whether a person has paused the service."""
        self._beaten_s = steady()
        self._loads_s: float | None = None
        """When the newest loads came, by the steady clock."""
        self._results: deque[Result] = deque(maxlen=8)
        """The newest results, since views may arrive in another order."""
        self._run: RunProgress | None = None
        self._ended: set[PartitionId] = set()
        """Moves of the run that have been counted."""
        self._open_run = ""
        """Id of the run in progress, which has not been counted; empty if there is none."""

    # ---- calls of the loop's threads

    def begin(
        self,
        goals: Goals,
        tick_s: float,
        *,
        effort: Effort = Effort.GOOD,
        decisions_dir: Path | None = None,
    ) -> None:
        """Forget the previous loop, if any: another one begins.

        goals, effort: those of its plans. tick_s: time between two of its turns.
        decisions_dir: where `--auto` records its decisions.
        """
        self._tick_s = tick_s
        self.effort, self.decisions_dir = effort, decisions_dir
        self.goals, self.view, self.decision = goals, None, None
        self.decision_reason, self.inputs = "", None
        self._loads_s, self._run, self._open_run = None, None, ""
        self.beat()
        self.read_at_s = self._clock()

    def beat(self) -> None:
        """Note that the loop is turning."""
        self._beaten_s, self.beat_at_s = self._steady(), self._clock()

    def see(self, view: LoopView) -> None:
        """Keep a view, and count what it shows for the first time."""
        with self._lock:
            before, self.view = self.view, view
            known = before.snapshot if before is not None else None
            if view.snapshot is not None and view.snapshot is not known:
                self._loads_s = self._steady()
            self._count_result(view.proposed.result)
            if view.run is not None and view.run is not self._run:
                self._count_run(view.run)

    def decided(self, facts: "DecisionInputs", step: Decision, reason: str) -> None:
        """Count a decision, unless it repeats the last one."""
        self.decision_reason, self.inputs = reason, facts
        now = (step.value, holding_rule(facts, step))
        if now != self.decision:
            self.decision, self.decided_at_s = now, self._clock()
            with self._lock:
                self.tallies.decisions[now] += 1

    def failed(self, error: "PlimsollError") -> None:
        """Count an error."""
        with self._lock:
            self.tallies.errors[type(error).__name__] += 1

    def solved(self, result: "Result") -> None:
        """Count a plan that no view shows, such as one for a client or a task."""
        with self._lock:
            self._count_result(result)

    def modelled(self, seconds: float) -> None:
        """Note how long the newest model of the cluster took."""
        with self._lock:
            self.tallies.model_times.append(seconds)

    def reloaded(self, result: str) -> None:
        """Count an attempt to read the settings again."""
        with self._lock:
            self.tallies.reloads[result] += 1

    def logged(self, level: str) -> None:
        """Count a message of the log."""
        with self._lock:
            self.tallies.messages[level] += 1

    def _count_result(self, result: "Result | None") -> None:
        if result is None or any(result is known for known in self._results):
            return
        self._results.append(result)
        self.tallies.solves[result.status.value] += 1
        self.tallies.solve_s += result.seconds
        self.tallies.solve_times.append(result.seconds)
        self.tallies.solve_buckets[bisect_left(SOLVE_BUCKETS_S, result.seconds)] += 1

    def _count_run(self, run: RunProgress) -> None:
        ended = [item for item in run.moves if item.state in ENDED_MOVES]
        if self._run is None or self._run.run_id != run.run_id:
            # What earlier processes moved in a run that is resumed now is not counted.
            self._ended = {item.move.id for item in ended}
            self._open_run = "" if run.state in ENDED_RUNS else run.run_id
        self._run = run
        for item in ended:
            if item.move.id not in self._ended:
                self._ended.add(item.move.id)
                self.tallies.moves[item.state.value] += 1
                self.tallies.moved_bytes += item.bytes_copied or 0
        if run.state in ENDED_RUNS and self._open_run == run.run_id:
            self._open_run = ""
            self.tallies.runs[run.state.value] += 1

    # ---- calls of the HTTP server

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(1000 * self._clock())

    @property
    def run_active(self) -> bool:
        """Whether a run of this process is in progress."""
        return bool(self._open_run)

    @property
    def standing(self) -> "Standing | None":
        """Whether this service leads; None where it has no standby."""
        return None if self.leadership is None else self.leadership.standing

    @property
    def data_age_s(self) -> float | None:
        """Seconds since loads arrived last; None before the first ones."""
        return None if self._loads_s is None else self._steady() - self._loads_s

    def hanging(self) -> str:
        """Why the loop counts as hanging; empty while it turns."""
        silent_s = self._steady() - self._beaten_s
        if silent_s <= MISSED_BEATS * self._tick_s or self.unready:
            return ""
        return f"the loop has not turned for {seconds_text(silent_s)}"

    def not_ready(self) -> str:
        """Why the cluster is not observed now; empty where it is."""
        view = self.view
        if self.unready:
            return self.unready
        if view is None or self._loads_s is None:
            if view is not None and view.phase in (Phase.UNREACHABLE, Phase.FAILED):
                return f"{view.phase}: {view.sentence(int(1000 * self._clock()))}"
            return "the first observation of the cluster is not complete yet"
        silent_s = self._steady() - self._loads_s
        if silent_s > SILENCE_S:
            return f"no loads have arrived for {seconds_text(silent_s)}"
        standing = self.standing
        if standing is not None and standing.trouble:
            return standing.message
        return self.hanging()

    def ready(self) -> str:
        """What a service that is ready does: `ok`, or why it stands by."""
        standing = self.standing
        return "ok" if standing is None or standing.leads else f"standby: {standing.message}"


class CountingHandler(logging.Handler):
    """Count the messages of a logger."""

    def __init__(self, state: ServiceState) -> None:
        super().__init__()
        self._state = state

    def emit(self, record: logging.LogRecord) -> None:
        """Count one message by its level."""
        self._state.logged(record.levelname.lower())
