"""`plimsoll service --fleet` and `fleet` as processes, on simulated clusters."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from control.cli.commands.fleet import show
from control.cli.control_client import ControlClient
from control.cli.fleet_source import FleetSource
from control.cli.output_types import FleetAnswer
from control.render.text import json_text
from control.settings.fleet_file import read_fleet
from model.errors import ConfigError
from tests.control.cli.test_serving import NOWHERE, WAIT_S, Service
from tests.control.cli.test_simulated_service import SETTINGS
from tests.control.cli.test_standby import SHARED
from tests.support.cli_offline import PLIMSOLL, enter, in_process, plimsoll, refused
from tests.support.executor.s3_server import BUCKET, s3_server
from tests.support.paths import ROOT
from tests.support.tui.fleets import balanced
from tests.support.tui.terminals import read_until, started_in_terminal

SIMULATED = (sys.executable, "-P", "-m", "tests.support.control.simulated_fleet")
AUTO = ("--auto", "--limits", "test", "--allow-changes", "--throttle", "100MB")
TROUBLE = {
    "raises": "boom",
    "broken": "broken.toml is not valid TOML",
    "pipe": "it is a named pipe",
}
HEAD = 'state_dir = "fleet"\n[service]\nlisten = "127.0.0.1:0"\napi = true\n'


def fleet_file(
    folder: Path, servers: Mapping[str, str], *, more: str = "", of_each: str = ""
) -> Path:
    """The file of a fleet, and those of its clusters, each with a state folder of its own.

    more: at its end. of_each: at the end of each cluster's.
    """
    lines = [HEAD]
    for name, server in servers.items():
        (folder / f"{name}.toml").write_text(
            f'bootstrap_server = "{server}"\nstate_dir = "{folder / name}"\n'
            + SETTINGS.format(trigger="act")
            + of_each
        )
        lines.append(f'[clusters.{name}]\nconfig = "{name}.toml"\n')
    path = folder / "fleet.toml"
    path.write_text("".join(lines) + more)
    return path


def fleet_service(folder: Path, path: Path, *options: str) -> Service:
    """A service that is not started yet."""
    log = ("--log-file", str(folder / "log.jsonl"))
    environment = {"PYTHONPATH": str(ROOT)}
    command = ("--fleet", str(path), *log, *options)
    return Service(folder, command, environment, SIMULATED, unset=("PLIMSOLL_STATE_DIR",))


def has_state(name: str, state: str, rows: Mapping[str, Any]) -> bool:
    return bool(rows[name]["service"] == state)


def logged(folder: Path, event: str) -> set[str]:
    """The clusters in whose log lines an event is."""
    text = (folder / "log.jsonl").read_text()
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return {line["cluster"] for line in lines if line["event"] == event}


def until(folder: Path, accepts: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    """The rows of the table by cluster, once they are accepted."""
    client = ControlClient(folder / "fleet")
    deadline = time.monotonic() + WAIT_S
    while True:
        found = json.loads(json_text(client.get("/control/v1/fleet", FleetAnswer)))
        rows = {row["name"]: row for row in found["clusters"]}
        if accepts(rows):
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.2)


def test_trouble_in_some_clusters_neither_delays_nor_stops_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    servers = {
        "hangs": "hangs:1",
        "raises": "raises:1",
        "east": "east:1",
        "twin": "east:2",
        "west": "west:1",
    }
    more = '[clusters.broken]\nconfig = "broken.toml"\n[clusters.pipe]\nconfig = "pipe.toml"\n'
    path = fleet_file(tmp_path, servers, more=more)
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "broken.toml").write_text("window_s = [\n")
    with fleet_service(tmp_path, path, *AUTO) as running:
        running.wait_for("/metrics\n")
        for name in TROUBLE:
            rows = until(tmp_path, partial(has_state, name, "failed"))
            assert TROUBLE[name] in rows[name]["message"]
        # Either may have been first.
        rows = until(
            tmp_path,
            lambda found: found["west"]["run"] and (found["east"]["run"] or found["twin"]["run"]),
        )
        kept, other = ("east", "twin") if rows["east"]["run"] else ("twin", "east")
        assert rows["hangs"]["service"] in ("starting", "hanging")
        assert rows["west"]["cluster_id"] == "west"
        assert rows["west"]["worst_broker"]["deviation"]
        assert rows["west"]["data_age_s"] < WAIT_S
        message = until(tmp_path, partial(has_state, other, "failed"))[other]["message"]
        assert f"{other} is the same cluster as {kept}, which keeps it" in message
        status, words = running.get("/livez")
        # After a minute, it names those that hang.
        assert (status, words.startswith("ok")) == (200, True)
        status, words = running.get("/readyz")
        assert (status, "broken: failed" in words) == (200, True)
        assert json.loads(running.get("/api/v1/fleet")[1])["pid"] == running.process.pid
        assert running.get("/clusters/west/readyz") == (200, "ok\n")
        assert running.get("/clusters/broken/readyz")[0] == 503
        assert json.loads(running.get("/clusters/west/api/v1/status")[1])["cluster_id"] == "west"
        assert running.get("/clusters/nobody/readyz")[0] == 404
        assert json.loads(running.get("/clusters/west/api/v1/tasks")[1]) == {"tasks": []}
        assert running.get("/clusters/west/api/v1/simulate")[0] == 404
        assert running.get("/clusters/broken/api/v1/tasks")[0] == 503
        assert running.counts("plimsoll_run_active")["west",] == 1
        # Each cluster has its own socket, pause, journal and audit log.
        until(tmp_path, lambda _rows: logged(tmp_path, "run.move") == {"west", kept})
        enter(monkeypatch, tmp_path)
        monkeypatch.delenv("PLIMSOLL_STATE_DIR")
        ctl = in_process("ctl", "pause", "--fleet", str(path), "--cluster", "west")
        assert ctl.returncode == 0, ctl.stderr
        paused = until(tmp_path, lambda found: found["west"]["paused"])
        assert not paused[kept]["paused"]
        # The screen of the fleet opens it in the words of its table, without its partitions.
        answer = ControlClient(tmp_path / "fleet").get("/control/v1/fleet", FleetAnswer)
        (row,) = (row for row in answer.clusters if row.name == "west")
        opened = FleetSource(path, tmp_path / "fleet").detail(row).brokers
        assert "bytes in" in opened.splitlines()[0]
        assert "net_in" not in opened
        # Also with a file that was broken since.
        kept_text = (tmp_path / "west.toml").read_text()
        (tmp_path / "west.toml").write_text("window_s = [\n")
        ctl = in_process("ctl", "status", "--fleet", str(path), "--cluster", "west")
        assert (ctl.returncode, "paused" in ctl.stdout) == (0, True), ctl.stderr
        assert f"warning: {tmp_path / 'west.toml'}" in ctl.stderr
        assert f"asking the service that runs in {tmp_path / 'west'}" in ctl.stderr
        (tmp_path / "west.toml").write_text(kept_text)
        assert (tmp_path / "west" / "audit.jsonl").exists()
        assert not (tmp_path / kept / "audit.jsonl").exists()
        table = plimsoll(tmp_path, "fleet", str(path))
        assert table.returncode == 0, table.stderr
        assert [line.split()[0] for line in table.stdout.splitlines()[1:]] == [*rows]
        # A file that is mended is used.
        (tmp_path / "broken.toml").write_text(
            f'bootstrap_server = "hangs:2"\nstate_dir = "{tmp_path / "broken"}"\n'
            + SETTINGS.format(trigger="act")
        )
        running.signalled(signal.SIGHUP)
        until(tmp_path, partial(has_state, "broken", "starting"))
        assert logged(tmp_path, "cluster.failed") == {*TROUBLE, other}


def stands_by(rows: Mapping[str, Any]) -> bool:
    return all(row["phase"] == "standing by" for row in rows.values())


def runs(rows: Mapping[str, Any]) -> bool:
    return all(row["run"] for row in rows.values())


@pytest.mark.soak
def test_the_same_fleet_on_another_host_takes_all_clusters_over(tmp_path: Path) -> None:
    with s3_server() as endpoint:
        more = SHARED.format(endpoint=endpoint, bucket=BUCKET, prefix="fleet/", lease="")
        files = []
        for name in "ab":
            folder = tmp_path / name
            folder.mkdir()
            servers = {"east": "east:1", "west": "west:1"}
            files.append((folder, fleet_file(folder, servers, of_each=more)))
        (a, _), (b, _) = files
        first, second = (fleet_service(*of, *AUTO) for of in files)
        with first:
            first.wait_for("/metrics\n")
            until(a, runs)
            with second:
                second.wait_for("/metrics\n")
                until(b, stands_by)
                first.process.kill()
                until(b, runs)
                assert second.counts("plimsoll_leads") == {("east",): 1, ("west",): 1}


def screen_shows_and_opens_a_cluster(folder: Path, path: Path) -> None:
    """The screen in a terminal that is high enough for all of a cluster, until it is left."""
    unset = ("PLIMSOLL_STATE_DIR", "NO_COLOR")
    known = {k: v for k, v in os.environ.items() if k not in unset}
    size = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "80"}
    command = [str(PLIMSOLL), "fleet", str(path), "--ascii"]
    with started_in_terminal(command, cwd=folder, env=known | size) as (child, terminal):
        drawn = read_until(terminal, b"2 plans to decide")
        assert drawn.isascii()
        os.write(terminal, b"\r")
        assert b"Brokers" in read_until(terminal, b"rack-2")
        os.write(terminal, b"q")
        assert child.wait(WAIT_S) == 0


def test_a_clone_updated_without_its_installation_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_named: ())
    found = read_fleet(fleet_file(tmp_path, {"east": "east:1"}))
    with pytest.raises(ConfigError, match="run make setup in the clone"):
        show(found, FleetSource(tmp_path, tmp_path), balanced(), "fleet.toml")


@pytest.mark.slow
def test_all_clusters_end_with_the_service(tmp_path: Path) -> None:
    path = fleet_file(tmp_path, {"east": "east:1", "west": "west:1"})
    with fleet_service(tmp_path, path) as running:
        running.wait_for("west: plan ready")
        until(tmp_path, lambda rows: all(row["decision"] == "offer" for row in rows.values()))
        screen_shows_and_opens_a_cluster(tmp_path, path)
        running.signalled(signal.SIGHUP)
        for name in ("east", "west"):
            running.wait_for(f"plimsoll: {name}: settings read again")
        running.signalled(signal.SIGTERM)
        assert running.process.wait(WAIT_S) == 0
    assert "Traceback" not in running.log.read_text()
    run = plimsoll(tmp_path, "fleet", str(path))
    refused(run, 3, "no plimsoll service runs with the state folder")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("[clusters]\n", 2, "the fleet has no cluster"),
        ("", 2, "the fleet has no cluster; add a table [clusters.NAME]"),
        ('[clusters.a]\nconfig = "a.toml"\n[clusters.a]\n', 2, "is not valid TOML"),
        ('[clusters.a]\nconfig = "a.toml"\nlimit = "x"\n', 2, "did you mean 'limits'"),
        ('[clusters."a/b"]\nconfig = "a.toml"\n', 2, "a/b: the name of a cluster begins with"),
        ('[clusters.""]\nconfig = "a.toml"\n', 2, "the name of a cluster begins with"),
        ("clusters = 3\n", 2, "fleet.toml, line 2: clusters: Input should be a table"),
        ('[clusters.a]\nconfig = "a"\n[clusters.A]\nconfig = "b"\n', 2, "differ by case alone"),
        (
            '[clusters.a]\nconfig = "a.toml"\n[clusters.b]\nconfig = "a.toml"\n',
            2,
            "a and b share the state folder",
        ),
        (
            '[clusters.a]\nconfig = "a.toml"\n[clusters.b]\nconfig = "b.toml"\n',
            2,
            "a and b are the same cluster, 127.0.0.1:1",
        ),
        ('[clusters.a]\nconfig = "a.toml"\n[service]\nstandby = true\n', 2, "toml: set standby in"),
    ],
)
def test_a_fleet_that_cannot_be_served_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, code: int, message: str
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.toml").write_text(
            f'bootstrap_server = "{NOWHERE}"\nstate_dir = "{tmp_path / name}"\n'
        )
    head = 'state_dir = "fleet"\n'
    (tmp_path / "fleet.toml").write_text(head + text)
    enter(monkeypatch, tmp_path)
    monkeypatch.delenv("PLIMSOLL_STATE_DIR")
    refused(in_process("service", "--fleet", "fleet.toml"), code, message)


def test_a_variable_that_holds_for_all_clusters_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = fleet_file(tmp_path, {"east": "east:1", "west": "west:1"})
    enter(monkeypatch, tmp_path)
    refused(in_process("service", "--fleet", str(path)), 2, "; unset PLIMSOLL_STATE_DIR")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("-b", NOWHERE), 2, "--fleet names the clusters: omit --bootstrap-server"),
        (("--auto", "--limits", "eager"), 5, "--auto changes the clusters; add --allow-changes"),
        (("--resume",), 5, "--resume changes the clusters"),
    ],
)
def test_options_that_a_fleet_cannot_have_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    path = fleet_file(tmp_path, {"east": "east:1"})
    enter(monkeypatch, tmp_path)
    refused(in_process("service", "--fleet", str(path), *options), code, message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cluster", "east"), "--cluster needs --fleet FILE"),
        (("--fleet", "fleet.toml"), "--fleet needs --cluster NAME; the clusters are east, west"),
        (("--fleet", "fleet.toml", "--cluster", "est"), "fleet.toml has no 'est'; the clusters"),
        (("--fleet", "fleet.toml", "--cluster", "east", "--config", "a"), "omit --config"),
        (("--fleet", "none.toml", "--cluster", "east"), "none.toml"),
    ],
)
def test_a_cluster_that_a_fleet_does_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    fleet_file(tmp_path, {"east": "east:1", "west": "west:1"})
    enter(monkeypatch, tmp_path)
    monkeypatch.delenv("PLIMSOLL_STATE_DIR")
    refused(in_process("ctl", "status", *options), 2, message)
    run = in_process("ctl", "status", "--fleet", "fleet.toml", "--cluster", "west")
    refused(run, 3, f"no plimsoll service runs with the state folder {tmp_path / 'west'}")
    (tmp_path / "west.toml").write_text("window_s = [\n")
    run = in_process("ctl", "status", "--fleet", "fleet.toml", "--cluster", "west")
    refused(run, 2, "west.toml")
