"""A simulated cluster in motion: its own clock and loads, and copies that complete."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from lab.simulated_cluster.demo_cluster import RACKS, DemoClusterOptions, initial_snapshot
from lab.simulated_cluster.live_cluster import ANSWER_S, LiveCluster, LiveObserver
from model.evaluate import evaluate
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Resource

START_S = 1_700_000_000.0


def order(brokers: int = 6, seed: int = 7) -> DemoClusterOptions:
    return DemoClusterOptions(brokers=brokers, seed=seed, now_s=START_S)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("brokers", [3, 12, 60])
def test_a_simulated_cluster_is_imbalanced_and_its_topics_have_distinct_names(brokers: int) -> None:
    made = initial_snapshot(order(brokers))
    assert len(made) == order(brokers).partitions
    assert len({t.name for t in made.header.topics}) == len(made.header.topics)
    assert not evaluate(made, Goals(), ()).within_band(Goals())


def test_sixty_brokers_have_twenty_thousand_partitions() -> None:
    assert order(60).partitions == 20_000


def test_equal_arguments_give_equal_clusters_and_other_seeds_different_ones() -> None:
    assert initial_snapshot(order()).fingerprint == initial_snapshot(order()).fingerprint
    assert initial_snapshot(order()).fingerprint != initial_snapshot(order(seed=8)).fingerprint


def test_loads_rise_and_fall_while_the_placement_stays() -> None:
    live = LiveCluster(order(), speed=6.0)
    first = live.snapshot()
    live.cluster.advance(100.0)
    second = live.snapshot()
    assert second.header.taken_at_ms - first.header.taken_at_ms == 100_000
    assert second.fingerprint == first.fingerprint
    assert not np.allclose(first.partitions.loads[:, 0], second.partitions.loads[:, 0])


def test_a_wait_by_the_simulated_clock_lasts_its_simulated_time() -> None:
    with LiveCluster(order(), speed=6.0) as live:
        for _ in range(5):
            before_s = live.now_s()
            live.timing.pause(2.0)
            assert live.now_s() - before_s >= 2.0


def test_in_its_context_time_passes_and_a_copy_completes_by_itself() -> None:
    with LiveCluster(order(), speed=200.0) as live:
        partition = next(iter(live.cluster.partitions.values()))
        others = sorted(set(live.cluster.brokers) - set(partition.replicas))
        replicas = [*partition.replicas[: RACKS - 1], BrokerId(others[0])]
        live.admin().reassign({partition.id: replicas})
        until(lambda: partition.replicas == replicas and not partition.is_moving)
        assert live.snapshot().replicas(0) == tuple(replicas)
    stopped_s = live.now_s()
    time.sleep(0.3)
    assert live.now_s() == stopped_s


def test_an_observer_polls_no_more_often_than_configured() -> None:
    live = LiveCluster(order(), speed=1.0)
    observer = LiveObserver(live, every_s=3600.0)
    seen = observer.snapshot()
    live.cluster.advance(10.0)
    assert observer.snapshot() is seen
    assert LiveObserver(live).snapshot().header.taken_at_ms > seen.header.taken_at_ms


def test_a_copy_in_progress_counts_only_while_an_old_replica_lags() -> None:
    live = LiveCluster(order(), speed=1.0)
    assert live.replication() == Replication(under_replicated=0, offline=0)
    partition = next(iter(live.cluster.partitions.values()))
    others = sorted(set(live.cluster.brokers) - set(partition.replicas))
    replicas = [*partition.replicas[: RACKS - 1], BrokerId(others[0])]
    live.admin().reassign({partition.id: replicas})
    assert partition.is_moving
    assert live.replication().under_replicated == 0


def test_responses_take_longer_while_disks_write_copies() -> None:
    live = LiveCluster(order(), speed=1.0)
    admin, timing = live.admin(), live.timing

    def took_s() -> float:
        begun_s = timing.steady_s()
        admin.cluster()
        return timing.steady_s() - begun_s

    idle_s = took_s()
    assert ANSWER_S < idle_s < 10 * ANSWER_S
    partition = max(live.cluster.partitions.values(), key=lambda p: p.log_bytes)
    others = sorted(set(live.cluster.brokers) - set(partition.replicas))
    admin.reassign({partition.id: [*partition.replicas[: RACKS - 1], BrokerId(others[0])]})
    assert idle_s < took_s() < 1.0


def test_a_disk_has_the_space_that_its_capacity_leaves() -> None:
    live = LiveCluster(order(), speed=1.0)
    for broker in live.snapshot().header.brokers:
        (at,) = live.admin().log_dirs(broker.id, ())
        assert at.usable_bytes is not None
        used = live.cluster.used_bytes(broker.id)
        assert used > 0
        assert at.usable_bytes + used == pytest.approx(broker.capacity[Resource.DISK], abs=1.0)


def test_dead_brokers_leave_partitions_under_replicated_or_offline() -> None:
    live = LiveCluster(order(), speed=1.0)
    *dying, last = sorted(live.cluster.brokers)
    for broker in dying:
        live.cluster.kill(broker)
    live.cluster.advance(120.0)
    result = live.replication()
    partitions = live.cluster.partitions.values()
    assert result.offline == sum(last not in p.replicas for p in partitions) > 0
    assert result.under_replicated == len(partitions) - result.offline > 0


def test_groups_that_keep_up_lag_by_what_arrives_between_two_commits() -> None:
    live = LiveCluster(order(), speed=6.0)
    topics = {t.name for t in live.snapshot().header.topics}
    live.cluster.advance(2.0)
    lag = live.consumer_lag(topics)
    assert lag is not None
    assert lag.seconds == pytest.approx(live.now_s() % 5.0)
    live.cluster.advance(4.0)
    later = live.consumer_lag(topics)
    assert later is not None
    assert later.seconds is not None
    assert later.seconds < 5.0
    assert live.consumer_lag(set()) is None
