"""Restore settings that earlier runs have left in force."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from executor.journal.journal_access import JournalAccess
from executor.journal.run_history import PastRun, left_set
from executor.run.overrides import ClusterOverrides
from executor.throttle.quota import ThrottleSettings
from model.errors import PlimsollError


@dataclass(frozen=True, slots=True)
class SettingsCleanup:
    """Restores what the journals of runs on one cluster say is still set."""

    journals: JournalAccess
    overrides: ClusterOverrides

    def clean_up(self, journal_dir: Path, cluster_id: str) -> list[str]:
        """Restore all settings, those of the newest run first; say what was done.

        What a run found set may be what an older run has left.
        """
        done = []
        newer: list[ThrottleSettings] = []
        """Some of these may be in force in place of what an older run has set."""
        for past in reversed(left_set(journal_dir, cluster_id)):
            if past.throttled is not None:
                held = reduce(ThrottleSettings.with_newer, reversed(newer), past.throttled)
                newer.append(past.throttled)
                past = replace(past, throttled=held)
            restored = "; ".join(self._restored(journal_dir, past))
            done += [f"run {past.run_id}: {restored}"] if restored else []
            done += [f"run {past.run_id}: {warning}" for warning in past.warnings]
        return done

    def _restored(self, journal_dir: Path, past: PastRun) -> Iterator[str]:
        """What was done for one run, in words; an error does not stop the others."""
        opened = self.journals.opened
        try:
            with opened(journal_dir, past.plan, past.run_id, resumed=True) as journal:
                yield from self.overrides.restore(journal, past)
            if journal.problem:
                yield (
                    f"its journal cannot record that ({journal.problem}); make "
                    f"{journal.path} writable and repeat plimsoll cleanup"
                )
        except PlimsollError as exc:
            yield str(exc)
