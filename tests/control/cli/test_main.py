"""The command line from the user's point of view: messages, streams, exit codes."""

import json
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from control.cli.exit_codes import Exit
from model.exchange.json_schemas import FILES
from model.snapshot.file import write_snapshot
from tests.support.cli_offline import PLIMSOLL, RUN_S, enter, in_process, plimsoll, refused
from tests.support.cluster_files import write_cluster_files
from tests.support.control.loop_parts import MB, cluster
from tests.support.paths import ROOT

FROM = ("plan", "--from", "describe.txt", "--loads", "loads.csv")
SCHEMAS = ROOT / "docs" / "schemas"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three snapshots, the plan of the uneven one, and other files."""
    folder = tmp_path_factory.mktemp("cli")
    write_snapshot(folder / "uneven.json", cluster([2] * 8, [MB] * 8))
    write_snapshot(folder / "level.json.gz", cluster([1, 2, 3], [MB] * 3))
    write_snapshot(folder / "empty.json", cluster([], []))
    write_cluster_files(folder)
    plimsoll(folder, "plan", "--snapshot", "uneven.json", "--out", "p.json")
    return folder


@pytest.fixture
def here(planned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder for one test, as the current folder."""
    folder = tmp_path / "here"
    shutil.copytree(planned, folder)
    enter(monkeypatch, folder)
    return folder


def test_help_names_every_command_and_every_exit_code(here: Path) -> None:
    run = in_process("--help")
    assert run.returncode == 0
    message = "status plan verify explain frontier what-if assign schema apply run demo"
    message += " record replay generate elect-leaders"
    for word in (*message.split(), "10 moves proposed", "130"):
        assert word in run.stdout


def test_a_plan_of_a_snapshot_goes_to_stdout(here: Path) -> None:
    run = in_process("plan", "--snapshot", "uneven.json")
    assert run.returncode == 0
    assert run.stdout.startswith("optimal: 5 moves, imbalance 12 -> ")
    assert run.stderr == ""


def test_the_detailed_exit_code_is_10_if_moves_are_proposed(here: Path) -> None:
    ask = ("plan", "--detailed-exitcode", "--snapshot")
    assert in_process(*ask, "uneven.json").returncode == 10
    assert in_process(*ask, "level.json.gz").returncode == 0


def test_equal_snapshots_give_equal_plan_files(here: Path) -> None:
    """One of them was made in another process."""
    run = in_process("plan", "--snapshot", "uneven.json", "--out", "again.json")
    assert run.returncode == 0
    assert (here / "again.json").read_bytes() == (here / "p.json").read_bytes()


def test_json_on_stdout_is_the_plan(here: Path) -> None:
    run = in_process("plan", "--snapshot", "uneven.json", "-o", "json")
    document = json.loads(run.stdout)
    assert document["status"] == "optimal"
    assert len(document["plan"]["moves"]) == 5


def test_a_plan_that_is_still_optimal_is_made_again_from_itself(here: Path) -> None:
    arguments = ("plan", "--snapshot", "uneven.json", "--from-plan", "p.json", "--out", "near.json")
    run = in_process(*arguments)
    assert run.returncode == 0, run.stderr
    assert (here / "near.json").read_bytes() == (here / "p.json").read_bytes()


def test_a_plan_of_another_cluster_is_refused_as_a_start(here: Path) -> None:
    document = json.loads((here / "uneven.json").read_text())
    document["header"]["cluster_id"] = "elsewhere"
    (here / "elsewhere.json").write_text(json.dumps(document))
    run = in_process("plan", "--snapshot", "elsewhere.json", "--from-plan", "p.json")
    assert run.returncode == 2
    assert "--from-plan p.json is a plan for cluster" in run.stderr
    assert "give a plan of the same cluster" in run.stderr


def test_a_file_with_a_snapshot_is_refused_as_a_start(here: Path) -> None:
    run = in_process("plan", "--snapshot", "uneven.json", "--from-plan", "uneven.json")
    assert run.returncode == 2
    assert "uneven.json" in run.stderr


def test_the_kafka_reassignment_json_has_its_rollback(here: Path) -> None:
    in_process("plan", "--snapshot", "uneven.json", "--stock", "stock")
    moves = json.loads((here / "stock" / "reassignment.json").read_text())
    back = json.loads((here / "stock" / "rollback.json").read_text())
    assert moves["version"] == back["version"] == 1
    assert len(moves["partitions"]) == len(back["partitions"]) == 5
    assert {tuple(p["replicas"]) for p in back["partitions"]} == {(2,)}


def test_reassignment_json_is_the_same_under_its_old_option(here: Path) -> None:
    for option, folder in (("--reassignment-json", "new"), ("--stock", "old")):
        run = in_process("plan", "--snapshot", "uneven.json", option, folder)
        assert run.returncode == 0, run.stderr
    for name in ("reassignment.json", "rollback.json", "election.json", "topics.json"):
        new, old = (here / folder / name for folder in ("new", "old"))
        assert new.read_bytes() == old.read_bytes()
    assert "--stock" not in in_process("plan", "--help").stdout


def test_an_empty_cluster_is_balanced(here: Path) -> None:
    run = in_process("plan", "--snapshot", "empty.json")
    assert run.returncode == 0
    assert run.stdout.startswith("already balanced")


@pytest.mark.parametrize("command", ["status", "plan", "run"])
def test_an_unreachable_cluster_is_named(here: Path, command: str) -> None:
    once = ["--once"] if command == "run" else []
    run = in_process(command, *once, "-b", "127.0.0.1:1")
    assert run.returncode == 3, run.stderr
    assert "127.0.0.1:1" in run.stderr
    assert "Traceback" not in run.stderr


def test_apply_to_an_unreachable_cluster_changes_nothing(here: Path) -> None:
    ask = ("apply", "p.json", "-b", "127.0.0.1:1", "--allow-changes", "--yes")
    refused(in_process(*ask), 3, "127.0.0.1:1")
    assert not list((here / "state" / "journal").glob("*.json*"))


@pytest.mark.parametrize(
    ("ask", "way_out"),
    [
        (("run", "--resume"), "add --allow-changes to resume the run\n"),
        (("rollback",), "or --dry-run to see its requests"),
    ],
)
def test_a_run_is_neither_resumed_nor_rolled_back_without_its_cluster(
    here: Path, ask: tuple[str, ...], way_out: str
) -> None:
    here_alone = (*ask, "-b", "127.0.0.1:1")
    refused(in_process(*here_alone), 5, way_out)
    refused(in_process(*here_alone, "--allow-changes"), 3, "127.0.0.1:1")


def test_no_leader_is_elected_without_consent_or_without_its_cluster(here: Path) -> None:
    elect = ("elect-leaders", "-b", "127.0.0.1:1")
    refused(in_process(*elect), 5, "add --allow-changes to elect")
    refused(in_process(*elect, "--allow-changes", "--yes"), 3, "127.0.0.1:1")
    refused(in_process(*elect, "--out", "e.json"), 3, "127.0.0.1:1")
    assert not (here / "e.json").exists()


def test_apply_is_read_only_by_default(here: Path) -> None:
    run = in_process("apply", "p.json", "-b", "127.0.0.1:1")
    refused(run, 5, "add --allow-changes")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_plan_altered_by_a_byte_is_refused(here: Path, share: float) -> None:
    data = bytearray((here / "p.json").read_bytes())
    places = [i for i in range(int(share * len(data)), len(data)) if data[i] in b"12"]
    data[places[0]] ^= 3
    (here / "p.json").write_bytes(data)
    run = in_process("apply", "p.json", "-b", "127.0.0.1:1", "--allow-changes")
    refused(run, 2, "p.json was altered after it was made")


def test_a_snapshot_of_a_newer_schema_is_refused(here: Path) -> None:
    document = json.loads((here / "uneven.json").read_text())
    document["schema_version"] = "2.0"
    (here / "new.json").write_text(json.dumps(document))
    run = in_process("plan", "--snapshot", "new.json")
    refused(run, 2, "new.json has schema version 2.0; this plimsoll reads")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "--snapshot", "gone.json"), "gone.json: No such file"),
        (("plan",), "no cluster is configured; give --bootstrap-server"),
        (("plan", "--snapshot", "uneven.json", "--out", "no/p.json"), "no/p.json"),
        (("plan", "--snapshot", "uneven.json", "-b", "x:1"), "use only one"),
        (("plan", "--loads", "loads.csv"), "--loads needs --from FILE"),
        ((*FROM, "--snapshot", "s.json"), "--snapshot and --from each name a cluster"),
        ((*FROM, "--storage", "sharde"), "unknown kind 'sharde'; did you mean 'shared"),
        ((*FROM, "--topic", "order"), "no topic 'order'; did you mean 'orders'?"),
        ((*FROM, "--goals", "gone.toml"), "cannot read gone.toml: No such file"),
        ((*FROM, "--capacity", "loads.csv"), "loads.csv, line 1: this is not valid JSON"),
        ((*FROM, "--brokers", "loads.csv"), "unknown column 'topic'"),
        (("status", "--capacity", "gone", "-b", "x:1"), "cannot read gone: No such"),
        (("run", "--capacity", "gone", "-b", "x:1"), "cannot read gone: No such file"),
        (("plan", "--from", "loads.csv"), "loads.csv, line 1: "),
        (("schema", "plans"), "there is no schema 'plans'; did you mean 'plan'?"),
        (("verify",), "nothing to verify; name a plan file"),
        (("verify", "uneven.json"), "is not a plimsoll.plan file"),
        (("what-if", "--snapshot", "uneven.json"), "no what-if scenario is given"),
        (("assign", "a b", "-p", "1", "-r", "1"), "'a b' is not a valid topic name"),
        (("explain", "p.json", "--to", "1"), "--to needs a partition"),
        (("frontier", "--snapshot", "gone.json"), "gone.json: No such file"),
        (("apply", "uneven.json", "-b", "x:1"), "is not a plimsoll.plan file"),
        (("elect-leaders", "--from", "gone.json", "-b", "x:1"), "cannot read gone.json: No such"),
        (("elect-leaders", "--from", "loads.csv", "-b", "x:1"), "line 1: this is not valid JSON"),
        (("elect-leaders", "--from", "uneven.json", "-b", "x:1"), "partitions: Input should"),
        (("elect-leaders", "--from", "e", "--topic", "a", "-b", "x:1"), "use only one"),
        (("elect-leaders", "--allow-changes"), "no cluster is configured; give --bootstrap-server"),
        (("run", "--auto", "-b", "x:1"), "only with every limit set"),
        (("run", "--auto", "--limits", "brave", "-b", "x:1"), "limits named 'brave'"),
        (("run", "--auto", "--limits", "", "-b", "x:1"), "no limits named ''"),
        (("status", "-b", "nonsense"), "nonsense"),
        (("-b", "x:1"), "the screen needs a terminal"),
    ],
)
def test_unusable_arguments_are_named(here: Path, arguments: tuple[str, ...], message: str) -> None:
    refused(in_process(*arguments), 2, message)


def test_an_excluded_topic_cannot_be_the_only_one_to_move(here: Path) -> None:
    (here / "goals.toml").write_text('excluded_topics = ["ord.*"]\n')
    run = in_process(*FROM, "--goals", "goals.toml", "--topic", "orders")
    refused(run, 2, "the goals exclude topic orders")


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_schema_is_printed_as_published(here: Path, name: str) -> None:
    assert in_process("schema", name).stdout == (SCHEMAS / f"{name}.json").read_text()


def test_auto_needs_consent_to_change_the_cluster(here: Path) -> None:
    run = in_process("run", "--auto", "--limits", "eager", "-b", "127.0.0.1:1")
    refused(run, 5, "add --allow-changes")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (
            "[limits.eager]\nreplica_moves = 9\nleader_changes = 9\nbytes = 9\n"
            "partitions_per_topic = 9\nmoves_in_flight = 9\n"
            "min_gain = 0.1\npause = 0\nconfirm = 0\n",
            "it has no bounds",
        ),
        (
            "[limits.eager]\nreplica_moves = 9\nleader_changes = 0\nbytes = 9\n"
            "partitions_per_topic = 9\nmoves_in_flight = 9\neffort = 'quick'\n"
            "min_gain = 0.1\npause = 60\nconfirm = 0\n",
            "it can never act",
        ),
    ],
)
def test_auto_does_not_start_with_a_policy_without_bounds_or_use(
    here: Path, settings: str, fault: str
) -> None:
    (here / "plimsoll.toml").write_text(settings)
    arguments = ("--limits", "eager", "--allow-changes", "-b", "127.0.0.1:1")
    run = in_process("run", "--auto", *arguments, "--config", "./plimsoll.toml")
    refused(run, 2, f"--auto does not start with the limits eager: {fault}")


def test_an_unknown_key_is_named_with_file_line_and_the_nearest(here: Path) -> None:
    (here / "plimsoll.toml").write_text("\nwindow_sec = 3\n")
    run = in_process("plan", "--snapshot", "uneven.json")
    refused(run, 2, "plimsoll.toml, line 2: unknown key 'window_sec'; did you mean")


@pytest.mark.parametrize("command", ["plan", "status", "run"])
def test_two_sources_of_capacities_are_named(here: Path, command: str) -> None:
    (here / "own.toml").write_text("[capacities.default]\ncpu = 4\n")
    given = ("-b", "127.0.0.1:1", "--capacity", "c.json", "--config", "own.toml")
    run = in_process(command, *given)
    refused(run, 2, "both c.json and [capacities] of the settings give broker")


def test_a_capacity_of_the_wrong_unit_is_named(here: Path) -> None:
    (here / "plimsoll.toml").write_text('[capacities.brokers.3]\ndisk = "1TB/s"\n')
    run = in_process("plan", "--snapshot", "uneven.json")
    refused(run, 2, "capacities.brokers.3.disk: '1TB/s' is not a size; use")


def test_the_demo_without_a_network_names_the_remedy(here: Path) -> None:
    dead = "http://127.0.0.1:1"
    run = plimsoll(here, "demo", "--headless", https_proxy=dead, HTTPS_PROXY=dead)
    refused(run, 3, "PLIMSOLL_CACHE_DIR")


@pytest.mark.kafka
def test_the_demo_on_a_taken_port_names_it(planned: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        there = {"PLIMSOLL_CACHE_DIR": str(default_cache_dir())}
        run = plimsoll(planned, "demo", "--headless", "--port", str(port), **there)
    assert run.returncode == 2, run.stderr
    assert str(port) in run.stderr
    assert "Traceback" not in run.stderr


def test_an_invalid_spark_master_is_rejected_with_the_valid_ones(here: Path) -> None:
    run = in_process("status", "--spark-master", "sc://a:15002")
    assert run.returncode == 2
    assert "is not a Spark master; use local[*], spark://HOST:PORT, yarn" in run.stderr


def test_a_read_only_cleanup_names_an_option_that_exists() -> None:
    result = in_process("cleanup", "-b", "127.0.0.1:1")
    assert result.returncode == Exit.REFUSED
    assert "--allow-changes" in result.stderr
    assert "--dry-run" not in result.stderr


def with_stdout(where: str, folder: Path, command: str) -> tuple[int, str]:
    """Exit code and stderr of a command whose stdout a shell redirects."""
    script = f"exec '{PLIMSOLL}' {command} {where}"
    run = subprocess.run(
        ["/bin/sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=RUN_S
    )
    return run.returncode, run.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
@pytest.mark.parametrize("command", ["schema plan", "config show", "--help"])
def test_a_full_disk_under_stdout_is_named(here: Path, command: str) -> None:
    code, output = with_stdout("> /dev/full", here, command)
    assert code == 2
    assert output == "plimsoll: cannot write to stdout: No space left on device\n"


@pytest.mark.parametrize("command", ["schema plan", "--help"])
def test_a_closed_stdout_does_no_harm(here: Path, command: str) -> None:
    assert with_stdout(">&-", here, command) == (0, "")
