"""What `ctl audit` prints: one action from its two records."""

from collections.abc import Sequence

from control.cli.output_types import AuditAnswer, AuditEntryAnswer
from control.render.text import time_text
from control.service.audit_log import AuditOutcome, AuditRecord, AuditVia
from model.printable import printable


def audit_answer(records: Sequence[AuditRecord], last: int) -> AuditAnswer:
    """The newest actions, oldest first."""
    begun: dict[str, AuditRecord] = {}
    ended: dict[str, AuditRecord] = {}
    for record in records:
        begun.setdefault(record.id, record)
        if record.outcome is not AuditOutcome.REQUESTED:
            ended[record.id] = record
    newest = list(begun)[-last:]
    return AuditAnswer.of(actions=[_entry(begun[key], ended.get(key)) for key in newest])


def _entry(begun: AuditRecord, ended: AuditRecord | None) -> AuditEntryAnswer:
    return AuditEntryAnswer.of(
        ended or begun,
        at=time_text(begun.at_ms),
        at_ms=begun.at_ms,
        ended_at_ms=None if ended is None else ended.at_ms,
    )


def audit_text(answer: AuditAnswer) -> str:
    """One line for each action."""
    # A file can be edited.
    return "".join(f"{printable(_line(entry))}\n" for entry in answer.actions)


def _line(entry: AuditEntryAnswer) -> str:
    words = " ".join(filter(None, (entry.action, entry.detail, _plan(entry))))
    how = entry.outcome.value
    if entry.outcome is AuditOutcome.REQUESTED:
        how = "outcome unknown"
    message = f": {entry.message}" if entry.message else ""
    return f"{entry.at}  {_who(entry)}: {words} {how}{message}"


def _plan(entry: AuditEntryAnswer) -> str:
    return f"plan {entry.plan_hash[:12]}" if entry.plan_hash else ""


def _who(entry: AuditEntryAnswer) -> str:
    """The name that was given, and what the system knows of the process."""
    if entry.via is AuditVia.SIGNAL:
        return "signal"
    user = entry.user or (f"user {entry.uid}" if entry.uid is not None else "")
    known = ", ".join(
        filter(
            None,
            (
                user if user != entry.by else "",
                f"process {entry.pid}" if entry.pid is not None else "",
                f"from {entry.client}" if entry.client else "",
            ),
        )
    )
    return f"{entry.by} ({known})" if known else entry.by
