"""The service as a process: signals, settings that change, systemd, and its exit codes."""

import base64
import contextlib
import json
import os
import queue
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from control.cli.exit_codes import Exit
from control.service.audit_log import AuditLog, read_audit
from tests.control.service.test_audit_log import record
from tests.support.cli_offline import PLIMSOLL, plimsoll, refused, usual
from tests.support.tls_certificates import Authority

WAIT_S = 300.0
ADDRESS = re.compile(r"metrics on (http://\S+)/metrics")
NOWHERE = "127.0.0.1:1"
"""No broker answers there."""


@dataclass
class Service:
    """A running service, killed at the end of a `with` block."""

    folder: Path
    options: tuple[str, ...] = ("-b", NOWHERE)
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = (str(PLIMSOLL),)
    unset: tuple[str, ...] = ()
    """Variables that are usual and are left out."""

    def __enter__(self) -> Self:
        known = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        listen = {"PLIMSOLL_SERVICE__LISTEN": "127.0.0.1:0"}
        own = usual(self.folder) | listen | self.environment
        self.log = self.folder / "stderr.txt"
        with self.log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*self.program, "service", *self.options],
                cwd=self.folder,
                env={k: v for k, v in (known | own).items() if k not in self.unset},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def wait_for(self, text: str) -> str:
        """What it has written on stderr, once that contains a text."""
        deadline = time.monotonic() + WAIT_S
        while text not in (found := self.log.read_text()):
            assert self.process.poll() is None, found
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a response."""
        match = ADDRESS.search(self.wait_for("/metrics\n"))
        assert match is not None
        try:
            with urllib.request.urlopen(match[1] + path, timeout=WAIT_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode()

    def counts(self, name: str) -> dict[tuple[str, ...], float]:
        """Samples of a metric, by the values of its labels."""
        families = parsed(self.get("/metrics")[1])
        return {
            tuple(sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
            if sample.name == name
        }

    def signalled(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


class Systemd:
    """Receives notifications as systemd does: at once."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._queue: queue.Queue[str] = queue.Queue()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def _receive(self) -> None:
        while text := self._socket.recv(65536).decode():
            self._queue.put(text)

    def wait_for(self, start: str) -> str:
        """The next notification that begins so; those before it are discarded."""
        while not (text := self._queue.get(timeout=WAIT_S)).startswith(start):
            pass
        return text

    def close(self) -> None:
        """End the thread by an empty datagram."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(b"", self.path)
        self._thread.join()
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    with contextlib.closing(Systemd(tmp_path / "notify")) as found:
        yield found


def test_systemd_hears_of_start_life_reloads_and_end(tmp_path: Path, systemd: Systemd) -> None:
    file = tmp_path / "own.toml"
    file.write_text("window_s = 5\n")
    environment = {
        "NOTIFY_SOCKET": systemd.path,
        "WATCHDOG_USEC": "4000000",
        "PLIMSOLL_CONFIG": str(file),
    }
    with Service(tmp_path, environment=environment) as service:
        assert systemd.wait_for("READY") == "READY=1"
        systemd.wait_for("STATUS=cannot connect: No Kafka broker")
        # While the loop waits to reconnect.
        for _ in range(3):
            systemd.wait_for("WATCHDOG")
        assert service.get("/livez") == (200, "ok\n")
        status, reason = service.get("/readyz")
        assert (status, reason.split(":")[0]) == (503, "cannot connect")
        before = service.counts("plimsoll_settings_timestamp_seconds")[()]

        file.write_text("window_s = [\n")
        service.signalled(signal.SIGHUP)
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", systemd.wait_for("RELOADING"))
        assert systemd.wait_for("READY") == "READY=1"
        found = service.wait_for("the settings stay as they are, since they cannot be used: ")
        assert "own.toml" in found
        assert service.counts("plimsoll_settings_reloads_total") == {("done",): 0, ("failed",): 1}
        assert service.counts("plimsoll_settings_timestamp_seconds")[()] == before

        file.write_text('window_s = 6\n[service]\nlisten = "127.0.0.1:0"\n')
        service.signalled(signal.SIGHUP)
        systemd.wait_for("RELOADING")
        assert systemd.wait_for("READY") == "READY=1"
        service.wait_for("settings read again; the loop starts with them between two runs")
        reloads = {("done",): 1.0, ("failed",): 1.0}
        assert service.counts("plimsoll_settings_reloads_total") == reloads
        systemd.wait_for("WATCHDOG")

        service.signalled(signal.SIGTERM)
        assert systemd.wait_for("STOPPING") == "STOPPING=1"
        assert service.process.wait(WAIT_S) == 0
        assert "Traceback" not in service.log.read_text()
        assert "plimsoll: stopping\n" in service.log.read_text()
    audit = [(a.action, a.outcome) for a in read_audit(tmp_path / "state")]
    assert audit == [("reload", "refused"), ("reload", "done"), ("end the service", "done")]


def test_a_person_reads_the_settings_again_and_hears_what_became_of_it(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    file = tmp_path / "state" / "own.toml"
    file.write_text('bootstrap_server = "127.0.0.1:1"\n')
    environment = {"PLIMSOLL_CONFIG": str(file)}
    reload = ("ctl", "reload", "--by", "eve")
    with Service(tmp_path, options=(), environment=environment) as service:
        service.wait_for("No Kafka broker answers at 127.0.0.1:1 ")
        file.write_text('bootstrap_server = "127.0.0.1:2"\n')
        done = plimsoll(tmp_path, *reload, "-o", "json")
        assert json.loads(done.stdout)["message"].startswith("settings read again; the loop starts")
        service.wait_for("No Kafka broker answers at 127.0.0.1:2 ")
        file.write_text("window_s = [\n")
        # Whether or not the command reads the same file.
        for config in ({}, environment):
            broken = plimsoll(tmp_path, *reload, **config)
            assert broken.returncode == Exit.USAGE
            kept = "the settings stay as they are, since they cannot be used: "
            assert f"{kept}{file} is not valid TOML" in broken.stderr
            asked = f"asking the service that runs in {tmp_path / 'state'}\n"
            assert (asked in broken.stderr) is bool(config)
        assert service.counts("plimsoll_settings_reloads_total") == {("done",): 1, ("failed",): 2}
        service.signalled(signal.SIGTERM)
        assert service.process.wait(WAIT_S) == 0
    audit = [(a.action, a.by, a.via.value, a.outcome) for a in read_audit(tmp_path / "state")]
    assert audit == [
        ("reload", "eve", "socket", "requested"),
        ("reload", "eve", "socket", "done"),
        *2 * [("reload", "eve", "socket", "requested"), ("reload", "eve", "socket", "refused")],
        ("end the service", "", "signal", "done"),
    ]


def test_the_settings_of_a_reload_are_used(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('bootstrap_server = "127.0.0.1:1"\n')
    environment = {"PLIMSOLL_CONFIG": str(file)}
    with Service(tmp_path, options=(), environment=environment) as service:
        service.wait_for("No Kafka broker answers at 127.0.0.1:1 ")
        file.write_text('bootstrap_server = "127.0.0.1:2"\n[service]\nlisten = "127.0.0.1:7"\n')
        # Variables take precedence over the file.
        service.signalled(signal.SIGHUP)
        service.wait_for("No Kafka broker answers at 127.0.0.1:2 ")
        assert service.counts("plimsoll_loop_errors_total")["ClusterUnreachable",] >= 2
        service.signalled(signal.SIGTERM)
        assert service.process.wait(WAIT_S) == 0


def test_the_log_file_of_a_reload_continues_and_counts(tmp_path: Path) -> None:
    log = tmp_path / "service.jsonl"
    with Service(tmp_path, options=("-b", NOWHERE, "--log-file", str(log))) as service:
        service.wait_for("cannot connect")
        log.rename(tmp_path / "service.1.jsonl")
        service.signalled(signal.SIGHUP)
        service.wait_for("settings read again")
        deadline = time.monotonic() + WAIT_S
        while not (log.exists() and "settings read again" in log.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert service.counts("plimsoll_log_messages_total")["info",] >= 1
        service.signalled(signal.SIGTERM)
        assert service.process.wait(WAIT_S) == 0


def test_signals_while_it_starts_are_those_of_a_running_one(tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        control, deadline = tmp_path / "state" / "control.sock", time.monotonic() + WAIT_S
        while not control.exists():
            assert service.process.poll() is None, service.log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.001)
        service.signalled(signal.SIGHUP)
        service.signalled(signal.SIGTERM)
        assert service.process.wait(WAIT_S) == 0
    assert not control.exists()
    assert "Traceback" not in service.log.read_text()


def test_a_port_in_use_ends_it_before_anything_begins(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = plimsoll(tmp_path, "service", "-b", NOWHERE, PLIMSOLL_SERVICE__LISTEN=address)
    refused(run, 2, f"port {address.partition(':')[2]} for the service is in use on 127.0.0.1")


@pytest.mark.parametrize("name", ["service.lock", "audit.jsonl"])
def test_a_pipe_in_the_state_folder_ends_it_before_anything_begins(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "state").mkdir()
    os.mkfifo(tmp_path / "state" / name)
    run = plimsoll(tmp_path, "service", "-b", NOWHERE, PLIMSOLL_SERVICE__LISTEN="127.0.0.1:0")
    refused(run, 2, f"{name} is not a regular file; move it away")


def test_a_damaged_audit_log_is_printed_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    log = AuditLog(tmp_path / "state")
    log.append(record(1, message="\x1b[2J"))
    line = log.path.read_bytes()
    # Edited, so that a terminal would obey it.
    log.path.write_bytes(b"\x00\xff\n" + line.replace(b"eve", b"\\u001b[2Jeve") + line[:50])
    run = plimsoll(tmp_path, "ctl", "audit")
    assert run.returncode == 0, run.stderr
    assert "audit.jsonl: 2 lines left out as damaged: 1, 3" in run.stderr
    assert "pause outcome unknown" in run.stdout
    assert run.stdout.strip("\n").isprintable()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--auto", "--allow-changes"), 2, "--auto starts only with every limit set"),
        (("--auto", "--limits", "eager"), 5, "add --allow-changes"),
        (("--limits", "nothing"), 2, "there are no limits named 'nothing'"),
    ],
)
@pytest.mark.slow
def test_the_guardrails_are_those_of_run(
    tmp_path: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    refused(plimsoll(tmp_path, "service", "-b", NOWHERE, *options), code, message)


def test_other_machines_are_not_served(tmp_path: Path) -> None:
    run = plimsoll(tmp_path, "service", "-b", NOWHERE, PLIMSOLL_SERVICE__LISTEN="0.0.0.0:9645")
    refused(run, 2, "can be reached from other machines: set tls_certificate and logins")


def test_https_with_logins_that_the_command_prints(tmp_path: Path) -> None:
    authority = Authority.make("ca")
    certificate = authority.issue(tmp_path / "server.pem", "server")
    logins, password = tmp_path / "logins.toml", "correct horse"
    typed = subprocess.run(
        [PLIMSOLL, "login", "eve", "--role", "viewer"],
        input=f"{password}\n",
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert typed.returncode == 0, typed.stderr
    made = plimsoll(tmp_path, "login", "robot", "--role", "operator", "--token")
    logins.write_text(typed.stdout + made.stdout)
    logins.chmod(0o600)
    token = made.stderr.split()[-1]
    assert password not in logins.read_text()
    assert token not in logins.read_text()
    context = ssl.create_default_context(cafile=authority.write(tmp_path / "ca.pem"))
    environment = {
        "PLIMSOLL_SERVICE__TLS_CERTIFICATE": str(certificate),
        "PLIMSOLL_SERVICE__LOGINS": str(logins),
        "PLIMSOLL_SERVICE__API": "true",
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_API": "read",
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_LISTEN": "127.0.0.1:0",
    }

    with Service(tmp_path, environment=environment) as service:
        match = re.search(r"metrics on (https://\S+)/metrics", service.wait_for("/metrics\n"))
        cruise = re.search(r"API on (https://\S+)/kafkacruise", service.wait_for("cruisecontrol\n"))
        assert match is not None
        assert cruise is not None

        def asked(
            path: str, login: str, data: bytes | None = None, site: str = match[1]
        ) -> tuple[int, str]:
            headers = {"Authorization": login, "Content-Type": "application/json"}
            request = urllib.request.Request(site + path, data, headers)
            try:
                with urllib.request.urlopen(request, timeout=WAIT_S, context=context) as response:
                    return response.status, response.read().decode()
            except urllib.error.HTTPError as exc:
                with exc:
                    return exc.code, exc.read().decode()

        eve = "Basic " + base64.b64encode(f"eve:{password}".encode()).decode()
        status, text = asked("/metrics", eve)
        assert status == 200
        assert "plimsoll_tls_certificate_end_timestamp_seconds" in text
        # The test's certificate is valid for a day.
        service.wait_for("ends within a day; replace the file, and send SIGHUP to the service")
        assert asked("/api/v1/actions/pause", eve, b"{}")[0] == 403
        # Without --auto there is nothing to pause.
        status, text = asked("/api/v1/actions/pause", f"Bearer {token}", b"{}")
        assert (status, text.split(";")[0]) == (409, "the service is read-only and starts no runs")
        certificate.write_text("broken")
        service.signalled(signal.SIGHUP)
        service.wait_for("cannot use tls_certificate")
        assert asked("/livez", "")[0] == 200
        # Cruise Control's API has the same certificate and logins; its viewers read less.
        for login, status in (("", 401), (eve, 403), (f"Bearer {token}", 200)):
            assert asked("/kafkacruisecontrol/state", login, site=cruise[1])[0] == status
        service.signalled(signal.SIGTERM)
        assert service.process.wait(WAIT_S) == 0
    audit = plimsoll(tmp_path, "ctl", "audit").stdout
    assert "robot (from 127.0.0.1): pause refused" in audit


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("e:ve",), "is not a name"),
        (("eve", "--role", "king"), "there is no role 'king'; there are viewer, operator, admin"),
        (("eve",), "a password has 8 to 1024 bytes"),
    ],
)
def test_logins_that_cannot_be_used_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    refused(plimsoll(tmp_path, "login", *arguments), 2, message)


def test_cruise_controls_api_answers_from_the_start(tmp_path: Path) -> None:
    environment = {
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_API": "read",
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_LISTEN": "127.0.0.1:0",
    }
    with Service(tmp_path, environment=environment) as service:
        text = service.wait_for("/kafkacruisecontrol\n")
        address = re.search(r"API on (http://\S+)", text)
        assert address is not None
        with urllib.request.urlopen(f"{address[1]}/state?json=true", timeout=WAIT_S) as response:
            found = json.load(response)
        assert found["MonitorState"]["state"] == "LOADING"
        assert found["ExecutorState"]["state"] == "NO_TASK_IN_PROGRESS"
        # The API answers before the loop begins; signals are handled from then on.
        service.wait_for("cannot connect")
        service.signalled(signal.SIGTERM)
        assert service.process.wait(WAIT_S) == 0


def test_clients_of_cruise_control_change_nothing_without_auto(tmp_path: Path) -> None:
    with Service(
        tmp_path, environment={"PLIMSOLL_SERVICE__CRUISE_CONTROL_API": "execute"}
    ) as service:
        assert service.process.wait(WAIT_S) == 5
        assert "add --auto --limits NAME --allow-changes" in service.log.read_text()


def test_every_line_of_a_service_is_json_where_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("window_s = 5\n")
    options = ("-b", NOWHERE, "--log-format", "json")
    with Service(tmp_path, options, {"PLIMSOLL_CONFIG": str(file)}) as service:
        service.wait_for("cannot connect")
        file.write_text("window_s = [\n")
        service.signalled(signal.SIGHUP)
        service.wait_for("settings.rejected")
        file.write_text("window_s = 6\n")
        service.signalled(signal.SIGHUP)
        service.wait_for("settings.read")
        service.signalled(signal.SIGTERM)
        service.process.wait(WAIT_S)
    found = [json.loads(line) for line in service.log.read_text().splitlines()]
    messages = {line["event"]: line["message"] for line in found}
    assert {"command", "loop.phase", "settings.rejected", "settings.read"} <= {*messages}
    assert any(line["message"].startswith("metrics on http://") for line in found)
    assert len({line["message"] for line in found if line["event"] == "settings.read"}) == 1
    # Why a command ends is one, too.
    wrong = plimsoll(tmp_path, "service", "--log-format", "json", "--config", "no.toml")
    assert wrong.returncode == 2
    (line,) = wrong.stderr.splitlines()
    assert json.loads(line)["level"] == "error"
