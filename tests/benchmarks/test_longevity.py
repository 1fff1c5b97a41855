"""The simulated year: a few days of it, with everything that a month has."""

from contextlib import closing
from pathlib import Path

from benchmarks.longevity_year import DAY_S, HEADERS, Year
from control.loop.questions import QuestionState, questions
from control.tasks.broker_task import Operation, TaskPhase
from executor.journal.run_journal import run_paths
from tests.support.control.loop_parts import START_MS

WEEK_S = 7 * DAY_S
ASKS_S = START_MS / 1000 // (2 * WEEK_S) * 2 * WEEK_S + WEEK_S
"""A week begins in which a person approves the plans."""


def test_days_of_the_year_have_runs_questions_and_tasks(tmp_path: Path) -> None:
    with closing(Year(tmp_path, 1, ASKS_S)) as year:
        year.next_task_s = year.begin_s
        year.live_until(year.begin_s + DAY_S)
        row = year.figures(1, 0.0)
    assert year.runs >= 1
    assert len(row) == len(HEADERS)
    asked = questions(tmp_path)
    assert QuestionState.APPROVED in {question.state for question in asked}
    (task,) = year.files.all()
    assert (task.operation, task.phase) == (Operation.DEMOTE, TaskPhase.DONE)
    # Retention goes by these times.
    changed = [path.stat().st_mtime for path in run_paths(tmp_path / "journal")]
    assert changed
    assert all(ASKS_S <= at_s <= ASKS_S + DAY_S for at_s in changed)
