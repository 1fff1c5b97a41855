"""The agentless probe: one look at every partition's offsets, sizes and readers."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from collector.client import Client, list_offsets
from collector.directories import Directories, Place, read_directories
from collector.metadata import ClusterState
from collector.samples import ABSENT, MOVING, SAMPLES
from model.closing import Closing
from model.connection.client import Connection
from model.errors import RightsMissing
from model.snapshot import BrokerState, StorageKind

GROUPS_AGE_S: Final = 5.0
"""The list of consumer groups is asked for again after this."""
IDLE_AGE_S: Final = 30.0
"""Brokers that lead nothing are asked for their directories again after this, or when
one is new; one that is silent would hold each sample up."""
_BROKERS_AT_ONCE: Final = 4
_LATEST, _EARLIEST, _EARLIEST_LOCAL = -1, -2, -4
_log = logging.getLogger("plimsoll.collector")


@dataclass(slots=True)
class BrokerLook:
    """What one broker told of the partitions that it leads; absent is absent."""

    time_ms: int
    """When it gave the latest offsets."""
    directories: Directories | None = None
    """None where it did not tell."""
    sizes: dict[Place, int] = field(default_factory=dict)
    latest: dict[Place, int] = field(default_factory=dict)
    earliest_local: dict[Place, int] = field(default_factory=dict)
    earliest: dict[Place, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """What consumer groups have committed, summed over the groups."""

    offsets: Mapping[Place, int]
    groups: Mapping[Place, int]
    """How many groups have committed."""


class Probe(Closing):
    """Takes samples over one connection; one thread owns it."""

    def __init__(
        self, connection: Connection, clock: Callable[[], float] = time.time
    ) -> None:
        self._client = Client(connection)
        self._clock = clock
        self._groups: list[str] = []
        self._groups_at_s = float("-inf")
        self._local_offsets = True
        self._idle_at_s = float("-inf")
        self._idle_known: frozenset[int] = frozenset()
        self.directories: dict[int, Directories] = {}
        """By broker that is alive, as it told them last."""

    def sample(self, cluster: ClusterState) -> pa.Table:
        """One sample of the partitions that have a leader; schema `SAMPLES`.

        Partitions whose broker did not answer in time are left out.
        Raises ClusterUnreachable, or RightsMissing where no size may be seen.
        """
        what, right = "give offsets and sizes", "DESCRIBE on topics"
        with self._client.calling(what, right) as admin:
            led = self._idle(cluster) | _led(cluster)
            with ThreadPoolExecutor(_BROKERS_AT_ONCE, "plimsoll-probe") as pool:
                commits = pool.submit(self._commits, admin, cluster)
                looks = dict(
                    zip(
                        led,
                        pool.map(lambda item: self._look(admin, *item), led.items()),
                        strict=True,
                    )
                )
            answered = {b: look for b, look in looks.items() if look is not None}
            self._remember(cluster, answered)
        if len(answered) < len(looks):
            self._client.close()
        if not cluster.may_describe:
            _refuse_without_sizes(self._client.connection.bootstrap, answered)
        return build_samples(cluster, answered, commits.result())

    def close(self) -> None:
        """Drop the connection."""
        self._client.close()

    def _idle(
        self, cluster: ClusterState
    ) -> dict[int, dict[str, list[tuple[int, bool]]]]:
        """Every broker that is alive, with nothing to lead, now and then."""
        now_s, alive = self._clock(), frozenset(_alive(cluster))
        if now_s - self._idle_at_s < IDLE_AGE_S and alive <= self._idle_known:
            return {}
        self._idle_at_s, self._idle_known = now_s, alive
        return {b: {} for b in sorted(alive)}

    def _remember(
        self, cluster: ClusterState, answered: Mapping[int, BrokerLook]
    ) -> None:
        """A broker that is silent for a moment keeps its disks."""
        fresh = {b: k.directories for b, k in answered.items() if k.directories}
        known = self.directories | fresh
        self.directories = {b: known[b] for b in _alive(cluster) if b in known}

    def _look(
        self, admin: Any, broker: int, led: Mapping[str, list[tuple[int, bool]]]
    ) -> BrokerLook | None:
        """What one broker says; None where it does not answer."""
        from kafka.errors import KafkaError

        every = {topic: [p for p, _ in parts] for topic, parts in led.items()}
        tiered = {topic: [p for p, far in parts if far] for topic, parts in led.items()}
        tiered = {topic: parts for topic, parts in tiered.items() if parts}
        try:
            # Sizes before offsets: vectors._clean relies on this order.
            (told,) = admin.describe_log_dirs(brokers=[broker])
            latest = list_offsets(admin, broker, every, _LATEST) if every else {}
            look = BrokerLook(
                int(1000 * self._clock()),
                read_directories(told["log_dirs"]),
                _sizes(told["log_dirs"]),
                latest,
            )
            if every:
                look.earliest_local = self._earliest_local(admin, broker, every)
            if tiered:
                look.earliest = list_offsets(admin, broker, tiered, _EARLIEST)
        except (KafkaError, OSError) as exc:
            _log.debug("broker %d did not answer the probe: %r", broker, exc)
            return None
        return look

    def _earliest_local(
        self, admin: Any, broker: int, places: Mapping[str, list[int]]
    ) -> dict[Place, int]:
        from kafka.errors import IncompatibleBrokerVersion

        if self._local_offsets:
            try:
                return list_offsets(admin, broker, places, _EARLIEST_LOCAL)
            except IncompatibleBrokerVersion:  # before Kafka 3.4, and nothing tiered
                self._local_offsets = False
        return list_offsets(admin, broker, places, _EARLIEST)

    def _commits(self, admin: Any, cluster: ClusterState) -> Commits | None:
        """None where not all groups can be seen; raises RightsMissing."""
        from kafka.errors import GroupAuthorizationFailedError, KafkaError

        # Without this right the list of groups is short, and does not say so.
        if not cluster.may_describe:
            return None
        now_s = self._clock()
        try:
            if now_s - self._groups_at_s >= GROUPS_AGE_S:
                self._groups = [g["group_id"] for g in admin.list_groups()]
                self._groups_at_s = now_s
            answer = admin.list_group_offsets(self._groups) if self._groups else {}
        except GroupAuthorizationFailedError as exc:
            right = "DESCRIBE on all consumer groups"
            raise self._client.refusal("tell what groups have read", right) from exc
        except (KafkaError, OSError) as exc:
            _log.debug("the groups' commits could not be read: %r", exc)
            self._groups_at_s = float("-inf")
            return None
        return sum_commits(answer)


def sum_commits(answer: Mapping[str, Mapping[Any, Any]]) -> Commits:
    """Sums over groups, out of kafka-python's answer to list_group_offsets."""
    offsets: defaultdict[Place, int] = defaultdict(int)
    groups: defaultdict[Place, int] = defaultdict(int)
    for committed in answer.values():
        for (topic, partition), commit in committed.items():
            if commit.offset >= 0:
                offsets[topic, partition] += commit.offset
                groups[topic, partition] += 1
    return Commits(offsets=offsets, groups=groups)


def build_samples(
    cluster: ClusterState, looks: Mapping[int, BrokerLook], commits: Commits | None
) -> pa.Table:
    """Schema `SAMPLES`: the partitions whose leader gave a latest offset."""
    rows = []
    for row, topic, place in _places(cluster):
        broker = int(cluster.leader[row])
        look = looks.get(broker)
        if look is None or place not in look.latest:
            continue
        size = look.sizes.get(place, ABSENT)
        tiered = topic.storage is StorageKind.TIERED
        earliest_local = look.earliest_local.get(place, ABSENT)
        rows.append(
            {
                "topic": place[0],
                "partition": place[1],
                "time_ms": look.time_ms,
                "broker": broker,
                "flags": MOVING if cluster.moving[row] else 0,
                "groups": commits.groups.get(place, 0) if commits else ABSENT,
                "latest": look.latest[place],
                "earliest_local": earliest_local,
                "earliest": look.earliest.get(
                    place, ABSENT if tiered else earliest_local
                ),
                "local_bytes": size,
                "total_bytes": ABSENT if tiered else size,
                "group_offsets": commits.offsets.get(place, 0) if commits else ABSENT,
            }
        )
    return pa.Table.from_pylist(rows, schema=SAMPLES)


def _places(cluster: ClusterState) -> Iterable[tuple[int, Any, Place]]:
    columns = zip(cluster.topic.tolist(), cluster.partition.tolist(), strict=True)
    for row, (topic, partition) in enumerate(columns):
        found = cluster.topics[topic]
        yield row, found, (str(found.name), partition)


def _alive(cluster: ClusterState) -> list[int]:
    return [b.id for b in cluster.brokers if b.state is BrokerState.ALIVE]


def _led(cluster: ClusterState) -> dict[int, dict[str, list[tuple[int, bool]]]]:
    """Per broker and topic: the partitions it leads, and whether they are tiered."""
    led: dict[int, dict[str, list[tuple[int, bool]]]] = {}
    for row, topic, (name, partition) in _places(cluster):
        leader = int(cluster.leader[row])
        if leader >= 0:
            tiered = topic.storage is StorageKind.TIERED
            led.setdefault(leader, {}).setdefault(name, []).append((partition, tiered))
    return led


def _sizes(told: Iterable[Mapping[str, Any]]) -> dict[Place, int]:
    """Bytes per partition in a broker's directories, copies under way left out."""
    sizes: dict[Place, int] = {}
    for folder in told:
        for topic in folder["topics"]:
            for part in topic["partitions"]:
                if not part["is_future_key"]:
                    place = topic["name"], part["partition_index"]
                    sizes[place] = part["partition_size"]
    return sizes


def _refuse_without_sizes(bootstrap: str, looks: Mapping[int, BrokerLook]) -> None:
    """Brokers hide sizes from those without the right; they do not refuse."""
    if any(look.latest for look in looks.values()) and not any(
        look.sizes for look in looks.values()
    ):
        raise RightsMissing(
            f"The cluster at {bootstrap} shows no log sizes, so loads cannot be "
            "measured. Give plimsoll's user the right DESCRIBE on CLUSTER."
        )
