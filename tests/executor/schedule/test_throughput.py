"""How fast a cluster is, judged by the moves of earlier runs."""

from collections.abc import Sequence

import pytest

from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from model.run import MoveProgress, MoveState
from tests.support.executor.plan_builders import move
from tests.support.executor.simulated_runs import MB


def done(
    number: int,
    seconds: float,
    size: int,
    *,
    at_s: float = 0.0,
    before: Sequence[int] = (1,),
    after: Sequence[int] = (2,),
) -> MoveProgress:
    return MoveProgress(
        move=move(number, before, after),
        state=MoveState.DONE,
        issued_at_ms=int(1000 * at_s),
        done_at_ms=int(1000 * (at_s + seconds)),
        bytes_copied=size,
    )


def test_small_moves_show_the_fixed_time_of_a_move() -> None:
    runs = [[done(0, 0.4, 1000), done(1, 0.6, 0)], [done(0, 2.0, 0)]]
    assert Pace.of(runs) == Pace(seconds=0.6, known=3)
    assert Pace.of([]) == Pace(known=0)


def test_simultaneous_copies_show_their_brokers_throughput() -> None:
    """Four at 25 MB/s each, out of one broker into four."""
    run = [done(n, 40.0, 1000 * MB, after=(2 + n,)) for n in range(4)]
    assert Pace.of([run]).bytes_per_s == pytest.approx(100.0 * MB)


def test_broker_throughput_counts_only_time_spent_copying() -> None:
    run = [done(0, 10.0, 500 * MB), done(1, 10.0, 500 * MB, at_s=3600.0)]
    assert Pace.of([run]).bytes_per_s == pytest.approx(50.0 * MB)


def test_one_stuck_run_does_not_count() -> None:
    runs = [[done(0, seconds, 1000 * MB)] for seconds in (10.0, 12.5, 10_000.0)]
    assert Pace.of(runs).bytes_per_s == pytest.approx(80.0 * MB)


def test_a_throttle_applies_between_brokers_only() -> None:
    limits = RunLimits(throttle_bytes_per_s=20 * MB)
    speed = Pace(bytes_per_s=80.0 * MB).speed(limits)
    assert (speed.network, speed.inside) == (20.0 * MB, 80.0 * MB)
