"""The topics that metrics reporters write, and what the cluster shows of them."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.metadata import ClusterState
from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL, FRESH_MS
from model.snapshot.snapshot import BrokerState

AUTOMQ_TOPIC: Final = "__auto_balancer_metrics"
CRUISE_CONTROL_TOPIC: Final = "__CruiseControlMetrics"


@dataclass(frozen=True, slots=True)
class MetricTopic:
    """A topic that may be there."""

    source: str
    """Whose: one of the sources of the schema of reports."""
    name: str

    @property
    def fresh_s(self) -> float:
        """How long a report is fresh."""
        return FRESH_MS[self.source] / 1000


def metric_topics(
    cruise_control: str = CRUISE_CONTROL_TOPIC,
) -> tuple[MetricTopic, ...]:
    """All that are looked for; Cruise Control's has a name of the operator's choice."""
    return (
        MetricTopic(AUTOMQ, AUTOMQ_TOPIC),
        MetricTopic(CRUISE_CONTROL, cruise_control),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One of them, as the newest metadata show it."""

    topic_id: str | None = None
    """None where it is not there, or hidden."""
    lacks: str | None = None
    """The right on it that plimsoll's user has not."""
    leaderless: int = 0
    """Partitions that no broker leads that is alive."""


def sight(cluster: ClusterState, name: str) -> Sighting:
    """What this state shows of a topic."""
    lacks = cluster.unreadable.get(name)
    at = bisect_left(cluster.topics, name, key=lambda topic: str(topic.name))
    found = cluster.topics[at : at + 1]
    if not found or found[0].name != name:
        return Sighting(lacks=lacks)
    alive = [b.id for b in cluster.brokers if b.state is not BrokerState.DEAD]
    led = np.isin(cluster.leader[cluster.topic == at], alive)
    return Sighting(
        topic_id=found[0].topic_id,
        lacks=lacks,
        leaderless=int(np.count_nonzero(~led)),
    )


def is_empty(samples: pa.Table, name: str) -> bool | None:
    """Whether a topic holds no record, by one sample; None where that is not known."""
    mine = samples.filter(pc.equal(samples["topic"], name))
    if not len(mine) or pc.any(pc.less(mine["earliest"], 0)).as_py():
        return None
    return bool(pc.all(pc.equal(mine["earliest"], mine["latest"])).as_py())
