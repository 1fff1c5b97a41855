"""Open the journals of runs and other changes, under the cluster's lock and lease."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from executor.journal.archive import Archive
from executor.journal.journal_index import new_run_id
from executor.journal.lock import sole_writer
from executor.journal.run_journal import Action, RunJournal
from executor.timing import Timing
from model.plan.plan import Plan
from model.run import JournalEvent, RunState


@dataclass(frozen=True, slots=True)
class JournalAccess:
    """Journals on this machine, and in the archive where there is one."""

    timing: Timing
    archive: Archive | None = None

    @contextlib.contextmanager
    def sole_writer(
        self, journal_dir: Path, cluster_id: str, stop: threading.Event | None = None
    ) -> Iterator[None]:
        """Hold the lock of this machine and the lease of the archive.

        `stop` ends the wait for a lease. Raises as `lock.sole_writer` and `Archive.sole_writer` do.
        """
        with contextlib.ExitStack() as held:
            held.enter_context(sole_writer(journal_dir, cluster_id))
            if self.archive is not None:
                stop = stop or threading.Event()
                held.enter_context(self.archive.sole_writer(journal_dir, cluster_id, stop))
            yield

    @contextlib.contextmanager
    def opened(
        self, journal_dir: Path, plan: Plan | Action, run_id: str, *, resumed: bool
    ) -> Iterator[RunJournal]:
        """The journal of a run, closed at the end."""
        sink = self.archive.sink(journal_dir, plan, run_id) if self.archive is not None else None
        journal = RunJournal(journal_dir, plan, run_id, self.timing, resumed=resumed, sink=sink)
        with contextlib.closing(journal):
            yield journal

    @contextlib.contextmanager
    def action(
        self, kind: str, journal_dir: Path, cluster_id: str, by: str
    ) -> Iterator[RunJournal]:
        """Journal a change without a plan, from its start to its end or failure."""
        with self.sole_writer(journal_dir, cluster_id):
            run_id = new_run_id(journal_dir, self.timing.now_ms(), kind)
            about = Action(cluster_id)
            with self.opened(journal_dir, about, run_id, resumed=False) as journal:
                journal.write(JournalEvent.STARTED, by=by)
                try:
                    yield journal
                except Exception as exc:
                    state, reason = RunState.FAILED, str(exc)
                    journal.write(JournalEvent.ENDED, state=state, reason=reason)
                    raise
                journal.write(JournalEvent.ENDED, state=RunState.DONE, reason="")
