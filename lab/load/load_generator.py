"""Load on a cluster: a producer and a consumer that count every record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final
from uuid import uuid4

from lab.load.ack_latency import AckStall
from lab.load.json_lines import Line, Worker
from lab.local_cluster.processes import Processes

DEMO_WEIGHTS: Final = (22.0, 18.0, 16.0, 12.0, 11.0, 9.0, 7.0, 5.0)
"""The demo's load of eight partitions in percent. On one broker they are far from balanced; as
22+11, 18+9+7 and 16+12+5 on three brokers, each is within 10 % of the mean."""

_START_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOrder:
    """Options of a load."""

    topic: str
    """An existing topic; partition i gets the i-th weight."""
    bytes_per_s: float
    """Sum over all partitions; values only, without keys and headers."""
    weights: tuple[float, ...]
    """One per partition, in any unit."""
    record_bytes: int = 1000
    seed: int = 0
    """Seed of the records' filler."""
    transactional: bool = False
    """Whether each half second is a transaction; each tenth is aborted, and counts as failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStatus:
    """Progress of a load, at most a second old."""

    acknowledged: tuple[int, ...]
    """Records per partition that all in-sync replicas have."""
    acknowledged_bytes: tuple[int, ...]
    read: tuple[int, ...]
    """Records per partition that the consumer has read."""
    longest_stall: AckStall | None
    """Since the start; None below 50 ms."""
    error: str | None
    """Error that stopped the producer, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """Exact totals of a load that has ended."""

    acknowledged: tuple[int, ...]
    """Records per partition."""
    acknowledged_records: int
    acknowledged_bytes: int
    read_records: int
    lost_records: int
    """Records acknowledged but never read."""
    duplicated_records: int
    """Records written twice."""
    failed_records: int
    """Records sent, but refused, not acknowledged in time, or aborted."""
    failed_but_read_records: int
    """Those of them that were read, which no record of an aborted transaction may be."""
    longest_stall: AckStall | None


class Load:
    """A producer and a consumer in processes of their own; thread-safe."""

    def __init__(
        self, processes: Processes, bootstrap: str, order: LoadOrder, name: str = "load"
    ) -> None:
        self._order = order
        self._bootstrap = bootstrap
        self._lock = Lock()
        self._stalls: list[AckStall] = []
        self._sent: Line = {"acknowledged": [0] * len(order.weights), "error": None}
        self._read: Line = {"read": [0] * len(order.weights)}
        module = "lab.load.transactions" if order.transactional else "lab.load.producer"
        self._producer = Worker(processes, f"{name}-producer", module, self._take_sent)
        self._consumer = Worker(processes, f"{name}-consumer", "lab.load.consumer", self._take_read)

    def start(self) -> None:
        """Start reading, then sending; return when both do.

        Raises ClusterUnreachable: one of the two does not start within a minute.
        """
        self._consumer.tell(
            {
                "bootstrap": self._bootstrap,
                "topic": self._order.topic,
                "group": f"plimsoll-load-{uuid4().hex[:8]}",
                "partitions": len(self._order.weights),
            }
        )
        self._consumer.wait("read", _START_S)
        self._producer.tell(
            {
                "bootstrap": self._bootstrap,
                "topic": self._order.topic,
                "record_bytes": self._order.record_bytes,
                "seed": self._order.seed,
                **self._rates(),
            }
        )
        self._producer.wait("acknowledged", _START_S)

    def shift(self, weights: Sequence[float], bytes_per_s: float | None = None) -> None:
        """Change the weights, and the total rate if given.

        Raises ValueError if the number of weights differs.
        """
        if len(weights) != len(self._order.weights):
            raise ValueError(f"{len(self._order.weights)} weights are needed")
        with self._lock:
            rate = self._order.bytes_per_s if bytes_per_s is None else bytes_per_s
            self._order = replace(self._order, weights=tuple(weights), bytes_per_s=rate)
        self._producer.tell(self._rates())

    def status(self) -> LoadStatus:
        """Current progress; the processes report it twice a second."""
        with self._lock:
            sent, read = self._sent, self._read
        return LoadStatus(
            acknowledged=tuple(sent["acknowledged"]),
            acknowledged_bytes=self._bytes(sent),
            read=tuple(read["read"]),
            longest_stall=self.longest_stall(),
            error=sent["error"],
        )

    def longest_stall(self, since_ms: int = 0) -> AckStall | None:
        """Longest stall that ended at or after `since_ms` (ms since the epoch)."""
        with self._lock:
            stalls = [stall for stall in self._stalls if stall.ended_at_ms >= since_ms]
        return max(stalls, key=lambda stall: stall.duration_s, default=None)

    def finish(self, timeout_s: float = 60.0) -> LoadReport:
        """Stop sending, read to the end and return the totals.

        Raises ClusterUnreachable: sending or reading does not end within `timeout_s` seconds each.
        """
        self._producer.tell({"finish": True})
        sent = self._producer.wait("final", timeout_s)
        acknowledged = sent["acknowledged"]
        self._consumer.tell({"acknowledged": acknowledged, "failed": sent["failed"]})
        read = self._consumer.wait("final", timeout_s)
        self.kill()
        return LoadReport(
            acknowledged=tuple(acknowledged),
            acknowledged_records=sum(acknowledged),
            acknowledged_bytes=sum(self._bytes(sent)),
            read_records=sum(read["read"]),
            lost_records=read["lost"],
            duplicated_records=read["duplicated"],
            failed_records=sum(map(len, sent["failed"])),
            failed_but_read_records=read["failed_but_read"],
            longest_stall=self.longest_stall(),
        )

    def kill(self) -> None:
        """Kill both processes; without `finish` there are no totals."""
        self._producer.kill()
        self._consumer.kill()

    def _take_sent(self, line: Line) -> None:
        with self._lock:
            self._sent = line
            if line["stall"] is not None:
                duration_s, partition, started_at_ms = line["stall"]
                stall = AckStall(
                    partition=partition, started_at_ms=started_at_ms, duration_s=duration_s
                )
                self._stalls.append(stall)

    def _take_read(self, line: Line) -> None:
        with self._lock:
            self._read = line

    def _rates(self) -> Line:
        share = self._order.bytes_per_s / sum(self._order.weights)
        return {"bytes_per_s": [share * weight for weight in self._order.weights]}

    def _bytes(self, sent: Line) -> tuple[int, ...]:
        size = self._order.record_bytes
        return tuple(size * count for count in sent["acknowledged"])
