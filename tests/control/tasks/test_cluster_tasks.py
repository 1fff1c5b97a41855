"""Tasks on log directories, topics and the whole cluster, killed, continued and refused."""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from control.tasks.broker_task import BrokerTask, Operation, TaskPhase
from control.tasks.removal import refuse_contradictions
from control.tasks.task_parts import NoPlan
from control.tasks.task_request import TaskRequest, requested_task
from control.tasks.task_steps import RAN
from executor.timing import RunLimits
from model.errors import ExecutionStopped, GuardrailRefused, RightsMissing
from model.ids import BrokerId, PartitionId, TopicName
from model.run import MoveState, RunProgress, RunState
from tests.support.control.simulated_disks import SimulatedDisks
from tests.support.control.simulated_tasks import TOPIC, killed_tasks
from tests.support.executor.simulated_runs import Killed

PLACES = [(1, 2), (2, 3), (1, 3), (4, 1), (2, 4)]
LIES = {(0, 1): "/a", (2, 1): "/a", (3, 1): "/b"}
OTHER = TopicName("returns")
NOW_MS = 1_800_000_000_000
LEAST = 7
"""Changes of any of these tasks: of the cluster, and of the files of tasks."""


@dataclass(slots=True, kw_only=True)
class ClusterTask(SimulatedDisks):
    """A task that names no broker, or directories of one."""

    topics: tuple[TopicName, ...] = ()
    replicas: int | None = None
    paths: tuple[str, ...] = ()

    def requested(self) -> BrokerTask:
        return BrokerTask.requested(
            f"{self.operation}-new",
            "simulated",
            self.operation,
            tuple(map(BrokerId, self.remove)),
            by="ada",
            ms=int(1000 * self.cluster.now_s),
            paths=self.paths,
            topics=self.topics,
            replicas=self.replicas,
        )

    def request(self) -> BrokerTask:
        return self.files.store(self.requested())


def replicas_task(folder: Path, replicas: int = 3) -> ClusterTask:
    return ClusterTask(
        folder=folder,
        # With more moves, the proof of the order of waves takes seconds.
        places=PLACES[:2],
        remove=(),
        operation=Operation.SET_REPLICAS,
        topics=(TOPIC,),
        replicas=replicas,
    )


def fewer_replicas_task(folder: Path) -> ClusterTask:
    found = replicas_task(folder)
    found.replicas = 1
    return found


def disk_task(folder: Path) -> ClusterTask:
    return ClusterTask(
        folder=folder,
        places=PLACES,
        lies=LIES,
        remove=(1,),
        operation=Operation.DISK_REMOVE,
        paths=("/a",),
    )


def repair_task(folder: Path) -> ClusterTask:
    found = ClusterTask(
        folder=folder, places=PLACES, lies=LIES, remove=(), operation=Operation.REPAIR
    )
    found.cluster.fail_dir(BrokerId(1), "/a")
    return found


def heal_task(folder: Path) -> ClusterTask:
    found = repair_task(folder)
    found.operation = Operation.DISK_HEAL
    return found


def is_as_requested(at: ClusterTask) -> bool:
    if at.operation is Operation.SET_REPLICAS:
        return {len(held) for held in at.lists} == {at.replicas}
    return "/a" not in at.where(1)


# ---- killed


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "make", [replicas_task, fewer_replicas_task, disk_task, heal_task, repair_task]
)
@pytest.mark.slow
def test_killed_at_any_change_another_process_completes_the_task(
    make: Callable[[Path], ClusterTask], made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in killed_tasks(tmp_path, make, monkeypatch, made=made, least=LEAST):
        at.cluster.advance(60.0)
        task = at.continued()
        assert task.phase is TaskPhase.DONE
        assert isinstance(at, ClusterTask)
        assert is_as_requested(at)
        plans = [plan for plan in task.plans if plan.approved_at_ms is not None]
        run_hashes = {
            run.plan.hash for run in at.executor().runs(at.folder / "journal", "simulated")
        }
        assert run_hashes <= {plan.plan_hash for plan in plans}


# ---- bad input


def test_a_topic_that_is_deleted_halfway_leaves_the_others_to_be_done(tmp_path: Path) -> None:
    at = replicas_task(tmp_path)
    second = at.partition(0, (1, 2), OTHER)
    at.cluster.partitions[second.id] = second
    at.topics = (TOPIC, OTHER)
    at.approve = lambda _task, _plan: ""
    assert at.work().phase is TaskPhase.PLANNED
    del at.cluster.partitions[PartitionId(OTHER, 0)]
    at.approve = lambda _task, _plan: "ada"
    assert at.work().phase is TaskPhase.DONE
    assert {len(held) for held in at.lists} == {3}
    assert any("returns no longer exists" in said for said in at.said)


def test_a_topic_deleted_before_a_run_is_resumed_is_skipped(tmp_path: Path) -> None:
    """The first attempt to resume stopped there, and moved nothing."""
    at = replicas_task(tmp_path)
    second = at.partition(0, (1, 2), OTHER)
    at.cluster.partitions[second.id] = second
    at.topics = (TOPIC, OTHER)
    at.faults.denied.add("reassign")
    with pytest.raises(RightsMissing):
        at.work()
    at.faults.denied.clear()
    del at.cluster.partitions[second.id]
    at.cluster.advance(60.0)
    notes: list[str] = []
    at.on_progress = lambda progress: notes.extend(m.note for m in progress.moves if m.note)
    task = at.work()
    assert (task.phase, [plan.closed for plan in task.plans]) == (TaskPhase.DONE, [RAN])
    assert {len(held) for held in at.lists} == {3}
    assert "returns-0 no longer exists" in notes
    assert "returns no longer exists" in at.said
    (reason,) = [said for said in at.said if said.startswith("its last run: ")]
    assert "1 of 3 moves could not be made, the first of returns-0" in reason


def test_a_task_whose_topics_are_all_deleted_fails_and_says_so(tmp_path: Path) -> None:
    at = replicas_task(tmp_path)
    task = at.request()
    at.cluster.partitions.clear()
    with pytest.raises(ExecutionStopped, match="orders no longer exists; cancel the task"):
        at.work(task)
    assert at.files.read(task.task_id).phase is TaskPhase.FAILED
    assert not list(tmp_path.glob("journal/*"))


def test_partitions_that_cannot_be_healed_are_named_and_the_task_stays_open(tmp_path: Path) -> None:
    at = heal_task(tmp_path)
    lone = at.partition(0, (1,), "lone")
    at.cluster.partitions[lone.id] = lone
    lone.dirs[BrokerId(1)] = "/a"
    at.cluster.fail_dir(BrokerId(1), "/a")
    with pytest.raises(NoPlan, match=r"lone-0.* without a leader"):
        at.work()
    (task,) = at.files.all()
    assert task.phase is TaskPhase.FAILED
    assert task.is_open


@pytest.mark.parametrize("killed", [False, True])
def test_replicas_of_a_broker_that_returns_halfway_stay_where_they_have_not_moved(
    tmp_path: Path, killed: bool
) -> None:
    """A run that skips them has done all it should, also if another process resumes it."""
    places = [(4, 1), (2, 4), (4, 3)]
    at = ClusterTask(
        folder=tmp_path,
        places=places,
        racks="abcd",
        remove=(),
        operation=Operation.REPAIR,
        limits=RunLimits(moves_in_flight=1),
    )
    # So that one is skipped while another is still copied.
    for size, partition in enumerate(at.cluster.partitions.values(), 1):
        partition.log_bytes *= 20 * size
    at.cluster.kill(BrokerId(4))
    at.cluster.advance(30.0)

    def on_progress(progress: RunProgress) -> None:
        broker = at.cluster.brokers[BrokerId(4)]
        if not broker.alive and any(move.done_at_ms for move in progress.moves):
            at.cluster.revive(BrokerId(4))
        if killed and any(move.state is MoveState.DROPPED for move in progress.moves):
            raise Killed

    at.on_progress = on_progress
    if killed:
        with pytest.raises(Killed):
            at.work()
        killed = False
    task = at.continued()
    assert (task.phase, len(task.plans)) == (TaskPhase.DONE, 1)
    (run,) = at.executor().runs(tmp_path / "journal", "simulated")
    assert run.state is RunState.DONE
    assert re.search("of 3 moves not needed, .* broker 4 has returned", run.reason)
    left = [before for before, now in zip(places, at.lists, strict=True) if 4 not in now]
    assert 0 < len(left) < len(places)
    assert [{*now} for now in at.lists if 4 in now] == [{*p} for p in places if p not in left]


# ---- contradictions


def asked(at: ClusterTask) -> TaskRequest:
    task = at.requested()
    fields = {f.name for f in dataclasses.fields(TaskRequest)} - {"by", "at_ms"}
    given = {name: getattr(task, name) for name in fields}
    return TaskRequest(**given, by="bob", at_ms=NOW_MS)


@pytest.mark.parametrize(
    ("first", "second", "about"),
    [
        (replicas_task, lambda f: replicas_task(f, 1), "is about topic orders, too"),
        (heal_task, repair_task, "is about the same repairs, too"),
        (disk_task, lambda f: _removal(f, 1), "names broker 1, too"),
    ],
    ids=["factors", "repairs", "brokers"],
)
def test_contradictory_requests_are_refused(
    first: Callable[[Path], ClusterTask],
    second: Callable[[Path], ClusterTask],
    about: str,
    tmp_path: Path,
) -> None:
    at = first(tmp_path)
    task, other = at.request(), second(tmp_path)
    with pytest.raises(GuardrailRefused, match=about) as refused:
        requested_task(at.files, at.snapshot(), at.goals, asked(other))
    assert f"plimsoll task cancel {task.task_id}" in str(refused.value)


def _removal(folder: Path, broker: int) -> ClusterTask:
    found = disk_task(folder)
    found.operation, found.remove, found.paths = Operation.REMOVE, (broker,), ()
    return found


def test_the_same_request_again_continues_the_open_task(tmp_path: Path) -> None:
    at = replicas_task(tmp_path)
    task = at.request()
    assert requested_task(at.files, at.snapshot(), at.goals, asked(at)) == (task, True)


def test_of_two_tasks_requested_at_once_none_starts_unseen(tmp_path: Path) -> None:
    at = replicas_task(tmp_path)
    at.request()
    theirs = at.files.store(replicas_task(tmp_path, 1).requested())
    with pytest.raises(GuardrailRefused, match="is about topic orders, too"):
        at.work(theirs)
    assert not at.files.read(theirs.task_id).is_open
    assert {len(held) for held in at.lists} == {2}


def test_tasks_on_other_topics_and_brokers_do_not_contradict(tmp_path: Path) -> None:
    tasks = [make(tmp_path).request() for make in (replicas_task, disk_task, repair_task)]
    for task in tasks:
        refuse_contradictions(tasks, task)


def test_nothing_is_planned_for_a_request_that_names_nothing(tmp_path: Path) -> None:
    at = replicas_task(tmp_path)
    at.topics = ()
    with pytest.raises(ExecutionStopped, match="names no topics"):
        at.work()
