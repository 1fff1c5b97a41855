"""`plimsoll elect-leaders`: preferred leaders where another replica leads."""

import contextlib
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.console import operator
from control.cli.exit_codes import Exit
from control.cli.options import AllowChanges, DryRun, Output, Yes, output_file
from control.cli.output import Form
from model.errors import ConfigError, GuardrailRefused
from model.ids import PartitionId
from model.units import count_text

if TYPE_CHECKING:
    from control.cli.output_types import ElectLeadersAnswer
    from control.settings.settings import Settings
    from executor.executor import Executor
    from executor.run.elections import LeaderElection, LeaderElections


def elect_leaders(
    *,
    settings: "Settings",
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Only this topic's partitions. Repeatable."),
    ] = None,
    election: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Only the partitions in this kafka-leader-election JSON."
        ),
    ] = None,
    out: Annotated[
        Path | None, output_file(help="Write that JSON here instead of electing.")
    ] = None,
    allow_changes: AllowChanges = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> int:
    """Elect the preferred leaders of a file, of topics or of the whole cluster.

    With `out` the elections are written for kafka-leader-election and none is held.
    """
    from control import compose
    from control.cli.output_files import KAFKA, check_file
    from control.cli.plan_execution import requests_text
    from control.render.text import file_text
    from model.exchange.reassignment import election_of
    from model.files import write_document

    check_file(out, KAFKA)
    ids = _named(topic, election)
    compose.bootstrap_of(settings)
    if not (allow_changes or dry_run or out):
        raise GuardrailRefused(
            "plimsoll is read-only; add --allow-changes to elect, --dry-run to see "
            "the requests, or --out FILE to write them for kafka-leader-election"
        )
    with contextlib.closing(compose.executor(settings)) as executor:
        elections = executor.elections(topic or None, ids)
        _report_skipped(elections)
        if out is not None:
            write_document(out, election_of(e.id for e in elections.possible))
            sys.stdout.write(file_text(out, output))
            return Exit.DONE
        if dry_run:
            sys.stdout.write(requests_text(_requests(elections), output))
            return Exit.DONE
        failed = _held(executor, settings, elections, yes=yes) if elections.possible else ()
    return _report(elections, failed, output)


def _held(
    executor: "Executor", settings: "Settings", elections: "LeaderElections", *, yes: bool
) -> "tuple[LeaderElection, ...]":
    """Hold the elections once confirmed; those that failed."""
    from control import compose
    from control.cli.plan_execution import confirmed, requests_text

    shown = requests_text(_requests(elections), Form.TABLE)
    if not (yes or confirmed(shown, elections.cluster_id, "hold these elections")):
        raise GuardrailRefused("not confirmed; nothing was changed")
    return executor.elect(elections, compose.journal_dir(settings), by=operator())


def _report_skipped(elections: "LeaderElections") -> None:
    for election in elections.impossible:
        sys.stderr.write(f"plimsoll: skipped: {election.id}: {election.obstacle}\n")
    if not elections.possible:
        sys.stderr.write(f"plimsoll: {_why_none(elections)}\n")


def _named(topics: Sequence[str] | None, file: Path | None) -> tuple[PartitionId, ...] | None:
    """The partitions of a file; None where no file is named."""
    from model.exchange.reassignment import read_election

    if file is None:
        return None
    if topics:
        raise ConfigError("--topic and --from each name partitions; use only one")
    rows = read_election(file).partitions
    return tuple(PartitionId(row.topic, row.partition) for row in rows)


def _why_none(elections: "LeaderElections") -> str:
    """Why no election can be held."""
    if elections.impossible:
        return "no other election can be held now"
    if not elections.checked:
        return "no partition is named; nothing to elect"
    if not elections.replicated:
        return (
            f"none of {elections.checked:,} partitions has a second replica, as on "
            "AutoMQ; nothing to elect"
        )
    many = count_text(elections.checked, "partition")
    return f"the preferred replica leads each of {many}; nothing to elect"


def _requests(elections: "LeaderElections") -> list[str]:
    return [f"ElectLeaders preferred {e.id}: {e.preferred}" for e in elections.possible]


def _report(
    elections: "LeaderElections", failed: "Collection[LeaderElection]", output: Form
) -> int:
    """Print the outcome of each election; the exit code."""
    from control.render.text import json_text, table

    if output is Form.JSON:
        sys.stdout.write(json_text(_answer(elections, failed)))
    elif elections.possible:
        not_elected = {election.id for election in failed}
        rows = [
            [
                str(e.id),
                str(e.leader),
                str(e.preferred),
                "not elected" if e.id in not_elected else "elected",
            ]
            for e in elections.possible
        ]
        sys.stdout.write(table(["partition", "led by", "preferred", "state"], rows))
    for election in failed:
        sys.stderr.write(f"plimsoll: {election.id}: {election.obstacle}\n")
    return Exit.INCOMPLETE if failed else Exit.DONE


def _answer(
    elections: "LeaderElections", failed: "Collection[LeaderElection]"
) -> "ElectLeadersAnswer":
    """All elections as JSON, including skipped ones."""
    from control.cli.output_types import ElectedPartition, ElectLeadersAnswer

    notes = {e.id: e.obstacle for e in (*elections.impossible, *failed)}
    return ElectLeadersAnswer(
        cluster_id=elections.cluster_id,
        partitions_looked_at=elections.checked,
        elections=tuple(
            ElectedPartition(
                topic=e.id.topic,
                partition=e.id.partition,
                led_by=e.leader,
                preferred=e.preferred,
                elected=e.id not in notes,
                note=notes.get(e.id, ""),
            )
            for e in elections.needed
        ),
    )
