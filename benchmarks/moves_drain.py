"""A broker is drained on the local Kafka with a remote tier, as by a person, under load."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.moves_kafka import TIERED
from benchmarks.moves_on import Looking, balance, filled
from benchmarks.sections import table
from clients.jvm.jars import default_cache_dir
from executor.journal.run_history import read_journal
from executor.journal.run_journal import is_action
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId, PartitionId, TopicName
from model.run import JournalEvent
from model.units import bytes_text
from tests.support.cli_on_cluster import Shell

BROKERS: Final = 4
DRAINED: Final = BrokerId(4)
PARTITIONS: Final = 200
PLACES: Final = [[1 + n % BROKERS, 1 + (n + 1) % BROKERS] for n in range(PARTITIONS)]
"""Each broker has a replica of half of the partitions."""
PARTITION_BYTES: Final = 20e6
REMOVE: Final = ("broker", "remove", str(DRAINED), "--allow-changes", "--yes", "-o", "json")
RUNS: Final = 3
WINDOW_S: Final = 5.0


class Emptying(Looking):
    """When a broker was last seen with a replica of a topic, looked at every 0.1 s."""

    def __init__(self, bootstrap: str, topic: TopicName) -> None:
        super().__init__(bootstrap, 0.1)
        self._pids = [PartitionId(topic, n) for n in range(PARTITIONS)]
        self.last_seen_s = 0.0

    def look(self) -> None:
        now_s = time.time()
        views = self.admin.partitions(self._pids)
        if any(DRAINED in view.replicas for view in views.values()):
            self.last_seen_s = now_s


def drained() -> str:
    """The section of drained brokers: full, then drained, in a new cluster each time."""
    rows, loads = [], []
    for run in range(RUNS):
        with LocalCluster(default_cache_dir(), LocalPlan(brokers=BROKERS)) as cluster:
            topic = TopicName("drained")
            cluster.create_topic(topic, PLACES, TIERED)
            load = filled(
                cluster.processes,
                cluster.bootstrap,
                topic,
                [PARTITION_BYTES] * PARTITIONS,
                fill_bytes_per_s=40e6,
                then_bytes_per_s=1e6,
            )
            rows.append([str(run + 1), *_row(cluster.bootstrap, topic)])
            loads.append(load.finish())
    headers = [
        "run",
        "moves",
        "copied",
        "from the command to the first request",
        "from the first request until empty",
        "until the command ends",
    ]
    return table(headers, rows) + f"\n{balance(loads)}.\n"


def _row(bootstrap: str, topic: TopicName) -> list[str]:
    with TemporaryDirectory() as name:
        shell = Shell(Path(name), bootstrap)
        (shell.folder / "plimsoll.toml").write_text(f"window_s = {WINDOW_S}\n")
        with Emptying(bootstrap, topic) as emptying:
            begun_s = time.time()
            done = shell.plimsoll(*REMOVE)
            ended_s = time.time()
        assert done.returncode == 0, done.stderr
        print(done.stderr, flush=True)
        assert json.loads(done.stdout)["phase"] == "done", done.stdout
        journals = (shell.folder / "state" / "journal").glob("*.jsonl")
        # The cordon has a journal of its own.
        (journal,) = [path for path in journals if not is_action(path.stem)]
        records = list(read_journal(journal))
    first_s = min(r.at_ms for r in records if r.event is JournalEvent.ISSUING) / 1000
    moved = [r for r in records if r.event is JournalEvent.MOVED]
    return [
        str(len(moved)),
        bytes_text(sum(r.detail["bytes"] or 0 for r in moved)),
        f"{first_s - begun_s:.1f} s",
        f"{emptying.last_seen_s - first_s:.1f} s",
        f"{ended_s - first_s:.1f} s",
    ]
