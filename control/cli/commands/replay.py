"""`plimsoll replay`: loads of a recorded state, computed again."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output, output_file
from control.cli.output import Form
from model.units import count_text

if TYPE_CHECKING:
    from control.settings.settings import Settings


def replay(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="A folder written by record.")],
    *,
    local_settings: "Settings",
    out: Annotated[
        Path | None,
        output_file(help="Write the snapshot here (.json, .json.gz) instead of printing it."),
    ] = None,
    output: Output = Form.TABLE,
) -> int:
    """Print the cluster as it was when the recording ended, or write its snapshot."""
    from collector.recorded_state import read_recording
    from control import compose
    from control.cli.output_files import check_file
    from control.render.cluster_status import cluster_text
    from control.render.text import file_text
    from model.snapshot.file import KIND, write_snapshot

    check_file(out, KIND)
    recording = read_recording(state)
    found = compose.replayed(local_settings, recording)
    batches = count_text(found.batches, "batch", "batches")
    if found.as_recorded == found.batches:
        result = "the loads equal the recorded ones, byte for byte"
    else:
        result = (
            f"the loads of {found.batches - found.as_recorded} differ from those that "
            f"plimsoll {recording.state.plimsoll} recorded"
        )
    sys.stderr.write(f"plimsoll: {batches} replayed; {result}\n")
    if out is not None:
        write_snapshot(out, found.snapshot)
        sys.stdout.write(file_text(out, output))
        return Exit.DONE
    now_ms = recording.state.ended_ms
    sys.stdout.write(cluster_text(found.snapshot, local_settings.goals, output, now_ms=now_ms))
    return Exit.DONE
