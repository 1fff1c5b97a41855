"""Tasks and marks in a bucket: written there first, whatever other hosts do meanwhile."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from clients.s3 import S3Settings
from control.tasks.broker_marks import REFRESH_S, BrokerMark, MarkedBrokers, marked, unmarked
from control.tasks.broker_task import SCHEMA_VERSION, BrokerTask, Operation, TaskPhase
from control.tasks.sealed_files import checksum_of
from control.tasks.task_archive import CALL_S, SPARE_S, TaskArchive
from control.tasks.task_files import Marks, TaskCancelled, TaskFiles
from control.tasks.task_hold import PATIENCE_S
from control.tasks.task_listing import task_listing
from control.tasks.task_runner import cancel
from model.errors import (
    ArchiveUnreachable,
    ConfigError,
    GuardrailRefused,
    RightsMissing,
    WriterBarred,
)
from model.files import canonical
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.s3_server import BUCKET, Fault, Host, client, keys, place
from tests.support.executor.simulated_runs import Killed
from tests.support.model import clusters

NOW_MS = 1_800_000_000_000
TASK = "remove-4-20270115T080000"


class Site:
    """A host: its state folder, and its client of the bucket."""

    def __init__(self, folder: Path, store: S3Settings, time: FakeTime) -> None:
        self.host = Host(store, time.timing, folder.name)
        self.wire = self.host.wire
        archive = TaskArchive(self.host.bucket, time.timing, holder=folder.name, renew_s=None)
        self.files = TaskFiles(folder, archive)

    @property
    def away(self) -> bool:
        return self.wire.fault(0) is Fault.AWAY

    @away.setter
    def away(self, away: bool) -> None:
        self.wire.fault = lambda _: Fault.AWAY if away else None

    def before_put(self, action: Callable[[], object], key: str = "task.json") -> None:
        """Act once, right before this host's next write of such an object."""
        acted: list[bool] = []

        def fault(_: int) -> None:
            if not acted and self.wire.call == "PutObject" and self.wire.key.endswith(key):
                acted.append(True)
                action()

        self.wire.fault = fault


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def store(endpoint: str) -> S3Settings:
    return place(endpoint)


@pytest.fixture
def a(tmp_path: Path, store: S3Settings, time: FakeTime) -> Site:
    return Site(tmp_path / "a", store, time)


@pytest.fixture
def b(tmp_path: Path, store: S3Settings, time: FakeTime) -> Site:
    return Site(tmp_path / "b", store, time)


def add(site: Site, *brokers: int, by: str = "ada", cluster: str = "c") -> BrokerTask:
    return site.files.add(
        cluster, Operation.REMOVE, tuple(map(BrokerId, brokers or (4,))), by, NOW_MS
    )


def enter(
    files: TaskFiles, task: BrokerTask, phase: TaskPhase, at_ms: int = 1, note: str = ""
) -> BrokerTask:
    return files.change(task.task_id, lambda t: t.entered(phase, at_ms, note))


def local(site: Site) -> TaskFiles:
    """The same host without the archive."""
    return TaskFiles(site.files.state_dir)


def mark(broker: int, task_id: str = "", cluster: str = "c") -> BrokerMark:
    return BrokerMark(
        cluster_id=cluster,
        broker=BrokerId(broker),
        state=BrokerState.DRAINING,
        at_ms=1,
        by="ada",
        reason="rack move",
        task_id=task_id,
    )


# ---- tasks


def test_another_host_with_an_empty_folder_knows_the_task(
    a: Site, b: Site, store: S3Settings
) -> None:
    task = add(a)
    assert keys(store) == [f"tasks/c/{TASK}/task.json"]
    assert b.files.named("remove-4") == task
    assert b.files.all() == [task] == b.files.of("c")
    assert local(b).all() == [task]
    moving = enter(b.files, task, TaskPhase.MOVING)
    assert a.files.all() == [moving]
    assert a.files.read(task.task_id) == moving


def test_tasks_of_two_hosts_at_the_same_second_have_ids_of_their_own(a: Site, b: Site) -> None:
    first = add(a)
    b.before_put(lambda: add(a, 5))
    second, third = add(b, 5, by="bob"), add(b, by="bob")
    assert [first.task_id, third.task_id] == [TASK, f"{TASK}-2"]
    assert second.task_id == "remove-5-20270115T080000-2"
    assert len(a.files.all()) == 4


@pytest.mark.parametrize("fault", [Fault.KILLED, Fault.KILLED_AFTER, Fault.ANSWER_LOST])
def test_a_request_whose_process_dies_is_recorded_or_not(a: Site, b: Site, fault: Fault) -> None:
    a.wire.fault = lambda _: fault if a.wire.call == "PutObject" else None
    with suppress(Killed, ArchiveUnreachable):
        add(a)
    found = b.files.all()
    assert [task.task_id for task in found] == ([] if fault is Fault.KILLED else [TASK])
    a.away = False
    assert a.files.all() == found


def test_a_change_that_was_overtaken_is_made_to_the_newer_state(a: Site, b: Site) -> None:
    task = add(a)
    b.files.all()
    a.before_put(lambda: enter(b.files, task, TaskPhase.MOVING, 2))
    after = enter(a.files, task, TaskPhase.VERIFIED, 3)
    assert [p.phase for p in after.phases[1:]] == [TaskPhase.MOVING, TaskPhase.VERIFIED]
    assert b.files.all() == [after]


def test_a_cancel_on_another_host_is_noticed_by_the_next_change(a: Site, b: Site) -> None:
    task = add(a)
    cancel(b.files, b.files.named(TASK), "bob", 2)
    assert not a.files.is_cancelled(TASK)
    with pytest.raises(TaskCancelled, match="was cancelled: by bob"):
        enter(a.files, task, TaskPhase.MOVING, 3)
    assert a.files.is_cancelled(TASK)
    assert a.files.read(TASK).note == "by bob"


def test_a_cancel_that_comes_too_late_cancels_nothing(a: Site, b: Site) -> None:
    task = add(a)
    b.files.all()
    b.before_put(lambda: enter(a.files, task, TaskPhase.DONE, 2))
    with pytest.raises(ConfigError, match="is done; nothing is left to cancel"):
        cancel(b.files, task, "bob", 3)
    assert a.files.all()[0].phase is TaskPhase.DONE


def test_many_overtaken_changes_end_with_an_error(a: Site, b: Site) -> None:
    task = add(a)
    b.files.all()
    times = iter(range(1, 1000))

    def overtaken(_: int) -> None:
        if a.wire.call == "PutObject":
            enter(b.files, task, TaskPhase.MOVING, next(times), f"{next(times)}")

    a.wire.fault = overtaken
    with pytest.raises(ArchiveUnreachable, match="keep changing task"):
        enter(a.files, task, TaskPhase.VERIFIED)


@pytest.mark.parametrize("killed", [Fault.KILLED, Fault.KILLED_AFTER])
def test_killed_at_a_write_the_task_is_as_before_or_after_it(
    a: Site, b: Site, killed: Fault
) -> None:
    task = add(a)
    a.wire.fault = lambda _: killed if a.wire.call == "PutObject" else None
    with pytest.raises(Killed):
        enter(a.files, task, TaskPhase.MOVING)
    made = killed is Fault.KILLED_AFTER
    wanted = TaskPhase.MOVING if made else TaskPhase.REQUESTED
    assert b.files.named(TASK).phase is wanted
    a.away = False
    assert local(a).read(TASK).phase is TaskPhase.REQUESTED
    assert a.files.named(TASK).phase is wanted


def test_tasks_that_are_over_are_not_read_again(a: Site, b: Site) -> None:
    for broker in (4, 5, 6):
        enter(a.files, add(a, broker), TaskPhase.DONE)
    open_task = add(a, 7)
    assert len(b.files.all()) == 4
    calls = b.wire.calls
    assert b.files.all()[-1] == open_task
    assert b.wire.calls - calls == 2  # one listing, and the open task


# ---- with the archive, and without it for a while


def test_a_cancel_without_the_archive_is_archived(a: Site, b: Site) -> None:
    task = add(a)
    b.files.all()
    enter(local(a), task, TaskPhase.CANCELLED, 2, "by bob")
    assert b.files.named(TASK).is_open
    a.files.all()
    assert b.files.named(TASK).phase is TaskPhase.CANCELLED


def test_a_task_requested_without_the_archive_is_archived(a: Site, b: Site) -> None:
    task = local(a).add("c", Operation.REMOVE, (BrokerId(4),), "ada", NOW_MS)
    assert b.files.all() == []
    assert a.files.newest(task.task_id) == task
    assert b.files.all() == [task]


def test_of_two_diverging_states_the_archived_one_holds(a: Site, b: Site) -> None:
    task = add(a)
    enter(local(a), task, TaskPhase.MOVING, 2)
    archived = enter(b.files, b.files.named(TASK), TaskPhase.CANCELLED, 3)
    assert a.files.all() == [archived] == local(a).all()


def test_rights_to_read_suffice_to_list(a: Site, b: Site, caplog: pytest.LogCaptureFixture) -> None:
    task = add(b)
    local(a).add("c", Operation.REMOVE, (BrokerId(5),), "ada", NOW_MS)
    a.wire.fault = lambda _: Fault.DENIED if a.wire.call == "PutObject" else None
    assert len(a.files.all()) == 2
    assert "is not archived" in caplog.text
    with pytest.raises(RightsMissing):
        enter(a.files, task, TaskPhase.MOVING)


def test_a_damaged_local_file_is_replaced_by_the_archived_task(a: Site) -> None:
    task = add(a)
    path = a.files.path(TASK)
    path.write_text(path.read_text()[:40])
    assert a.files.all() == [task]


def test_a_task_of_another_cluster_with_the_same_id_is_left_out(
    a: Site, b: Site, caplog: pytest.LogCaptureFixture
) -> None:
    task = local(a).add("c", Operation.REMOVE, (BrokerId(4),), "ada", NOW_MS)
    add(b, cluster="other")
    assert a.files.all() == [task]
    assert "of another cluster" in caplog.text
    assert b.files.known("c", TASK) is None


# ---- the bucket is away


def test_without_the_bucket_nothing_is_requested_or_cancelled(a: Site) -> None:
    task = add(a)
    a.files.change_marks("c", lambda marks: marked(marks, [mark(4, TASK)]))
    a.away = True
    for attempt in (
        lambda: add(a, 5),
        lambda: cancel(a.files, task, "bob", 2),
        lambda: a.files.change_marks("c", lambda marks: ()),
        lambda: a.files.working_on(TASK).__enter__(),
    ):
        with pytest.raises(ArchiveUnreachable):
            attempt()
    assert local(a).all() == [task]
    assert local(a).marks("c") == (mark(4, TASK),)


def test_without_the_bucket_known_tasks_are_listed_with_a_warning(
    a: Site, caplog: pytest.LogCaptureFixture
) -> None:
    task = add(a)
    a.away = True
    assert a.files.all() == [task] == [a.files.named("remove")]
    assert "the tasks are as" in caplog.text
    assert not a.files.is_worked_on(TASK)


def test_a_worker_waits_for_the_bucket(a: Site, b: Site, time: FakeTime) -> None:
    task = add(a)
    with a.files.working_on(TASK) as hold:
        a.away = True
        back_s = time.now_s + CALL_S + SPARE_S + 5.0
        time.after.append((back_s, lambda: setattr(a, "away", False)))
        time.now_s += 10.0
        a.files.change(TASK, lambda t: t.entered(TaskPhase.MOVING, 2), hold, patient=True)
        assert time.now_s >= back_s
    assert b.files.named(task.task_id).phase is TaskPhase.MOVING


def test_a_worker_waits_no_longer_than_it_should(a: Site, time: FakeTime) -> None:
    add(a)
    with a.files.working_on(TASK) as hold:
        a.away, begun_s = True, time.now_s
        with pytest.raises(ArchiveUnreachable):
            a.files.change(TASK, lambda t: t.entered(TaskPhase.MOVING, 2), hold, patient=True)
        assert PATIENCE_S <= time.now_s - begun_s < PATIENCE_S + 2.0
    assert local(a).read(TASK).phase is TaskPhase.REQUESTED


# ---- one worker


def test_a_second_worker_is_refused_by_the_name_of_the_first(
    a: Site, b: Site, time: FakeTime
) -> None:
    add(a)
    b.files.all()
    with a.files.working_on(TASK) as hold:
        assert b.files.is_worked_on(TASK)
        for seconds in range(1, 40):
            time.after.append((time.now_s + seconds, hold.keep))
        with (
            pytest.raises(GuardrailRefused, match=rf"^a works on task {TASK}: it holds the lease"),
            b.files.working_on(TASK),
        ):
            pass
    assert not b.files.is_worked_on(TASK)
    with b.files.working_on(TASK):
        pass


def test_tasks_have_leases_of_their_own(a: Site, b: Site) -> None:
    first, second = add(a), add(b, 5)
    with a.files.working_on(first.task_id), b.files.working_on(second.task_id):
        pass


def test_a_worker_that_died_is_replaced_once_that_is_certain(
    a: Site, b: Site, time: FakeTime
) -> None:
    add(a)
    b.files.all()
    with suppress(Killed), a.files.working_on(TASK):
        a.wire.fault = lambda _: Fault.KILLED
        raise Killed
    begun_s = time.now_s
    with b.files.working_on(TASK):
        assert time.now_s - begun_s > CALL_S + SPARE_S


def test_a_worker_that_lost_its_task_writes_nothing(a: Site, b: Site) -> None:
    """As one that was suspended for longer than its lease lasts."""
    task = add(a)
    b.files.all()
    with a.files.working_on(TASK) as old, b.files.working_on(TASK) as new:
        after = b.files.change(TASK, lambda t: t.entered(TaskPhase.MOVING, 2), new)
        for attempt in (
            lambda: a.files.change(TASK, lambda t: t.entered(TaskPhase.FAILED, 3), old),
            lambda: a.files.change_marks("c", lambda marks: (mark(4, TASK),), old),
            lambda: a.files.change(
                TASK, lambda t: t.entered(TaskPhase.FAILED, 3), old, patient=True
            ),
        ):
            with pytest.raises(WriterBarred, match=r"is lost \(b has taken it\)"):
                attempt()
        assert old.is_lost
        assert not new.is_lost
    assert a.files.named(task.task_id) == after
    assert b.files.marks("c") == ()


def test_a_worker_that_lost_its_task_while_it_read_writes_nothing(a: Site, b: Site) -> None:
    add(a)
    b.files.all()

    def slowly(task: BrokerTask) -> BrokerTask:
        with b.files.working_on(TASK):
            return task.entered(TaskPhase.MOVING, 2)

    def slowly_marked(_: Marks) -> Marks:
        with b.files.working_on(TASK):
            return (mark(4, TASK),)

    for change in (
        lambda hold: a.files.change(TASK, slowly, hold),
        lambda hold: a.files.change_marks("c", slowly_marked, hold),
    ):
        with (
            a.files.working_on(TASK) as hold,
            pytest.raises(WriterBarred, match=r"is lost \(b has taken it\)"),
        ):
            change(hold)
    assert b.files.named(TASK).phase is TaskPhase.REQUESTED
    assert b.files.marks("c") == ()


def test_the_lease_is_kept_alive_by_a_thread(a: Site, store: S3Settings, tmp_path: Path) -> None:
    """By real time, as the only test: it ends as soon as the thread has written."""
    from executor.timing import Timing

    task = add(a)
    now_s = [0.0]
    wire = Host(store, Timing(), "thread")
    timing = Timing(now_s=lambda: 1e9, pause=lambda _: None, steady_s=lambda: now_s[0])
    archive = TaskArchive(wire.bucket, timing, holder="thread", renew_s=0.001)
    import threading

    renewed = threading.Event()
    with archive.working_on(task) as hold:
        wire.wire.fault = lambda _: renewed.set() if wire.wire.call == "PutObject" else None
        now_s[0] += 10.0
        assert renewed.wait(60.0)
        hold.need()
    assert not [t for t in threading.enumerate() if t.name == "task lease"]


# ---- objects that cannot be trusted


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda text: text[: len(text) // 2], "is not a plimsoll.task file"),
        (lambda text: text.replace('"brokers":[4]', '"brokers":[3]'), "checksum does not fit"),
        (lambda text: text.replace(f'"{SCHEMA_VERSION}"', '"2.0"'), "use a newer plimsoll"),
        (lambda text: "", "is not a plimsoll.task file"),
        (lambda text: "[]", "does not contain a JSON object"),
    ],
    ids=["torn", "edited", "newer", "empty", "no object"],
)
def test_an_object_that_cannot_be_trusted_is_named(
    a: Site, b: Site, store: S3Settings, harm: Callable[[str], str], words: str
) -> None:
    task = add(a)
    body = harm(a.files.path(TASK).read_text()).encode()
    put(store, f"tasks/c/{TASK}/task.json", body)
    for read in (
        b.files.all,
        lambda: b.files.named(TASK),
        lambda: enter(a.files, task, TaskPhase.MOVING),
        lambda: cancel(a.files, task, "bob", 2),
    ):
        with pytest.raises(ConfigError, match=words) as failed:
            read()
        assert f"s3://{BUCKET}/{store.prefix}tasks/c/{TASK}/task.json" in str(failed.value)
    assert local(b).all() == []


def test_an_object_under_another_name_is_not_that_task(a: Site, store: S3Settings) -> None:
    add(a)
    body = a.files.path(TASK).read_bytes()
    put(store, "tasks/c/remove-5/task.json", body)
    with pytest.raises(ConfigError, match="give the object its own name again"):
        a.files.all()


def test_objects_that_are_not_tasks_are_ignored(a: Site, b: Site, store: S3Settings) -> None:
    task = add(a)
    for name in ("README", "c/notes.txt", "c/../../evil/task.json", "c/UP CASE/task.json"):
        put(store, f"tasks/{name}", b"hello")
    assert b.files.all() == [task]


def test_fields_of_a_newer_minor_version_are_ignored(a: Site, b: Site, store: S3Settings) -> None:
    add(a)
    document = json.loads(a.files.path(TASK).read_text())
    document |= {"schema_version": "1.9", "colour": "red"}
    document["checksum"] = checksum_of(document)
    put(store, f"tasks/c/{TASK}/task.json", canonical(document))
    assert b.files.named(TASK).brokers == (4,)


def put(store: S3Settings, key: str, body: bytes) -> None:
    client(store).put_object(Bucket=BUCKET, Key=store.prefix + key, Body=body)


# ---- marks


def test_marks_of_another_host_hold_here(a: Site, b: Site, store: S3Settings) -> None:
    a.files.change_marks("c", lambda marks: marked(marks, [mark(4)]))
    assert keys(store) == ["tasks/c/broker-marks.json"]
    assert b.files.marks("c") == (mark(4),)
    b.files.change_marks("c", lambda marks: unmarked(marks, "c", [BrokerId(4)]))
    assert a.files.marks("c") == ()
    assert local(a).marks("c") == ()


def test_marks_of_clusters_are_kept_apart(a: Site, b: Site) -> None:
    a.files.change_marks("c", lambda marks: marked(marks, [mark(4)]))
    a.files.change_marks("d", lambda marks: marked(marks, [mark(5, cluster="d")]))
    assert b.files.marks("c") == (mark(4),)
    assert b.files.marks("d") == (mark(5, cluster="d"),)
    b.files.change_marks("c", lambda marks: ())
    assert b.files.marks("d") == (mark(5, cluster="d"),)


def test_marks_of_two_hosts_are_both_kept(a: Site, b: Site) -> None:
    def other() -> None:
        b.files.change_marks("c", lambda marks: marked(marks, [mark(5)]))

    a.before_put(other, "broker-marks.json")
    found = a.files.change_marks("c", lambda marks: marked(marks, [mark(4)]))
    assert found == (mark(4), mark(5)) == b.files.marks("c")


def test_marks_set_before_there_was_an_archive_are_archived(a: Site, b: Site) -> None:
    local(a).change_marks("c", lambda marks: marked(marks, [mark(4)]))
    a.files.change_marks("c", lambda marks: marked(marks, [mark(5)]))
    assert b.files.marks("c") == (mark(4), mark(5))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"broker":4', '"broker":3', "its checksum does not fit"),
        ('"1.1"', '"2.0"', "use a newer plimsoll"),
        ('"marks":', "", "is not a plimsoll.broker-marks file"),
    ],
)
def test_nothing_is_planned_on_archived_marks_that_cannot_be_trusted(
    a: Site, b: Site, store: S3Settings, old: str, new: str, words: str
) -> None:
    a.files.change_marks("c", lambda marks: marked(marks, [mark(4)]))
    text = (a.files.state_dir / "broker-marks.json").read_text()
    put(store, "tasks/c/broker-marks.json", text.replace(old, new).encode())
    watcher = MarkedBrokers(b.files.state_dir, b.files.mirror_marks)
    with pytest.raises(ConfigError, match=words):
        watcher("c", clusters.brokers(4))
    with pytest.raises(ConfigError, match=words):
        b.files.change_marks("c", lambda marks: marked(marks, [mark(5)]))


def test_marks_of_another_cluster_are_not_those_of_this(a: Site, store: S3Settings) -> None:
    a.files.change_marks("c", lambda marks: marked(marks, [mark(4)]))
    body = (a.files.state_dir / "broker-marks.json").read_bytes()
    put(store, "tasks/d/broker-marks.json", body)
    with pytest.raises(ConfigError, match="has marks of another cluster"):
        a.files.marks("d")


def test_a_watcher_sees_marks_of_another_host_within_half_a_minute(
    a: Site, b: Site, time: FakeTime
) -> None:
    watcher = MarkedBrokers(b.files.state_dir, b.files.mirror_marks, lambda: time.now_s)
    members = clusters.brokers(4)
    assert watcher("c", members) == members
    a.files.change_marks("c", lambda marks: marked(marks, [mark(4)]))
    calls = b.wire.calls
    time.now_s += REFRESH_S - 1.0
    assert watcher("c", members) == members
    assert b.wire.calls == calls
    time.now_s += 1.0
    assert watcher("c", members)[3].state is BrokerState.DRAINING


def test_a_watcher_plans_on_the_marks_it_knows_while_the_bucket_is_away(
    a: Site, b: Site, time: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    b.files.change_marks("c", lambda marks: marked(marks, [mark(4)]))
    b.away = True
    watcher = MarkedBrokers(b.files.state_dir, b.files.mirror_marks, lambda: time.now_s)
    for _ in range(3):
        assert watcher("c", clusters.brokers(4))[3].state is BrokerState.DRAINING
        time.now_s += REFRESH_S
    assert len(caplog.records) == 1
    b.away = False
    a.files.change_marks("c", lambda marks: ())
    assert watcher("c", clusters.brokers(4))[3].state is BrokerState.ALIVE


# ---- what a screen lists


def test_a_listing_has_the_tasks_and_the_workers_of_other_hosts(a: Site, b: Site) -> None:
    add(a)
    with a.files.working_on(TASK):
        (found,) = task_listing(b.files, "c").tasks
        assert (found.task.task_id, found.worker) == (TASK, "a")
    assert task_listing(b.files, "c").tasks[0].worker == ""


def test_a_listing_without_the_archive_says_that_it_has_what_the_host_knows(a: Site) -> None:
    add(a)
    a.away = True
    found = task_listing(a.files, "c")
    assert [of.task.task_id for of in found.tasks] == [TASK]
    assert found.warning.endswith(f"the tasks are as {a.files.folder} has them")
