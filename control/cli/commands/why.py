"""`plimsoll why`: what `run --auto` decided, why, and when it reconsiders."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import DecisionAnswer, WhyAnswer
    from control.loop.decision_file import DecisionRecord
    from control.settings.settings import Settings

MOST: Final = 2_000


def why(
    *,
    last: Annotated[
        int, typer.Option(min=1, max=MOST, help="Print this many decisions, oldest first.")
    ] = 1,
    local_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Print the last decisions that `run --auto` recorded, and name open tasks on stderr."""
    from control.cli.output_types import WhyAnswer
    from control.loop.decision_file import read_decisions
    from control.render.text import answer_text
    from control.tasks.task_notes import open_task_notes

    found = read_decisions(local_settings.state_dir, last)
    now_ms = int(1000 * time.time())
    answer = WhyAnswer.of(decisions=tuple(_answer(record, now_ms) for record in found))
    if not found:
        sys.stderr.write(
            f"plimsoll: no decision is recorded in {local_settings.state_dir}; "
            "plimsoll run --auto records them\n"
        )
    for note in open_task_notes(local_settings.state_dir):
        sys.stderr.write(f"plimsoll: {note}\n")
    sys.stdout.write(answer_text(answer, _text, output))
    return Exit.DONE if found else Exit.INCOMPLETE


def _answer(record: "DecisionRecord", now_ms: int) -> "DecisionAnswer":
    from control.cli.output_types import DecisionAnswer
    from control.render.text import time_text

    return DecisionAnswer.of(
        record,
        at=time_text(record.at_ms),
        age_s=max(0.0, (now_ms - record.at_ms) / 1000),
        reconsidered=_when(record),
        until=None if record.until_ms is None else time_text(record.until_ms),
    )


def _when(record: "DecisionRecord") -> str:
    """When a decision is reconsidered, in words."""
    from control.loop.decision_file import WHEN
    from control.render.text import time_text

    if record.until_ms is not None:
        return f"not before {time_text(record.until_ms)}"
    return WHEN.get(record.decision, "with the next loads")


def _text(answer: "WhyAnswer") -> str:
    lines = []
    for each in answer.decisions:
        why = "; ".join(dict.fromkeys(filter(None, (each.trigger, each.reason))))
        plan = f" (plan {each.plan_hash})" if each.plan_hash else ""
        name = f" ({each.trigger_name})" if each.trigger_name else ""
        lines.append(f"{each.at}  {each.decision}{name}: {why or 'nothing to do'}{plan}")
        lines.append(f"{' ' * len(each.at)}  reconsidered {each.reconsidered}")
    return "".join(f"{line}\n" for line in lines)
