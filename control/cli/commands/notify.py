"""`plimsoll notify`: try the receivers of notifications."""

import sys
import time
from typing import TYPE_CHECKING

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import NotifyAnswer
    from control.settings.settings import Settings


def test(*, local_settings: "Settings", output: Output = Form.TABLE) -> int:  # noqa: PT028  # no test of pytest
    """Send a message to every receiver, once. Exits with 3 where one did not get it."""
    from control.cli.output_types import NotifiedAnswer, NotifyAnswer
    from control.render.text import answer_text
    from control.service.notifications import Notice, receivers_of, tried
    from control.settings.notify_table import NotifyLevel
    from model.errors import ConfigError

    receivers = receivers_of(local_settings.notify)
    if not receivers:
        raise ConfigError("the settings have no receiver; add a table [[notify]]")
    notice = Notice(
        at_s=time.time(),
        level=NotifyLevel.INFO,
        event="notify.test",
        message="this is a test of plimsoll's notifications",
        cluster=local_settings.name or local_settings.bootstrap_server or "",
    )
    found = tried(receivers, notice)
    answer = NotifyAnswer.of(
        receivers=[NotifiedAnswer.of(receiver=k, problem=v) for k, v in found.items()]
    )
    sys.stdout.write(answer_text(answer, _text, output))
    return Exit.UNREACHABLE if any(found.values()) else Exit.DONE


def _text(answer: "NotifyAnswer") -> str:
    return "".join(
        f"{each.receiver}: {f'not notified: {each.problem}' if each.problem else 'notified'}\n"
        for each in answer.receivers
    )
