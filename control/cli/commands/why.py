"""`plimsoll why`: what `run --auto` decided, why, and when it reconsiders."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control.cli.output_types import WhyAnswer
    from control.settings.settings import Settings

MOST: Final = 2_000
Last = Annotated[
    int, typer.Option(min=1, max=MOST, help="Print this many decisions, oldest first.")
]


def why(*, last: Last = 1, local_settings: "Settings", output: Output = Form.TABLE) -> int:
    """Print the last decisions that `run --auto` recorded, and name open tasks on stderr."""
    from control.render.decision_answers import why_answer
    from control.render.text import answer_text
    from control.tasks.task_files import TaskFiles
    from control.tasks.task_notes import open_task_notes

    answer = why_answer(local_settings.state_dir, last, int(1000 * time.time()), _warn)
    if not answer.decisions:
        sys.stderr.write(
            f"plimsoll: no decision is recorded in {local_settings.state_dir}; "
            "plimsoll run --auto records them\n"
        )
    for note in _ended_notes(answer):
        _warn(note)
    notes = open_task_notes(TaskFiles(local_settings.state_dir))
    for note in notes:
        sys.stderr.write(f"plimsoll: {note}\n")
    sys.stdout.write(answer_text(answer, decisions_text, output))
    return Exit.DONE if answer.decisions or notes else Exit.INCOMPLETE


def _ended_notes(answer: "WhyAnswer") -> "Iterator[str]":
    """Say that nothing decides about the clusters of the printed decisions any more."""
    newest = {each.cluster_id: each.decision for each in answer.decisions}
    for each in answer.clusters:
        if each.running is not False or each.cluster_id not in newest:
            continue
        words = f"no run --auto is running for the cluster {each.cluster_id}"
        if newest[each.cluster_id] == "ended":
            yield f"{words} since {each.last_seen}"
        else:
            yield f"{words}; the last one crashed or was killed after {each.last_seen}"


def _warn(words: str) -> None:
    sys.stderr.write(f"plimsoll: {words}\n")


def decisions_text(answer: "WhyAnswer") -> str:
    """Two lines for each decision; with the cluster where several have any."""
    lines, several = [], len(answer.clusters) > 1
    for each in answer.decisions:
        of = f"  {each.cluster_id}" if several else ""
        why = "; ".join(dict.fromkeys(filter(None, (each.trigger, each.reason))))
        plan = f" (plan {each.plan_hash})" if each.plan_hash else ""
        name = f" ({each.trigger_name})" if each.trigger_name else ""
        lines.append(f"{each.at}{of}  {each.decision}{name}: {why or 'nothing to do'}{plan}")
        lines.append(f"{' ' * len(each.at)}  reconsidered {each.reconsidered}")
    return "".join(f"{line}\n" for line in lines)
