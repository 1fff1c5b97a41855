"""Partitions that stay below `min.insync.replicas` although a plan could heal them."""

from control.planning.min_isr_watch import LASTING_S, MinIsrWatch
from model.ids import PartitionId
from model.snapshot.replication import Replication
from model.snapshot.snapshot import BrokerState
from tests.support.control.loop_parts import ORDERS, one_of_twelve_dead
from tests.support.model.failed_disks import with_failed_disks

DEAD = one_of_twelve_dead()
HIT = next(row for row in range(len(DEAD)) if 11 in DEAD.replicas(row))
SOUND = next(row for row in range(len(DEAD)) if 11 not in DEAD.replicas(row))


def below(*rows: int) -> Replication:
    ids = tuple(DEAD.id(row) for row in rows)
    return Replication(under_replicated=len(ids), offline=0, below_min_isr=len(ids), below_ids=ids)


def test_only_partitions_that_stay_below_are_named() -> None:
    watch = MinIsrWatch().seen(below(HIT), 100.0)
    assert watch.rows(DEAD, 100.0 + LASTING_S - 1) == ()
    watch = watch.seen(below(HIT), 100.0 + LASTING_S)
    assert watch.rows(DEAD, 100.0 + LASTING_S) == (HIT,)
    watch = watch.seen(below(), 300.0).seen(below(HIT), 301.0)
    assert watch.rows(DEAD, 302.0) == ()


def test_a_poll_without_an_answer_changes_nothing() -> None:
    watch = MinIsrWatch().seen(below(HIT), 0.0).seen(None, 60.0)
    assert watch.rows(DEAD, LASTING_S) == (HIT,)


def test_followers_that_lag_on_live_brokers_and_lost_partitions_are_left_alone() -> None:
    """A plan heals neither: there is nothing to replace, or nothing to copy from."""
    watch = MinIsrWatch().seen(below(SOUND, HIT), 0.0)
    assert watch.rows(DEAD, LASTING_S) == (HIT,)
    assert watch.rows(one_of_twelve_dead(BrokerState.ALIVE), LASTING_S) == ()
    gone = Replication(
        under_replicated=0, offline=0, below_min_isr=1, below_ids=(PartitionId(ORDERS, 999),)
    )
    assert MinIsrWatch().seen(gone, 0.0).rows(DEAD, LASTING_S) == ()


def test_replicas_on_failed_disks_are_replaced_like_those_on_dead_brokers() -> None:
    seen = with_failed_disks(3, [(1, 2), (1, 3)], {(0, 2)})
    found = Replication(
        under_replicated=1, offline=0, below_min_isr=2, below_ids=(seen.id(0), seen.id(1))
    )
    assert MinIsrWatch().seen(found, 0.0).rows(seen, LASTING_S) == (0,)
