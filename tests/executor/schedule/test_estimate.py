"""The estimated duration of a run, compared with the simulated cluster."""

from pathlib import Path

import pytest

from control.render.plan_text import forecast_text
from executor.schedule.concurrency import Concurrency
from executor.schedule.estimate import forecast
from executor.schedule.simulate import simulated
from executor.schedule.task import tasks_of
from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from model.ids import BrokerId
from model.plan.plan import LeadersOnly
from model.run import RunProgress, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import move, plan
from tests.support.executor.simulated_runs import MB, SimulatedRun

COPIES = [move(n, (1,), (2,), bytes_to_copy=1000 * MB) for n in range(3)]


@pytest.mark.parametrize(("in_flight", "seconds"), [(1, 6.0), (2, 3.0), (4, 1.5)])
def test_moves_without_bytes_take_their_fixed_time(in_flight: int, seconds: float) -> None:
    moves = [move(n, storage=StorageKind.SHARED) for n in range(4)]
    limits = RunLimits(moves_in_flight=in_flight)
    estimate = forecast(plan(moves), limits, Pace(seconds=1.5))
    assert estimate.seconds == estimate.least_s == pytest.approx(seconds)
    assert {peak.more_bytes for peak in estimate.peaks.values()} == {0}


def test_changes_of_leader_alone_take_as_long_as_a_plan_of_them() -> None:
    moves = [move(n, (2 * n, 2 * n + 1), (2 * n + 1, 2 * n), bytes_to_copy=0) for n in range(12)]
    alone = LeadersOnly(leader_changes=len(moves), objective=0.0)
    of = plan(moves).model_copy(update={"leaders_only": alone})
    estimate = forecast(of, RunLimits(), Pace(seconds=1.5))
    assert estimate.leaders_s == estimate.seconds == pytest.approx(3.0)
    assert forecast(plan(moves), RunLimits(), Pace()).leaders_s is None


def test_copies_share_a_throttle() -> None:
    limits = RunLimits(throttle_bytes_per_s=50 * MB)
    estimate = forecast(plan(COPIES), limits, Pace(seconds=1.0))
    assert estimate.seconds == pytest.approx(3000 / 50 + 1.0)
    assert estimate.bytes_to_copy == 3000 * MB
    source, target = (estimate.peaks[BrokerId(b)] for b in (1, 2))
    assert (target.more_bytes, target.in_bytes, target.out_bytes) == (3000 * MB, 3000 * MB, 0)
    assert (source.more_bytes, source.out_bytes) == (0, 3000 * MB)
    assert source.out_per_s == target.in_per_s == pytest.approx(50 * MB)


def test_freeing_space_first_keeps_the_peak_low() -> None:
    moves = [move(0, (1,), (2,), bytes_to_copy=100), move(1, (2,), (3,), bytes_to_copy=100)]
    limits = RunLimits(moves_in_flight=1)
    peaks = [
        simulated(tasks_of(order), Pace().speed(limits), Concurrency(limits)).peaks
        for order in (moves, moves[::-1])
    ]
    assert [peak[BrokerId(2)].more_bytes for peak in peaks] == [100, 0]


def test_time_bound_and_peaks_are_described() -> None:
    limits = RunLimits(throttle_bytes_per_s=50 * MB)
    free = {BrokerId(2): 4000 * MB, BrokerId(3): 500 * MB}
    moves = [*COPIES, move(9, (2,), (3,), bytes_to_copy=1000 * MB)]
    estimate = forecast(plan(moves), limits, Pace(seconds=1.0), free)
    assert forecast_text(estimate) == (
        "will take about 61.0 s and copy 3.00 GB (based on default figures); no order "
        "of the moves is faster\n"
        "not all moves can be made: broker 3 has 500 MB free beyond its reserve, "
        "and orders-9 needs 1.00 GB\n"
        "\n"
        "broker              disk at most       in    at most      out    at most\n"
        "     1                      +0 B      0 B      0 B/s  3.00 GB  50.0 MB/s\n"
        "     2  +3.00 GB of 4.00 GB free  3.00 GB  50.0 MB/s      0 B      0 B/s\n"
    )


@pytest.mark.parametrize("throttle", [None, 50 * MB])
def test_the_simulated_cluster_takes_about_as_long_as_estimated(
    tmp_path: Path, throttle: int | None
) -> None:
    site = SimulatedRun(
        folder=tmp_path,
        before={n: (1, 2 + n % 3) for n in range(8)},
        after={n: (5, 2 + n % 3) for n in range(8)},
        log_bytes=1000.0 * MB,
        limits=RunLimits(throttle_bytes_per_s=throttle),
    )
    estimate = forecast(site.plan, site.limits, Pace(bytes_per_s=125.0 * MB))
    report = site.run()
    assert report.state is RunState.DONE
    assert report.duration_s == pytest.approx(estimate.seconds, rel=0.1)


def test_the_time_left_follows_the_observed_throughput(tmp_path: Path) -> None:
    """Estimated at the usual 100 MB/s, on brokers that do 20."""
    site = SimulatedRun(
        folder=tmp_path,
        before={n: (1 + n % 2, 3) for n in range(6)},
        after={n: (4 + n % 2, 3) for n in range(6)},
        log_bytes=1000.0 * MB,
        limits=RunLimits(moves_in_flight=2),
    )
    for broker in site.cluster.brokers.values():
        broker.network_bytes_per_s = 20.0 * MB
    begun_s, answer = site.cluster.now_s, list[tuple[float, RunProgress]]()
    report = site.run(observe=lambda run: answer.append((site.cluster.now_s, run)))
    ended_s = site.cluster.now_s
    assert report.foreseen_s is not None
    assert report.foreseen_s < 0.3 * (ended_s - begun_s)
    later = [
        (ended_s - at_s, run.left_s)
        for at_s, run in answer
        if at_s > begun_s + 30.0 and run.left_s is not None
    ]
    assert all(
        run.left_at_ms is not None and 0.0 <= at_s - run.left_at_ms / 1000 <= 11.0
        for at_s, run in answer
        if run.left_s is not None
    )
    assert len(later) > 10
    for left_s, expected_s in later:
        # An estimate stands for 10 s.
        assert left_s - 3.0 <= expected_s <= 1.1 * left_s + 13.0
    assert answer[-1][1].left_s is None
