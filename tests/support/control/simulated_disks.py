"""A simulated cluster whose brokers have several log directories."""

from dataclasses import dataclass, field, replace

import numpy as np

from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import Broker, LogDir, Snapshot
from tests.support.control.simulated_tasks import TOPIC, SimulatedTask

DIRS = ("/a", "/b", "/c")


@dataclass(slots=True, kw_only=True)
class SimulatedDisks(SimulatedTask):
    """Brokers with log directories /a, /b and /c; replicas are in the first unless said."""

    lies: dict[tuple[int, int], str] = field(default_factory=dict)
    """Directory by number of a partition and broker."""
    capacity: float | None = None
    """Capacity of each directory, as brokers report it; their disks are larger."""
    dirs: tuple[str, ...] = DIRS
    internal: frozenset[str] = frozenset()
    """Topics that are internal."""

    last: Snapshot = field(init=False)
    """The newest snapshot that was taken."""

    def __post_init__(self) -> None:
        SimulatedTask.__post_init__(self)
        for broker in self.cluster.brokers.values():
            broker.log_dirs = self.dirs
        for (number, member), path in self.lies.items():
            pid = PartitionId(TopicName(TOPIC), number)
            self.cluster.partitions[pid].dirs[BrokerId(member)] = path

    def where(self, broker: int) -> dict[str, list[int]]:
        """Numbers of the partitions in each directory of a broker that holds any."""
        found: dict[str, list[int]] = {}
        for pid, partition in sorted(self.cluster.partitions.items()):
            if BrokerId(broker) in partition.held:
                path = self.cluster.directories.of(partition, BrokerId(broker))
                found.setdefault(path, []).append(pid.partition)
        return found

    @property
    def lists(self) -> list[tuple[int, ...]]:
        """Replicas of each partition."""
        found = sorted(self.cluster.partitions.items())
        return [tuple(map(int, partition.replicas)) for _, partition in found]

    def snapshot(self) -> Snapshot:
        """What a collector would see, with the directories."""
        seen = SimulatedTask.snapshot(self)
        members = tuple(map(self._with_dirs, seen.header.brokers))
        topics = tuple(
            t.model_copy(update={"internal": t.name in self.internal}) for t in seen.header.topics
        )
        header = seen.header.model_copy(update={"brokers": members, "topics": topics})
        of, place = self.cluster, self.cluster.directories.of
        pairs = zip(seen.replica_row.tolist(), seen.partitions.replica_broker.tolist(), strict=True)
        at = [
            self.dirs.index(place(of.partitions[seen.id(row)], BrokerId(broker)))
            for row, broker in pairs
        ]
        columns = replace(seen.partitions, replica_dir=np.array(at, np.int64))
        self.last = Snapshot(header, columns)
        return self.last

    def _with_dirs(self, broker: Broker) -> Broker:
        at = self.cluster.brokers[broker.id]
        failed = at.failed_dirs
        dirs = tuple(
            LogDir(
                path=p,
                capacity_bytes=self.capacity,
                cordoned=p in failed or at.is_cordoned(p),
                failed=p in failed,
            )
            for p in self.dirs
        )
        return broker.model_copy(update={"log_dirs": dirs})
