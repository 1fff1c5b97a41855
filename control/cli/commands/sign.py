"""`plimsoll sign`: sign a plan, so that it can be executed where signatures are required."""

import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output, PlanFile
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import SignAnswer


def sign(
    plan_file: PlanFile,
    *,
    key: Annotated[
        Path, typer.Option(metavar="FILE", help="Private Ed25519 key in PEM, not encrypted.")
    ],
    output: Output = Form.TABLE,
) -> int:
    """Add a signature of the plan to the file PLAN.sig; the plan itself stays as it is.

    Raises ConfigError where the plan, the key or the signatures cannot be used.
    """
    from control.cli.output_types import SignAnswer
    from control.render.text import answer_text
    from model.plan.plan import read_plan
    from model.plan.signatures import add_signatures, signature_file
    from model.plan.signatures import sign as signed

    plan = read_plan(plan_file)
    signature = signed(plan.hash, key)
    path = signature_file(plan_file)
    add_signatures(path, [base64.b64decode(signature.text)])
    answer = SignAnswer.of(
        plan_hash=plan.hash, signer=signature.signer, signature=signature.text, file=str(path)
    )
    sys.stdout.write(answer_text(answer, _text, output))
    return Exit.DONE


def _text(answer: "SignAnswer") -> str:
    return f"{answer.file} has a signature of plan {answer.plan_hash[:12]} by {answer.signer}\n"
