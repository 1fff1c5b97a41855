"""`plimsoll schema`: the JSON schema of a file, or of what a command prints."""

import sys
from typing import Annotated

import typer

from control.cli.completion import schema_kinds
from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form


def schema(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            autocompletion=schema_kinds,
            help="A kind of file (plan, snapshot, goals ...), or what a command prints "
            "with -o json (plan-output, status-output ...).",
        ),
    ],
    *,
    output: Output = Form.JSON,
) -> int:
    """Print the schema, which has no other form than JSON."""
    from control.cli.output_types import ANSWERS, FORMER_ANSWERS
    from control.render.text import json_text
    from model.exchange.json_schemas import FILES, schema_of

    del output
    name = FORMER_ANSWERS.get(name, name)
    sys.stdout.write(json_text(schema_of(name, {**FILES, **ANSWERS})))
    return Exit.DONE
