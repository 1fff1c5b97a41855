"""The next step of a task, for each of its states."""

import pytest

from control.tasks.broker_task import (
    BrokerTask,
    Operation,
    PhaseChange,
    TaskPhase,
    TaskPlan,
    brokers_text,
)
from control.tasks.task_steps import MOST_OUTDATED, OUTDATED, RAN, RunSeen, Seen, Step, next_step
from model.ids import BrokerId

HASH = "0" * 64


def task(*plans: TaskPlan, phase: TaskPhase = TaskPhase.REQUESTED) -> BrokerTask:
    first = PhaseChange(phase=TaskPhase.REQUESTED, at_ms=1)
    made = BrokerTask(
        task_id="remove-4",
        cluster_id="c",
        operation=Operation.REMOVE,
        brokers=(BrokerId(4),),
        by="ada",
        phases=(first,),
        plans=plans,
    )
    return made.entered(phase, 2)


def plan(*, approved: bool = False, closed: str = "", moves: int = 3) -> TaskPlan:
    return TaskPlan(
        plan_hash=HASH,
        moves=moves,
        bytes_to_copy=30,
        least_bytes=30,
        replicas=3,
        approved_by="ada" if approved else "",
        approved_at_ms=2 if approved else None,
        closed=closed,
    )


RAN_PLAN = plan(approved=True, closed=RAN)
INTERRUPTED = RunSeen(unfinished=True, newest=True)


@pytest.mark.parametrize(
    ("of", "seen", "step"),
    [
        (task(), Seen(), Step.CHECK),
        (task(), Seen(left=0), Step.FINISH),
        (task(), Seen(left=3), Step.PLAN),
        (task(plan()), Seen(left=3), Step.ASK),
        (task(plan(approved=True)), Seen(left=3), Step.EXECUTE),
        (task(plan(approved=True, moves=0)), Seen(left=3), Step.CLOSE),
        (task(plan(approved=True)), Seen(run=INTERRUPTED), Step.RESUME),
        (task(plan(approved=True)), Seen(run=RunSeen(unfinished=True, newest=False)), Step.CLOSE),
        (task(plan(approved=True)), Seen(run=RunSeen(unfinished=False, newest=True)), Step.CLOSE),
        (task(RAN_PLAN), Seen(), Step.CHECK),
        (task(RAN_PLAN), Seen(left=0, ran_from=3), Step.FINISH),
        (task(RAN_PLAN), Seen(left=1, ran_from=3), Step.PLAN),
        (task(RAN_PLAN), Seen(left=3, ran_from=3), Step.GIVE_UP),
        # Another process had that run, so it is worth another try.
        (task(RAN_PLAN), Seen(left=3), Step.PLAN),
        (task(plan(closed=OUTDATED)), Seen(left=3, outdated=1), Step.PLAN),
        (task(plan(closed=OUTDATED)), Seen(left=3, outdated=MOST_OUTDATED), Step.GIVE_UP),
        (task(RAN_PLAN, phase=TaskPhase.FAILED), Seen(), Step.CHECK),
        (task(plan(), phase=TaskPhase.FAILED), Seen(), Step.END),
        (task(phase=TaskPhase.CANCELLED), Seen(), Step.END),
        (task(phase=TaskPhase.DONE), Seen(), Step.END),
    ],
)
def test_the_next_step_follows_from_the_task_and_what_is_seen(
    of: BrokerTask, seen: Seen, step: Step
) -> None:
    assert next_step(of, seen) is step


def test_the_same_phase_and_note_are_kept_once() -> None:
    first = task().entered(TaskPhase.MOVING, 5, "the run begins")
    assert first.entered(TaskPhase.MOVING, 6, "the run begins") == first
    assert len(first.entered(TaskPhase.MOVING, 6, "the run resumes").phases) == 3


def test_only_the_newest_phases_are_kept_after_the_request() -> None:
    found = task()
    for number in range(1500):
        found = found.entered(TaskPhase.MOVING, number, f"the run resumes {number}")
    assert len(found.phases) == 1000
    assert found.phases[0].phase is TaskPhase.REQUESTED
    assert found.note == "the run resumes 1499"


def test_brokers_are_named_as_people_do() -> None:
    assert brokers_text([4]) == "broker 4"
    assert brokers_text([4, 5]) == "brokers 4, 5"
    assert brokers_text(range(1, 13)) == "brokers 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"
