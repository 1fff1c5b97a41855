"""`plimsoll cleanup`: restore settings that interrupted runs have left changed."""

import contextlib
import sys
from typing import TYPE_CHECKING

from control.cli.exit_codes import Exit
from control.cli.options import AllowChanges, Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import CleanupAnswer
    from control.settings.settings import Settings


def cleanup(
    *, settings: "Settings", allow_changes: AllowChanges = False, output: Output = Form.TABLE
) -> int:
    """Restore the settings, and print what was restored and what remains."""
    from control import compose
    from control.cli.output_types import CleanupAnswer
    from control.cli.plan_execution import refuse_read_only, restored_settings
    from control.render.text import answer_text

    compose.bootstrap_of(settings)
    refuse_read_only(allow_changes, "restore the settings that interrupted runs have left changed")
    with contextlib.closing(compose.executor(settings)) as executor:
        restored, remaining = restored_settings(executor, settings)
    answer = CleanupAnswer.of(done=restored, left=remaining)
    sys.stdout.write(answer_text(answer, _text, output))
    return Exit.INCOMPLETE if remaining else Exit.DONE


def _text(answer: "CleanupAnswer") -> str:
    sentences = (*answer.done, *answer.left) or ("no run has left settings changed",)
    return "".join(f"{sentence}\n" for sentence in sentences)
