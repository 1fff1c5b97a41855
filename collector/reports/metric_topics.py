"""The topics that metrics reporters write, and what the cluster shows of them."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.metadata import ClusterState
from collector.record_columns import Decoded
from collector.reports import automq_metrics, cruise_control_metrics
from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL, FRESH_MS
from model.snapshot.snapshot import BrokerState

AUTOMQ_TOPIC: Final = "__auto_balancer_metrics"
CRUISE_CONTROL_TOPIC: Final = "__CruiseControlMetrics"
DECODERS: Final[Mapping[str, Callable[[pa.Array], Decoded]]] = {
    AUTOMQ: automq_metrics.decode,
    CRUISE_CONTROL: cruise_control_metrics.decode_reports,
}
"""By source: a binary array of records to reports, schema `REPORTS`."""


@dataclass(frozen=True, slots=True)
class MetricTopic:
    """A topic that a metrics reporter writes, if it exists."""

    source: str
    """Whose: one of the sources of the schema of reports."""
    name: str

    @property
    def fresh_s(self) -> float:
        """Seconds for which a report counts as current."""
        return FRESH_MS[self.source] / 1000


def metric_topics(cruise_control: str = CRUISE_CONTROL_TOPIC) -> tuple[MetricTopic, ...]:
    """The topics to look for.

    cruise_control: name of the topic of Cruise Control's reporter.
    """
    return (MetricTopic(AUTOMQ, AUTOMQ_TOPIC), MetricTopic(CRUISE_CONTROL, cruise_control))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The state of one metric topic in the latest metadata."""

    topic_id: str | None = None
    """None where it does not exist, or is hidden."""
    lacks: str | None = None
    """The right on it that plimsoll's user lacks."""
    leaderless: int = 0
    """Number of partitions without a live leader."""

    @property
    def readable(self) -> bool:
        """Whether the topic exists, and the user may read it."""
        return self.topic_id is not None and self.lacks is None


def sight(cluster: ClusterState, name: str) -> Sighting:
    """Look up a topic by name: its id, a missing right, partitions without a leader."""
    lacks = cluster.unreadable.get(name)
    at = bisect_left(cluster.topics, name, key=lambda topic: str(topic.name))
    found = cluster.topics[at : at + 1]
    if not found or found[0].name != name:
        return Sighting(lacks=lacks)
    alive = [b.id for b in cluster.brokers if b.state is not BrokerState.DEAD]
    led = np.isin(cluster.leader[cluster.topic == at], alive)
    return Sighting(topic_id=found[0].topic_id, lacks=lacks, leaderless=int(np.count_nonzero(~led)))


def is_empty(samples: pa.Table, name: str) -> bool | None:
    """Whether a sample, schema `SAMPLES`, shows a topic without records.

    None if the sample does not show it.
    """
    mine = samples.filter(pc.equal(samples["topic"], name))
    if not len(mine) or pc.any(pc.less(mine["earliest"], 0)).as_py():
        return None
    return bool(pc.all(pc.equal(mine["earliest"], mine["latest"])).as_py())
