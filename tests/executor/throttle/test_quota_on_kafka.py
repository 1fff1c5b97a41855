"""Throttles on stock Kafka while producers write: one too low, one an operator changes.

How fast producers and brokers are depends on the machine. So figures are compared only
with limits that a slow machine stays below, and everything else is waited for.
"""

import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path

import pytest

from executor.client.cluster_admin import local_bytes
from executor.client.kafka_admin import KafkaAdmin
from executor.executor import connect
from executor.run.operator_control import Steering
from executor.throttle.auto import ANY_BROKER, AutoThrottle
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from executor.timing import RunLimits
from lab.load.load_generator import Load
from lab.local_cluster.local_cluster import LocalCluster
from model.errors import GuardrailRefused
from model.ids import BrokerId, PartitionId, TopicName
from model.run import RunReport
from model.snapshot.snapshot import Resource
from model.units import rate_of
from tests.support.cli_on_cluster import HANG_S, wait_until
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.real_runs import assert_done, execute, ignore
from tests.support.executor.topic_records import fill, loaded

pytestmark = pytest.mark.kafka
KB, MB = 10**3, 10**6
GIVEN = 10 * KB
CARD = 100 * KB
FREE = ceil(0.9 * CARD)
"""Bytes per second that copies may use on an idle network card."""
FAST = 500 * MB
WINDOW_S = 11.0
"""Kafka's quota holds on average over so long (replication.quota.window.num)."""
FETCH = 2 * 2**20
"""A follower's fetch is let through whole, replica.fetch.max.bytes per partition."""
BROKERS = ids([1, 2, 3])
LISTS = {LEADERS: "0:1,0:2,1:1,1:2", FOLLOWERS: "0:3,1:3"}


@contextmanager
def written(cluster: LocalCluster, topic: str, rate: float) -> Iterator[Load]:
    """A topic of two partitions that broker 1 leads and 2 follows, being written."""
    cluster.create_topic(topic, [[1, 2]] * 2)
    load = loaded(cluster, topic, rate, partitions=2, rate=rate)
    try:
        yield load
    finally:
        load.kill()


@dataclass(frozen=True, kw_only=True)
class Throttled:
    """A run in another thread, as its operator sees and steers it."""

    admin: KafkaAdmin
    topic: TopicName
    steering: Steering
    run: Future[RunReport]

    def rates(self) -> set[int | None]:
        """All rates of all brokers; None where one is not set."""
        shown = [self.admin.own_broker_configs(b, RATES) for b in BROKERS]
        return {int(of[key]) if key in of else None for of in shown for key in RATES}

    def lists(self) -> dict[str, str]:
        shown = self.admin.own_topic_configs([self.topic], (LEADERS, FOLLOWERS))
        return dict(shown[self.topic])

    def copied(self) -> int:
        """Bytes on the new broker."""
        pids = [PartitionId(self.topic, number) for number in range(2)]
        return sum(local_bytes(self.admin, BrokerId(3), pids).values())

    def wait_for_rate(self, rate: int) -> None:
        wait_until(lambda: self.rates() == {rate} or self.run.done())
        assert not self.run.done(), self.run.result()

    def following(self) -> int:
        """Broker 1's rate out once it was asked to follow, measured for the purpose."""
        self.steering.throttle(GIVEN)
        self.wait_for_rate(GIVEN)
        self.steering.throttle(None)
        wait_until(lambda: self.answer() is not None or self.run.done())
        assert self.answer() == ""
        return int(self.admin.own_broker_configs(BrokerId(1), RATES)[RATES[0]])

    def answer(self) -> str | None:
        """Why the rate asked for last is not in force; empty if it is."""
        assert self.steering.asked is not None
        return self.steering.asked.answer


@contextmanager
def throttled(cluster: LocalCluster, topic: str, folder: Path) -> Iterator[Throttled]:
    """A run that copies to broker 3 under the rate given; aborted if still running."""
    plan = plan_for(cluster.bootstrap, topic, {0: [1, 3], 1: [1, 3]})
    card = dict.fromkeys((Resource.NET_IN, Resource.NET_OUT), float(CARD))
    auto = AutoThrottle(capacity={ANY_BROKER: card})
    limits = RunLimits(throttle_bytes_per_s=GIVEN, auto_throttle=auto)
    steering = Steering()
    with (
        KafkaAdmin(cluster.bootstrap, 10.0) as admin,
        connect(cluster.bootstrap, timeout_s=10.0, limits=limits) as executor,
        ThreadPoolExecutor(1) as thread,
    ):
        execution = partial(executor.execute, journal_dir=folder, observe=ignore, steering=steering)
        try:
            yield Throttled(
                admin=admin,
                topic=TopicName(topic),
                steering=steering,
                run=thread.submit(execution, plan),
            )
        finally:
            steering.abort()


def test_less_than_twice_the_produce_rate_is_refused_with_the_figure(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    """Even a starved producer writes more than a millionth of its rate."""
    bootstrap = local_cluster.bootstrap
    limits = RunLimits(throttle_bytes_per_s=1)
    with written(local_cluster, topic, 4.0 * MB):
        plan = plan_for(bootstrap, topic, {0: [1, 3], 1: [1, 3]})
        with (
            connect(bootstrap, timeout_s=10.0, limits=limits) as executor,
            pytest.raises(GuardrailRefused) as caught,
        ):
            execute(executor, plan, tmp_path)
    message = str(caught.value)
    assert message.startswith("A throttle of 1 B/s is too low: with 2 moves at once")
    result = re.search(r"production needs (\S+ \S+) out of broker 1, .* Use (\S+) or", message)
    assert result, message
    assert 1 < rate_of(result[1].replace(" ", "")) <= rate_of(result[2])
    assert not list(tmp_path.glob("*.jsonl"))
    name = TopicName(topic)
    with KafkaAdmin(bootstrap, 10.0) as admin:
        assert admin.own_topic_configs([name], (LEADERS, FOLLOWERS)) == {name: {}}
        assert admin.own_broker_configs(BrokerId(1), RATES) == {}


def test_the_operator_changes_a_rate_that_is_removed_afterwards(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    """From a given rate to the one that clients leave free, and to another given one."""
    local_cluster.create_topic(topic, [[1, 2]] * 2)
    fill(local_cluster.bootstrap, topic, [40, 40])
    begun_s = time.monotonic()
    with (
        written(local_cluster, f"{topic}-beside", CARD / 2) as beside,
        throttled(local_cluster, topic, tmp_path) as seen,
    ):
        seen.wait_for_rate(GIVEN)
        wait_until(lambda: seen.lists() == LISTS)
        wait_until(lambda: seen.copied() > 0)
        wait_until(lambda: GIVEN < seen.following() < 0.95 * FREE)
        beside.kill()
        wait_until(lambda: 0.95 * FREE < seen.following() <= FREE)
        copied, elapsed_s = seen.copied(), time.monotonic() - begun_s
        windows = elapsed_s / (WINDOW_S - 1.0) + 2.0
        assert copied < windows * (FREE * WINDOW_S + FETCH)
        # The copy may end before this rate is visible on any broker.
        seen.steering.throttle(FAST)
        assert_done(seen.run.result(HANG_S))
        assert seen.answer() == ""
        wait_until(lambda: seen.rates() == {None})
        wait_until(lambda: seen.lists() == {})
