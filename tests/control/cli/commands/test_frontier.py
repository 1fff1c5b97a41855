"""`plimsoll frontier` as a function, and the picture that it draws."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from control.cli.commands.frontier import frontier as trace
from control.cli.exit_codes import Exit
from control.cli.invocation import Origin
from control.cli.output import Form
from control.render.frontier_svg import frontier_svg
from control.settings.settings import Settings
from control.settings.solve_table import SolveTable
from model.errors import ConfigError
from model.evaluate import evaluate
from model.files import rounded
from model.goals.goals import Goals, ObjectiveKind, SolveLimits
from model.plan.frontier import Frontier, FrontierCorner, FrontierPoint, undominated
from model.plan.plan import bytes_of
from model.snapshot.file import read_snapshot, write_snapshot
from solver.solve import solve
from tests.support.paths import FIXTURES
from tests.support.solver.exact_oracle import Row, broker, cluster
from tests.support.solver.zipf_clusters import synthetic

SETTINGS = Settings(solve=SolveTable(work=4.0))


def ask(
    output: Form = Form.TABLE,
    settings: Settings = SETTINGS,
    snapshot: Path = FIXTURES / "tutorial.json",
    **paths: Path,
) -> int:
    return trace(settings=settings, origin=Origin(snapshot=snapshot), output=output, **paths)


def test_the_table_marks_the_best_trade_off_and_the_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask() == Exit.DONE
    printed = capsys.readouterr().out
    assert "the best trade-off is at 2 moves" in printed
    rows = printed[printed.index("point ") :].splitlines()[1:]
    assert [int(row.split()[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert rows[2].endswith("(the best trade-off)")
    assert [row for row in rows if "the plan" in row] == rows[-1:]


@pytest.mark.parametrize("objective", ObjectiveKind)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_one_point_is_always_the_plan_of_the_plan_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int, objective: ObjectiveKind
) -> None:
    """With too small a search budget for a proof, so that other searches may differ."""
    settings = Settings(solve=SolveTable(work=0.2, gap=0.0), goals=Goals(objective=objective))
    file = tmp_path / "snapshot.json"
    write_snapshot(file, synthetic(6, 60, rf=2, racks=2, seed=seed))
    snapshot = read_snapshot(file)
    plan = solve(snapshot, settings.goals, settings.solve.limits).best
    assert plan is not None
    ask(Form.JSON, settings, file)
    output = Frontier.model_validate(json.loads(capsys.readouterr().out), strict=False)
    assert output.limits == settings.solve.limits
    assert output.chosen is not None
    point = output.points[output.chosen]
    assert point.bytes_to_copy == bytes_of(plan.moves)
    changes = [m.leader_before != m.leader_after for m in plan.moves]
    assert point.leader_changes == sum(changes)
    judged = evaluate(snapshot, settings.goals, plan.moves)
    band = objective is ObjectiveKind.BAND
    assert point.balance == rounded(judged.excess if band else judged.deviation)
    assert [p.cost for p in output.points] == sorted(p.cost for p in output.points)
    others = [p for i, p in enumerate(output.points) if i != output.chosen]
    assert undominated(others) == tuple(others)
    assert "the plan" in frontier_svg(output)


def test_an_unchanged_cluster_may_be_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    rows = [Row(replicas=(i,)) for i in (1, 2)]
    write_snapshot(file, cluster([broker(1), broker(2)], rows))
    ask(Form.JSON, SETTINGS, file, out=tmp_path / "f.json")
    result = json.loads((tmp_path / "f.json").read_text())
    assert result["chosen"] == 0
    assert result["points"][0]["moves"] == 0


def test_files_and_stdout_have_the_same_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, svg = tmp_path / "f.json", tmp_path / "f.svg"
    ask(Form.JSON, out=out, svg=svg)
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text()) == printed
    assert svg.read_text() == frontier_svg(Frontier.model_validate(printed, strict=False))


def test_a_goal_without_data_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = tmp_path / "goals.toml"
    goals.write_text('[[balance]]\nresource = "net_in"\n[[balance]]\nresource = "cpu"\n')
    ask(goals=goals)
    output = capsys.readouterr().err
    assert "the goal cpu is ignored: no partition's cpu is known" in output


def test_a_picture_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        ask(svg=tmp_path / "none" / "f.svg")


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own text


def frontier(points: int, cluster: str = "c") -> Frontier:
    made = tuple(
        FrontierPoint(
            cost=float(i),
            balance=10.0 / (i + 1),
            bound=0.0,
            moves=i,
            leader_changes=0,
            bytes_to_copy=0,
            move_price=1.0,
        )
        for i in range(points)
    )
    return Frontier(
        cluster_id=cluster,
        snapshot_fingerprint="",
        goals=Goals(),
        limits=SolveLimits(),
        measure="deviation",
        move_price=1.0,
        balance_before=10.0,
        points=made,
        knee=1 if points > 2 else None,
        chosen=points - 1 if points else None,
        lines=(),
        lower=(FrontierCorner(cost=0.0, balance=8.0), FrontierCorner(cost=2.0, balance=0.0)),
        reasons=() if points else ("broker 1 must empty",),
    )


@pytest.mark.parametrize("points", [0, 1, 2, 3, 30])
def test_any_number_of_points_makes_a_picture(points: int) -> None:
    root = parsed(frontier_svg(frontier(points)))
    dots = [c for c in root.iter() if c.tag.endswith("circle") and c.get("r") == "3.6"]
    assert len(dots) == points


def test_nothing_is_drawn_outside_the_picture() -> None:
    root = parsed(frontier_svg(frontier(30)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for element in root.iter():
        for name, most in (("cx", width), ("x", width), ("cy", height), ("y", height)):
            assert 0 <= float(element.get(name, 0)) <= most


def test_names_are_escaped() -> None:
    name = '<b>&"'
    root = parsed(frontier_svg(frontier(2, name)))
    assert f"Frontier of cluster {name}" in [e.text for e in root.iter()]
