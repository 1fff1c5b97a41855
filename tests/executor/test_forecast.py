"""What a run is told to take, against what it takes on the simulated cluster."""

from pathlib import Path

import pytest

from executor.forecast import Pace, forecast
from executor.timing import RunLimits
from model.ids import BrokerId
from model.run import RunState
from model.snapshot import StorageKind
from tests.executor.plans import move
from tests.executor.simulated import MB, Site

COPIES = [move(n, (1,), (2,), bytes_to_copy=1000 * MB) for n in range(3)]


@pytest.mark.parametrize(("in_flight", "seconds"), [(1, 6.0), (2, 3.0), (4, 1.5)])
def test_moves_that_copy_nothing_take_their_seconds(
    in_flight: int, seconds: float
) -> None:
    moves = [move(n, storage=StorageKind.SHARED) for n in range(4)]
    told = forecast(moves, RunLimits(moves_in_flight=in_flight), Pace(seconds=1.5))
    assert told.seconds == pytest.approx(seconds)
    assert told.most_more_bytes == {}


def test_copies_share_a_throttle() -> None:
    limits = RunLimits(throttle_bytes_per_s=50 * MB)
    told = forecast(COPIES, limits, Pace(seconds=1.0))
    assert told.seconds == pytest.approx(3000 / 50 + 1.0)
    assert told.bytes_to_copy == 3000 * MB
    assert told.most_more_bytes == {BrokerId(2): 3000 * MB}


def test_moves_of_before_tell_how_fast_it_goes() -> None:
    done = [(0.4, 1000), (0.6, 0), (2.0, 0), (10.0, 500 * MB), (20.0, 400 * MB)]
    assert Pace.of(done) == Pace(seconds=0.6, bytes_per_s=35.0 * MB, known=5)
    assert Pace.of([]) == Pace(known=0)


def test_what_frees_room_first_keeps_the_peak_low() -> None:
    there_and_away = [
        move(0, (1,), (2,), bytes_to_copy=100),
        move(1, (2,), (3,), bytes_to_copy=100),
    ]
    one = forecast(there_and_away[::-1], RunLimits(moves_in_flight=1), Pace())
    both = forecast(there_and_away, RunLimits(moves_in_flight=1), Pace())
    assert BrokerId(2) not in one.most_more_bytes
    assert both.most_more_bytes[BrokerId(2)] == 100


@pytest.mark.parametrize("throttle", [None, 50 * MB])
def test_the_simulated_cluster_takes_about_what_was_told(
    tmp_path: Path, throttle: int | None
) -> None:
    site = Site(
        folder=tmp_path,
        before={n: (1, 2 + n % 3) for n in range(8)},
        after={n: (5, 2 + n % 3) for n in range(8)},
        log_bytes=1000.0 * MB,
        limits=RunLimits(throttle_bytes_per_s=throttle),
    )
    told = forecast(site.plan.moves, site.limits, Pace(bytes_per_s=125.0 * MB))
    report = site.run()
    assert report.state is RunState.DONE
    assert report.duration_s == pytest.approx(told.seconds, rel=0.1)
