"""`plimsoll approve`: release a plan of `run --auto` that waits for a person."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import ApproveAnswer
    from control.settings.settings import Settings


def approve(
    plan_hash: Annotated[
        str | None,
        typer.Argument(
            metavar="HASH",
            help="The plan's hash, or its first 8 characters or more. By default, list what waits.",
        ),
    ] = None,
    *,
    signature: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Signature of the plan, where signatures are required."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who approves; by default the login name.")
    ] = None,
    local_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Approve exactly this plan, once; the `run --auto` that asked executes it.

    Raises ConfigError for an unknown hash, PlanOutdated for a plan that no longer waits,
    GuardrailRefused for one that was approved before, or lacks a required signature.
    """
    from control import compose
    from control.cli.console import operator
    from control.cli.output_types import ApproveAnswer
    from control.loop import questions
    from control.render.decision_answers import waiting_answer
    from control.render.text import answer_text
    from control.service.audit_log import AuditVia, recorded
    from control.service.auto_watch import approval_record

    folder, now_ms = local_settings.state_dir, int(1000 * time.time())
    if plan_hash is None:
        found = [q for q in questions.questions(folder) if q.is_due(now_ms)]
        if not found:
            sys.stderr.write(f"plimsoll: no plan waits for approval in {folder}\n")
    else:
        name = operator() if by is None else by
        questions.check_name(name)
        record = approval_record(name, operator(), plan_hash.lower(), now_ms, AuditVia.COMMAND)
        with recorded(folder, record, "approved"):
            if signature is not None:
                _keep_signature(folder, plan_hash.lower(), signature)
            signed = compose.signed(local_settings)
            found = [questions.approve(folder, plan_hash.lower(), name, now_ms, signed)]
    answer = ApproveAnswer.of(plans=[waiting_answer(folder, each, now_ms) for each in found])
    sys.stdout.write(answer_text(answer, _text, output))
    return Exit.DONE


def _keep_signature(state_dir: Path, prefix: str, given: Path) -> None:
    """Copy signatures to the waiting plan; raises ConfigError where a file cannot be used."""
    from control.loop import questions
    from model.plan.signatures import add_signatures, read_signatures, signature_file

    question = questions.known_question(state_dir, prefix)
    waiting = questions.plan_file(state_dir / questions.FOLDER, question.plan_hash)
    add_signatures(signature_file(waiting), read_signatures(given))


def _text(answer: "ApproveAnswer") -> str:
    from model.units import bytes_text, count_text

    lines = []
    for each in answer.plans:
        size = "an unknown size" if each.bytes_to_copy is None else bytes_text(each.bytes_to_copy)
        moves = count_text(each.moves, "move")
        how = f"approved by {each.approved_by}" if each.approved_by else "waits for approval"
        lines += [
            f"plan {each.plan_hash[:12]} of {each.cluster_id}: {moves}, {size} to copy; {how}",
            f"  asked {each.asked_at}: {each.reason}",
            f"  plimsoll explain {each.plan}",
        ]
    return "".join(f"{line}\n" for line in lines)
