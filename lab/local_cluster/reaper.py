"""The process that cleans up after a lab, however the lab's own process ends.

It is started by path with the lab's folder as argument and a pipe on stdin. When the
pipe closes, the lab has ended: the reaper kills every process with the folder's name in
the variable `PLIMSOLL_LAB`, and removes the folder. Children have the mark in their
environment from the start, so that none can be missed.
"""

import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Final

import psutil

MARK: Final = "PLIMSOLL_LAB"
_WAIT_S: Final = 5
_PAUSE_S: Final = 0.05


def marked(folder: str) -> list[psutil.Process]:
    """Live processes of the lab in this folder."""
    return [process for process in psutil.process_iter() if _has(process, folder)]


def _has(process: psutil.Process, folder: str) -> bool:
    try:
        return bool(process.environ().get(MARK) == folder)
    # A process of another user, or one that has just ended.
    except (psutil.Error, OSError):
        return False


def clean_up(folder: str) -> None:
    """Kill the lab's processes and remove its folder."""
    quiet_rounds = 0
    # Twice, for a child that was between fork and exec in the first round.
    while quiet_rounds < 2:
        victims = marked(folder)
        for victim in victims:
            try:
                victim.kill()
            except psutil.Error:
                continue
        psutil.wait_procs(victims, timeout=_WAIT_S)
        quiet_rounds = 0 if victims else quiet_rounds + 1
        time.sleep(_PAUSE_S)
    shutil.rmtree(folder, ignore_errors=True)


def main(folder: str) -> None:
    """Wait for the end of the lab, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    clean_up(str(Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1])
