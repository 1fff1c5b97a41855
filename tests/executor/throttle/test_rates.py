"""The least that copies need, and the most that clients leave them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.throttle.auto import ANY_BROKER, AutoThrottle
from executor.throttle.quota import FOLLOWER_RATE, LEADER_RATE
from executor.throttle.rates import needed, used
from executor.timing import RunLimits
from model.ids import BrokerId
from model.snapshot.snapshot import Resource
from tests.support.executor.plan_builders import ids, move, view

ONE, TWO, THREE, FOUR = ids([1, 2, 3, 4])
WAYS = (Resource.NET_IN, Resource.NET_OUT)
RATES = st.floats(0, 1e9)


def test_a_leader_needs_twice_what_all_replicas_fetch() -> None:
    moves = [move(0, (1, 2, 3), (1, 2, 4)), move(1, (1, 2), (1, 4))]
    written = {moves[0].id: 10.0, moves[1].id: 4.0}
    both = {(ONE, LEADER_RATE): 2 * (30 + 8), (FOUR, FOLLOWER_RATE): 2 * (10 + 4)}
    assert needed(moves, written, at_once=2) == both
    one = {(ONE, LEADER_RATE): 2 * 30, (FOUR, FOLLOWER_RATE): 2 * 10}
    assert needed(moves, written, at_once=1) == one


def test_clients_and_replicas_in_sync_use_bandwidth() -> None:
    one, other, unknown = move(0, (1, 2)), move(1, (2, 1)), move(2, (3,))
    views = [view(one), view(other, in_sync=(2,)), view(unknown)]
    taken = used(views, {one.id: 10.0, other.id: 4.0}, {ONE: 7.0, THREE: 1.0})
    assert taken == {
        (ONE, LEADER_RATE): 10 + 7,
        (ONE, FOLLOWER_RATE): 10,
        (TWO, LEADER_RATE): 0,
        (TWO, FOLLOWER_RATE): 10 + 4,
        (THREE, LEADER_RATE): None,
        (THREE, FOLLOWER_RATE): None,
    }


@given(
    capacity=RATES,
    taken=st.none() | RATES,
    floor=st.integers(1, 10**9),
    more=st.none() | st.integers(0, 10**9),
)
def test_a_rate_is_never_outside_floor_and_ceiling(
    capacity: float, taken: float | None, floor: int, more: int | None
) -> None:
    ceiling = None if more is None else floor + more
    auto = AutoThrottle(
        floor=floor, ceiling=ceiling, capacity={ANY_BROKER: dict.fromkeys(WAYS, capacity)}
    )
    rate = auto.rate(ONE, Resource.NET_IN, taken)
    assert floor <= rate <= (ceiling or float("inf"))
    assert rate <= max(floor, 0.9 * capacity, 10e6)


def test_a_broker_uses_its_own_capacity() -> None:
    own = {Resource.NET_IN: 1000.0}
    auto = AutoThrottle(capacity={ANY_BROKER: dict.fromkeys(WAYS, 500.0), 2: own})
    assert auto.rate(ONE, Resource.NET_IN, 100.0) == pytest.approx(360)
    assert auto.rate(BrokerId(2), Resource.NET_IN, 100.0) == pytest.approx(810)
    assert auto.rate(BrokerId(2), Resource.NET_OUT, 100.0) == 10e6
    assert auto.most_bytes_per_s == pytest.approx(900)


def test_a_following_throttle_never_exceeds_its_ceiling() -> None:
    capacity = {ANY_BROKER: dict.fromkeys(WAYS, 1000.0)}
    auto = AutoThrottle(ceiling=300, capacity=capacity)
    assert RunLimits(throttle_follows=True, auto_throttle=auto).copy_bytes_per_s == 300
    assert RunLimits(throttle_bytes_per_s=7).copy_bytes_per_s == 7
    assert RunLimits().copy_bytes_per_s == float("inf")


def test_a_floor_above_its_ceiling_is_refused() -> None:
    with pytest.raises(ValueError, match="floor lies above its ceiling"):
        AutoThrottle(floor=2, ceiling=1)
