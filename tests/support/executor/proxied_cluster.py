"""A real cluster behind a proxy, and moves on it."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from executor.executor import Executor, connect
from executor.run.operator_control import Steering
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from executor.timing import RunLimits
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from lab.local_cluster.tcp_ports import free_ports
from model.ids import TopicName
from model.plan.plan import Plan
from model.run import RunProgress, RunReport
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.real_runs import DEFAULT_LIMITS, ignore
from tests.support.lab.proxy import Proxy

TOPIC = TopicName("numbered")
PARTITIONS = 60
TIMEOUT_S = 2.0
CLIENTS = "127.0.0.2"
"""The address from which brokers see clients of the proxy."""
THROTTLED = RunLimits(throttle_bytes_per_s=50_000_000)


@dataclass
class Proxied:
    """The cluster, with the operations of a test."""

    cluster: LocalCluster
    proxy: Proxy
    admin: KafkaAdmin
    """Past the proxy."""
    folder: Path = field(init=False)
    """The folder for journals of a test."""
    _fresh: Iterator[int] = field(default_factory=itertools.count)

    def plan(self) -> Plan:
        """A plan for untouched partitions: a new replica that will lead, and a
        follower that will lead.
        """
        after = {next(self._fresh): [3, 2], next(self._fresh): [2, 1]}
        return plan_for(self.cluster.kafka.inner_bootstrap, TOPIC, after)

    def connect(self, limits: RunLimits = DEFAULT_LIMITS) -> Executor:
        """Through the proxy."""
        return connect(self.cluster.bootstrap, timeout_s=TIMEOUT_S, limits=limits)

    def execute(
        self,
        plan: Plan,
        limits: RunLimits = DEFAULT_LIMITS,
        observe: Callable[[RunProgress], None] = ignore,
    ) -> RunReport:
        """Execute a plan."""
        with self.connect(limits) as executor:
            return executor.execute(
                plan, journal_dir=self.folder, observe=observe, steering=Steering()
            )

    def resume(self) -> RunReport:
        """Resume the newest run."""
        with self.connect() as executor:
            return executor.resume(journal_dir=self.folder, observe=ignore, steering=Steering())

    def is_as_planned(self, plan: Plan) -> bool:
        """Whether replicas, replicas in sync and leaders match."""
        views = self.admin.partitions([m.id for m in plan.moves])
        return all(
            (view.replicas, view.leader, view.in_sync)
            == (move.replicas_after, move.leader_after, frozenset(move.replicas_after))
            for move in plan.moves
            for view in [views[move.id]]
        )

    @property
    def is_clean(self) -> bool:
        """Whether no throttle is set and no partition moves."""
        brokers = (self.admin.own_broker_configs(b, RATES) for b in ids((1, 2, 3)))
        lists = self.admin.own_topic_configs([TOPIC], (LEADERS, FOLLOWERS))
        return not any([*brokers, lists[TOPIC], self.admin.reassignments()])


@contextmanager
def proxied(properties: Mapping[str, str]) -> Iterator[Proxied]:
    """Three brokers, with properties in addition to the lab's own."""
    ports = free_ports(6)
    outer, inner = ports[:3], ports[3:]
    plan = LocalPlan(
        ports=tuple(inner), proxy_ports=tuple(outer), tier=False, properties=properties
    )
    with (
        Proxy(dict(zip(outer, inner, strict=True)), source=CLIENTS) as proxy,
        LocalCluster(default_cache_dir(), plan) as cluster,
        KafkaAdmin(cluster.kafka.inner_bootstrap, 10.0) as admin,
    ):
        cluster.create_topic(TOPIC, [[1, 2]] * PARTITIONS)
        yield Proxied(cluster, proxy, admin)
