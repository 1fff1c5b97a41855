"""Check journals, and repair them without destroying anything."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from executor.journal.lock import sole_writer
from executor.journal.lost_settings import lost_settings
from executor.journal.records import JournalContent, JournalDamage, checksum_of, scan, sealed
from executor.journal.run_history import cluster_of, read_content
from executor.journal.run_journal import backup_path, is_action, journal_paths, plan_path
from executor.timing import Timing
from model.errors import ConfigError
from model.files import replace_file
from model.plan.plan import Plan, read_plan
from model.run import JournalEvent, JournalRecord

_DAMAGED: Final = ".damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCheck:
    """The condition of a journal and the plan beside it."""

    path: Path
    cluster_id: str | None
    """None where neither the journal nor its plan names it."""
    content: JournalContent
    plan: Plan | None
    """None where there is none, or it is unreadable."""
    plan_problem: str
    """Why the plan is unreadable; empty if all is well."""

    @property
    def run_id(self) -> str:
        """The run id."""
        return self.path.stem

    @property
    def is_damaged(self) -> bool:
        """Whether anything is damaged."""
        return bool(self.content.damage or self.plan_problem)

    @property
    def may_be_set(self) -> tuple[str, ...]:
        """Settings that a missing record may have announced."""
        return lost_settings(self.content, self.plan) if self.plan else ()


def check_journals(journal_dir: Path, run_id: str = "") -> list[JournalCheck]:
    """Check the journals whose run ids start with `run_id`, oldest first.

    Raises ConfigError where there is none, or one was written by a newer plimsoll.
    """
    paths = [p for p in journal_paths(journal_dir) if p.stem.startswith(run_id)]
    if run_id and not paths:
        raise ConfigError(f"{journal_dir} has no run {run_id}")
    return [_checked(path) for path in paths]


def repaired(journal_dir: Path, run_id: str, timing: Timing) -> tuple[JournalCheck, Path]:
    """Rewrite a journal from its intact records.

    Returns its previous condition, and the path of its backup. The new journal ends with a
    record of what is missing. Raises ConfigError where there is not exactly one such run,
    nothing is damaged, or nothing can be kept; GuardrailRefused while a run is in progress.
    """
    found = check_journals(journal_dir, run_id)
    if not found:
        raise ConfigError(f"{journal_dir} has no runs, so there is nothing to repair")
    if len(found) > 1:
        raise ConfigError(f"{len(found)} run ids start with {run_id}; type more characters")
    cluster_id = found[0].cluster_id
    if cluster_id is None:
        if not found[0].content.damage:
            raise ConfigError(f"{found[0].path} has no records, so nothing can be repaired")
        raise ConfigError(
            f"Neither {found[0].path} nor its plan has anything intact, so there is "
            "nothing to repair. Restore one of them from a backup."
        )
    with sole_writer(journal_dir, cluster_id):
        before = _checked(found[0].path)
        if not before.content.damage:
            problem = before.plan_problem or "nothing to repair"
            raise ConfigError(f"{before.path} is not damaged; {problem}")
        return before, _replaced(before, cluster_id, timing)


def _checked(path: Path) -> JournalCheck:
    plan, problem = None, ""
    if not is_action(path.stem):
        try:
            plan = read_plan(plan_path(path.parent, path.stem))
        except ConfigError as exc:
            problem = str(exc)
    return JournalCheck(
        path=path,
        cluster_id=cluster_of(path),
        content=read_content(path),
        plan=plan,
        plan_problem=problem,
    )


def _replaced(before: JournalCheck, cluster_id: str, timing: Timing) -> Path:
    """Replace the journal by a complete new file, and keep the old one as a backup."""
    path, content = before.path, before.content
    body = b"".join(intact.raw + b"\n" for intact in content.intact)
    kept = scan(body, path.stem)
    end = kept.end(body)
    note = JournalRecord(
        at_ms=timing.now_ms(),
        event=JournalEvent.REPAIRED,
        run_id=path.stem,
        plan_hash=before.plan.hash if before.plan else _plan_hash(content),
        cluster_id=cluster_id,
        detail=_repair_detail(content, kept, end.sequence + 1),
    )
    line, _ = sealed(note, end)
    try:
        original = backup_path(path, _DAMAGED)
        original.hardlink_to(path)
        replace_file(path, body + line)
    except OSError as exc:
        raise ConfigError(f"cannot repair {path}: {exc.strerror}") from exc
    return original


def _plan_hash(content: JournalContent) -> str:
    return content.records[0].plan_hash if content.records else ""


def _repair_detail(content: JournalContent, kept: JournalContent, own: int) -> dict[str, Any]:
    """The detail of the repair record; `own` is its number, `kept` what precedes it."""
    unsealed = [i.raw + b"\n" for i in content.intact if not i.record.checksum]
    numbers = [i.record.sequence for i in content.intact if i.record.sequence]
    losses = [
        _loss(
            loss,
            after=loss.after if numbers else min(loss.after, len(unsealed)),
            before=min((n for n in numbers if n > loss.after), default=own),
        )
        for loss in content.damage
        if loss.loses
    ]
    known = {loss["before"] for loss in losses}
    # If lines are out of order, a damaged one may not be where its gap is.
    losses += [
        _loss(loss, after=loss.after, before=loss.before)
        for loss in kept.damage
        if loss.before is not None and loss.before not in known
    ]
    return {"losses": losses, "unsealed": checksum_of(b"".join(unsealed))}


def _loss(loss: JournalDamage, *, after: int, before: int) -> dict[str, Any]:
    """A missing record between two others, as the repair record names it."""
    return {"line": loss.line, "problem": loss.problem, "after": after, "before": before}
