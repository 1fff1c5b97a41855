"""Two-step review: the plans of `--auto` that wait for a person, as requests under review."""

from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from control.cruise_control.answers import Failed
from control.cruise_control.load_documents import VERSION
from control.cruise_control.requests import REVIEW_ID, BadRequest, Request
from control.loop import questions
from control.loop.questions import Question, QuestionState
from control.service.audit_log import AuditVia
from control.service.operator_actions import (
    UNKNOWN,
    Action,
    ActionRequest,
    OperatorActions,
    client_name,
)

_DIGITS: Final = 7
"""Hex digits of a plan's hash that make its id: more do not fit into an int32."""
REVIEWED: Final = "rebalance"
"""The endpoint of all requests under review."""


class ReviewStatus(StrEnum):
    """The status of a request under review, in Cruise Control's words."""

    PENDING = "PENDING_REVIEW"
    APPROVED = "APPROVED"
    """Its run has not begun."""
    SUBMITTED = "SUBMITTED"
    """Its run has begun."""
    DISCARDED = "DISCARDED"


def review_id(question: Question) -> int:
    """The id of a waiting plan; the same after a restart."""
    return int(question.plan_hash[:_DIGITS], 16)


def review_board(state_dir: Path, request: Request, now_ms: int) -> dict[str, Any]:
    """The plans that wait or did, newest first; `review_ids` names some."""
    asked = request.values.get("review_ids")
    found = [
        _row(question, state_dir, now_ms)
        for question in questions.questions(state_dir)
        if asked is None or review_id(question) in asked
    ]
    return {"version": VERSION, "RequestInfo": found}


def review(actions: OperatorActions, request: Request, client: str) -> None:
    """Approve or discard waiting plans; the run of an approved one starts.

    Raises BadRequest without ids or for one that is to be both, Failed for an unknown one, and as
    `OperatorActions.perform`.
    """
    values = request.values
    asked = [(Action.APPROVE, n) for n in values.get("approve", ())]
    asked += [(Action.REJECT, n) for n in values.get("discard", ())]
    if not asked:
        raise BadRequest("approve and discard are missing")
    if len({number for _, number in asked}) < len(asked):
        raise BadRequest("an id is named twice")
    known = {review_id(q): q for q in questions.questions(actions.state_dir)}
    for _, number in asked:
        if number not in known:
            raise _unknown(number)
    for action, number in asked:
        order = ActionRequest(by=client_name(client), plan_hash=known[number].plan_hash)
        actions.perform(action, order, UNKNOWN, AuditVia.CRUISE_CONTROL)


def reviewed(state_dir: Path, request: Request) -> Question:
    """The plan that a request means by `review_id`, whatever became of it.

    Raises Failed for an unknown id, and where the plan is not one of this endpoint.
    """
    number = request.values[REVIEW_ID]
    found = next((q for q in questions.questions(state_dir) if review_id(q) == number), None)
    if found is None:
        raise _unknown(number)
    if request.endpoint.name != REVIEWED:
        raise Failed(f"request {number} under review is a {REVIEWED}; leave out {REVIEW_ID}")
    return found


def _unknown(number: int) -> Failed:
    return Failed(f"there is no request {number} under review")


def _row(question: Question, state_dir: Path, now_ms: int) -> dict[str, Any]:
    return {
        "Id": review_id(question),
        "SubmitterAddress": "plimsoll",
        "SubmissionTimeMs": question.asked_at_ms,
        "Status": review_status(question, state_dir, now_ms),
        "EndpointWithParams": f"POST /{REVIEWED} (plan {question.plan_hash[:12]})",
        "Reason": f"{question.trigger_name}: {question.reason}",
    }


def review_status(question: Question, state_dir: Path, now_ms: int) -> ReviewStatus:
    """What became of a plan that waits or did."""
    if question.state is QuestionState.APPROVED:
        return ReviewStatus.SUBMITTED
    if not question.is_due(now_ms) or questions.rejected_by(state_dir, question) is not None:
        return ReviewStatus.DISCARDED
    approved = questions.answered_by(state_dir, question) is not None
    return ReviewStatus.APPROVED if approved else ReviewStatus.PENDING
