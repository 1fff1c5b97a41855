"""The local cluster as a whole: brokers, S3 and their temporary folder."""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Self, TypeVar

from clients.jvm.jars import JarPin, JarProgress, fetch
from clients.jvm.java import Java, find_java
from lab.local_cluster.class_archive import class_flags
from lab.local_cluster.kafka_versions import kafka_pins, s3_pins
from lab.local_cluster.local_brokers import READY_S, LocalKafka, LocalPlan
from lab.local_cluster.processes import Processes
from lab.local_cluster.s3proxy import LocalS3
from model.closing import Closing
from model.errors import ClusterUnreachable, ExecutionStopped

__all__ = ["LocalCluster", "LocalPlan"]

_PREFIX: Final = "plimsoll-"
_STOPPED: Final = "The local cluster was stopped while it started."
_log = logging.getLogger("plimsoll.lab")
_T = TypeVar("_T")


def _ignore(_news: object) -> None:
    """Ignore progress."""


class LocalCluster(Closing):
    """Kafka brokers with a remote tier and S3 for it, in a temporary folder.

    `start` downloads missing jars, starts everything and waits; `close` kills all
    processes and removes the folder, as the reaper does when this process dies. Any
    thread may call either; `close` also during `start`, and repeatedly.
    """

    def __init__(self, cache_dir: Path, plan: LocalPlan | None = None) -> None:
        self._cache_dir = cache_dir
        self._plan = plan or LocalPlan()
        self._lock = Lock()
        self._stopped = False
        self._processes: Processes | None = None
        self._kafka: LocalKafka | None = None
        self._s3: LocalS3 | None = None

    def start(
        self,
        on_step: Callable[[str], None] = _ignore,
        on_download: Callable[[JarProgress], None] = _ignore,
    ) -> None:
        """Start the cluster and wait until it is ready.

        on_step: receives each step in a few words; on_download: progress of downloads.

        Raises
        ------
        DownloadFailed
            A jar is missing and cannot be downloaded.
        PortTaken
            A requested port is in use.
        ClusterUnreachable
            The cluster did not start; the message names the folder with the logs.
        ExecutionStopped
            `close` was called.
        """
        try:
            self._start(on_step, on_download)
        except (ClusterUnreachable, OSError) as exc:
            stopped, kept = self._stopped, self._keep_logs()
            self.close()
            if stopped:
                raise ExecutionStopped(_STOPPED) from exc
            if kept is None:
                raise
            raise ClusterUnreachable(f"{exc}\nThe logs are in {kept}.") from exc
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill all processes and remove the folder."""
        with self._lock:
            self._stopped = True
            processes = self._processes
        if processes is not None:
            processes.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    @property
    def folder(self) -> Path:
        """Temporary folder that `close` removes."""
        return self.processes.folder

    @property
    def processes(self) -> Processes:
        """The child processes; load generators join them."""
        return _started(self._processes)

    @property
    def kafka(self) -> LocalKafka:
        """The brokers."""
        return _started(self._kafka)

    @property
    def s3(self) -> LocalS3:
        """S3 over the remote tier; only with a tier."""
        return _started(self._s3)

    @property
    def bootstrap(self) -> str:
        """Host and port of every broker, as clients take them."""
        return self.kafka.bootstrap

    @property
    def cluster_id(self) -> str:
        """Kafka's id of this cluster."""
        return self.kafka.cluster_id

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name: broker-1, s3, producer."""
        return self.processes.pids

    def create_topic(
        self,
        name: str,
        assignment: Sequence[Sequence[int]],
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic with these replicas per partition, preferred leader first.

        An existing topic is left unchanged. Raises ClusterUnreachable.
        """
        self.kafka.admin.create_topic(name, assignment, configs or {}, timeout_s=READY_S)

    def _start(
        self, on_step: Callable[[str], None], on_download: Callable[[JarProgress], None]
    ) -> None:
        def download_unless_stopped(news: JarProgress) -> None:
            self._check_not_stopped()
            on_download(news)

        def jars(pins: Sequence[JarPin]) -> tuple[Path, ...]:
            return fetch(pins, self._cache_dir, download_unless_stopped)

        kafka_jars = jars(kafka_pins(self._plan.version))
        s3_jars = jars(s3_pins()) if self._plan.tier else ()
        java = self._plan.java or find_java()
        on_step(f"jars and Java {java.version} found")
        processes = self._open_folder()
        self._launch(processes, java, kafka_jars, s3_jars)
        on_step("brokers and S3 launched" if self._s3 else "brokers launched")
        self.kafka.wait_ready(on_step)
        if self._s3 is not None:
            self._s3.wait_ready(on_step)

    def _open_folder(self) -> Processes:
        with self._lock:
            self._check_not_stopped()
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
            self._processes = Processes(folder)
        return self._processes

    def _launch(
        self, processes: Processes, java: Java, kafka_jars: Sequence[Path], s3_jars: Sequence[Path]
    ) -> None:
        tier_dir = processes.folder / "tier" if self._plan.tier else None
        flags = class_flags(java, self._plan.version, self._cache_dir)
        self._kafka = LocalKafka(processes, kafka_jars, java, self._plan, tier_dir, flags)
        if tier_dir is not None:
            tier_dir.mkdir()
            self._s3 = LocalS3(processes, s3_jars[0], java, tier_dir)
            self._s3.launch()
        self._kafka.launch()

    def _check_not_stopped(self) -> None:
        if self._stopped:
            raise ExecutionStopped(_STOPPED)

    def _keep_logs(self) -> Path | None:
        if self._processes is None or self._stopped:
            return None
        kept = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}logs-"))
        try:
            return self._processes.keep_logs(kept)
        except OSError as exc:
            _log.warning("The logs of the local cluster could not be copied: %s", exc)
            return None


def _started(part: _T | None) -> _T:
    if part is None:
        raise ExecutionStopped(
            "The local cluster has not been started, or was created without this part."
        )
    return part
