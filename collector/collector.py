"""Watches one cluster: probe, Spark and metadata become snapshots."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from clients.connection import Connection
from clients.driver_configs import spark_options
from clients.jvm.java import find_java
from collector.assemble import FRESH_MS, assemble, newest_vectors
from collector.broker_log_dirs import with_capacities, with_directories
from collector.brokers.fan_out import Silence
from collector.brokers.slow_brokers import SlowBroker
from collector.brokers.topic_recreation import TopicRecreations
from collector.collector_settings import CollectorSettings
from collector.group_lag import consumer_lag
from collector.history.forecast_slots import SlotForecaster
from collector.history.vector_files import VectorFiles
from collector.load_changes import NO_CHANGES, LoadChanges, load_changes
from collector.metadata import ClusterReader, ClusterState
from collector.probe import Probe
from collector.reports.reporters import Reporters
from collector.samples import SAMPLES, not_ahead
from collector.samples_topic import SamplesTopic
from collector.spark.batching import SampleBatch, Sink
from collector.spark.kafka_connector import Connector
from collector.spark.vectors import VECTORS, Window, concatenate, load_vectors
from collector.spool import Spool
from collector.state_dir import StateFolder, claim, discard_old
from model.closing import Closing
from model.errors import ClusterUnreachable, PlimsollError
from model.ids import BrokerId, TopicName
from model.paths import path_part
from model.snapshot.consumer_lag import ConsumerLag
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, BrokerState, Snapshot
from model.snapshot.steadiness import Steadiness
from model.units import seconds_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from collector.spark.shared import SparkUse
    from collector.spark.stream import Job, LoadStream

LOST_S: Final = 30.0
"""A cluster that was seen and does not answer for this long is lost."""
CATCH_UP_SHARE: Final = 0.9
"""Loads are measured here for such a share of a window at most, while the streaming job is
late."""
_log = logging.getLogger("plimsoll.collector")


class Collector(Closing):
    """Snapshots of one cluster, made in the background.

    One thread polls metadata and takes samples; another starts Spark meanwhile and
    then waits on the streaming job, which hands out vectors in a thread of its own.
    Everything public may be used from any thread. `on_batch` sees what each of the
    job's batches read and the vectors at its end.
    """

    def __init__(
        self,
        connection: Connection,
        settings: CollectorSettings,
        *,
        clock: Callable[[], float] = time.time,
        on_batch: Callable[[pa.Table, pa.Table], None] | None = None,
    ) -> None:
        self._connection, self._settings, self._clock = connection, settings, clock
        self.reporters = Reporters(settings.metric_topics, clock, polled=settings.polled)
        """The metrics reporters of the cluster, and the state of each."""
        self._on_batch = on_batch
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self.cluster: ClusterState | None = None
        """The latest placement; None before the first metadata response."""
        self._snapshot: Snapshot | None = None
        self._steadiness: Steadiness | None = None
        self._early: pa.Table | None = SAMPLES.empty_table()
        """Samples until the streaming job has caught up; None afterwards."""
        self._early_since_ms: int | None = None
        """Time of the first of those, milliseconds since the epoch."""
        self._early_whole = False
        """Whether those samples are enough, by the settings."""
        self._streamed = False
        """Whether the streaming job has given loads that include samples of this process."""
        self._since_ms = 0
        """When this process first saw the cluster, milliseconds since the epoch."""
        self.vectors = VECTORS.empty_table()
        """The latest load vectors, schema `VECTORS`, with the source of each figure."""
        self._recreations = TopicRecreations()
        self.silent: tuple[Silence, ...] = ()
        """Registered brokers that did not answer for the latest sample, by id."""
        self._slow: tuple[SlowBroker, ...] = ()
        self._sampled = False
        self._samples: tuple[pa.Table | None, pa.Table | None] = None, None
        """The last sample but one, and the last one."""
        self._ahead = SlotForecaster(settings.history.horizon, clock)
        self.failure: PlimsollError | None = None
        """The error that ended the watching; None while it continues."""
        self._folder: StateFolder | None = None
        self._spark: SparkUse | None = None
        self._session: SparkSession | None = None
        self._connector: Connector | None = None
        self._stream: LoadStream | None = None
        self._threads = [
            threading.Thread(
                target=self._guarded, args=(work,), name=f"plimsoll-{name}", daemon=True
            )
            for name, work in (
                ("watch", self._watch),
                ("spark", self._run_spark),
                ("history", self._keep_history),
            )
        ]

    def start(self) -> None:
        """Start the threads that watch the cluster; returns at once."""
        self.reporters.start()
        for thread in self._threads:
            thread.start()

    def brokers(self) -> tuple[Broker, ...]:
        """Brokers of the latest metadata, by id; empty before the first response."""
        cluster = self.cluster
        return cluster.brokers if cluster is not None else ()

    def replication(self) -> Replication | None:
        """Number of under-replicated and offline partitions; None before a response."""
        cluster = self.cluster
        return cluster.replication if cluster is not None else None

    def consumer_lag(self, topics: Collection[TopicName]) -> ConsumerLag | None:
        """Lag of all groups that have committed on these topics; None if none has."""
        before, samples = self._samples
        return None if samples is None else consumer_lag(before, samples, topics)

    def slow(self) -> Mapping[BrokerId, str]:
        """Brokers that answer much later than the others, for minutes, with the times in words."""
        return {found.broker: found.words() for found in self._slow}

    def snapshot(self) -> Snapshot | None:
        """The latest snapshot, loads included; None until loads have been measured.

        The first ones come before Spark has started; `wait` passes them over.
        """
        return self._snapshot

    def steadiness(self) -> Steadiness | None:
        """How steady the loads of the latest snapshot are; None where that is not known."""
        return self._steadiness

    def ahead_s(self) -> float:
        """Seconds by which the newest samples are ahead, if all are left out for it; else 0."""
        stream = self._stream
        return 0.0 if stream is None else stream.ahead_s

    @property
    def folder(self) -> Path | None:
        """Folder of samples, checkpoints and history; None before any response."""
        return self._folder.path if self._folder is not None else None

    @property
    def window(self) -> Window:
        """The window over which samples become loads."""
        return Window(window_ms=int(1000 * self._settings.window_s))

    @property
    def spark_pid(self) -> int | None:
        """Process id of Spark's JVM; None before it starts."""
        return self._spark.pid if self._spark else None

    @property
    def spark_master(self) -> str | None:
        """URL of the Spark master in use; None before Spark starts."""
        return self._spark.master if self._spark else None

    def wait(self, timeout_s: float | None = None) -> Snapshot:
        """Wait for the first snapshot that includes a sample of this process.

        Its loads are those of the streaming job, unless `early` of the settings says otherwise.
        Without topics of users, no sample is needed. timeout_s: seconds, by default
        `first_loads_s` of the settings. Raises the error that ended the watching, and
        ClusterUnreachable if the time runs out or `close` is called before the snapshot.
        """
        if timeout_s is None:
            timeout_s = self._settings.first_loads_s
        with self._changed:
            self._changed.wait_for(lambda: self._ready() or self._ended(), timeout_s)
            if self.failure is not None:
                raise self.failure
            if self._snapshot is None or not self._ready():
                advice = "Look at the log (-v), and try again."
                if (ahead_s := self.ahead_s()) > 0:
                    advice = (
                        f"The newest samples are {seconds_text(ahead_s)} ahead of this machine's "
                        "clock; compare the clocks of all hosts that watch this cluster."
                    )
                raise ClusterUnreachable(
                    f"No load of {self._connection.bootstrap} was measured within "
                    f"{timeout_s:.0f} s. {advice}"
                )
            return self._snapshot

    def close(self) -> None:
        """Stop all threads; Spark's JVM has ended when this returns."""
        with self._changed:
            self._closing.set()
            spark, stream = self._spark, self._stream
            self._changed.notify_all()
        if stream is not None:
            stream.stop()
        if spark is not None:
            spark.close()
        self.reporters.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        with self._changed:
            folder, self._folder = self._folder, None
        if folder is not None:
            folder.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    # What the threads do.

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except PlimsollError as exc:
            self._fail(exc)
        except Exception as exc:  # noqa: BLE001 - a thread must not end in silence
            if not self._closing.is_set():
                _log.debug("watching ended", exc_info=exc)
                self._fail(PlimsollError(f"Watching the cluster ended: {exc!r}."))

    def _fail(self, error: PlimsollError) -> None:
        with self._changed:
            if not self._ended():
                self.failure = error
            self._changed.notify_all()

    def _ready(self) -> bool:
        # Where samples go through a topic, the first loads may be another writer's, and a refusal
        # of ours must be reported first. Without topics of users there is nothing to sample.
        cluster = self.cluster
        measured = self._sampled and (self._streamed or self._early_whole)
        return self._snapshot is not None and (
            measured or (cluster is not None and bool(cluster.internal.all()))
        )

    def _waits_for_reporters(self) -> bool:
        """Whether only Spark can measure: metrics reporters are read."""
        return bool(self._settings.polled or self.reporters.to_read())

    def _ended(self) -> bool:
        return self._closing.is_set() or self.failure is not None

    def _watch(self) -> None:
        """Poll metadata and take a sample each interval."""
        with (
            ClusterReader(self._connection, self._clock, spared=self.reporters.names) as reader,
            Probe(self._connection, self._clock) as probe,
        ):
            self._see(self._read(reader, probe))
            sink = self._make_sink()
            try:
                self._sample_until_closed(reader, probe, sink)
            finally:
                sink.close()

    def _sample_until_closed(self, reader: ClusterReader, probe: Probe, sink: Sink) -> None:
        due_s = time.monotonic()
        failing_since_s: float | None = None
        batch = SampleBatch(sink, self._changing)
        while not self._closing.wait(max(0.0, due_s - time.monotonic())):
            due_s = max(due_s, time.monotonic()) + self._settings.interval_s
            try:
                cluster = self._read(reader, probe)
                self._see(cluster)
                samples = probe.sample(cluster)
                # The clock may be set back.
                self._since_ms = min(self._since_ms, int(1000 * self._clock()))
                self.reporters.see_samples(samples)
                self._samples = self._samples[1], samples
                written = batch.add(samples)
                self._measure_early(samples)
                self.silent, self._slow = probe.silent, probe.slow
                with self._changed:
                    # Brokers that answer late may give no sample at first.
                    self._sampled |= bool(written)
                    self._changed.notify_all()
                failing_since_s = None
            except ClusterUnreachable as exc:
                now_s = time.monotonic()
                failing_since_s = failing_since_s or now_s
                if now_s - failing_since_s > LOST_S:
                    raise
                _log.info("one sample is missing: %s", exc)

    def _measure_early(self, samples: pa.Table) -> None:
        """Measure loads here until the job has caught up, by the functions that it runs.

        Reports are read by Spark alone, so that a cluster with reporters waits for it.
        """
        with self._changed:
            if self._early is None or self._waits_for_reporters():
                return
            together = concatenate([self._early, samples], SAMPLES)
            now_ms = int(1000 * self._clock())
            since_ms = now_ms - self.window.window_ms
            # Those from before the clock was set back would hide all that follow.
            self._early = not_ahead(together, now_ms).filter(pc.field("time_ms") >= since_ms)
            changes = load_changes(self._early)
            vectors = load_vectors(changes.kept(self._early), self.window)
            if len(vectors):
                self._measured(vectors, changes)
                self._early_whole = self._settings.early and self._has_measured_a_window()
            self._changed.notify_all()

    def _has_measured_a_window(self) -> bool:
        """Whether the samples taken here began nearly a window ago, by their own times.

        On a busy machine they are further apart, and those within the window span less of it.
        """
        if self._early is None:
            return False
        oldest_ms, newest_ms = (f(self._early["time_ms"]).as_py() for f in (pc.min, pc.max))
        since_ms = self._early_since_ms
        # The clock may be set back.
        if since_ms is None or newest_ms < since_ms:
            self._early_since_ms = since_ms = oldest_ms
        return bool(newest_ms - since_ms >= CATCH_UP_SHARE * self.window.window_ms)

    def _has_caught_up(self, vectors: pa.Table) -> bool:
        """Whether the job's loads are hardly older than those measured here meanwhile."""
        early = self._early
        if early is None or not len(early):
            return True
        newest_ms, own_ms = (pc.max(t["time_ms"]).as_py() for t in (vectors, early))
        whole = own_ms - pc.min(early["time_ms"]).as_py() >= CATCH_UP_SHARE * self.window.window_ms
        return bool(whole or newest_ms >= own_ms - int(2000 * self._settings.interval_s))

    def _changing(self) -> bool:
        """Whether a load has changed within the window."""
        steadiness = self._steadiness
        return steadiness is not None and steadiness.changed_ms is not None

    def _read(self, reader: ClusterReader, probe: Probe) -> ClusterState:
        """Read the placement; add what brokers reported of their disks at the last sample."""
        cluster = with_directories(reader.read(), probe.directories)
        brokers = self._settings.states(cluster.cluster_id, cluster.brokers)
        if brokers != cluster.brokers:
            cluster = replace(cluster, brokers=brokers)
        return with_capacities(cluster, probe.directories, self._settings.capacities)

    def _see(self, cluster: ClusterState) -> None:
        with self._changed:
            if self._folder is None:
                self._enter(cluster)
            self.cluster = cluster
            self._recreations.see(cluster)
            self.reporters.see(cluster)
            if cluster.internal.all():
                # Nothing to measure, so nothing to wait for.
                self._assemble()
            self._changed.notify_all()

    def _enter(self, cluster: ClusterState) -> None:
        """Claim the cluster's folder, and load the newest vectors and forecast from it."""
        self._folder = claim(
            self._settings.state_dir, cluster.cluster_id, apart=self._settings.apart
        )
        if not self._settings.apart:
            self._ahead.recall(self._folder.shared)
        now_ms = self._since_ms = int(1000 * self._clock())
        self.vectors = newest_vectors(self.vectors, self._history().read(now_ms - FRESH_MS, now_ms))

    def _make_sink(self) -> Sink:
        topic, cluster = self._settings.samples_topic, self.cluster
        if topic is None or cluster is None:
            return Spool(self._home() / "spool", self._clock)
        alive = [b for b in cluster.brokers if b.state is BrokerState.ALIVE]
        creating = partial(self._settings.creating, cluster.cluster_id)
        return SamplesTopic(self._connection, topic, len(alive), creating)

    def _run_spark(self) -> None:
        """Start Spark, and run the streaming job until it ends."""
        if self._settings.early:
            with self._changed:
                self._changed.wait_for(lambda: self._waits_for_reporters() or self._ended())
                if self._ended():
                    return
        # PySpark costs half a second, which the first poll need not wait for.
        from collector.spark.deployment import is_submitted
        from collector.spark.session import Spark
        from collector.spark.stream import LoadStream

        settings, topic = self._settings, self._settings.samples_topic
        connector = Connector(self._connection, settings.cache_dir, loaded=is_submitted())
        jars = connector.jars(needed=topic is not None)
        java = find_java()
        with self._changed:
            if self._ended():
                return
            # From here on `close` ends it.
            self._spark = (settings.spark_maker or Spark)(
                java,
                master=settings.spark.master,
                properties=settings.spark.properties,
                jars=jars,
                log_file=settings.state_dir / "spark.log",
            )
        settings.spark.require_samples(self._spark.master, settings.state_dir, topic)
        session = self._spark.start()
        with self._changed:
            self._changed.wait_for(lambda: self.cluster is not None or self._ended())
            if self._ended():
                return
            job = self._job(connector)
            self._session, self._connector = session, connector
            self._stream = LoadStream(session, job, self._history(), self._take, self._clock)
            self._changed.notify_all()
        self._stream.run()

    def _keep_history(self) -> None:
        """Keep the history after the first loads, unless the folder is temporary."""
        with self._changed:
            self._changed.wait_for(
                lambda: None not in (self._session, self._snapshot) or self._ended()
            )
            session, folder, cluster = self._session, self._folder, self.cluster
            if self._ended() or session is None or folder is None or cluster is None:
                return
        if folder.kept:
            from collector.history.backfill import past_of
            from collector.history.retention import HistoryKeeper

            HistoryKeeper(
                self._settings.history,
                folder.path,
                cluster.cluster_id,
                self._clock,
                past_of(cluster, self._connector, self._settings.history),
            ).run(session, self._closing, self._ahead)

    def _job(self, connector: Connector) -> "Job":
        from collector.spark.stream import Job, SpoolSource, TopicSource

        settings, topic = self._settings, self._settings.samples_topic
        checkpoint = self._home() / "checkpoint" / path_part(topic or "spool")
        discard_old(checkpoint, self._clock())
        return Job(
            source=SpoolSource(self._home() / "spool")
            if topic is None
            else TopicSource(spark_options(self._connection), topic, self._clock),
            checkpoint=checkpoint,
            window=self.window,
            interval_s=settings.interval_s,
            reporters=self.reporters,
            connector=connector,
        )

    def _history(self) -> VectorFiles:
        return VectorFiles(self._home() / "history", every_ms=int(1000 * self._settings.window_s))

    def _home(self) -> Path:
        """The cluster's folder, which `_see` has claimed."""
        if self._folder is None:
            raise PlimsollError("The cluster has not been seen yet.")
        return self._folder.path

    def _take(self, samples: pa.Table, vectors: pa.Table) -> None:
        """Receive what a micro-batch read, and its load vectors."""
        if self._on_batch is not None:
            self._on_batch(samples, vectors)
        with self._changed:
            # The first batch may repeat one that an earlier process did not end, minutes ago.
            own = len(vectors) > 0 and pc.max(vectors["time_ms"]).as_py() >= self._since_ms
            self._streamed |= own
            if own and self._has_caught_up(vectors):
                self._early = None
                stream = self._stream
                self._measured(vectors, NO_CHANGES if stream is None else stream.changes)
            self._changed.notify_all()

    def _measured(self, fresh: pa.Table, changes: LoadChanges) -> None:
        """Take fresh vectors, and what the same samples say about changes of load."""
        self.vectors = self._recreations.own(newest_vectors(self.vectors, fresh))
        vectors = self.vectors
        if self.cluster is not None:
            # Vectors of topics that were deleted stay for a minute.
            names = pa.array([str(topic.name) for topic in self.cluster.topics], pa.string())
            vectors = vectors.filter(pc.is_in(vectors["topic"], names))
        self._steadiness = changes.of(vectors)
        self._assemble()

    def _assemble(self) -> None:
        if self.cluster is not None:
            found = assemble(self.cluster, self.vectors, window_s=self._settings.window_s)
            self._snapshot = self._ahead.add(found)
