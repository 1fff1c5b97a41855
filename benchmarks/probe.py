"""What a look at a cluster costs: `python -P -m benchmarks.probe`, into `probe.md`.

With --only, the other sections of the table stay as they are.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from kafka import KafkaAdminClient
from kafka.protocol.parser import KafkaProtocol

from benchmarks.machine import processor
from benchmarks.sections import Section, measure_sections, table
from clients.connection import Connection
from clients.jvm.jars import default_cache_dir
from collector.metadata import ClusterReader, ClusterState
from collector.probe import Probe
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState
from model.units import bytes_text

TABLE: Final = Path(__file__).with_name("probe.md")
PLIMSOLL: Final = Path(sys.executable).with_name("plimsoll")
SIZES: Final = (2_000, 20_000)
PER_TOPIC: Final = {2_000: 100, 20_000: 500}
LOOKS: Final = 20
PAUSE_S: Final = 0.5
SETTLE_S: Final = 5.0
RATES: Final = (800_000, 600_000, 400_000, 200_000)
PATIENCE_S: Final = 60.0


@dataclass
class Traffic:
    """Requests and bytes of all of the driver's connections."""

    requests: int = 0
    sent: int = 0
    received: int = 0


@contextmanager
def counted() -> Iterator[Traffic]:
    """What goes over the driver's connections meanwhile."""
    traffic = Traffic()
    take, send = KafkaProtocol.receive_bytes, KafkaProtocol.send_bytes

    def received(self: Any, data: bytes) -> Any:
        traffic.received += len(data)
        return take(self, data)

    def sent(self: Any) -> Any:
        traffic.requests += len(self.bytes_to_send)
        data = send(self)
        traffic.sent += len(data)
        return data

    KafkaProtocol.receive_bytes, KafkaProtocol.send_bytes = received, sent
    try:
        yield traffic
    finally:
        KafkaProtocol.receive_bytes, KafkaProtocol.send_bytes = take, send


@dataclass(frozen=True)
class Look:
    """Metadata and a sample, once."""

    read_s: float
    sample_s: float
    cpu_s: float
    brokers_cpu_s: float
    traffic: Traffic
    rows: int


def look(cluster: LocalCluster, reader: ClusterReader, probe: Probe) -> Look:
    brokers_s, cpu_s = brokers_cpu_s(cluster), time.process_time()
    with counted() as traffic:
        begun_s = time.perf_counter()
        state = reader.read()
        read_s = time.perf_counter() - begun_s
        found = probe.sample(state)
        sample_s = time.perf_counter() - begun_s - read_s
    return Look(
        read_s,
        sample_s,
        time.process_time() - cpu_s,
        brokers_cpu_s(cluster) - brokers_s,
        traffic,
        found.num_rows,
    )


def brokers_cpu_s(cluster: LocalCluster) -> float:
    pids = [pid for name, pid in cluster.pids.items() if name.startswith("broker")]
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def cost(cluster: LocalCluster) -> str:
    """The section of looks at many partitions."""
    connection, made, rows = Connection(cluster.bootstrap), 0, []
    for size in SIZES:
        per = PER_TOPIC[size]
        for number in range(made, size, per):
            places = [[1 + p % 3] for p in range(min(per, size - number))]
            cluster.create_topic(f"team-{number}.events_v1", places)
        made = size
        time.sleep(SETTLE_S)
        rows.append(_cost_row(cluster, connection, size))
        print(rows[-1], flush=True)
    headers = [
        "partitions",
        "sample, median / worst",
        "first sample",
        "metadata, median / worst",
        "CPU of plimsoll per look",
        "CPU of three brokers per look",
        "requests per look",
        "bytes to and from brokers per look",
    ]
    return table(headers, rows)


def _cost_row(cluster: LocalCluster, connection: Connection, size: int) -> list[str]:
    with ClusterReader(connection) as reader, Probe(connection) as probe:
        first = look(cluster, reader, probe)
        looks = []
        for _ in range(LOOKS):
            time.sleep(PAUSE_S)
            looks.append(look(cluster, reader, probe))
    assert {one.rows for one in (first, *looks)} == {size}
    return [
        f"{size:,}",
        milliseconds([one.sample_s for one in looks]),
        milliseconds([first.sample_s]),
        milliseconds([one.read_s for one in looks]),
        milliseconds([statistics.mean(one.cpu_s for one in looks)]),
        milliseconds([statistics.mean(one.brokers_cpu_s for one in looks)]),
        f"{statistics.mean(one.traffic.requests for one in looks):.1f}",
        " and ".join(
            bytes_text(int(statistics.mean(values)))
            for values in (
                [one.traffic.sent for one in looks],
                [one.traffic.received for one in looks],
            )
        ),
    ]


def milliseconds(values: list[float]) -> str:
    """One, or median and worst."""
    kinds = [statistics.median(values), max(values)] if len(values) > 1 else values
    return " / ".join(f"{1000 * value:.0f}" for value in kinds) + " ms"


def changes(cluster: LocalCluster) -> str:
    """The section of what is seen of a cluster that changes."""
    connection = Connection(cluster.bootstrap)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    with ClusterReader(connection) as reader, Probe(connection) as probe:
        watch = Watch(reader, probe)
        watch.until(lambda state: len(state.brokers) == 3)
        cluster.create_topic("comes-and-goes", [[1], [2], [3]])
        rows = [["a topic created", watch.until(_has("comes-and-goes"))]]
        admin.delete_topics(["comes-and-goes"])
        gone = _has("comes-and-goes")
        rows.append(["a topic deleted", watch.until(lambda state: not gone(state))])
        admin.close()
        rows += _hung(cluster, watch)
        cluster.kafka.kill_broker(BrokerId(3))
        rows += watch.loses(3, "a broker killed")
    cluster.kafka.restart_broker(BrokerId(3))
    return table(["what", "measured"], rows)


def _hung(cluster: LocalCluster, watch: "Watch") -> list[list[str]]:
    pid = cluster.pids["broker-2"]
    watch.slowest_s = 0.0
    os.kill(pid, signal.SIGSTOP)
    try:
        rows = watch.loses(2, "a broker stopped (SIGSTOP)")
        slowest = watch.slowest_s
    finally:
        os.kill(pid, signal.SIGCONT)
    watch.until(lambda state: not _dead(2)(state))
    return [*rows, ["slowest look at the others meanwhile", f"{slowest:.2f} s"]]


class Watch:
    """Looks once a second, as a watching plimsoll does."""

    def __init__(self, reader: ClusterReader, probe: Probe) -> None:
        self._reader, self._probe = reader, probe
        self.slowest_s = 0.0

    def loses(self, broker: int, what: str) -> list[list[str]]:
        """How long it takes from now until a broker is named, and shown as dead."""
        begun_s = time.perf_counter()
        silent = self.until(
            lambda _: any(one.broker == broker for one in self._probe.silent), begun_s
        )
        dead = self.until(_dead(broker), begun_s)
        return [[f"{what}: named as silent", silent], [f"{what}: shown as dead", dead]]

    def until(self, seen: Callable[[ClusterState], bool], begun_s: float | None = None) -> str:
        """Seconds until a state is so."""
        begun_s = time.perf_counter() if begun_s is None else begun_s
        while True:
            look_s = time.perf_counter()
            state = self._reader.read()
            if seen(state):
                return f"{time.perf_counter() - begun_s:.2f} s"
            self._probe.sample(state)
            took_s = time.perf_counter() - look_s
            self.slowest_s = max(self.slowest_s, took_s)
            assert time.perf_counter() - begun_s < PATIENCE_S
            time.sleep(max(0.0, 1.0 - took_s))


def _has(topic: str) -> Callable[[ClusterState], bool]:
    return lambda state: any(t.name == topic for t in state.topics)


def _dead(broker: int) -> Callable[[ClusterState], bool]:
    return lambda state: any(b.id == broker and b.state is BrokerState.DEAD for b in state.brokers)


def status(cluster: LocalCluster) -> str:
    """The section of loads that are known."""
    topic = "at-set-rates"
    cluster.create_topic(topic, [[1], [2], [3], [1]])
    load = Load(
        cluster.processes,
        cluster.bootstrap,
        LoadOrder(topic=topic, bytes_per_s=sum(RATES), weights=RATES),
        name=topic,
    )
    load.start()
    try:
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
            seconds, shown = _status(cluster.bootstrap, folder)
    finally:
        load.kill()
    net_in = {
        p["partition"]: p["load"]["net_in"] for p in shown["partitions"] if p["topic"] == topic
    }
    rows = [
        [
            str(number),
            f"{bytes_text(rate)}/s",
            f"{bytes_text(int(net_in[number]))}/s",
            f"{100 * (net_in[number] / rate - 1):+.1f} %",
        ]
        for number, rate in enumerate(RATES)
    ]
    head = f"`plimsoll status -o json`, start to end: {seconds:.1f} s.\n\n"
    return head + table(["partition", "records' values produced", "bytes in", ""], rows)


def _status(bootstrap: str, folder: str) -> tuple[float, Any]:
    state = {"PLIMSOLL_STATE_DIR": folder, "PLIMSOLL_BOOTSTRAP_SERVER": bootstrap}
    begun_s = time.perf_counter()
    run = subprocess.run(
        [PLIMSOLL, "status", "-o", "json"],
        env={**os.environ, **state},
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - begun_s, json.loads(run.stdout)


def _on_cluster(measure: Callable[[LocalCluster], str]) -> Callable[[], str]:
    """On a new one."""

    def measured() -> str:
        with LocalCluster(default_cache_dir(), LocalPlan(tier=False)) as cluster:
            return measure(cluster)

    return measured


SECTIONS: Final[dict[str, Section]] = {
    "status": (
        "A known load",
        "A producer at set rates; apart from the values of 1,000 bytes, about 1 % of "
        "its log is overhead.",
        _on_cluster(status),
    ),
    "changes": (
        "A cluster that changes",
        "Polled once a second. Brokers are fenced after 3 s without a heartbeat.",
        _on_cluster(changes),
    ),
    "cost": (
        "Many partitions",
        f"Three brokers, one replica, nothing written; {LOOKS} looks after the first, "
        f"{PAUSE_S} s between them. A look is metadata and one sample.",
        _on_cluster(cost),
    ),
}


def main() -> None:
    words = "The agentless probe on the local Kafka; `make bench-probe`"
    measure_sections(TABLE, f"{words}, {processor()}.", SECTIONS)


if __name__ == "__main__":
    main()
