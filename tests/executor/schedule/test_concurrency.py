"""How many moves run at once on shared storage."""

from pathlib import Path

import pytest

from executor.schedule.concurrency import Concurrency
from executor.timing import RunLimits
from model.run import RunReport, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import move
from tests.support.executor.simulated_runs import SimulatedRun

HUNDRED = 100


def moved(folder: Path, *, opening_s: float, most: int) -> RunReport:
    site = SimulatedRun(
        folder=folder,
        before=dict.fromkeys(range(HUNDRED), (1,)),
        after={n: (2 + n % 4,) for n in range(HUNDRED)},
        storage=StorageKind.SHARED,
        limits=RunLimits(moves_in_flight=most),
    )
    site.cluster.opening_s = opening_s
    report = site.run()
    assert report.state is RunState.DONE
    return report


def test_quick_moves_let_more_run_at_once(tmp_path: Path) -> None:
    # Eight at once would take 100 / 8 rounds of 1.5 s.
    assert moved(tmp_path, opening_s=1.5, most=50).duration_s < 10.0


def test_no_more_than_the_operator_allows(tmp_path: Path) -> None:
    assert moved(tmp_path, opening_s=1.5, most=4).duration_s > 25 * 1.5


def test_slow_moves_halve_the_moves_in_flight() -> None:
    pace = Concurrency(RunLimits(moves_in_flight=50, moves_per_broker=10))
    for _ in range(8):
        pace.ended(move(storage=StorageKind.SHARED), 1.0, 0, 0.0)
    widened = pace.limits
    assert (widened.moves_in_flight, widened.moves_per_broker) == (16, 20)
    for _ in range(16):
        pace.ended(move(storage=StorageKind.SHARED), 4.0, 0, 0.0)
    assert (pace.limits.moves_in_flight, pace.limits.moves_per_broker) == (8, 10)


@pytest.mark.parametrize("kind", [StorageKind.REPLICATED, StorageKind.TIERED])
def test_more_copies_run_at_once_while_more_is_copied_in_all(kind: StorageKind) -> None:
    pace = Concurrency(RunLimits(moves_in_flight=50))
    now_s = 0.0

    def copied(count: int, bytes_per_s: float) -> int:
        nonlocal now_s
        for _ in range(count):
            now_s += 1e6 / bytes_per_s
            pace.ended(move(storage=kind), 1.0, 1_000_000, now_s)
        return pace.limits.moves_in_flight

    assert copied(8, 40e6) == 8, "the first move only starts the round"
    assert copied(1, 40e6) == 16
    assert copied(16, 48e6) == 32
    assert copied(32, 49e6) == 32, "the gain does not justify more moves at once"
    assert copied(32, 30e6) == 32, "the speed of copies does not show harm"
