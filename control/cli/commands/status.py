"""`plimsoll status`: brokers, loads and how level they are."""

import sys
import time
from collections.abc import Sequence

from collector.brokers.fan_out import Silence
from control import compose
from control.cli.exit_codes import Exit
from control.cli.output import json_of
from control.cli.output_format import Form
from control.render.capacity import capacity_text
from control.render.plan_text import (
    json_text,
    status_document,
    status_text,
    time_text,
)
from control.settings.capacity_table import capacities_of
from control.settings.settings import Settings
from executor.journal.left_settings import left_settings
from model.evaluate import evaluate
from model.goals.goals import Goals
from model.goals.topic_placement import (
    placement_warnings,
    with_topic_placements,
)
from model.plan.outages import outage_notes
from model.snapshot.capacities import Capacities, capacity_notes
from model.snapshot.snapshot import Snapshot, has_shared

WATCH_S = 5.0


def show(settings: Settings, *, watch: bool, output: Form) -> int:
    """Print the cluster once, or every few seconds until Ctrl-C."""
    given = capacities_of(settings)
    with compose.observer(settings, capacities=given) as collector:
        rivals: list[str] | None = None
        while True:
            snapshot = collector.wait()
            if rivals is None:
                shared = has_shared(snapshot)
                rivals = compose.rebalancers(settings, shared=shared)
            cluster_id = snapshot.header.cluster_id
            left = left_settings(compose.journal_dir(settings), cluster_id)
            now_ms = int(1000 * time.time())
            sys.stdout.write(
                cluster_text(
                    snapshot,
                    settings.goals,
                    output,
                    now_ms=now_ms,
                    given=given,
                    silent=collector.silent,
                    rivals=[*rivals, *left],
                    in_one_line=watch,
                )
            )
            sys.stdout.flush()
            if not watch:
                return Exit.DONE
            time.sleep(WATCH_S)


def cluster_text(
    snapshot: Snapshot,
    goals: Goals,
    output: Form,
    *,
    now_ms: int,
    given: Capacities | None = None,
    silent: Sequence[Silence] = (),
    rivals: Sequence[str] = (),
    in_one_line: bool = False,
) -> str:
    """A snapshot as it is printed, seen at that time."""
    evaluation = evaluate(snapshot, with_topic_placements(goals, snapshot), ())
    notes = [
        *outage_notes(snapshot),
        *placement_warnings(goals, snapshot),
        *capacity_notes(snapshot, given),
        *map(silence_text, silent),
        *rivals,
    ]
    if output is Form.TABLE:
        parts = (
            status_text(snapshot, evaluation, now_ms),
            capacity_text(snapshot, evaluation),
            "".join(f"{words}\n" for words in notes),
        )
        return "\n".join(filter(None, parts))
    level = evaluation.within_band(goals)
    document = status_document(
        snapshot, evaluation, within_band=level, now_ms=now_ms, notes=notes
    )
    return json_of(document, sort=True) + "\n" if in_one_line else json_text(document)


def silence_text(silence: Silence) -> str:
    """A broker that does not answer, in words."""
    return (
        f"Broker {silence.broker} does not answer since {time_text(silence.since_ms)} "
        f"({silence.reason}); its partitions keep their last loads for a minute."
    )
