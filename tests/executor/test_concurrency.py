"""How many moves run at once on shared storage."""

from pathlib import Path

import pytest

from executor.concurrency import Concurrency
from executor.timing import RunLimits
from model.run import RunReport, RunState
from model.snapshot import StorageKind
from tests.executor.plans import move
from tests.executor.simulated import Site

HUNDRED = 100


def moved(folder: Path, *, opening_s: float, most: int) -> RunReport:
    site = Site(
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


def test_slow_moves_halve_what_runs_at_once() -> None:
    pace = Concurrency(RunLimits(moves_in_flight=50, moves_per_broker=10))
    for _ in range(8):
        pace.ended(move(storage=StorageKind.SHARED), 1.0)
    widened = pace.limits
    assert (widened.moves_in_flight, widened.moves_per_broker) == (16, 20)
    for _ in range(16):
        pace.ended(move(storage=StorageKind.SHARED), 4.0)
    assert (pace.limits.moves_in_flight, pace.limits.moves_per_broker) == (8, 10)


@pytest.mark.parametrize("kind", [StorageKind.REPLICATED, StorageKind.TIERED])
def test_copies_tell_nothing_of_it(kind: StorageKind) -> None:
    pace = Concurrency(RunLimits(moves_in_flight=50))
    for _ in range(8):
        pace.ended(move(storage=kind), 0.1)
    assert pace.limits.moves_in_flight == 8
