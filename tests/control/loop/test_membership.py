"""How long brokers have been dead, and how stable the set of live brokers is."""

import math

from control.loop.membership import MOST_QUIET_S, REMEMBERED_S, Membership
from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState

THREE = BrokerId(3)


def brokers(*, third: BrokerState = BrokerState.ALIVE) -> tuple[Broker, ...]:
    alive = (Broker(id=BrokerId(1)), Broker(id=BrokerId(2)))
    return (*alive, Broker(id=THREE, state=third))


DEAD = brokers(third=BrokerState.DEAD)


def test_a_dead_broker_is_given_up_after_the_threshold() -> None:
    seen = Membership().seen(DEAD, 100.0).seen(DEAD, 150.0)
    assert seen.given_up(60.0, 159.0) == frozenset()
    assert seen.given_up(60.0, 160.0) == {THREE}
    assert seen.given_up(math.inf, 1e9) == frozenset()
    assert "in 10.0 s unless it returns" in seen.awaited({THREE}, 60.0, 150.0)
    assert seen.awaited({THREE}, math.inf, 150.0) == ""
    assert seen.awaited(set(), 60.0, 150.0) == ""


def test_a_return_starts_the_threshold_again() -> None:
    seen = Membership().seen(DEAD, 0.0).seen(brokers(), 50.0).seen(DEAD, 55.0)
    assert seen.given_up(60.0, 100.0) == frozenset()


def test_the_first_and_equal_memberships_are_not_a_change() -> None:
    seen = Membership().seen(DEAD, 0.0).seen(DEAD, 1.0)
    assert seen.quiet_in_s(1.0) == 0.0


def test_a_flapping_broker_must_be_stable_for_longer_each_time() -> None:
    seen, now_s = Membership().seen(brokers(), 0.0), 0.0
    waits = []
    for turn in range(20):
        now_s += 1.0
        seen = seen.seen(brokers() if turn % 2 else DEAD, now_s)
        waits.append(seen.quiet_in_s(now_s))
    assert waits == sorted(waits)
    assert waits[0] < 10 < waits[2]
    assert waits[-1] == MOST_QUIET_S
    later = seen.seen(brokers(), now_s + REMEMBERED_S)
    assert later.quiet_in_s(now_s + REMEMBERED_S) == 0.0
