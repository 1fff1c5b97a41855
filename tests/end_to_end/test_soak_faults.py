"""An hour of moves while brokers, connections, disks and plimsoll itself fail: `make soak`."""

import itertools
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from clients.jvm.jars import default_cache_dir
from control.cli.exit_codes import Exit
from executor.client.kafka_admin import KafkaAdmin
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from lab.local_cluster.tcp_ports import free_ports
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import write_plan
from tests.support.cli_offline import PLIMSOLL
from tests.support.cli_on_cluster import HANG_S, Shell, placement, wait_until
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.topic_records import fill
from tests.support.lab.proxy import Api, Fault, Proxy
from tests.support.namespaces import SmallMount, stepped_clock

pytestmark = [pytest.mark.soak, pytest.mark.kafka]

MINUTES = float(os.environ.get("PLIMSOLL_SOAK_MINUTES", "60"))
SEED = int(os.environ.get("PLIMSOLL_SOAK_SEED", "1"))
BROKERS = (1, 2, 3, 4, 5)
"""In the racks a, b, c, a, b; the last two are no controllers."""
PARTITIONS = 12
MEGABYTES = 4
"""Bytes of each partition before the first move."""
RATE = 100_000.0
THROTTLE = "6MB/s"
"""At this rate a round takes ten seconds or more, so that faults hit it."""
CLIENTS = "127.0.0.2"
"""The address from which brokers see clients of the proxy."""
STATE_BYTES = 32 * 2**20
MOST_RESUMES = 5
"""A command may end once more where a stop rule sees what a fault has left."""
BEGINS = "$ plimsoll "
NO_RUN = ("nothing is left to resume", "has no run on this cluster")
ROUNDS = ((1, 2, 3), (4, 5, 3), (4, 2, 3), (1, 5, 3))
"""The brokers of each partition in successive rounds, one in each rack."""
SAFE = {"min.insync.replicas": "2"}


@dataclass
class World:
    """A cluster behind a proxy, two loads, and a folder of plimsoll on a small file system."""

    cluster: LocalCluster
    proxy: Proxy
    admin: KafkaAdmin
    """Past the proxy."""
    mount: SmallMount
    shell: Shell
    random: Random
    topics: tuple[str, ...]
    clocks: Sequence[tuple[str, ...]]
    """What precedes a command: nothing, or what steps its clock."""
    counts: Counter[str] = field(default_factory=Counter)

    def plan(self, topic: str, after: Mapping[int, Sequence[int]]) -> bool:
        """Write a plan for what is not there yet; False where all is."""
        bootstrap = self.cluster.kafka.inner_bootstrap
        held, led = placement(bootstrap, topic), self.leaders(topic)
        left = {n: new for n, new in after.items() if (held[n], led[n]) != ([*new], new[0])}
        if left:
            write_plan(self.shell.folder / "plan.json", plan_for(bootstrap, topic, left))
        return bool(left)

    def start(self, *arguments: str, before: Sequence[str] = ()) -> "subprocess.Popen[bytes]":
        """Start a command on the small file system; its output goes to `output.txt`."""
        with (self.shell.folder / "output.txt").open("ab") as output:
            output.write(f"{BEGINS}{' '.join(arguments)}\n".encode())
            output.flush()
            return subprocess.Popen(
                [*self.mount.prefix, *before, PLIMSOLL, *arguments, "--allow-changes"],
                cwd=self.shell.folder,
                env=self.shell.environment,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )

    def output(self) -> str:
        """What all commands have printed."""
        return (self.shell.folder / "output.txt").read_text()

    def said(self) -> str:
        """What the latest command has printed."""
        return self.output().rpartition(BEGINS)[2]

    def requests(self) -> int:
        """Records of requests in all journals."""
        journals = (self.mount.path / "journal").glob("*.jsonl")
        return sum(journal.read_text().count('"event":"issu') for journal in journals)

    def is_whole(self) -> bool:
        """Whether all brokers live, and all replicas are in sync."""
        pids = [PartitionId(TopicName(t), n) for t in self.topics for n in range(PARTITIONS)]
        try:
            alive, views = self.admin.cluster().alive, self.admin.partitions(pids)
        except ClusterUnreachable:
            return False
        in_sync = (view.in_sync >= frozenset(view.replicas) for view in views.values())
        return len(views) == len(pids) and alive == frozenset(ids(BROKERS)) and all(in_sync)

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition."""
        pids = [PartitionId(TopicName(topic), n) for n in range(PARTITIONS)]
        return {pid.partition: view.leader for pid, view in self.admin.partitions(pids).items()}

    def is_clean(self) -> bool:
        """Whether no throttle is set and no partition moves."""
        names = [TopicName(topic) for topic in self.topics]
        try:
            rates = [self.admin.own_broker_configs(broker, RATES) for broker in ids(BROKERS)]
            lists = self.admin.own_topic_configs(names, (LEADERS, FOLLOWERS))
            return not any([*rates, *lists.values(), self.admin.reassignments()])
        except ClusterUnreachable:
            return False

    def pid(self, broker: int) -> int:
        """The process of a broker."""
        return self.cluster.pids[f"broker-{broker}"]


Injected = Callable[[World, "subprocess.Popen[bytes]"], None]
"""A fault during a command; when it returns, the fault has ended."""


def nothing(world: World, command: "subprocess.Popen[bytes]") -> None:
    """No fault."""


def broker_killed(world: World, command: "subprocess.Popen[bytes]") -> None:
    """A broker loses power, and comes back after some seconds."""
    broker = BrokerId(world.random.choice(BROKERS))
    world.cluster.kafka.kill_broker(broker)
    time.sleep(world.random.uniform(1, 15))
    world.cluster.kafka.restart_broker(broker)


def broker_stopped(world: World, command: "subprocess.Popen[bytes]") -> None:
    """A broker stands still, for less or more than its session lasts."""
    pid = world.pid(world.random.choice(BROKERS))
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(world.random.uniform(1, 15))
    finally:
        os.kill(pid, signal.SIGCONT)


def cut_off(world: World, command: "subprocess.Popen[bytes]") -> None:
    """plimsoll and the transactional producer, which use the proxy, miss one or all brokers."""
    ports = world.random.choice([(), (world.random.choice(world.proxy.ports),)])
    world.proxy.go_away(*ports)
    time.sleep(world.random.uniform(1, 15))
    world.proxy.come_back()


def request_or_answer_lost(world: World, command: "subprocess.Popen[bytes]") -> None:
    """The next request of a kind that changes the cluster is lost, or its response."""
    apis = (Api.INCREMENTAL_ALTER_CONFIGS, Api.ALTER_PARTITION_REASSIGNMENTS, Api.ELECT_LEADERS)
    api, fault = world.random.choice(apis), world.random.choice([*Fault])
    world.proxy.order(api, fault, delay_s=5.0)
    with_end(command)
    world.proxy.heal()


def killed(world: World, command: "subprocess.Popen[bytes]") -> None:
    """plimsoll is killed."""
    command.send_signal(signal.SIGKILL)


def stopped(world: World, command: "subprocess.Popen[bytes]") -> None:
    """The system asks plimsoll to end."""
    command.send_signal(signal.SIGTERM)


def frozen(world: World, command: "subprocess.Popen[bytes]") -> None:
    """plimsoll stands still, as on a machine that migrates."""
    command.send_signal(signal.SIGSTOP)
    time.sleep(world.random.uniform(1, 20))
    command.send_signal(signal.SIGCONT)


def disk_full(world: World, command: "subprocess.Popen[bytes]") -> None:
    """The file system of the journal has no byte left until the command ends."""
    world.mount.fill()
    with_end(command)
    world.mount.free()


FAULTS: Mapping[str, tuple[Injected, ...]] = {
    "none": (nothing,),
    "broker killed": (broker_killed,),
    "broker stopped": (broker_stopped,),
    "cut off": (cut_off,),
    "request or response lost": (request_or_answer_lost,),
    "plimsoll killed": (killed,),
    "plimsoll stopped": (stopped,),
    "plimsoll frozen": (frozen,),
    "disk full": (disk_full,),
    "broker killed, then plimsoll": (broker_killed, killed),
    "cut off, then plimsoll killed": (cut_off, killed),
}


def with_end(command: "subprocess.Popen[bytes]") -> int:
    """The exit code of a command."""
    try:
        return command.wait(HANG_S)
    except subprocess.TimeoutExpired:
        command.kill()
        raise


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with worlds(tmp_path) as made:
        yield made


@contextmanager
def worlds(folder: Path) -> Iterator[World]:
    # Where that is not allowed, nothing is started.
    clocks = ((), stepped_clock(86_400), stepped_clock(-3_600))
    ports = free_ports(2 * len(BROKERS))
    outer, inner = ports[: len(BROKERS)], ports[len(BROKERS) :]
    plan = LocalPlan(
        brokers=len(BROKERS),
        ports=tuple(inner),
        proxy_ports=tuple(outer),
        tier=False,
        # Kafka's own session timeout: the lab's 3 s fence brokers of a busy machine after a run.
        properties={"transaction.state.log.min.isr": "2", "broker.session.timeout.ms": "9000"},
    )
    with (
        Proxy(dict(zip(outer, inner, strict=True)), source=CLIENTS) as proxy,
        LocalCluster(default_cache_dir(), plan) as cluster,
        KafkaAdmin(cluster.kafka.inner_bootstrap, 10.0) as admin,
        SmallMount(folder / "state", STATE_BYTES) as mount,
    ):
        topics = ("plain", "transactional")
        shell = Shell(folder, cluster.bootstrap)
        yield World(cluster, proxy, admin, mount, shell, Random(SEED), topics, clocks)


def test_records_survive_an_hour_of_faults(world: World) -> None:
    for topic in world.topics:
        world.cluster.create_topic(topic, [ROUNDS[0]] * PARTITIONS, SAFE)
        fill(world.cluster.kafka.inner_bootstrap, topic, [MEGABYTES] * PARTITIONS)
    loads = [load_on(world, topic) for topic in world.topics]
    end_s = time.monotonic() + 60 * MINUTES
    kinds = itertools.cycle(FAULTS)
    for number, brokers in enumerate(itertools.cycle(ROUNDS[1:] + ROUNDS[:1])):
        kind = next(kinds)
        # Each topic takes its turn with each fault, since the number of faults is odd.
        one_round(world, world.topics[number % 2], brokers, kind)
        if time.monotonic() >= end_s:
            break
    met = world.counts["rounds"] - world.counts["faults after the end of a command"]
    assert met > world.counts["rounds"] / 2, world.counts
    for topic, load in zip(world.topics, loads, strict=True):
        found = load.finish(timeout_s=HANG_S)
        print(f"{topic}: {found}")
        # No record of an aborted transaction may be read.
        aborted = found.failed_but_read_records if topic == "transactional" else 0
        assert (found.lost_records, found.duplicated_records, aborted) == (0, 0, 0)
        assert found.read_records - found.failed_but_read_records == found.acknowledged_records > 0
    print(json.dumps(world.counts, indent=1))


def load_on(world: World, topic: str) -> Load:
    transactional = topic == "transactional"
    order = LoadOrder(
        topic=topic,
        bytes_per_s=RATE / 2 if transactional else RATE,
        weights=(1.0,) * PARTITIONS,
        transactional=transactional,
    )
    # The transactional producer suffers what plimsoll does; that with acks=all goes on.
    kafka = world.cluster.kafka
    bootstrap = kafka.bootstrap if transactional else kafka.inner_bootstrap
    load = Load(world.cluster.processes, bootstrap, order, name=topic)
    load.start()
    return load


def one_round(world: World, topic: str, brokers: Sequence[int], kind: str) -> None:
    """Execute a plan in spite of a fault, and check that nothing is left behind."""
    random = world.random
    wait_until(world.is_whole)
    bootstrap = world.cluster.kafka.inner_bootstrap
    # Each broker leads its share.
    after = {n: [*brokers[n % 3 :], *brokers[: n % 3]] for n in range(PARTITIONS)}
    world.plan(topic, after)
    since = world.requests()
    apply = ("apply", "plan.json", "--yes", "--throttle", THROTTLE)
    command = world.start(*apply)
    wanted = since + random.choice([0, 1, 2, 5, 10, 15])
    begun_s = time.monotonic()
    while command.poll() is None and world.requests() < wanted and time.monotonic() < begun_s + 60:
        time.sleep(0.01)
    world.counts["faults after the end of a command"] += command.poll() is not None
    for fault in FAULTS[kind]:
        fault(world, command)
    world.counts[kind] += 1
    code = with_end(command)
    for _ in range(MOST_RESUMES):
        world.counts[f"ended with {code}"] += 1
        if not code:
            break
        wait_until(world.is_whole)
        clock = random.choice(world.clocks)
        world.counts["resumed with another clock" if clock else "resumed"] += 1
        code = with_end(world.start("run", "--resume", before=clock))
        if any(reason in world.said() for reason in (*NO_RUN, "Plan again.")):
            # The fault came before the run, or has changed what the plan relies on.
            world.counts["planned again"] += 1
            wait_until(world.is_whole)
            code = with_end(world.start(*apply)) if world.plan(topic, after) else Exit.DONE
    assert code == Exit.DONE, (world.admin.reassignments(), world.output()[-5000:])
    assert placement(bootstrap, topic) == after
    wait_until(world.is_clean)
    wait_until(world.is_whole)
    # No broker has failed since the command began again.
    assert world.leaders(topic) == {number: held[0] for number, held in after.items()}
    world.counts["rounds"] += 1
    world.counts["moves"] += PARTITIONS
