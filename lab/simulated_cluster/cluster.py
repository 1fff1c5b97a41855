"""The simulated cluster: its clock, reassignments, and brokers that die and return."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from executor.client.responses import ClusterView, PartitionResponse, PartitionView
from executor.throttle.fair_share import fair_rates
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from executor.timing import Timing
from lab.simulated_cluster.cluster_state import SimulatedBroker, SimulatedPartition
from lab.simulated_cluster.directory_copies import SimulatedDirectories
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import StorageKind


class Direction(Enum):
    """Direction of a copy through a broker's network card."""

    IN = "in"
    OUT = "out"


_Copy = tuple[PartitionId, BrokerId]
_Limit = tuple[BrokerId, Direction, bool]
"""One direction of a broker's network card; if True, of its replication quota."""


class SimulatedCluster:
    """Brokers and partitions whose time passes only in `advance`.

    tick_s: longest time for which produce rates are taken as constant.
    """

    def __init__(
        self,
        cluster_id: str,
        brokers: Iterable[SimulatedBroker],
        partitions: Iterable[SimulatedPartition],
        *,
        now_s: float,
        tick_s: float = 1.0,
    ) -> None:
        self.cluster_id = cluster_id
        self.now_s = now_s
        self._tick_s = tick_s
        self.brokers = {b.id: b for b in brokers}
        self.partitions = {p.id: p for p in partitions}
        self.directories = SimulatedDirectories(self.brokers, self.partitions)
        self.default_configs: dict[str, str] = {}
        """Dynamic settings of all brokers."""
        self.topic_configs: dict[TopicName, dict[str, str]] = {}
        self.opening_s = 1.5
        """Duration of a move in AutoMQ, whatever the size of the partition."""
        self.elections = 1
        """Controller elections so far."""
        self.knows_cordons = True
        """Whether brokers have `cordoned.log.dirs`, as since Kafka 4.3."""
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    @property
    def timing(self) -> Timing:
        """Its clock; waiting advances it."""
        return Timing(now_s=lambda: self.now_s, pause=self.advance, steady_s=lambda: self.now_s)

    @property
    def alive(self) -> frozenset[BrokerId]:
        """Ids of live brokers."""
        return frozenset(b.id for b in self.brokers.values() if b.alive)

    @property
    def view(self) -> ClusterView:
        """Its id, live brokers and racks, as brokers describe it."""
        racks = {b.id: b.rack for b in self.brokers.values() if b.rack}
        return ClusterView(cluster_id=self.cluster_id, alive=self.alive, racks=racks)

    @property
    def dead(self) -> frozenset[BrokerId]:
        """Ids of dead brokers."""
        return frozenset(self.brokers) - self.alive

    @property
    def is_automq(self) -> bool:
        """Whether partitions are only in object storage."""
        return any(p.storage is StorageKind.SHARED for p in self.partitions.values())

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action `seconds` from now."""
        self._due.append((self.now_s + seconds, next(self._order), action))
        self._due.sort(reverse=True)

    def advance(self, seconds: float) -> None:
        """Let `seconds` of simulated time pass."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            rates = self._rates()
            step_s = min(end_s - self.now_s, self._tick_s, *self._ends_in_s(rates))
            self._pass(step_s, rates)
            self._settle()
            while self._due and self._due[-1][0] <= self.now_s:
                self._due.pop()[2]()

    def kill(self, broker: BrokerId) -> None:
        """Kill a broker; in-sync replicas take over its leaderships."""
        self.brokers[broker].alive = False
        self.brokers[broker].requested_dirs.clear()
        for partition in self._on(broker):
            if len(partition.in_sync) > 1:
                partition.in_sync.discard(broker)
            partition.elect(self.alive)

    def fail_dir(self, broker: BrokerId, path: str) -> None:
        """Fail the disk of a log directory; the broker lives on with its others (KIP-112)."""
        self.brokers[broker].failed_dirs.add(path)
        for partition in self._on(broker):
            if broker in partition.held and self.directories.of(partition, broker) == path:
                partition.failed.add(broker)
                if len(partition.in_sync) > 1:
                    partition.in_sync.discard(broker)
                partition.elect(self.alive)

    def revive(self, broker: BrokerId) -> None:
        """Restart a broker with its old data; it copies the rest."""
        self.brokers[broker].alive = True
        for partition in self._on(broker):
            partition.elect(self.alive)

    def reassign(
        self, pid: PartitionId, target: Sequence[BrokerId] | None, *, resizes: bool = False
    ) -> PartitionResponse:
        """Reassign as the controller does (`ReplicationControlManager`).

        target: the new replica list; None cancels. resizes: whether the number of replicas may
        change (KIP-860).
        """
        partition = self.partitions.get(pid)
        if partition is None:
            return PartitionResponse.refused(f"Unable to find a topic named {pid.topic}.")
        if target is None:
            return self._cancel(partition)
        if not target or len(set(target)) < len(target):
            return PartitionResponse.refused("The manual partition assignment is not valid.")
        if fault := self._fault(partition, target):
            return PartitionResponse.refused(fault)
        if partition.storage is StorageKind.SHARED:
            return self._hand_over(partition, target)
        before = [b for b in partition.replicas if b not in partition.adding]
        if len(target) != len(before) and not resizes:
            return PartitionResponse.refused("The replication factor would change.")
        partition.adding = tuple(b for b in target if b not in before)
        partition.removing = tuple(b for b in before if b not in target)
        partition.replicas = [*target, *partition.removing]
        for broker in set(partition.held) - set(partition.replicas):
            self._remove(partition, broker)
        for broker in partition.adding:
            if broker not in partition.held:
                self.directories.add(partition, broker)
                partition.held[broker] = partition.start
        self._settle()
        return PartitionResponse.accepted()

    def _fault(self, partition: SimulatedPartition, target: Sequence[BrokerId]) -> str:
        """Why the controller assigns no replica to a broker; empty where it does."""
        for broker in target:
            if broker not in self.brokers:
                return f"Broker {broker} is not registered."
            at = self.brokers[broker]
            copies = partition.storage is not StorageKind.SHARED
            if (
                copies
                and broker not in partition.replicas
                and all(map(at.is_cordoned, at.log_dirs))
            ):
                return f"Broker {broker} is cordoned."
        return ""

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        """Elect the first replica as leader where it is in sync (KIP-460)."""
        for pid in ids:
            if pid in self.partitions:
                self.partitions[pid].elect(self.alive, preferred=True)

    def used_bytes(self, broker: BrokerId) -> float:
        """Bytes on a broker's disks."""
        return sum(p.bytes_on(broker) for p in self._on(broker) if broker in p.held)

    def disk_writes(self) -> dict[BrokerId, float]:
        """Bytes per second that each live broker writes: what is produced, and copies."""
        writes = dict.fromkeys(self.alive, 0.0)
        for partition in self.partitions.values():
            rate = partition.bytes_in(self.now_s)
            for broker in partition.in_sync & writes.keys():
                writes[broker] += rate
        for (_, broker), rate in self._rates().items():
            writes[broker] += rate
        return writes

    def _cancel(self, partition: SimulatedPartition) -> PartitionResponse:
        """Cancel; replicas keep the new order (`PartitionReassignmentRevert`)."""
        if not partition.is_moving:
            return PartitionResponse.refused("No partition reassignment is in progress (85)")
        for broker in partition.adding:
            partition.replicas.remove(broker)
            self._remove(partition, broker)
        partition.adding = partition.removing = ()
        partition.elect(self.alive)
        return PartitionResponse.accepted()

    def shown(self, ids: Iterable[PartitionId] | None = None) -> dict[PartitionId, PartitionView]:
        """Placement as brokers describe it; by default of all partitions."""
        known, dead = self.partitions, self.dead
        selected = known if ids is None else ids
        return {pid: known[pid].view(dead) for pid in selected if pid in known}

    def _remove(self, partition: SimulatedPartition, broker: BrokerId) -> None:
        partition.held.pop(broker)
        partition.in_sync.discard(broker)
        partition.failed.discard(broker)
        self.directories.remove(partition, broker)

    def _hand_over(
        self, partition: SimulatedPartition, target: Sequence[BrokerId]
    ) -> PartitionResponse:
        if len(target) != 1 or target[0] not in self.alive:
            return PartitionResponse.refused("The target must be one broker that serves.")
        if list(target) != partition.replicas:
            partition.replicas, partition.leader = list(target), NO_BROKER
            partition.in_sync = set(target)
            partition.held = {target[0]: partition.log_bytes}
            partition.opens_at_s = self.now_s + self.opening_s
        return PartitionResponse.accepted()

    def _on(self, broker: BrokerId) -> Iterator[SimulatedPartition]:
        return (p for p in self.partitions.values() if broker in p.replicas)

    def _copies(self) -> Iterator[tuple[SimulatedPartition, BrokerId]]:
        """Replicas that are catching up, with their partitions."""
        alive = self.alive
        for partition in self.partitions.values():
            if partition.leader in alive:
                for broker in partition.replicas:
                    working = broker in alive and broker not in partition.failed
                    if broker not in partition.in_sync and working:
                        yield partition, broker

    def _rates(self) -> dict[_Copy, float]:
        """Bytes per second of every copy in progress."""
        limits_of: dict[_Copy, list[_Limit]] = {}
        for partition, broker in self._copies():
            ways = ((partition.leader, Direction.OUT), (broker, Direction.IN))
            limits_of[partition.id, broker] = [
                (at, way, quota)
                for at, way in ways
                for quota in (False, True)
                if not quota or self.throttles(partition.id, at, way)
            ]
        if not limits_of:
            return {}
        limits = {limit for of in limits_of.values() for limit in of}
        return fair_rates(limits_of, {limit: self._free(limit) for limit in limits})

    def throttles(self, pid: PartitionId, broker: BrokerId, way: Direction) -> bool:
        """Whether the broker's quota applies to this replica."""
        key, rate = (LEADERS, RATES[0]) if way is Direction.OUT else (FOLLOWERS, RATES[1])
        if rate not in self.brokers[broker].configs:
            return False
        listed = self.topic_configs.get(pid.topic, {}).get(key, "").split(",")
        return "*" in listed or f"{pid.partition}:{broker}" in listed

    def _free(self, limit: _Limit) -> float:
        """Bytes/s of a card or quota left by producers and in-sync replicas."""
        broker, way, is_quota = limit
        total = self.brokers[broker].network_bytes_per_s
        if is_quota:
            rate = RATES[0] if way is Direction.OUT else RATES[1]
            total = float(self.brokers[broker].configs[rate])
        for partition in self._on(broker):
            if is_quota and not self.throttles(partition.id, broker, way):
                continue
            total -= partition.bytes_in(self.now_s) * _times(partition, broker, way)
        return total

    def _ends_in_s(self, rates: Mapping[_Copy, float]) -> Iterator[float]:
        """Seconds until each of the next events."""
        for (pid, broker), rate in rates.items():
            partition = self.partitions[pid]
            gain = rate - partition.bytes_in(self.now_s)
            if gain > 0.0:
                yield max(1e-6, partition.lags(broker) / gain)
        for partition in self.partitions.values():
            if partition.opens_at_s is not None:
                yield max(0.0, partition.opens_at_s - self.now_s)
        yield from self.directories.ends_in_s()
        if self._due:
            yield max(0.0, self._due[-1][0] - self.now_s)

    def _pass(self, seconds: float, rates: Mapping[_Copy, float]) -> None:
        alive = self.alive
        for partition in self.partitions.values():
            if partition.leader in alive:
                partition.log_bytes += seconds * partition.bytes_in(self.now_s)
            for broker in partition.held:
                rate = rates.get((partition.id, broker))
                if rate is not None:
                    reached = partition.held[broker] + seconds * rate
                    partition.held[broker] = min(reached, partition.log_bytes)
                elif broker in partition.in_sync and broker in alive:
                    partition.held[broker] = partition.log_bytes
        self.directories.advance(seconds)
        self.now_s += seconds

    def _offload(self) -> None:
        """Tier closed segments at once; with KIP-1023 moves do not copy them."""
        for partition in self.partitions.values():
            own = self.topic_configs.get(partition.id.topic, {})
            keeps = float(own.get("local.retention.bytes", math.inf))
            if partition.storage is StorageKind.TIERED and (0.0 <= keeps < partition.log_bytes):
                tail = 2.0 * float(own.get("segment.bytes", math.inf))
                partition.tail_bytes = min(partition.tail_bytes, tail)

    def _settle(self) -> None:
        """Complete moves whose copies are done, and fail brokers with full disks."""
        self._offload()
        for partition, broker in list(self._copies()):
            if not partition.lags(broker):
                partition.in_sync.add(broker)
        for partition in self.partitions.values():
            if partition.is_moving and partition.in_sync.issuperset(partition.adding):
                self._complete(partition)
            if partition.opens_at_s is not None and self.now_s >= partition.opens_at_s:
                partition.opens_at_s = None
                partition.elect(self.alive)
        for broker in self.alive:
            if self.directories.is_full(broker):
                # Like a broker whose only log directory fails.
                self.kill(broker)

    def _complete(self, partition: SimulatedPartition) -> None:
        partition.replicas = partition.target
        partition.in_sync.intersection_update(partition.replicas)
        for broker in partition.removing:
            self._remove(partition, broker)
        partition.adding = partition.removing = ()
        partition.elect(self.alive)


def _times(partition: SimulatedPartition, broker: BrokerId, way: Direction) -> int:
    """How often produced bytes pass a broker's card in this direction."""
    if broker != partition.leader:
        return int(way is Direction.IN and broker in partition.in_sync)
    return 1 if way is Direction.IN else len(partition.in_sync) - 1
