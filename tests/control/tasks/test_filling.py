"""Brokers are filled on a simulated cluster, and nothing moves elsewhere."""

from pathlib import Path

import pytest

from control.tasks.broker_marks import BrokerMark, change_marks, marked
from control.tasks.broker_task import Operation, TaskPhase, TaskPlan
from control.tasks.filling import filling, filling_goals, too_little
from control.tasks.task_steps import EMPTY, RAN
from model.errors import GuardrailRefused
from model.goals.goals import Budgets, Goal, Goals
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Count
from tests.support.control.simulated_tasks import SimulatedTask, killed_tasks
from tests.support.model import clusters

# Twelve partitions on brokers 1 to 3, none on broker 4, and broker 3 with less than its share.
PLACES = [(1, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 1), (1, 3), (3, 2), (2, 3), (1, 2), (2, 1)]
GOALS = Goals(balance=(Goal(resource=Count.REPLICAS), Goal(resource=Count.LEADERS)))


def site(folder: Path, **more: object) -> SimulatedTask:
    chosen = {"operation": Operation.ADD, "places": PLACES, "racks": "abcd", "goals": GOALS, **more}
    return SimulatedTask(folder=folder, **chosen)  # type: ignore[arg-type]


def lists(at: SimulatedTask) -> list[tuple[int, ...]]:
    return [tuple(map(int, p.replicas)) for _, p in sorted(at.cluster.partitions.items())]


def only_onto(at: SimulatedTask, *brokers: int) -> bool:
    """Whether every replica that is where none was lies on these brokers."""
    pairs = zip(PLACES, lists(at), strict=True)
    return all({*now} - {*before} <= {*brokers} for before, now in pairs)


def test_an_empty_broker_is_filled_and_nothing_moves_elsewhere(tmp_path: Path) -> None:
    at = site(tmp_path)
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    assert [p.phase for p in task.phases][-2:] == [TaskPhase.VERIFIED, TaskPhase.DONE]
    assert task.plans[0].closed == RAN
    assert only_onto(at, 4)
    # A mean of 22 / 4 = 5.5 replicas with a tolerance of 10 %.
    assert at.held[4] in (5, 6)
    assert at.states == {}


def test_two_brokers_are_filled_together(tmp_path: Path) -> None:
    at = site(tmp_path, remove=(4, 5), brokers=5, racks="abcde")
    assert at.work().phase is TaskPhase.DONE
    assert only_onto(at, 4, 5)
    assert at.held[4] >= 3
    assert at.held[5] >= 3


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.slow
def test_killed_at_any_change_the_broker_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    for cut in killed_tasks(tmp_path, site, monkeypatch, made=made):
        task = cut.continued()
        assert task.phase is TaskPhase.DONE
        assert only_onto(cut, 4)
        assert cut.held[4] in (5, 6)
        assert not any(cut.cluster.topic_configs.values())


def test_budgets_spread_the_filling_over_plans(tmp_path: Path) -> None:
    budgets = Budgets(replica_moves=2)
    at = site(tmp_path, goals=GOALS.model_copy(update={"budgets": budgets}))
    task = at.work()
    assert task.phase is TaskPhase.DONE, task.note
    kept = [at.files.read_plan(task, plan.plan_hash) for plan in task.plans]
    assert [sum(len(m.added) for m in plan.moves) for plan in kept] == [2, 2, 2]
    assert at.held[4] in (5, 6)


def test_racks_are_kept_though_only_one_broker_is_filled(tmp_path: Path) -> None:
    at = site(tmp_path, racks="abba")
    at.work()
    racks = {b + 1: rack for b, rack in enumerate("abba")}
    for before, now in zip(PLACES, lists(at), strict=True):
        assert before == now or len({racks[b] for b in now}) == 2


def mark_removed(tmp_path: Path) -> None:
    """Mark broker 4 as an earlier removal does."""
    mark = BrokerMark(
        cluster_id="simulated",
        broker=BrokerId(4),
        state=BrokerState.DRAINING,
        at_ms=1,
        by="ada",
        reason="task remove-4",
        task_id="remove-4",
    )
    change_marks(tmp_path, lambda marks: marked(marks, [mark]))


def test_a_broker_that_was_removed_is_included_again(tmp_path: Path) -> None:
    at = site(tmp_path)
    mark_removed(tmp_path)
    assert at.work().phase is TaskPhase.DONE
    assert at.states == {}
    assert at.held[4] in (5, 6)


def test_a_plan_without_moves_includes_a_broker_that_was_removed(tmp_path: Path) -> None:
    """As a client of Cruise Control orders it: the plan is approved before the work begins."""
    at = site(tmp_path, places=[(1, 2), (2, 3), (3, 4), (4, 1)])
    mark_removed(tmp_path)
    entry = TaskPlan(
        plan_hash="0" * 64,
        moves=0,
        bytes_to_copy=0,
        least_bytes=None,
        replicas=6,
        approved_by="ada",
        approved_at_ms=2,
    )
    asked = at.request()
    approved = at.files.change(
        asked.task_id, lambda of: of.planned(entry, 1, "").entered(TaskPhase.APPROVED, 2)
    )
    task = at.work(approved)
    assert (task.phase, task.plans[0].closed) == (TaskPhase.DONE, EMPTY)
    assert at.states == {}
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_broker_within_its_tolerance_needs_nothing(tmp_path: Path) -> None:
    at = site(tmp_path, places=[(1, 2), (2, 3), (3, 4), (4, 1)])
    task = at.work()
    assert (task.phase, task.plans) == (TaskPhase.DONE, ())
    assert task.phases[-2].note == "broker 4 is within the tolerance"


def test_a_broker_that_nothing_may_move_to_is_not_tried_for_ever(tmp_path: Path) -> None:
    goals = GOALS.model_copy(update={"budgets": Budgets(replica_moves=0, leader_changes=0)})
    task = site(tmp_path, goals=goals).work()
    assert (task.phase, task.plans) == (TaskPhase.DONE, ())
    assert task.phases[-2].note == "no further move is worth its cost"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (BrokerState.DEAD, "cannot add broker 4: it is dead"),
        (BrokerState.CORDONED, "it is cordoned; clear its cordoned.log.dirs first"),
        (BrokerState.DEMOTED, "it is demoted; end that with plimsoll broker undemote first"),
        (
            BrokerState.MAINTENANCE,
            "it is in maintenance; end that with plimsoll broker maintenance",
        ),
    ],
)
def test_a_broker_that_may_not_take_load_is_refused(state: BrokerState, words: str) -> None:
    members = clusters.brokers(4, states={4: state})
    with pytest.raises(GuardrailRefused) as refused:
        filling(clusters.snapshot(members, [(1, 2), (2, 3)]), [BrokerId(4)])
    assert words in str(refused.value)


def test_without_load_to_balance_replicas_and_leaders_count(tmp_path: Path) -> None:
    at = site(tmp_path, goals=Goals(balance=(Goal(resource=Count.REPLICAS, weight=1.0),)))
    idle = Goals(balance=())
    counted = filling_goals(at.snapshot(), idle)
    assert [g.resource for g in counted.balance] == [Count.REPLICAS, Count.LEADERS]
    assert too_little(at.snapshot(), idle, [BrokerId(4)]) == 22 + 11
    assert filling_goals(at.snapshot(), GOALS).balance == GOALS.balance
