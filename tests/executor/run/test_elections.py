"""Which preferred leaders are elected, and which are named and left."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import ClusterView, PartitionView
from executor.executor import Executor
from executor.journal.lock import sole_writer
from executor.journal.run_journal import RunJournal
from executor.run.elections import LeaderElection, LeaderElections, find_elections, hold_elections
from model.errors import ConfigError, GuardrailRefused
from model.ids import BrokerId, PartitionId, TopicName
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move, view

ORDERS, AUDIT = TopicName("orders"), TopicName("audit")
LAG_S = 3.0
"""Seconds until metadata show an election."""


class FakeLeaders:
    """Three brokers; elections show in the metadata a little later."""

    def __init__(self, time: FakeTime, *views: PartitionView) -> None:
        self._time = time
        self.views = {view.id: view for view in views}
        self.listed: dict[PartitionId, tuple[BrokerId, ...]] = {}
        self.asked: list[list[PartitionId]] = []
        self.deaf: set[PartitionId] = set()

    def cluster(self) -> ClusterView:
        return ClusterView(cluster_id=CLUSTER_ID, alive=frozenset(ids([1, 2, 3])))

    def topics(self) -> dict[TopicName, int]:
        result = {pid.topic: 0 for pid in self.views}
        for pid in self.views:
            result[pid.topic] += 1
        return result

    def partitions(self, ids: Collection[PartitionId]) -> dict[PartitionId, PartitionView]:
        return {pid: self.views[pid] for pid in ids if pid in self.views}

    def reassignments(self) -> dict[PartitionId, tuple[BrokerId, ...]]:
        return self.listed

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        self.asked.append(list(ids))
        for pid in set(self.asked[-1]) - self.deaf:
            due = (self._time.now_s + LAG_S, lambda pid=pid: self._lead(pid))
            self._time.after.append(due)

    def _lead(self, pid: PartitionId) -> None:
        of = self.views[pid]
        self.views[pid] = partition(pid.partition, of.replicas, topic=pid.topic)


def partition(
    number: int,
    replicas: Collection[int],
    leader: int | None = None,
    *,
    in_sync: Collection[int] | None = None,
    topic: str = ORDERS,
) -> PartitionView:
    """A partition, by default led by its first replica and with all in sync."""
    return view(
        move(number, list(replicas), topic=topic),
        list(replicas),
        leader=leader,
        in_sync=None if in_sync is None else list(in_sync),
    )


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def find(fake: FakeLeaders, *topics: str) -> LeaderElections:
    return find_elections(cast("ClusterAdmin", fake), topics or None)


def hold(fake: FakeLeaders, time: FakeTime) -> dict[str, str]:
    """Partitions that were not elected, and the reasons."""
    result = find(fake)
    failed = hold_all(fake, time, [e.id for e in result.possible])
    return {str(e.id): e.obstacle for e in failed}


def hold_all(
    fake: FakeLeaders, time: FakeTime, ids: Collection[PartitionId]
) -> tuple[LeaderElection, ...]:
    """Hold elections without recording them."""
    journal = Mock(spec_set=RunJournal)
    return hold_elections(cast("ClusterAdmin", fake), time.timing, ids, journal)


def test_a_preferred_replica_that_leads_is_not_elected(time: FakeTime) -> None:
    result = find(FakeLeaders(time, partition(0, (1, 2)), partition(1, (2,))))
    assert (result.needed, result.checked, result.replicated) == ((), 2, 1)


def test_the_first_of_the_replicas_is_elected_once_and_waited_for(time: FakeTime) -> None:
    fake = FakeLeaders(time, partition(0, (1, 2), 2), partition(1, (2, 1)))
    began_s = time.now_s
    assert hold(fake, time) == {}
    assert fake.asked == [[PartitionId(ORDERS, 0)]]
    assert fake.views[PartitionId(ORDERS, 0)].leader == 1
    assert LAG_S <= time.now_s - began_s < LAG_S + 1


def test_only_named_topics_are_checked(time: FakeTime) -> None:
    fake = FakeLeaders(time, partition(0, (1, 2), 2), partition(0, (3, 1), 1, topic=AUDIT))
    assert [str(e.id) for e in find(fake, "audit").needed] == ["audit-0"]
    assert [str(e.id) for e in find(fake).needed] == ["audit-0", "orders-0"]


@pytest.mark.parametrize(
    ("replicas", "in_sync", "message"),
    [
        ((4, 2), (2,), "broker 4, the first of its replicas, is dead or fenced"),
        ((4, 2), (2, 4), "broker 4, the first of its replicas, is dead or fenced"),
        ((3, 2), (2,), "broker 3, the first of its replicas, is not in sync"),
    ],
)
def test_an_unclean_election_is_named_and_not_held(
    time: FakeTime, replicas: tuple[int, int], in_sync: tuple[int, ...], message: str
) -> None:
    fake = FakeLeaders(time, partition(0, replicas, 2, in_sync=in_sync))
    (left,) = find(fake).impossible
    assert left.obstacle == message
    assert hold(fake, time) == {}
    assert fake.asked == []


def test_a_partition_without_any_leader_is_left_alone_too(time: FakeTime) -> None:
    """The only replica in sync is on a dead broker."""
    fake = FakeLeaders(time, partition(0, (2, 4), -1, in_sync=(4,)))
    (left,) = find(fake).impossible
    assert (left.leader, left.obstacle) == (
        -1,
        "broker 2, the first of its replicas, is not in sync",
    )


def test_a_partition_being_moved_is_named_and_left_alone(time: FakeTime) -> None:
    fake = FakeLeaders(time, partition(0, (1, 2), 2), partition(1, (1, 2), 2))
    fake.listed[PartitionId(ORDERS, 0)] = ids([3, 1])
    (left,) = find(fake).impossible
    assert (str(left.id), left.obstacle) == ("orders-0", "it is being moved to [3, 1]")
    hold(fake, time)
    assert fake.asked == [[PartitionId(ORDERS, 1)]]


def test_partitions_changed_since_the_check_are_not_elected(time: FakeTime) -> None:
    fake = FakeLeaders(time, *(partition(i, (1, 2), 2) for i in range(4)))
    result = find(fake)
    fake.views[PartitionId(ORDERS, 0)] = partition(0, (1, 2))
    fake.views[PartitionId(ORDERS, 1)] = partition(1, (1, 2), 2, in_sync=(2,))
    fake.listed[PartitionId(ORDERS, 2)] = ids([3])
    del fake.views[PartitionId(ORDERS, 3)]
    possible = [e.id for e in result.possible]
    failed = hold_all(fake, time, possible)
    assert len(possible) == 4
    assert fake.asked == []
    assert {e.id.partition: e.obstacle for e in failed} == {
        1: "broker 1, the first of its replicas, is not in sync",
        2: "it is being moved to [3]",
        3: "it no longer exists",
    }


def test_failed_elections_are_reported_after_ten_seconds(time: FakeTime) -> None:
    fake = FakeLeaders(time, partition(0, (1, 2), 2), partition(1, (1, 2), 2))
    fake.deaf = {PartitionId(ORDERS, 1)}
    began_s = time.now_s
    assert hold(fake, time) == {"orders-1": "not elected within 10 s"}
    assert 10 <= time.now_s - began_s < 11
    assert fake.views[PartitionId(ORDERS, 0)].leader == 1


def test_many_elections_are_sent_in_small_requests(time: FakeTime) -> None:
    fake = FakeLeaders(time, *(partition(i, (1, 2), 2) for i in range(600)))
    assert hold(fake, time) == {}
    assert [len(request) for request in fake.asked] == [250, 250, 100]


def test_a_topic_that_the_cluster_does_not_have_is_named(time: FakeTime) -> None:
    fake = FakeLeaders(time, partition(0, (1, 2)))
    with pytest.raises(ConfigError, match="no topic 'order'; did you mean 'orders'"):
        find(fake, "order")


@pytest.mark.parametrize("pid", [PartitionId(ORDERS, 1), PartitionId(AUDIT, 0)])
def test_a_partition_that_the_cluster_does_not_have_is_named(
    time: FakeTime, pid: PartitionId
) -> None:
    admin = cast("ClusterAdmin", FakeLeaders(time, partition(0, (1, 2))))
    with pytest.raises(ConfigError, match=f"the cluster has no partition {pid}; use"):
        find_elections(admin, ids=[pid])


def test_an_empty_selection_does_not_mean_the_whole_cluster(time: FakeTime) -> None:
    fake = FakeLeaders(time, partition(0, (1, 2), BrokerId(2)))
    assert find_elections(cast("ClusterAdmin", fake), ids=[]).checked == 0


def test_none_is_elected_while_another_plimsoll_changes_the_cluster(
    time: FakeTime, tmp_path: Path
) -> None:
    fake = FakeLeaders(time, partition(0, (1, 2), 2))
    executor = Executor(cast("ClusterAdmin", fake), timing=time.timing)
    result = executor.elections()
    with (
        sole_writer(tmp_path, CLUSTER_ID),
        pytest.raises(GuardrailRefused, match="Another plimsoll is changing"),
    ):
        executor.elect(result, tmp_path)
    assert fake.asked == []
    assert executor.elect(result, tmp_path) == ()
