"""Removals of a simulated cluster by several hosts, which have the archive in common."""

from contextlib import ExitStack, nullcontext
from pathlib import Path
from threading import Event

import pytest

from clients.s3 import S3Settings
from control.tasks import exclusion
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase
from control.tasks.task_cordons import cordon, cordon_notes, end_cordons
from control.tasks.task_rollback import TaskAwareExecutor
from control.tasks.task_runner import TaskRunner, cancel
from control.tasks.task_steps import RAN
from executor.journal.lease import Lease
from executor.run.operator_control import Steering
from model.errors import (
    ArchiveUnreachable,
    ConfigError,
    ExecutionStopped,
    GuardrailRefused,
    RightsMissing,
    WriterBarred,
)
from model.ids import BrokerId
from model.plan.plan import Plan
from model.run import MoveState, RunProgress
from model.snapshot.snapshot import BrokerState
from tests.control.tasks.test_continued_tasks import tasks_of
from tests.support.control.simulated_tasks import MB, SimulatedTask
from tests.support.executor.s3_server import CALL_S, Fault, FaultyClient, place
from tests.support.executor.simulated_runs import Killed

PLACES = [(4, 1), (1, 4), (2, 3)]
SLOW = 5_000.0 * MB
LEAST_PUTS = 20
"""Writes to the bucket of any removal: of the task, its plan, its marks, and its run."""


@pytest.fixture
def store(endpoint: str) -> S3Settings:
    return place(endpoint)


def first(folder: Path, store: S3Settings, **more: object) -> SimulatedTask:
    folder.mkdir(parents=True)
    return SimulatedTask(folder=folder, store=store, **{"places": PLACES, **more})  # type: ignore[arg-type]


def another(at: SimulatedTask, name: str = "b", **more: object) -> SimulatedTask:
    """Another host of the same cluster and archive, with an empty state folder."""
    folder = at.folder.with_name(f"{at.folder.name}-{name}")
    folder.mkdir()
    return SimulatedTask(
        folder=folder,
        places=at.places,
        store=at.store,
        name=name,
        shared=at.cluster,
        log_bytes=at.log_bytes,
        **more,  # type: ignore[arg-type]
    )


def wire(at: SimulatedTask) -> FaultyClient:
    assert at.host is not None
    return at.host.wire


def kill_at_put(at: SimulatedTask, number: int, fault: Fault) -> None:
    """Kill the host's process at its n-th write to the bucket, and at all later ones."""
    puts: list[str] = []

    def decide(_: int) -> Fault | None:
        if wire(at).call == "PutObject":
            puts.append(wire(at).key)
        elif len(puts) <= number:
            return None
        return fault if len(puts) > number else None

    wire(at).fault = decide


@pytest.mark.parametrize("fault", [Fault.KILLED, Fault.KILLED_AFTER], ids=["before", "after"])
@pytest.mark.slow
def test_killed_at_any_write_another_host_continues_to_the_end(
    tmp_path: Path, endpoint: str, fault: Fault
) -> None:
    for number in range(1000):
        a = first(tmp_path / f"{number}", place(endpoint))
        kill_at_put(a, number, fault)
        try:
            a.work()
        except Killed:
            pass
        else:
            assert number > LEAST_PUTS
            break
        b = another(a)
        (task,) = b.files.all() or [b.request()]
        if task.is_open:
            task = b.work(task)
        assert task.phase is TaskPhase.DONE
        assert 4 not in b.held
        assert b.states == {4: BrokerState.DRAINING}
        assert sum(plan.moves for plan in task.plans if plan.closed == RAN) <= len(PLACES)
        assert not any(b.cluster.topic_configs.values())
        wire(a).fault = lambda _: None
        assert a.files.all() == [task]


def test_a_task_that_waits_for_approval_is_continued_elsewhere(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store, approve=lambda _task, _plan: "")
    assert a.work().phase is TaskPhase.PLANNED
    asked: list[str] = []

    def approve(_task: BrokerTask, plan: Plan) -> str:
        asked.append(plan.hash)
        return "bob"

    b = another(a, approve=approve)
    task = b.work()
    assert task.phase is TaskPhase.DONE
    assert asked == [plan.plan_hash for plan in task.plans] == [a.files.all()[0].plans[0].plan_hash]
    assert task.plans[0].approved_by == "bob"


def test_a_task_stopped_while_it_waits_for_the_lease_waits_for_a_person(
    tmp_path: Path, store: S3Settings
) -> None:
    """`--auto` continued it: only runs that had begun noted who has stopped them."""
    a = first(tmp_path / "a", store)
    b = another(a, operation=Operation.DEMOTE)
    assert a.host is not None
    lease = Lease(a.host.bucket, a.cluster.timing, call_s=CALL_S, holder="a")
    b.steering.stop()
    with lease.held("simulated", Event()), pytest.raises(ExecutionStopped, match="waiting for the"):
        b.work()
    (task,) = b.files.all()
    assert (task.phase, task.is_open, task.stopped_by) == (TaskPhase.FAILED, True, "ada")
    assert tasks_of(a).next("simulated") is None
    b.steering = Steering()
    task = b.work(task)
    assert (task.phase, task.stopped_by) == (TaskPhase.DONE, "")


def test_of_two_requests_for_one_broker_one_succeeds(tmp_path: Path, store: S3Settings) -> None:
    """Both were recorded before either host could see the other's."""
    a = first(tmp_path / "a", store)
    b = another(a)
    mine = a.request()
    theirs = b.files.add("simulated", mine.operation, mine.brokers, "bob", mine.requested_at_ms + 1)
    a.approve = lambda _task, _plan: ""
    assert a.work(mine).phase is TaskPhase.PLANNED
    with pytest.raises(GuardrailRefused, match=f"task {mine.task_id} .* names broker 4, too"):
        b.work(theirs)
    failed = b.files.named(theirs.task_id)
    assert (failed.phase, failed.is_open) == (TaskPhase.FAILED, False)
    assert a.states == {4: BrokerState.EXCLUDED}
    a.approve = lambda _task, _plan: "ada"
    assert a.work(mine).phase is TaskPhase.DONE
    assert a.states == {4: BrokerState.DRAINING}


def test_requests_that_mark_at_the_same_moment_are_decided_by_one_write(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store, approve=lambda _task, _plan: "")
    b = another(a, approve=lambda _task, _plan: "")
    mine = a.request()
    theirs = b.files.add("simulated", mine.operation, mine.brokers, "bob", mine.requested_at_ms + 1)
    acted: list[BrokerTask] = []

    def fault(_: int) -> None:
        if not acted and wire(a).key.endswith("marks.json") and wire(a).call == "PutObject":
            acted.append(b.files.read(theirs.task_id))
            acted.append(b.work(theirs))

    wire(a).fault = fault
    with pytest.raises(GuardrailRefused, match=f"task {theirs.task_id} .* names broker 4, too"):
        a.work(mine)
    assert [task.phase for task in acted] == [TaskPhase.REQUESTED, TaskPhase.PLANNED]
    assert [task.is_open for task in a.files.all()] == [False, True]
    assert {m.task_id for m in a.files.marks("simulated")} == {theirs.task_id}


def test_a_finished_task_on_a_broker_hinders_no_later_one(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store)
    assert a.work().phase is TaskPhase.DONE
    b = another(a)
    again = b.request()
    assert b.work(again).phase is TaskPhase.DONE
    assert {m.task_id for m in a.files.marks("simulated")} == {again.task_id}


def test_a_cancel_on_another_host_stops_the_run(tmp_path: Path, store: S3Settings) -> None:
    a = first(tmp_path / "a", store, log_bytes=SLOW)
    b = another(a)

    def on_progress(progress: RunProgress) -> None:
        issued = any(move.issued_at_ms for move in progress.moves)
        if issued and not a.steering.stopping.is_set() and (task := b.files.all()[0]).is_open:
            cancel(b.files, task, "bob", 1)

    a.on_progress = on_progress
    task = a.work()
    assert (task.phase, task.note) == (TaskPhase.CANCELLED, "by bob")
    assert a.steering.stopping.is_set()
    assert a.states == {}
    assert b.files.marks("simulated") == ()
    assert not a.files.is_worked_on(task.task_id)


def test_a_cancel_that_comes_too_late_keeps_the_marks(tmp_path: Path, store: S3Settings) -> None:
    """The task is done by the time at which its marks are removed for the cancel."""
    a = first(tmp_path / "a", store, approve=lambda _task, _plan: "")
    b = another(a)
    task = a.work()
    a.approve = lambda _task, _plan: "ada"
    acted: list[BrokerTask] = []

    def fault(_: int) -> None:
        if not acted and wire(b).key.endswith("marks.json") and wire(b).call == "PutObject":
            acted.append(task)
            acted.append(a.work())

    wire(b).fault = fault
    with pytest.raises(ConfigError, match=f"task {task.task_id} is done; nothing is left to"):
        cancel(b.files, b.files.named(task.task_id), "bob", 1)
    assert [t.phase for t in acted] == [TaskPhase.PLANNED, TaskPhase.DONE]
    assert a.states == b.states == {4: BrokerState.DRAINING}


def test_a_worker_that_lost_its_task_stops_its_run_and_writes_nothing(
    tmp_path: Path, store: S3Settings
) -> None:
    """The lease was taken over while the process was suspended, and its run continued."""
    a = first(tmp_path / "a", store, log_bytes=SLOW)
    b = another(a)
    taken: list[BrokerTask] = []

    def on_progress(progress: RunProgress) -> None:
        if not taken and any(move.issued_at_ms for move in progress.moves):
            (task,) = b.files.all()
            taken.append(task)
            held.enter_context(b.files.working_on(task.task_id))

    a.on_progress = on_progress
    with ExitStack() as held:
        with pytest.raises(WriterBarred, match="b has taken it"):
            a.work()
        assert a.steering.stopping.is_set()
        assert [p.phase for p in b.files.all()[0].phases][-1] is TaskPhase.MOVING
    task = b.work()
    assert task.phase is TaskPhase.DONE
    assert 4 not in b.held


def test_two_hosts_do_not_work_on_one_task(tmp_path: Path, store: S3Settings) -> None:
    a = first(tmp_path / "a", store)
    b, task = another(a), a.request()
    b.files.all()
    with a.files.working_on(task.task_id) as hold:
        # The worker renews its lease whenever the other host looks.
        def fault(_: int) -> None:
            hold.keep()

        wire(b).fault = fault
        with pytest.raises(GuardrailRefused, match=f"a works on task {task.task_id}"):
            TaskRunner(task, b.parts()).run()
    assert b.files.all() == [task]


def test_a_task_that_ended_elsewhere_is_not_worked_on_again(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store)
    b, task = another(a), a.request()
    b.files.all()
    ended = a.work()
    assert ended.phase is TaskPhase.DONE
    a.files.change_marks("simulated", lambda _marks: ())
    assert TaskRunner(task, b.parts()).run() == ended == a.files.all()[0]
    assert a.states == {}


@pytest.mark.parametrize("seconds", [10.0, 25.0], ids=["shortly", "beyond the lease"])
def test_a_bucket_that_is_away_while_a_plan_is_kept_is_waited_for(
    tmp_path: Path, store: S3Settings, seconds: float
) -> None:
    a = first(tmp_path / "a", store)
    back_s: list[float] = []

    def approve(_task: object, _plan: object) -> str:
        back_s.append(a.cluster.timing.steady_s() + seconds)
        return "ada"

    def fault(_: int) -> Fault | None:
        away = back_s and a.cluster.timing.steady_s() < back_s[0]
        return Fault.AWAY if away else None

    a.approve, wire(a).fault = approve, fault
    assert a.work().phase is TaskPhase.DONE
    assert back_s


def test_a_bucket_that_stays_away_ends_the_work_and_another_host_continues(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store)

    def approve(_task: object, _plan: object) -> str:
        wire(a).fault = lambda _: Fault.AWAY
        return "ada"

    a.approve = approve
    with pytest.raises(ArchiveUnreachable):
        a.work()
    assert a.held[4] == 2
    b = another(a)
    (task,) = b.files.all()
    assert task.phase is TaskPhase.PLANNED
    assert b.work(task).phase is TaskPhase.DONE


def test_lost_progress_does_not_end_the_run(tmp_path: Path, store: S3Settings) -> None:
    a = first(tmp_path / "a", store, log_bytes=SLOW)
    dropped: list[str] = []

    def fault(_: int) -> Fault | None:
        if running and wire(a).key.endswith("task.json"):
            dropped.append(wire(a).key)
            return Fault.AWAY
        return None

    running: list[bool] = []

    def on_progress(progress: RunProgress) -> None:
        running[:] = [True] if any(not move.done_at_ms for move in progress.moves) else []

    a.on_progress, wire(a).fault = on_progress, fault
    assert a.work().phase is TaskPhase.DONE
    assert dropped


def test_without_the_bucket_nothing_begins(tmp_path: Path, store: S3Settings) -> None:
    a = first(tmp_path / "a", store)
    wire(a).fault = lambda _: Fault.AWAY
    with pytest.raises(ArchiveUnreachable):
        a.work()
    assert a.files.all() == []
    assert a.states == {}
    assert a.held[4] == 2


def test_a_stopped_run_is_continued_on_another_host(tmp_path: Path, store: S3Settings) -> None:
    places = [(4, 1), (1, 4), (2, 3), (4, 2), (3, 4)]
    a = first(tmp_path / "a", store, places=places)
    a.on_progress = lambda progress: (
        a.steering.stop() if any(m.done_at_ms for m in progress.moves) else None
    )
    assert a.work().phase is TaskPhase.MOVING
    assert a.held.get(4)
    b = another(a)
    task = b.work()
    assert task.phase is TaskPhase.DONE
    assert len(task.plans) == 1
    assert 4 not in b.held


# ---- cordons of another host

CORDON_PLACES = [(4, 1), (1, 4), (2, 3), (4, 2), (3, 4)]
DAY_S = 86_400.0
BROKER = BrokerId(4)


def excluded(at: SimulatedTask) -> None:
    """Exclude and cordon broker 4, with no run on the cluster."""
    exclusion.exclude(at.files, "simulated", [BROKER], by="ada", at_ms=1, reason="old disks")
    cordon(at.executor(), [BROKER], at.folder / "journal", "simulated", "ada", at.said.append)
    assert (at.states, at.cordons) == ({4: BrokerState.EXCLUDED}, {4: "*"})


def included(at: SimulatedTask) -> list[str]:
    """Include broker 4; what was said."""
    said: list[str] = []
    exclusion.include(
        at.executor(),
        at.files,
        at.folder / "journal",
        "simulated",
        [BROKER],
        by="bob",
        say=said.append,
    )
    return said


def killed_when_one_has_moved(at: SimulatedTask) -> None:
    def kill(progress: RunProgress) -> None:
        if progress.count(MoveState.DONE):
            raise Killed

    at.on_progress = kill
    with pytest.raises(Killed):
        at.work()
    assert at.cordons == {4: "*"}


def notes(at: SimulatedTask) -> list[str]:
    return cordon_notes(at.files, at.folder / "journal", "simulated")


def cancelled(at: SimulatedTask, *, connects: bool = True) -> list[str]:
    """Cancel the only task; what was said about its cordons."""
    said: list[str] = []
    (task,) = at.files.all()
    ended = cancel(at.files, task, "bob", 1)
    end_cordons(
        (lambda: nullcontext(at.executor())) if connects else None,
        ended,
        at.files,
        at.folder / "journal",
        "bob",
        said.append,
    )
    return said


def test_a_cancelled_task_ends_the_cordon_of_another_host(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES)
    killed_when_one_has_moved(a)
    a.cluster.advance(120.0)
    assert cancelled(another(a)) == ["broker 4 is no longer cordoned"]
    assert a.cordons == {}


def test_a_cordon_of_another_host_that_may_not_be_ended_is_named(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES)
    killed_when_one_has_moved(a)
    b = another(a)
    assert cancelled(b, connects=False) == [
        "broker 4 is still cordoned (changes are not allowed); plimsoll broker include 4 "
        "--allow-changes ends that"
    ]
    (note,) = notes(another(a, "c"))
    assert "plimsoll has cordoned broker 4, and nothing asks for that any longer" in note


def test_cordons_that_the_archive_does_not_tell_are_named(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES)
    killed_when_one_has_moved(a)
    b = another(a)
    (task,) = b.files.all()
    cancel(b.files, task, "bob", 1)
    wire(b).fault = lambda _: Fault.AWAY
    said: list[str] = []
    end_cordons(None, task, b.files, b.folder / "journal", "bob", said.append)
    (words,) = said
    assert words.startswith("broker 4 may still be cordoned (")
    assert words.endswith("; plimsoll broker include 4 --allow-changes ends that")
    (note,) = notes(b)
    assert note.startswith("Cordons that other hosts have set are unknown: ")
    with pytest.raises(ArchiveUnreachable):
        included(b)
    assert a.cordons == {4: "*"}


def test_a_cordon_is_ended_elsewhere_where_no_run_was(tmp_path: Path, store: S3Settings) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES)
    excluded(a)
    a.cluster.advance(60.0)
    assert included(another(a)) == ["broker 4 is no longer cordoned"]
    assert (a.states, a.cordons) == ({}, {})
    # The first host learns of the end, and a third that nothing is left.
    assert notes(a) == notes(another(a, "c")) == []


@pytest.mark.parametrize("days", [0.5, 2.0])
def test_the_cordon_of_a_removal_is_ended_elsewhere_days_later(
    tmp_path: Path, store: S3Settings, days: float
) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES)
    assert a.work().phase is TaskPhase.DONE
    a.cluster.advance(days * DAY_S)
    assert included(another(a)) == ["broker 4 is no longer cordoned"]
    assert (a.states, a.cordons) == ({}, {})


def test_a_removal_can_be_rolled_back_elsewhere_days_later(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES)
    assert a.work().phase is TaskPhase.DONE
    a.cluster.advance(2 * DAY_S)
    b = another(a)
    journals = b.folder / "journal"
    executor = TaskAwareExecutor(
        b.executor(),
        b.files,
        journals,
        now_ms=lambda: int(1000 * b.cluster.now_s),
        say=b.said.append,
    )
    plan, _ = executor.plan_rollback(journals, None)
    assert "with the rollback, the cordon of broker 4 ends" in executor.notes(plan)
    # The checks before a run refuse moves onto brokers that others have cordoned.
    assert len(executor.dry_run(plan, journals)) >= len(plan.moves) == 4


def test_leaders_return_elsewhere_days_and_runs_later(tmp_path: Path, store: S3Settings) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES, operation=Operation.MAINTENANCE)
    assert a.work().phase is TaskPhase.DONE
    assert BROKER not in {p.leader for p in a.cluster.partitions.values()}
    a.cluster.advance(2 * DAY_S)
    a.another_run()
    b = another(a, operation=Operation.MAINTENANCE_OFF)
    task = b.work()
    assert (task.phase, [plan.moves for plan in task.plans]) == (TaskPhase.DONE, [2])
    assert [tuple(p.replicas) for _, p in sorted(b.cluster.partitions.items())] == CORDON_PLACES


def test_a_cordon_from_before_the_task_stays_when_it_is_given_up_elsewhere(
    tmp_path: Path, store: S3Settings
) -> None:
    a = first(tmp_path / "a", store, places=CORDON_PLACES)
    excluded(a)
    a.cluster.advance(2 * DAY_S)
    b = another(a)
    b.faults.denied.add("reassign")
    with pytest.raises(RightsMissing):
        b.work()
    (task,) = b.files.all()
    assert task.cordoned == (BROKER,)
    assert cancelled(b) == ["broker 4 stays cordoned, as it is excluded (old disks, by ada)"]
    assert (b.states, b.cordons) == ({4: BrokerState.EXCLUDED}, {4: "*"})
