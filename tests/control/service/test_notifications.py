"""Notifications against a local server: payloads, retries, equal lines, and receivers that hang."""

import asyncio
import contextlib
import json
import logging
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from control.service.notifications import (
    MOST_QUEUED,
    MOST_TRIES,
    Message,
    Notice,
    Notifications,
    NotifyHandler,
    Receiver,
    receivers_of,
    tried,
)
from control.settings.notify_table import NotifyLevel, ReceiverKind, ReceiverTable
from control.settings.settings import load
from model.errors import ConfigError
from model.log_events import LogEvent, named
from tests.control.cli.test_serving import NOWHERE, Service
from tests.support.cli_offline import plimsoll, refused

WAIT_S = 300.0
NOTICE = Notice(
    at_s=1_700_000_000.0,
    level=NotifyLevel.WARNING,
    event="plan.waiting",
    message="plan 12 waits <for> approval & more",
    plan_hash="abc",
    cluster="prod",
)


class Server(ThreadingHTTPServer):
    """Keeps what it receives, and answers with the given statuses, then 200."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: queue.Queue[tuple[str, Any, str]] = queue.Queue()
        self.statuses: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def got(self) -> tuple[str, Any, str]:
        return self.seen.get(timeout=WAIT_S)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.put((self.path, json.loads(body), self.headers.get("Authorization", "")))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Location", self.server.url + "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def receiver(kind: str = "webhook", **fields: Any) -> Receiver:
    return Receiver(ReceiverTable.model_validate_json(json.dumps({"kind": kind} | fields)), 1)


def secret(folder: Path, text: str) -> str:
    path = folder / "secret"
    path.write_text(text + "\n")
    path.chmod(0o600)
    return str(path)


Open = Callable[..., Notifications]


@pytest.fixture
def opened() -> Iterator[Open]:
    with contextlib.ExitStack() as stack:

        def begin(*receivers: Receiver, **options: Any) -> Notifications:
            found = Notifications(receivers, **({"backoff_s": 0.01} | options))
            return stack.enter_context(found)

        yield begin


def test_a_webhook_gets_the_line_as_json(server: Server, opened: Open, tmp_path: Path) -> None:
    key = secret(tmp_path, "token")
    opened(receiver(url=server.url + "/hook", key_file=key)).queue(NOTICE)
    path, body, authorization = server.got()
    assert (path, authorization) == ("/hook", "Bearer token")
    assert body == {
        "kind": "plimsoll.notification",
        "schema_version": "1.0",
        "at": "2023-11-14T22:13:20.000+00:00",
        "cluster": "prod",
        "level": "warning",
        "event": "plan.waiting",
        "message": NOTICE.message,
        "plan_hash": "abc",
    }


def test_slack_gets_escaped_text(server: Server, opened: Open, tmp_path: Path) -> None:
    opened(receiver("slack", url_file=secret(tmp_path, server.url + "/s"))).queue(NOTICE)
    path, body, _ = server.got()
    message = "plan 12 waits &lt;for&gt; approval &amp; more"
    assert (path, body) == ("/s", {"text": f"plimsoll prod: warning: {message}"})


def test_pagerduty_gets_an_event_of_version_2(server: Server, opened: Open, tmp_path: Path) -> None:
    key = secret(tmp_path, "R0UT1NG")
    opened(receiver("pagerduty", url=server.url, key_file=key)).queue(NOTICE)
    _, body, authorization = server.got()
    assert (body["routing_key"], body["event_action"]) == ("R0UT1NG", "trigger")
    assert body["dedup_key"] == "plimsoll prod plan.waiting abc"
    assert authorization == ""
    payload = body["payload"]
    # The fields that are required, and the values that severity may have.
    assert payload["summary"] == NOTICE.message
    assert payload["source"] == "prod"
    assert payload["severity"] in ("critical", "error", "warning", "info")
    assert payload["custom_details"]["event"] == "plan.waiting"


def test_alertmanager_gets_a_list_of_alerts(server: Server, opened: Open) -> None:
    opened(receiver("alertmanager", url=server.url + "/")).queue(NOTICE)
    path, body, _ = server.got()
    assert path == "/api/v2/alerts"
    (alert,) = body
    assert alert["labels"] == {
        "alertname": "Plimsoll",
        "event": "plan.waiting",
        "severity": "warning",
        "cluster": "prod",
        "plan_hash": "abc",
    }
    assert alert["annotations"] == {"summary": NOTICE.message}
    assert alert["startsAt"] < alert["endsAt"]


def line(event: LogEvent, level: str = "info", plan_hash: str = "abc", at_s: float = 1.0) -> Notice:
    return Notice(
        at_s=at_s,
        level=NotifyLevel(level),
        event=str(event),
        message=f"{event} {plan_hash}",
        plan_hash=plan_hash,
        cluster="prod",
    )


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (line(LogEvent.PLAN_WAITING, "warning"), line(LogEvent.PLAN_APPROVED)),
        (line(LogEvent.PLAN_WAITING, "warning"), line(LogEvent.PLAN_REJECTED)),
        (line(LogEvent.PLAN_WAITING, "warning"), line(LogEvent.PLAN_WITHDRAWN, plan_hash="")),
        (line(LogEvent.LOOP_PHASE, "warning"), line(LogEvent.LOOP_PHASE)),
        (line(LogEvent.SETTINGS_REJECTED, "warning"), line(LogEvent.SETTINGS_READ)),
        (line(LogEvent.CERTIFICATE_ENDS, "warning"), line(LogEvent.SETTINGS_READ)),
        (line(LogEvent.POLICY_REJECTED, "warning"), line(LogEvent.POLICY_CHANGED, "warning")),
        (line(LogEvent.RUN_INTERRUPTED, "warning"), line(LogEvent.RUN_STATE)),
    ],
    ids=lambda notice: str(notice.event),
)
def test_pagerduty_resolves_the_incident_when_its_condition_ends(
    server: Server, opened: Open, tmp_path: Path, begins: Notice, ends: Notice
) -> None:
    key = secret(tmp_path, "R0UT1NG")
    found = opened(
        receiver("pagerduty", url=server.url, key_file=key, level="warning", events=[begins.event])
    )
    found.queue(begins)
    found.queue(ends)
    # Nothing lasts any more, so there is nothing to end.
    found.queue(ends)
    # It is news when it begins again, although an equal line was sent a moment ago.
    found.queue(begins)
    sent = [server.got()[1] for _ in range(3)]
    assert [body["event_action"] for body in sent] == ["trigger", "resolve", "trigger"]
    assert len({body["dedup_key"] for body in sent}) == 1
    assert sent[1].keys() == {"routing_key", "event_action", "dedup_key"}
    found.close()
    assert server.seen.empty()


def test_another_waiting_plan_ends_the_wait_of_the_former(
    server: Server, opened: Open, tmp_path: Path
) -> None:
    found = opened(receiver("pagerduty", url=server.url, key_file=secret(tmp_path, "KEY")))
    for plan_hash in ("abc", "def"):
        found.queue(line(LogEvent.PLAN_WAITING, "warning", plan_hash))
    sent = [server.got()[1] for _ in range(3)]
    assert [(body["event_action"], body["dedup_key"].split()[-1]) for body in sent] == [
        ("trigger", "abc"),
        ("resolve", "abc"),
        ("trigger", "def"),
    ]


def test_facts_and_other_receivers_have_no_end(
    server: Server, opened: Open, tmp_path: Path
) -> None:
    found = opened(
        receiver(url=server.url), receiver("slack", url_file=secret(tmp_path, server.url + "/s"))
    )
    found.queue(NOTICE)
    found.queue(line(LogEvent.PLAN_APPROVED))
    assert {server.got()[0] for _ in range(2)} == {"/", "/s"}
    found.close()
    fact = line(LogEvent.RUN_STATE, "error")
    duty = opened(receiver("pagerduty", url=server.url, key_file=secret(tmp_path, "KEY")))
    for notice in (fact, line(LogEvent.RUN_STATE)):
        duty.queue(notice)
    assert server.got()[1]["event_action"] == "trigger"
    duty.close()
    assert server.seen.empty()


def test_alertmanager_keeps_an_alert_while_its_condition_lasts(
    server: Server, opened: Open
) -> None:
    now_s = 1000.0
    found = opened(
        receiver("alertmanager", url=server.url), clock=lambda: now_s + 120, renew_s=0.01
    )
    found.queue(line(LogEvent.PLAN_WAITING, "warning", at_s=now_s))
    (first,), (renewed,) = (server.got()[1] for _ in range(2))
    assert first["labels"] == renewed["labels"]
    assert first["startsAt"] == renewed["startsAt"] == "1970-01-01T00:16:40.000+00:00"
    # However late it is sent.
    assert first["endsAt"] == renewed["endsAt"] == "1970-01-01T00:23:40.000+00:00"
    found.queue(line(LogEvent.PLAN_APPROVED, at_s=now_s + 130))
    while (ended := server.got()[1][0]) == renewed:
        pass
    assert ended == renewed | {"endsAt": "1970-01-01T00:18:50.000+00:00"}
    found.close()
    assert server.seen.empty()


def test_alerts_are_renewed_while_other_lines_arrive(server: Server, opened: Open) -> None:
    found = opened(receiver("alertmanager", url=server.url, repeat="0s"), renew_s=1.0)
    found.queue(line(LogEvent.PLAN_WAITING, "warning"))
    seen = 0
    deadline_s = time.monotonic() + WAIT_S
    while seen < 3 and time.monotonic() < deadline_s:
        # As often as they are taken.
        found.queue(line(LogEvent.RUN_WARNING, "warning"))
        (alert,) = server.got()[1]
        seen += alert["labels"]["event"] == LogEvent.PLAN_WAITING.value
    assert seen == 3


def test_an_alert_never_ends_before_it_begins(server: Server, opened: Open) -> None:
    found = opened(receiver("alertmanager", url=server.url))
    found.queue(line(LogEvent.PLAN_WAITING, "warning", at_s=1000.0))
    # The clock was set back.
    found.queue(line(LogEvent.PLAN_APPROVED, at_s=900.0))
    _, (ended,) = (server.got()[1] for _ in range(2))
    assert ended["startsAt"] == ended["endsAt"]


def test_a_command_gets_the_line_on_stdin(opened: Open, tmp_path: Path) -> None:
    out = tmp_path / "out"
    copy = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"
    command = [sys.executable, "-c", copy, str(out)]
    assert tried([receiver("command", command=command)], NOTICE) == {"command (1)": ""}
    assert json.loads(out.read_text())["message"] == NOTICE.message
    failing = receiver("command", command=[sys.executable, "-c", "raise SystemExit(3)"])
    assert tried([failing], NOTICE) == {"command (1)": "exit code 3"}
    missing = receiver("command", command=["/no/such/program"])
    assert tried([missing], NOTICE) == {"command (1)": "No such file or directory"}


def test_a_command_ends_with_the_processes_that_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = '{ echo up; sleep 100; echo alive; } > "$0" & wait'
    hangs = receiver("command", command=["/bin/sh", "-c", script, str(pipe)])

    async def given_up() -> str:
        sent = asyncio.create_task(hangs.send(Message(NOTICE, 0.0), WAIT_S))
        with await asyncio.to_thread(pipe.open) as end:
            assert await asyncio.to_thread(end.readline) == "up\n"
            # What the timeout does, too, but at once.
            sent.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sent
            return end.read()

    assert asyncio.run(given_up()) == ""


def test_a_receiver_that_fails_for_a_while_is_tried_again(server: Server, opened: Open) -> None:
    server.statuses = [503, 429, 500]
    opened(receiver(url=server.url)).queue(NOTICE)
    assert len({json.dumps(server.got()[1]) for _ in range(4)}) == 1


@pytest.mark.parametrize("status", [302, 400, 401, 404])
def test_a_receiver_that_refuses_is_not_tried_again(
    server: Server, opened: Open, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    server.statuses = [status]
    with caplog.at_level(logging.WARNING, "plimsoll.service"):
        found = opened(receiver(url=server.url))
        found.queue(NOTICE)
        server.got()
        found.close()
    assert server.seen.empty()
    assert f"webhook (1) was not notified of plan.waiting: HTTP status {status}" in caplog.text


def test_tries_end(server: Server, opened: Open) -> None:
    server.statuses = [500] * 100
    found = opened(receiver(url=server.url), backoff_s=0.001)
    found.queue(NOTICE)
    for _ in range(MOST_TRIES):
        server.got()
    found.close()
    assert server.seen.empty()


def test_equal_lines_are_sent_once_for_a_while(server: Server, opened: Open) -> None:
    now_s = [0.0]
    found = opened(receiver(url=server.url, repeat=60), steady=lambda: now_s[0])

    def send(message: str) -> None:
        found.queue(Notice(at_s=0, level=NotifyLevel.ERROR, event="loop.failed", message=message))

    for message in ("no loads for 61 s", "no loads for 62 s", "another"):
        send(message)
    now_s[0] = 61.0
    send("no loads for 122 s")
    expected = ["no loads for 61 s", "another", "no loads for 122 s"]
    assert [server.got()[1]["message"] for _ in range(3)] == expected
    assert server.seen.empty()


def test_a_receiver_that_hangs_delays_neither_others_nor_the_caller(
    server: Server, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = receiver(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with caplog.at_level(logging.WARNING, "plimsoll.service"):
            found = opened(hanging, receiver(url=server.url), timeout_s=3600.0)
            began_s = time.monotonic()
            for number in range(3 * MOST_QUEUED):
                message = "x" * (number + 1)
                found.queue(
                    Notice(at_s=0, level=NotifyLevel.ERROR, event="loop.failed", message=message)
                )
                server.got()
            # The receiver that hangs would take an hour for each of them.
            assert time.monotonic() - began_s < WAIT_S
            deadline_s = time.monotonic() + WAIT_S
            while "notifications were dropped, since a receiver is too slow" not in caplog.text:
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            found.close()


def test_an_attempt_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = receiver(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with contextlib.closing(Notifications([hanging], timeout_s=0.1, backoff_s=0.001)) as found:
            found.queue(NOTICE)
            silent.settimeout(WAIT_S)
            connections = [silent.accept()[0] for _ in range(MOST_TRIES)]
            for connection in connections:
                connection.close()


def test_level_and_events_choose(server: Server, opened: Open) -> None:
    chosen = receiver(url=server.url, level="error", events=["run.state"])
    assert not chosen.wants(NOTICE)
    for level, event, wanted in [
        (NotifyLevel.ERROR, "run.state", True),
        (NotifyLevel.WARNING, "run.state", False),
        (NotifyLevel.ERROR, "plan.waiting", False),
    ]:
        assert chosen.wants(Notice(at_s=0, level=level, event=event, message="")) is wanted


def test_lines_of_the_log_are_queued_but_for_those_about_notifications(
    server: Server, opened: Open
) -> None:
    log = logging.Logger("plimsoll.control")
    log.addHandler(NotifyHandler(opened(receiver(url=server.url)), "prod"))
    log.info("quiet", extra=named(LogEvent.LOOP_PHASE))
    log.warning("endless", extra=named(LogEvent.NOTIFY_FAILED))
    log.warning("a \x1b[2J %s", "x" * 5000, extra=named(LogEvent.AUDIT_FAILED))
    _, body, _ = server.got()
    assert (body["event"], body["level"], body["cluster"]) == ("audit.failed", "warning", "prod")
    assert body["message"].isprintable()
    assert len(body["message"]) == 1024
    assert server.seen.empty()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "pigeon"}, "kind"),
        ({"kind": "webhook"}, "webhook needs url or url_file"),
        ({"kind": "slack", "url": "https://a", "url_file": "b"}, "needs url or url_file, one of"),
        ({"kind": "webhook", "url": "ftp://a"}, "url begins with http"),
        ({"kind": "pagerduty"}, "pagerduty needs key_file"),
        ({"kind": "command"}, "a command needs command"),
        ({"kind": "command", "command": ["a"], "url": "http://a"}, "a command needs command"),
        ({"kind": "webhook", "url": "http://a", "events": ["run.stat"]}, "no log event 'run.stat'"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    file = tmp_path / "plimsoll.toml"
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
    file.write_text(f"[[notify]]\n{lines}")
    with pytest.raises(ConfigError, match=message):
        load({}, config=file)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = Path(secret(tmp_path, "https://hooks.example/secret"))
    path.chmod(0o644)
    table = ReceiverTable(kind=ReceiverKind.SLACK, url_file=path)
    with pytest.raises(ConfigError, match=r"others can read or change the secret .*; chmod 600 it"):
        receivers_of([table])
    # As volumes of Kubernetes mount it.
    path.chmod(0o440)
    assert len(receivers_of([table])) == 1
    path.chmod(0o600)
    path.write_text("")
    with pytest.raises(ConfigError, match="holds no line of text"):
        receivers_of([table])


def test_a_secret_url_is_not_repeated(opened: Open, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}/secret", "http://[/secret"):
        found = tried([receiver("slack", url_file=secret(tmp_path, url))], NOTICE)
        assert found["slack (1)"]
        assert "secret" not in found["slack (1)"]


@pytest.mark.slow
def test_the_service_notifies_and_the_command_tries_its_receivers(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f'[[notify]]\nkind = "webhook"\nurl = "{server.url}"\n')
    environment = {"PLIMSOLL_CONFIG": str(file)}
    run = plimsoll(tmp_path, "notify", "test", "-o", "json", **environment)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {"receivers": [{"problem": "", "receiver": "webhook (1)"}]}
    assert server.got()[1]["event"] == "notify.test"
    server.statuses = [404]
    run = plimsoll(tmp_path, "notify", "test", **environment)
    assert (run.returncode, run.stdout) == (3, "webhook (1): not notified: HTTP status 404\n")
    server.got()
    refused(plimsoll(tmp_path, "notify", "test"), 2, "add a table [[notify]]")
    with Service(tmp_path, environment=environment) as service:
        # No broker answers there, which is a warning.
        body = server.got()[1]
        assert (body["level"], body["cluster"]) == ("warning", NOWHERE)
        service.process.terminate()
        assert service.process.wait(WAIT_S) == 0
