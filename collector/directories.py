"""Which log directories brokers have, and in which of them replicas lie (JBOD)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from collector.metadata import ClusterState
from model.snapshot import Broker, Ints, LogDir

Place = tuple[str, int]
"""A topic's name and a partition's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """One broker's log directories."""

    listed: tuple[LogDir, ...]
    """By path."""
    home: Mapping[Place, int]
    """Position in `listed` of each replica; copies under way are left out."""


def read_directories(told: Iterable[Mapping[str, Any]]) -> Directories:
    """Out of one broker's answer to kafka-python's describe_log_dirs."""
    ordered = sorted(told, key=lambda folder: str(folder["log_dir"]))
    return Directories(
        listed=tuple(map(_log_dir, ordered)),
        home={
            (topic["name"], part["partition_index"]): position
            for position, folder in enumerate(ordered)
            for topic in folder["topics"]
            for part in topic["partitions"]
            if not part["is_future_key"]
        },
    )


def _log_dir(folder: Mapping[str, Any]) -> LogDir:
    """One whose disk has failed takes no more than a cordoned one (KIP-1066)."""
    total = folder.get("total_bytes", -1)
    return LogDir(
        path=folder["log_dir"],
        capacity_bytes=float(total) if total > 0 else None,
        cordoned=folder.get("is_cordoned", False) or bool(folder["error_code"]),
    )


def with_directories(
    cluster: ClusterState, known: Mapping[int, Directories]
) -> ClusterState:
    """The same state with what brokers told of their directories.

    A broker with one directory has none to choose from, and none is listed.
    """
    several = {b: d for b, d in known.items() if len(d.listed) > 1}
    if not several:
        return cluster
    brokers = tuple(_with_listed(b, several) for b in cluster.brokers)
    return replace(cluster, brokers=brokers, replica_dir=_homes(cluster, several))


def _with_listed(broker: Broker, known: Mapping[int, Directories]) -> Broker:
    if broker.id not in known:
        return broker
    return broker.model_copy(update={"log_dirs": known[broker.id].listed})


def _homes(cluster: ClusterState, known: Mapping[int, Directories]) -> Ints:
    """(replicas,) position of each replica's directory, -1 where it is not known."""
    lengths = np.diff(cluster.replica_start)
    rows = np.repeat(np.arange(len(cluster)), lengths).tolist()
    places: Sequence[Place] = [
        (str(cluster.topics[topic].name), partition)
        for topic, partition in zip(
            cluster.topic.tolist(), cluster.partition.tolist(), strict=True
        )
    ]
    pairs = zip(rows, cluster.replica_broker.tolist(), strict=True)
    return np.array(
        [known[b].home.get(places[r], -1) if b in known else -1 for r, b in pairs],
        np.int64,
    )
