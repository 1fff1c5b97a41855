"""The simulated cluster moves like real ones, where all this was observed."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.client.responses import PartitionResponse, ResponseStatus
from executor.throttle.fair_share import fair_rates
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import SimulatedBroker, SimulatedPartition
from lab.simulated_cluster.faults import Faults, Lost
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import ClusterUnreachable, RightsMissing
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import StorageKind
from tests.support.lab.simulated_clusters import LaggingCluster, check_leaders, tide

MB = 1e6
CARD = 100 * MB


def of(numbers: Sequence[int]) -> list[BrokerId]:
    return list(map(BrokerId, numbers))


def cluster(
    *,
    replicas: Sequence[int] = (1,),
    storage: StorageKind = StorageKind.REPLICATED,
    produced: float = 0.0,
    tail: float = math.inf,
    partitions: int = 1,
    disk: float = math.inf,
) -> SimulatedCluster:
    """Five brokers; partitions of 1,000 MB each."""
    topic = TopicName("orders")
    return SimulatedCluster(
        "simulated",
        [SimulatedBroker(id=b, network_bytes_per_s=CARD, disk_bytes=disk) for b in of(range(1, 6))],
        [
            SimulatedPartition(
                id=PartitionId(topic, number),
                topic_id="id",
                storage=storage,
                replicas=of(replicas),
                leader=BrokerId(replicas[0]),
                bytes_in=lambda _: produced,
                log_bytes=1000 * MB,
                tail_bytes=tail,
            )
            for number in range(partitions)
        ],
        now_s=1_800_000_000.0,
    )


def only(simulated: SimulatedCluster) -> SimulatedPartition:
    (partition,) = simulated.partitions.values()
    return partition


def seconds_until_moved(simulated: SimulatedCluster) -> float:
    begun_s = simulated.now_s
    while any(p.is_moving for p in simulated.partitions.values()):
        simulated.advance(0.5)
    return simulated.now_s - begun_s


def test_a_replica_copies_the_whole_log_at_the_network_bandwidth() -> None:
    simulated = cluster()
    simulated.reassign(only(simulated).id, of([2]))
    assert only(simulated).replicas == of([2, 1])
    assert seconds_until_moved(simulated) == pytest.approx(10.0, abs=0.5)
    assert (only(simulated).replicas, only(simulated).leader) == ([2], 2)
    assert simulated.used_bytes(BrokerId(1)) == 0.0


def test_two_copies_share_the_network_bandwidth_of_their_leader() -> None:
    simulated = cluster(partitions=2)
    for number, pid in enumerate(simulated.partitions):
        simulated.reassign(pid, of([2 + number]))
    assert seconds_until_moved(simulated) == pytest.approx(20.0, abs=0.5)


def test_produced_data_leave_less_bandwidth_for_copies() -> None:
    simulated = cluster(produced=20 * MB)
    simulated.reassign(only(simulated).id, of([2]))
    # 100 MB/s catch up with 1,000 MB that grow by 20 MB/s.
    assert seconds_until_moved(simulated) == pytest.approx(1000 / 80, abs=0.5)


def test_a_copy_throttled_below_the_produce_rate_never_ends() -> None:
    simulated = cluster(produced=20 * MB)
    partition = only(simulated)
    simulated.brokers[BrokerId(1)].configs[RATES[0]] = str(int(15 * MB))
    simulated.topic_configs[partition.id.topic] = {LEADERS: "0:1"}
    simulated.reassign(partition.id, of([2]))
    simulated.advance(3600.0)
    assert partition.is_moving
    del simulated.topic_configs[partition.id.topic]
    simulated.advance(3600.0)
    assert not partition.is_moving


def test_a_throttle_applies_only_to_listed_replicas() -> None:
    simulated = cluster(partitions=2)
    one, other = simulated.partitions.values()
    simulated.brokers[BrokerId(2)].configs[RATES[1]] = str(int(10 * MB))
    simulated.topic_configs[one.id.topic] = {FOLLOWERS: "0:2"}
    for pid in simulated.partitions:
        simulated.reassign(pid, of([2]))
    simulated.advance(15.0)
    assert one.is_moving
    assert not other.is_moving


def test_a_tiered_replica_copies_only_the_tail() -> None:
    simulated = cluster(storage=StorageKind.TIERED, tail=50 * MB)
    simulated.reassign(only(simulated).id, of([2]))
    assert seconds_until_moved(simulated) == pytest.approx(0.5, abs=0.5)
    assert only(simulated).bytes_on(BrokerId(2)) == 50 * MB


def test_automq_hands_over_with_no_leader_in_between() -> None:
    simulated = cluster(storage=StorageKind.SHARED)
    simulated.reassign(only(simulated).id, of([2]))
    assert (only(simulated).replicas, only(simulated).leader) == ([2], NO_BROKER)
    assert not SimulatedAdmin(simulated, Faults()).reassignments()
    simulated.advance(1.6)
    assert only(simulated).leader == 2


def test_a_reordered_list_does_not_move_leadership() -> None:
    simulated = cluster(replicas=(1, 2))
    simulated.reassign(only(simulated).id, of([2, 1]))
    assert (only(simulated).replicas, only(simulated).leader) == ([2, 1], 1)
    simulated.elect_preferred([only(simulated).id])
    assert only(simulated).leader == 2


def test_a_move_to_a_dead_broker_is_accepted_and_hangs() -> None:
    simulated = cluster()
    simulated.kill(BrokerId(2))
    answer = simulated.reassign(only(simulated).id, of([2]))
    assert answer.status is ResponseStatus.ACCEPTED
    simulated.advance(600.0)
    assert only(simulated).is_moving
    simulated.revive(BrokerId(2))
    simulated.advance(60.0)
    assert only(simulated).replicas == [2]


@pytest.mark.parametrize("target", [[], [2, 2], [9], [2, 3]])
def test_replica_lists_rejected_by_kafka_change_nothing(target: list[int]) -> None:
    simulated = cluster()
    answer = simulated.reassign(only(simulated).id, of(target))
    assert answer.status is ResponseStatus.REFUSED
    assert only(simulated).replicas == [1]


def test_another_leader_in_sync_takes_over_from_a_dead_one() -> None:
    simulated = cluster(replicas=(1, 2))
    simulated.kill(BrokerId(1))
    assert only(simulated).leader == 2
    simulated.kill(BrokerId(2))
    assert only(simulated).leader == NO_BROKER
    simulated.revive(BrokerId(1))
    # It may lack records that only the other one has.
    assert only(simulated).leader == NO_BROKER


def test_a_full_disk_takes_its_broker_away() -> None:
    simulated = cluster(disk=1500 * MB, produced=10 * MB)
    simulated.reassign(only(simulated).id, of([2]))
    simulated.advance(100.0)
    assert simulated.dead == {2}
    assert only(simulated).leader == NO_BROKER


def test_kafkas_own_leader_balancing_elects_every_few_seconds() -> None:
    simulated = SimulatedCluster(
        "simulated",
        cluster().brokers.values(),
        cluster(replicas=(1, 2)).partitions.values(),
        now_s=0.0,
    )
    check_leaders(simulated, 5.0)
    simulated.reassign(only(simulated).id, of([2, 1]))
    simulated.advance(4.0)
    assert only(simulated).leader == 1
    simulated.advance(2.0)
    assert only(simulated).leader == 2


def test_a_request_with_a_lost_answer_is_executed_and_a_lost_request_is_not() -> None:
    for lost, moved in ((Lost.REQUEST, False), (Lost.ANSWER, True)):
        simulated = cluster()
        admin = SimulatedAdmin(simulated, Faults(lost={0: lost}))
        with pytest.raises(ClusterUnreachable):
            admin.reassign({only(simulated).id: of([2])})
        assert (2 in only(simulated).replicas) == moved


def test_denied_rights_change_nothing() -> None:
    simulated = cluster()
    admin = SimulatedAdmin(simulated, Faults(denied={"reassign"}))
    with pytest.raises(RightsMissing):
        admin.reassign({only(simulated).id: of([2])})
    assert not only(simulated).is_moving


def two_dirs(replicas: Sequence[int] = (1,)) -> SimulatedCluster:
    simulated = cluster(replicas=replicas)
    for broker in simulated.brokers.values():
        broker.log_dirs = ("/a", "/b")
    return simulated


def lies_in(simulated: SimulatedCluster, broker: int) -> list[str]:
    pid = only(simulated).id
    views = SimulatedAdmin(simulated, Faults()).log_dirs(BrokerId(broker), [pid])
    return [v.path for v in views if pid in v.sizes]


def test_a_directory_move_copies_beside_the_old_log_and_then_switches() -> None:
    simulated = two_dirs()
    pid = only(simulated).id
    admin = SimulatedAdmin(simulated, Faults())
    assert admin.alter_log_dirs(BrokerId(1), {pid: "/b"})[pid].status is (ResponseStatus.ACCEPTED)
    simulated.advance(5.0)
    a, b = admin.log_dirs(BrokerId(1), [pid])
    assert (a.sizes, b.sizes) == ({pid: 1000 * MB}, {})
    assert 0 < b.coming[pid] < 1000 * MB
    simulated.advance(6.0)
    assert lies_in(simulated, 1) == ["/b"]


def test_a_move_to_the_present_directory_cancels_the_pending_one() -> None:
    simulated = two_dirs()
    for path in ("/b", "/a"):
        simulated.directories.alter(BrokerId(1), only(simulated).id, path)
    simulated.advance(60.0)
    assert lies_in(simulated, 1) == ["/a"]


def test_an_unknown_directory_is_refused() -> None:
    answer = two_dirs().directories.alter(BrokerId(1), PartitionId(TopicName("orders"), 0), "/c")
    assert answer == PartitionResponse.refused("broker 1 answers LogDirNotFound (57)")


def test_a_new_replica_uses_the_requested_directory_unless_its_broker_restarted() -> None:
    for dies, path in ((False, "/b"), (True, "/a")):
        simulated = two_dirs()
        pid = only(simulated).id
        simulated.directories.alter(BrokerId(2), pid, "/b")
        if dies:
            simulated.kill(BrokerId(2))
            simulated.revive(BrokerId(2))
        simulated.reassign(pid, of([2]))
        seconds_until_moved(simulated)
        assert lies_in(simulated, 2) == [path]


def test_lagging_brokers_show_the_old_state_and_others_the_new_one() -> None:
    plain = cluster(storage=StorageKind.SHARED)
    pid = only(plain).id
    simulated = LaggingCluster(
        "simulated",
        plain.brokers.values(),
        plain.partitions.values(),
        now_s=0.0,
        lags_s={b: 0.0 if b == 1 else 3.0 for b in of(range(1, 6))},
    )
    admin = SimulatedAdmin(simulated, Faults())
    admin.partitions([pid])
    simulated.reassign(pid, of([2]))
    simulated.advance(1.0)
    shown = [admin.partitions([pid])[pid].replicas for _ in range(5)]
    assert sorted(shown) == [(1,)] * 4 + [(2,)]
    simulated.advance(3.0)
    assert admin.partitions([pid])[pid].replicas == (2,)


def test_more_partitions_than_a_policy_allows_are_all_refused() -> None:
    simulated = cluster(partitions=2)
    admin = SimulatedAdmin(simulated, Faults(most_partitions=1))
    answers = admin.reassign(dict.fromkeys(simulated.partitions, of([2])))
    assert all(answer.by_policy for answer in answers.values())
    assert not any(p.is_moving for p in simulated.partitions.values())


def test_a_periodic_load_is_low_at_the_start_of_its_period_and_high_in_between() -> None:
    curve = tide(10.0, 30.0, 8.0)
    assert [curve(t) for t in (0, 2, 4, 6, 8)] == pytest.approx([10, 20, 30, 20, 10])


@given(
    flows=st.dictionaries(
        st.integers(0, 9),
        st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True),
        min_size=1,
    ),
    free=st.fixed_dictionaries({i: st.floats(-1.0, 100.0) for i in range(5)}),
)
def test_fair_rates_exhaust_a_limit_of_every_flow_and_exceed_none(
    flows: dict[int, list[int]], free: dict[int, float]
) -> None:
    rates = fair_rates(flows, free)
    used = {
        limit: sum(rates[f] for f, limits in flows.items() if limit in limits) for limit in free
    }
    assert all(used[limit] <= max(0.0, free[limit]) + 1e-6 for limit in free)
    for limits in flows.values():
        assert any(used[limit] >= max(0.0, free[limit]) - 1e-6 for limit in limits)


def test_a_failed_directory_takes_its_replicas_alone() -> None:
    simulated = two_dirs((1, 2))
    partition = only(simulated)
    partition.dirs[BrokerId(1)] = "/b"
    simulated.fail_dir(BrokerId(1), "/a")
    assert partition.leader == 1
    simulated.fail_dir(BrokerId(1), "/b")
    assert partition.leader == 2
    simulated.advance(60.0)
    assert partition.in_sync == {2}
    assert simulated.shown()[partition.id].offline == {1}
    views = SimulatedAdmin(simulated, Faults()).log_dirs(BrokerId(1), [partition.id])
    assert [(view.offline, dict(view.sizes)) for view in views] == [(True, {}), (True, {})]
    refused = simulated.directories.alter(BrokerId(1), partition.id, "/a")
    assert refused.status is ResponseStatus.REFUSED
