"""What takes too long for every change, part after part: `python -P -m benchmarks.nightly`.

Each part is a target of make, and runs whatever became of those before. The table at the end says
how each ended; the exit code is 1 unless all passed.
"""

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.sections import table
from model.units import seconds_text

SEEDS: Final = 100_000
"""Worlds of a night: about an hour on two cores."""
FUZZ_MINUTES: Final = 10.0
SOAK_MINUTES: Final = 60.0
HOURS: Final = 4.0
"""After so long, a part counts as hanging and is ended."""
GRACE_S: Final = 30.0
"""Seconds between a request to end and the end by force."""
_DAY_S: Final = 86_400
_OF_MAKE: Final = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
"""Variables by which `make nightly ARGS=..` would set ARGS of every part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the lane."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a part ended."""

    part: Part
    failure: str
    """Why it counts as failed; empty where it passed."""
    took_s: float


def parts(first: int, *, seeds: int, fuzz_minutes: float, soak_minutes: float) -> tuple[Part, ...]:
    """All parts; first: the first seed of the worlds."""
    return (
        Part(name="fire", command=("make", "fire", f"SEEDS={seeds}", f"ARGS=--first {first}")),
        Part(name="bugs", command=("make", "fire", "ARGS=--mutants")),
        Part(name="fuzz", command=("make", "fuzz", f"MINUTES={fuzz_minutes:g}")),
        Part(name="soak", command=("make", "soak", f"MINUTES={soak_minutes:g}")),
        Part(name="slow", command=("make", "test-slow")),
        Part(name="versions", command=("make", "test-versions")),
    )


def run(of: Iterable[Part], *, limit_s: float = 3600 * HOURS) -> Iterator[Ended]:
    """Run each part in this folder's project, and report it once it has ended."""
    for part in of:
        print(f"\n==== {part.name}: {shlex.join(part.command)}", flush=True)
        began_s = time.monotonic()
        # A group of its own, so that whatever it started ends with it.
        with subprocess.Popen(part.command, env=environment(), process_group=0) as process:
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                failure = f"ended after {seconds_text(limit_s)}"
                _end(process)
            except BaseException:
                _end(process)
                raise
            else:
                failure = f"exit code {code}" if code else ""
        yield Ended(part=part, failure=failure, took_s=time.monotonic() - began_s)


def environment() -> dict[str, str]:
    """That of a part."""
    return {name: value for name, value in os.environ.items() if name not in _OF_MAKE}


def report(ended: Iterable[Ended]) -> str:
    """As Markdown: each part, its result, and the command that repeats it."""
    rows = [
        [of.part.name, of.failure or "passed", f"{of.took_s / 60:.1f}", shlex.join(of.part.command)]
        for of in ended
    ]
    return table(["part", "result", "minutes", "command"], rows)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    """Run what the command line asks for; 1 unless every part passed."""
    parser = argparse.ArgumentParser(prog="python -P -m benchmarks.nightly", description=__doc__)
    parser.add_argument("--only", action="append", help="this part alone; may be repeated")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="worlds of fire")
    parser.add_argument("--first", type=int, help="their first seed; others each day by default")
    parser.add_argument("--fuzz-minutes", type=float, default=FUZZ_MINUTES)
    parser.add_argument("--soak-minutes", type=float, default=SOAK_MINUTES)
    options = parser.parse_args()
    first = options.first
    if first is None:
        first = int(time.time() // _DAY_S) * options.seeds
    known = parts(
        first,
        seeds=options.seeds,
        fuzz_minutes=options.fuzz_minutes,
        soak_minutes=options.soak_minutes,
    )
    names = options.only or [part.name for part in known]
    if unknown := set(names) - {part.name for part in known}:
        listed = ", ".join(part.name for part in known)
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; there are {listed}")
    os.chdir(Path(__file__).parents[1])
    ended: list[Ended] = []
    try:
        ended.extend(run(part for part in known if part.name in names))
    finally:
        print(f"\n{report(ended)}", flush=True)
    return int(any(of.failure for of in ended))


if __name__ == "__main__":
    sys.exit(main())
