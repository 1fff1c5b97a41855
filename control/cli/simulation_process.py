"""The process of a simulation that a client of the service has requested.

It reads the job from stdin, and writes its result to stdout, or why there is none to stderr. It
ends when stdin does, since the service then has ended.
"""

import contextlib
import os
import pickle
import resource
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from control.cli.exit_codes import Exit, exit_of
from model import private
from model.errors import PlimsollError
from model.printable import printable
from model.units import bytes_text

if TYPE_CHECKING:
    from control.service.simulations import SimulationJob

NICENESS: Final = 10
STEP_S: Final = 300.0
"""Time for which loads are constant."""
LEAST_BYTES: Final = 2 * 1024**3
"""Memory that a simulation may have on any machine; on larger ones, half of it."""
CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
"""The memory of a container, where there is a limit."""
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
    bound_memory(most_bytes())
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
    except MemoryError:
        sys.stderr.write(
            f"plimsoll: the simulation needs more than {bytes_text(most_bytes())} of memory; "
            "simulate fewer days or policies\n"
        )
        return Exit.INTERNAL
    except Exception as exc:  # noqa: BLE001 - the service reports it
        sys.stderr.write(f"plimsoll: internal error: {printable(repr(exc))}\n")
        return Exit.INTERNAL
    return Exit.DONE


def most_bytes() -> int:
    """Memory that the simulation may have, in bytes."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        # Of a host without limits, there is no file; without a limit, it says max.
        whole = min(whole, int(CGROUP_LIMIT.read_text()))
    return max(LEAST_BYTES, whole // 2)


def bound_memory(most: int) -> None:
    """Limit the memory of this process and its children, each; bytes.

    Where memory runs out for other reasons, the system ends them before the service.
    """
    with contextlib.suppress(OSError):
        # Anyone may raise their own; Linux alone has it.
        Path("/proc/self/oom_score_adj").write_text("1000")
    # Not of the address space: libraries and Java reserve far more than they use.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


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
