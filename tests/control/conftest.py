"""An imbalanced cluster and its plan, shared by tests of several commands."""

from pathlib import Path

import pytest

from model.plan.plan import Plan, write_plan
from model.snapshot.file import write_snapshot
from model.snapshot.snapshot import Snapshot
from solver.solve import solve
from tests.support.control.loop_parts import EASY, MB, WORK, cluster


@pytest.fixture(scope="session")
def uneven() -> Snapshot:
    """Eight partitions on broker 2 of three."""
    return cluster([2] * 8, [MB * (i + 4) for i in range(8)])


@pytest.fixture(scope="session")
def plan(uneven: Snapshot) -> Plan:
    """The plan of the imbalanced cluster."""
    best = solve(uneven, EASY, WORK).best
    assert best is not None
    assert best.moves
    return best


@pytest.fixture
def folder(tmp_path: Path, uneven: Snapshot, plan: Plan) -> Path:
    """`uneven.json` and `plan.json`."""
    write_snapshot(tmp_path / "uneven.json", uneven)
    write_plan(tmp_path / "plan.json", plan)
    return tmp_path
