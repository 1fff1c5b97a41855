"""The loop's log: decisions, events of runs and notes, one line each."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from control.loop.view import LOG_LINES, LogLine, LoopView
from model.log_events import LogEvent, named
from model.run import MoveProgress, MoveState, RunProgress, RunState
from model.snapshot.capacities import Capacities, capacity_notes
from model.snapshot.snapshot import Snapshot

logger = logging.getLogger("plimsoll.control")

WARNED = (RunState.PAUSED, RunState.STOPPING)
FAILED = (MoveState.DROPPED, MoveState.STUCK)


class DecisionLog:
    """Keep the newest lines for the screen, and pass each to the program's log.

    Any thread may write. The lock guards the lines alone: no other lock is taken while
    it is held.
    """

    def __init__(self, now_ms: Callable[[], int], plan_hash: Callable[[], str]) -> None:
        """now_ms: milliseconds since the epoch; plan_hash: that of lines which name none."""
        self._now_ms, self._plan_hash = now_ms, plan_hash
        self._lines: deque[LogLine] = deque(maxlen=LOG_LINES)
        self._lock = threading.Lock()

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """The newest lines, oldest first."""
        with self._lock:
            return tuple(self._lines)

    def note(
        self,
        text: str,
        event: LogEvent,
        *,
        level: str = "info",
        narrated: bool = False,
        plan_hash: str | None = None,
    ) -> None:
        """Write a line; the screen shows it with the next view.

        event: its name in JSON logs. plan_hash: of the plan that it is about; empty without one.

        narrated: the phase or the run of the view says the same, so a front end that
        narrates views leaves the line out.
        """
        line = LogLine(at_ms=self._now_ms(), level=level, text=text)
        with self._lock:
            self._lines.append(line)
        about = (self._plan_hash() if plan_hash is None else plan_hash)[:12] or None
        extra = {"plan_hash": about, "narrated": narrated, **named(event)}
        getattr(logger, level)(text, extra=extra)


class CapacityNotes:
    """Write each note about broker capacities once; subscribe it to a loop."""

    def __init__(self, warn: Callable[[str], None], configured: Capacities | None) -> None:
        self._warn, self._configured = warn, configured
        self._snapshot: Snapshot | None = None
        self._notes: tuple[str, ...] = ()

    def __call__(self, view: LoopView) -> None:
        """Compare the newest snapshot with the configured capacities."""
        if view.snapshot is None or view.snapshot is self._snapshot:
            return
        self._snapshot, before = view.snapshot, self._notes
        self._notes = capacity_notes(view.snapshot, self._configured)
        for note in self._notes:
            if note not in before:
                self._warn(note)


class RunLine(NamedTuple):
    """A line of the log about a run."""

    level: str
    text: str
    event: LogEvent


def run_lines(before: RunProgress | None, after: RunProgress) -> Iterator[RunLine]:
    """A line for each change of a run and its moves."""
    if before is not None and before.run_id != after.run_id:
        before = None
    if before is None or before.state is not after.state:
        reason = f": {after.reason}" if after.reason else ""
        level = "warning" if after.state in WARNED else "info"
        yield RunLine(level, f"run {after.run_id} {after.state}{reason}", LogEvent.RUN_STATE)
    known = {m.move.id: m.state for m in before.moves} if before else {}
    for item in after.moves:
        if item.state is not known.get(item.move.id, MoveState.PLANNED):
            yield _move_line(item)


def _move_line(item: MoveProgress) -> RunLine:
    move = item.move
    if item.state is MoveState.ISSUED:
        old = ",".join(map(str, move.replicas_before))
        new = ",".join(map(str, move.replicas_after))
        return RunLine("info", f"{move.id} started: {old} -> {new}", LogEvent.RUN_MOVE)
    took = f" in {item.seconds:.1f} s" if item.seconds is not None else ""
    note = f": {item.note}" if item.note else ""
    level = "warning" if item.state in FAILED else "info"
    return RunLine(level, f"{move.id} {item.state}{took}{note}", LogEvent.RUN_MOVE)
