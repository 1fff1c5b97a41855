"""The decisions of `run --auto`, kept in the state folder for `plimsoll why`."""

import contextlib
import json
import logging
import math
import os
import re
import weakref
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import Field, ValidationError

from control.loop.policy import Decision, DecisionInputs, earliest_change_s
from model.bounded import END_MS, open_regular
from model.errors import ConfigError
from model.file_locks import is_held, locked_file
from model.files import FileModel, make_folder, replace_file
from model.log_events import LogEvent, named
from model.paths import path_part
from model.units import count_text

FILE: Final = "decisions.jsonl"
LOCK: Final = "auto-{}.lock"
"""Held while a process decides about the cluster; its time is that of the last sign of life."""
ALIVE_MS: Final = 10_000
"""Time between two signs of life."""
MOST_LINES: Final = 2_000
"""Decisions kept at most; the older half is removed when there are more."""

MOST_BYTES: Final = 16_000
"""Longest line that is read; nothing longer is written."""

TimeMs = Annotated[int, Field(ge=0, lt=END_MS)]

MOST_TEXT: Final = 500
"""Characters of a trigger or a reason."""

MOVED_MS: Final = 60_000
"""A decision whose time moves by more is kept again, with its new time."""
_DAY_MS: Final = 86_400_000
_FIGURES: Final = re.compile(
    r"(\bbrokers? \d++(?:(?:,| and) \d++)*+(?! deviates| do not read)"
    r"|(?:acts after|between runs is|instead of) [\d.,]+)"
    r"|(?<![\w.-])\d[\d.,:]*+(?:e[+-]?\d+)?(?![\w-])"
)
"""Figures in words. The first group has ids and limits, which tell decisions from each other.

Those of loads that noise alone decides between tell nothing, nor do digits within names.
"""
_SPAN: Final = re.compile(r"# (?:h # min|min # s|s)\b")
"""A time, which is written otherwise once it is shorter."""
_SEALED: Final = frozenset({Decision.REFUSE, Decision.ASK})
"""The figures in the reasons of these are those of a plan and of limits."""
_log = logging.getLogger("plimsoll.control")

WHEN: Final = {
    Decision.REST: "with the next loads",
    Decision.HOLD: "when loads or placement change",
    Decision.REFUSE: "when someone approves the plan, or loads or placement change",
    Decision.ASK: "when someone approves the plan, or the cluster changes",
    Decision.OFFER: "when someone approves the plan, or the cluster changes",
    Decision.PLAN: "when the plan is made",
    Decision.APPROVE: "when the run ends",
    Decision.ENDED: "when run --auto is started again",
}
"""When a decision is reconsidered that no time decides."""


class DecisionRecord(FileModel):
    """One decision: what was decided, why, and when it is reconsidered."""

    at_ms: TimeMs
    """When it was first taken, milliseconds since the epoch."""
    cluster_id: str
    decision: Decision
    trigger: str
    """The most urgent reason for a plan; empty if none is needed."""
    reason: str
    """Why this was decided; its figures are those of the first time."""
    until_ms: TimeMs | None
    """Earliest time at which the decision can change by waiting; None where it cannot."""
    plan_hash: str
    """The first 12 characters of the newest plan's; empty without one."""
    trigger_name: str = ""
    """The setting in `[triggers]` of that reason; empty if none fired."""
    awaits: str = ""
    """What ends a wait that no time ends, in words; empty where the decision says so."""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it another decision: everything but times and loads."""
        return self.cluster_id, self.decision, _masked(self.trigger), self.rule_key, self.plan_hash

    @property
    def rule_key(self) -> str:
        """What tells its reason from others: its words, ids and limits."""
        return self.reason if self.decision in _SEALED else _masked(self.reason)


class DecisionFile:
    """Append decisions that differ from the one before; used by one thread.

    The file is bounded. What cannot be written is reported once in the log and then left out, so
    that a full disk ends no loop.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._last: DecisionRecord | None = None
        self._lines: int | None = None
        """Lines in the file; None before it has been read."""
        self._failed = False
        self._lock: int | None = None
        """Handle of the locked file."""
        self._unlock: Callable[[], object] = lambda: None
        self._alive_ms: int | None = None
        """When the last sign of life was given."""

    def note(self, record: DecisionRecord) -> None:
        """Keep a decision unless it repeats the last one, at about the same time."""
        self._live(record)
        last = self._last
        if last is not None and record.key == last.key and not _is_moved(last, record):
            return
        self._last = record
        self._keep(record)

    def end(self, why: str, at_ms: int, plan_hash: str = "") -> None:
        """Keep that no further decision follows, if there was one.

        plan_hash: the first characters of that of a plan that waits on.
        """
        last, self._last = self._last, None
        if last is not None:
            self._keep(
                DecisionRecord(
                    at_ms=at_ms,
                    cluster_id=last.cluster_id,
                    decision=Decision.ENDED,
                    trigger="",
                    reason=why[:MOST_TEXT],
                    until_ms=None,
                    plan_hash=plan_hash,
                )
            )
        self._lock = None
        self._unlock()

    def _live(self, record: DecisionRecord) -> None:
        """Give a sign of life now and then; another process may have held the lock before."""
        if self._alive_ms is not None and abs(record.at_ms - self._alive_ms) < ALIVE_MS:
            return
        self._alive_ms = record.at_ms
        # A folder that cannot be written is reported with the decision.
        with contextlib.suppress(OSError):
            if self._lock is None:
                self._lock_file(record.cluster_id)
            if self._lock is not None:
                seconds = record.at_ms / 1000
                os.utime(self._lock, (seconds, seconds))

    def _lock_file(self, cluster_id: str) -> None:
        make_folder(self.path.parent)
        file = locked_file(_lock_path(self.path.parent, cluster_id))
        if file is not None:
            with file:
                self._lock = os.dup(file.fileno())
            self._unlock = weakref.finalize(self, os.close, self._lock)

    def _keep(self, record: DecisionRecord) -> None:
        try:
            self._append(record)
            self._failed = False
        except OSError as exc:
            if not self._failed:
                _log.warning(
                    "cannot write %s: %s",
                    self.path,
                    exc.strerror or exc,
                    extra=named(LogEvent.DECISIONS_FAILED),
                )
            self._failed = True

    def _append(self, record: DecisionRecord) -> None:
        if not self.path.parent.is_dir():
            make_folder(self.path.parent)
        if self._lines is None:
            self._lines = len(_lines(self.path, MOST_LINES))
        if self._lines >= MOST_LINES:
            newest = _lines(self.path, MOST_LINES // 2)
            replace_file(self.path, b"".join(line + b"\n" for _, line in newest))
            self._lines = len(newest)
        line = json.dumps(record.model_dump(mode="json"), sort_keys=True)
        with self.path.open("ab") as out:
            # A line that was cut off by a full disk must not swallow this one.
            start = b"\n" if out.tell() and not _ends_a_line(self.path) else b""
            out.write(start + line.encode() + b"\n")
        self._lines += 1


def _masked(words: str) -> str:
    """The words without figures that count down or vary with the loads."""
    return _SPAN.sub("#", _FIGURES.sub(lambda found: found[1] or "#", words))


def _is_moved(last: DecisionRecord, record: DecisionRecord) -> bool:
    """Whether it is reconsidered at another time than the last one of its kind."""
    before_ms, until_ms = last.until_ms, record.until_ms
    if before_ms is not None and until_ms is not None:
        return abs(until_ms - before_ms) > MOVED_MS
    # The next samples may tell the time, and those after them not.
    return before_ms != until_ms and record.at_ms - last.at_ms >= MOVED_MS


def record_of(
    facts: DecisionInputs, step: Decision, reason: str, *, cluster_id: str, at_ms: int
) -> DecisionRecord:
    """Describe a decision; at_ms: now, milliseconds since the epoch."""
    wait_s = earliest_change_s(facts, step)
    needs = facts.pursued or facts.ignored
    return DecisionRecord(
        at_ms=at_ms,
        cluster_id=cluster_id,
        decision=step,
        trigger=needs[0].message[:MOST_TEXT] if needs else "",
        trigger_name=needs[0].trigger.value if needs else "",
        reason=reason[:MOST_TEXT],
        until_ms=at_ms + int(1000 * wait_s) if wait_s > 0 else None,
        plan_hash=facts.plan.hash[:12] if facts.plan is not None else "",
        awaits="" if wait_s > 0 else _awaited(facts, step),
    )


def clock_text(until_ms: int, now_ms: int) -> str:
    """A time within a day as `21:05:30Z`, another with its date."""
    near = abs(until_ms - now_ms) < _DAY_MS
    return f"{datetime.fromtimestamp(until_ms / 1000, UTC):{'' if near else '%Y-%m-%dT'}%H:%M:%SZ}"


def when_text(record: DecisionRecord, time: str) -> str:
    """When a decision is reconsidered, in words; time: its `until_ms`."""
    event = record.awaits or WHEN.get(record.decision, "with the next loads")
    if record.until_ms is None:
        return event
    if record.decision in (*WHEN, Decision.IGNORE):
        return f"{event}, or at {time}"
    return f"not before {time}"


def _awaited(facts: DecisionInputs, step: Decision) -> str:
    """What ends a wait that no time ends; empty where `WHEN` says so."""
    if step is not Decision.CONFIRM:
        return ""
    if facts.held_by_schedule and facts.opens_in_s == math.inf:
        return "when the schedule is changed"
    return "when --auto is resumed" if facts.paused else ""


class LastSeen(NamedTuple):
    """Whether `--auto` decides about a cluster, as far as this machine can tell."""

    running: bool | None
    """None where that is not known."""
    at_ms: int | None
    """When it ended, or last gave a sign of life; None while it runs, or where not known."""


def last_seen(folder: Path, newest: DecisionRecord) -> LastSeen:
    """Whether the process that took the newest decision about a cluster, or another one, runs."""
    path = _lock_path(folder, newest.cluster_id)
    held = is_held(path)
    if held:
        return LastSeen(True, None)
    if newest.decision is Decision.ENDED:
        return LastSeen(False, newest.at_ms)
    if held is None:
        return LastSeen(None, None)
    try:
        alive_ms = int(1000 * path.stat().st_mtime)
    except OSError:
        return LastSeen(None, None)
    return LastSeen(False, max(newest.at_ms, min(alive_ms, END_MS - 1)))


def _lock_path(folder: Path, cluster_id: str) -> Path:
    return folder / LOCK.format(path_part(cluster_id))


def read_decisions(
    folder: Path, newest: int, warn: Callable[[str], None] = lambda _words: None
) -> list[DecisionRecord]:
    """Read the newest decisions, oldest first; damaged lines are left out.

    warn: called with the file and the line, and why, of the first damaged one. Raises ConfigError:
    the file cannot be read.
    """
    path = folder / FILE
    try:
        lines = _lines(path, MOST_LINES)
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror or exc}") from exc
    found: deque[DecisionRecord] = deque(maxlen=newest)
    damaged = list[str]()
    for number, line in lines:
        try:
            found.append(DecisionRecord.model_validate_json(line))
        except ValidationError as exc:
            error = exc.errors(include_url=False)[0]
            words = filter(None, (".".join(map(str, error["loc"])), error["msg"]))
            damaged.append(": ".join((f"{path}, line {number}", *words)))
    if damaged:
        more = len(damaged) - 1
        left_out = f"this line and {count_text(more, 'other')} are" if more else "this line is"
        warn(f"{damaged[0]}; {left_out} left out")
    return list(found)


def _lines(path: Path, newest: int) -> list[tuple[int, bytes]]:
    """The newest lines of a file with their numbers, oldest first; none without the file.

    Numbers count from 1, or from where a file begins to be read that is too large to be ours.
    """
    kept: deque[tuple[int, bytes]] = deque(maxlen=newest)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - newest * MOST_BYTES))
            kept.extend((n, line.rstrip(b"\n")) for n, line in enumerate(file, 1))
    except FileNotFoundError:
        return []
    return [(n, line) for n, line in kept if line and len(line) <= MOST_BYTES]


def _ends_a_line(path: Path) -> bool:
    with open_regular(path) as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
