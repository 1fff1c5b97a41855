"""How soon a standby takes over: `python -P -m benchmarks.standby [--only LEASE] [--times N]`.

Two services run against a local Kafka, each with Spark and a state folder of its own; the bucket is
a moto server, and the API server of Kubernetes that of PLIMSOLL_KUBERNETES_HOME, or else a test
server. The leader is killed with SIGKILL, its Spark included, while its run copies replicas; it is
then started again, and stands by. Each kind of lease has a topic and a run of its own.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from benchmarks.machine import processor
from benchmarks.sections import table
from clients.jvm.jars import default_cache_dir
from executor.journal.records import scan
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.plan.plan import Plan, write_plan
from model.run import JournalEvent
from tests.support.cli_offline import PLIMSOLL
from tests.support.cli_on_cluster import Shell, kill_after, placement
from tests.support.executor.plan_builders import plan_for
from tests.support.executor.s3_server import BUCKET, s3_server
from tests.support.kube_apiserver import AnyApi, kube_apiserver, kubernetes_home
from tests.support.kubernetes_api import kubernetes_api

TABLE: Final = Path(__file__).with_name("standby.md")
KINDS: Final = ("s3", "kafka", "kubernetes")
TIMES: Final = 4
PARTITIONS: Final = 64
PARTITION_BYTES: Final = 2_000_000
THROTTLE: Final = "1MB/s"
MOST_S: Final = 180.0
POLL_S: Final = 0.05
ACTS_S: Final = (3.0, 8.0)
"""Seconds from the resumption of the run to the kill: a random time between these."""
OPEN_S: Final = 30.0
"""Time within which the next request of a run is waited for."""
LEASES: Final = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
SETTINGS: Final = """
bootstrap_server = "{bootstrap}"
state_dir = "{folder}/state"
throttle = "{throttle}"
[triggers]
dead_broker = "act"
{triggers}
[service]
listen = "127.0.0.1:0"
standby = true
standby_lease = "{kind}"
standby_service_account = "{account}"
[archive]
endpoint_url = "{endpoint}"
bucket = "{bucket}"
prefix = "{kind}/"
access_key = "me"
secret_key = "secret"
"""
QUIET: Final = (
    "under_min_isr",
    "dead_log_dir",
    "over_capacity",
    "rule_violated",
    "slow_broker",
    "empty_broker",
    "uneven_load",
)
"""Triggers that are off, so that no other run begins; no broker dies, either."""
AUTO: Final = ("service", "--auto", "--limits", "conservative", "--allow-changes")


@dataclass
class Host:
    """A service with a folder of its own, and its processes."""

    folder: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "stderr.txt").open("ab") as stderr:
            self.process = subprocess.Popen(
                [PLIMSOLL, *AUTO, "--log-file", str(self.folder / "log.jsonl")],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End the service and its Spark at once, as a host that dies."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self.process is not None and (self.process.poll() or 0) > 0

    def logged(self, event: str) -> int:
        """How many lines of the log have an event."""
        log = self.folder / "log.jsonl"
        return log.read_text().count(f'"event": "{event}"') if log.exists() else 0

    @property
    def waits_for_answer(self) -> bool:
        """Whether the newest record of the run announces a request for moves."""
        found = self.journal()
        records = () if found is None else scan(found.read_bytes(), found.stem).records
        return bool(records) and records[-1].event is JournalEvent.ISSUING

    def journal(self) -> Path | None:
        """The journal of the only run; None where it is not here yet."""
        found = list((self.folder / "state" / "journal").glob("r*.jsonl"))
        return found[0] if found else None

    def records(self, event: JournalEvent) -> int:
        """How many records of the run report an event, as far as this host knows."""
        found = self.journal()
        text = b"" if found is None else found.read_bytes()
        return text.count(f'"event":"{event}"'.encode())

    def resumed(self) -> int:
        """How many times the run was resumed."""
        return self.records(JournalEvent.RESUMED)


@dataclass
class Seen:
    """What was measured for one kind of lease."""

    leads_s: list[float] = field(default_factory=list)
    acts_s: list[float] = field(default_factory=list)
    """Seconds from the kill to the first record of the run on the other host."""
    was_open: list[bool] = field(default_factory=list)
    """Whether the leader was killed while a request of the run had no answer yet."""
    repeated: int = 0
    """Requests that were sent again, since the leader died before it knew that they were sent."""
    moves: int = 0
    twice: int = 0
    """Moves that were executed more than once."""


def wait(holds: Callable[[], bool], what: str) -> float:
    """Wait for a condition; the moment, in seconds of the steady clock."""
    deadline_s = time.monotonic() + MOST_S
    while not holds():
        if time.monotonic() > deadline_s:
            sys.exit(f"not seen within {MOST_S:.0f} s: {what}")
        time.sleep(POLL_S)
    return time.monotonic()


def fill(bootstrap: str, topic: str) -> None:
    """Write the same number of incompressible bytes to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    rng = random.Random(1)
    for _ in range(PARTITION_BYTES // 100_000):
        for partition in range(PARTITIONS):
            producer.produce(topic, rng.randbytes(100_000), partition=partition)
        producer.flush()


@contextlib.contextmanager
def hosts(
    cluster: LocalCluster, endpoint: str, api: AnyApi, kind: str, parent: Path
) -> Iterator[tuple[Host, Host]]:
    """Two hosts, whose services are not started yet and are killed in the end."""
    found = []
    for name in "ab":
        folder = parent / f"{kind}-{name}"
        folder.mkdir()
        text = SETTINGS.format(
            bootstrap=cluster.bootstrap,
            folder=folder,
            throttle=THROTTLE,
            triggers="\n".join(f'{trigger} = "off"' for trigger in QUIET),
            kind=kind,
            account=api.account(),
            endpoint=endpoint,
            bucket=BUCKET,
        )
        (folder / "plimsoll.toml").write_text(text)
        known = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        config = {"PLIMSOLL_CONFIG": str(folder / "plimsoll.toml")}
        found.append(Host(folder, known | api.environment | config))
    try:
        yield found[0], found[1]
    finally:
        for host in found:
            host.kill()


def begin(cluster: LocalCluster, host: Host, kind: str) -> Plan:
    """Begin a run on a host and kill it, so that whoever leads resumes it."""
    topic = f"standby-{kind}"
    cluster.create_topic(topic, [[1, 2]] * PARTITIONS)
    fill(cluster.bootstrap, topic)
    plan = plan_for(cluster.bootstrap, topic, {p: [3, 2] for p in range(PARTITIONS)})
    write_plan(host.folder / "plan.json", plan)
    shell = Shell(host.folder, cluster.bootstrap)
    apply = ("apply", "plan.json", "--allow-changes", "--yes", "--throttle", THROTTLE)
    kill_after(shell.start(*apply), shell, 3)
    return plan


def take_over(leader: Host, standby: Host, seen: Seen, rng: random.Random, *, asks: bool) -> None:
    """Kill the leader while its run copies, and wait until the other one acts.

    asks: kill it while a request of the run has no answer yet.
    """
    time.sleep(rng.uniform(*ACTS_S))
    deadline_s = time.monotonic() + OPEN_S
    while asks and not leader.waits_for_answer and time.monotonic() < deadline_s:
        time.sleep(0.001)
    led, resumed = standby.logged("standby.leads"), leader.resumed()
    leader.kill()
    killed_s = time.monotonic()
    leads_s = wait(lambda: standby.logged("standby.leads") > led, "the standby leads")
    acts_s = wait(lambda: standby.resumed() > resumed, "the standby resumes the run")
    seen.leads_s.append(leads_s - killed_s)
    seen.acts_s.append(acts_s - killed_s)
    seen.was_open.append(leader.waits_for_answer)
    print(f"leads after {seen.leads_s[-1]:.1f} s, acts after {seen.acts_s[-1]:.1f} s", flush=True)


def judge(journal: Path | None, plan: Plan, seen: Seen) -> None:
    """Count the moves that the journal of the run has executed more than once."""
    if journal is None:
        sys.exit("there is no journal")
    found = scan(journal.read_bytes(), journal.stem)
    if found.damage:
        sys.exit(f"{journal} is damaged: {found.damage[0].problem}")
    issuing: Counter[int] = Counter()
    moved: Counter[int] = Counter()
    resumed = False
    for record in found.records:
        # What `begin` had not sent when it was killed is no matter of the takeovers.
        resumed = resumed or record.event is JournalEvent.RESUMED
        partition = record.partition
        if partition is None:
            continue
        if record.event is JournalEvent.ISSUING:
            issuing[partition] += resumed
            # Whatever follows a move that was done would be a second one.
            seen.twice += moved[partition]
        moved[partition] += record.event is JournalEvent.MOVED
    events = Counter(record.event for record in found.records)
    if events[JournalEvent.STARTED] != 1 or events[JournalEvent.ENDED] != 1:
        sys.exit(f"the run has not started and ended once: {events}")
    seen.moves = sum(moved.values())
    seen.twice += sum(count - 1 for count in moved.values() if count > 1)
    seen.repeated = sum(count - 1 for count in issuing.values() if count > 1)
    if seen.moves != len(plan.moves):
        sys.exit(f"{seen.moves} of {len(plan.moves)} moves were done")


def measure(
    cluster: LocalCluster, endpoint: str, api: AnyApi, kind: str, times: int, parent: Path
) -> Seen:
    """Kill the leader so many times."""
    seen, rng = Seen(), random.Random(kind)
    with hosts(cluster, endpoint, api, kind, parent) as (leader, standby):
        plan = begin(cluster, leader, kind)
        leader.start()
        wait(lambda: leader.resumed() > 0 or leader.has_ended, "the run is resumed")
        if leader.has_ended:
            sys.exit((leader.folder / "stderr.txt").read_text())
        for number in range(times):
            waits = standby.logged("standby.waits")
            standby.start()
            wait(lambda: standby.logged("standby.waits") > waits, "the other one stands by")  # noqa: B023
            take_over(leader, standby, seen, rng, asks=number % 2 == 1)
            leader, standby = standby, leader
        wait(lambda: leader.records(JournalEvent.ENDED) > 0, "the run ends")
        judge(leader.journal(), plan, seen)
    expected = {move.partition: list(move.replicas_after) for move in plan.moves}
    if placement(cluster.bootstrap, f"standby-{kind}") != expected:
        sys.exit("the replicas are not where the plan has them")
    return seen


def spread(values: Sequence[float]) -> str:
    """How many there are, the median and the worst."""
    if not values:
        return "none"
    return f"{len(values)}: {statistics.median(values):.1f} s / {max(values):.1f} s"


def row(kind: str, seen: Seen) -> tuple[str, ...]:
    """A line of the table."""
    acts = list(zip(seen.acts_s, seen.was_open, strict=True))
    return (
        f"`{kind}`",
        spread(seen.leads_s),
        spread([found_s for found_s, was_open in acts if not was_open]),
        spread([found_s for found_s, was_open in acts if was_open]),
        str(seen.moves),
        str(seen.repeated),
        str(seen.twice),
    )


def api_server(folder: Path) -> contextlib.AbstractContextManager[AnyApi]:
    """A real API server of Kubernetes if there is one, otherwise a test server."""
    home = kubernetes_home()
    return kubernetes_api(folder) if home is None else kube_apiserver(home, folder)


def text(found: dict[str, Seen], loads: list[float], version: str) -> str:
    """The page. version: of the API server of Kubernetes."""
    headers = (
        "lease",
        "leads",
        "run resumed",
        "run resumed, a request was open",
        "moves",
        "requests repeated",
        "executed twice",
    )
    return (
        "# How soon a standby takes over\n\n"
        f"`make bench-standby`; {processor()}.\n"
        f"Other work ran meanwhile: load average {min(loads):.0f} to {max(loads):.0f}.\n\n"
        "Two services with `--auto`, each with Spark, and a local Kafka with three brokers on the "
        "same machine.\n"
        f"A run of {PARTITIONS} moves of 2 MB copies with a throttle of {THROTTLE}, and the leader "
        "is killed with SIGKILL, every other time while a request has no answer yet; `timeout_s` "
        "is 10, the default.\n"
        f"The API server of Kubernetes is {version}; the bucket is a moto server.\n"
        "Seconds from the kill until the other service leads, and until it has resumed the run: "
        "number of kills, median / worst.\n30 s are required, also where a request had no answer "
        "yet.\n\n"
        + table(headers, [row(kind, seen) for kind, seen in found.items()])
        + "\nA request is repeated where the leader died between its record and its answer, since "
        "it may not have arrived; for Kafka it is the same request.\n"
        "A move would be executed twice if the journal had a request for it after its end, or two "
        "ends; each run starts and ends once, and all replicas are where the plan has them.\n"
    )


def main() -> None:
    """Measure, and write `standby.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--times", type=int, default=TIMES)
    arguments = parser.parse_args()
    found: dict[str, Seen] = {}
    loads = [os.getloadavg()[0]]
    with (
        tempfile.TemporaryDirectory(prefix="plimsoll-") as name,
        s3_server() as endpoint,
        api_server(Path(name)) as api,
        LocalCluster(default_cache_dir(), LocalPlan(tier=False)) as cluster,
    ):
        cluster.create_topic("__plimsoll_leases", [[1, 2, 3]], LEASES)
        for kind in (arguments.only,) if arguments.only else KINDS:
            found[kind] = measure(cluster, endpoint, api, kind, arguments.times, Path(name))
            loads.append(os.getloadavg()[0])
            print(json.dumps({kind: vars(found[kind])}), flush=True)
            written = text(found, loads, api.version)
            if not arguments.only:
                TABLE.write_text(written)
    print(written)


if __name__ == "__main__":
    main()
