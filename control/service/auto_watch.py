"""What `run --auto` decides in another process, for the screen of the same state folder."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from control.loop import questions
from control.loop.decision_file import (
    FILE,
    MOST_LINES,
    DecisionRecord,
    clock_text,
    last_seen,
    read_decisions,
    when_text,
)
from control.loop.questions import Question
from control.service.audit_log import AuditOutcome, AuditRecord, AuditVia, new_id, recorded
from model.errors import ConfigError
from model.plan.plan import Plan, read_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoSeen:
    """The newest decision of a `run --auto`, or of a service, that runs or has left a plan."""

    decision: str
    """In words, as `plimsoll why` prints it."""
    why: str
    """Its trigger and its reason; empty where nothing needs to be done."""
    reconsidered: str
    """When, in words."""
    waiting: Question | None
    """The plan that waits for a person; None where none does."""


class AutoWatch:
    """Reads the state folder; for a thread that may wait."""

    def __init__(self, state_dir: Path, signed: Callable[[str], object] | None = None) -> None:
        """signed: as `questions.approve` has it."""
        self._folder, self._signed = state_dir, signed
        self._read: tuple[object, dict[str, DecisionRecord]] = None, {}
        """What tells the file of decisions from a later one; the newest by cluster."""

    def seen(self, cluster_id: str, now_ms: int) -> AutoSeen | None:
        """What is decided about a cluster; None where no other process decides about it.

        now_ms: milliseconds since the epoch. Raises ConfigError where files cannot be read.
        """
        newest = self._newest().get(cluster_id)
        if newest is None:
            return None
        asked = (q for q in questions.questions(self._folder) if self._waits(q, cluster_id, now_ms))
        waiting = next(asked, None)
        # `run --auto --once` ends, and leaves its plan to the next one.
        if waiting is None and last_seen(self._folder, newest).running is False:
            return None
        until = "" if newest.until_ms is None else clock_text(newest.until_ms, now_ms)
        return AutoSeen(
            decision=str(newest.decision),
            why="; ".join(dict.fromkeys(filter(None, (newest.trigger, newest.reason)))),
            reconsidered=when_text(newest, until),
            waiting=waiting,
        )

    def plan(self, plan_hash: str) -> Plan:
        """The plan that waits, as it was sealed; raises ConfigError where it cannot be read."""
        found = read_plan(questions.plan_file(self._folder / questions.FOLDER, plan_hash))
        if found.hash != plan_hash:
            raise ConfigError(f"the file of plan {plan_hash[:12]} has another plan")
        return found

    def approve(self, plan_hash: str, by: str, now_ms: int) -> None:
        """Approve the waiting plan with this hash, once; raises as `questions.approve` does.

        by: login name of the operator. now_ms: milliseconds since the epoch.
        """
        record = approval_record(by, by, plan_hash, now_ms, AuditVia.SCREEN)
        with recorded(self._folder, record, "approved"):
            questions.approve(self._folder, plan_hash, by, now_ms, self._signed)

    def _newest(self) -> dict[str, DecisionRecord]:
        try:
            found = (self._folder / FILE).stat()
        except OSError:
            return {}
        key = found.st_ino, found.st_size, found.st_mtime_ns
        if self._read[0] != key:
            records = read_decisions(self._folder, MOST_LINES)
            self._read = key, {record.cluster_id: record for record in records}
        return self._read[1]

    def _waits(self, asked: Question, cluster_id: str, now_ms: int) -> bool:
        if asked.cluster_id != cluster_id or not asked.is_due(now_ms):
            return False
        answers = (questions.answered_by, questions.rejected_by)
        return not any(found(self._folder, asked) for found in answers)


def approval_record(by: str, user: str, plan_hash: str, now_ms: int, via: AuditVia) -> AuditRecord:
    """The record of an approval that is about to be given.

    user: login name of this process. now_ms: milliseconds since the epoch.
    """
    return AuditRecord(
        at_ms=now_ms,
        id=new_id(),
        action="approve",
        by=by,
        user=user,
        uid=os.getuid(),
        pid=os.getpid(),
        via=via,
        plan_hash=plan_hash,
        detail="",
        outcome=AuditOutcome.REQUESTED,
        message="",
    )
