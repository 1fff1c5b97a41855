"""Clusters in the format `cc-offline/1`, the input of Cruise Control's goals offline.

Its figures become a snapshot's: KB/s and MB become bytes, the leader's `nw_out`, which
holds what followers fetch, becomes the rate of the consumers alone. Followers' loads
are taken as Kafka has them: net in and disk as the leader's.
"""

import gzip
import importlib.util
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from model.cpu import PERCENT
from model.errors import InvalidCluster
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)

HOME_VARIABLE: Final = "PLIMSOLL_CRUISE_CONTROL_HOME"
KB: Final = 1024.0
MB: Final = 1024.0**2
UNITS: Final = {
    Resource.CPU: ("cpu", 1 / PERCENT),
    Resource.NET_IN: ("nw_in", KB),
    Resource.NET_OUT: ("nw_out", KB),
    Resource.DISK: ("disk", MB),
}
"""Each resource's name in the format, and the size of its unit."""

Document = dict[str, Any]


def home() -> Path | None:
    """Where Cruise Control's goals lie, None where they do not."""
    default = Path(__file__).parents[2] / "shared" / "cruise-control"
    found = Path(os.environ.get(HOME_VARIABLE, default))
    return found if (found / "cc-goals.jar").exists() else None


def read(path: Path) -> Document:
    """An instance, a report or a plan, gzipped or not."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    document: Document = json.loads(text)
    return document


def write(path: Path, document: Document) -> None:
    """Write a document as gzipped JSON."""
    path.write_bytes(gzip.compress(json.dumps(document).encode(), mtime=0))


def snapshot_of(document: Document, storage: StorageKind | None = None) -> Snapshot:
    """The snapshot of an instance.

    Parameters
    ----------
    storage
        What a move costs by; by default replicated where there is anything to copy.

    Raises
    ------
    InvalidCluster
        What the instance holds contradicts itself, or replicas of one partition have
        loads of their own.
    """
    if not all(map(_is_alike, document["partitions"])):
        raise InvalidCluster(
            f"{document.get('name')} gives replicas of one partition loads of their "
            "own; in a snapshot net in and disk of followers are the leader's"
        )
    entries = sorted(document["partitions"], key=lambda p: (p["topic"], int(p["partition"])))
    copied = any(entry["load"]["disk"] > 0 for entry in entries)
    resources = tuple(r for r in UNITS if copied or r is not Resource.DISK)
    storage = storage or (StorageKind.REPLICATED if copied else StorageKind.SHARED)
    topics = tuple(
        Topic(name=TopicName(name), topic_id=name, storage=storage)
        for name in sorted({entry["topic"] for entry in entries})
    )
    header = SnapshotHeader(
        cluster_id=str(document.get("name", "cruise-control")),
        taken_at_ms=0,
        brokers=tuple(_broker(b) for b in _by_id(document["brokers"])),
        topics=topics,
        resources=resources,
    )
    rows = [_row(entry, storage) for entry in entries]
    loads = np.array([_loads(entry, resources) for entry in entries])
    return Snapshot(header, partitions_from_rows(topics, rows, loads))


def _is_alike(entry: Document) -> bool:
    """Whether followers take in and hold what the leader does."""
    told = entry.get("followers") or []
    return all(
        math.isclose(follower[name], entry["load"][name], rel_tol=0.01)
        for follower in (told if isinstance(told, list) else [told])
        for name in ("disk", "nw_in")
    )


def proposals(moves: Iterable[Move]) -> list[Document]:
    """A plan as `score` reads it: the leader first, then the other replicas."""
    return [
        {
            "topic": move.topic,
            "partition": move.partition,
            "new": [move.leader_after, *(b for b in move.replicas_after if b != move.leader_after)],
        }
        for move in moves
    ]


def score(where: Path, document: Document, moved: Sequence[Document]) -> Document:
    """Cruise Control's figures of an instance after some proposals.

    Both planners' figures come from this one program, `score.py`.
    """
    spec = importlib.util.spec_from_file_location("cc_score", where / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    judged: Document = module.evaluate(document, {"proposals": list(moved)})
    return judged


def _by_id(brokers: list[Document]) -> list[Document]:
    return sorted(brokers, key=lambda broker: int(broker["id"]))


def _broker(entry: Document) -> Broker:
    dead = entry.get("state") == "dead"
    return Broker(
        id=BrokerId(int(entry["id"])),
        rack=str(entry.get("rack", f"broker {entry['id']}")),
        state=BrokerState.DEAD if dead else BrokerState.ALIVE,
        capacity={
            resource: float(entry["capacity"][name]) * unit
            for resource, (name, unit) in UNITS.items()
            if entry["capacity"].get(name, 0) > 0
        },
    )


def _row(entry: Document, storage: StorageKind) -> PartitionRow:
    replicas = tuple(BrokerId(int(b)) for b in entry["replicas"])
    size = round(entry["load"]["disk"] * MB)
    return PartitionRow(
        id=PartitionId(TopicName(entry["topic"]), int(entry["partition"])),
        topic_id=entry["topic"],
        storage=storage,
        internal=False,
        replicas=replicas,
        leader=replicas[0],
        size_bytes=size,
        local_bytes=size,
    )


def _loads(entry: Document, resources: Sequence[Resource]) -> list[float]:
    load: dict[str, float] = dict(entry["load"])
    fetched = load["nw_in"] * (len(entry["replicas"]) - 1)
    load["nw_out"] = max(0.0, load["nw_out"] - fetched)
    return [load[UNITS[r][0]] * UNITS[r][1] for r in resources]
