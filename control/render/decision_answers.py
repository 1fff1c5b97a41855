"""The recorded decisions of `run --auto`, as `why` prints them, and the plans that wait."""

from collections.abc import Callable
from pathlib import Path

from control.cli.output_types import DecisionAnswer, WaitingAnswer, WhyAnswer
from control.loop import questions
from control.loop.decision_file import DecisionRecord, read_decisions, when_text
from control.render.text import time_text


def why_answer(
    state_dir: Path, last: int, now_ms: int, warn: Callable[[str], None] = lambda _words: None
) -> WhyAnswer:
    """The newest decisions, oldest first; now_ms: milliseconds since the epoch.

    warn: as `read_decisions` has it. Raises ConfigError where their file cannot be read.
    """
    found = read_decisions(state_dir, last, warn)
    return WhyAnswer.of(decisions=tuple(_answer(record, now_ms) for record in found))


def waiting_answer(state_dir: Path, question: questions.Question, now_ms: int) -> WaitingAnswer:
    """A plan that waits for a person; now_ms: milliseconds since the epoch."""
    approval = questions.answered_by(state_dir, question)
    return WaitingAnswer.of(
        question,
        asked_at=time_text(question.asked_at_ms),
        age_s=max(0.0, (now_ms - question.asked_at_ms) / 1000),
        plan=str(questions.plan_file(state_dir / questions.FOLDER, question.plan_hash)),
        approved_by=None if approval is None else approval.by,
    )


def _answer(record: DecisionRecord, now_ms: int) -> DecisionAnswer:
    until = None if record.until_ms is None else time_text(record.until_ms)
    return DecisionAnswer.of(
        record,
        at=time_text(record.at_ms),
        age_s=max(0.0, (now_ms - record.at_ms) / 1000),
        reconsidered=when_text(record, until or ""),
        until=until,
    )
