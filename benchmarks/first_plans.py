"""What the first plan on a machine costs: `python -P -m benchmarks.first_plans`.

Writes `first-plans.md`. Every instance is planned in a process of its own, with an empty cache of
compiled loops, and once more with the cache that this left.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.instances import build
from benchmarks.machine import processor
from benchmarks.sections import table
from benchmarks.shapes import Shape, shape_of
from model.goals.goals import Goals, ObjectiveKind, SolveLimits
from solver.solve import solve

TABLE: Final = Path(__file__).with_name("first-plans.md")
NAMES: Final = ("3x8", "3x60", "10x500", "51x5000-rf3")


def shape_named(name: str) -> Shape:
    """Return a shape of the planner's benchmark, or a smaller one, `BROKERSxPARTITIONS`.

    Raises KeyError for a name that is neither.
    """
    if name == "3x8":
        return replace(shape_of("3x60"), name=name, partitions=8)
    return shape_of(name)


def measure_once(name: str, cache: Path) -> tuple[float, int]:
    """Plan in a process with a cache folder; return CPU seconds and the number of loops cached."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-P", "-m", "benchmarks.first_plans", "--plan", name]
    subprocess.run(command, env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, sum(1 for _ in cache.rglob("*.nbc"))


def row(name: str) -> tuple[str, ...]:
    """Measure one instance; return its line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        cold_s, loops = measure_once(name, Path(folder))
        warm_s, _ = measure_once(name, Path(folder))
    return name, f"{cold_s:.1f}", f"{warm_s:.1f}", f"{cold_s - warm_s:.1f}", str(loops)


def main() -> None:
    """Measure all instances, or plan one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", help="only plan this instance")
    plan = parser.parse_args().plan
    if plan:
        shape = shape_named(plan)
        goals = Goals(objective=ObjectiveKind.BAND) if shape.band else Goals()
        solve(build(shape, 1), goals, SolveLimits())
        return
    head = ("instance", "first plan, CPU s", "next plan, CPU s", "compiling, CPU s", "loops")
    found = table(head, [row(name) for name in NAMES])
    words = "Seed 1, default goals and limits; `python -P -m benchmarks.first_plans`, "
    TABLE.write_text(f"{words}{processor()}.\n\n{found}")
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
