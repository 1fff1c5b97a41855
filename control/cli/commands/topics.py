"""`plimsoll topics`: the load of each topic, and how evenly it is spread over the brokers."""

import sys
from typing import TYPE_CHECKING

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import Origin
    from control.settings.settings import Settings


def topics(*, settings: "Settings", origin: "Origin", output: Output = Form.TABLE) -> int:
    """Print what the screen of topics shows."""
    from control.cli.input_source import observed
    from control.render.text import answer_text
    from control.render.topics_table import topics_answer, topics_text

    snapshot, replication = observed(settings, origin)
    answer = topics_answer(snapshot, settings.goals, replication)
    sys.stdout.write(answer_text(answer, topics_text, output))
    return Exit.DONE
