"""`plimsoll schema`: the JSON schema of a file kind."""

import sys

from control.exits import Exit
from control.render import json_text
from model.exchange.schema import schema_of


def show(name: str) -> int:
    """Print the schema."""
    sys.stdout.write(json_text(schema_of(name)))
    return Exit.DONE
