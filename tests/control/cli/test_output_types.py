"""Output of commands with `-o json`: one document each, of its published schema."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from control.cli.main import app
from control.cli.output import Form
from control.cli.output_types import ANSWERS, FORMER_ANSWERS
from control.cli.plan_execution import requests_text
from control.render.cluster_status import cluster_text
from control.render.text import json_text
from executor.run.elections import LeaderElection, LeaderElections
from model.exchange.json_schemas import FILES, schema_of
from model.goals.goals import Goals
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.file import write_snapshot
from tests.control.cli.commands.test_info import info, reporter
from tests.model.exchange.test_goals_file import SCHEMAS
from tests.support import cli_offline
from tests.support.cli_shapes import leaves
from tests.support.control.loop_parts import MB, cluster

FROM = ("--snapshot", "s.json")
TIGHT = ("--config", "tight.toml")
"""A search budget that ends a search early."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot, its plan, and the plan as Kafka reassignment JSON."""
    folder = tmp_path_factory.mktemp("answers")
    write_snapshot(folder / "s.json", cluster([2] * 8, [MB] * 8))
    (folder / "tight.toml").write_text("[solve]\nwork = 1e-3\n")
    wrote = ("--out", "p.json", "--reassignment-json", "kafka")
    run = cli_offline.plimsoll(folder, "plan", *FROM, *wrote)
    assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cli_offline.enter(monkeypatch, tmp_path)
    monkeypatch.chdir(folder)
    return tmp_path


def checked(text: str, name: str) -> dict[str, Any]:
    """The document, checked against its type, which allows no other fields."""
    result: dict[str, Any] = json.loads(text)
    {**FILES, **ANSWERS}[name].model_validate_json(text)
    return result


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("plan", *FROM), "plan-output"),
        (("plan", *FROM, "--topic", "orders"), "plan-output"),
        (("topics", *FROM), "topics-output"),
        (("frontier", *FROM), "frontier"),
        (("what-if", "--add-broker", "1", *FROM), "what-if"),
        (("assign", "new", "-p", "4", "-r", "2", *FROM), "assign-output"),
        (("assign", "new", "-p", "4", "-r", "9", *FROM), "assign-output"),
        (("assign", "new", "-p", "99", "-r", "2", *FROM, *TIGHT), "assign-output"),
        (("verify", "p.json", *FROM), "verify-output"),
        (
            ("verify", "--reassignment", "kafka/reassignment.json", *FROM),
            "verify-reassignment-output",
        ),
        (("explain", "p.json", *FROM), "explain-output"),
        (("explain", "p.json", "1", *FROM), "explain-move-output"),
        (("explain", "p.json", "1", "--to", "2", *FROM), "explain-not-made-output"),
        (("config", "show"), "config-output"),
    ],
)
def test_the_output_of_a_command_fits_its_schema(
    here: Path, arguments: tuple[str, ...], name: str
) -> None:
    run = CliRunner().invoke(app, [*arguments, "-o", "json"])
    assert run.exit_code in (0, 4), run.stderr
    checked(run.stdout, name)


def test_a_synthetic_cluster_is_described(here: Path) -> None:
    size = ("--brokers", "3", "--partitions", "9", "--days", "1")
    arguments = ["generate", *size, "--out", str(here / "made"), "-o", "json"]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 0, run.stderr
    result = checked(run.stdout, "generate-output")
    assert (result["brokers"], result["partitions"]) == (3, 9)


@pytest.mark.parametrize("in_one_line", [False, True])
def test_the_status_is_one_document_or_one_line(in_one_line: bool) -> None:
    state = cluster([1, 2, 3], [MB] * 3)
    text = cluster_text(state, Goals(), Form.JSON, now_ms=0, in_one_line=in_one_line)
    assert (text.count("\n") == 1) is in_one_line
    checked(text, "status-output")


def test_info_lists_every_kind_of_source() -> None:
    result = info(reporter(left_out={"late": 2}, clocks_s={1: 2.5}))
    checked(json_text(result), "info-output")


ELECTIONS = LeaderElections(
    cluster_id="c1",
    checked=2,
    replicated=2,
    needed=(
        LeaderElection(
            id=PartitionId(TopicName("orders"), 0), leader=BrokerId(1), preferred=BrokerId(2)
        ),
        LeaderElection(
            id=PartitionId(TopicName("orders"), 1),
            leader=BrokerId(1),
            preferred=BrokerId(3),
            obstacle="not in sync",
        ),
    ),
)


class FakeExecutor:
    """An executor of a cluster in which two leaders are not the preferred ones."""

    def elections(self, *_: object, **__: object) -> LeaderElections:
        return ELECTIONS

    def elect(self, *_: object, **__: object) -> tuple[LeaderElection, ...]:
        return ()

    def clean_up(self, *_: object, **__: object) -> list[str]:
        return ["throttles of broker 1 were taken back"]

    def left(self, *_: object, **__: object) -> list[str]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("elect-leaders", "--allow-changes", "--yes"), "elect-leaders-output"),
        (("elect-leaders", "--dry-run"), "dry-run-output"),
        (("elect-leaders", "--out", "OUT"), "file-output"),
        (("cleanup", "--allow-changes"), "cleanup-output"),
    ],
)
def test_the_output_of_a_command_on_a_live_cluster_fits_its_schema(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], name: str
) -> None:
    monkeypatch.setattr("control.compose.executor", lambda _settings: FakeExecutor())
    given = [a.replace("OUT", str(here / "election.json")) for a in arguments]
    run = CliRunner().invoke(app, [*given, "-b", "h:1", "-o", "json"])
    assert run.exit_code == 0, run.stderr
    checked(run.stdout, name)


def test_requests_that_are_not_sent_form_a_document() -> None:
    checked(requests_text(["AlterX"], Form.JSON), "dry-run-output")
    assert requests_text(["AlterX", "B"], Form.TABLE) == "AlterX\nB\n"


def test_an_error_leaves_stdout_empty(here: Path) -> None:
    for arguments in (("plan", "--snapshot", "no"), ("status", "-b", "127.0.0.1:1")):
        run = CliRunner().invoke(app, [*arguments, "-o", "json"])
        assert run.exit_code in (2, 3)
        assert run.stdout == ""
        assert run.stderr.startswith("plimsoll: ")


def test_every_command_accepts_json() -> None:
    without = {
        path
        for path, command in leaves().items()
        if not any("--output" in param.opts for param in command.params)
    }
    assert without == set()


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_published_schema_is_that_of_the_types(name: str) -> None:
    """Regenerated by `plimsoll schema NAME > docs/schemas/NAME.json`."""
    published = json.loads((SCHEMAS / f"{name}.json").read_text())
    assert published == schema_of(name, ANSWERS)


def test_every_published_schema_has_its_type() -> None:
    outputs = {p.stem for p in SCHEMAS.glob("*-output.json")}
    assert outputs == ANSWERS.keys()


def test_the_documentation_names_the_schema_of_every_command() -> None:
    text = (SCHEMAS.parent / "reference" / "files.md").read_text()
    linked = set(re.findall(r"\(\.\./schemas/([\w-]+)\.json\)", text))
    assert linked == {**FILES, **ANSWERS}.keys()


@pytest.mark.parametrize("former", FORMER_ANSWERS)
def test_a_former_name_of_a_schema_still_prints_it(former: str) -> None:
    old, new = (
        CliRunner().invoke(app, ["schema", name]).stdout
        for name in (former, FORMER_ANSWERS[former])
    )
    assert old == new
    assert json.loads(old)
