"""Removals on a simulated cluster, killed at every change, cancelled, and refused."""

import errno
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from control.tasks.broker_task import TaskPhase
from control.tasks.task_files import TaskFiles
from control.tasks.task_parts import NoPlan
from control.tasks.task_runner import TaskRunner, cancel
from control.tasks.task_steps import OUTDATED, RAN
from executor.executor import Executor
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from lab.simulated_cluster.cluster_state import CORDONED
from lab.simulated_cluster.faults import Faults
from model.errors import (
    ConfigError,
    ExecutionStopped,
    GuardrailRefused,
    PlimsollError,
    RightsMissing,
)
from model.goals.goals import Budgets, Goals, Pin
from model.ids import BrokerId, PartitionId
from model.names import Names
from model.plan.plan import PlanStatus
from model.run import MoveState, RunProgress
from model.snapshot.snapshot import BrokerState, StorageKind
from tests.support.control.simulated_tasks import MB, TOPIC, SimulatedTask, killed_tasks
from tests.support.executor.simulated_runs import Killed

PLACES = [(4, 1), (1, 4), (2, 3), (4, 2), (3, 4)]
ALONE = [(4,), (1,), (4,), (2,)]

STORAGE = pytest.mark.parametrize(
    ("storage", "places"),
    [(StorageKind.REPLICATED, PLACES), (StorageKind.TIERED, PLACES), (StorageKind.SHARED, ALONE)],
    ids=["replicated", "tiered", "shared"],
)


def site(
    folder: Path, storage: StorageKind = StorageKind.REPLICATED, **more: object
) -> SimulatedTask:
    places = ALONE if storage is StorageKind.SHARED else PLACES
    return SimulatedTask(folder=folder, **{"places": places, "storage": storage, **more})  # type: ignore[arg-type]


@STORAGE
def test_a_removal_empties_the_broker_with_the_fewest_bytes(
    tmp_path: Path, storage: StorageKind, places: list[tuple[int, ...]]
) -> None:
    at = site(tmp_path, storage, places=places)
    task = at.work()
    assert [p.phase for p in task.phases] == [
        *(TaskPhase.REQUESTED, TaskPhase.PLANNED, TaskPhase.APPROVED, TaskPhase.MOVING),
        *(TaskPhase.VERIFIED, TaskPhase.DONE),
    ]
    (plan,) = task.plans
    assert plan.moves == plan.replicas == sum(4 in place for place in places)
    assert plan.bytes_to_copy == plan.least_bytes
    assert plan.closed == RAN
    assert 4 not in at.held
    assert at.states == {4: BrokerState.DRAINING}


@pytest.mark.parametrize(
    ("storage", "places"),
    [(StorageKind.REPLICATED, PLACES), (StorageKind.SHARED, ALONE)],
    ids=["replicated", "shared"],
)
@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_killed_at_any_change_the_removal_is_continued_to_its_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    storage: StorageKind,
    places: list[tuple[int, ...]],
    made: bool,
) -> None:
    for cut in killed_tasks(tmp_path, partial(site, storage=storage), monkeypatch, made=made):
        task = cut.continued()
        assert task.phase is TaskPhase.DONE
        assert [t.task_id for t in cut.files.all()] == [task.task_id]
        assert 4 not in cut.held
        assert sum(cut.held.values()) == sum(map(len, places))
        assert cut.states == {4: BrokerState.DRAINING}
        assert cut.cordons == {4: "*"}
        assert not any(cut.cluster.topic_configs.values())
        # Each replica left the broker once: no continued removal moves anything twice.
        assert sum(plan.moves for plan in task.plans if plan.closed == RAN) <= len(places)


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_killed_under_a_throttle_nothing_stays_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    limits = RunLimits(moves_in_flight=2, throttle_bytes_per_s=50 * MB)
    for cut in killed_tasks(tmp_path, partial(site, limits=limits), monkeypatch, made=made):
        (task,) = cut.files.all() or [cut.request()]
        if task.is_open:
            assert cut.work(task).phase is TaskPhase.DONE
        assert 4 not in cut.held
        assert {b.id: b.configs for b in cut.cluster.brokers.values() if b.configs} == {
            4: {CORDONED: "*"}
        }
        assert not any(cut.cluster.topic_configs.values())


def test_a_removal_of_an_empty_broker_is_done_at_once(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(1, 2), (2, 3)])
    task = at.work()
    assert task.phase is TaskPhase.DONE
    assert task.plans == ()
    assert at.states == {4: BrokerState.DRAINING}


def test_a_task_that_is_done_does_not_fail_when_its_folder_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last change was made, though it was reported as failed."""
    at = site(tmp_path)

    def sync(_folder: Path) -> None:
        if any(task.phase is TaskPhase.DONE for task in at.files.all()):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("model.files.sync_folder", sync)
    with pytest.raises(ConfigError, match="Input/output error"):
        at.work()
    (task,) = at.files.all()
    assert task.phase is TaskPhase.DONE
    assert at.states == {4: BrokerState.DRAINING}


def test_a_failed_run_leaves_its_last_progress(tmp_path: Path) -> None:
    """What was made within 5 s of the last write was not shown."""
    at = site(tmp_path, limits=RunLimits(moves_in_flight=1))
    made = 0

    def on_progress(progress: RunProgress) -> None:
        nonlocal made
        made = progress.count(MoveState.DONE)
        if made == 2:
            at.faults.denied.add("reassign")

    at.on_progress = on_progress
    with pytest.raises(PlimsollError):
        at.work()
    (task,) = at.files.all()
    assert task.phase is TaskPhase.FAILED
    assert task.progress is not None
    assert task.progress.moves_done == made >= 2


def test_a_stopped_run_waits_to_be_resumed(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.on_progress = lambda progress: (
        at.steering.stop() if any(m.done_at_ms for m in progress.moves) else None
    )
    task = at.work()
    assert task.phase is TaskPhase.MOVING
    assert task.is_open
    assert "plimsoll task resume" in task.note
    assert at.held.get(4)
    at.steering, at.on_progress = Steering(), lambda _progress: None
    task = at.work()
    assert task.phase is TaskPhase.DONE
    assert len(task.plans) == 1
    assert 4 not in at.held


def test_a_cancelled_removal_stops_its_run_and_lifts_the_exclusion(tmp_path: Path) -> None:
    at = site(tmp_path, log_bytes=5_000.0 * MB)

    def on_progress(progress: RunProgress) -> None:
        task = at.files.all()[0]
        if any(m.issued_at_ms for m in progress.moves) and task.is_open:
            cancel(at.files, task, "bob", 1)

    at.on_progress = on_progress
    task = at.work()
    assert (task.phase, task.note) == (TaskPhase.CANCELLED, "by bob")
    assert at.steering.stopping.is_set()
    assert 0 < at.held[4] < 4
    assert at.states == {}
    with pytest.raises(ConfigError, match="is cancelled; nothing is left to cancel"):
        cancel(at.files, task, "bob", 2)


def test_a_plan_that_is_not_approved_waits_and_nothing_moves(tmp_path: Path) -> None:
    at = site(tmp_path, approve=lambda _task, _plan: "")
    task = at.work()
    assert task.phase is TaskPhase.PLANNED
    assert at.held[4] == 4
    assert at.states == {4: BrokerState.EXCLUDED}


def test_a_plan_outdated_while_it_waited_is_made_again(tmp_path: Path) -> None:
    at = site(tmp_path)
    asked: list[object] = []

    def approve(_task: object, plan: object) -> str:
        if not asked:
            at.cluster.reassign(PartitionId(TOPIC, 0), [BrokerId(3), BrokerId(1)])
            at.cluster.advance(60.0)
        asked.append(plan)
        return "ada"

    at.approve = approve
    task = at.work()
    assert task.phase is TaskPhase.DONE
    assert [plan.closed for plan in task.plans] == [OUTDATED, RAN]
    assert len(asked) == 2
    assert 4 not in at.held


def test_a_plan_outdated_while_its_run_was_stopped_is_made_again(tmp_path: Path) -> None:
    """Seed 1247 of `make fire`: a broker flapped, and another replica leads since."""
    at = site(tmp_path, limits=RunLimits(moves_in_flight=1))

    def on_progress(progress: RunProgress) -> None:
        if any(m.done_at_ms for m in progress.moves):
            at.steering.stop()

    at.on_progress = on_progress
    task = at.work()
    assert task.phase is TaskPhase.MOVING
    (run,) = at.executor().runs(tmp_path / "journal", task.cluster_id)
    waiting = next(m.move for m in run.moves.values() if m.state is MoveState.PLANNED)
    partition = at.cluster.partitions[waiting.id]
    partition.leader = next(b for b in partition.replicas if b != partition.leader)
    at.on_progress, at.steering = lambda _: None, Steering()
    task = at.work(task)
    assert task.phase is TaskPhase.DONE
    assert [plan.closed for plan in task.plans] == [OUTDATED, RAN]
    assert 4 not in at.held


def test_a_topic_deleted_halfway_is_left_out(tmp_path: Path) -> None:
    at = site(tmp_path)
    gone = PartitionId(TOPIC, 4)

    def on_progress(progress: RunProgress) -> None:
        if any(m.done_at_ms for m in progress.moves):
            at.cluster.partitions.pop(gone, None)

    at.limits = RunLimits(moves_in_flight=1)
    at.on_progress = on_progress
    assert at.work().phase is TaskPhase.DONE
    assert 4 not in at.held


def test_a_partition_created_on_the_broker_meanwhile_moves_by_another_plan(tmp_path: Path) -> None:
    at = site(tmp_path)

    def on_progress(progress: RunProgress) -> None:
        new = at.partition(0, (4, 3), "payments")
        if any(m.done_at_ms for m in progress.moves):
            at.cluster.partitions.setdefault(new.id, new)

    at.on_progress = on_progress
    task = at.work()
    assert task.phase is TaskPhase.DONE
    assert [plan.closed for plan in task.plans] == [RAN, RAN]
    assert task.plans[-1].moves == 1
    assert 4 not in at.held


def test_missing_rights_fail_the_task_which_can_be_resumed(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.faults.denied.add("reassign")
    with pytest.raises(PlimsollError) as failed:
        at.work()
    (task,) = at.files.all()
    assert task.phase is TaskPhase.FAILED
    assert task.note == str(failed.value)
    assert task.is_open
    at.faults.denied.clear()
    assert at.work().phase is TaskPhase.DONE


def test_an_impossible_removal_leaves_neither_task_nor_mark_open(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4), (4, 1, 2)], brokers=4)
    at.cluster.kill(BrokerId(3))
    with pytest.raises(GuardrailRefused, match="only 2 brokers that may take them would remain"):
        at.work()
    (task,) = at.files.all()
    assert task.phase is TaskPhase.FAILED
    assert not task.is_open
    assert at.states == {}


def test_a_plan_without_solution_names_the_reason(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(4, 1), (4, 2)], goals=_pinned())
    with pytest.raises(NoPlan, match="no plan empties broker 4: ") as none:
        at.work()
    assert none.value.status is PlanStatus.INFEASIBLE
    assert at.states == {}


def _pinned() -> Goals:
    pin = Pin(topics=Names(exact=(TOPIC,)), brokers=(BrokerId(1), BrokerId(4)))
    return Goals(pins=(pin,))


def test_two_processes_do_not_work_on_one_task(tmp_path: Path) -> None:
    at = site(tmp_path)
    task = at.request()
    with (
        TaskFiles(tmp_path).working_on(task.task_id),
        pytest.raises(GuardrailRefused, match="another plimsoll works on task"),
    ):
        TaskRunner(task, at.parts()).run()
    assert at.held[4] == 4


def test_of_two_requests_for_one_broker_one_succeeds(tmp_path: Path) -> None:
    """Both were recorded before either process could see the other's."""
    at = site(tmp_path, approve=lambda _task, _plan: "")
    mine, theirs = at.request(), at.request()
    assert at.work(mine).phase is TaskPhase.PLANNED
    with pytest.raises(GuardrailRefused, match=f"task {mine.task_id} .* names broker 4, too"):
        at.work(theirs)
    failed = at.files.read(theirs.task_id)
    assert (failed.phase, failed.is_open) == (TaskPhase.FAILED, False)
    assert at.states == {4: BrokerState.EXCLUDED}


def test_a_task_of_another_cluster_is_not_worked_on(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.cluster.cluster_id = "another"
    at.request()
    with pytest.raises(ConfigError, match="is about the cluster simulated, and this is another"):
        at.work()
    assert at.held[4] == 4


def test_a_removal_is_rolled_back_run_by_run(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.work()
    executor = at.executor()
    plan, left = executor.plan_rollback(tmp_path / "journal", None)
    assert left == []
    executor.execute(
        plan, journal_dir=tmp_path / "journal", observe=lambda _: None, steering=Steering()
    )
    found = {pid.partition: tuple(p.replicas) for pid, p in at.cluster.partitions.items()}
    assert found == dict(enumerate(PLACES))
    # The cooldown that keeps plans from moving to and fro does not bind a new request.
    assert at.work().phase is TaskPhase.DONE
    assert 4 not in at.held


def test_a_removal_beyond_the_budgets_takes_several_plans(tmp_path: Path) -> None:
    at = site(tmp_path, goals=Goals(budgets=Budgets(replica_moves=3)))
    task = at.work()
    assert task.phase is TaskPhase.DONE
    assert [plan.moves for plan in task.plans] == [3, 1]
    assert 4 not in at.held


def test_a_run_that_moves_nothing_ends_the_task_with_the_reason(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.faults.refusals["reassign"] = "the policy forbids it"
    with pytest.raises(ExecutionStopped) as stopped:
        at.work()
    (task,) = at.files.all()
    assert task.phase is TaskPhase.FAILED
    assert task.is_open
    assert task.note == str(stopped.value)
    assert "4 partitions still on broker 4 (orders-0, " in task.note
    assert "the policy forbids it" in task.note


@pytest.mark.parametrize("stale", [1, 4], ids=["of some partitions", "of all partitions"])
def test_a_broker_that_learns_of_moves_late_does_not_fail_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stale: int
) -> None:
    """Brokers answer from their own metadata, which may be older than the controller's."""
    seen: list[dict[PartitionId, tuple[BrokerId, ...]]] = []
    shipped = Executor.replicas_on

    def late(self: Executor, brokers: Collection[BrokerId]) -> Any:
        seen.append(shipped(self, brokers))
        return dict([*seen[0].items()][:stale]) if len(seen) == 2 else seen[-1]

    monkeypatch.setattr(Executor, "replicas_on", late)
    at = site(tmp_path)
    task = at.work()
    assert len(seen) > 2
    assert (len(seen[0]), len(seen[1])) == (4, 0)
    assert (task.phase, len(task.plans)) == (TaskPhase.DONE, 1)


def test_a_run_that_a_crash_left_without_a_record_begins_again(tmp_path: Path) -> None:
    """Power was lost before its first record had reached the disk, and nothing was sent."""
    at = site(tmp_path)

    def killed(call: str, *, made: bool) -> None:
        del made
        if call == "reassign":
            raise Killed

    at.faults.on_call = killed
    with pytest.raises(Killed):
        at.work()
    (plan,) = at.files.all()[0].plans
    (journal,) = (tmp_path / "journal").glob(f"*-{plan.plan_hash[:8]}.jsonl")
    journal.write_bytes(b"")
    at.faults = Faults()
    assert at.continued().phase is TaskPhase.DONE
    assert 4 not in at.held


def test_rights_are_named(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.faults.denied.add("partitions")
    with pytest.raises(RightsMissing):
        at.work()
