"""Log directories of simulated brokers, and copies between them."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from executor.client.responses import LogDirView, PartitionResponse
from lab.simulated_cluster.cluster_state import DirectoryCopy, SimulatedBroker, SimulatedPartition
from model.ids import BrokerId, PartitionId

COPY_BYTES_PER_S: Final = 100e6
"""Rate of a copy between directories; a broker copies one replica at a time."""


class SimulatedDirectories:
    """The directory of each replica on its broker (KIP-113)."""

    def __init__(
        self,
        brokers: Mapping[BrokerId, SimulatedBroker],
        partitions: Mapping[PartitionId, SimulatedPartition],
    ) -> None:
        self._brokers = brokers
        self._partitions = partitions

    def alter(self, broker: BrokerId, pid: PartitionId, path: str) -> PartitionResponse:
        """Start or cancel a copy, as `kafka.server.ReplicaManager` does."""
        at, partition = self._brokers[broker], self._partitions.get(pid)
        if path not in at.log_dirs:
            return PartitionResponse.refused(f"broker {broker} answers LogDirNotFound (57)")
        if at.failed_dirs:
            return PartitionResponse.refused(f"broker {broker} answers KafkaStorageError (56)")
        if at.is_cordoned(path) and (partition is None or self.of(partition, broker) != path):
            return PartitionResponse.refused(f"broker {broker} answers INVALID_REPLICA_ASSIGNMENT")
        if partition is None or broker not in partition.held:
            at.requested_dirs[pid] = path
        elif self.of(partition, broker) == path:
            at.copies.pop(pid, None)
        elif pid not in at.copies or at.copies[pid].path != path:
            at.copies[pid] = DirectoryCopy(path=path)
        return PartitionResponse.accepted()

    def add(self, partition: SimulatedPartition, broker: BrokerId) -> None:
        """Place a new replica: as requested, else in the directory with the fewest."""
        at = self._brokers[broker]
        held = [self.of(p, broker) for p in self._partitions.values() if broker in p.held]
        online = [d for d in at.log_dirs if d not in at.failed_dirs]
        open_dirs = [d for d in online if not at.is_cordoned(d)]
        emptiest = min(open_dirs or online, key=held.count)
        partition.dirs[broker] = at.requested_dirs.pop(partition.id, emptiest)

    def remove(self, partition: SimulatedPartition, broker: BrokerId) -> None:
        """Forget a removed replica."""
        partition.dirs.pop(broker, None)
        self._brokers[broker].copies.pop(partition.id, None)

    def ends_in_s(self) -> Iterator[float]:
        """Seconds until each copy in progress is complete."""
        for broker, pid, copy in self._running():
            left = self._partitions[pid].bytes_on(broker) - copy.copied
            yield max(1e-6, left / COPY_BYTES_PER_S)

    def advance(self, seconds: float) -> None:
        """Copy for `seconds`, and switch to complete copies."""
        for broker, pid, copy in list(self._running()):
            copy.copied += seconds * COPY_BYTES_PER_S
            partition = self._partitions[pid]
            if copy.copied + 0.5 >= partition.bytes_on(broker):
                partition.dirs[broker] = copy.path
                del self._brokers[broker].copies[pid]

    def views(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        """Directories of a broker as it describes them, with the replicas named."""
        return tuple(self._view(broker, path, ids) for path in self._brokers[broker].log_dirs)

    def is_full(self, broker: BrokerId) -> bool:
        """Whether one of a broker's disks is over its capacity."""
        at = self._brokers[broker]
        if at.disk_bytes == math.inf:
            return False
        return any(self._used(broker, path) > at.disk_bytes for path in at.log_dirs)

    def _view(self, broker: BrokerId, path: str, ids: Collection[PartitionId]) -> LogDirView:
        at = self._brokers[broker]
        limited = at.disk_bytes < math.inf
        free = at.disk_bytes - self._used(broker, path) if limited else math.inf
        return LogDirView(
            path=path,
            sizes={}
            if path in at.failed_dirs
            else {p.id: int(p.bytes_on(broker)) for p in self._in(broker, path, ids)},
            coming={
                pid: int(copy.copied)
                for pid, copy in at.copies.items()
                if copy.path == path and pid in ids
            },
            usable_bytes=int(free) if limited else None,
            offline=path in at.failed_dirs,
            cordoned=at.is_cordoned(path),
        )

    def _used(self, broker: BrokerId, path: str) -> float:
        lies = self._in(broker, path, self._partitions)
        comes = self._brokers[broker].copies.values()
        return sum(p.bytes_on(broker) for p in lies) + sum(
            copy.copied for copy in comes if copy.path == path
        )

    def _in(
        self, broker: BrokerId, path: str, ids: Collection[PartitionId]
    ) -> Iterator[SimulatedPartition]:
        for pid in ids:
            partition = self._partitions.get(pid)
            if partition is None or broker not in partition.held:
                continue
            if self.of(partition, broker) == path:
                yield partition

    def of(self, partition: SimulatedPartition, broker: BrokerId) -> str:
        """The directory of a replica."""
        return partition.dirs.get(broker, self._brokers[broker].log_dirs[0])

    def _running(self) -> Iterator[tuple[BrokerId, PartitionId, DirectoryCopy]]:
        for at in self._brokers.values():
            if at.alive and at.copies:
                yield at.id, *next(iter(at.copies.items()))
