"""Throttles on stock Kafka while producers write: one too low, one that follows."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from executor.auto_throttle import ANY_BROKER, AutoThrottle
from executor.connect import connect
from executor.kafka_admin import KafkaAdmin
from executor.steering import Steering
from executor.throttle import FOLLOWERS, LEADER_RATE, LEADERS, RATES
from executor.timing import RunLimits
from lab.load import Load
from lab.local import LocalCluster
from model.errors import GuardrailRefused
from model.ids import BrokerId, TopicName
from model.run import RunProgress
from model.snapshot import Resource
from tests.end_to_end.commands import wait_until
from tests.executor.plans import ids, plan_for
from tests.executor.records import fill, loaded
from tests.executor.runs import assert_done, execute

pytestmark = pytest.mark.kafka
MB = 10**6


@contextmanager
def written(
    cluster: LocalCluster, topic: str, rate: float, size: float
) -> Iterator[Load]:
    """A topic of two partitions that broker 1 leads and 2 follows, being written."""
    cluster.create_topic(topic, [[1, 2]] * 2)
    load = loaded(cluster, topic, size, partitions=2, rate=rate)
    try:
        yield load
    finally:
        load.finish()


def test_less_than_twice_what_is_written_is_refused_with_the_figure(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    bootstrap = local_cluster.bootstrap
    limits = RunLimits(throttle_bytes_per_s=5 * MB)
    with written(local_cluster, topic, 4 * MB, 4 * MB):
        plan = plan_for(bootstrap, topic, {0: [1, 3], 1: [1, 3]})
        with (
            connect(bootstrap, timeout_s=10.0, limits=limits) as executor,
            pytest.raises(GuardrailRefused) as caught,
        ):
            execute(executor, plan, tmp_path)
    words = str(caught.value)
    assert words.startswith("A throttle of 5.00 MB/s is too low: with 2 moves at once")
    said = float(words.partition("now needs ")[2].partition(" MB/s out of broker 1")[0])
    # Two replicas of each partition fetch what is written, and twice that is the least.
    assert 0.6 * 16 < said < 1.5 * 16
    assert not list(tmp_path.glob("*.jsonl"))
    name = TopicName(topic)
    with KafkaAdmin(bootstrap, 10.0) as admin:
        assert admin.own_topic_configs([name], (LEADERS, FOLLOWERS)) == {name: {}}
        assert admin.own_broker_configs(BrokerId(1), RATES) == {}


def test_a_rate_follows_what_producers_leave_of_the_card_and_is_gone_afterwards(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    bootstrap, steering = local_cluster.bootstrap, Steering()
    local_cluster.create_topic(topic, [[1, 2]] * 2)
    fill(bootstrap, topic, [25, 25])
    plan = plan_for(bootstrap, topic, {0: [1, 3], 1: [1, 3]})
    card = dict.fromkeys((Resource.NET_IN, Resource.NET_OUT), 6.0 * MB)
    limits = RunLimits(
        throttle_follows=True, auto_throttle=AutoThrottle(capacity={ANY_BROKER: card})
    )
    rates: list[int] = []
    with (
        KafkaAdmin(bootstrap, 10.0) as admin,
        connect(bootstrap, timeout_s=10.0, limits=limits) as executor,
        written(local_cluster, f"{topic}-beside", 3 * MB, 2 * MB) as beside,
    ):

        def look(_: RunProgress) -> None:
            if rate := admin.own_broker_configs(BrokerId(1), RATES).get(LEADER_RATE):
                rates.append(int(rate))
                if len(rates) == 1:
                    beside.shift((1.0, 1.0), 1.0)
                    time.sleep(3.0)
                    steering.throttle(None)

        report = executor.execute(
            plan, journal_dir=tmp_path, observe=look, steering=steering
        )
        assert_done(report)
        assert 0.6 * 2.7 * MB < rates[0] < 1.4 * 2.7 * MB
        assert rates[-1] > 0.9 * 5.4 * MB
        brokers = ids([1, 2, 3])
        wait_until(lambda: not any(admin.own_broker_configs(b, RATES) for b in brokers))
