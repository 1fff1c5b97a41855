"""The process of a simulation that a client of the service has requested.

It reads the job from stdin, and writes its result to stdout, or why there is none to stderr. It
ends when stdin does, since the service then has ended.
"""

import os
import pickle
import sys
import threading
from typing import IO, TYPE_CHECKING, Final

from control.cli.exit_codes import Exit, exit_of
from model import private
from model.errors import PlimsollError
from model.printable import printable

if TYPE_CHECKING:
    from control.service.simulations import SimulationJob

NICENESS: Final = 10
STEP_S: Final = 300.0
"""Time for which loads are constant."""
_LENGTH: Final = 8
"""Bytes of the length of a job, before it."""


def result(job: "SimulationJob") -> str:
    """The answer as `simulate -o json` prints it. Raises PlimsollError as the command does."""
    from control.cli.commands.simulate import (
        DAY_MS,
        from_midnight,
        past,
        policies_of,
        tried,
        varying,
    )
    from control.render.text import json_text
    from control.simulation.policy_trial import Trial
    from lab.time_lapse.time_lapse_cluster import Course
    from model.goals.goals import SolveLimits

    asked, settings, start = job.asked, job.settings, from_midnight(job.snapshot)
    policies = policies_of(asked.policies, settings, start.header.taken_at_ms, names_only=True)
    days = asked.days
    if asked.history:
        start, loads, days = past(settings, start, days)
    else:
        loads = varying(
            start, steady=asked.steady, growth=asked.growth, bursts=asked.bursts, seed=asked.seed
        )
    trial = Trial(
        course=Course(start=start, loads=loads, shapes=(), faults=(), step_s=STEP_S),
        length_s=days * DAY_MS / 1000,
        solve=SolveLimits(work=asked.search_budget),
    )
    return json_text(
        tried(settings, trial, policies, seed=asked.seed, passed=lambda _name, _share: None)
    )


def main() -> int:
    """Work on the job on stdin; the exit code is that of a command."""
    os.nice(NICENESS)
    private.begin()
    # Without a buffer, whose lock a thread would hold at the end of the interpreter.
    stream = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
    length = int.from_bytes(_read(stream, _LENGTH), "big")
    data = _read(stream, length)
    if len(data) < length or not length:
        return Exit.INTERNAL
    threading.Thread(target=_end_with, args=(stream,), daemon=True).start()
    try:
        # Of the service that has started this process.
        sys.stdout.write(result(pickle.loads(data)))  # noqa: S301 - see above
        sys.stdout.flush()
    except PlimsollError as exc:
        sys.stderr.write(f"plimsoll: {printable(str(exc))}\n")
        return exit_of(exc)
    except Exception as exc:  # noqa: BLE001 - the service reports it
        sys.stderr.write(f"plimsoll: internal error: {printable(repr(exc))}\n")
        return Exit.INTERNAL
    return Exit.DONE


def _read(stream: IO[bytes], length: int) -> bytes:
    """So many bytes, or all there are."""
    found = bytearray()
    while len(found) < length and (part := stream.read(length - len(found))):
        found += part
    return bytes(found)


def _end_with(stream: IO[bytes]) -> None:
    while stream.read(65536):
        pass
    os._exit(Exit.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
