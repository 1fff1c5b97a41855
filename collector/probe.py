"""The agentless probe: one look at every partition's offsets, sizes and readers."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from clients.admin_connection import Client, begin
from clients.connection import Connection
from collector.broker_log_dirs import Directories
from collector.brokers.fan_out import Asking, Silence
from collector.brokers.fetch import BrokerProbe, Column, Look, Told
from collector.brokers.partition_index import Placement
from collector.brokers.response_layout import MalformedResponse
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

    def __init__(
        self, connection: Connection, clock: Callable[[], float] = time.time
    ) -> None:
        self._client = Client(connection)
        self._clock = clock
        self._asking: Asking[Told] = Asking(clock)
        self._brokers: dict[int, BrokerProbe] = {}
        self._placement: Placement | None = None
        self._births = TopicRecreations()
        self._idle_at_s = float("-inf")
        self._idle_known: frozenset[int] = frozenset()
        self.directories: dict[int, Directories] = {}
        """By broker that is alive, as it told them last."""

    @property
    def silent(self) -> tuple[Silence, ...]:
        """Brokers that are registered and did not answer for the last sample."""
        return tuple(silence for _, silence in sorted(self._asking.silent.items()))

    def sample(self, cluster: ClusterState) -> pa.Table:
        """One sample of the partitions that have a leader; schema `SAMPLES`.

        Partitions whose broker did not answer in time are left out; an answer that
        comes late is in a later sample.
        Raises ClusterUnreachable, or RightsMissing where no size may be seen.
        """
        placement = self._placed(cluster)
        what, right = "give offsets and sizes", "DESCRIBE on topics"
        with self._client.calling(what, right) as admin:
            told = self._asking.ask(self._questions(admin, cluster, placement))
            if self._asking.lost:
                # This client will never learn of them.
                self.close()
        looks = self._looks(told, placement)
        self._remember(cluster, looks)
        if not cluster.may_describe:
            _refuse_without_sizes(self._client.connection.bootstrap, looks.values())
        commits = self._commits(cluster, looks)
        return build_samples(placement, looks, commits, self._flags(cluster))

    def close(self) -> None:
        """Drop the connection."""
        self._asking.forget()
        self._client.close()

    def _placed(self, cluster: ClusterState) -> Placement:
        known = self._placement
        if known is None or not known.fits(cluster):
            known = self._placement = Placement(cluster)
        return known

    def _questions(
        self, admin: "KafkaAdminClient", cluster: ClusterState, placement: Placement
    ) -> dict[int, Callable[[], Any]]:
        """What to begin, by broker: those that lead, that are due, or were silent."""
        alive = _alive(cluster)
        led = {b for b in np.unique(cluster.leader).tolist() if b >= 0}
        wanted = led | self._idle(alive) | (self._asking.silent.keys() & set(alive))
        for broker in wanted - self._brokers.keys():
            self._brokers[broker] = BrokerProbe(broker, self._clock)
        timeout_s = self._client.connection.timeout_s

        def start(broker: int) -> Any:
            asked = self._brokers[broker]
            asked.prepare(placement)
            # Without this right the list of groups is short, and does not say so.
            groups = cluster.may_describe
            return begin(admin, partial(asked.ask, admin, timeout_s, groups=groups))

        return {broker: partial(start, broker) for broker in sorted(wanted)}

    def _idle(self, alive: Iterable[int]) -> set[int]:
        """Every broker that is alive, now and then."""
        now_s, known = self._clock(), frozenset(alive)
        if now_s - self._idle_at_s < IDLE_AGE_S and known <= self._idle_known:
            return set()
        self._idle_at_s, self._idle_known = now_s, known
        return set(known)

    def _looks(self, told: Mapping[int, Told], placement: Placement) -> dict[int, Look]:
        from kafka.errors import AuthorizationError

        looks = {}
        for broker, answers in told.items():
            try:
                looks[broker] = self._brokers[broker].read(answers, placement)
            except MalformedResponse as exc:
                _log.warning("an answer of broker %d is passed over: %s", broker, exc)
            except AuthorizationError as exc:
                right = "DESCRIBE on all consumer groups"
                what = "tell what groups have read"
                raise self._client.refusal(what, right) from exc
        return looks

    def _commits(
        self, cluster: ClusterState, looks: Mapping[int, Look]
    ) -> list[Column] | None:
        """None where not all groups can be seen."""
        if not cluster.may_describe:
            return None
        found: list[Column] = []
        for broker in np.unique(cluster.leader[cluster.leader >= 0]).tolist():
            look = looks.get(broker)
            if look is not None and look.commits is not None:
                found += look.commits
            elif self._brokers[broker].coordinates:
                return None
        return found

    def _flags(self, cluster: ClusterState) -> Ints:
        """(n,) MOVING and NEW."""
        made = self._births.see(cluster)
        new = np.array([str(t.name) in made for t in cluster.topics], np.bool_)
        flags: Ints = MOVING * cluster.moving.astype(np.int64)
        return flags + NEW * new[cluster.topic]

    def _remember(self, cluster: ClusterState, looks: Mapping[int, Look]) -> None:
        """A broker that is silent for a moment keeps its disks."""
        known = self.directories | {b: look.directories for b, look in looks.items()}
        self.directories = {b: known[b] for b in _alive(cluster) if b in known}


def build_samples(
    placement: Placement,
    looks: Mapping[int, Look],
    commits: Iterable[Column] | None,
    flags: Ints,
) -> pa.Table:
    """Schema `SAMPLES`: the partitions whose leader gave a latest offset.

    `flags`: (n,) of all partitions.
    """
    cluster = placement.cluster
    columns = _empty(cluster, commits) | {"flags": flags}
    for broker, look in looks.items():
        columns["time_ms"][placement.led_by(broker)] = look.time_ms
        for name, told in (
            ("latest", look.latest),
            ("earliest_local", look.earliest_local),
            ("earliest", look.earliest),
            ("local_bytes", look.sizes),
        ):
            own = cluster.leader[told.rows] == broker
            columns[name][told.rows[own]] = told.values[own]
    for told in commits or ():
        np.add.at(columns["groups"], told.rows, 1)
        np.add.at(columns["group_offsets"], told.rows, told.values)
    tiered = placement.tiered
    local = columns["earliest_local"]
    columns["earliest"] = np.where(tiered, columns["earliest"], local)
    columns["total_bytes"] = np.where(tiered, ABSENT, columns["local_bytes"])
    return _table(cluster, columns, np.flatnonzero(columns["latest"] >= 0))


def _empty(cluster: ClusterState, commits: Iterable[Column] | None) -> dict[str, Ints]:
    """Nothing told: absent, but for commits that all groups would have told of."""
    none = 0 if commits is not None else ABSENT
    columns = {
        name: np.full(len(cluster), ABSENT, np.int64)
        for name in ("time_ms", "latest", "earliest_local", "earliest", "local_bytes")
    }
    return columns | {
        name: np.full(len(cluster), none, np.int64)
        for name in ("groups", "group_offsets")
    }


def _table(cluster: ClusterState, columns: Mapping[str, Ints], rows: Ints) -> pa.Table:
    names = pa.array([str(t.name) for t in cluster.topics], pa.string())
    known = {
        **columns,
        "partition": cluster.partition,
        "broker": cluster.leader,
    }
    arrays = [
        names.take(pa.array(cluster.topic[rows]))
        if field.name == "topic"
        else pa.array(known[field.name][rows]).cast(field.type)
        for field in SAMPLES
    ]
    return pa.table(arrays, schema=SAMPLES)


def _alive(cluster: ClusterState) -> list[int]:
    return [b.id for b in cluster.brokers if b.state is not BrokerState.DEAD]


def _refuse_without_sizes(bootstrap: str, looks: Iterable[Look]) -> None:
    """Brokers hide sizes from those without the right; they do not refuse."""
    found = list(looks)
    if any(len(k.latest.rows) for k in found) and not any(
        len(k.sizes.rows) for k in found
    ):
        raise RightsMissing(
            f"The cluster at {bootstrap} shows no log sizes, so loads cannot be "
            "measured. Give plimsoll's user the right DESCRIBE on CLUSTER."
        )
