"""Requests that clients of Cruise Control get wrong, and tasks that they ask for again."""

import http.client
import json
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from control.cruise_control import requests
from control.cruise_control.answers import done, error
from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.requests import ENDPOINTS, BadRequest, matching
from control.cruise_control.user_tasks import (
    MOST_KEPT,
    TaskStatus,
    UserTask,
    UserTasks,
    tasks_document,
)
from control.service.service_state import ServiceState
from model.names import Names
from tests.control.cruise_control.test_reads import UNEVEN, seen
from tests.support.control.cruise_bench import CruiseClient
from tests.support.control.cruise_schema import check
from tests.support.tui.terminals import LONG_S


@pytest.fixture
def parts(tmp_path: Path, state: ServiceState) -> Iterator[CruiseControl]:
    with CruiseControl(tmp_path, state, block_s=0.05) as found:
        yield found


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "nothing", 404, "Unrecognized endpoint in request '/nothing'\nSupported GET"),
        ("POST", "state", 404, "Unrecognized endpoint in request '/state'\nSupported POST"),
        ("DELETE", "state", 405, "DELETE is not supported"),
        (
            "GET",
            "state?what=1",
            400,
            "Unrecognized endpoint parameters in STATE GET request: [what]",
        ),
        ("GET", "state?verbose=maybe", 400, "Bad GET request '/state' due to 'verbose is true or"),
        ("GET", "state?verbose=true&VERBOSE=true", 400, "Bad GET request '/state' due to 'verbose"),
        ("GET", "state?substates=all", 400, "Bad GET request '/state' due to 'unknown substate"),
        ("GET", "state?substates=", 400, "Bad GET request '/state' due to 'substates is empty"),
        ("GET", "load?time=1e9", 400, "Bad GET request '/load' due to 'time is a whole number"),
        ("GET", "load?time=-1", 400, "Bad GET request '/load' due to 'time is at least 0, not -1"),
        (
            "GET",
            "load?start=5&end=1",
            400,
            "Bad GET request '/load' due to 'start is not after end, not 5 after 1",
        ),
        ("GET", "train?end=-1", 400, "Bad GET request '/train' due to 'end is at least 0, not -1"),
        (
            "POST",
            "rebalance?concurrent_leader_movements=0",
            400,
            "Bad POST request '/rebalance' due to 'concurrent_leader_movements is at least 1, not "
            "0'",
        ),
        (
            "POST",
            "add_broker?concurrent_partition_movements_per_broker=-3",
            400,
            "Bad POST request '/add_broker' due to 'concurrent_partition_movements_per_broker is "
            "at least 1, not -3'",
        ),
        (
            "POST",
            "admin?max_partition_movements_in_cluster=0",
            400,
            "Bad POST request '/admin' due to 'max_partition_movements_in_cluster is at least 1",
        ),
        (
            "GET",
            "proposals?data_from=xx",
            400,
            "Bad GET request '/proposals' due to 'data_from is VALID_WINDOWS or VALID_PARTITIONS, "
            "not 'xx''",
        ),
        (
            "POST",
            "rebalance?replica_movement_strategies=baseReplicaMovementStrategy,Nope",
            400,
            "Bad POST request '/rebalance' due to 'Strategy Nope is not supported. Supported: [Bas",
        ),
        (
            "GET",
            "partition_load?min_valid_partition_ratio=1.1",
            400,
            "Bad GET request '/partition_load' due to 'min_valid_partition_ratio is a number from "
            "0 to 1, not '1.1''",
        ),
        ("GET", "user_tasks?user_task_ids=xyz", 400, "Bad GET request '/user_tasks' due to 'user_"),
        (
            "GET",
            "user_tasks?user_task_ids=00000000-0000-0000-0000-000000000000,{0}",
            400,
            "Bad GET request '/user_tasks' due to 'user_task_ids are UUIDs, not '{0}''",
        ),
        ("GET", "user_tasks?entries=0", 400, "Bad GET request '/user_tasks' due to 'entries is at"),
    ],
)
def test_bad_requests_fail_as_in_cruise_control(
    method: str, path: str, status: int, words: str, client: CruiseClient
) -> None:
    separator = "&" if "?" in path else "?"
    reply = client.ask(method, f"/kafkacruisecontrol/{path}{separator}json=true")
    assert reply.status == status
    check(reply.json, "errorResponse", "ErrorResponse")
    assert reply.error.startswith(words)


@pytest.mark.parametrize("name", ["STATE", "State", "Kafka_Cluster_State", "PARTITION_LOAD"])
def test_letter_case_of_endpoints_and_parameters_does_not_matter(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient, name: str
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    reply = client.get(f"{name}?JSON=True")
    assert reply.status == 200, reply.text
    rows = client.get(f"USER_TASKS?Json=TRUE&Endpoints={name}").json["userTasks"]
    assert [row["RequestURL"].partition("?")[0] for row in rows] == [
        f"GET /kafkacruisecontrol/{name.lower()}"
    ]


def test_the_web_ui_reads_partition_loads_under_its_own_name(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    query = "?json=true&resource=DISK&entries=3&max_load=true"
    found = client.get(f"partitionload{query}")
    assert found.status == 200
    check(found.json, "partitionLoadState", "PartitionLoadState")
    assert found.json == client.get(f"partition_load{query}").json


def test_other_paths_are_refused(client: CruiseClient) -> None:
    assert client.ask("GET", "/metrics?json=true").status == 404
    assert client.ask("GET", "/kafkacruisecontrol/state/x?json=true").status == 404


def test_missing_loads_are_an_error_that_strimzi_waits_for(client: CruiseClient) -> None:
    reply = client.get("load?json=true")
    assert reply.status == 500
    assert reply.error.startswith("Error processing GET request '/load' due to: '")
    assert "NotEnoughValidWindowsException" in reply.error


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_web_pages_of_others_are_refused(headers: dict[str, str], client: CruiseClient) -> None:
    assert client.get("state?json=true", **headers).status == 403


@pytest.mark.parametrize("header", [b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"])
def test_a_body_is_refused_without_reading_it(header: bytes, client: CruiseClient) -> None:
    with socket.create_connection(client.address, timeout=LONG_S) as connection:
        connection.sendall(
            b"GET /kafkacruisecontrol/state?json=true HTTP/1.1\r\nHost: localhost\r\n"
            + header
            + b"\r\n\r\n"
        )
        found = http.client.HTTPResponse(connection)
        found.begin()
        assert found.status == 413
        assert json.loads(found.read())["errorMessage"] == "requests of state have no body"


def held(parts: CruiseControl) -> threading.Event:
    """Keep reads waiting until the event is set."""
    hold = threading.Event()
    parts.api._reads.submit(hold.wait, LONG_S)
    return hold


def test_a_slow_answer_is_polled_by_its_task_or_its_cookie(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    hold = held(parts)
    try:
        first = client.get("load?json=true")
        assert first.status == 202
        check(first.json, "progressResult", "ProgressResult")
        assert first.json["progress"][0]["operation"] == "Load"
        task_id = first.task_id
        cookie = first.headers["set-cookie"].partition(";")[0]
        again = client.get("load?json=true", User_Task_ID=task_id)
        assert (again.status, again.task_id) == (202, task_id)
        by_cookie = client.get("load?json=true", Cookie=cookie)
        assert (by_cookie.status, by_cookie.task_id) == (202, task_id)
        # Another URL is another request, whatever the cookie.
        assert client.get("partition_load?json=true", Cookie=cookie).task_id != task_id
        other = client.get("load?json=true&capacity_only=true", User_Task_ID=task_id)
        assert other.status == 500
        assert f"Unexpected header User-Task-ID (value: {task_id})" in other.error
    finally:
        hold.set()
    while (reply := client.get("load?json=true", Cookie=cookie)).status == 202:
        pass
    assert (reply.status, reply.task_id) == (200, task_id)
    assert client.get("load?json=true", User_Task_ID=task_id).status == 200
    # The session ends with the result.
    assert client.get("load?json=true", Cookie=cookie).task_id != task_id


def test_at_most_five_tasks_are_active(parts: CruiseControl, client: CruiseClient) -> None:
    hold = held(parts)
    try:
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(client.get, f"load?json=true&time={n}") for n in range(8)]
            found = [future.result() for future in asked]
    finally:
        hold.set()
    assert sorted(reply.status for reply in found) == [202] * 5 + [500] * 3
    (words,) = {reply.error.partition("due to")[2] for reply in found if reply.status == 500}
    assert "There are already 5 active user tasks, which has reached the servlet capacity" in words


def test_unknown_tasks_are_refused(client: CruiseClient) -> None:
    reply = client.get("load?json=true", User_Task_ID="no-such-task")
    assert reply.status == 500
    assert "java.lang.IllegalArgumentException: Unexpected header User-Task-ID" in reply.error


def test_tasks_are_listed_newest_first(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    ids = [client.get(f"load?json=true&time={n}").task_id for n in range(3)]
    client.get("partition_load?json=true&partition=x")
    found = client.get("user_tasks?json=true").json
    check(found, "userTaskState", "UserTaskState")
    rows = found["userTasks"]
    assert [r["Status"] for r in rows] == ["CompletedWithError"] + ["Completed"] * 3
    assert [r["UserTaskId"] for r in rows[1:]] == ids[::-1]
    assert rows[1]["RequestURL"] == "GET /kafkacruisecontrol/load?json=true&time=2"
    assert rows[1]["ClientIdentity"] == "127.0.0.1"

    def listed(query: str) -> list[str]:
        reply = client.get(f"user_tasks?json=true&{query}")
        return [row["UserTaskId"] for row in reply.json["userTasks"]]

    assert listed(f"user_task_ids={ids[0]}") == [ids[0]]
    assert listed("user_task_ids=00000000-0000-0000-0000-000000000000") == []
    assert listed(f"user_task_ids={ids[0].upper()}") == [ids[0]]
    assert listed("endpoints=LOAD&entries=2") == [ids[2], ids[1]]
    assert listed("client_ids=10.0.0.1") == []
    assert len(listed("types=COMPLETED_WITH_ERROR&endpoints=PARTITION_LOAD")) == 1


# ---- files


def asked(query: str = "") -> requests.Request:
    pairs = [(name, value) for name, _, value in (p.partition("=") for p in query.split("&") if p)]
    return requests.parsed(ENDPOINTS["load"], pairs, "/load")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


def test_a_kept_task_survives_a_restart_with_its_answer(tmp_path: Path) -> None:
    first = UserTasks(tmp_path, Clock())
    one = first.begin(asked("time=1"), "10.0.0.1", kept=True)
    two = first.begin(asked("time=2"), "10.0.0.1", kept=True)
    read = first.begin(asked(), "10.0.0.1", kept=False)
    first.end(one.task_id, done({"summary": {"numReplicaMovements": 1}}), TaskStatus.COMPLETED)

    later = UserTasks(tmp_path, Clock())
    assert [(t.task_id, t.status) for t in later.all()] == [
        (one.task_id, TaskStatus.COMPLETED),
        (two.task_id, TaskStatus.ACTIVE),
    ]
    assert later.find(read.task_id) is None
    found = later.find(one.task_id)
    assert found is not None
    assert found.is_of(asked("time=1"))
    assert later.read(one.task_id).answer == {"summary": {"numReplicaMovements": 1}}
    request = requests.parsed(
        ENDPOINTS["user_tasks"], [("fetch_completed_task", "true")], "/user_tasks"
    )
    rows = tasks_document(later, request)["userTasks"]
    assert [row.get("originalResponse") for row in rows] == [
        None,
        '{"summary": {"numReplicaMovements": 1}}',
    ]


@pytest.mark.parametrize("how", ["cut", "edited", "renamed", "newer"])
def test_a_damaged_file_is_named_and_left_out(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "plimsoll")
    logging.getLogger("plimsoll").propagate = True
    first = UserTasks(tmp_path, Clock())
    task, good = (first.begin(asked(), "c", kept=True) for _ in range(2))
    path = first.folder / f"{task.task_id}.task.json"
    text = path.read_text()
    if how == "cut":
        path.write_text(text[: len(text) // 2])
    elif how == "edited":
        path.write_text(text.replace('"client":"c"', '"client":"d"'))
    elif how == "renamed":
        path = path.rename(first.folder / f"{'0' * 8}.task.json")
    else:
        newer = UserTask.model_validate_json(text).model_copy(update={"schema_version": "2.0"})
        path.write_text(newer.sealed().model_dump_json())
    later = UserTasks(tmp_path, Clock())
    assert [t.task_id for t in later.all()] == [good.task_id]
    assert str(path) in caplog.text
    # Other tasks work as usual.
    later.end(good.task_id, error(500, "x"), TaskStatus.FAILED)


def test_old_tasks_are_forgotten_with_their_files(tmp_path: Path) -> None:
    tasks = UserTasks(tmp_path, Clock())
    active = tasks.begin(asked(), "c", kept=True)
    for _ in range(MOST_KEPT + 3):
        task = tasks.begin(asked(), "c", kept=True)
        tasks.end(task.task_id, done({}), TaskStatus.COMPLETED)
    tasks.begin(asked(), "c", kept=True)
    ids = {t.task_id for t in tasks.all()}
    assert active.task_id in ids
    assert len(ids) == MOST_KEPT + 2
    assert {p.name.partition(".")[0] for p in tasks.folder.iterdir()} == ids


def test_an_expression_that_takes_long_for_all_topics_is_refused() -> None:
    topics = [f"{'a' * 240}-{i}" for i in range(10_000)]
    assert matching(Names(regex=(".*-9{2,3}",)), topics).nonzero()[0].tolist() == [99, 999]
    with pytest.raises(BadRequest, match=r"more than 0.05 s of CPU for 10,000 topics; simplify"):
        matching(Names(regex=("((a?){30}){30}b",)), topics, most_s=0.05)
