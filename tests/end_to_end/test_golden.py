"""Files and names of released versions still work; `tests/golden` holds them."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from control.cli.main import app
from control.planning.disk_request import plan_disk_removal
from control.session_recording.reader import read_recording
from executor.journal.run_history import left_set, past_runs
from lab.simulated_cluster.cluster_state import SimulatedPartition
from model.files import write_document
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.frontier import Frontier
from model.plan.plan import read_plan
from model.run import JournalEvent, RunState
from model.snapshot.file import read_snapshot, write_snapshot
from model.snapshot.snapshot import Snapshot
from model.snapshot.what_if import WhatIf
from solver.report.result import Result
from solver.solve import solve
from tests.executor.journal.test_damage import site
from tests.executor.platforms.test_tiered_segments import site as tiered_site
from tests.support import cli_offline, cli_shapes
from tests.support.executor.plan_builders import CLUSTER_ID, ids
from tests.support.executor.simulated_runs import SimulatedRun

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
PROFILES = ("all", "bare", "exporters", "inline", "old")
JOURNALS = sorted(path.parent for path in GOLDEN.glob("journals/*/*/journal"))


def golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_offline.enter(monkeypatch, tmp_path)
    monkeypatch.delenv("PLIMSOLL_TIMEOUT_S")


def plimsoll(*arguments: object, code: int = 0) -> Any:
    """The output of a command with `-o json`."""
    run = CliRunner().invoke(app, [*map(str, arguments), "-o", "json"])
    assert run.exit_code == code, run.output
    return json.loads(run.stdout)


# ---- plans and snapshots


@pytest.mark.parametrize("version", VERSIONS)
def test_plans_and_snapshots_of_each_version_are_read_and_verified(version: str) -> None:
    plan = GOLDEN / f"plans/demo-{version}.json"
    snapshot = GOLDEN / f"snapshots/demo-{version}.json"
    verdict = plimsoll("verify", plan, "--snapshot", snapshot)
    assert verdict["holds"]
    assert verdict["objective"] == 0.1587
    assert verdict["plan"] == json.loads(plan.read_text())["hash"]
    moves = [(m.partition, m.replicas_after) for m in read_plan(plan).moves]
    assert moves == [(0, (3,)), (1, (2,)), (2, (2,)), (4, (3,))]


def test_all_versions_of_a_snapshot_are_the_same_cluster() -> None:
    result = {
        read_snapshot(GOLDEN / f"snapshots/demo-{version}.json").fingerprint for version in VERSIONS
    }
    assert result == {golden("plans/demo-1.4.json")["snapshot_fingerprint"]}


@pytest.mark.parametrize(
    ("name", "goals", "expected_plan"),
    [
        ("demo-1.4", (), "demo-1.4"),
        ("every-field", ("--goals", GOLDEN / "settings/goals.toml"), "every-field-rows"),
        ("every-field", ("--goals", GOLDEN / "settings/goals-1.7.toml"), "every-field-1.7"),
    ],
)
def test_a_snapshot_is_planned_to_the_same_bytes(
    name: str, goals: tuple[str | Path, ...], expected_plan: str
) -> None:
    snapshot = GOLDEN / "snapshots" / f"{name}.json"
    plimsoll("plan", "--snapshot", snapshot, *goals, "--out", "plan.json")
    expected_bytes = (GOLDEN / "plans" / f"{expected_plan}.json").read_bytes()
    assert Path("plan.json").read_bytes() == expected_bytes


@pytest.mark.parametrize(
    ("name", "goals"),
    [
        ("every-field", "goals"),
        ("every-field-1.5", "goals"),
        ("every-field-1.5-forced", "goals"),
        ("every-field-1.7", "goals-1.7"),
        ("every-field-1.10", "goals-1.10"),
    ],
)
def test_a_plan_with_every_field_is_verified(name: str, goals: str) -> None:
    verdict = plimsoll(
        *("verify", GOLDEN / "plans" / f"{name}.json"),
        *("--snapshot", GOLDEN / "snapshots/every-field.json"),
        *("--goals", GOLDEN / "settings" / f"{goals}.toml"),
    )
    assert verdict["holds"]
    assert {claim["holds"] for claim in verdict["claims"]} <= {True, None}


def test_a_plan_names_the_noise_of_its_loads() -> None:
    """With the same limit, a plan of the loop is repeated from its snapshot."""
    Path("plimsoll.toml").write_text("[solve]\nnoise = 0.001\n")
    plimsoll("plan", "--snapshot", GOLDEN / "snapshots/demo-1.4.json", "--out", "plan.json")
    golden_plan = GOLDEN / "plans/demo-1.11.json"
    assert Path("plan.json").read_bytes() == golden_plan.read_bytes()
    assert read_plan(golden_plan).limits.noise == 0.001


def test_directories_are_emptied_by_the_same_bytes() -> None:
    snapshot = read_snapshot(GOLDEN / "snapshots/every-field.json")

    def find(snapshot: Snapshot, goals: Goals) -> Result:
        return solve(snapshot, goals, SolveLimits())

    found = plan_disk_removal(snapshot, Goals(), find, BrokerId(1), ["/data/b"])
    assert found is not None
    write_document(Path("plan.json"), found.plan.model_dump(mode="json"))
    expected_bytes = (GOLDEN / "plans/every-field-1.10.json").read_bytes()
    assert Path("plan.json").read_bytes() == expected_bytes
    assert [m.log_dirs_after for m in read_plan(Path("plan.json")).moves] == [
        ("any", "/data/a")
    ] * 2


def test_a_snapshot_with_every_field_keeps_its_bytes(tmp_path: Path) -> None:
    path = GOLDEN / "snapshots/every-field.json"
    write_snapshot(tmp_path / "again.json", read_snapshot(path))
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


# ---- frontiers and what-if answers


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_frontiers_of_each_version_are_read(version: str) -> None:
    path = GOLDEN / f"frontiers/demo-{version}.json"
    result = Frontier.model_validate_json(path.read_bytes())
    assert result.schema_version == version
    again = result.model_dump(mode="json")
    assert again == again | json.loads(path.read_text())


def test_a_snapshot_gives_the_same_frontier() -> None:
    snapshot = GOLDEN / "snapshots/demo-1.4.json"
    plimsoll("frontier", "--snapshot", snapshot, "--out", "frontier.json")
    expected = (GOLDEN / "frontiers/demo-1.1.json").read_bytes()
    assert Path("frontier.json").read_bytes() == expected


def test_a_what_if_answer_reads_back() -> None:
    path = GOLDEN / "what-if/demo-1.0.json"
    assert WhatIf.model_validate_json(path.read_bytes()).schema_version == "1.0"
    plimsoll(
        *("what-if", "--snapshot", GOLDEN / "snapshots/demo-1.4.json"),
        *("--add-broker", "1:a", "--traffic", "2:orders", "--out", "what-if.json"),
    )
    expected_now = GOLDEN / "what-if/demo-1.0-tolerance-first.json"
    assert Path("what-if.json").read_bytes() == expected_now.read_bytes()


# ---- journals


@pytest.fixture(params=JOURNALS, ids=lambda p: f"{p.parent.name}/{p.name}")
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A state folder with the journals of one case; its name says which."""
    folder: Path = tmp_path / request.param.parent.name / request.param.name
    shutil.copytree(request.param, folder)
    return folder


def expected(state: Path) -> Any:
    return golden("journals/expected.json")[f"{state.parent.name}/{state.name}"]


def found(state: Path) -> Any:
    """The output of commands and the loader for a state folder, without messages."""
    folder = state / "journal"
    journals = plimsoll("journal", "verify", code=2 if state.name == "damaged" else 0)["journals"]
    return {
        "journals": [
            {
                "run_id": row["run_id"],
                "cluster_id": row["cluster_id"],
                "state": row["state"],
                "records": row["records"],
                "damaged_lines": [damage["line"] for damage in row["damage"]],
                "plan_is_intact": row["plan_problem"] is None,
            }
            for row in journals
        ],
        "runs": [
            {
                "run_id": run.run_id,
                "plan": run.plan.hash,
                "state": run.state.value,
                "moves": [move.state.value for move in run.progress.moves],
                "bytes_copied": [move.bytes_copied for move in run.progress.moves],
                "duration_s": run.duration_s,
            }
            for run in past_runs(folder, CLUSTER_ID)
        ],
        "left_settings": [run.run_id for run in left_set(folder, CLUSTER_ID)],
    }


def test_journals_are_read(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STATE_DIR", str(state))
    assert found(state) == expected(state)


def test_a_damaged_journal_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(GOLDEN / "journals/schema-2/damaged", tmp_path / "damaged")
    monkeypatch.setenv("PLIMSOLL_STATE_DIR", str(tmp_path / "damaged"))
    (row,) = plimsoll("journal", "repair", "r00000001")["journals"]
    assert (row["state"], row["records"]) == ("repaired", 7)
    (row,) = plimsoll("journal", "verify")["journals"]
    assert row["damage"] == []


def make_move(of: SimulatedPartition, replicas: Sequence[BrokerId]) -> None:
    of.replicas, of.leader = list(replicas), replicas[0]
    of.in_sync, of.held = set(replicas), dict.fromkeys(replicas, of.log_bytes)


@pytest.mark.parametrize("schema", ["schema-1", "schema-2"])
@pytest.mark.parametrize(
    ("case", "make", "done"), [("interrupted", site, (0,)), ("segments", tiered_site, (2, 3))]
)
def test_an_interrupted_run_is_resumed_from_its_journal(
    tmp_path: Path, schema: str, case: str, make: Any, done: tuple[int, ...]
) -> None:
    """It makes the other moves and leaves no settings."""
    folder = tmp_path / "journal"
    shutil.copytree(GOLDEN / "journals" / schema / case / "journal", folder)
    at: SimulatedRun = make(folder)
    for number in done:
        make_move(at.partitions[number], ids(at.after[number]))
    own = dict(at.cluster.topic_configs)
    assert at.resume().state is RunState.DONE
    assert at.cluster.topic_configs == own
    after = {n: tuple(replicas) for n, replicas in at.after.items()}
    assert {n: at.placement[n][0] for n in after} == after


# ---- settings


@pytest.mark.parametrize("profile", PROFILES)
def test_settings_have_the_values_of_the_file(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PLIMSOLL_STATE_DIR", "PLIMSOLL_CACHE_DIR"):
        monkeypatch.delenv(name)
    chosen = ("--profile", profile) if profile != "all" else ()
    file = ("--config", GOLDEN / "settings/plimsoll.toml")
    rows = plimsoll("config", "show", *file, *chosen)["settings"]
    values = {row["name"]: row["value"] for row in rows}
    requested = golden(f"settings/{profile}.json")
    assert {name: values.get(name, "absent") for name in requested} == requested


# ---- recorded screens


def test_a_recorded_screen_is_read() -> None:
    header, scenes = read_recording(GOLDEN / "screens/demo.jsonl.gz")
    shown = list(scenes)
    last = shown[-1].view
    assert header.schema_version == "1.0"
    assert Counter(scene.report.state for scene in shown if scene.report) == {RunState.DONE: 1}
    assert last.snapshot is not None
    assert last.run is not None
    assert (len(shown), len(last.snapshot.header.brokers)) == (40, 3)


# ---- names


def test_every_command_still_has_its_options() -> None:
    now = cli_shapes.commands()
    for command, options in golden("names/commands.json").items():
        assert options.items() <= now[command].items(), command


def test_every_event_of_journals_is_still_known() -> None:
    assert set(golden("names/journal-events.json")) <= set(JournalEvent)


def test_every_field_of_files_and_output_is_still_there() -> None:
    for kind, fields in golden("names/fields.json").items():
        schema = plimsoll("schema", kind)
        assert set(fields) <= set(cli_shapes.fields(schema)), kind
