"""The JSON of Kafka's stock tools, both ways.

`kafka-reassign-partitions` takes and prints assignments and topics (version 1 alone
exists), `kafka-leader-election` takes partitions.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from model.errors import ConfigError
from model.exchange.text_files import read_object
from model.files import VersionedModel, validate_document, write_document
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.plan.plan import ANY_DIR, Move, Plan
from model.private import shared_folder
from model.snapshot.snapshot import PartitionRow, Snapshot

BrokerNumber = Annotated[BrokerId, Field(ge=0, lt=2**31)]


class Assignment(VersionedModel):
    """One partition's whole new replica list."""

    topic: TopicName
    partition: Annotated[int, Field(ge=0)]
    replicas: Annotated[tuple[BrokerNumber, ...], Field(min_length=1)]
    """Preferred leader first."""
    log_dirs: tuple[str, ...] | None = None
    """As long as `replicas`; each `any` or an absolute path."""

    @property
    def id(self) -> PartitionId:
        """The topic and number of the partition."""
        return PartitionId(self.topic, self.partition)


class Reassignment(VersionedModel):
    """The file that `kafka-reassign-partitions --reassignment-json-file` takes."""

    version: int = 1
    partitions: tuple[Assignment, ...]


class ElectionPartition(VersionedModel):
    """One partition of an election."""

    topic: TopicName
    partition: Annotated[int, Field(ge=0)]


class Election(VersionedModel):
    """The file that `kafka-leader-election --path-to-json-file` takes."""

    partitions: tuple[ElectionPartition, ...]


# ---- out


def reassignment(plan: Plan) -> dict[str, Any]:
    """The document that makes `kafka-reassign-partitions` execute the plan."""
    return _document((m.topic, m.partition, m.replicas_after, m.log_dirs_after) for m in plan.moves)


def rollback(plan: Plan) -> dict[str, Any]:
    """The document that makes `kafka-reassign-partitions` undo the plan.

    It restores replica lists and log directories, not leaders; see `election`.
    """
    return _document(
        (m.topic, m.partition, m.replicas_before, m.log_dirs_before) for m in plan.moves
    )


def election(plan: Plan) -> dict[str, Any]:
    """What `kafka-leader-election --election-type preferred` takes after the moves.

    The partitions that the plan gives another leader; Kafka keeps the present one as
    long as it holds a replica. The same file serves after a rollback.
    """
    return election_of(
        m.id for m in plan.moves if m.leader_before != m.leader_after == m.replicas_after[0]
    )


def election_of(partitions: Iterable[PartitionId]) -> dict[str, Any]:
    """The document of `kafka-leader-election` that names these partitions, sorted."""
    rows = [{"topic": p.topic, "partition": p.partition} for p in sorted(partitions)]
    return {"partitions": rows}


def topics(plan: Plan) -> dict[str, Any]:
    """The document of `--topics-to-move-json-file`: topics that the plan changes."""
    names = sorted({m.topic for m in plan.moves})
    return {"version": 1, "topics": [{"topic": name} for name in names]}


def write_reassignment_json(folder: Path, plan: Plan) -> None:
    """Write the plan for the stock tools, one file each; equal plans, equal bytes.

    Raises ConfigError: the folder cannot be made or written.
    """
    try:
        shared_folder(folder)
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {folder}: {exc.strerror}") from exc
    write_document(folder / "reassignment.json", reassignment(plan))
    write_document(folder / "rollback.json", rollback(plan))
    write_document(folder / "election.json", election(plan))
    write_document(folder / "topics.json", topics(plan))


def _document(
    rows: Iterable[tuple[TopicName, int, tuple[BrokerId, ...], tuple[str, ...]]],
) -> dict[str, Any]:
    partitions = []
    for topic, partition, replicas, log_dirs in sorted(rows):
        entry = {"topic": topic, "partition": partition, "replicas": list(replicas)}
        partitions.append(entry | ({"log_dirs": list(log_dirs)} if log_dirs else {}))
    return {"version": 1, "partitions": partitions}


# ---- in


def read_reassignment(path: Path) -> Reassignment:
    """Read a reassignment file.

    Raises ConfigError: no such file, another version than 1, a partition listed twice, or log
    directories that do not fit the replicas.
    """
    found = validate_document(Reassignment, read_object(path), path)
    if found.version != 1:
        raise ConfigError(f"{path} has version {found.version}; only 1 is known")
    _refuse_twice(path, (a.id for a in found.partitions))
    for assignment in found.partitions:
        _check_log_dirs(path, assignment)
    return found


def read_election(path: Path) -> Election:
    """Read an election file.

    Raises ConfigError: no such file, or a partition listed twice.
    """
    found = validate_document(Election, read_object(path), path)
    _refuse_twice(path, (PartitionId(p.topic, p.partition) for p in found.partitions))
    return found


def _refuse_twice(path: Path, partitions: Iterable[PartitionId]) -> None:
    seen = set()
    for pid in partitions:
        if pid in seen:
            raise ConfigError(f"{path}: {pid} is listed twice; keep one entry")
        seen.add(pid)


def _check_log_dirs(path: Path, assignment: Assignment) -> None:
    log_dirs = assignment.log_dirs
    if log_dirs is None:
        return
    if len(log_dirs) != len(assignment.replicas):
        raise ConfigError(
            f"{path}: {assignment.id} has {len(assignment.replicas)} replicas and "
            f"{len(log_dirs)} log_dirs; give one for each, or none at all"
        )
    for folder in log_dirs:
        if folder != ANY_DIR and not folder.startswith("/"):
            words = f"the log directory {folder!r} is neither absolute nor {ANY_DIR!r}"
            raise ConfigError(f"{path}: {assignment.id}: {words}")


def moves_of(
    snapshot: Snapshot, document: Reassignment, election: Election | None = None
) -> tuple[Move, ...]:
    """The moves that a reassignment makes of a snapshot.

    The leader stays where it keeps a replica and no election is held for the partition; else the
    first replica leads. Gains are 0, since the file was made without goals. Rules are not checked;
    `model.evaluate` does that.

    Raises ConfigError: a partition that the snapshot does not have.
    """
    elections = election.partitions if election else ()
    elected = {PartitionId(p.topic, p.partition) for p in elections}
    named = {a.id: a for a in document.partitions}
    moves = []
    for pid in sorted(named.keys() | elected):
        row = snapshot.row_of.get(pid)
        if row is None:
            raise ConfigError(
                f"the cluster has no partition {pid}; take a reassignment of this "
                "cluster, or leave the partition out"
            )
        assignment = named.get(pid)
        chosen = _chosen(snapshot, row, assignment) if assignment else ()
        move = _move(snapshot.row(row), assignment, chosen, elected=pid in elected)
        if move is not None:
            moves.append(move)
    return tuple(moves)


def _move(
    partition: PartitionRow,
    assignment: Assignment | None,
    log_dirs: tuple[str, ...],
    *,
    elected: bool,
) -> Move | None:
    before = partition.replicas
    after = assignment.replicas if assignment else before
    leader = partition.leader
    if elected or (leader not in after and leader != NO_BROKER):
        leader = after[0]
    if (after, leader) == (before, partition.leader) and not log_dirs:
        return None
    added = len(set(after) - set(before))
    return Move(
        topic=partition.id.topic,
        topic_id=partition.topic_id,
        partition=partition.id.partition,
        storage=partition.storage,
        replicas_before=before,
        replicas_after=after,
        leader_before=partition.leader,
        leader_after=leader,
        bytes_to_copy=partition.bytes_to_copy(added),
        gain=0.0,
        reason="as the reassignment says",
        log_dirs_after=log_dirs,
    )


def _chosen(snapshot: Snapshot, row: int, assignment: Assignment) -> tuple[str, ...]:
    """Log directories of a move; empty where the file changes none.

    The stock tool prints the present ones too. Where the snapshot does not know a
    replica's directory, the one that the file names is taken to be it.
    """
    log_dirs = assignment.log_dirs or ()
    present = snapshot.log_dirs(row)
    for broker, folder in zip(assignment.replicas, log_dirs, strict=False):
        # Unknown, so it may lie there; a new replica lies nowhere yet.
        expected = (present[broker] or folder) if broker in present else ANY_DIR
        if folder not in (ANY_DIR, expected):
            return log_dirs
    return ()
