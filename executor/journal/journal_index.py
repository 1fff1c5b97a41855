"""An index of the journals of runs, so that what has ended is not read again.

It is a cache and is never believed over the journals: a fact about a journal counts only while the
file has the size and time of change that it had when it was read. The copy on disk has a checksum;
one that is missing, torn, old or damaged is ignored and made again from the journals.

Two rules keep it safe. A file, or a folder, that changed less than two seconds ago is read each
time, since a second change may carry the same time. And the files of runs that are done, to which
nothing is ever appended, are compared with the index once a minute by a process that goes on, and
once an hour by processes that start; all others are compared each time. One that was replaced, as
a repair or the archive does, is another file (inode), which is noticed each time.
"""

import base64
import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from executor.journal.run_journal import SUFFIX, is_action, journal_ids, journal_inodes, order
from model.errors import ConfigError
from model.file_locks import plain_file
from model.files import replace_file
from model.ids import PartitionId, TopicName

T = TypeVar("T")

FILE: Final = "index"
_HEAD: Final = b"plimsoll journal index 3 "
_NUMBERS: Final = ("<u8", "<i8", "<u8")
"""How sizes, times and inodes are stored; a time may lie before 1970."""
_MOST_NS: Final = 2**63
"""A time beyond it, of the year 2262, is not stored: such journals are read again."""
_CALM_NS: Final = 2_000_000_000
"""Nanoseconds after which a change of a file is certain to have changed its time, too."""
_COMPARE_S: Final = 60.0
"""Seconds after which a process compares the files of done runs with the index again."""
_BELIEVED_NS: Final = 3_600_000_000_000
"""Nanoseconds for which processes that start believe a comparison that another has made."""
_UNSAVED: Final = 8
"""Journals that were read since the index was saved, from which on it is saved again."""
_FOLDERS: Final = 8
"""Folders that a process keeps in memory."""


class JournalFile(NamedTuple):
    """The journal of a run, as the folder has it."""

    run_id: str
    size: int
    changed_ns: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFacts:
    """What a journal says that other runs need to know."""

    cluster_id: str
    """Empty where it has no record."""
    is_quiet: bool
    """Whether it left no setting, is undamaged, and no record of a setting is missing."""
    has_ended: bool
    """Whether its last state is not interrupted."""
    is_done: bool
    """Whether it needs no further reading: it ended as done, with all moves ended."""
    open: frozenset[PartitionId] = frozenset()
    """Partitions that it requested to be moved, and whose end it has not seen."""
    traced: frozenset[PartitionId] = frozenset()
    """Partitions that it moved or requested to be moved, the open ones included."""


Measure = Callable[[str], JournalFacts]
"""Reads the facts of a run's journal; raises ConfigError where it is unreadable."""


@dataclass(slots=True)
class _Saved:
    """Facts that hold while the files are unchanged."""

    done: dict[JournalFile, str] = field(default_factory=dict)
    """The cluster of each done run."""
    compared_ns: int = 0
    """When the files of all of them were last looked at."""
    others: dict[str, tuple[JournalFile, JournalFacts]] = field(default_factory=dict)
    movers: dict[str, dict[PartitionId, str]] = field(default_factory=dict)
    """The newest run that moved a partition, by cluster."""
    movers_text: str = ""
    """The same as it was saved, until it is needed."""
    traced: dict[str, frozenset[PartitionId]] = field(default_factory=dict)
    """Partitions by run, of the journals that were read in this process."""
    done_ids: set[str] | None = None
    """The runs in `done`, once they are needed."""


class JournalIndex:
    """The index of one folder; threads may share it."""

    def __init__(self, folder: Path, clock_ns: Callable[[], int] = time.time_ns) -> None:
        """clock_ns: the clock of the file system, in nanoseconds since the epoch."""
        self._folder, self._clock_ns = folder, clock_ns
        self._lock = threading.RLock()
        self._saved: _Saved | None = None
        self._files: list[JournalFile] = []
        self._undone: list[int] = []
        """Positions of the files of runs that are not known to be done."""
        self._listed: tuple[int, int] | None = None
        """Mark of the folder when it was listed; None where it may have changed since."""
        self._last_id = ""
        """The newest id that was listed, those of other changes included."""
        self._by_run: tuple[list[JournalFile], dict[str, str]] | None = None
        """The cluster of each run, for this list of files."""
        self._compared_s: float | None = None
        """When this process began to believe what it knows of the files of done runs."""
        self._unsaved = 0
        self._recent: dict[str, tuple[int, dict[JournalFile, Any]]] = {}
        """Since when the newest journals were asked for last, and what they say, by cluster."""

    def files(self) -> list[JournalFile]:
        """The journals of runs, oldest first; raises nothing where there is no folder."""
        with self._lock:
            self._list()
            return self._files

    def run_ids(self) -> list[str]:
        """Their run ids, oldest first, without asking for anything else."""
        with self._lock, contextlib.suppress(OSError):
            if self._is_listed():
                return [file.run_id for file in self._files]
        return [run_id for run_id in journal_ids(self._folder) if not is_action(run_id)]

    def last_id(self) -> str:
        """The id of the newest run or other change; empty without any."""
        with self._lock, contextlib.suppress(OSError):
            if self._is_listed():
                return self._last_id
        return next(reversed(journal_ids(self._folder)), "")

    def recent(self, cluster_id: str, since_ns: int, read: Callable[[str], T]) -> list[T]:
        """What `read` finds in each journal that changed since, oldest first, by its run id.

        A journal is read once while its file stays the same. Of what was found about a cluster,
        that which the last two calls asked for is kept. Raises as `read` does.
        """
        with self._lock:
            before_ns, known = self._recent.get(cluster_id, (since_ns, {}))
            oldest_ns = min(before_ns, since_ns)
            recent = [file for file in self.files() if file.changed_ns >= oldest_ns]
            found = {
                file: known[file] if file in known else read(file.run_id)
                for file in recent
                if file.changed_ns >= since_ns
            }
            known = known | found
            kept = {file: known[file] for file in recent if file in known and self._is_calm(file)}
            self._recent[cluster_id] = since_ns, kept
            return list(found.values())

    def not_done(self, measure: Measure) -> list[tuple[JournalFile, JournalFacts | None]]:
        """The journals that are not known to be done, oldest first; None: it is unreadable."""
        with self._lock:
            return self._others(measure)

    def cluster_of(self, run_id: str, measure: Measure) -> str | None:
        """The cluster of a run; None where its journal does not name it."""
        with self._lock:
            if self._by_run is None or self._by_run[0] is not self._files:
                clusters = {
                    f.run_id: facts.cluster_id for f, facts in self._others(measure) if facts
                }
                done = self._facts().done
                clusters |= {f.run_id: done[f] for f in self._files if f in done}
                self._by_run = self._files, clusters
            return self._by_run[1].get(run_id) or None

    def unfinished(self, cluster_id: str, measure: Measure) -> dict[PartitionId, str]:
        """The run by partition, where no run that moved it last has seen its end.

        Raises ConfigError for an unreadable journal.
        """
        with self._lock:
            for _ in range(2):
                found = self._unfinished(cluster_id, measure)
                if found is not None:
                    return found
                # The newest journal about a partition is gone: ask all others.
                self._saved, self._listed = _Saved(), None
            raise ConfigError(f"Journals in {self._folder} keep vanishing; try again.")

    def superseding(self, measure: Measure) -> set[str]:
        """Runs without which a move that an older one has left open would count as open."""
        with self._lock:
            others, movers = self._others(measure), self._movers()
            found = {
                movers.get(facts.cluster_id, {}).get(pid, file.run_id)
                for file, facts in others
                if facts is not None
                for pid in facts.open
            }
            return found - {file.run_id for file, _ in others}

    def save(self) -> None:
        """Write the index, unless the folder cannot be written."""
        with self._lock, contextlib.suppress(OSError):
            replace_file(self._folder / FILE, self._content())
            self._unsaved = 0

    # ---- files

    def _list(self) -> None:
        """Bring the list of files up to date."""
        try:
            mark, age_ns = self._mark()
        except OSError:
            self._files, self._undone, self._listed = [], [], None
            return
        now_s, compared_s = time.monotonic(), self._compared_s
        is_recent = compared_s is not None and now_s - compared_s < _COMPARE_S
        if mark == self._listed and is_recent and self._restated():
            return
        saved, now_ns = self._facts(), self._clock_ns()
        since_ns = now_ns - saved.compared_ns
        is_believed = is_recent or (compared_s is None and 0 <= since_ns < _BELIEVED_NS)
        believed = {file.run_id: file for file in saved.done} if is_believed else {}
        inodes = journal_inodes(self._folder)
        self._last_id = next(reversed(inodes), "")
        self._files = list(_files(self._folder, inodes, believed))
        self._undone = [at for at, file in enumerate(self._files) if file not in saved.done]
        # A folder that cannot be listed looks empty.
        self._listed = mark if inodes and age_ns > _CALM_NS else None
        if not is_recent:
            self._compared_s = now_s
        if not is_believed:
            saved.compared_ns = now_ns
            if saved.done and not 0 <= since_ns < _BELIEVED_NS // 2:
                # Or processes that start would compare them, too.
                self.save()

    def _restated(self) -> bool:
        """Look again at the files of runs that are not done; False where one is gone."""
        for at in self._undone:
            found = _stated(self._folder, self._files[at])
            if found is None:
                return False
            self._files[at] = found
        return True

    def _is_listed(self) -> bool:
        """Whether no entry has come or gone since the folder was listed."""
        return self._listed is not None and self._mark()[0] == self._listed

    def _mark(self) -> tuple[tuple[int, int], int]:
        """What changes with the folder's entries, and how long ago it did, in nanoseconds."""
        found = os.stat(self._folder)
        return (found.st_ino, found.st_mtime_ns), self._clock_ns() - found.st_mtime_ns

    # ---- facts

    def _facts(self) -> _Saved:
        if self._saved is None:
            self._saved = _read(self._folder / FILE)
        return self._saved

    def _others(self, measure: Measure) -> list[tuple[JournalFile, JournalFacts | None]]:
        self._list()
        saved, undone, found = self._facts(), [], []
        for at in self._undone:
            file = self._files[at]
            known = saved.others.get(file.run_id)
            is_known = known is not None and known[0] == file
            facts = known[1] if known is not None and is_known else self._measured(file, measure)
            if file not in saved.done:
                undone.append(at)
                found.append((file, facts))
        self._undone = undone
        if self._unsaved >= _UNSAVED:
            self.save()
        return found

    def _measured(self, file: JournalFile, measure: Measure) -> JournalFacts | None:
        """Read a journal, and remember what it says if its file has come to rest."""
        try:
            facts = measure(file.run_id)
        except ConfigError:
            return None
        saved, movers = self._facts(), self._movers().setdefault(facts.cluster_id, {})
        for pid in self._traced(file.run_id) - facts.traced:
            if movers.get(pid) == file.run_id:
                # Unknown from now on, as if the newest journal about it had vanished.
                movers[pid] = ""
        for pid in facts.traced:
            if order(file.run_id) >= order(movers.get(pid, "")):
                movers[pid] = file.run_id
        saved.others.pop(file.run_id, None)
        saved.traced[file.run_id] = facts.traced
        if self._is_calm(file) and _stated(self._folder, file) == file:
            self._unsaved += 1
            if facts.is_done:
                saved.done[file] = facts.cluster_id
                if saved.done_ids is not None:
                    saved.done_ids.add(file.run_id)
                del saved.traced[file.run_id]
            else:
                saved.others[file.run_id] = file, facts
        return facts

    def _traced(self, run_id: str) -> frozenset[PartitionId]:
        """Partitions that an earlier reading of a journal named."""
        saved = self._facts()
        if run_id in saved.others:
            return saved.others[run_id][1].traced
        if run_id in saved.traced:
            return saved.traced[run_id]
        if saved.done_ids is None:
            saved.done_ids = {file.run_id for file in saved.done}
        if run_id not in saved.done_ids:
            return frozenset()
        # A done run was changed afterwards, which plimsoll never does.
        movers = (runs.items() for runs in self._movers().values())
        return frozenset(pid for runs in movers for pid, mover in runs if mover == run_id)

    def _is_calm(self, file: JournalFile) -> bool:
        return self._clock_ns() - file.changed_ns > _CALM_NS

    def _unfinished(self, cluster_id: str, measure: Measure) -> dict[PartitionId, str] | None:
        """As `unfinished`; None where a journal that would decide it has vanished."""
        others = self._others(measure)
        for file, facts in others:
            if facts is None:
                # Read once more for its error.
                measure(file.run_id)
        still = [
            (file, facts)
            for file, facts in others
            if facts is not None and facts.cluster_id == cluster_id and facts.open
        ]
        if not still:
            return {}
        movers, known = self._movers().get(cluster_id, {}), {file.run_id for file in self._files}
        found: dict[PartitionId, str] = {}
        for file, facts in still:
            for pid in facts.open:
                if movers[pid] not in known:
                    return None
                if movers[pid] == file.run_id:
                    found[pid] = file.run_id
        return found

    def _movers(self) -> dict[str, dict[PartitionId, str]]:
        saved = self._facts()
        if saved.movers_text:
            text, saved.movers_text = saved.movers_text, ""
            for cluster_id, runs in json.loads(text).items():
                saved.movers[cluster_id] = {
                    PartitionId(TopicName(topic), number): run_id
                    for run_id, topics in runs.items()
                    for topic, numbers in topics.items()
                    for number in numbers
                }
        return saved.movers

    # ---- the copy on disk

    def _content(self) -> bytes:
        """The index of the files that are still there."""
        saved = self._facts()
        there = set(self._files)
        saved.done = {
            file: cluster_id
            for file, cluster_id in saved.done.items()
            if file in there and abs(file.changed_ns) < _MOST_NS
        }
        saved.others = {n: o for n, o in saved.others.items() if o[0] in there}
        done: dict[str, list[JournalFile]] = {}
        for file, cluster_id in saved.done.items():
            done.setdefault(cluster_id, []).append(file)
        document = {
            "compared": saved.compared_ns,
            "done": {cluster_id: _columns(files) for cluster_id, files in done.items()},
            "others": [[*file, *_fields(facts)] for file, facts in saved.others.values()],
            "movers": json.dumps(_by_run(self._movers())),
        }
        body = json.dumps(document).encode()
        return _HEAD + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


_indexes: dict[Path, JournalIndex] = {}
_guard: Final = threading.Lock()


def index_of(folder: Path) -> JournalIndex:
    """This process's index of a folder."""
    with _guard:
        found = _indexes.pop(folder, None) or JournalIndex(folder)
        _indexes[folder] = found
        while len(_indexes) > _FOLDERS:
            del _indexes[next(iter(_indexes))]
        return found


def new_run_id(journal_dir: Path, at_ms: int, kind: str) -> str:
    """Return an unused run id, such as `r00000042-20260102T030405678-1a2b3c4d`.

    The number counts the journals in the folder, of all clusters. Older ids without it
    start with the time, and sort first.
    """
    number = 1 + order(index_of(journal_dir).last_id())[0]
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    stamp = f"{at:%Y%m%dT%H%M%S}{at_ms % 1000:03d}"
    return f"r{number:08d}-{stamp}-{kind}"


def _files(
    folder: Path, inodes: Mapping[str, int], believed: Mapping[str, JournalFile]
) -> Iterator[JournalFile]:
    """The journals of runs, oldest first; the file system is not asked about those believed."""
    if not inodes:
        return
    # Names relative to the folder are found faster.
    handle, stat = os.open(folder, os.O_RDONLY), os.stat
    try:
        for run_id, inode in inodes.items():
            known = believed.get(run_id)
            if known is not None and known.inode == inode:
                yield known
                continue
            if is_action(run_id):
                continue
            try:
                found = stat(run_id + SUFFIX, dir_fd=handle)
            except OSError:
                # It vanished meanwhile.
                continue
            yield JournalFile(run_id, found.st_size, found.st_mtime_ns, found.st_ino)
    finally:
        os.close(handle)


def _stated(folder: Path, file: JournalFile) -> JournalFile | None:
    try:
        found = os.stat(f"{folder}/{file.run_id}{SUFFIX}")
    except OSError:
        return None
    return JournalFile(file.run_id, found.st_size, found.st_mtime_ns, found.st_ino)


def _read(path: Path) -> _Saved:
    """The index on disk; empty unless it is whole."""
    try:
        with os.fdopen(plain_file(path, os.O_RDONLY), "rb") as opened:
            data = opened.read()
    except OSError:
        return _Saved()
    head, _, body = data.partition(b"\n")
    if head != _HEAD + hashlib.sha256(body).hexdigest().encode():
        return _Saved()
    document = json.loads(body)
    saved = _Saved(movers_text=document["movers"], compared_ns=document["compared"])
    for cluster_id, columns in document["done"].items():
        saved.done |= zip(_files_of(columns), repeat(cluster_id))
    for run_id, size, changed_ns, inode, *fields in document["others"]:
        file = JournalFile(run_id, size, changed_ns, inode)
        saved.others[run_id] = file, _facts_of(fields)
    return saved


def _columns(files: Sequence[JournalFile]) -> list[Any]:
    """The files by column, and numbers as their bytes: read ten times as fast as in decimal."""
    run_ids, *columns = zip(*files, strict=True)
    numbers = (np.array(column, kind) for column, kind in zip(columns, _NUMBERS, strict=True))
    return [run_ids, *(base64.b64encode(column.tobytes()).decode() for column in numbers)]


def _files_of(columns: Sequence[Any]) -> Iterator[JournalFile]:
    run_ids, *packed = columns
    numbers = (
        np.frombuffer(base64.b64decode(column), kind).tolist()
        for column, kind in zip(packed, _NUMBERS, strict=True)
    )
    return map(JournalFile, run_ids, *numbers)


def _fields(facts: JournalFacts) -> list[Any]:
    return [
        facts.cluster_id,
        facts.is_quiet,
        facts.has_ended,
        [[*pid] for pid in sorted(facts.open)],
        [[*pid] for pid in sorted(facts.traced)],
    ]


def _facts_of(fields: Iterable[Any]) -> JournalFacts:
    cluster_id, is_quiet, has_ended, still_open, traced = fields
    return JournalFacts(
        cluster_id=cluster_id,
        is_quiet=is_quiet,
        has_ended=has_ended,
        is_done=False,
        open=frozenset(PartitionId(TopicName(topic), number) for topic, number in still_open),
        traced=frozenset(PartitionId(TopicName(topic), number) for topic, number in traced),
    )


def _by_run(movers: Mapping[str, Mapping[PartitionId, str]]) -> dict[str, Any]:
    """The same by run, topic and partition, which takes less space."""
    found: dict[str, Any] = {}
    for cluster_id, runs in movers.items():
        by_run = found.setdefault(cluster_id, {})
        for pid, run_id in runs.items():
            by_run.setdefault(run_id, {}).setdefault(pid.topic, []).append(pid.partition)
    return found
