"""What the benchmarks of moves share: filled topics, a second pair of eyes, a table."""

import statistics
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from clients.s3 import S3Settings
from executor.client.kafka_admin import KafkaAdmin
from executor.executor import connect
from executor.journal.run_history import read_journal
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from lab.load.load_generator import Load, LoadOrder, LoadReport
from lab.local_cluster.processes import Processes
from model.closing import Closing
from model.ids import PartitionId
from model.plan.plan import Plan
from model.run import JournalEvent, RunProgress, RunReport, RunState
from model.units import bytes_text

RECORD_BYTES: Final = 10_000
_FILL_S: Final = 300.0
_LOOK_S: Final = 0.02
_LED_S: Final = 30.0


class Looking(Closing, threading.Thread):
    """Looks at a cluster every so often during a `with`, by a client of its own."""

    def __init__(self, bootstrap: str, every_s: float) -> None:
        super().__init__(daemon=True)
        self._every_s = every_s
        self._end = threading.Event()
        self.admin = KafkaAdmin(bootstrap, 10.0)

    @abstractmethod
    def look(self) -> None:
        """Look once."""

    def run(self) -> None:
        while not self._end.wait(self._every_s):
            self.look()

    def __enter__(self) -> Self:
        self.start()
        return self

    def close(self) -> None:
        """End the looks."""
        self._end.set()
        self.join()
        self.admin.close()


class Watched(Looking):
    """When each move really ended, looked at every 20 ms."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        super().__init__(bootstrap, _LOOK_S)
        self._targets = {move.id: move.leader_after for move in plan.moves}
        self.led_at_s: dict[PartitionId, float] = {}
        """Seconds since 1970 at which the planned leader was first seen."""

    def look(self) -> None:
        views = self.admin.partitions(self._targets.keys() - self.led_at_s.keys())
        for pid, view in views.items():
            if view.leader == self._targets[pid]:
                self.led_at_s[pid] = time.time()

    def wait(self) -> None:
        """Until the last planned leader was seen: brokers lag behind each other."""
        end_s = time.monotonic() + _LED_S
        while len(self.led_at_s) < len(self._targets):
            assert time.monotonic() < end_s, "a planned leader was never seen"
            time.sleep(self._every_s)


class Carried:
    """One plan executed as `plimsoll apply` does, and what it took."""

    def __init__(
        self, bootstrap: str, plan: Plan, limits: RunLimits, s3: S3Settings | None = None
    ) -> None:
        self.most_in_flight = 0
        self.most_per_broker = 0
        with TemporaryDirectory() as folder, Watched(bootstrap, plan) as watched:
            begun_s = time.time()
            with connect(bootstrap, timeout_s=10.0, limits=limits, s3=s3) as executor:
                self.report: RunReport = executor.execute(
                    plan,
                    journal_dir=Path(folder),
                    moves_in_flight=limits.moves_in_flight,
                    observe=self._count,
                    steering=Steering(),
                )
            self.wall_s = time.time() - begun_s
            assert self.report.state is RunState.DONE, self.report.reason
            watched.wait()
            (journal,) = Path(folder).glob("*.jsonl")
            issued_ms = [
                record.at_ms
                for record in read_journal(journal)
                if record.event is JournalEvent.ISSUING
            ]
        self.broker_s = max(watched.led_at_s.values()) - min(issued_ms) / 1000
        """From the first request to the last leader, by the other client."""

    @property
    def seconds(self) -> list[float]:
        """Of each move, from request to its end seen."""
        return [move.duration_s or 0.0 for move in self.report.moves]

    def _count(self, progress: RunProgress) -> None:
        moves = [
            one.move
            for one in progress.moves
            if one.issued_at_ms is not None and one.done_at_ms is None
        ]
        self.most_in_flight = max(self.most_in_flight, len(moves))
        brokers = [b for m in moves for b in {m.leader_before, *m.added, *m.removed}]
        for broker in set(brokers):
            self.most_per_broker = max(self.most_per_broker, brokers.count(broker))


def filled(
    processes: Processes,
    bootstrap: str,
    topic: str,
    sizes: Sequence[float],
    *,
    fill_bytes_per_s: float,
    then_bytes_per_s: float,
) -> Load:
    """A load that has brought each partition to its size, and goes on more slowly."""
    order = LoadOrder(
        topic=topic, bytes_per_s=fill_bytes_per_s, weights=tuple(sizes), record_bytes=RECORD_BYTES
    )
    load = Load(processes, bootstrap, order, name=topic)
    load.start()
    end_s = time.monotonic() + _FILL_S
    while any(
        has < size for has, size in zip(load.status().acknowledged_bytes, sizes, strict=True)
    ):
        assert time.monotonic() < end_s, load.status()
        time.sleep(0.2)
    load.shift([1.0] * len(sizes), then_bytes_per_s)
    time.sleep(2.0)
    return load


def balance(reports: Sequence[LoadReport]) -> str:
    """What became of all records."""
    read = sum(report.read_records for report in reports)
    acknowledged = sum(report.acknowledged_records for report in reports)
    lost = sum(report.lost_records for report in reports)
    twice = sum(report.duplicated_records for report in reports)
    size = bytes_text(sum(report.acknowledged_bytes for report in reports))
    return (
        f"{acknowledged:,} records ({size}) acknowledged, {read:,} read, {lost} lost, "
        f"{twice} duplicated"
    )


def spread(values: Sequence[float]) -> str:
    """Median and worst."""
    return f"{statistics.median(values):.2f} / {max(values):.2f} s"


def next_of(broker: int, brokers: Sequence[int], by: int = 1) -> list[int]:
    """The list with the broker that follows, round and round."""
    return [brokers[(brokers.index(broker) + by) % len(brokers)]]
