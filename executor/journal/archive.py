"""Runs in an S3 bucket, so that another host can resume them.

S3 has no append, so a journal is a sequence of pieces, each named after its first record:

    <cluster id>/runs/<run id>/plan.json
    <cluster id>/runs/<run id>/0000000000.jsonl     records 0, 1 and 2
    <cluster id>/runs/<run id>/0000000003.jsonl     records 3 and so on

A piece is created only if its name is unused (If-None-Match), and only by a writer that knows
all earlier pieces. So every record has a single writer: a process that is not aware of a piece
writes to its name, and fails. The plan is uploaded before the first piece.
"""

import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Final

from clients.s3 import Bucket, S3Settings
from executor.journal.lease import SPARE_S, Lease, LeaseSettings, this_process
from executor.journal.records import JournalDamage, scan
from executor.journal.run_journal import (
    CORDON,
    Action,
    backup_path,
    is_action,
    kind_of,
    of_plans,
    order,
    plan_path,
    run_path,
    whole_lines,
)
from executor.timing import Timing
from model.errors import ArchiveUnreachable, ConfigError, PlimsollError, WriterBarred
from model.files import canonical, make_folder, replace_file
from model.log_events import LogEvent, named
from model.paths import path_part
from model.plan.plan import Plan, read_plan
from model.run import JournalEvent

_SUFFIX: Final = ".jsonl"
_PLAN: Final = "plan.json"
_ASIDE: Final = ".set-aside"
_RECENT_S: Final = 24 * 3600.0
_AGAIN_S: Final = 1.0
_MAY_WAIT: Final = (
    JournalEvent.PREPARED,
    JournalEvent.ISSUED,
    JournalEvent.MOVED,
    JournalEvent.NOTED,
    JournalEvent.DROPPED,
    JournalEvent.STUCK,
)
"""Records that announce no request; they are archived with the next one that does."""
_LAST: Final = (
    JournalEvent.UNTHROTTLED,
    JournalEvent.BALANCER_RESTORED,
    JournalEvent.SEGMENTS_RESTORED,
    JournalEvent.ENDED,
)
"""Nothing is sent after these, so the run may end even if they cannot be archived."""
_LEASES: Final = LeaseSettings()
_log = logging.getLogger("plimsoll.executor")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive records of a run, as one object."""

    key: str
    first: int
    """Number of its first record, from 0."""
    size: int


class Archive:
    """The runs of clusters in a bucket, and the lease on each cluster. One thread uses it.

    Every call raises as `Bucket` does, and ConfigError for objects that cannot be read.
    """

    def __init__(self, bucket: Bucket, lease: Lease, timing: Timing) -> None:
        self.lease = lease
        self.bucket = bucket
        self.timing = timing

    @contextlib.contextmanager
    def sole_writer(self, journal_dir: Path, cluster_id: str, stop: Event) -> Iterator[None]:
        """Hold the lease, after synchronising the archive and the local journals."""
        folder = _folder(cluster_id)
        with self.lease.held(cluster_id, stop):
            for run_id, pieces in self._needed(journal_dir, folder, None).items():
                self._download(journal_dir, folder, run_id, pieces)
                self._run(journal_dir, folder, run_id, pieces, None).catch_up()
            yield

    def fetch(
        self,
        journal_dir: Path,
        cluster_id: str,
        run_id: str | None = None,
        plans: Collection[str] = (),
    ) -> None:
        """Download runs of a cluster: the newest, those of the last day, all since `run_id`.

        Of any age: cordons, and runs of the plans with these hashes. A shorter local journal is
        replaced. A diverging one, whose writer has lost the lease, is renamed: its extra records
        either were never acted on, or can be read from the cluster.
        """
        folder = _folder(cluster_id)
        for found, pieces in self._needed(journal_dir, folder, run_id, plans).items():
            self._download(journal_dir, folder, found, pieces)

    def fetch_cordons(self, journal_dir: Path, cluster_id: str) -> None:
        """Download the journals of a cluster's cordons alone, of any age; as `fetch`."""
        folder = _folder(cluster_id)
        cordons = _cordons(journal_dir, self.bucket.folders(folder))
        for found, pieces in self._named(folder, cordons).items():
            self._download(journal_dir, folder, found, pieces)

    def sink(
        self, journal_dir: Path, plan: Plan | Action, run_id: str
    ) -> Callable[[JournalEvent, bytes], None]:
        """Return the function that archives records of a run, after downloading its pieces."""
        folder = _folder(plan.cluster_id)
        pieces = self._pieces(folder, run_id).get(run_id, [])
        if pieces:
            self._download(journal_dir, folder, run_id, pieces)
        return self._run(journal_dir, folder, run_id, pieces, plan)

    def _run(
        self,
        journal_dir: Path,
        folder: str,
        run_id: str,
        pieces: Sequence[_Piece],
        plan: Plan | Action | None,
    ) -> "_ArchivedRun":
        path = run_path(journal_dir, run_id)
        here = whole_lines(path) if path.exists() else b""
        there = sum(piece.size for piece in pieces)
        if here[there:]:
            self._refuse_damage(path, scan(here, run_id).damage)
        return _ArchivedRun(
            archive=self,
            folder=f"{folder}{run_id}/",
            plan=canonical(plan.model_dump(mode="json"))
            if isinstance(plan, Plan) and not pieces
            else None,
            next_record=here[:there].count(b"\n"),
            missing=here[there:],
        )

    @staticmethod
    def _refuse_damage(path: Path, damage: Sequence[JournalDamage]) -> None:
        """Refuse to archive records that cannot be read: other hosts would continue from them."""
        if damage:
            raise ConfigError(
                f"the journal {path} is damaged: {damage[0]}. It is not archived like this, so "
                f"nothing is sent; repair it with plimsoll journal repair {path.stem}."
            )

    def _needed(
        self, journal_dir: Path, folder: str, run_id: str | None, plans: Collection[str] = ()
    ) -> Mapping[str, list[_Piece]]:
        """Pieces by run: as `fetch`. Cordons hold until they are ended, whatever their age."""
        names = self.bucket.folders(folder)
        recent = self._recent(folder, names, run_id)
        lasting = [*_cordons(journal_dir, names), *of_plans(names, plans)]
        return {**self._named(folder, (n for n in lasting if n not in recent)), **recent}

    def _recent(
        self, folder: str, names: Sequence[str], run_id: str | None
    ) -> Mapping[str, list[_Piece]]:
        """Pieces by run, oldest first: the newest run and all of the last day."""
        day_ago = datetime.fromtimestamp(self.timing.now_s() - _RECENT_S, UTC)
        recent = [n for n in names if _stamp(n) >= f"{day_ago:%Y%m%dT%H%M%S}"]
        requested = [*recent[:1], *([run_id] if run_id else ())]
        for newest in reversed([n for n in names if not is_action(n)]):
            # A run without a piece was interrupted before it started.
            if found := self._pieces(folder, min([newest, *requested])):
                return found
        return {}

    def _pieces(self, folder: str, first_run: str) -> dict[str, list[_Piece]]:
        return _by_run(folder, self.bucket.sizes(folder, first_run))

    def _named(self, folder: str, run_ids: Iterable[str]) -> dict[str, list[_Piece]]:
        sizes = {
            f"{run_id}/{name}": size
            for run_id in run_ids
            for name, size in self.bucket.sizes(f"{folder}{run_id}/").items()
        }
        return _by_run(folder, sizes)

    def _download(
        self, journal_dir: Path, folder: str, run_id: str, pieces: Sequence[_Piece]
    ) -> None:
        path = run_path(journal_dir, run_id)
        try:
            here = whole_lines(path) if path.exists() else b""
            if self._is_here(here, pieces, run_id) and _has_plan(journal_dir, run_id):
                return
            there = _merged(self._read(run_id, pieces), here, run_id)
            make_folder(journal_dir)
            if not there.startswith(here):
                path.rename(backup_path(path, _ASIDE))
            if not is_action(run_id):
                replace_file(plan_path(journal_dir, run_id), self._plan_bytes(folder, run_id))
            replace_file(path, there)
        except OSError as exc:
            raise ConfigError(
                f"{path} cannot be downloaded from the archive ({exc.strerror}). Set "
                "state_dir to a writable folder."
            ) from exc

    def _is_here(self, here: bytes, pieces: Sequence[_Piece], run_id: str) -> bool:
        """Compare the last piece only: journals that have diverged never become equal again."""
        if scan(here, run_id).damage:
            return False
        *before, last = pieces
        begin = sum(piece.size for piece in before)
        found = self.bucket.get(last.key) if len(here) >= begin + last.size else None
        return found is not None and here[begin:].startswith(found.body)

    def _read(self, run_id: str, pieces: Sequence[_Piece]) -> bytes:
        lines: list[bytes] = []
        for piece in pieces:
            found = self.bucket.get(piece.key)
            new = found.body.splitlines(keepends=True) if found else []
            if piece.first != len(lines) or not new:
                raise self._changed(piece, f"does not begin with record {len(lines)}")
            lines += new
        whole = b"".join(lines)
        for damage in scan(whole, run_id).damage:
            piece = next(p for p in reversed(pieces) if p.first < damage.line)
            number = damage.line - piece.first
            raise self._changed(piece, f"is damaged: line {number} {damage.problem}")
        return whole

    def _changed(self, piece: _Piece, problem: str) -> ConfigError:
        return ConfigError(
            f"{self.bucket.where(piece.key)} {problem}. Someone has changed the "
            "archive: restore its objects, or move the run out of it."
        )

    def _plan_bytes(self, folder: str, run_id: str) -> bytes:
        key = f"{folder}{run_id}/{_PLAN}"
        found = self.bucket.get(key)
        if found is None:
            raise ConfigError(f"{self.bucket.where(key)} is missing; restore it.")
        return found.body


@dataclass(slots=True, kw_only=True)
class _ArchivedRun:
    """Uploads the journal of one run."""

    archive: Archive
    folder: str
    plan: bytes | None
    """None once it is known to be archived."""
    next_record: int
    """Number of the first record not archived yet."""
    missing: bytes
    """The lines from that record on."""
    tried: bytes = b""
    """Lines sent without an answer, which may be archived."""

    def __call__(self, event: JournalEvent, lines: bytes) -> None:
        """Archive these records, before they are acted on.

        Raises WriterBarred where that is impossible.
        """
        self.missing += lines
        if event in _MAY_WAIT:
            return
        try:
            self._archive(patient=event not in _LAST)
        except WriterBarred as exc:
            if event not in _LAST:
                raise
            _log.warning(
                "the archive lacks the end of this run: %s",
                exc,
                extra=named(LogEvent.ARCHIVE_FAILED),
            )

    def catch_up(self) -> None:
        """Archive records that could not be archived when written; raises as a call does."""
        if self.missing:
            self._archive(patient=True)

    def _archive(self, *, patient: bool) -> None:
        while True:
            # This ends the wait, too: the lease cannot be renewed without the bucket.
            self.archive.lease.need()
            try:
                return self._put_all()
            except ArchiveUnreachable as exc:
                if not patient:
                    raise self._barred(exc) from exc
                _log.debug("%s", exc, extra=named(LogEvent.ARCHIVE_FAILED))
                self.archive.timing.pause(_AGAIN_S)
            except WriterBarred:
                raise
            except PlimsollError as exc:
                raise self._barred(exc) from exc

    def _put_all(self) -> None:
        if self.plan is not None:
            self._put(_PLAN, self.plan)
            self.plan = None
        while self.missing:
            self.tried = self.tried or self.missing
            self._put(f"{self.next_record:010d}{_SUFFIX}", self.tried)
            self.next_record += self.tried.count(b"\n")
            self.missing = self.missing[len(self.tried) :]
            self.tried = b""

    def _put(self, name: str, body: bytes) -> None:
        key = self.folder + name
        if self.archive.bucket.put_new(key, body) is None:
            raise WriterBarred(
                f"another process has written {self.archive.bucket.where(key)}, so nothing "
                "further is sent; continue from there with plimsoll run --resume"
            )

    @staticmethod
    def _barred(exc: PlimsollError) -> WriterBarred:
        return WriterBarred(f"the journal cannot be archived, so nothing further is sent: {exc}")


def archive_of(
    settings: S3Settings,
    timing: Timing,
    *,
    call_s: float,
    slowest_s: float,
    late_s: float,
    leases: LeaseSettings = _LEASES,
) -> Archive:
    """Open the archive in a bucket for this process; the rest as `archive_in`."""
    return archive_in(
        Bucket(settings),
        timing,
        call_s=call_s,
        slowest_s=slowest_s,
        late_s=late_s,
        leases=leases,
        holder=this_process(),
    )


def archive_in(
    bucket: Bucket,
    timing: Timing,
    *,
    call_s: float,
    slowest_s: float,
    late_s: float,
    leases: LeaseSettings,
    holder: str,
) -> Archive:
    """The archive in a bucket, with leases in the name of `holder`.

    `call_s`: the longest time in seconds until a request that is sent is answered or given up.
    `slowest_s`: the same with all that a call does before it sends its request.
    `late_s`: as of `Lease`.
    """
    lease = Lease(
        bucket,
        timing,
        call_s=call_s,
        spare_s=slowest_s + SPARE_S - call_s if leases.spare_s is None else leases.spare_s,
        late_s=late_s,
        holder=holder,
        idle_s=leases.idle_s,
        sightings=leases.sightings,
    )
    return Archive(bucket, lease, timing)


def _folder(cluster_id: str) -> str:
    return f"{path_part(cluster_id)}/runs/"


def _stamp(run_id: str) -> str:
    """The start time in a run id, without the counter."""
    return run_id.partition("-")[2] if order(run_id)[0] else run_id


def _by_run(folder: str, sizes: Mapping[str, int]) -> dict[str, list[_Piece]]:
    """Pieces by run, of the objects with these names and sizes."""
    found: dict[str, list[_Piece]] = defaultdict(list)
    for name, size in sizes.items():
        run_id, _, piece = name.partition("/")
        number = piece.removesuffix(_SUFFIX)
        if piece != number and number.isdecimal():
            found[run_id].append(_Piece(folder + name, int(number), size))
    return found


def _cordons(journal_dir: Path, names: Iterable[str]) -> list[str]:
    """Those of these runs that are cordons, and whose journals are not here to their end."""
    return [n for n in names if kind_of(n) == CORDON and not _has_ended(journal_dir, n)]


def _has_ended(journal_dir: Path, run_id: str) -> bool:
    """Whether the local journal is undamaged, and has the run's end."""
    path = run_path(journal_dir, run_id)
    found = scan(whole_lines(path), run_id) if path.exists() else None
    if found is None or found.damage or not found.records:
        return False
    return found.records[-1].event is JournalEvent.ENDED


def _has_plan(journal_dir: Path, run_id: str) -> bool:
    """Whether the local plan can be read, where there has to be one."""
    if is_action(run_id):
        return True
    with contextlib.suppress(ConfigError):
        read_plan(plan_path(journal_dir, run_id))
        return True
    return False


def _merged(there: bytes, here: bytes, run_id: str) -> bytes:
    """The archived journal, with later local records of the same journal.

    A damaged local journal is replaced; its last records may not have been archived.
    """
    known = scan(there, run_id).records
    found = scan(here, run_id)
    last = known[-1] if known else None
    if not found.damage or last is None or last.sequence is None:
        return there
    for intact in found.intact:
        if intact.number > last.sequence:
            if intact.record.previous != last.checksum:
                break
            there, last = there + intact.raw + b"\n", intact.record
    return there
