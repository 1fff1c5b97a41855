"""No command prints terminal control sequences, whatever their origin."""

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import Progress

from control.cli import main as cli
from control.cli.output import drawn, json_of, safe_streams
from model.files import canonical
from model.snapshot.file import as_document
from model.snapshot.snapshot import Snapshot
from tests.support import cli_offline
from tests.support.cluster_files import write_cluster_files
from tests.support.control.loop_parts import MB, cluster
from tests.support.hostile_names import HOSTILE, SURROGATE, unprintable

LINE = HOSTILE["new line"]
NAMES = pytest.mark.parametrize(
    "name", ["".join(n for n in HOSTILE.values() if n != LINE), LINE], ids=["all kinds", "new line"]
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cli_offline.enter(monkeypatch, tmp_path)
    return tmp_path


class Commands:
    """Commands through `main`, in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr, with all output checked."""
        self._monkeypatch.setattr(sys, "argv", ["plimsoll", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = self._capsys.readouterr()
        assert not unprintable(out), arguments
        assert not unprintable(err), arguments
        assert "internal error" not in err, err
        lines = [*out.splitlines(), *err.splitlines()]
        assert not [n for n in lines if n.startswith("plimsoll: all is well")], err
        return int(ended.value.code or 0), out, err


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(monkeypatch, capsys)


def _named(name: str) -> Snapshot:
    """A cluster with this name, and racks of this name."""
    result = cluster([2] * 6, [MB] * 6)
    brokers = tuple(b.model_copy(update={"rack": f"{name}{b.rack}"}) for b in result.header.brokers)
    update = {"cluster_id": name, "brokers": brokers, "slots": ()}
    return Snapshot(result.header.model_copy(update=update), result.partitions)


OF_A_SNAPSHOT = (
    ("plan", "--snapshot", "s.json"),
    ("explain", "--snapshot", "s.json", "--broker", "2"),
    ("explain", "--snapshot", "s.json", "orders-0", "--to", "3"),
    ("frontier", "--snapshot", "s.json", "--svg", "f.svg"),
    ("what-if", "--snapshot", "s.json", "--drain", "2"),
    ("what-if", "--snapshot", "s.json", "--rack-fails", "a"),
    ("assign", "--snapshot", "s.json", "--partitions", "3", "--replication-factor", "1"),
)


@NAMES
def test_names_in_a_snapshot_reach_no_terminal_unescaped(
    commands: Commands, here: Path, name: str
) -> None:
    (here / "s.json").write_bytes(canonical(as_document(_named(name))))
    code, _, _ = commands.run("plan", "--snapshot", "s.json", "--out", "p.json")
    assert code == 0
    code, out, _ = commands.run("plan", "--snapshot", "s.json", "-o", "json")
    assert json.loads(out)["plan"]["cluster_id"] == name, "JSON's escapes read as it was"
    for arguments in OF_A_SNAPSHOT:
        commands.run(*arguments)
        commands.run(*arguments, "-o", "json")
    commands.run("verify", "p.json", "--snapshot", "s.json")
    commands.run("apply", "p.json", "-b", "127.0.0.1:1")
    drawn = (here / "f.svg").read_text("utf-8") if (here / "f.svg").exists() else ""
    assert not unprintable(drawn)


ANYWHERE = (
    ("plan", "--snapshot"),
    ("plan", "--from"),
    ("plan", "--from", "describe.txt", "--loads"),
    ("plan", "--from", "describe.txt", "--brokers"),
    ("plan", "--from", "describe.txt", "--capacity"),
    ("plan", "--from", "describe.txt", "--goals"),
    ("plan", "--from", "describe.txt", "--out"),
    ("verify",),
    ("apply",),
    ("replay",),
    ("elect-leaders", "-b", "127.0.0.1:1", "--from"),
    ("status", "-b", "127.0.0.1:1", "--command-config"),
    ("status", "-b", "127.0.0.1:1", "--config"),
    ("status", "--profile"),
    ("status", "-b"),
    ("info", "-b"),
    ("run", "-b", "127.0.0.1:1", "--auto", "--limits"),
    ("rollback", "-b", "127.0.0.1:1"),
    ("explain", "--snapshot", "s.json"),
    ("assign", "--snapshot", "s.json", "--topic"),
    ("schema",),
    ("serve", "--"),
    ("--play",),
    ("--theme",),
    ("generate", "--out"),
    ("no-such-command",),
    ("--no-such-option",),
)


@NAMES
def test_arguments_reach_no_terminal_unescaped(commands: Commands, here: Path, name: str) -> None:
    write_cluster_files(here)
    (here / "s.json").write_bytes(canonical(as_document(_named("tame"))))
    for arguments in ANYWHERE:
        commands.run(*arguments, name.replace("\0", ""))
    commands.run(name)


def _files(name: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Files with the name in an invalid place, and commands that read them."""
    plan = ("plan", "--from", "describe.txt")
    text = json.dumps(name)
    return {
        "a.csv": (f'topic,partition,net_in\n"{name}",x,1\n', (*plan, "--loads")),
        "b.csv": (f'topic,partition,"{name}"\n', (*plan, "--loads")),
        "c.csv": (f'id,rack,state\n1,a,"{name}"\n', (*plan, "--brokers")),
        "d.json": (f'[{{"id":1,"rack":{text},{text}:1}}]', (*plan, "--brokers")),
        "e.json": (f'{{"brokerCapacities":[{{{text}:1}}]}}', (*plan, "--capacity")),
        "f.toml": (f'{text} = "x"\n', (*plan, "--goals")),
        "g.json": (f'{{"kind":{text},"schema_version":{text}}}', ("verify",)),
        "h.jsonl": (f'{{"kind":{text},"schema_version":"1.0"}}\n', ("--play",)),
        "i.toml": (f"{text} = 1\n", ("status", "--config")),
        "j.toml": (f'throttle = "{name}"\n', ("status", "--config")),
        "k.properties": (
            f"security.protocol={name}\n",
            ("status", "-b", "127.0.0.1:1", "--command-config"),
        ),
        "l.txt": (f"\tTopic: {name}\tPartition: x\n", ("plan", "--from")),
        "m.json": (f'{{"version":1,"partitions":[{{{text}:1}}]}}', ("verify",)),
    }


@NAMES
def test_content_of_files_reaches_no_terminal_unescaped(
    commands: Commands, here: Path, name: str
) -> None:
    write_cluster_files(here)
    for file, (text, arguments) in _files(name).items():
        (here / file).write_text(text, "utf-8", newline="")
        code, _, err = commands.run(*arguments, file)
        assert (code, bool(err)) == (2, True), (file, err)


def test_half_a_character_is_rejected_with_the_files_name(commands: Commands, here: Path) -> None:
    write_cluster_files(here)
    for file, (text, arguments) in _files("half").items():
        if file.endswith(".json"):
            (here / file).write_text(text.replace("half", json.dumps(SURROGATE)[1:-1]))
            code, _, err = commands.run(*arguments, file)
            assert code == 2, err
            assert file in err


def test_an_error_is_printed_on_one_line(commands: Commands) -> None:
    _, _, err = commands.run("verify", "a\nplimsoll: all is well")
    assert len(err.splitlines()) == 1


@given(st.text(st.characters(codec="utf-8")))
def test_json_is_printable_and_reads_back(text: str) -> None:
    made = json_of({"name": text})
    assert made.isprintable()
    assert json.loads(made)["name"] == text


def test_a_progress_bar_keeps_its_colours_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with safe_streams():
        console = Console(stderr=True, force_terminal=True, width=60)
        with Progress(console=console) as progress:
            progress.add_task("\x1b]0;owned\afetching", total=1)
    drawn = terminal.getvalue()
    assert "\x1b[" in drawn
    assert "fetching" in drawn
    assert "\x1b]" not in drawn


def test_a_redrawn_line_returns_to_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with safe_streams():
        drawn(sys.stderr).write("\ra\x1b]0;owned\a")
        sys.stderr.write("\rb")
    drawn(sys.stderr).write("\rc")
    assert terminal.getvalue() == "\ra\\x1b]0;owned\\x07\\rb\rc"
