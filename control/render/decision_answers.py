"""The recorded decisions of `run --auto`, as `why` prints them, and the plans that wait."""

from collections.abc import Callable
from pathlib import Path

from control.cli.output_types import DecidingAnswer, DecisionAnswer, WaitingAnswer, WhyAnswer
from control.loop import questions
from control.loop.decision_file import (
    MOST_LINES,
    DecisionRecord,
    last_seen,
    read_decisions,
    when_text,
)
from control.render.text import time_text


def why_answer(
    state_dir: Path, last: int, now_ms: int, warn: Callable[[str], None] = lambda _words: None
) -> WhyAnswer:
    """The newest decisions, oldest first, and which clusters are decided about.

    now_ms: milliseconds since the epoch.

    warn: as `read_decisions` has it. Raises ConfigError where their file cannot be read.
    """
    found = read_decisions(state_dir, MOST_LINES, warn)
    newest = {record.cluster_id: record for record in found}
    return WhyAnswer.of(
        decisions=tuple(_answer(record, now_ms) for record in found[-last:]),
        clusters=tuple(_deciding(state_dir, newest[one]) for one in sorted(newest)),
    )


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


def _deciding(state_dir: Path, newest: DecisionRecord) -> DecidingAnswer:
    """newest: the newest decision about a cluster."""
    seen = last_seen(state_dir, newest)
    return DecidingAnswer(
        cluster_id=newest.cluster_id,
        running=seen.running,
        last_seen=None if seen.at_ms is None else time_text(seen.at_ms),
        last_seen_ms=seen.at_ms,
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
