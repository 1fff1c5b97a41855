"""`plimsoll record`: what is measured on a cluster, written as a recorded state."""

import datetime as dt
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output, output_option, parsed
from control.cli.output import Form
from model.errors import ClusterUnreachable, ConfigError
from model.units import count_text, seconds_text, span_of

if TYPE_CHECKING:
    from collector.collector import Collector
    from control.cli.output_types import RecordAnswer
    from control.settings.settings import Settings
    from model.snapshot.snapshot import Snapshot

_POLL_S: Final = 0.5
"""How soon an observation that fails early is noticed."""


def record(
    *,
    settings: "Settings",
    span: Annotated[
        float,
        typer.Option(
            "--for",
            help="How long, counted from the first loads: 60s, 5m, 1h30m.",
            parser=parsed(span_of),
            metavar="TIME",
        ),
    ] = "60s",  # type: ignore[assignment]  # the parser reads defaults, too
    out: Annotated[
        Path | None,
        output_option(metavar="DIR", help="Folder to write. By default named after the time."),
    ] = None,
    anonymise: Annotated[
        bool,
        typer.Option("--anonymise", help="Replace names of topics, racks and paths by pseudonyms."),
    ] = False,
    anonymise_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --anonymise: a file with the key, instead of the stored one."
        ),
    ] = None,
    output: Output = Form.TABLE,
) -> int:
    """Record a cluster for `span` seconds from the first loads, then write the folder.

    Raises ClusterUnreachable where nothing was measured in that time.
    """
    from collector.recorded_state import Recorder
    from control import compose
    from control.cli.output_types import RecordAnswer
    from control.planning.validate import with_recent_moves
    from control.render.text import answer_text

    if anonymise_key is not None and not anonymise:
        raise ConfigError("--anonymise-key needs --anonymise; add it")
    bootstrap = compose.bootstrap_of(settings)
    names = compose.pseudonyms(settings, anonymise_key) if anonymise else None
    out = out or Path(f"plimsoll-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}")
    with Recorder(out, names) as recorder:
        with compose.observer(settings, recorder=recorder) as collector:
            snapshot = _observed(collector, span)
        if not recorder.batches:
            raise ClusterUnreachable(
                f"Nothing was measured at {bootstrap} within {seconds_text(span)}, "
                "so nothing was written. Record for longer, or see the log (-v)."
            )
        # The last batch: no other can arrive now.
        snapshot = collector.snapshot() or snapshot
        snapshot = with_recent_moves(snapshot, settings.goals, compose.journal_dir(settings))
        state = recorder.finish(snapshot, collector.window)
    answer = RecordAnswer(
        folder=str(out),
        duration_s=(state.ended_ms - state.begun_ms) / 1000,
        partitions=len(snapshot),
        batches=recorder.batches,
    )
    sys.stdout.write(answer_text(answer, _text, output))
    return Exit.DONE


def _text(answer: "RecordAnswer") -> str:
    return (
        f"{answer.folder}: {seconds_text(answer.duration_s)} of "
        f"{count_text(answer.partitions, 'partition')} in "
        f"{count_text(answer.batches, 'batch', 'batches')}\n"
    )


def _observed(collector: "Collector", span_s: float) -> "Snapshot":
    snapshot = collector.wait()
    if not len(snapshot):
        raise ConfigError("the cluster has no partitions; there is nothing to record")
    end_s = time.monotonic() + span_s
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(_POLL_S, left_s))
        snapshot = collector.wait()
    return snapshot
