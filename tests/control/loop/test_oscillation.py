"""Runs that throw brokers from one side of their tolerance to the other."""

import pytest

from control.loop.oscillation import MOST_DOUBLINGS, WITHIN_S, Oscillation, Sides, sides_of
from model.evaluate import evaluate
from model.goals.goals import Goal, Goals
from model.ids import BrokerId
from model.snapshot.snapshot import Resource
from tests.support.control.loop_parts import MB, cluster


def side(broker: int, sign: int, key: str = "net_in") -> Sides:
    return {(key, BrokerId(broker)): sign}


def after_runs(*sides: Sides, after_s: float = 60.0) -> Oscillation:
    """Each run began with these sides, the last ones are seen now."""
    found = Oscillation()
    for at, now in enumerate(sides):
        found = found.seen(now, after_s) if at else found
        found = found.began(now) if at < len(sides) - 1 else found
    return found


def test_only_brokers_outside_their_tolerance_have_a_side() -> None:
    """12, 10 and 8 MB/s, tolerance 10 %."""
    state = cluster([1, 2, 3], [12 * MB, 10 * MB, 8 * MB])
    goals = Goals(balance=(Goal(resource=Resource.NET_IN, floor=0.0),))
    sides = sides_of(evaluate(state, goals, ()), goals)
    assert sorted(sides.values()) == [-1, 1]
    wide = goals.model_copy(update={"balance": (Goal(resource=Resource.NET_IN, tolerance=0.3),)})
    assert sides_of(evaluate(state, wide, ()), wide) == {}


def test_brokers_that_stay_on_their_side_are_no_oscillation() -> None:
    found = after_runs(side(1, 1), side(1, 1), side(1, 1), side(1, 1))
    assert found.in_a_row == 0
    assert found.doublings == 0


def test_the_pause_doubles_from_the_second_run_in_a_row() -> None:
    sides = [side(1, (-1) ** run) for run in range(12)]
    assert [after_runs(*sides[: n + 1]).doublings for n in range(5)] == [0, 0, 1, 2, 3]
    assert after_runs(*sides).doublings == MOST_DOUBLINGS


@pytest.mark.parametrize("other", [side(2, -1), side(1, -1, "net_out"), {}])
def test_another_broker_or_dimension_ends_the_row(other: Sides) -> None:
    found = after_runs(side(1, 1), side(1, -1), side(1, 1), other)
    assert found.in_a_row == 0


def test_once_seen_it_counts_though_the_broker_returns_meanwhile() -> None:
    found = Oscillation().began(side(1, 1)).seen(side(1, -1), 30.0).seen({}, 60.0)
    assert found.in_a_row == 1


def test_changes_long_after_a_run_are_not_its_effect() -> None:
    """Such as the other half of a day."""
    sides = [side(1, (-1) ** run) for run in range(5)]
    assert after_runs(*sides, after_s=WITHIN_S + 1).in_a_row == 0
