"""The partitions and brokers behind the counts of the header."""

from dataclasses import replace

from control.loop.view import LoopView
from model.ids import PartitionId, TopicName
from model.snapshot.replication import Replication
from tests.support.tui.loop_views import GOALS, estimated, plan_ready
from tui.viewmodel.cells import Table, plain
from tui.viewmodel.problem_list import NOTHING, opened_by, problem_table
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
