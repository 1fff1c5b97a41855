"""Pinned jars: downloaded once from Maven Central, verified, kept in the cache."""

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from model.errors import DownloadFailed

MAVEN_CENTRAL: Final = "https://repo.maven.apache.org/maven2"

SPARK_KAFKA_PINS: Final = Path(__file__).with_name("jars.tsv")
"""Pins of the set `spark-kafka`: Spark's Kafka connector and its dependencies."""

_PARALLEL_DOWNLOADS: Final = 4
_ATTEMPTS: Final = 2
_TIMEOUT_S: Final = 20
_STEP_BYTES: Final = 250_000
_log = logging.getLogger("plimsoll.collector")
# Without a handler, Python would print jgo's warnings on the terminal.
logging.getLogger("jgo").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, kw_only=True)
class JarPin:
    """One jar, identified by its Maven coordinate and verified by its checksum."""

    coordinate: str
    """Maven's `group:artifact:version` or `group:artifact:version:classifier`."""
    size_bytes: int
    sha256: str
    """64 lower case hexadecimal digits."""

    @property
    def file_name(self) -> str:
        """The jar's name in the cache, the same as on Maven Central."""
        return "-".join(self.coordinate.split(":")[1:]) + ".jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarProgress:
    """Progress of a download, in bytes of the jars that were missing."""

    file_name: str
    """The jar that the newest bytes belong to."""
    done_bytes: int
    total_bytes: int


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `PLIMSOLL_CACHE_DIR`, else the system's cache folder of the user."""
    if chosen := environ.get("PLIMSOLL_CACHE_DIR"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # only needed here; spares start-up

    return user_cache_path("plimsoll")


def read_pins(tsv: Path, set_name: str) -> tuple[JarPin, ...]:
    """Read the pins of one set, in the order of the file.

    tsv: tab-separated columns set, coordinate, bytes, sha256, below a header line.
    Raises KeyError where the file has no such set.
    """
    rows = [line.split("\t") for line in tsv.read_text("utf-8").splitlines()[1:]]
    pins = tuple(
        JarPin(coordinate=row[1], size_bytes=int(row[2]), sha256=row[3])
        for row in rows
        if row[0] == set_name
    )
    if not pins:
        raise KeyError(set_name)
    return pins


def fetch(
    pins: Sequence[JarPin],
    cache_dir: Path,
    progress: Callable[[JarProgress], None] | None = None,
    *,
    repository: str = MAVEN_CENTRAL,
) -> tuple[Path, ...]:
    """Return the jars' paths under `cache_dir/jars`, in the order of the pins.

    Missing and altered jars are downloaded; every file is verified each time, which
    takes 0.15 s per 100 MB. `progress` is called from several threads, one at a time.
    Raises DownloadFailed where a jar cannot be downloaded, or the folder not written.
    """
    folder = cache_dir / "jars"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        missing = [pin for pin in pins if not _is_pinned(folder / pin.file_name, pin)]
    except OSError as exc:
        raise DownloadFailed(
            f"The cache folder {folder} cannot be used ({exc.strerror}). Set "
            "PLIMSOLL_CACHE_DIR to a writable folder."
        ) from exc
    if missing:
        _download_all(missing, folder, _Meter(missing, progress), repository)
    return tuple(folder / pin.file_name for pin in pins)


def is_fetched(pins: Sequence[JarPin], cache_dir: Path) -> bool:
    """Whether all jars are in the cache with their pinned checksums."""
    return all(_is_pinned(cache_dir / "jars" / pin.file_name, pin) for pin in pins)


class _Meter:
    """Sums the progress of several downloads, as a progress callback of jgo."""

    def __init__(
        self, pins: Sequence[JarPin], progress: Callable[[JarProgress], None] | None
    ) -> None:
        self._total_bytes = sum(pin.size_bytes for pin in pins)
        self._done_bytes = 0
        self._reported_bytes = 0
        self._progress = progress
        self._lock = Lock()

    @contextmanager
    def __call__(self, file_name: str, _size: int) -> Iterator[Callable[[int], None]]:
        yield lambda grown_bytes: self._add(file_name, grown_bytes)

    def _add(self, file_name: str, grown_bytes: int) -> None:
        with self._lock:
            self._done_bytes = min(self._done_bytes + grown_bytes, self._total_bytes)
            # jgo calls every 8 kB; a screen shows a few hundred steps at most.
            step_bytes = min(self._total_bytes // 500, _STEP_BYTES)
            at_end = self._done_bytes == self._total_bytes
            if at_end or self._done_bytes - self._reported_bytes >= step_bytes:
                self._reported_bytes = self._done_bytes
                self._report(file_name)

    def _report(self, file_name: str) -> None:
        if self._progress is not None:
            self._progress(
                JarProgress(
                    file_name=file_name, done_bytes=self._done_bytes, total_bytes=self._total_bytes
                )
            )


def _download_all(pins: Sequence[JarPin], folder: Path, meter: _Meter, repository: str) -> None:
    with ThreadPoolExecutor(_PARALLEL_DOWNLOADS, "plimsoll-jars") as pool:
        waiting = [pool.submit(_download, pin, folder, meter, repository) for pin in pins]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _download(pin: JarPin, folder: Path, meter: _Meter, repository: str) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
                jar = _resolve(pin, Path(part), meter, repository)
                _check(jar, pin)
                jar.replace(folder / pin.file_name)
            return
        # requests' errors are OSErrors; jgo raises RuntimeError for "not found".
        except (OSError, RuntimeError) as exc:
            _log.debug("%s, attempt %d: %s", pin.coordinate, attempt, exc)
            if attempt == _ATTEMPTS:
                raise DownloadFailed(
                    f"{pin.coordinate} could not be downloaded from {repository} "
                    f"({_reason(exc)}). Connect this machine to the network once, or "
                    "set PLIMSOLL_CACHE_DIR to a cache that was filled elsewhere."
                ) from exc


def _resolve(pin: JarPin, part: Path, meter: _Meter, repository: str) -> Path:
    """Download one artifact of an exact version, without its dependencies."""
    from jgo.maven import MavenContext, PythonResolver  # 0.1 s, only for a download

    group, artifact, version, *classifier = pin.coordinate.split(":")
    context = MavenContext(
        resolver=PythonResolver(progress_callback=meter),
        repo_cache=part,
        local_repos=[],
        remote_repos={"repository": repository},
        timeout=_TIMEOUT_S,
    )
    component = context.project(group, artifact).at_version(version)
    return component.artifact(*classifier).resolve()


def _check(jar: Path, pin: JarPin) -> None:
    if not _is_pinned(jar, pin):
        raise DownloadFailed(
            f"{pin.coordinate} does not have the pinned SHA-256 checksum; the file was "
            "removed. Try again, and check for a proxy that alters downloads."
        )


def _is_pinned(jar: Path, pin: JarPin) -> bool:
    if not jar.is_file() or jar.stat().st_size != pin.size_bytes:
        return False
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == pin.sha256


def _reason(exc: BaseException) -> str:
    """The message of the innermost cause: the outer ones quote whole requests."""
    while exc.__context__ is not None:
        exc = exc.__context__
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return str(exc).split("\n", 1)[0] or type(exc).__name__
