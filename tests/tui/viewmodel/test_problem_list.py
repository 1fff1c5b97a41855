"""The partitions and brokers behind the counts of the header."""

from dataclasses import replace

from control.loop.view import LoopView
from model.ids import PartitionId, TopicName
from model.snapshot.replication import Replication
from model.snapshot.snapshot import BrokerState, LogDir, Snapshot
from tests.support.tui.loop_views import CONNECTING, GOALS, estimated, judged, plan_ready, skewed
from tui.viewmodel.cells import Table, plain
from tui.viewmodel.problem_list import NOTHING, UNKNOWN, opened_by, problem_table
from tui.viewmodel.sort_filter import Wish


def _ids(*numbers: int) -> tuple[PartitionId, ...]:
    return tuple(PartitionId(TopicName("orders"), n) for n in numbers)


def _lacking() -> LoopView:
    found = Replication(under_replicated=4, offline=1, behind_ids=_ids(1, 3), offline_ids=_ids(2))
    return replace(plan_ready(), replication=found)


def _words(table: Table) -> list[str]:
    return ["  ".join(plain(c).strip() for c in row.cells) for row in table.rows]


def test_offline_partitions_come_first_and_unlisted_ones_are_counted() -> None:
    table = problem_table(_lacking(), GOALS, 100, Wish())
    assert _words(table) == [
        "OFFLINE  orders-2  no leader: cannot be used",
        "under-replicated  orders-1  replicas not in sync",
        "under-replicated  orders-3  replicas not in sync",
    ]
    assert table.note == "and 2 more partitions"


def test_brokers_over_their_capacity_are_listed_with_their_load() -> None:
    table = problem_table(estimated(), GOALS, 100, Wish())
    assert _words(table) == ["OVER CAPACITY  broker 1, bytes out  5.00 MB/s, 125% of capacity"]
    assert opened_by(table.rows[0].key, estimated()) == "open_broker(1)"


def test_a_partition_opens_its_topic() -> None:
    table = problem_table(_lacking(), GOALS, 100, Wish())
    assert opened_by(table.rows[0].key, _lacking()) == "open_topic('orders')"


def test_an_empty_list_means_that_nothing_is_wrong() -> None:
    table = problem_table(plan_ready(), GOALS, 100, Wish())
    assert (table.rows, table.why_empty) == ((), NOTHING)


def _in_trouble() -> LoopView:
    """A broker is dead, another slow with a failed disk."""
    one, two, three = skewed().header.brokers
    disks = (LogDir(path="/data/1"), LogDir(path="/data/2", cordoned=True, failed=True))
    brokers = (
        one,
        two.model_copy(update={"state": BrokerState.SLOW, "log_dirs": disks}),
        three.model_copy(update={"state": BrokerState.DEAD}),
    )
    snapshot = Snapshot(
        skewed().header.model_copy(update={"brokers": brokers}), skewed().partitions
    )
    return replace(plan_ready(), brokers=brokers, snapshot=snapshot, evaluation=judged(snapshot))


def test_dead_and_slow_brokers_and_failed_disks_are_listed_before_partitions() -> None:
    lacking = replace(_in_trouble(), replication=_lacking().replication)
    table = problem_table(lacking, GOALS, 100, Wish())
    assert _words(table)[:4] == [
        "DEAD  broker 3  ",
        "DISK FAILED  broker 2, /data/2  ",
        "SLOW  broker 2  answers much later than the others",
        "OFFLINE  orders-2  no leader: cannot be used",
    ]
    assert opened_by(table.rows[0].key, lacking) == "open_broker(3)"
    assert table.note == "and 2 more partitions"


def test_a_dead_broker_is_listed_with_the_replicas_it_holds() -> None:
    dead = skewed().header.brokers[0].model_copy(update={"state": BrokerState.DEAD})
    brokers = (dead, *skewed().header.brokers[1:])
    snapshot = Snapshot(
        skewed().header.model_copy(update={"brokers": brokers}), skewed().partitions
    )
    view = replace(plan_ready(), brokers=brokers, snapshot=snapshot, evaluation=judged(snapshot))
    assert _words(problem_table(view, GOALS, 100, Wish())) == ["DEAD  broker 1  holds 8 replicas"]


def test_before_the_first_answer_the_list_reports_that_nothing_is_known() -> None:
    assert problem_table(CONNECTING, GOALS, 100, Wish()).why_empty == UNKNOWN
