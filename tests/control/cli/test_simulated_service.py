"""`plimsoll ctl` and `service` as processes, on a simulated cluster: steer, kill, resume."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control.cli.control_client import ControlClient
from control.cli.output_types import CtlStatusAnswer
from control.render.text import json_text
from model.log_events import LogEvent
from tests.control.cli.test_serving import NOWHERE, WAIT_S, Service
from tests.support.cli_offline import plimsoll, refused
from tests.support.paths import ROOT

SETTINGS = """
[solve]
work = 0.2
[limits.test]
confirm = 0
pause = 1
replica_moves = 1000
leader_changes = 1000
moves_in_flight = 3
bytes = "1TiB"
partitions_per_topic = 1000
min_gain = 0
[triggers]
uneven_load = "{trigger}"
over_capacity = "{trigger}"
"""
AUTO = ("-b", NOWHERE, "--auto", "--limits", "test", "--allow-changes", "--throttle", "100MB")
SIMULATED = (sys.executable, "-P", "-m", "tests.support.control.simulated_service")


def service(folder: Path, *options: str, trigger: str = "ask") -> Service:
    """A service on a simulated cluster that is far out of balance; its runs take minutes."""
    (folder / "own.toml").write_text(SETTINGS.format(trigger=trigger))
    environment = {"PLIMSOLL_CONFIG": str(folder / "own.toml"), "PYTHONPATH": str(ROOT)}
    log = ("--log-file", str(folder / "log.jsonl"))
    return Service(folder, (*AUTO, *log, *options), environment, SIMULATED)


def ctl(folder: Path, *arguments: str, code: int = 0) -> Any:
    """The answer of a command."""
    run = plimsoll(folder, "ctl", *arguments, "-o", "json")
    assert run.returncode == code, run.stderr
    return json.loads(run.stdout) if run.stdout else run.stderr


def until(folder: Path, accepts: Callable[[Any], bool]) -> Any:
    """The status of the service, once it is accepted."""
    client = ControlClient(folder / "state")
    deadline = time.monotonic() + WAIT_S
    while True:
        found = json.loads(json_text(client.get("/control/v1/status", CtlStatusAnswer)))
        if accepts(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def moving(status: Any) -> bool:
    return status["run"] is not None and status["run"]["in_flight"] > 0


def events(folder: Path) -> list[str]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["event"] for line in lines]


def journalled(folder: Path) -> dict[str, list[str]]:
    """Kinds of the records of each run."""
    return {
        path.stem: [json.loads(line)["event"] for line in path.read_text().splitlines()]
        for path in (folder / "state" / "journal").glob("*.jsonl")
    }


@pytest.mark.slow
def test_a_person_steers_a_run_and_each_action_is_in_the_audit_log(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        running.wait_for("/metrics\n")
        plan = until(tmp_path, lambda s: bool(s["waiting"]))["waiting"][0]["plan_hash"]
        assert ctl(tmp_path, "approve", plan[:12], "--by", "eve")["plan_hash"] == plan
        run = until(tmp_path, moving)["run"]
        assert run["plan_hash"] == plan
        assert ctl(tmp_path, "pause", "--by", "eve")["run_id"] == run["run_id"]
        paused = until(tmp_path, lambda s: s["run"]["state"] == "paused")
        assert paused["paused"]["by"] == "eve"
        assert ctl(tmp_path, "resume", "--by", "bob")["plan_hash"] == plan
        assert "120 MB/s" in ctl(tmp_path, "throttle", "120MB")["message"]
        assert "too low" in ctl(tmp_path, "throttle", "1kB", code=5)
        assert ctl(tmp_path, "stop")["run_id"] == run["run_id"]
        assert ctl(tmp_path, "abort")["run_id"] == run["run_id"]
        ended = until(tmp_path, lambda s: s["run"] is None)
        # Nothing starts until someone resumes.
        assert ended["paused"] is not None
        running.signalled(signal.SIGTERM)
        running.process.wait(WAIT_S)
    # The log needs no service.
    actions = ctl(tmp_path, "audit", "--last", "50")["actions"]
    expected = [
        ("approve", "eve", "done"),
        ("pause", "eve", "done"),
        ("resume", "bob", "done"),
        ("throttle", actions[3]["by"], "done"),
        ("throttle", actions[3]["by"], "refused"),
        ("stop", actions[3]["by"], "done"),
        ("abort", actions[3]["by"], "done"),
        ("end the service", "", "done"),
    ]
    assert [(a["action"], a["by"], a["outcome"]) for a in actions] == expected
    assert {a["plan_hash"] for a in actions[:-1]} == {plan}
    assert all(a["pid"] for a in actions[:-1])
    assert plimsoll(tmp_path, "ctl", "audit", "--last", "1").stdout.count("\n") == 1
    # The journal names who approved, and that run is the only one.
    (records,) = journalled(tmp_path).values()
    assert records[-1] == "ended"
    assert set(events(tmp_path)) <= {event.value for event in LogEvent}
    assert {"operator.action", "plan.waiting", "run.state", "run.move"} <= set(events(tmp_path))
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    of_run = [line for line in lines if line["logger"] == "plimsoll.control"]
    of_run = [line for line in of_run if line["event"] in ("run.state", "run.move", "run.steered")]
    assert {line["plan_hash"] for line in of_run} == {plan[:12]}


@pytest.mark.slow
def test_a_killed_service_is_replaced_and_resumes_its_run_with_that_option_alone(
    tmp_path: Path,
) -> None:
    with service(tmp_path, trigger="act") as running:
        running.wait_for("/metrics\n")
        run = until(tmp_path, moving)["run"]
        # A second one has no chance while this one lives.
        second = plimsoll(
            tmp_path, "service", "-b", NOWHERE, PLIMSOLL_SERVICE__LISTEN="127.0.0.1:0"
        )
        refused(second, 2, "another plimsoll service runs with the state folder")
        running.process.kill()
        running.process.wait()
    assert "has been killed; start it again" in ctl(tmp_path, "status", code=3)
    (records,) = journalled(tmp_path).values()
    assert records[-1] != "ended"

    # Without the option, it names the run and what to do; and asks before a plan of its own.
    with service(tmp_path, trigger="ask") as running:
        running.wait_for("/metrics\n")
        found = until(tmp_path, lambda s: s["interrupted"] is not None)
        assert found["interrupted"]["run_id"] == run["run_id"]
        shown = plimsoll(tmp_path, "ctl", "status").stdout
        assert f"run {run['run_id']} was interrupted" in shown
        assert "plimsoll service --resume continues it" in shown
        running.process.kill()
        running.process.wait()
    assert "run.interrupted" in events(tmp_path)
    assert set(journalled(tmp_path)) == {run["run_id"]}

    with service(tmp_path, "--resume", trigger="ask") as running:
        running.wait_for("/metrics\n")
        resumed = until(tmp_path, moving)
        assert resumed["run"]["run_id"] == run["run_id"]
        assert resumed["run"]["plan_hash"] == run["plan_hash"]
        assert resumed["interrupted"] is None
        ctl(tmp_path, "abort")
        until(tmp_path, lambda s: s["run"] is None)
        running.signalled(signal.SIGTERM)
        running.process.wait(WAIT_S)
    found = journalled(tmp_path)
    assert set(found) == {run["run_id"]}
    assert "resumed" in found[run["run_id"]]


@pytest.mark.slow
def test_a_pause_outlasts_a_kill_and_a_rejected_plan_a_reload(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        running.wait_for("/metrics\n")
        plan = until(tmp_path, lambda s: bool(s["waiting"]))["waiting"][0]["plan_hash"]
        assert ctl(tmp_path, "reject", "--by", "eve")["plan_hash"] == plan
        until(tmp_path, lambda s: not s["waiting"])
        assert "was rejected by eve already" in ctl(tmp_path, "approve", plan, code=5)
        ctl(tmp_path, "pause")
        running.process.kill()
        running.process.wait()
    with service(tmp_path, trigger="act") as running:
        running.wait_for("/metrics\n")
        until(tmp_path, lambda s: "paused by" in s["message"])
        assert running.counts("plimsoll_paused") == {(): 1}
        assert journalled(tmp_path) == {}
        running.signalled(signal.SIGHUP)
        running.wait_for("settings read again")
        until(tmp_path, lambda s: "paused by" in s["message"])
        assert ctl(tmp_path, "resume")["message"] == "runs start again"
        until(tmp_path, moving)
        # A run that is paused is in progress, however long the rest takes.
        ctl(tmp_path, "pause")
        assert ctl(tmp_path, "why", "--last", "5")["decisions"]
        running.signalled(signal.SIGTERM)
        running.wait_for("plimsoll: stopping; waiting for in-flight moves (Ctrl-C")


def test_a_reload_lets_the_plan_wait_that_waits_for_a_person(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        running.wait_for("/metrics\n")
        (asked,) = until(tmp_path, lambda s: bool(s["waiting"]))["waiting"]
        before = running.counts("plimsoll_settings_timestamp_seconds")
        running.signalled(signal.SIGHUP)
        until(tmp_path, lambda _: running.counts("plimsoll_settings_timestamp_seconds") != before)
        # Until the new loop has decided about it, too.
        log = tmp_path / "log.jsonl"
        until(tmp_path, lambda _: log.read_text().count('"plan ready: ') == 2)
        (found,) = until(tmp_path, lambda _: True)["waiting"]
        assert found["plan_hash"] == asked["plan_hash"]
        ctl(tmp_path, "approve", asked["plan_hash"])
        assert until(tmp_path, moving)["run"]["plan_hash"] == asked["plan_hash"]
    assert "plan.withdrawn" not in events(tmp_path)


@pytest.mark.slow
def test_a_reload_during_a_pause_keeps_the_request_to_resume_a_run(tmp_path: Path) -> None:
    with service(tmp_path, trigger="act") as running:
        running.wait_for("/metrics\n")
        run = until(tmp_path, moving)["run"]
        ctl(tmp_path, "pause")
        running.process.kill()
        running.process.wait()
    with service(tmp_path, "--resume", trigger="ask") as running:
        running.wait_for("/metrics\n")
        until(tmp_path, lambda s: s["paused"] and s["interrupted"])
        before = running.counts("plimsoll_settings_timestamp_seconds")
        running.signalled(signal.SIGHUP)
        # Until the new loop is the one that is asked.
        until(tmp_path, lambda _: running.counts("plimsoll_settings_timestamp_seconds") != before)
        until(tmp_path, lambda s: s["interrupted"])
        ctl(tmp_path, "resume")
        assert until(tmp_path, moving)["run"]["run_id"] == run["run_id"]
        ctl(tmp_path, "abort")
        until(tmp_path, lambda s: s["run"] is None)
    assert "run.interrupted" not in events(tmp_path)
    assert set(journalled(tmp_path)) == {run["run_id"]}


def test_hostile_clients_do_not_stop_a_service(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        running.wait_for("/metrics\n")
        path = str(tmp_path / "state" / "control.sock")
        clients = []
        for data in (b"\x00" * 100_000, b"POST /control/v1/actions/abort HTTP/1.1\r\n", b""):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            clients.append(client)
            if len(path) < 100:
                client.connect(path)
                client.settimeout(5)
                with contextlib.suppress(OSError):
                    client.sendall(data)
        assert ctl(tmp_path, "status")["pid"] == running.process.pid
        for client in clients:
            client.close()
        assert "no action is recorded" in plimsoll(tmp_path, "ctl", "audit").stderr
        running.signalled(signal.SIGTERM)
        running.process.wait(WAIT_S)


@pytest.mark.parametrize(
    "arguments",
    [("status",), ("why",), ("pause",), ("stop",), ("throttle", "1MB"), ("approve", "0" * 64)],
)
@pytest.mark.slow
def test_without_a_service_commands_say_so(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    run = plimsoll(tmp_path, "ctl", *arguments)
    refused(run, 3, "no plimsoll service runs with the state folder")
    assert not (tmp_path / "state" / "audit.jsonl").exists()


def test_resume_needs_auto(tmp_path: Path) -> None:
    run = plimsoll(tmp_path, "service", "-b", NOWHERE, "--resume", "--allow-changes")
    refused(run, 5, "--resume changes the cluster; add --auto")


def test_the_program_of_these_tests_is_that_of_users() -> None:
    run = subprocess.run(
        [*SIMULATED, "ctl", "--help"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        timeout=WAIT_S,
    )
    assert "audit" in run.stdout, run.stderr
