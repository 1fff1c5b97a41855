"""User tasks and kept plans that follow a takeover, through a bucket."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clients.s3 import Bucket, S3Settings
from control.cruise_control import cruise_control, shared_folder
from control.cruise_control.answers import done
from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.kept_plans import KeptPlans
from control.cruise_control.requests import ENDPOINTS, Request, parsed
from control.cruise_control.shared_folder import FLUSH_S, SharedFolder
from control.cruise_control.user_tasks import FOLDER, TaskStatus, UserTasks
from control.service.leadership import Standing
from control.service.service_state import ServiceState
from model.errors import ArchiveUnreachable
from model.goals.goals import Goals, SolveLimits
from solver.solve import solve
from tests.control.cli.test_simulated_service import events, journalled
from tests.control.cli.test_standby import host, leads, wait_idle
from tests.control.cruise_control.test_dry_runs import UNEVEN
from tests.control.cruise_control.test_execution import asked_until, client_of, ordered, status_of
from tests.support.executor.s3_server import place, s3_server
from tests.support.tui.loop_views import CONNECTING

REQUEST: Request = parsed(ENDPOINTS["rebalance"], [("dryrun", "true")], "/rebalance")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as found:
        yield found


class Host:
    """The user tasks of one service."""

    def __init__(self, folder: Path, bucket: S3Settings, opened: contextlib.ExitStack) -> None:
        self.shared = opened.enter_context(SharedFolder(folder / FOLDER, Bucket(bucket)))
        self.shared.of_cluster("one")
        self.tasks = UserTasks(folder, time.time, self.shared.put)
        self.kept = KeptPlans(folder, self.shared.put)

    def lead(self) -> None:
        self.shared.writes = True

    def refreshed(self) -> set[str]:
        """The names of the files that have been read."""
        found: list[set[str]] = []

        def changed(names: object) -> None:
            found.append(set(names))  # type: ignore[call-overload]
            self.tasks.reload(self.shared.folder / name for name in found[-1] if ".task." in name)

        self.shared.refresh(changed)
        self.shared.flush()
        return found[0] if found else {"unreadable"}


class LedState(ServiceState):
    """The state of a service that leads or stands by, as is set."""

    leads = True

    @property
    def standing(self) -> Standing:
        return Standing(leads=self.leads, leader="", message="", trouble="", other_policy=False)


Hosts = Callable[[], tuple[Host, Host]]


@pytest.fixture
def hosts(tmp_path: Path, endpoint: str) -> Iterator[Hosts]:
    with contextlib.ExitStack() as opened:
        where = place(endpoint)
        yield lambda: (Host(tmp_path / "a", where, opened), Host(tmp_path / "b", where, opened))


def test_tasks_and_plans_are_read_by_another_service(hosts: Hosts) -> None:
    a, b = hosts()
    a.lead()
    plan = solve(UNEVEN, Goals(), SolveLimits(work=0.1)).best
    assert plan is not None
    task = a.tasks.begin(REQUEST, "eve@127.0.0.1", kept=True)
    a.kept.keep(REQUEST, plan, task.task_id, 1, None)
    a.tasks.end(task.task_id, done({"version": 1}), TaskStatus.COMPLETED, plan_hash=plan.hash)
    # Reads are remembered by the service alone that has answered them.
    read = a.tasks.begin(REQUEST, "eve@127.0.0.1", kept=False)
    a.shared.flush()
    assert len(b.refreshed()) == 3
    found = b.tasks.read(task.task_id)
    assert (found.status, found.answer, found.plan_hash) == (
        TaskStatus.COMPLETED,
        {"version": 1},
        plan.hash,
    )
    kept = b.kept.find(REQUEST)
    assert kept is not None
    assert kept[1] == plan
    assert b.tasks.find(read.task_id) is None
    # Only what has changed is read again.
    assert b.refreshed() == set()
    a.tasks.become(task.task_id, TaskStatus.FAILED)
    a.kept.forget(REQUEST)
    a.shared.flush()
    assert len(b.refreshed()) == 2
    assert b.tasks.read(task.task_id).status is TaskStatus.FAILED
    assert b.kept.find(REQUEST) is None


def test_the_next_leader_writes_to_the_same_objects(hosts: Hosts) -> None:
    a, b = hosts()
    a.lead()
    task = a.tasks.begin(REQUEST, "x", kept=True)
    a.shared.flush()
    assert b.refreshed() == {f"{task.task_id}.task.json"}
    a.shared.writes = False
    b.lead()
    b.tasks.end(task.task_id, done({"version": 2}), TaskStatus.COMPLETED)
    more = b.tasks.begin(REQUEST, "x", kept=True)
    b.shared.flush()
    assert len(a.refreshed()) == 2
    assert a.tasks.read(task.task_id).answer == {"version": 2}
    # A former leader that does not know that yet changes the newest state, and is read itself.
    b.shared.writes = False
    a.lead()
    a.tasks.end(more.task_id, done({"version": 3}), TaskStatus.COMPLETED)
    a.shared.flush()
    assert b.refreshed() == {f"{more.task_id}.task.json"}


def test_the_number_of_objects_is_bounded(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setitem(shared_folder.SLOTS, "task", 3)
    a, b = hosts()
    a.lead()
    tasks = [a.tasks.begin(REQUEST, "x", kept=True) for _ in range(3)]
    a.shared.flush()
    for task in tasks[:2]:
        (a.shared.folder / f"{task.task_id}.task.json").unlink()
    newest = a.tasks.begin(REQUEST, "x", kept=True)
    a.shared.flush()
    assert f"{newest.task_id}.task.json" in b.refreshed()
    assert b.tasks.find(tasks[0].task_id) is None
    assert b.tasks.find(tasks[2].task_id) is not None


@pytest.mark.parametrize(
    "body", [b"", b"../../x.task.json\n{}", b"\xff\xfe\n", b"0" * 64 + b".plan.json\n{}"]
)
def test_objects_that_are_not_user_tasks_are_left_out(
    hosts: Hosts, body: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a, b = hosts()
    bucket = b.shared._bucket
    assert bucket.put_new("cruise-control/one/task-000", body)
    assert bucket.put_new("cruise-control/one/other", b"x\n")
    assert b.refreshed() == set()
    assert sorted(tmp_path.rglob("*.json")) == []
    assert a.tasks.all() == []


def test_a_former_leader_keeps_the_objects_of_the_next_one(hosts: Hosts) -> None:
    a, b = hosts()
    a.lead()
    b.lead()
    theirs = [b.tasks.begin(REQUEST, "b", kept=True) for _ in range(3)]
    b.shared.flush()
    mine = a.tasks.begin(REQUEST, "a", kept=True)
    a.shared.flush()
    # It lists the objects again once it stands by.
    read = {f"{task.task_id}.task.json" for task in theirs}
    assert a.refreshed() == read
    assert all(a.tasks.find(task.task_id) is not None for task in theirs)
    assert b.refreshed() == {f"{mine.task_id}.task.json"}


def test_files_that_were_read_before_the_bucket_failed_are_named_later(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = hosts()
    a.lead()
    tasks = [a.tasks.begin(REQUEST, "x", kept=True) for _ in range(2)]
    a.shared.flush()
    get, asked = b.shared._bucket.get, []

    def fails_second(key: str) -> object:
        asked.append(key)
        if len(asked) == 2:
            raise ArchiveUnreachable("nobody answers")
        return get(key)

    monkeypatch.setattr(b.shared._bucket, "get", fails_second)
    assert b.refreshed() == {"unreadable"}
    assert b.refreshed() == {f"{task.task_id}.task.json" for task in tasks}


def test_an_object_that_is_no_user_task_is_read_once_and_stays(
    hosts: Hosts, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = hosts()
    bucket = b.shared._bucket
    assert bucket.put_new("cruise-control/one/task-000", b"of another program")
    get, asked = bucket.get, []

    def counted(key: str) -> object:
        asked.append(key)
        return get(key)

    monkeypatch.setattr(bucket, "get", counted)
    caplog.set_level("WARNING", "plimsoll.service")
    for _ in range(3):
        assert b.refreshed() == set()
    assert len(asked) == 1
    assert caplog.text.count("is not a file of user tasks") == 1
    for host_ in (a, b):
        host_.lead()
        host_.tasks.begin(REQUEST, "x", kept=True)
        host_.shared.flush()
    found = bucket.get("cruise-control/one/task-000")
    assert found is not None
    assert found.body == b"of another program"
    assert len(bucket.etags("cruise-control/one/")) == 3


def test_a_bucket_that_is_away_is_no_obstacle(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = hosts()
    a.lead()

    def away(*_: object) -> None:
        raise ArchiveUnreachable("nobody answers")

    put_new = a.shared._bucket.put_new
    monkeypatch.setattr(a.shared._bucket, "put_new", away)
    monkeypatch.setattr(b.shared._bucket, "etags", away)
    tasks = [a.tasks.begin(REQUEST, "x", kept=True) for _ in range(2)]
    a.shared.flush()
    assert b.refreshed() == {"unreadable"}
    monkeypatch.undo()
    assert a.shared._bucket.put_new == put_new
    a.shared.retry()
    a.shared.flush()
    assert b.refreshed() == {f"{t.task_id}.task.json" for t in tasks}


def test_a_service_that_leads_writes_what_it_could_not_once_the_bucket_is_back(
    tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket(place(endpoint))
    monkeypatch.setattr(cruise_control, "REFRESH_S", 0.0)
    with CruiseControl(tmp_path, ServiceState(), bucket=bucket) as site:
        view = replace(CONNECTING, snapshot=UNEVEN)
        site.see(view)
        assert site._caught_up.wait(FLUSH_S)

        def away(*_: object) -> None:
            raise ArchiveUnreachable("nobody answers")

        shared = site._shared
        assert shared is not None
        with monkeypatch.context() as outage:
            outage.setattr(bucket, "put_new", away)
            task = site.tasks.begin(REQUEST, "x", kept=True)
            shared.flush()
        site.see(view)
        shared.flush()
        reader = SharedFolder(tmp_path / "b" / FOLDER, bucket)
        reader.of_cluster(UNEVEN.header.cluster_id)
        found: set[str] = set()
        with reader:
            reader.refresh(found.update)
            reader.flush()
        assert found == {f"{task.task_id}.task.json"}


def test_files_from_before_a_service_led_are_in_the_archive_once_it_does(
    tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan from before there was a standby, and one before the leader has caught up."""
    bucket = Bucket(place(endpoint))
    plan = solve(UNEVEN, Goals(), SolveLimits(work=0.1)).best
    assert plan is not None
    task = UserTasks(tmp_path, time.time).begin(REQUEST, "x", kept=True)
    KeptPlans(tmp_path).keep(REQUEST, plan, task.task_id, 1, None)
    names, puts = set[str](), list[str]()
    with SharedFolder(tmp_path / "b" / FOLDER, bucket) as reader:
        reader.of_cluster(UNEVEN.header.cluster_id)

        def read() -> set[str]:
            names.clear()
            reader.refresh(names.update)
            reader.flush()
            return names

        with CruiseControl(tmp_path, ServiceState(), bucket=bucket) as site:
            early = site.tasks.begin(REQUEST, "x", kept=True)
            site.see(replace(CONNECTING, snapshot=UNEVEN))
            assert site._caught_up.wait(FLUSH_S)
            assert site._shared is not None
            site._shared.flush()
            assert len(read()) == 4
            tasks = {f"{of.task_id}.task.json" for of in (task, early)}
            assert names > tasks
        kept = KeptPlans(tmp_path / "b").find(REQUEST)
        assert kept is not None
        assert kept[1] == plan
        # After a restart, nothing is written twice.
        put_in = SharedFolder._put_in

        def counted(of: SharedFolder, slot: str, name: str, body: bytes) -> str | None:
            puts.append(name)
            return put_in(of, slot, name, body)

        monkeypatch.setattr(SharedFolder, "_put_in", counted)
        with CruiseControl(tmp_path, ServiceState(), bucket=bucket) as site:
            site.see(replace(CONNECTING, snapshot=UNEVEN))
            assert site._caught_up.wait(FLUSH_S)
        assert puts == []


def test_a_plan_that_was_forgotten_before_a_service_led_is_forgotten_by_others(
    hosts: Hosts,
) -> None:
    a, b = hosts()
    a.lead()
    plan = solve(UNEVEN, Goals(), SolveLimits(work=0.1)).best
    assert plan is not None
    a.kept.keep(REQUEST, plan, "x", 1, None)
    a.shared.flush()
    assert len(b.refreshed()) == 2
    a.shared.writes = False
    a.kept.forget(REQUEST)
    a.shared.refresh(lambda _names: a.shared.lead())
    for _ in range(2):
        # The writing begins after the reading has ended.
        a.shared.flush()
    assert len(b.refreshed()) == 1
    assert b.kept.find(REQUEST) is None


def test_a_bucket_that_hangs_is_asked_once_and_a_service_that_stands_by_does_not_write(
    tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, state = Bucket(place(endpoint)), LedState()
    monkeypatch.setattr(cruise_control, "REFRESH_S", 0.0)
    answers, asked = threading.Event(), []
    etags = bucket.etags

    def hanging(folder: str) -> dict[str, str]:
        asked.append(folder)
        answers.wait(60)
        return etags(folder)

    monkeypatch.setattr(bucket, "etags", hanging)
    view = replace(CONNECTING, snapshot=UNEVEN)
    with CruiseControl(tmp_path, state, bucket=bucket) as site:
        shared = site._shared
        assert shared is not None
        for leads in (True, True, True, False, True):
            state.leads = leads
            site.see(view)
        answers.set()
        shared.flush()
        # What was asked for before another service led says nothing of what that has left.
        assert len(asked) == 1
        assert not shared.writes
        site.see(view)
        shared.flush()
        assert shared.writes


def test_a_service_that_stands_by_writes_nothing_that_has_waited(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = hosts()
    a.lead()
    task = a.tasks.begin(REQUEST, "x", kept=True)
    a.shared.flush()
    assert b.refreshed() == {f"{task.task_id}.task.json"}

    def away(*_: object) -> None:
        raise ArchiveUnreachable("nobody answers")

    monkeypatch.setattr(a.shared._bucket, "put_over", away)
    a.tasks.end(task.task_id, done({"version": 1}), TaskStatus.COMPLETED)
    a.shared.flush()
    monkeypatch.undo()
    a.shared.writes = False
    b.lead()
    b.tasks.end(task.task_id, done({"version": 2}), TaskStatus.COMPLETED)
    b.shared.flush()
    a.shared.retry()
    a.shared.flush()
    assert len(a.refreshed()) == 1
    assert a.tasks.read(task.task_id).answer == {"version": 2}


@pytest.mark.soak
def test_the_service_that_takes_over_completes_the_user_task_of_the_first(
    tmp_path: Path, endpoint: str
) -> None:
    a, b = (tmp_path / name for name in "ab")
    execute = {
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_API": "execute",
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_LISTEN": "127.0.0.1:0",
    }
    first, second = (host(tmp_path, name, endpoint, trigger="off") for name in "ab")
    for service in (first, second):
        service.environment |= execute
    # So that the run ends in seconds.
    second.options = tuple("20GB" if text == "100MB" else text for text in second.options)
    with first:
        client = client_of(first)
        asked_until(lambda: leads(a), bool)
        order = ordered(client)
        with second:
            other = client_of(second)
            # The one that stands by answers reads of the same task, and executes nothing.
            asked_until(lambda: status_of(other, order), lambda s: s == "InExecution")
            refused = other.post("rebalance?json=true&dryrun=false")
            assert "ask the one that leads" in refused.error
            wait_idle(endpoint, tmp_path.name)
            first.process.kill()
            first.process.wait()
            asked_until(lambda: status_of(other, order), lambda s: s != "InExecution")
            assert status_of(other, order) == "Completed"
            rows = other.get(
                f"user_tasks?json=true&fetch_completed_task=true&user_task_ids={order}"
            ).json["userTasks"]
            assert json.loads(rows[0]["originalResponse"])["summary"]["numReplicaMovements"] > 0
    (records,) = journalled(b).values()
    assert (records.count("started"), records.count("resumed"), records[-1]) == (1, 1, "ended")
    assert "standby.leads" in events(b)
