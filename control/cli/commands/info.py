"""`plimsoll info`: by what a cluster is measured, and why by that."""

import sys
import time
from typing import TYPE_CHECKING, Final

from control import compose
from control.cli.commands.status import silence_text
from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from control.render.metric_sources import Info, info_document, info_text
from control.render.plan_text import json_text
from control.settings.capacity_table import capacities_of
from control.settings.settings import Settings
from model.snapshot.capacities import capacity_notes

if TYPE_CHECKING:
    from collector.collector import Collector
    from model.snapshot.snapshot import Snapshot

SETTLE_S: Final = 60.0
"""How long after the first loads to wait for what reporters tell at first."""
_LOOK_S: Final = 0.2


def show(settings: Settings, *, output: Form) -> int:
    """Print once what was found."""
    given = capacities_of(settings)
    with compose.observer(settings, capacities=given) as collector:
        snapshot = _settled(collector)
        found = Info(
            snapshot=snapshot,
            vectors=collector.vectors,
            reporters=collector.reporters.states(),
            polled=collector.reporters.poll_states(),
            passed_over=collector.reporters.passed_over,
            without_cores=collector.reporters.without_cores,
            folder=collector.folder,
            spark_master=collector.spark_master or settings.spark_master,
            silent=[silence.broker for silence in collector.silent],
            notes=[
                *capacity_notes(snapshot, given),
                *map(silence_text, collector.silent),
            ],
            now_ms=int(1000 * time.time()),
        )
    text = info_text(found) if output is Form.TABLE else json_text(info_document(found))
    sys.stdout.write(text)
    return Exit.DONE


def _settled(collector: "Collector") -> "Snapshot":
    """The first snapshot with which reporters that are there have had a say."""
    collector.wait()
    end_s = time.monotonic() + SETTLE_S
    while not collector.reporters.are_settled() and time.monotonic() < end_s:
        time.sleep(_LOOK_S)
    before = collector.wait()
    while (found := collector.wait()) is before:
        if time.monotonic() > end_s:
            break
        time.sleep(_LOOK_S)
    return found
