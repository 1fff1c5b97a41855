"""The probe on real brokers: a hanging one, topics created and deleted, moves."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from clients.connection import Connection
from collector.broker_log_dirs import with_directories
from collector.metadata import ClusterReader, ClusterState
from collector.probe import Probe
from collector.samples import MOVING
from collector.spark.vectors import Window, load_vectors
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from model.snapshot.replication import Replication
from model.snapshot.snapshot import BrokerState
from tests.support.collector.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka
RATES = (800_000, 400_000)
RATE = 4_000_000
WINDOW = Window(window_ms=15_000)


class Watch:
    """Polls once a second; keeps all samples."""

    def __init__(self, cluster: LocalCluster) -> None:
        connection = Connection(cluster.bootstrap)
        self.reader, self.probe = ClusterReader(connection), Probe(connection)
        self.taken: list[pa.Table] = []

    def look(self) -> ClusterState:
        state = self.reader.read()
        self.taken.append(self.probe.sample(state))
        return state

    def until(self, done: Callable[[ClusterState], bool], what: str) -> ClusterState:
        end_s = time.monotonic() + PATIENCE_S
        while not done(state := self.look()):
            assert time.monotonic() < end_s, what
            time.sleep(1)
        return state

    def vectors(self, topic: str, count: int, end: int | None = None) -> list[dict[str, Any]]:
        """The latest samples up to one, by partition."""
        taken = self.taken[:end][-count:]
        result = load_vectors(pa.concat_tables(taken), WINDOW)
        return [row for row in result.to_pylist() if row["topic"] == topic]


@pytest.fixture
def watch(local_cluster: LocalCluster) -> Iterator[Watch]:
    made = Watch(local_cluster)
    with made.reader, made.probe:
        yield made


@contextmanager
def loaded(cluster: LocalCluster, topic: str) -> Iterator[Load]:
    order = LoadOrder(topic=topic, bytes_per_s=sum(RATES), weights=RATES)
    load = Load(cluster.processes, cluster.bootstrap, order, name=topic)
    load.start()
    try:
        yield load
    finally:
        load.kill()


@contextmanager
def admin_of(cluster: LocalCluster) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    try:
        yield admin
    finally:
        admin.close()


def leads(state: ClusterState, broker: int) -> int:
    return int(np.count_nonzero(state.leader == broker))


@pytest.mark.slow
def test_a_broker_that_hangs_is_named_counted_as_dead_and_the_others_are_sampled(
    local_cluster: LocalCluster, watch: Watch
) -> None:
    """One hang, as it takes the cluster's session timeout until a broker counts as dead."""
    local_cluster.create_topic("hanging", [[1], [2], [3]])
    local_cluster.create_topic("lacking", [[1, 2]])
    before = watch.until(
        lambda state: leads(state, 2) > 0 and has(state, "lacking"), "no leader"
    ).replication
    pid = local_cluster.pids["broker-2"]
    os.kill(pid, signal.SIGSTOP)
    try:
        watch.until(lambda _: bool(watch.probe.silent), "its silence is not noticed")
        (silent,) = watch.probe.silent
        assert silent.broker == 2
        others = set(watch.taken[-1]["broker"].to_pylist())
        assert others == {1, 3}
        watch.until(lambda state: dead(state, 2), "it is not shown as dead")
        watch.until(
            lambda state: (
                state.replication.offline > before.offline
                and state.replication.under_replicated > before.under_replicated
            ),
            "the partitions that it leaves offline or under-replicated are not counted",
        )
    finally:
        os.kill(pid, signal.SIGCONT)
    watch.until(lambda state: not dead(state, 2), "it is not shown as alive again")
    watch.until(
        lambda state: (
            not watch.probe.silent and set(watch.taken[-1]["broker"].to_pylist()) == {1, 2, 3}
        ),
        "it is not sampled again",
    )
    watch.until(lambda state: state.replication == before, "its replicas are not in sync again")


def dead(state: ClusterState, broker: int) -> bool:
    (result,) = [b for b in state.brokers if b.id == broker]
    return result.state is BrokerState.DEAD


def test_a_move_alone_leaves_no_partition_under_replicated(
    local_cluster: LocalCluster, watch: Watch
) -> None:
    topic = "moved-and-whole"
    local_cluster.create_topic(topic, [[1, 2], [2, 1]])
    watch.until(lambda state: has(state, topic), "it is not there")
    with loaded(local_cluster, topic) as load, admin_of(local_cluster) as admin:
        watch.until(lambda _: min(load.status().acknowledged_bytes) > 8_000_000, "no load")
        with throttled(admin, topic):
            whole = watch.look().replication
            first = TopicPartition(topic, 0)
            admin.alter_partition_reassignments({first: [3, 2]})
            watch.until(moves, "the move does not begin")
            during: set[Replication] = set()

            def ended(state: ClusterState) -> bool:
                during.add(state.replication)
                return not moves(state)

            watch.until(ended, "the move does not end")
    assert {replace(state, moving=0) for state in during} == {whole}


def test_a_recreated_topic_inherits_no_load(local_cluster: LocalCluster, watch: Watch) -> None:
    topic = "made-anew.with_dots"
    local_cluster.create_topic(topic, [[1], [2]])
    with loaded(local_cluster, topic):
        watch.until(lambda _: len(watch.taken) > 6, "no samples")
    assert min(v["net_in"] for v in watch.vectors(topic, 6)) > 0
    with admin_of(local_cluster) as admin:
        admin.delete_topics([topic])
        watch.until(lambda state: not has(state, topic), "it is not deleted")
    local_cluster.create_topic(topic, [[1], [2]])
    watch.until(lambda state: has(state, topic), "it is not there again")
    for _ in range(6):
        time.sleep(1)
        watch.look()
    result = watch.vectors(topic, len(watch.taken))
    assert [(v["net_in"], v["disk"]) for v in result] == [(0.0, 0.0)] * 2


def has(state: ClusterState, topic: str) -> bool:
    return any(t.name == topic for t in state.topics)


def test_a_throttled_move_does_not_distort_the_load_of_its_partition(
    local_cluster: LocalCluster, watch: Watch
) -> None:
    """At each poll during and after the move: the produced rate, not the copied one."""
    topic = "moved-slowly"
    local_cluster.create_topic(topic, [[1], [2]])
    with loaded(local_cluster, topic) as load, admin_of(local_cluster) as admin:
        watch.until(lambda _: min(load.status().acknowledged_bytes) > 8_000_000, "no load")
        with throttled(admin, topic):
            begun = len(watch.taken)
            places = [TopicPartition(topic, number) for number in (0, 1)]
            admin.alter_partition_reassignments({place: [3] for place in places})
            watch.until(moves, "the move does not begin")
            watch.until(lambda state: not moves(state), "the move does not end")
        for _ in range(6):
            time.sleep(1)
            watch.look()
    flags = pa.concat_tables(watch.taken[begun:]).filter(pc.field("topic") == topic)
    assert MOVING in flags["flags"].to_pylist()
    for end in range(begun + 1, len(watch.taken)):
        vectors = watch.vectors(topic, 15, end)
        shares = [v["net_in"] / sum(RATES) for v in vectors]
        np.testing.assert_allclose(shares, np.array(RATES) / sum(RATES), atol=0.2)
        for vector in vectors:
            assert vector["net_out"] == pytest.approx(vector["net_in"], rel=0.4)
    assert [v["broker"] for v in vectors] == [3, 3]


def test_a_cordoned_broker_is_recognised(watch: Watch, local_cluster: LocalCluster) -> None:
    """Brokers have a single directory each; it may lead nothing."""
    topic = "beside-a-cordon"
    local_cluster.create_topic(topic, [[1], [1], [1], [1]])

    def states(state: ClusterState) -> dict[int, BrokerState]:
        result = with_directories(state, watch.probe.directories)
        return {b.id: b.state for b in result.brokers}

    with admin_of(local_cluster) as admin:
        set_on(admin, 3, {"cordoned.log.dirs": "*"})
        try:
            watch.until(
                lambda state: states(state)[3] is BrokerState.CORDONED,
                "broker 3 is not seen to be cordoned",
            )
            seen = states(watch.look())
            assert {seen[1], seen[2]} == {BrokerState.ALIVE}
        finally:
            set_on(admin, 3, {"cordoned.log.dirs": None})
        watch.until(
            lambda state: states(state)[3] is BrokerState.ALIVE,
            "broker 3 is still seen to be cordoned",
        )


def moves(state: ClusterState) -> bool:
    return bool(state.moving.any())


@contextmanager
def throttled(admin: KafkaAdminClient, topic: str) -> Iterator[None]:
    """Limit copies of the topic to `RATE` bytes/s."""
    sides = ("leader", "follower")
    rates = [f"{side}.replication.throttled.rate" for side in sides]
    lists = [f"{side}.replication.throttled.replicas" for side in sides]
    alter(admin, topic, dict.fromkeys(rates, str(RATE)), dict.fromkeys(lists, "*"))
    try:
        yield None
    finally:
        alter(admin, topic, dict.fromkeys(rates), dict.fromkeys(lists))


def alter(
    admin: KafkaAdminClient,
    topic: str,
    of_brokers: Mapping[str, str | None],
    of_topic: Mapping[str, str | None],
) -> None:
    """Set settings with a value, and delete the others."""
    places = [(ConfigResourceType.BROKER, str(b), of_brokers) for b in (1, 2, 3)]
    for kind, name, values in [*places, (ConfigResourceType.TOPIC, topic, of_topic)]:
        configure(admin, kind, name, values)


def set_on(admin: KafkaAdminClient, broker: int, values: Mapping[str, str | None]) -> None:
    """Set settings of one broker with a value, and delete the others."""
    configure(admin, ConfigResourceType.BROKER, str(broker), values)


def configure(
    admin: KafkaAdminClient, kind: ConfigResourceType, name: str, values: Mapping[str, str | None]
) -> None:
    """Set settings with a value, and delete the others."""
    changes = {
        key: ("DELETE", None) if value is None else ("SET", value) for key, value in values.items()
    }
    resource = ConfigResource(kind, name, changes)
    admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
