"""`plimsoll frontier` as a function, and the picture that it draws."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from control.commands.frontier import make
from control.exits import Exit
from control.form import Form
from control.origin import Origin
from control.settings import Settings
from control.svg import frontier_svg
from model.errors import ConfigError
from model.frontier import Frontier, FrontierCorner, FrontierPoint
from model.goals import Goals, SolveLimits

FIXTURES = Path(__file__).parents[2] / "fixtures"
SETTINGS = Settings(solve=SolveLimits(work=4.0))


def ask(output: Form = Form.TABLE, **paths: Path) -> int:
    return make(
        SETTINGS,
        Origin(snapshot=FIXTURES / "tutorial.json"),
        goals_file=None,
        out=paths.get("out"),
        svg=paths.get("svg"),
        output=output,
    )


def test_the_table_marks_the_knee_and_the_present_price(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask() == Exit.DONE
    told = capsys.readouterr().out
    assert "the knee is at 2 moves" in told
    assert told.rstrip().endswith("the present price chooses this")


def test_files_and_stdout_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, svg = tmp_path / "f.json", tmp_path / "f.svg"
    ask(Form.JSON, out=out, svg=svg)
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text()) == printed
    assert svg.read_text() == frontier_svg(
        Frontier.model_validate(printed, strict=False)
    )


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
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
        lower=(
            FrontierCorner(cost=0.0, balance=8.0),
            FrontierCorner(cost=2.0, balance=0.0),
        ),
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


def test_what_stands_in_names_is_escaped() -> None:
    name = '<b>&"'
    root = parsed(frontier_svg(frontier(2, name)))
    assert f"Frontier of cluster {name}" in [e.text for e in root.iter()]
