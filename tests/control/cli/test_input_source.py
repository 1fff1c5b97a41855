"""Where planning commands get their cluster from, and what they do without racks."""

import json
from pathlib import Path
from typing import Any

import pytest

from control.cli.commands.assign import assign
from control.cli.commands.frontier import frontier
from control.cli.commands.plan import plan
from control.cli.commands.what_if import what_if
from control.cli.invocation import Origin
from control.cli.output import Form
from control.settings.settings import Settings
from control.settings.solve_table import SolveTable
from model.errors import GuardrailRefused
from tests.support.cluster_files import write_cluster_files

SETTINGS = Settings(solve=SolveTable(work=1.0))
PART = "id,rack\n1,a\n2,b\n3,\n"
FULL = "id,rack\n1,a\n2,b\n3,c\n"
NO_RACKS = "rack_rule = 'off'\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cluster_files(tmp_path)
    return tmp_path


def origin(folder: Path, table: str | None = None, *, no_racks: bool = False) -> Origin:
    brokers = None
    if table is not None:
        brokers = folder / "brokers.csv"
        brokers.write_text(table)
    return Origin(
        describe=folder / "describe.txt",
        loads=folder / "loads.csv",
        brokers=brokers,
        no_racks=no_racks,
    )


def make(folder: Path, given: Origin, **options: Any) -> int:
    usual: dict[str, Any] = {"out": folder / "plan.json", "output": Form.JSON}
    return plan(settings=SETTINGS, origin=given, **(usual | options))


def warned(folder: Path) -> list[str]:
    result: list[str] = json.loads((folder / "plan.json").read_text()).get("warnings")
    return result or []


@pytest.mark.parametrize(
    ("table", "who"),
    [
        (None, "the racks of all brokers are unknown"),
        ("id\n1\n2\n3\n", "the racks of all brokers are unknown"),
        (PART, "the rack of broker 3 is unknown"),
    ],
)
def test_unknown_racks_are_warned_of_and_no_reassignment_is_written(
    folder: Path, table: str | None, who: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = origin(folder, table)
    make(folder, given, output=Form.TABLE)
    captured = capsys.readouterr()
    assert f"warning: {who}" in captured.err
    assert f"warning: {who}" in captured.out
    assert any(message.startswith(who) for message in warned(folder))
    with pytest.raises(GuardrailRefused, match=f"was not written.*{who}.*--no-racks"):
        make(folder, given, reassignment_json=folder / "out")
    assert not (folder / "out").exists()


@pytest.mark.parametrize("topics", [(), ("orders",)])
def test_consent_to_unknown_racks_allows_the_reassignment(
    folder: Path, topics: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    given = origin(folder, no_racks=True)
    make(folder, given, topic=list(topics), reassignment_json=folder / "out")
    captured = capsys.readouterr()
    assert captured.err == ""
    assert warned(folder) == []
    assert (folder / "out" / "reassignment.json").exists()


def test_goals_without_a_rack_rule_are_consent(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "goals.toml").write_text(NO_RACKS)
    make(folder, origin(folder), goals=folder / "goals.toml", reassignment_json=folder / "out")
    assert capsys.readouterr().err == ""
    assert (folder / "out" / "reassignment.json").exists()


def test_known_racks_need_no_consent(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(folder, origin(folder, FULL), reassignment_json=folder / "out")
    assert capsys.readouterr().err == ""
    assert warned(folder) == []


def test_partitions_with_one_replica_need_no_racks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "describe.txt").read_text()
    (folder / "describe.txt").write_text(text[: text.index("Topic: orders")])
    loads = (folder / "loads.csv").read_text().splitlines(keepends=True)
    remaining = [line for line in loads if not line.startswith("orders")]
    (folder / "loads.csv").write_text("".join(remaining))
    make(folder, origin(folder), reassignment_json=folder / "out")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("replicas", "refused"), [(2, True), (1, False)])
def test_a_new_topic_is_not_exported_without_racks(
    folder: Path, replicas: int, refused: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(given: Origin, out: Path | None, output: Form = Form.TABLE) -> None:
        assign(
            "new",
            partitions=3,
            replication_factor=replicas,
            settings=SETTINGS,
            origin=given,
            out=out,
            output=output,
        )

    out = folder / "new.json"
    if refused:
        with pytest.raises(GuardrailRefused, match=r"new\.json was not.*--no-racks"):
            ask(origin(folder), out)
        with pytest.raises(GuardrailRefused, match=r"assignment was not.*--no-racks"):
            ask(origin(folder), None, Form.JSON)
        assert not out.exists()
        assert capsys.readouterr().out == ""
        ask(origin(folder), None)
        assert "racks of all brokers are unknown" in capsys.readouterr().err
    given = origin(folder, no_racks=refused)
    ask(given, out, Form.JSON)
    assert json.loads(capsys.readouterr().out)["assignment"] is not None
    assert out.exists()


def test_frontier_and_what_if_also_warn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = origin(folder)
    frontier(settings=SETTINGS, origin=given)
    assert "racks of all brokers are unknown" in capsys.readouterr().err
    what_if(settings=SETTINGS, origin=given, traffic=["2"])
    captured = capsys.readouterr()
    assert "racks of all brokers are unknown" in captured.err
    assert "warning: the racks of all brokers are unknown" in captured.out


def test_a_goal_without_data_or_under_its_floor_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "goals.toml").write_text(
        NO_RACKS + "[[balance]]\nresource = 'net_in'\n[[balance]]\nresource = 'cpu'\n"
        "[[balance]]\nresource = 'disk'\nfloor = 1e12\n"
    )
    make(folder, origin(folder), goals=folder / "goals.toml")
    assert warned(folder) == [
        "the goal cpu is ignored: no partition's cpu is known",
        "the goal disk is ignored: 2.46 GB per broker on average, and its floor is 1.00 TB",
    ]
