"""`plimsoll config show`: every setting, its value and where it comes from."""

import sys
from typing import Any

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form


def show(*, setting_flags: dict[str, Any], output: Output = Form.TABLE) -> int:
    """Print the settings as the other commands would use them; create nothing."""
    from control.cli import logs
    from control.render.settings_table import settings_answer, settings_text
    from control.render.text import answer_text

    given = setting_flags
    logs.configure(verbose=given["verbose"], file=given["log_file"], form=given["log_format"])
    flags = {
        "bootstrap_server": given["bootstrap_server"],
        "client_properties": given["client_properties"],
        "spark_master": given["spark_master"],
        "screen.ascii": given["ascii_only"] or None,
        "screen.theme": given["theme"],
    }
    answer = settings_answer(flags, config=given["config"], profile=given["profile"])
    sys.stdout.write(answer_text(answer, settings_text, output))
    return Exit.DONE
