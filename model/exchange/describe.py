"""The text of `kafka-topics --describe`, as Kafka 1.0 to 4.x print it.

A topic's line, then one line for each of its partitions (`TopicCommand` of Kafka's tools).
Fields are parted by tabs, or by blanks where the text was copied from a screen.
"""

import base64
import binascii
import json
import re
import uuid
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from model.exchange.text_files import fault, read_text
from model.goals.topic_placement import CONFIG
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import StorageKind, Topic

_IDS: Final = r"(\d{1,9}(,\d{1,9})*)?"
_TOPIC: Final = re.compile(
    r"\s*Topic:\s*(?P<topic>[\w.-]{1,249})\s+(TopicId:\s*(?P<id>\S+)\s+)?"
    r"PartitionCount:\s*(?P<count>\d{1,9})\s+ReplicationFactor:\s*\d+"
    r"\s*(Configs:(?P<configs>.*))?",
    re.ASCII,
)
_PARTITION: Final = re.compile(
    r"\s*Topic:\s*(?P<topic>[\w.-]{1,249})\s+Partition:\s*(?P<partition>\d{1,9})\s+"
    r"Leader:\s*(?P<leader>none|-?\d{1,9})\s+"
    rf"Replicas:\s*(?P<replicas>{_IDS})\s+Isr:\s*(?P<isr>{_IDS})(?P<rest>\s.*)?",
    re.ASCII,
)
_REMOVING: Final = re.compile(rf"Removing Replicas:\s*({_IDS})", re.ASCII)
_REASSIGNED: Final = re.compile(r"(Adding|Removing) Replicas:", re.ASCII)
_PLACEMENT: Final = re.compile(rf"(?:^|,)\s*{re.escape(CONFIG)}=")
_NEXT_CONFIG: Final = re.compile(r",(?=[a-z][a-z0-9.]*=)|$")
_TIERED: Final = re.compile(r"(^|,)\s*remote\.storage\.enable=true\s*(,|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition:
    """The line that `kafka-topics --describe` prints for a partition."""

    id: PartitionId
    line: int
    """Counted from 1."""
    replicas: tuple[BrokerId, ...]
    """Preferred leader first; under reassignment without those to be removed."""
    leader: BrokerId
    """-1 for none; the first replica where the present leader is to be removed."""
    in_sync: tuple[BrokerId, ...]
    """All in-sync replicas, those to be removed as well."""
    removing: tuple[BrokerId, ...]
    """Replicas that a reassignment in progress will remove."""
    reassigned: bool
    """Whether a reassignment is in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The whole output of `kafka-topics --describe`."""

    path: Path
    topics: tuple[Topic, ...]
    """By name; in the remote tier with `remote.storage.enable`, else on replicated disks. The id is
    a UUID, empty where Kafka is older than 2.8 and does not show it."""
    partitions: tuple[DescribedPartition, ...]
    """By topic and number."""


def read_description(path: Path) -> Description:
    """Read the output of `kafka-topics --describe`.

    Raises ConfigError: a line that the command does not print, a topic without its own line or with
    another number of partitions than that says, a partition that stands twice, or that has no
    replicas or one of them twice.
    """
    topics: dict[str, tuple[int, int, Topic]] = {}
    partitions: dict[PartitionId, DescribedPartition] = {}
    for line, text in enumerate(read_text(path).splitlines(), 1):
        if found := _PARTITION.fullmatch(text):
            _add(path, partitions, _partition(path, line, found))
        elif found := _TOPIC.fullmatch(text):
            topic = _topic(found)
            if topic.name in topics:
                raise fault(path, line, f"topic {topic.name} was described before; give it once")
            topics[topic.name] = (line, int(found["count"]), topic)
        elif text.strip():
            raise fault(path, line, _no_line(text))
    _check_counts(path, topics, partitions)
    return Description(
        path=path,
        topics=tuple(topics[name][2] for name in sorted(topics)),
        partitions=tuple(partitions[pid] for pid in sorted(partitions)),
    )


def _no_line(text: str) -> str:
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 40 else shown[:40] + "..."
    return (
        f"{shown!r} is not a line of kafka-topics --describe; give that command's unedited output"
    )


def _topic(found: re.Match[str]) -> Topic:
    placement, configs = _without_placement((found["configs"] or "").strip())
    return Topic(
        name=TopicName(found["topic"]),
        topic_id=_uuid(found["id"] or ""),
        storage=StorageKind.TIERED if _TIERED.search(configs) else StorageKind.REPLICATED,
        # Kafka's own topics keep to this prefix.
        internal=found["topic"].startswith("__"),
        placement=placement,
    )


def _without_placement(configs: str) -> tuple[str, str]:
    """The JSON of the placement constraints, which has commas of its own, and the rest.

    A value that is not JSON ends where the next config begins.
    """
    found = _PLACEMENT.search(configs)
    if found is None:
        return "", configs
    start = found.end()
    try:
        _, end = json.JSONDecoder().raw_decode(configs, start)
    except (ValueError, RecursionError):
        end = start
    # Whatever follows the JSON without a comma belongs to the value, too.
    ending = _NEXT_CONFIG.search(configs, end)
    end = ending.start() if ending else len(configs)
    return configs[start:end], configs[: found.start()] + configs[end:]


def _uuid(text: str) -> str:
    """Kafka prints its ids in URL-safe base 64; its protocol gives UUIDs."""
    try:
        return str(uuid.UUID(bytes=base64.urlsafe_b64decode(text + "==")))
    except (ValueError, binascii.Error):
        return text


def _partition(path: Path, line: int, found: re.Match[str]) -> DescribedPartition:
    pid = PartitionId(TopicName(found["topic"]), int(found["partition"]))
    rest = found["rest"] or ""
    reassigned = bool(_REASSIGNED.search(rest))
    leaving = _REMOVING.search(rest) if reassigned else None
    removing = _brokers(leaving[1] if leaving else "")
    gone_soon = frozenset(removing)
    listed = _brokers(found["replicas"])
    replicas = tuple(b for b in listed if b not in gone_soon)
    if not replicas or len(set(replicas)) != len(replicas):
        words = f"{pid} has the replicas {found['replicas'] or 'none'!r}"
        raise fault(path, line, f"{words}; name at least one, each once")
    leader = NO_BROKER if found["leader"] == "none" else int(found["leader"])
    if leader not in (NO_BROKER, *listed):
        words = f"{pid} is led by broker {leader}, which is not one of its replicas"
        raise fault(path, line, words)
    gone = leader != NO_BROKER and leader not in replicas
    return DescribedPartition(
        id=pid,
        line=line,
        replicas=replicas,
        leader=replicas[0] if gone else BrokerId(leader),
        in_sync=_brokers(found["isr"]),
        removing=removing,
        reassigned=reassigned,
    )


@lru_cache(maxsize=100_000)
def _brokers(text: str) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(int(b)) for b in text.split(",") if b)


def _add(
    path: Path, partitions: dict[PartitionId, DescribedPartition], partition: DescribedPartition
) -> None:
    before = partitions.setdefault(partition.id, partition)
    if before is not partition:
        words = f"{partition.id} is already in line {before.line}; keep one of them"
        raise fault(path, partition.line, words)


def _check_counts(
    path: Path,
    topics: dict[str, tuple[int, int, Topic]],
    partitions: dict[PartitionId, DescribedPartition],
) -> None:
    listed = dict.fromkeys(topics, 0)
    for partition in partitions.values():
        if partition.id.topic not in topics:
            raise fault(
                path,
                partition.line,
                f"topic {partition.id.topic} has no line of its own with a "
                "PartitionCount; describe it without filters",
            )
        listed[partition.id.topic] += 1
    for line, count, topic in topics.values():
        if listed[topic.name] != count:
            raise fault(
                path,
                line,
                f"topic {topic.name} has {count} partitions, {listed[topic.name]} of "
                "them are listed; describe it without filters",
            )


def live_brokers(description: Description) -> frozenset[BrokerId]:
    """Brokers that are in sync with some leader, so that they must be alive.

    Any other broker is presumed dead.
    """
    led = (p for p in description.partitions if p.leader != NO_BROKER)
    return frozenset(broker for partition in led for broker in partition.in_sync)
