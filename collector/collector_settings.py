"""How a cluster is watched."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from collector.history.history_settings import HistorySettings
from collector.reports.metric_topics import MetricTopic, metric_topics
from collector.reports.poller import Poller
from collector.spark.deployment import SparkSite
from collector.spark.shared import SparkMaker
from model.snapshot.capacities import Capacities
from model.snapshot.snapshot import Broker

STARTING_S: Final = 240.0
"""Spark runs after 10 s on an idle machine."""

Creating = Callable[[str, str, Mapping[str, object]], AbstractContextManager[None]]
"""Cluster id, topic, and how it is created."""


States = Callable[[str, tuple[Broker, ...]], tuple[Broker, ...]]
"""From a cluster's id and its brokers, the brokers with their states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorSettings:
    """Settings of the collector for one cluster: intervals, folders, sources, Spark."""

    state_dir: Path
    """Samples, checkpoint and history, by cluster id."""
    cache_dir: Path
    """Spark's connector."""
    spark: SparkSite = field(default_factory=SparkSite)
    """Where Spark works."""
    spark_maker: SparkMaker | None = None
    """What creates Spark; None for one of its own."""
    interval_s: float = 1.0
    """Time between two samples."""
    window_s: float = 15.0
    """Time that loads are averaged over."""
    samples_topic: str | None = None
    """Where samples go; None for the spool, which changes nothing on the cluster."""
    creating: Creating = lambda _cluster, _topic, _how: nullcontext()
    """Entered while the samples topic is created: its journal, lock and lease."""
    metric_topics: tuple[MetricTopic, ...] = metric_topics()
    """Topics of metrics reporters, which are read where they exist."""
    polled: tuple[Poller, ...] = ()
    """Reporters that are polled besides; they end with the collector."""
    capacities: Capacities | None = None
    """Capacities given by the operator, which override those that brokers report."""
    states: States = lambda _cluster, brokers: brokers
    """Give the brokers of a cluster, by its id, the states that are not in its metadata."""
    history: HistorySettings = field(default_factory=HistorySettings)
    """How much of the loads is kept, and what it is used for."""
    early: bool = False
    """Whether `Collector.wait` returns what was measured without Spark over a window. The loads
    are the same, and Spark only starts where metrics reporters are read."""
    apart: bool = False
    """Whether to use a temporary folder: no earlier state is used, and none is left."""

    @property
    def first_loads_s(self) -> float:
        """How long to wait for the first loads: until Spark runs on a busy machine, and
        has seen four windows."""
        return STARTING_S + 4 * self.window_s
