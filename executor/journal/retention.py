"""Delete journals that nothing needs any more, oldest first.

Precondition: the lock of a cluster is held, so that its runs neither begin nor continue. Runs of
other clusters in the same folder that might are among those that are kept.
"""

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from executor.journal.journal_index import JournalFacts, index_of
from executor.journal.run_history import facts_of, undone_run
from executor.journal.run_journal import CORDON, PLAN_SUFFIX, SUFFIX, journal_ids, kind_of
from model.errors import ConfigError
from model.log_events import LogEvent, named
from model.plan.plan import read_plan
from model.units import bytes_text, count_text

NEWEST: Final = 20
"""Newest runs of each cluster that are kept: pace, screen, and rollbacks use them."""
RECENT_DAYS: Final = 7.0
"""Days for which every journal is kept: cooldowns and limits per day need it."""
_DAY_MS: Final = 86_400_000
_log = logging.getLogger("plimsoll.executor")


def _none() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which journals of ended runs may be deleted."""

    max_bytes: int
    """Bytes of journals and their plans, from which on the oldest are deleted."""
    days: float | None = None
    """Days after its last record from which on any may be deleted; None for never."""
    cooldown_ms: int = 0
    """How long moves count as recent; those journals are kept."""
    needed: Callable[[], Collection[str]] = field(default=_none)
    """Ids of runs that something else still needs, such as an open task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was deleted, and what is left."""

    run_ids: tuple[str, ...]
    """Oldest first."""
    bytes_deleted: int
    bytes_left: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """A journal and its plan."""

    run_id: str
    bytes: int
    changed_ms: int


def prune(journal_dir: Path, retention: Retention, now_ms: int) -> Pruned:
    """Delete what the retention lets, and log it.

    Never deleted: runs that are unfinished, that have left a setting or may have, or whose journal
    is damaged; the newest of each cluster, and any that changed within a week or a cooldown; a run
    that an unfinished rollback undoes, or that ended a move which an older one has left open; runs
    that `needed` names; cordons. A journal that cannot be deleted stays, with a warning.
    """
    entries = list(_entries(journal_dir))
    size = sum(entry.bytes for entry in entries)
    most_ms = _DAY_MS * retention.days if retention.days is not None else None
    kept_ms = max(_DAY_MS * RECENT_DAYS, retention.cooldown_ms)
    old = [e for e in entries if now_ms - e.changed_ms > kept_ms]
    if not old or (size <= retention.max_bytes and most_ms is None):
        return Pruned(run_ids=(), bytes_deleted=0, bytes_left=size)
    deletable = _deletable(journal_dir, {e.run_id for e in old} - {*retention.needed()})
    deleted, left = [], size
    for entry in old:
        is_old = most_ms is not None and now_ms - entry.changed_ms > most_ms
        goes = entry.run_id in deletable and (is_old or left > retention.max_bytes)
        if goes and _delete(journal_dir, entry.run_id):
            deleted.append(entry.run_id)
            left -= entry.bytes
    _report(journal_dir, deleted, size - left, left, retention)
    return Pruned(run_ids=tuple(deleted), bytes_deleted=size - left, bytes_left=left)


def _report(
    journal_dir: Path, deleted: list[str], freed: int, left: int, retention: Retention
) -> None:
    if deleted:
        _log.info(
            "deleted %s of ended runs from %s (%s), the last %s",
            count_text(len(deleted), "journal"),
            journal_dir,
            bytes_text(freed),
            deleted[-1],
            extra=named(LogEvent.JOURNALS_DELETED),
        )
    if left > retention.max_bytes:
        _log.warning(
            "%s holds %s, more than journal_bytes (%s) allows: the journals that are left are "
            "recent, unfinished, or needed",
            journal_dir,
            bytes_text(left),
            bytes_text(retention.max_bytes),
            extra=named(LogEvent.JOURNALS_KEPT),
        )


def _entries(journal_dir: Path) -> Iterator[_Entry]:
    """All journals, oldest first; those that vanish meanwhile are left out."""
    for run_id in journal_ids(journal_dir):
        with contextlib.suppress(OSError):
            found = os.stat(journal_dir / (run_id + SUFFIX))
            size = found.st_size
            with contextlib.suppress(OSError):
                size += os.stat(journal_dir / (run_id + PLAN_SUFFIX)).st_size
            yield _Entry(run_id, size, found.st_mtime_ns // 1_000_000)


def _deletable(journal_dir: Path, run_ids: Collection[str]) -> set[str]:
    """Those of these runs and actions that nothing in the folder needs."""
    measure = partial(facts_of, journal_dir)
    index = index_of(journal_dir)
    others = {file.run_id: facts for file, facts in index.not_done(measure)}
    needed = index.superseding(measure) | _of_newest(journal_dir)
    found = set()
    for run_id in run_ids:
        kind = kind_of(run_id)
        if kind is not None:
            # An action leaves nothing open, but own cordons are read from the journals.
            if kind != CORDON:
                found.add(run_id)
        elif run_id not in needed and (run_id not in others or _is_over(others[run_id])):
            found.add(run_id)
    return found


def _is_over(facts: JournalFacts | None) -> bool:
    return facts is not None and facts.has_ended and facts.is_quiet and not facts.open


def _of_newest(journal_dir: Path) -> set[str]:
    """The newest runs of each cluster, and the runs that their unfinished rollbacks undo."""
    index, measure = index_of(journal_dir), partial(facts_of, journal_dir)
    seen: Counter[str | None] = Counter()
    found = set()
    for run_id in reversed(index.run_ids()):
        cluster_id = index.cluster_of(run_id, measure)
        seen[cluster_id] += 1
        if cluster_id is None or seen[cluster_id] <= NEWEST:
            found.add(run_id)
            with contextlib.suppress(ConfigError):
                found.add(undone_run(read_plan(journal_dir / (run_id + PLAN_SUFFIX))))
    return found


def _delete(journal_dir: Path, run_id: str) -> bool:
    """Delete a journal after its plan: what a crash leaves is then deleted next time."""
    try:
        for suffix in (PLAN_SUFFIX, SUFFIX):
            (journal_dir / (run_id + suffix)).unlink(missing_ok=True)
    except OSError as exc:
        _log.warning(
            "the journal of the run %s cannot be deleted from %s: %s",
            run_id,
            journal_dir,
            exc.strerror,
            extra=named(LogEvent.JOURNALS_KEPT),
        )
        return False
    return True
