"""`plimsoll record`: what is observed of a cluster, as a recorded state."""

import datetime as dt
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from control import compose
from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from control.planning.validate import with_recent_moves
from control.render.plan_text import json_text
from control.settings.settings import Settings
from model.errors import ClusterUnreachable, ConfigError
from model.snapshot.snapshot import Snapshot
from model.units import count_text, seconds_text

if TYPE_CHECKING:
    from collector.collector import Collector

_LOOK_S = 0.5
"""A watch that ends early is noticed after this."""


def watch(
    settings: Settings,
    *,
    span_s: float,
    out: Path | None,
    anonymise: bool,
    key_file: Path | None,
    output: Form,
) -> int:
    """Watch the cluster for so long, counted from the first loads, then write."""
    from collector.recorded_state import Recorder

    if key_file is not None and not anonymise:
        raise ConfigError("--anonymise-key goes with --anonymise; say that too")
    bootstrap = compose.bootstrap_of(settings)
    names = compose.pseudonyms(settings, key_file) if anonymise else None
    out = out or Path(f"plimsoll-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}")
    with Recorder(out, names) as recorder:
        with compose.observer(settings, recorder=recorder) as collector:
            snapshot = _observed(collector, span_s)
        if not recorder.batches:
            raise ClusterUnreachable(
                f"Nothing was measured at {bootstrap} within {seconds_text(span_s)}, "
                "and nothing is written. Record for longer, or look at the log (-v)."
            )
        # Of the last batch, now that no other can come.
        snapshot = collector.snapshot() or snapshot
        read = compose.recent_moves(settings)
        snapshot = with_recent_moves(snapshot, settings.goals, read)
        state = recorder.finish(snapshot, collector.window)
    duration_s = (state.ended_ms - state.begun_ms) / 1000
    if output is Form.JSON:
        answer = {
            "folder": str(out),
            "duration_s": duration_s,
            "partitions": len(snapshot),
            "batches": recorder.batches,
        }
        sys.stdout.write(json_text(answer))
        return Exit.DONE
    seconds = seconds_text(duration_s)
    sys.stdout.write(
        f"{out}: {seconds} of {count_text(len(snapshot), 'partition')} in "
        f"{count_text(recorder.batches, 'batch', 'batches')}\n"
    )
    return Exit.DONE


def _observed(collector: "Collector", span_s: float) -> Snapshot:
    snapshot = collector.wait()
    if not len(snapshot):
        raise ConfigError("the cluster has no partitions; there is nothing to record")
    end_s = time.monotonic() + span_s
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(_LOOK_S, left_s))
        snapshot = collector.wait()
    return snapshot
