"""Verify through S3 that a source has uploaded AutoMQ's write-ahead log.

A node's log consists of objects in the bucket, which vanish once their content is
uploaded for good (verified with AutoMQ 1.7.3). Closing a partition forces the upload,
so it happens during the move. The log belongs to the whole node, and other partitions
keep writing to it; only objects from before the move count.
"""

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cached_property
from typing import TYPE_CHECKING, Final

from clients.driver_errors import reason_of
from clients.s3 import S3Settings, client_of, listed
from executor.platforms.platform import MoveFinding
from executor.timing import Timing
from model.ids import BrokerId, PartitionId
from model.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LITTLE: Final = 1_000_000
"""Bytes of a log below which it counts as uploaded."""
_WITHIN_S: Final = 5.0
"""Seconds for which a log is watched after a move."""
_EVERY_S: Final = 0.25
_AT_ONCE: Final = 4
_TIMEOUT_S: Final = 2.0
"""Seconds for one answer of S3."""


class AutoMQWal:
    """Lists nodes' logs by AutoMQ's object keys.

    These are `<MD5 of the id>/_kafka_<cluster id>/<node id>/<epoch>/wal/<start>-<end>`;
    `reservation/_kafka_<cluster id>/<node id>` is in the bucket that has a node's log.
    Every call raises as boto3 does, and ValueError where the endpoint is not a URL.
    """

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings

    def connect(self) -> None:
        """Create the client; this sends no request."""
        _ = self._client

    def holds(self, cluster_id: str, broker: BrokerId) -> bool:
        """Whether a broker's log is kept in this bucket."""
        key = f"{self._settings.prefix}reservation/_kafka_{cluster_id}/{broker}"
        return any(found == key for found, _ in self._listed(key))

    def objects(self, cluster_id: str, broker: BrokerId) -> dict[str, int]:
        """Bytes by key of what a broker has not uploaded."""
        found = self._listed(self.folder(cluster_id, broker))
        return {key: size for key, size in found if "/wal/" in key}

    def folder(self, cluster_id: str, broker: BrokerId) -> str:
        """The key prefix of one broker's log."""
        spread = hashlib.md5(str(broker).encode(), usedforsecurity=False).hexdigest()
        folder = f"{spread.upper()}/_kafka_{cluster_id}/{broker}/"
        return self._settings.prefix + folder

    def _listed(self, prefix: str) -> Iterator[tuple[str, int]]:
        return listed(self._client, self._settings.bucket, prefix)

    @cached_property
    def _client(self) -> "S3Client":
        return client_of(self._settings, _TIMEOUT_S)


class WalUploads:
    """Watches sources upload their logs during one run.

    Threads of its own ask S3, so that a slow S3 does not delay moves.
    """

    def __init__(self, wal: AutoMQWal, timing: Timing, within_s: float = _WITHIN_S) -> None:
        self._wal = wal
        self._timing = timing
        self._within_s = within_s
        self._pool = ThreadPoolExecutor(_AT_ONCE, "wal")
        self._before: dict[PartitionId, Future[dict[str, int]]] = {}
        """The source's objects when each move began."""
        self._looks: dict[PartitionId, Future[MoveFinding]] = {}
        self._unseen: dict[PartitionId, MoveFinding] = {}

    def prepare(self) -> None:
        """Create a client early, so that the log is seen as soon as a move begins.

        A failure here recurs when the bucket is polled, and is reported then.
        """
        wait([self._pool.submit(self._wal.connect)], _TIMEOUT_S)

    def begin(self, cluster_id: str, sources: Mapping[PartitionId, BrokerId]) -> None:
        """List the logs of brokers that partitions are about to leave; returns at once."""
        before = {
            source: self._pool.submit(self._held, cluster_id, source)
            for source in sorted(set(sources.values()))
        }
        self._before |= {pid: before[source] for pid, source in sources.items()}

    def look(self, pid: PartitionId, cluster_id: str, source: BrokerId) -> None:
        """Watch the log of a completed move's source; returns at once."""
        before = self._before.get(pid)
        if before is None:
            self._unseen[pid] = _unknown(
                f"whether broker {source} has uploaded its write-ahead log is unknown: another "
                "process started the move, so the log from before it was not seen"
            )
            return
        now_s = self._timing.steady_s()
        look = self._pool.submit(self._look, before, cluster_id, source, now_s)
        self._looks[pid] = look

    def seen(self) -> dict[PartitionId, MoveFinding]:
        """What was found after each move; waits a bounded time for the last ones."""
        wait(self._looks.values(), self._within_s + _TIMEOUT_S)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return self._unseen | {pid: _finding_of(look) for pid, look in self._looks.items()}

    def _held(self, cluster_id: str, source: BrokerId) -> dict[str, int]:
        held = self._wal.objects(cluster_id, source)
        if not self._wal.holds(cluster_id, source):
            raise LookupError(f"the bucket has no log of broker {source}")
        return held

    def _look(
        self, before: Future[dict[str, int]], cluster_id: str, source: BrokerId, done_at_s: float
    ) -> MoveFinding:
        # It was submitted earlier, so some thread is already running it.
        held = before.result()
        while True:
            now = self._wal.objects(cluster_id, source)
            left = sum(size for key, size in held.items() if key in now)
            after_s = self._timing.steady_s() - done_at_s
            if left < LITTLE or after_s >= self._within_s:
                return _seen(source, sum(held.values()), left, after_s)
            self._timing.pause(_EVERY_S)


def _seen(source: BrokerId, held: int, left: int, after_s: float) -> MoveFinding:
    much = "under 1 MB" if left < LITTLE else "1 MB or more"
    note = (
        f"{much} of broker {source}'s write-ahead log from before the move is left: "
        f"{bytes_text(left)} of {bytes_text(held)}, {seconds_text(after_s)} after it, "
        "seen through S3"
    )
    detail = {"wal_bytes_before": held, "wal_bytes_left": left, "after_s": round(after_s, 3)}
    return MoveFinding(note=note, detail=detail)


def _finding_of(look: Future[MoveFinding]) -> MoveFinding:
    """The finding of one watch, with any error in words."""
    if look.cancelled() or not look.done():
        return _unseen("no answer in time")
    error = look.exception()
    if isinstance(error, Exception):
        return _unseen(reason_of(error))
    return look.result()


def _unseen(reason: str) -> MoveFinding:
    return _unknown(f"the write-ahead log cannot be read through S3 ({reason})")


def _unknown(note: str) -> MoveFinding:
    return MoveFinding(note=note, detail={"wal_bytes_before": None, "wal_bytes_left": None})
