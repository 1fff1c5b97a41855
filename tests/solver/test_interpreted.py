"""Small problems are planned by interpreted loops, with the same bits as by compiled ones."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings

from model.files import canonical
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Ints, Snapshot
from solver import solve as solving
from solver.cpsat.model import is_small
from solver.kernels.arithmetic import draw, exponential, exponential_quantiles, logarithm
from solver.kernels.compiled import interpreted
from solver.problem.placement import Placement
from solver.problem.problem import compile_problem
from solver.repair.repair import find_repair, ruled_out
from solver.report.result import Result
from solver.search.leaders_only import plan_leaders_only
from solver.search.observer import SolveObserver
from tests.support.paths import ROOT
from tests.support.solver.exact_oracle import Row, broker, cluster, goals
from tests.support.solver.random_problems import clusters, random_goals

LIMITS = SolveLimits(work=1.0)
FOUR = [broker(0, "A"), broker(1, "B"), broker(2, "A"), broker(3, "B")]
SHARED_RACKS = [
    Row(replicas=places, load=(load, 1.0 / load))
    for load, places in enumerate(((0, 2), (1, 3), (2, 0), (0, 1), (0, 3), (0, 1)), 1)
]
PLIMSOLL = "from control.cli.main import main; main()"
SEED = 0x9E3779B97F4A7C15


def bytes_of(result: Result) -> bytes:
    """All of a result but its time."""
    plan = None if result.best is None else result.best.model_dump(mode="json")
    figures = [result.status, result.objective, result.bound, result.work, *result.reasons]
    return canonical({"plan": plan, "figures": [str(figure) for figure in figures]})


def bytes_of_compiled(snapshot: Snapshot, given_goals: Goals) -> bytes:
    """The same solve with every loop compiled."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(solving, "interpreted", lambda _: nullcontext())
        return bytes_of(solving.solve(snapshot, given_goals, LIMITS))


def test_a_small_cluster_is_planned_without_compiling(tmp_path: Path) -> None:
    """Eight partitions on three brokers, outside the tolerance; nothing is left in the cache."""
    arguments = ("plan", "--snapshot", str(ROOT / "fixtures" / "tutorial.json"))
    done = subprocess.run(
        [sys.executable, "-c", PLIMSOLL, *arguments],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "5 moves" in done.stdout
    assert "compiling" not in done.stderr
    assert not any(tmp_path.rglob("*.nb?"))


def test_shared_racks_are_repaired_with_the_same_bits() -> None:
    """Also with a limit exceeded; the repair is one that changes something."""
    snapshot = cluster(FOUR, SHARED_RACKS)
    limited = goals(replicas_per_broker=4)
    problem = compile_problem(snapshot, limited)
    assert is_small(problem)
    home = Placement.home(problem)
    found = []
    for mode in (True, False):
        with interpreted(mode):
            repair = find_repair(problem, LIMITS, SolveObserver())
            placement = repair.placement
            assert placement is not None
            assert not np.array_equal(placement.replicas, home.replicas)
            alone = plan_leaders_only(compile_problem(snapshot, goals()), placement)
            assert alone is not None
            arrays = placement.replicas.tobytes(), placement.leader.tobytes()
            found.append((arrays, repair.work, repair.proved, alone, ruled_out(problem, home)))
    assert found[0] == found[1]
    interpreted_plan = bytes_of(solving.solve(snapshot, limited, LIMITS))
    assert interpreted_plan == bytes_of_compiled(snapshot, limited)


def test_arithmetic_has_the_same_bits() -> None:
    """Random numbers wrap around in 64 bits; powers and logarithms are sums of products."""
    found = []
    for mode in (True, False):
        state: Ints = np.array([SEED], np.uint64)
        with interpreted(mode):
            drawn = [int(draw(state)) for _ in range(100)]
            powers = [float(exponential(-x * x / 7.0)) for x in range(50)]
            logarithms = [float(logarithm(1.0 + x / 3.0)) for x in range(50)]
            found.append((drawn, powers, logarithms, exponential_quantiles().tobytes()))
    assert found[0] == found[1]


@pytest.mark.search
@settings(max_examples=150, deadline=None)
@given(snapshot=clusters(most_rows=6), given_goals=random_goals())
@pytest.mark.slow
def test_plans_have_the_same_bits(snapshot: Snapshot, given_goals: Goals) -> None:
    assume(is_small(compile_problem(snapshot, given_goals)))
    found = bytes_of(solving.solve(snapshot, given_goals, LIMITS))
    assert found == bytes_of_compiled(snapshot, given_goals)
