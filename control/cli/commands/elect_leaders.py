"""`plimsoll elect`: preferred leaders, where another replica leads."""

import contextlib
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from control import compose
from control.cli.commands.apply import confirmed, requests_text
from control.cli.console import operator
from control.cli.exit_codes import Exit
from control.cli.output_files import KAFKA, check_file
from control.cli.output_format import Form
from control.render.plan_text import file_text, json_text, table
from control.settings.settings import Settings
from model.errors import ConfigError, GuardrailRefused
from model.exchange.reassignment import election_of, read_election
from model.files import write_document
from model.ids import PartitionId
from model.units import count_text

if TYPE_CHECKING:
    from executor.executor import Executor
    from executor.run.elections import Election, Elections


def hold(
    settings: Settings,
    topics: Sequence[str] | None,
    *,
    file: Path | None,
    out: Path | None,
    allow_changes: bool,
    dry_run: bool,
    yes: bool,
    output: Form,
) -> int:
    """Elect the preferred leaders of a file, of topics or of the whole cluster.

    With `out` the elections are written there for the stock tool and none is held.
    """
    check_file(out, KAFKA)
    ids = _named(topics, file)
    compose.bootstrap_of(settings)
    if not (allow_changes or dry_run or out):
        raise GuardrailRefused(
            "plimsoll is read-only; say --allow-changes to elect, --dry-run to see "
            "the requests, or --out FILE to write them for kafka-leader-election"
        )
    with contextlib.closing(compose.executor(settings)) as executor:
        found = executor.elections(topics or None, ids)
        _report_skipped(found)
        if out is not None:
            write_document(out, election_of(e.id for e in found.possible))
            sys.stdout.write(file_text(out, output))
            return Exit.DONE
        if dry_run:
            sys.stdout.write(requests_text(_requests(found), output))
            return Exit.DONE
        failed = _held(executor, settings, found, yes=yes) if found.possible else ()
    return _told(found, failed, output)


def _held(
    executor: "Executor", settings: Settings, found: "Elections", *, yes: bool
) -> "tuple[Election, ...]":
    shown = requests_text(_requests(found), Form.TABLE)
    asked = (shown, found.cluster_id, "hold these elections")
    if not (yes or confirmed(*asked)):
        raise GuardrailRefused("not confirmed; nothing was changed")
    return executor.elect(found, compose.journal_dir(settings), by=operator())


def _report_skipped(found: "Elections") -> None:
    for election in found.left:
        sys.stderr.write(f"plimsoll: left alone: {election.id}: {election.obstacle}\n")
    if not found.possible:
        sys.stderr.write(f"plimsoll: {_nothing(found)}\n")


def _named(
    topics: Sequence[str] | None, file: Path | None
) -> tuple[PartitionId, ...] | None:
    if file is None:
        return None
    if topics:
        raise ConfigError("--topic and --from each name partitions; name one of them")
    rows = read_election(file).partitions
    return tuple(PartitionId(row.topic, row.partition) for row in rows)


def _nothing(found: "Elections") -> str:
    """Why none can be held, in words."""
    if found.left:
        return "no other election can be held now"
    if not found.looked_at:
        return "no partition is named; nothing to elect"
    if not found.replicated:
        return (
            f"no partition of {found.looked_at:,} has a second replica, as none has on "
            "AutoMQ; nothing to elect"
        )
    many = count_text(found.looked_at, "partition")
    return f"the first replica leads each of {many}; nothing to elect"


def _requests(found: "Elections") -> list[str]:
    return [f"ElectLeaders preferred {e.id}: {e.preferred}" for e in found.possible]


def _told(found: "Elections", failed: "Collection[Election]", output: Form) -> int:
    """Print what became of each election; the exit code."""
    if output is Form.JSON:
        sys.stdout.write(json_text(_document(found, failed)))
    elif found.possible:
        headers = ["partition", "led by", "preferred", "state"]
        lacking = {election.id for election in failed}
        rows = [
            [
                str(e.id),
                str(e.leader),
                str(e.preferred),
                "not elected" if e.id in lacking else "elected",
            ]
            for e in found.possible
        ]
        sys.stdout.write(table(headers, rows))
    for election in failed:
        sys.stderr.write(f"plimsoll: {election.id}: {election.obstacle}\n")
    return Exit.INCOMPLETE if failed else Exit.DONE


def _document(found: "Elections", failed: "Collection[Election]") -> dict[str, Any]:
    """The same for programs; what was left alone stands in it too."""
    notes = {e.id: e.obstacle for e in (*found.left, *failed)}
    return {
        "cluster_id": found.cluster_id,
        "partitions_looked_at": found.looked_at,
        "elections": [
            {
                "topic": e.id.topic,
                "partition": e.id.partition,
                "led_by": e.leader,
                "preferred": e.preferred,
                "elected": e.id not in notes,
                "note": notes.get(e.id, ""),
            }
            for e in found.found
        ],
    }
