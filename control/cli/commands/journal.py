"""`plimsoll journal`: check the journals of runs, and repair a damaged one."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from control.cli.exit_codes import Exit
from control.cli.options import Output, run_argument
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import JournalAnswer, JournalSummary
    from control.settings.settings import Settings
    from executor.journal.journal_repair import JournalCheck


def verify(
    run: Annotated[
        str | None,
        run_argument(help="The run, or the first characters of its id. By default all runs."),
    ] = None,
    *,
    settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Check the journals in the state folder; USAGE if any is damaged."""
    from control import compose
    from executor.journal.journal_repair import check_journals

    found = check_journals(compose.journal_dir(settings), run or "")
    _print(found, output)
    return Exit.USAGE if any(v.is_damaged for v in found) else Exit.DONE


def repair(
    run: Annotated[str, run_argument(help="The run, or the first characters of its id.")],
    *,
    settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Rewrite a damaged journal from its intact records, keeping the original."""
    from control import compose
    from executor.journal.journal_repair import check_journals, repaired
    from executor.timing import Timing

    folder = compose.journal_dir(settings)
    before, original = repaired(folder, run, Timing())
    for sentence in before.may_be_set:
        sys.stderr.write(f"plimsoll: {sentence}\n")
    sys.stderr.write(f"plimsoll: {before.path} was repaired; the original is {original}\n")
    _print(check_journals(folder, before.run_id), output)
    return Exit.USAGE if before.plan_problem else Exit.DONE


def _print(found: "Sequence[JournalCheck]", output: Form) -> None:
    from control.cli.output_types import JournalAnswer
    from control.render.text import answer_text

    answer = JournalAnswer.of(journals=map(_summary, found))
    sys.stdout.write(answer_text(answer, _text, output))


def _summary(verdict: "JournalCheck") -> "JournalSummary":
    from control.cli.output_types import DamagedLine, JournalSummary

    content = verdict.content
    return JournalSummary.of(
        verdict,
        state=_state(verdict),
        records=len(content.intact),
        cut_off_bytes=content.torn_bytes,
        damage=[DamagedLine.of(d, may_lose_records=d.loses) for d in content.damage],
        repaired=content.repaired,
        plan_problem=verdict.plan_problem or None,
    )


def _state(verdict: "JournalCheck") -> str:
    if verdict.is_damaged:
        return "damaged"
    if verdict.content.repaired:
        return "repaired"
    if verdict.content.torn_bytes:
        return "cut off at the end"
    return "intact" if verdict.content.intact else "no records"


def _text(answer: "JournalAnswer") -> str:
    from control.render.text import table

    rows = [
        [j.run_id, j.cluster_id or "unknown", f"{j.records:,}", j.state] for j in answer.journals
    ]
    problems = (f"{j.run_id}: {words}\n" for j in answer.journals for words in _problems(j))
    return table(["run", "cluster", "records", "state"], rows) + "".join(problems)


def _problems(journal: "JournalSummary") -> list[str]:
    losses = journal.repaired if journal.state != "damaged" else ()
    lines = [f"line {one.line} {one.problem}" for one in (*journal.damage, *losses)]
    plan = [journal.plan_problem] if journal.plan_problem else []
    return [*lines, *plan, *journal.may_be_set]
