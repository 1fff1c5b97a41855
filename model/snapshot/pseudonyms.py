"""Names replaced by pseudonyms, the same for the same key.

A pseudonym is the start of an HMAC-SHA256 of the name: without the key it can neither
be reversed nor be found by trying names.
"""

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Final

import numpy as np

from model.bounded import refuse_named_pipe
from model.errors import ConfigError
from model.goals.topic_placement import parsed
from model.ids import BrokerId, TopicName
from model.snapshot.forecast import LoadForecast
from model.snapshot.snapshot import Broker, Ints, Partitions, Snapshot, Topic

LEAST_KEY_BYTES: Final = 16
KEPT: Final = frozenset(
    {
        "__CruiseControlMetrics",
        "__auto_balancer_metrics",
        "__automq_cluster_events",
        "__cluster_metadata",
        "__consumer_offsets",
        "__plimsoll_samples",
        "__remote_log_metadata",
        "__share_group_state",
        "__transaction_state",
    }
)
"""Topics that keep their names; any other may be a user's choice, also with `__`."""
_DIGITS: Final = 16
"""64 bits, in which a million names do not meet."""


def read_key(path: Path) -> bytes:
    """Read the key in a file, whatever its bytes are.

    Raises ConfigError where the file cannot be read or has under `LEAST_KEY_BYTES`.
    """
    try:
        refuse_named_pipe(path, "the key ")
        key = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"cannot read the key {path}: {exc.strerror}") from exc
    if len(key) < LEAST_KEY_BYTES:
        raise ConfigError(
            f"the key {path} has {len(key)} bytes; it needs {LEAST_KEY_BYTES} or more, "
            "so that it cannot be guessed"
        )
    return key


def own_key(path: Path) -> bytes:
    """Read plimsoll's own key, creating it with mode 0600 the first time.

    Raises ConfigError where it cannot be read or created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return read_key(path)
    except OSError as exc:
        raise ConfigError(f"cannot make the key {path}: {exc.strerror}") from exc
    with os.fdopen(handle, "w", encoding="ascii") as out:
        out.write(secrets.token_hex(32) + "\n")
    return read_key(path)


class Pseudonyms:
    """Replaces names by pseudonyms made with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def topic(self, name: str) -> TopicName:
        """The pseudonym of a topic's name; a name in `KEPT` is returned unchanged."""
        return TopicName(name if name in KEPT else self._of("topic", name))

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        """The same cluster with pseudonyms for cluster, topics, racks and directories.

        Topics are sorted by their new names, and so are rows and log directories.
        """
        header = snapshot.header
        topics = tuple(map(self._topic, header.topics))
        order = sorted(range(len(topics)), key=lambda i: topics[i].name)
        dirs = {b.id: self._dir_order(b) for b in header.brokers}
        moves = (m.model_copy(update={"topic": self.topic(m.topic)}) for m in header.recent_moves)
        update = {
            "cluster_id": self._of("cluster", header.cluster_id),
            "brokers": tuple(self._broker(b, dirs[b.id]) for b in header.brokers),
            "topics": tuple(topics[i] for i in order),
            "recent_moves": tuple(moves),
            "forecast": self._forecast(header.forecast),
        }
        partitions = _reordered(snapshot.partitions, order, dirs)
        return Snapshot(header.model_copy(update=update), partitions)

    def _of(self, kind: str, name: str) -> str:
        found = hmac.new(self._key, f"{kind}\0{name}".encode(), hashlib.sha256)
        return f"{kind}-{found.hexdigest()[:_DIGITS]}"

    def _topic(self, topic: Topic) -> Topic:
        update = {
            "name": self.topic(topic.name),
            "topic_id": self._of("id", topic.topic_id),
            "placement": self._placement(topic.placement),
        }
        return topic.model_copy(update=update)

    def _placement(self, text: str) -> str:
        """Left out where it cannot be read, since anything may stand in it."""
        found = parsed(text) if text else ""
        if isinstance(found, str):
            return ""
        document = found.model_dump(mode="json", exclude_defaults=True)
        for entry in (*document["replicas"], *document.get("observers", ())):
            racks = entry["constraints"]
            racks["rack"] = self._of("rack", racks["rack"])
        return json.dumps(document)

    def _forecast(self, forecast: LoadForecast | None) -> LoadForecast | None:
        if forecast is None:
            return None
        slots = tuple(
            s.model_copy(update={"topic": self.topic(s.topic) if s.topic else None})
            for s in forecast.slots
        )
        return forecast.model_copy(update={"slots": slots})

    def _broker(self, broker: Broker, order: list[int]) -> Broker:
        rack = None if broker.rack is None else self._of("rack", broker.rack)
        dirs = [
            d.model_copy(update={"path": f"/{self._of('dir', d.path)}"}) for d in broker.log_dirs
        ]
        update = {"rack": rack, "log_dirs": tuple(dirs[i] for i in order)}
        return broker.model_copy(update=update)

    def _dir_order(self, broker: Broker) -> list[int]:
        """Old positions of a broker's log directories, by new path."""
        paths = [self._of("dir", d.path) for d in broker.log_dirs]
        return sorted(range(len(paths)), key=paths.__getitem__)


def _reordered(
    columns: Partitions, order: list[int], dirs: dict[BrokerId, list[int]]
) -> Partitions:
    """`order`: old topic positions by new one; `dirs`: the same of directories."""
    topic = np.argsort(np.array(order, np.int64))[columns.topic]
    rows = np.lexsort((columns.partition, topic))
    lengths = np.diff(columns.replica_start)[rows]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    within = np.arange(start[-1]) - np.repeat(start[:-1], lengths)
    flat = np.repeat(columns.replica_start[rows], lengths) + within
    slots, homes = columns.slot_loads, columns.replica_dir
    return Partitions(
        topic=topic[rows],
        partition=columns.partition[rows],
        replica_start=start,
        replica_broker=columns.replica_broker[flat],
        leader=columns.leader[rows],
        loads=columns.loads[rows],
        measured=columns.measured[rows],
        size_bytes=columns.size_bytes[rows],
        local_bytes=columns.local_bytes[rows],
        slot_loads=None if slots is None else slots[rows],
        replica_dir=None if homes is None else _homes(columns, homes, dirs)[flat],
    )


def _homes(columns: Partitions, homes: Ints, dirs: dict[BrokerId, list[int]]) -> Ints:
    """(replicas,) directories by new position, -1 where it is not known."""
    moved = {b: {old: new for new, old in enumerate(o)} for b, o in dirs.items()}
    pairs = zip(columns.replica_broker.tolist(), homes.tolist(), strict=True)
    return np.array([moved[BrokerId(b)].get(d, -1) for b, d in pairs], np.int64)
