"""Preferred leader elections (KIP-460).

The preferred leader is the first of the replica list. Kafka elects it only while it is
in sync; plimsoll never requests an unclean election.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.client.responses import PartitionView
from executor.journal.run_journal import RunJournal
from executor.platforms.move_progress import text
from executor.timing import Timing
from model.errors import ConfigError
from model.exchange.text_files import nearest
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.run import JournalEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """A partition that is not led by its preferred replica."""

    id: PartitionId
    leader: BrokerId
    """NO_BROKER without a leader."""
    preferred: BrokerId
    obstacle: str = ""
    """Why its preferred replica cannot be or was not elected; empty if it can."""

    def document(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "topic": self.id.topic,
            "partition": self.id.partition,
            "led_by": self.leader,
            "preferred": self.preferred,
            "obstacle": self.obstacle,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElections:
    """The elections possible and impossible among some partitions."""

    cluster_id: str
    checked: int
    """Number of partitions checked, including well-led ones."""
    replicated: int
    """Number of them with more than one replica."""
    needed: tuple[LeaderElection, ...]
    """One for each partition that its preferred replica does not lead."""

    @property
    def possible(self) -> tuple[LeaderElection, ...]:
        """Elections that can be held now."""
        return tuple(e for e in self.needed if not e.obstacle)

    @property
    def impossible(self) -> tuple[LeaderElection, ...]:
        """Elections that cannot be held now."""
        return tuple(e for e in self.needed if e.obstacle)


_BATCH: Final = 250
"""Partitions per request, since each election is a short outage of its partition."""
_WAIT_S: Final = 10.0
"""Seconds in which elected replicas should lead."""
_PAUSE_S: Final = 0.2
"""Seconds between two checks whether they do."""


def find_elections(
    admin: ClusterReads,
    topics: Collection[str] | None = None,
    ids: Collection[PartitionId] | None = None,
) -> LeaderElections:
    """Check these partitions, or these topics, or else the whole cluster.

    Raises ConfigError where one does not exist.
    """
    counts = admin.topics()
    if ids is None:
        ids = _partitions_of(counts, topics)
    for pid in ids:
        if pid.partition >= counts.get(pid.topic, 0):
            raise ConfigError(
                f"the cluster has no partition {pid}; use an election file of this "
                "cluster, or remove the partition from it"
            )
    views = admin.partitions(ids)
    return LeaderElections(
        cluster_id=admin.cluster().cluster_id,
        checked=len(ids),
        replicated=sum(len(view.replicas) > 1 for view in views.values()),
        needed=_needed(admin, ids, views),
    )


def hold_elections(
    admin: ClusterAdmin, timing: Timing, ids: Collection[PartitionId], journal: RunJournal
) -> tuple[LeaderElection, ...]:
    """Elect the preferred leaders; return the elections without success.

    Skips partitions that no longer need or allow one. Returns when all preferred replicas lead,
    or after 10 s. Each request is journalled before it is sent, and the outcome at the end.
    """
    possible = [e for e in _needed(admin, ids, admin.partitions(ids)) if not e.obstacle]
    for first in range(0, len(possible), _BATCH):
        batch = possible[first : first + _BATCH]
        journal.write(JournalEvent.ELECTING, elections=[e.document() for e in batch])
        admin.elect_preferred([election.id for election in batch])
    end_s = timing.steady_s() + _WAIT_S
    while True:
        open_now = _needed(admin, ids, admin.partitions(ids))
        if all(e.obstacle for e in open_now) or timing.steady_s() >= end_s:
            break
        timing.pause(_PAUSE_S)
    failed = tuple(
        e if e.obstacle else replace(e, obstacle=f"not elected within {_WAIT_S:.0f} s")
        for e in open_now
    )
    note = f"{len(ids) - len(failed)} of {len(ids)} elected"
    journal.write(JournalEvent.NOTED, note=note, not_elected=[e.document() for e in failed])
    return failed


def _partitions_of(
    counts: Mapping[TopicName, int], topics: Collection[str] | None
) -> list[PartitionId]:
    for topic in topics or ():
        if topic not in counts:
            raise ConfigError(f"the cluster has no topic {topic!r}{nearest(topic, counts)}")
    return [
        PartitionId(topic, number)
        for topic, count in sorted(counts.items())
        if topics is None or topic in topics
        for number in range(count)
    ]


def _needed(
    admin: ClusterReads, ids: Collection[PartitionId], views: Mapping[PartitionId, PartitionView]
) -> tuple[LeaderElection, ...]:
    elsewhere = [pid for pid in ids if not _is_well_led(views.get(pid))]
    if not elsewhere:
        return ()
    alive, listed = admin.cluster().alive, admin.reassignments()
    return tuple(_election(pid, views.get(pid), alive, listed.get(pid)) for pid in elsewhere)


def _is_well_led(view: PartitionView | None) -> bool:
    """Whether no election is needed; a single replica leads or is offline."""
    if view is None:
        return False
    return len(view.replicas) == 1 or view.leader == view.replicas[0]


def _election(
    pid: PartitionId,
    view: PartitionView | None,
    alive: Collection[BrokerId],
    target: tuple[BrokerId, ...] | None,
) -> LeaderElection:
    if view is None:
        gone = "it no longer exists"
        return LeaderElection(id=pid, leader=NO_BROKER, preferred=NO_BROKER, obstacle=gone)
    preferred = view.replicas[0]
    first, obstacle = f"broker {preferred}, the first of its replicas,", ""
    if target is not None:
        obstacle = f"it is being moved to {text(target)}"
    elif preferred not in alive:
        obstacle = f"{first} is dead or fenced"
    elif preferred not in view.in_sync:
        obstacle = f"{first} is not in sync"
    return LeaderElection(id=pid, leader=view.leader, preferred=preferred, obstacle=obstacle)
