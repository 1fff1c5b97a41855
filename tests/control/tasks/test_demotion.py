"""Demotions on a simulated cluster: leaders leave, stay away, and return."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from control.planning.plan_needs import Reason, plan_needs
from control.tasks.broker_marks import BrokerMark
from control.tasks.broker_task import BrokerTask, Operation, PhaseChange, TaskPhase
from control.tasks.demotion import ENDS, demotions, refuse_undemoted
from control.tasks.task_runner import TaskRunner
from control.tasks.task_steps import RAN
from executor.journal import run_history
from model.errors import GuardrailRefused
from model.evaluate import evaluate
from model.goals.goals import Budgets, Goals
from model.ids import BrokerId, PartitionId
from model.plan.plan import VERSION_WITH_DEMOTION
from model.snapshot.snapshot import BrokerState
from solver.solve import solve
from tests.support.control.simulated_tasks import TOPIC, WORK, SimulatedTask, killed_tasks

PLACES = [(4, 1), (1, 4), (2, 3), (4, 2), (3, 4), (4, 3)]


def site(folder: Path, **more: object) -> SimulatedTask:
    chosen = {"operation": Operation.DEMOTE, "places": PLACES, **more}
    return SimulatedTask(folder=folder, **chosen)  # type: ignore[arg-type]


def ended(at: SimulatedTask, operation: Operation = Operation.UNDEMOTE) -> BrokerTask:
    """Undo a demotion in a new process."""
    at.operation = operation
    return at.work()


def leaders(at: SimulatedTask) -> dict[int, int]:
    return {pid.partition: int(p.leader) for pid, p in sorted(at.cluster.partitions.items())}


def lists(at: SimulatedTask) -> dict[int, tuple[int, ...]]:
    found = sorted(at.cluster.partitions.items())
    return {pid.partition: tuple(map(int, p.replicas)) for pid, p in found}


def moved_nothing(at: SimulatedTask, places: Mapping[int, tuple[int, ...]]) -> bool:
    return {n: {*held} for n, held in lists(at).items()} == {n: {*p} for n, p in places.items()}


@pytest.mark.parametrize(
    ("operation", "state"),
    [(Operation.DEMOTE, BrokerState.DEMOTED), (Operation.MAINTENANCE, BrokerState.MAINTENANCE)],
)
def test_a_demoted_broker_leads_nothing_and_prefers_nothing(
    tmp_path: Path, operation: Operation, state: BrokerState
) -> None:
    at = site(tmp_path, operation=operation)
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    (plan,) = task.plans
    assert (plan.moves, plan.bytes_to_copy, plan.closed) == (3, 0, RAN)
    assert 4 not in leaders(at).values()
    assert 4 not in {held[0] for held in lists(at).values()}
    assert leaders(at) == {n: held[0] for n, held in lists(at).items()}
    assert moved_nothing(at, dict(enumerate(PLACES)))
    assert at.states == {4: state}
    # Those that broker 4 did not lead keep list and leader.
    assert {n: lists(at)[n] for n in (1, 2, 4)} == {1: (1, 4), 2: (2, 3), 4: (3, 4)}


def test_a_partition_led_elsewhere_gets_another_order_alone(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.cluster.partitions[PartitionId(TOPIC, 0)].leader = BrokerId(1)
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    assert lists(at)[0] == (1, 4)
    kept = at.files.read_plan(task, task.plans[0].plan_hash)
    (ordered,) = [m for m in kept.moves if m.partition == 0]
    assert (ordered.leader_before, ordered.leader_after, ordered.gain) == (1, 1, 0.0)
    assert kept.leader_changes == 2


def test_a_demotion_that_only_changes_orders_is_planned(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(4, 1), (1, 4), (2, 3)])
    at.cluster.partitions[PartitionId(TOPIC, 0)].leader = BrokerId(1)
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    assert [plan.moves for plan in task.plans] == [1]
    assert lists(at)[0] == (1, 4)


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("operation", "state"),
    [(Operation.DEMOTE, BrokerState.DEMOTED), (Operation.MAINTENANCE, BrokerState.MAINTENANCE)],
)
def test_killed_at_any_change_the_demotion_is_continued_to_its_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Operation,
    state: BrokerState,
    made: bool,
) -> None:
    make = partial(site, operation=operation)
    for cut in killed_tasks(tmp_path, make, monkeypatch, made=made):
        task = cut.continued()
        assert task.phase is TaskPhase.DONE
        assert 4 not in leaders(cut).values()
        assert 4 not in {held[0] for held in lists(cut).values()}
        assert cut.states == {4: state}
        assert moved_nothing(cut, dict(enumerate(PLACES)))


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("begin", "end"),
    [(Operation.DEMOTE, Operation.UNDEMOTE), (Operation.MAINTENANCE, Operation.MAINTENANCE_OFF)],
)
@pytest.mark.slow
def test_killed_at_any_change_the_way_back_is_continued_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: Operation, end: Operation, made: bool
) -> None:
    def demoted(folder: Path) -> SimulatedTask:
        at = site(folder, operation=begin)
        folder.mkdir()
        at.work()
        at.operation = end
        return at

    for cut in killed_tasks(tmp_path, demoted, monkeypatch, made=made, exists=True):
        again = [t for t in cut.files.all() if t.operation is end]
        (task,) = again or [cut.request()]
        if task.is_open:
            task = TaskRunner(task, cut.parts()).run()
        assert task.phase is TaskPhase.DONE
        assert lists(cut) == dict(enumerate(PLACES))
        assert leaders(cut) == {n: place[0] for n, place in enumerate(PLACES)}
        assert cut.states == {}


@pytest.mark.parametrize(
    ("begin", "end"),
    [(Operation.DEMOTE, Operation.UNDEMOTE), (Operation.MAINTENANCE, Operation.MAINTENANCE_OFF)],
)
def test_the_leaders_it_had_return(tmp_path: Path, begin: Operation, end: Operation) -> None:
    at = site(tmp_path, operation=begin)
    at.work()
    task = ended(at, end)
    assert task.phase is TaskPhase.DONE, task.note
    assert lists(at) == dict(enumerate(PLACES))
    assert leaders(at) == {n: place[0] for n, place in enumerate(PLACES)}
    assert at.states == {}
    # A second demotion and its end do not touch the first.
    at.operation = begin
    assert at.work().phase is TaskPhase.DONE
    assert ended(at, end).plans[0].moves == 3
    assert leaders(at) == {n: place[0] for n, place in enumerate(PLACES)}


def test_maintenance_of_a_demoted_broker_ends_both(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.work()
    at.operation = Operation.MAINTENANCE
    assert at.work().plans == ()
    assert at.states == {4: BrokerState.MAINTENANCE}
    assert ended(at, Operation.MAINTENANCE_OFF).phase is TaskPhase.DONE
    assert leaders(at) == {n: place[0] for n, place in enumerate(PLACES)}
    assert at.states == {}


def test_a_partition_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.work()
    at.cluster.reassign(PartitionId(TOPIC, 0), [BrokerId(3), BrokerId(1)])
    at.cluster.advance(60.0)
    task = ended(at)
    assert task.phase is TaskPhase.DONE, task.note
    assert lists(at)[0] == (3, 1)
    assert leaders(at)[3] == leaders(at)[5] == 4


def test_the_leaders_of_another_demotion_do_not_return(tmp_path: Path) -> None:
    """`undemote` of one broker elected leaders back to another that was demoted again."""
    at = site(tmp_path, places=[(1, 4), (2, 4), (4, 3), (3, 4)], remove=(1, 2))
    at.work()
    assert leaders(at) == {0: 4, 1: 4, 2: 4, 3: 3}
    at.cluster.kill(BrokerId(2))
    at.cluster.advance(60)
    for operation in (Operation.UNDEMOTE, Operation.DEMOTE):
        at.operation, at.remove = operation, (1,)
        at.work()
    at.cluster.revive(BrokerId(2))
    at.cluster.advance(60)
    at.operation, at.remove = Operation.UNDEMOTE, (2,)
    task = at.work()
    assert task.phase is TaskPhase.DONE
    assert leaders(at) == {0: 4, 1: 2, 2: 4, 3: 3}
    assert at.states == {1: BrokerState.DEMOTED}
    assert "left alone: 1 partition of broker 1, which may not lead" in " ".join(at.said)
    preferred = at.cluster.partitions[PartitionId(TOPIC, 0)].replicas
    assert preferred[0] == 4


@pytest.mark.parametrize("operation", sorted(ENDS))
def test_leaders_return_however_many_runs_were_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    monkeypatch.setattr(run_history, "_NEWEST", 1)
    at = site(tmp_path, operation=ENDS[operation])
    at.work()
    at.another_run()
    task = ended(at, operation)
    assert (task.phase, task.plans[0].moves) == (TaskPhase.DONE, 3)
    assert lists(at) == dict(enumerate(PLACES))
    assert leaders(at) == {n: place[0] for n, place in enumerate(PLACES)}


def test_without_its_runs_the_mark_is_lifted_and_what_stays_is_named(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.work()
    forget_runs(at)
    # One has returned by itself.
    at.cluster.reassign(PartitionId(TOPIC, 3), [BrokerId(4), BrokerId(2)])
    at.cluster.advance(60.0)
    runner = undemoting(at)
    task = runner.run()
    assert (task.phase, task.plans) == (TaskPhase.DONE, ())
    assert at.states == {}
    assert runner.undone == (
        "2 partitions still as the demotion has left them, since the journal of its run cannot be "
        "read (orders-0, orders-5)"
    )
    assert f"warning: {runner.undone}" in at.said
    assert [p.note for p in task.phases if p.phase is TaskPhase.VERIFIED] == [runner.undone]


def test_without_its_runs_and_plans_the_demotion_is_named(tmp_path: Path) -> None:
    at = site(tmp_path)
    demotion = at.work()
    forget_runs(at)
    at.files.plan_path(demotion.task_id, demotion.plans[0].plan_hash).unlink()
    runner = undemoting(at)
    assert runner.run().phase is TaskPhase.DONE
    assert runner.undone == f"what task {demotion.task_id} has changed cannot be read"


def test_nothing_is_lost_where_leaders_have_returned(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.work()
    forget_runs(at)
    for number, place in enumerate(PLACES):
        at.cluster.reassign(PartitionId(TOPIC, number), [*map(BrokerId, place)])
    at.cluster.advance(60.0)
    runner = undemoting(at)
    assert runner.run().note == "broker 4 may lead and take new replicas again"
    assert runner.undone == ""


def forget_runs(at: SimulatedTask) -> None:
    for journal in (at.folder / "journal").glob("*"):
        if journal.is_file():
            journal.unlink()


def undemoting(at: SimulatedTask) -> TaskRunner:
    at.operation = Operation.UNDEMOTE
    return TaskRunner(at.request(), at.parts())


def test_budgets_leave_leaders_to_the_next_plan(tmp_path: Path) -> None:
    at = site(tmp_path, goals=Goals(budgets=Budgets(leader_changes=2)))
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    assert [plan.moves for plan in task.plans] == [2, 1]
    assert 4 not in leaders(at).values()


# ---- refusals


def test_a_partition_without_another_replica_is_named(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(1, 4), (4,), (4, 2)])
    with pytest.raises(GuardrailRefused, match="cannot demote broker 4: orders-1 has no other"):
        at.work()
    assert at.states == {}
    assert leaders(at) == {0: 1, 1: 4, 2: 4}
    assert not at.files.all()[0].is_open


def test_all_brokers_cannot_be_demoted(tmp_path: Path) -> None:
    at = site(tmp_path, remove=(1, 2, 3, 4))
    with pytest.raises(GuardrailRefused, match="orders-0 has no other replica on a broker that"):
        at.work()
    assert at.states == {}


def test_a_replica_that_lags_is_no_other_leader(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(4, 1), (2, 3)])
    at.cluster.kill(BrokerId(1))
    with pytest.raises(GuardrailRefused, match=r"cannot demote broker 4: orders-0 has"):
        at.work()
    assert leaders(at)[0] == 4


def test_the_end_of_a_demotion_that_was_none_is_refused() -> None:
    def task(name: str, operation: Operation, *brokers: int) -> BrokerTask:
        return BrokerTask(
            task_id=name,
            cluster_id="c",
            operation=operation,
            brokers=tuple(map(BrokerId, brokers)),
            by="ada",
            phases=(PhaseChange(phase=TaskPhase.DONE, at_ms=1),),
        )

    def mark(broker: int, of: BrokerTask) -> BrokerMark:
        return BrokerMark(
            cluster_id="c",
            broker=BrokerId(broker),
            state=BrokerState.DEMOTED,
            at_ms=1,
            by="ada",
            reason=f"task {of.task_id}",
            task_id=of.task_id,
        )

    both, alone = task("demote-3-4", Operation.DEMOTE, 3, 4), task("demote-4", Operation.DEMOTE, 4)
    three, four = mark(3, both), mark(4, both)
    refuse_undemoted([both], [BrokerId(4)], [three, four])
    over = task("undemote-3-4", Operation.UNDEMOTE, 3, 4)
    with pytest.raises(GuardrailRefused, match="broker 4 was not demoted; nothing is to be undone"):
        refuse_undemoted([both, over], [BrokerId(4)], [three])
    refuse_undemoted([both, over], [BrokerId(4)], [four])
    assert demotions([both, over, both], [BrokerId(4)]) == [both]
    # The end of one demotion leaves those of the others.
    ended = [both, alone, task("undemote-4", Operation.UNDEMOTE, 4)]
    assert demotions(ended, [BrokerId(3), BrokerId(4)]) == [both]
    assert demotions(ended, [BrokerId(4)]) == []


# ---- what honours it


def test_plans_neither_lead_on_a_demoted_broker_nor_fill_it(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(1, 2), (1, 2), (1, 2), (1, 3), (1, 4), (1, 4), (1, 4), (2, 4)])
    at.work()
    result = solve(at.snapshot(), Goals(), WORK)
    assert result.best is not None
    assert result.best.schema_version == VERSION_WITH_DEMOTION
    assert result.best.moves
    for move in result.best.moves:
        assert move.leader_after != 4
        assert 4 not in move.added


def test_a_demoted_broker_that_leads_again_is_relieved(tmp_path: Path) -> None:
    at = site(tmp_path)
    at.work()
    again = at.cluster.partitions[PartitionId(TOPIC, 0)]
    again.leader = BrokerId(4)
    state, goals = at.snapshot(), Goals()
    needs = plan_needs(state, goals, evaluate(state, goals, ()), given_up=())
    (need,) = [n for n in needs if n.reason is Reason.MISPLACED]
    assert need.message == "broker 4 is demoted and leads 1 partition"
    result = solve(state, goals, WORK)
    assert result.best is not None
    (move,) = [m for m in result.best.moves if m.partition == 0]
    assert move.leader_after == 1
    assert "relieves broker 4, which is demoted" in move.reason
