"""What the first plan on a machine costs: `python -P -m benchmarks.first_plans`.

Writes `first-plans.md`. Every instance is planned in a process of its own, with an empty cache of
compiled loops, and once more with the cache that this left.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.instances import build
from benchmarks.machine import processor
from benchmarks.sections import table
from benchmarks.shapes import Shape, shape_of
from model.goals.goals import Goals, ObjectiveKind, SolveLimits
from solver.search.observer import SolveObserver
from solver.solve import solve

TABLE: Final = Path(__file__).with_name("first-plans.md")
REPEATS: Final = 3
NAMES: Final = ("3x8", "3x60", "10x500", "51x5000-rf3")


def shape_named(name: str) -> Shape:
    """Return a shape of the planner's benchmark, or a smaller one, `BROKERSxPARTITIONS`.

    Raises KeyError for a name that is neither.
    """
    if name == "3x8":
        return replace(shape_of("3x60"), name=name, partitions=8)
    return shape_of(name)


class _Offers(SolveObserver):
    """Notes when a plan that moves something is offered for the first time."""

    cpu_s: float | None = None

    def on_solution(self, objective: float, moves: int) -> None:
        """Note the CPU seconds of this process."""
        if moves and self.cpu_s is None:
            self.cpu_s = time.process_time()


def plan(name: str) -> None:
    """Plan an instance; print after how many CPU seconds a plan was offered, and was ready."""
    shape, offers = shape_named(name), _Offers()
    goals = Goals(objective=ObjectiveKind.BAND) if shape.band else Goals()
    solve(build(shape, 1), goals, SolveLimits(), offers)
    end_s = time.process_time()
    print(json.dumps([offers.cpu_s or end_s, end_s]))


def measure_once(name: str, cache: Path) -> tuple[float, float, int]:
    """Plan in a process with a cache folder; return its CPU seconds and the number of loops cached.

    The seconds are those until the first plan was offered, and those until the end.
    """
    command = [sys.executable, "-P", "-m", "benchmarks.first_plans", "--plan", name]
    given = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    printed = subprocess.run(command, env=given, check=True, stdout=subprocess.PIPE).stdout
    offered_s, end_s = json.loads(printed)
    return offered_s, end_s, sum(1 for _ in cache.rglob("*.nbc"))


def row(name: str) -> tuple[str, ...]:
    """Measure one instance, the median of several; return its line of the table."""
    found = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            first_s, cold_s, loops = measure_once(name, Path(folder))
            next_s, warm_s, _ = measure_once(name, Path(folder))
        found.append((first_s, next_s, first_s - next_s, cold_s, warm_s, cold_s - warm_s, loops))
    *seconds, loops = map(statistics.median, zip(*found, strict=True))
    return name, *(f"{value:.1f}" for value in seconds), str(loops)


def main() -> None:
    """Measure all instances, or plan one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", help="only plan this instance")
    name = parser.parse_args().plan
    if name:
        plan(name)
        return
    head = (
        *("instance", "first plan offered", "offered next time", "compiling until offered"),
        *("first plan ready", "ready next time", "compiling until ready", "loops"),
    )
    found = table(head, [row(name) for name in NAMES])
    words = (
        f"`python -P -m benchmarks.first_plans`, {processor()}. Seed 1, default goals and limits; "
        f"CPU seconds of a process from its start on, the median of {REPEATS}, with an empty cache "
        "of compiled loops and the next time."
    )
    TABLE.write_text(f"{words}\n\n{found}")
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
