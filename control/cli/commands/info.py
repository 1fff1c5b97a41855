"""`plimsoll info`: the metric sources of a cluster, and which loads they provide."""

import sys
import time
from typing import TYPE_CHECKING, Final

from control.cli.exit_codes import Exit
from control.cli.invocation import with_overrides
from control.cli.options import Capacity, Output
from control.cli.output import Form

if TYPE_CHECKING:
    from collector.collector import Collector
    from control.settings.settings import Settings
    from model.snapshot.snapshot import Snapshot

SETTLE_S: Final = 60.0
"""Longest wait, after the first loads, for the first reports of metric reporters."""
_POLL_S: Final = 0.2


def info(*, settings: "Settings", capacity: Capacity = None, output: Output = Form.TABLE) -> int:
    """Print once which sources were detected and which load comes from which."""
    from control import compose
    from control.render.cluster_status import silence_text
    from control.render.metric_sources import info_answer, info_text
    from control.render.text import json_text
    from control.settings.capacity_table import capacities_of
    from model.snapshot.capacities import capacity_notes

    settings = with_overrides(settings, capacity=capacity)
    given = capacities_of(settings.capacities, settings.capacity_file)
    with compose.observer(settings, capacities=given) as collector:
        snapshot = _settled(collector)
        reporters = collector.reporters
        answer = info_answer(
            snapshot,
            collector.vectors,
            reporters.states(),
            reporters.poll_states(),
            silent=[silence.broker for silence in collector.silent],
            now_ms=int(1000 * time.time()),
            folder=collector.folder,
            spark_master=collector.spark_master or settings.spark_master,
            reports_passed_over=reporters.passed_over,
            brokers_without_cores=reporters.without_cores,
            notes=[*capacity_notes(snapshot, given), *map(silence_text, collector.silent)],
        )
    text = info_text(answer, snapshot) if output is Form.TABLE else json_text(answer)
    sys.stdout.write(text)
    return Exit.DONE


def _settled(collector: "Collector") -> "Snapshot":
    """The first snapshot that includes the reports of all detected reporters."""
    collector.wait()
    end_s = time.monotonic() + SETTLE_S
    while not collector.reporters.are_settled() and time.monotonic() < end_s:
        time.sleep(_POLL_S)
    before = collector.wait()
    while (found := collector.wait()) is before:
        if time.monotonic() > end_s:
            break
        time.sleep(_POLL_S)
    return found
