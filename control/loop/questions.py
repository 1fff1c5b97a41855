"""Plans of `run --auto` that wait for a person, in the state folder, and the answers.

The loop writes the questions and other processes the answers; neither changes the other's
files, so that they need no lock. A plan is executed from the loop's memory or from the file it
was sealed in, never from an approval.
"""

import contextlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Self, TypeVar

from pydantic import Field

from model.errors import ConfigError, GuardrailRefused, PlanOutdated
from model.files import (
    VersionedModel,
    make_folder,
    read_document,
    sync_folder,
    validate_document,
    write_document,
)
from model.log_events import LogEvent, named
from model.plan.plan import Plan, read_plan
from model.plan.signatures import signature_file
from model.units import seconds_text

FOLDER: Final = "waiting"
KIND: Final = "plimsoll.question"
APPROVAL: Final = "plimsoll.approval"
REJECTION: Final = "plimsoll.rejection"
VALID_S: Final = 24 * 3600.0
"""Age at which a question is no longer answered."""

MOST_KEPT: Final = 20
"""Questions kept for messages about hashes that no longer wait."""

MOST_NAME: Final = 100
"""Characters of the name of who approves."""

_HASH: Final = re.compile(r"[0-9a-f]{8,64}")
_log = logging.getLogger("plimsoll.control")
T = TypeVar("T", bound=VersionedModel)


def approve_words(plan_hash: str) -> str:
    """How a person approves a plan, as the end of a reason."""
    return f"; plimsoll approve {plan_hash[:12]} executes the plan"


class QuestionState(StrEnum):
    """What became of a question."""

    WAITING = "waiting"
    APPROVED = "approved"
    WITHDRAWN = "withdrawn"
    REJECTED = "rejected"


class Question(VersionedModel):
    """A plan that waits for a person, or did."""

    kind: str = KIND
    schema_version: str = "1.0"
    """1.1 once it was rejected."""
    asked_at_ms: int
    """Milliseconds since the epoch; tells it from another question about the same plan."""
    cluster_id: str
    plan_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    trigger_name: str
    """The setting in `[triggers]` that the plan is for."""
    reason: str
    """Why it waits."""
    moves: int
    bytes_to_copy: int | None
    """None where sizes are unknown."""
    state: QuestionState = QuestionState.WAITING
    closed: str = ""
    """Who approved or rejected it, or why it was withdrawn."""

    @property
    def why(self) -> str:
        """The reason, without the command that approves the plan."""
        return self.reason.replace(approve_words(self.plan_hash), "")

    def is_due(self, now_ms: int) -> bool:
        """Whether it still waits and is not too old; a clock set back makes none too old."""
        fresh = now_ms - self.asked_at_ms < 1000 * VALID_S
        return self.state is QuestionState.WAITING and fresh


class PlanAnswer(VersionedModel):
    """The approval or rejection of one question."""

    kind: str
    """`APPROVAL` or `REJECTION`."""
    schema_version: str = "1.0"
    asked_at_ms: int
    """Of the question that it answers."""
    at_ms: int
    by: str


# ---- the loop's side


class Questions:
    """The loop's question: at most one; used by the loop's thread alone.

    What cannot be written is reported in the log; then nobody can approve it from a shell. So is
    an approval that is dropped, with the reason.
    """

    def __init__(self, folder: Path, warn: Callable[[str, LogEvent], None]) -> None:
        """folder: the state folder. warn: writes a warning to the loop's log."""
        self._folder, self._warn = folder / FOLDER, warn
        self.waiting: Question | None = None
        self.is_restored = False
        """Whether it is the question of an earlier process, whose plan is in its file alone."""
        self._asked = ""
        """Hash of the plan that was asked for last."""
        self.rejected_by = ""
        """Who rejected that plan; empty if it was not rejected."""

    def continue_from(self, before: Self) -> None:
        """Continue with the question of a loop of this process that has ended."""
        self.waiting = before.waiting
        self.is_restored = before.is_restored
        self._asked, self.rejected_by = before._asked, before.rejected_by

    def ask(self, plan: Plan, trigger: str, reason: str, now_ms: int) -> bool:
        """Seal a plan and ask for its approval; False if it has been asked for already.

        A plan that was rejected, by this process or an earlier one, is not asked for again.
        """
        if self.waiting is not None and self.waiting.plan_hash == plan.hash:
            self.is_restored = False
            return False
        if self._asked == plan.hash and self.rejected_by:
            return False
        self.withdraw("a newer plan replaced it")
        self._asked, self.rejected_by = plan.hash, self._rejected_before(plan.hash)
        if self.rejected_by:
            return False
        question = Question(
            asked_at_ms=now_ms,
            cluster_id=plan.cluster_id,
            plan_hash=plan.hash,
            trigger_name=trigger,
            reason=reason,
            moves=len(plan.moves),
            bytes_to_copy=plan.bytes_to_copy,
        )
        self.waiting = question
        try:
            make_folder(self._folder)
            sealed = plan.model_dump(mode="json")
            write_document(plan_file(self._folder, plan.hash), sealed, private=True)
            for path in _answer_files(self._folder, plan.hash):
                path.unlink(missing_ok=True)
            self._write(question)
            _forget_old(self._folder)
        except (ConfigError, OSError) as exc:
            self._warn(
                f"plan {plan.hash[:12]} cannot be approved from another shell: {exc}",
                LogEvent.QUESTION_FAILED,
            )
        return True

    def withdraw(self, why: str) -> bool:
        """Close the question; False if there is none."""
        return self._close(QuestionState.WITHDRAWN, why)

    @property
    def is_approved(self) -> bool:
        """Whether the waiting plan has an approval that was not taken yet."""
        return self._approval_of(self.waiting) is not None

    def approval(self) -> PlanAnswer | None:
        """Take the approval of the waiting plan, if there is one; it is valid once."""
        found = self._approval_of(self.waiting)
        if found is None:
            return None
        self._close(QuestionState.APPROVED, found.by)
        return found

    def rejection(self) -> str:
        """Who has rejected the waiting plan since the last call; empty if it was not rejected."""
        question = self.waiting
        if question is None:
            return ""
        found = rejected_by(self._folder.parent, question)
        if found is None:
            return ""
        self._asked, self.rejected_by = question.plan_hash, found.by
        self._close(QuestionState.REJECTED, found.by)
        return found.by

    def restore(
        self, cluster_id: str, now_ms: int, *, answers: bool = True
    ) -> tuple[Plan, PlanAnswer] | None:
        """Continue with the question of an earlier process; its plan, if that was approved.

        Questions that are too old are closed. answers: whether to take an approval now.
        """
        for question in questions(self._folder.parent):
            if question.cluster_id != cluster_id or question.state is not QuestionState.WAITING:
                continue
            if self.waiting is not None or not question.is_due(now_ms):
                newer = self.waiting is not None
                why = "a newer plan replaced it" if newer else "it was too old"
                self._write_quietly(_closed(question, QuestionState.WITHDRAWN, why))
                continue
            self.waiting, self.is_restored = question, True
        self.rejection()
        return self.restored_approval() if answers else None

    def restored_approval(self) -> tuple[Plan, PlanAnswer] | None:
        """Take the approval of the question of an earlier process, if it has one, and its plan."""
        question = self.waiting
        if question is None or not self.is_restored or not self.is_approved:
            return None
        try:
            plan = read_plan(plan_file(self._folder, question.plan_hash))
        except ConfigError as exc:
            self.withdraw(f"its plan cannot be read: {exc}")
            return None
        if plan.hash != question.plan_hash or plan.cluster_id != question.cluster_id:
            self.withdraw("its plan is another one")
            return None
        found = self.approval()
        return None if found is None else (plan, found)

    def _close(self, state: QuestionState, how: str) -> bool:
        if self.waiting is None:
            return False
        closed, self.waiting = _closed(self.waiting, state, how), None
        self.is_restored = False
        self._write_quietly(closed)
        return True

    def _approval_of(self, question: Question | None) -> PlanAnswer | None:
        return None if question is None else answered_by(self._folder.parent, question)

    def _write_quietly(self, question: Question) -> None:
        with contextlib.suppress(ConfigError, OSError):
            self._write(question)
            # After that, nobody can approve it any more.
            dropped = self._approval_of(question)
            if dropped is not None and question.state is QuestionState.WITHDRAWN:
                self._warn(
                    f"plan {question.plan_hash[:12]} is not executed, though {dropped.by} approved "
                    f"it: {question.closed}",
                    LogEvent.PLAN_WITHDRAWN,
                )
            for path in _answer_files(self._folder, question.plan_hash):
                path.unlink(missing_ok=True)

    def _rejected_before(self, plan_hash: str) -> str:
        """Who rejected a plan earlier; empty if it was not rejected."""
        path = _question_file(self._folder, plan_hash)
        found = _read(path, KIND, Question) if path.exists() else None
        return found.closed if found and found.state is QuestionState.REJECTED else ""

    def _write(self, question: Question) -> None:
        path = _question_file(self._folder, question.plan_hash)
        write_document(path, question.model_dump(mode="json"), private=True)


def _closed(question: Question, state: QuestionState, how: str) -> Question:
    changes: dict[str, object] = {"state": state, "closed": how}
    if state is QuestionState.REJECTED:
        # Older versions do not know this state.
        changes["schema_version"] = "1.1"
    return question.model_copy(update=changes)


# ---- the person's side


def questions(state_dir: Path) -> list[Question]:
    """Questions in the state folder, closed ones included, the newest first."""
    found = (_read(path, KIND, Question) for path in (state_dir / FOLDER).glob("*.question.json"))
    return sorted((q for q in found if q is not None), key=lambda q: -q.asked_at_ms)


def answered_by(state_dir: Path, question: Question) -> PlanAnswer | None:
    """The approval of a question that no loop has taken yet."""
    return _answer(state_dir, question, APPROVAL)


def rejected_by(state_dir: Path, question: Question) -> PlanAnswer | None:
    """The rejection of a question that no loop has taken yet."""
    return _answer(state_dir, question, REJECTION)


def _answer(state_dir: Path, question: Question, kind: str) -> PlanAnswer | None:
    path = _answer_file(state_dir / FOLDER, question.plan_hash, kind)
    found = _read(path, kind, PlanAnswer) if path.exists() else None
    return found if found is not None and found.asked_at_ms == question.asked_at_ms else None


def approve(
    state_dir: Path,
    prefix: str,
    by: str,
    now_ms: int,
    signed: Callable[[str], object] | None = None,
) -> Question:
    """Approve the waiting plan whose hash begins with `prefix`.

    signed: raises where the plan with this hash needs a signature and has none.

    Raises
    ------
    ConfigError
        No plan has this hash, several begin with it, or the name cannot be used.
    PlanOutdated
        The plan no longer waits.
    GuardrailRefused
        It has been approved or rejected before.
    """
    check_name(by)
    question = _answerable(state_dir, prefix, now_ms)
    if signed is not None:
        signed(question.plan_hash)
    _write_once(
        state_dir / FOLDER,
        question.plan_hash,
        PlanAnswer(kind=APPROVAL, asked_at_ms=question.asked_at_ms, at_ms=now_ms, by=by),
        stale=answered_by(state_dir, question) is None,
        refusal=f"plan {question.plan_hash[:12]} is approved already",
    )
    return question


def reject(state_dir: Path, prefix: str | None, by: str, now_ms: int) -> Question:
    """Reject the waiting plan whose hash begins with `prefix`; None: the only one that waits.

    The loop then does not ask for this plan again. Raises as `approve` does.
    """
    check_name(by)
    if prefix is None:
        waiting = [q for q in questions(state_dir) if q.is_due(now_ms)]
        if len(waiting) != 1:
            hashes = ", ".join(q.plan_hash[:12] for q in waiting)
            raise ConfigError(f"name one of the plans: {hashes}" if waiting else "no plan waits")
        prefix = waiting[0].plan_hash
    question = _answerable(state_dir, prefix, now_ms)
    if answered_by(state_dir, question) is not None:
        raise GuardrailRefused(f"plan {question.plan_hash[:12]} is approved already")
    _write_once(
        state_dir / FOLDER,
        question.plan_hash,
        PlanAnswer(kind=REJECTION, asked_at_ms=question.asked_at_ms, at_ms=now_ms, by=by),
        stale=True,
        refusal=f"plan {question.plan_hash[:12]} is rejected already",
    )
    return question


def retract(state_dir: Path) -> list[Question]:
    """Remove approvals that no loop has taken yet; their plans, which wait again."""
    found = [
        question
        for question in questions(state_dir)
        if question.state is QuestionState.WAITING and answered_by(state_dir, question) is not None
    ]
    for question in found:
        _answer_file(state_dir / FOLDER, question.plan_hash, APPROVAL).unlink(missing_ok=True)
    return found


def known_question(state_dir: Path, prefix: str) -> Question:
    """The question about the plan whose hash begins with `prefix`; ConfigError without one."""
    if not _HASH.fullmatch(prefix):
        raise ConfigError(f"{prefix!r} is not a plan's hash: give 8 to 64 hex digits")
    return _named(state_dir, prefix)


def check_name(by: str) -> None:
    """Raise ConfigError unless it can be the name of who approves."""
    if not by.strip() or len(by) > MOST_NAME or not by.isprintable():
        raise ConfigError(f"--by takes a name of at most {MOST_NAME} printable characters")


def _answerable(state_dir: Path, prefix: str, now_ms: int) -> Question:
    """The question about the plan whose hash begins with `prefix`; raises as `approve` does."""
    question = known_question(state_dir, prefix)
    short = question.plan_hash[:12]
    rejection = rejected_by(state_dir, question)
    if question.state is QuestionState.REJECTED or rejection is not None:
        by = question.closed if rejection is None else rejection.by
        raise GuardrailRefused(f"plan {short} was rejected by {by} already")
    if question.state is QuestionState.APPROVED:
        raise GuardrailRefused(f"plan {short} was approved by {question.closed} already")
    if question.state is QuestionState.WITHDRAWN:
        raise PlanOutdated(f"plan {short} no longer waits: {question.closed}")
    if not question.is_due(now_ms):
        raise PlanOutdated(
            f"plan {short} was asked for more than {seconds_text(VALID_S)} ago; "
            "plimsoll run --auto makes a new one"
        )
    return question


def _named(state_dir: Path, prefix: str) -> Question:
    known = questions(state_dir)
    found = [q for q in known if q.plan_hash.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{len(found)} plans begin with {prefix}; type more characters")
    waiting = [q.plan_hash[:12] for q in known if q.state is QuestionState.WAITING]
    listed = f"waiting: {', '.join(waiting)}" if waiting else "no plan waits"
    raise ConfigError(f"no plan {prefix} is known in {state_dir}; {listed}")


def _write_once(
    folder: Path, plan_hash: str, answer: PlanAnswer, *, stale: bool, refusal: str
) -> None:
    """Write an answer whole or not at all, and never over another one.

    stale: whether a file there is that of an earlier question about the same plan.
    """
    path = _answer_file(folder, plan_hash, answer.kind)
    if stale:
        path.unlink(missing_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w") as out:
            out.write(json.dumps(answer.model_dump(mode="json"), sort_keys=True) + "\n")
            out.flush()
            os.fsync(out.fileno())
        os.link(partial, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise GuardrailRefused(refusal) from None
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror or exc}") from exc
    finally:
        partial.unlink(missing_ok=True)


# ---- files


def plan_file(folder: Path, plan_hash: str) -> Path:
    """The sealed plan of a question; folder: that of the questions."""
    return folder / f"{plan_hash}.plan.json"


def _question_file(folder: Path, plan_hash: str) -> Path:
    return folder / f"{plan_hash}.question.json"


def _answer_file(folder: Path, plan_hash: str, kind: str) -> Path:
    return folder / f"{plan_hash}.{kind.rpartition('.')[2]}.json"


def _answer_files(folder: Path, plan_hash: str) -> tuple[Path, ...]:
    return tuple(_answer_file(folder, plan_hash, kind) for kind in (APPROVAL, REJECTION))


def _read(path: Path, kind: str, model: type[T]) -> T | None:
    """A file of the folder; None, with a warning, if it cannot be used."""
    try:
        return validate_document(model, read_document(path, kind, 1), path)
    except ConfigError as exc:
        _log.warning("%s", exc, extra=named(LogEvent.QUESTION_FAILED))
        return None


def _forget_old(folder: Path) -> None:
    """Remove the oldest questions and their plans."""
    for question in questions(folder.parent)[MOST_KEPT:]:
        for path in _files(folder, question.plan_hash):
            path.unlink(missing_ok=True)


def _files(folder: Path, plan_hash: str) -> Iterator[Path]:
    yield from (_question_file(folder, plan_hash), plan_file(folder, plan_hash))
    yield signature_file(plan_file(folder, plan_hash))
    yield from _answer_files(folder, plan_hash)
