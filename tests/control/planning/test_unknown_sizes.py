"""Unknown sizes are shown as `unknown`, or null, and never as 0 B."""

import json
from pathlib import Path

import pytest

from control.cli.commands.frontier import frontier
from control.cli.commands.plan import plan
from control.cli.invocation import Origin
from control.cli.output import Form
from control.render.plan_text import forecast_text
from control.settings.auto_limits import CONSERVATIVE, refusals, tightened
from control.settings.settings import Settings
from control.settings.solve_table import SolveTable
from executor.schedule.estimate import forecast
from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from model.evaluate import evaluate
from model.exchange.offline_snapshot import ClusterFiles, read_cluster
from model.goals.goals import Budgets, Goals, SolveLimits
from model.plan.plan import Plan
from model.snapshot.snapshot import StorageKind
from solver.solve import solve
from tests.support.cluster_files import write_cluster_files

WORK = SolveLimits(work=1.0)


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """The cluster of `write_cluster_files` without its column of bytes on disk."""
    write_cluster_files(tmp_path)
    rows = (tmp_path / "loads.csv").read_text().splitlines()
    bare = [row.rpartition(",")[0] + "\n" for row in rows]
    (tmp_path / "loads.csv").write_text("".join(bare))
    return Origin(describe=tmp_path / "describe.txt", loads=tmp_path / "loads.csv", no_racks=True)


def planned(origin: Origin, goals: Goals | None = None, storage: StorageKind | None = None) -> Plan:
    assert origin.describe is not None
    files = ClusterFiles(describe=origin.describe, loads=origin.loads, storage=storage)
    best = solve(read_cluster(files), goals or Goals(), WORK).best
    assert best is not None
    return best


def test_plan_and_frontier_report_unknown_sizes(
    origin: Origin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(solve=SolveTable(work=WORK.work))
    for output in (Form.TABLE, Form.JSON):
        plan(settings=settings, origin=origin, output=output)
    text, _, document = capsys.readouterr().out.partition("\n{")
    assert "unknown to copy" in text
    assert "will copy a partition of unknown size" in text
    moves = json.loads("{" + document)["plan"]["moves"]
    assert [m for m in moves if m["bytes_to_copy"] is None]
    out = tmp_path / "frontier.json"
    frontier(settings=settings, origin=origin, out=out)
    assert "unknown" in capsys.readouterr().out
    points = json.loads(out.read_text())["points"]
    for point in points:
        assert (point["bytes_to_copy"] is None) == (point["moves"] > 0)


def test_a_change_of_leader_and_shared_storage_copy_nothing(origin: Origin) -> None:
    for move in planned(origin).moves:
        assert (move.bytes_to_copy is None) == bool(move.added)
    shared = planned(origin, storage=StorageKind.SHARED)
    assert shared.moves
    assert shared.bytes_to_copy == 0


def test_under_a_budget_of_bytes_nothing_of_unknown_size_is_copied(origin: Origin) -> None:
    free = planned(origin)
    bound = Goals(budgets=Budgets(bytes=10**15))
    remaining = planned(origin, bound)
    assert any(m.added for m in free.moves)
    assert not any(m.added for m in remaining.moves)
    assert origin.describe is not None
    snapshot = read_cluster(ClusterFiles(describe=origin.describe, loads=origin.loads))
    (broken,) = {v.rule for v in evaluate(snapshot, bound, free.moves).violations}
    assert broken == "budgets"
    assert not evaluate(snapshot, bound, remaining.moves).violations


def test_limits_of_bytes_do_not_approve_unknown_bytes(origin: Origin) -> None:
    message = refusals(planned(origin), CONSERVATIVE)
    assert any("partitions of unknown size" in w for w in message)
    within = planned(origin, tightened(Goals(), CONSERVATIVE))
    assert not any("unknown size" in w for w in refusals(within, CONSERVATIVE))


def test_a_forecast_reports_what_it_omits(origin: Origin) -> None:
    result = planned(origin)
    unknown = sum(m.bytes_to_copy is None for m in result.moves)
    estimate = forecast(result, RunLimits(), Pace.of([]))
    assert estimate.unknown == unknown > 0
    assert "of unknown size not included" in forecast_text(estimate)
