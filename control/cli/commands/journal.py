"""`plimsoll journal verify` and `repair`: journals judged, and what is intact kept."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from control import compose
from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from control.render.plan_text import json_text, table
from control.settings.settings import Settings
from executor.timing import Timing

if TYPE_CHECKING:
    from executor.journal.journal_repair import Verdict


def verify(settings: Settings, run_id: str | None, *, output: Form) -> int:
    """Judge the journals in the state folder; the exit code says if all are intact."""
    from executor.journal.journal_repair import check_journals

    found = check_journals(compose.journal_dir(settings), run_id or "")
    _show(found, output)
    return Exit.USAGE if any(v.is_damaged for v in found) else Exit.DONE


def repair(settings: Settings, run_id: str, *, output: Form) -> int:
    """Write a damaged journal again from its intact records; the original is kept."""
    from executor.journal.journal_repair import check_journals, repaired

    folder = compose.journal_dir(settings)
    before, original = repaired(folder, run_id, Timing())
    for words in before.may_be_set:
        sys.stderr.write(f"plimsoll: {words}\n")
    sys.stderr.write(
        f"plimsoll: {before.path} was repaired; the original is {original}\n"
    )
    _show(check_journals(folder, before.run_id), output)
    return Exit.USAGE if before.plan_problem else Exit.DONE


def _show(found: "Sequence[Verdict]", output: Form) -> None:
    if output is Form.JSON:
        sys.stdout.write(json_text({"journals": [_document(v) for v in found]}))
        return
    headers = ["run", "cluster", "records", "state"]
    sys.stdout.write(table(headers, [_row(v) for v in found]))
    for verdict in found:
        for words in _problems(verdict):
            sys.stdout.write(f"{verdict.run_id}: {words}\n")


def _row(verdict: "Verdict") -> list[str]:
    return [
        verdict.run_id,
        verdict.cluster_id or "unknown",
        f"{len(verdict.content.intact):,}",
        _state(verdict),
    ]


def _state(verdict: "Verdict") -> str:
    if verdict.is_damaged:
        return "damaged"
    if verdict.content.repaired:
        return "repaired"
    if verdict.content.torn_bytes:
        return "cut off at the end"
    return "intact" if verdict.content.intact else "no records"


def _problems(verdict: "Verdict") -> list[str]:
    losses = verdict.content.repaired if not verdict.is_damaged else ()
    damage = map(str, (*verdict.content.damage, *losses))
    plan = [verdict.plan_problem] if verdict.plan_problem else []
    return [*damage, *plan, *verdict.may_be_set]


def _document(verdict: "Verdict") -> dict[str, Any]:
    content = verdict.content
    return {
        "run_id": verdict.run_id,
        "path": str(verdict.path),
        "cluster_id": verdict.cluster_id,
        "state": _state(verdict),
        "records": len(content.intact),
        "cut_off_bytes": content.torn_bytes,
        "damage": [
            {"line": d.line, "problem": d.problem, "may_lose_records": d.loses}
            for d in content.damage
        ],
        "repaired": [{"line": d.line, "problem": d.problem} for d in content.repaired],
        "plan_problem": verdict.plan_problem or None,
        "may_be_set": list(verdict.may_be_set),
    }
