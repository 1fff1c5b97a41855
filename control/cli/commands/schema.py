"""`plimsoll schema`: the JSON schema of a kind of file, or of what a command prints."""

import sys

from control.cli.exit_codes import Exit
from control.cli.output_types import ANSWERS
from control.render.plan_text import json_text
from model.exchange.json_schemas import FILES, schema_of


def show(name: str) -> int:
    """Print the schema."""
    sys.stdout.write(json_text(schema_of(name, {**FILES, **ANSWERS})))
    return Exit.DONE
