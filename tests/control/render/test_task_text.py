"""Tasks as text."""

import pytest

from control.cli.output_types import TaskAnswer, TasksAnswer
from control.render.task_text import progress_text, task_text, tasks_text
from control.tasks.broker_task import (
    BrokerTask,
    Operation,
    PhaseChange,
    TaskPhase,
    TaskPlan,
    TaskProgress,
)
from model.ids import BrokerId

PROGRESS = TaskProgress(
    at_ms=1,
    run_id="r",
    moves_done=2,
    moves=6,
    bytes_copied=5_000_000,
    bytes_to_copy=6_810_000,
    seconds_left=3.0,
)


@pytest.mark.parametrize(
    ("copied", "words"),
    [
        (5_000_000, "2 of 6 moves, 5.00 MB of 6.81 MB, about 3.00 s left"),
        (20_160_000, "2 of 6 moves, 20.2 MB (6.81 MB planned), about 3.00 s left"),
    ],
    ids=["less than planned", "producers write meanwhile"],
)
def test_progress_tells_planned_bytes_from_copied_ones(copied: int, words: str) -> None:
    assert progress_text(PROGRESS.model_copy(update={"bytes_copied": copied})) == words


def test_a_task_that_was_stopped_waits_for_a_person() -> None:
    task = BrokerTask(
        task_id="remove-4",
        cluster_id="c",
        operation=Operation.REMOVE,
        brokers=(BrokerId(4),),
        by="ada",
        phases=(PhaseChange(phase=TaskPhase.APPROVED, at_ms=1),),
        stopped_by="eve",
    )
    stopped = TaskAnswer.of(task, open=True, worked_on=False)
    assert stopped.stopped_by == "eve"
    assert "approved, stopped by eve" in tasks_text(TasksAnswer(tasks=(stopped,)))
    first, second, *_ = task_text(stopped).splitlines()
    assert first.endswith("approved, stopped by eve")
    assert second == "plimsoll task resume remove-4 continues it; nothing else does"
    for fields in ({"open": True, "worked_on": True}, {"open": False, "worked_on": False}):
        other = TaskAnswer.of(task, **fields)
        assert "stopped" not in tasks_text(TasksAnswer(tasks=(other,)))
        assert "task resume" not in task_text(other)


@pytest.mark.parametrize("closed", ["", "its run ended"])
def test_a_run_that_has_ended_has_no_time_left(closed: str) -> None:
    plan = TaskPlan(
        plan_hash="0" * 64, moves=6, bytes_to_copy=1, least_bytes=1, replicas=6, closed=closed
    )
    task = BrokerTask(
        task_id="remove-4",
        cluster_id="c",
        operation=Operation.REMOVE,
        brokers=(BrokerId(4),),
        by="ada",
        phases=(PhaseChange(phase=TaskPhase.FAILED, at_ms=1),),
        plans=(plan,),
        progress=PROGRESS,
    )
    answer = TaskAnswer.of(task, open=True, worked_on=False)
    for text in (task_text(answer), tasks_text(TasksAnswer(tasks=(answer,)))):
        assert ("about 3.00 s left" in text) == (not closed)
