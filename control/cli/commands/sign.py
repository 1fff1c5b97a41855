"""`plimsoll sign`: sign a plan, so that it can be executed where signatures are required."""

import base64
import sys
from pathlib import Path
from typing import Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import PlanFile


def sign(
    plan_file: PlanFile,
    *,
    key: Annotated[
        Path, typer.Option(metavar="FILE", help="Private Ed25519 key in PEM, not encrypted.")
    ],
) -> int:
    """Add a signature of the plan to the file PLAN.sig; the plan itself stays as it is.

    Raises ConfigError where the plan, the key or the signatures cannot be used.
    """
    from model.plan.plan import read_plan
    from model.plan.signatures import add_signatures, signature_file
    from model.plan.signatures import sign as signed

    plan = read_plan(plan_file)
    signature = signed(plan.hash, key)
    path = signature_file(plan_file)
    add_signatures(path, [base64.b64decode(signature.text)])
    sys.stderr.write(
        f"plimsoll: {path} has a signature of plan {plan.hash[:12]} by {signature.signer}\n"
    )
    return Exit.DONE
