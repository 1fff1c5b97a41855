"""The agentless probe: samples of every partition's offsets, sizes and commits."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from clients.admin_connection import AdminConnection, run_in_driver
from clients.connection import Connection
from clients.driver_errors import kafka_errors
from collector.broker_log_dirs import BrokerLogDirs
from collector.brokers.fan_out import BrokerFanOut, Silence
from collector.brokers.fetch import BrokerFigures, BrokerProbe, BrokerResponses, PartitionFigures
from collector.brokers.partition_index import PartitionIndex
from collector.brokers.response_layout import MalformedResponse
from collector.brokers.slow_brokers import SlowBroker, SlowBrokerWatch
from collector.brokers.topic_recreation import TopicRecreations
from collector.metadata import ClusterState
from collector.samples import ABSENT, MOVING, NEW, SAMPLES
from model.closing import Closing
from model.errors import RightsMissing
from model.snapshot.snapshot import BrokerState, Ints

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

IDLE_AGE_S: Final = 30.0
"""Brokers that lead nothing are asked for their directories again after this, or when
one is new."""
_log = logging.getLogger("plimsoll.collector")


class Probe(Closing):
    """Takes samples over one connection; one thread owns it."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.time) -> None:
        self._client = AdminConnection(connection)
        self._clock = clock
        self._asking: BrokerFanOut[BrokerResponses] = BrokerFanOut(clock)
        self._brokers: dict[int, BrokerProbe] = {}
        self._placement: PartitionIndex | None = None
        self._recreations = TopicRecreations()
        self._idle_at_s = float("-inf")
        self._idle_known: frozenset[int] = frozenset()
        self._slow = SlowBrokerWatch()
        self.slow: tuple[SlowBroker, ...] = ()
        """Brokers that answer much later than the others, by id."""
        self.directories: dict[int, BrokerLogDirs] = {}
        """By live broker, as it reported them last."""

    @property
    def silent(self) -> tuple[Silence, ...]:
        """Registered brokers that did not answer for the last sample, by id."""
        return tuple(silence for _, silence in sorted(self._asking.silent.items()))

    def sample(self, cluster: ClusterState) -> pa.Table:
        """Sample the partitions that have a leader; schema `SAMPLES`.

        Sizes come from DescribeLogDirs (KIP-113), offsets from ListOffsets (KIP-405),
        commits from OffsetFetch (KIP-709). Partitions whose broker did not answer in
        time are left out; a late answer is in a later sample.
        Raises ClusterUnreachable, or RightsMissing where sizes must not be seen.
        """
        placement = self._placed(cluster)
        what, right = "give offsets and sizes", "DESCRIBE on topics"
        with self._client.calling(what, right) as admin:
            responses = self._asking.ask(self._questions(admin, cluster, placement))
            if self._asking.lost:
                # This client will never learn of them.
                self.close()
        self._compare(cluster, responses)
        figures = self._figures(responses, placement)
        self._remember(cluster, figures)
        if not cluster.may_describe:
            _refuse_without_sizes(self._client.connection.bootstrap, figures.values())
        commits = self._commits(cluster, figures)
        return build_samples(placement, figures, commits, self._flags(cluster))

    def _compare(self, cluster: ClusterState, responses: Mapping[int, BrokerResponses]) -> None:
        """Compare how long brokers took; those that lead nothing, unless slow, are seldom asked."""
        now_ms = int(1000 * self._clock())
        took_s = {b: found.answer_s for b, found in responses.items()}
        silent_s = {s.broker: max(0.0, (now_ms - s.since_ms) / 1000) for s in self.silent}
        compared = {*np.unique(cluster.leader).tolist(), *(found.broker for found in self.slow)}
        both = {b: s for b, s in {**took_s, **silent_s}.items() if b in compared}
        self.slow = self._slow.see(time.monotonic(), both)

    def close(self) -> None:
        """Drop the connection and pending requests; the next sample connects again."""
        self._asking.forget()
        self._client.close()

    def _placed(self, cluster: ClusterState) -> PartitionIndex:
        known = self._placement
        if known is None or not known.fits(cluster):
            known = self._placement = PartitionIndex(cluster)
        return known

    def _questions(
        self, admin: "KafkaAdminClient", cluster: ClusterState, placement: PartitionIndex
    ) -> dict[int, Callable[[], Any]]:
        """Requests to begin, by broker: those that lead, are due, or were silent."""
        alive = _alive(cluster)
        led = {b for b in np.unique(cluster.leader).tolist() if b >= 0}
        # A slow broker may lead nothing any more, and shows that it has recovered.
        watched = self._asking.silent.keys() | {found.broker for found in self.slow}
        due = led | self._idle(alive) | (watched & set(alive))
        for broker in due - self._brokers.keys():
            self._brokers[broker] = BrokerProbe(broker, self._clock)
        timeout_s = self._client.connection.timeout_s

        def start(broker: int) -> Any:
            asked = self._brokers[broker]
            asked.prepare(placement)
            # Without this right the list of groups is short, and does not say so.
            groups = cluster.may_describe
            return run_in_driver(admin, partial(asked.ask, admin, timeout_s, groups=groups))

        return {broker: partial(start, broker) for broker in sorted(due)}

    def _idle(self, alive: Iterable[int]) -> set[int]:
        """All live brokers, every `IDLE_AGE_S` and when one is new; else none."""
        now_s, known = self._clock(), frozenset(alive)
        if now_s - self._idle_at_s < IDLE_AGE_S and known <= self._idle_known:
            return set()
        self._idle_at_s, self._idle_known = now_s, known
        return set(known)

    def _figures(
        self, responses: Mapping[int, BrokerResponses], placement: PartitionIndex
    ) -> dict[int, BrokerFigures]:
        figures = {}
        what, right = "show what groups have read", "DESCRIBE on all consumer groups"
        with kafka_errors(self._client.connection.bootstrap, what, right):
            for broker, answers in responses.items():
                try:
                    figures[broker] = self._brokers[broker].read(answers, placement)
                except MalformedResponse as exc:
                    _log.warning("an answer of broker %d is passed over: %s", broker, exc)
        return figures

    def _commits(
        self, cluster: ClusterState, figures: Mapping[int, BrokerFigures]
    ) -> list[PartitionFigures] | None:
        """Offsets that groups have committed; None where not all groups can be seen."""
        if not cluster.may_describe:
            return None
        found: list[PartitionFigures] = []
        for broker in np.unique(cluster.leader[cluster.leader >= 0]).tolist():
            own = figures.get(broker)
            if own is not None and own.commits is not None:
                found += own.commits
            elif self._brokers[broker].coordinates:
                return None
        return found

    def _flags(self, cluster: ClusterState) -> Ints:
        """(n,) MOVING and NEW."""
        made = self._recreations.see(cluster)
        new = np.array([str(t.name) in made for t in cluster.topics], np.bool_)
        flags: Ints = MOVING * cluster.moving.astype(np.int64)
        return flags + NEW * new[cluster.topic]

    def _remember(self, cluster: ClusterState, figures: Mapping[int, BrokerFigures]) -> None:
        """Keep the disks of brokers that are silent for a moment."""
        known = self.directories | {b: found.directories for b, found in figures.items()}
        self.directories = {b: known[b] for b in _alive(cluster) if b in known}


def build_samples(
    placement: PartitionIndex,
    figures: Mapping[int, BrokerFigures],
    commits: Iterable[PartitionFigures] | None,
    flags: Ints,
) -> pa.Table:
    """Combine brokers' figures into a sample, schema `SAMPLES`.

    Only partitions whose leader reported a latest offset have a row.

    figures: by broker id, offsets and sizes in bytes. commits: offsets that groups have
    committed; None where not all groups can be seen. flags: (n,) `MOVING` and `NEW` of all
    partitions of the placement.
    """
    cluster = placement.cluster
    columns = _empty(cluster, commits) | {"flags": flags}
    for broker, found in figures.items():
        columns["time_ms"][placement.led_by(broker)] = found.time_ms
        for name, reported in found.columns.items():
            own = cluster.leader[reported.rows] == broker
            columns[name][reported.rows[own]] = reported.values[own]
    for committed in commits or ():
        np.add.at(columns["groups"], committed.rows, 1)
        np.add.at(columns["group_offsets"], committed.rows, committed.values)
    tiered = placement.tiered
    local = columns["earliest_local"]
    columns["earliest"] = np.where(tiered, columns["earliest"], local)
    columns["total_bytes"] = np.where(tiered, ABSENT, columns["local_bytes"])
    return _table(cluster, columns, np.flatnonzero(columns["latest"] >= 0))


def _empty(cluster: ClusterState, commits: Iterable[PartitionFigures] | None) -> dict[str, Ints]:
    """Columns without figures: absent, but 0 commits where all groups are visible."""
    none = 0 if commits is not None else ABSENT
    columns = {
        name: np.full(len(cluster), ABSENT, np.int64)
        for name in ("time_ms", "latest", "earliest_local", "earliest", "local_bytes")
    }
    return columns | {
        name: np.full(len(cluster), none, np.int64) for name in ("groups", "group_offsets")
    }


def _table(cluster: ClusterState, columns: Mapping[str, Ints], rows: Ints) -> pa.Table:
    names = pa.array([str(t.name) for t in cluster.topics], pa.string())
    known = {**columns, "partition": cluster.partition, "broker": cluster.leader}
    arrays = [
        names.take(pa.array(cluster.topic[rows]))
        if field.name == "topic"
        else pa.array(known[field.name][rows]).cast(field.type)
        for field in SAMPLES
    ]
    return pa.table(arrays, schema=SAMPLES)


def _alive(cluster: ClusterState) -> list[int]:
    return [b.id for b in cluster.brokers if b.state is not BrokerState.DEAD]


def _refuse_without_sizes(bootstrap: str, figures: Iterable[BrokerFigures]) -> None:
    """Brokers hide sizes from those without the right; they do not refuse."""
    columns = [found.columns for found in figures]
    led = any("latest" in c and len(c["latest"].rows) for c in columns)
    if led and not any(len(c["local_bytes"].rows) for c in columns):
        raise RightsMissing(
            f"The cluster at {bootstrap} shows no log sizes, so loads cannot be "
            "measured. Give plimsoll's user the right DESCRIBE on CLUSTER."
        )
