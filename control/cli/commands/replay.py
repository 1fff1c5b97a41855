"""`plimsoll replay`: loads of a recorded state, made anew."""

import sys
from pathlib import Path

from control import compose
from control.cli.commands.status import cluster_text
from control.cli.exit_codes import Exit
from control.cli.output_files import check_file
from control.cli.output_format import Form
from control.render.plan_text import file_text
from control.settings.settings import Settings
from model.snapshot.file import KIND, write_snapshot
from model.units import count_text


def show(settings: Settings, folder: Path, *, out: Path | None, output: Form) -> int:
    """Print the cluster as it was at the record's end, or write its snapshot."""
    from collector.recorded_state import read_recording

    check_file(out, KIND)
    recording = read_recording(folder)
    found = compose.replayed(settings, recording)
    batches = count_text(found.batches, "batch", "batches")
    if found.as_recorded == found.batches:
        words = "its loads are those recorded, byte for byte"
    else:
        other = found.batches - found.as_recorded
        words = (
            f"{other} gave other loads than recorded, by plimsoll "
            f"{recording.state.plimsoll}"
        )
    sys.stderr.write(f"plimsoll: {batches} replayed; {words}\n")
    if out is not None:
        write_snapshot(out, found.snapshot)
        sys.stdout.write(file_text(out, output))
        return Exit.DONE
    now_ms = recording.state.ended_ms
    sys.stdout.write(
        cluster_text(found.snapshot, settings.goals, output, now_ms=now_ms)
    )
    return Exit.DONE
