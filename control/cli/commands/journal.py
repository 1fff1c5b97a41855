"""`plimsoll journal`: check the journals of runs, and repair a damaged one."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from control.cli.exit_codes import Exit
from control.cli.options import Output, run_argument
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import JournalSummary
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
    from control.render.text import json_text, table

    if output is Form.JSON:
        sys.stdout.write(json_text(JournalAnswer.of(journals=map(_summary, found))))
        return
    headers = ["run", "cluster", "records", "state"]
    sys.stdout.write(table(headers, [_row(v) for v in found]))
    for verdict in found:
        for problem in _problems(verdict):
            sys.stdout.write(f"{verdict.run_id}: {problem}\n")


def _row(verdict: "JournalCheck") -> list[str]:
    return [
        verdict.run_id,
        verdict.cluster_id or "unknown",
        f"{len(verdict.content.intact):,}",
        _state(verdict),
    ]


def _state(verdict: "JournalCheck") -> str:
    if verdict.is_damaged:
        return "damaged"
    if verdict.content.repaired:
        return "repaired"
    if verdict.content.torn_bytes:
        return "cut off at the end"
    return "intact" if verdict.content.intact else "no records"


def _problems(verdict: "JournalCheck") -> list[str]:
    losses = verdict.content.repaired if not verdict.is_damaged else ()
    damage = map(str, (*verdict.content.damage, *losses))
    plan = [verdict.plan_problem] if verdict.plan_problem else []
    return [*damage, *plan, *verdict.may_be_set]


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
