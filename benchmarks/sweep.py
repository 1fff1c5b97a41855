"""Measures sweeps on a standalone Spark cluster: `python -P -m benchmarks.sweep`.

The same search with several seeds runs in this process, and then on two executors of one core
each: with an empty cache of compiled loops, with a full one, and with one executor killed after
the first result. Writes `benchmarks/sweep.md`.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.instances import build, goals_of
from benchmarks.machine import processor
from benchmarks.processes import Tree
from benchmarks.sections import table
from benchmarks.shapes import shape_of
from clients.jvm.java import find_java
from collector.spark.deployment import SparkSite
from control.planning.solves_elsewhere import solving_on
from lab.local_cluster.processes import Processes
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.solve_tasks import SolveAll, SolveTask, solve_in_turn
from tests.support.lab.local_spark import LocalSpark

TABLE: Final = Path(__file__).with_name("sweep.md")
SHAPE: Final = "9x500-rf3"
SEEDS: Final = 8
WORK: Final = 10.0
ASSUMED: Final = (8, 150.0, 64)
"""Executors, CPU seconds of one solve and solves of the estimate for 1,000 brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What one sweep took, and what it found."""

    wall_s: float
    cpu_s: float
    """Of this process and all that it started, the executors included."""
    plans: tuple[Plan | None, ...]


def measured(
    solve_all: SolveAll,
    snapshot: Snapshot,
    goals: Goals,
    seeds: int,
    after_first: Callable[[], None] = lambda: None,
) -> Sweep:
    """Search with each seed, and call `after_first` after the first result."""
    limits = SolveLimits(work=WORK)
    tasks = [
        SolveTask(goals=goals, limits=limits.model_copy(update={"seed": seed}))
        for seed in range(seeds)
    ]
    tree = Tree()
    began, spent = time.perf_counter(), tree.cpu_s()
    results = solve_all(snapshot, tasks, SolveObserver())
    plans = [result.best for result in _calling(results, after_first)]
    wall_s, cpu_s = time.perf_counter() - began, tree.cpu_s() - spent
    return Sweep(wall_s=wall_s, cpu_s=cpu_s, plans=tuple(plans))


def _calling(results: Iterator[Result], after_first: Callable[[], None]) -> Iterator[Result]:
    yield next(results)
    after_first()
    yield from results


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    seeds = parser.parse_args().seeds
    shape = shape_of(SHAPE)
    snapshot, goals = build(shape, 1), goals_of(shape)
    solve(snapshot, goals, SolveLimits(work=0.1))
    here = measured(solve_in_turn, snapshot, goals, seeds)
    rows = [_row("this process", here, here)]
    folder = Path(tempfile.mkdtemp(prefix="sweep-"))
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    processes = Processes(folder / "lab")
    try:
        spark = LocalSpark(processes, find_java(), environ=environ)
        spark.launch()
        spark.wait_ready()
        site = SparkSite(master=spark.master, properties={"spark.pyspark.python": sys.executable})
        for name, after in (
            ("two executors, first time", None),
            ("two executors", None),
            ("two executors, one killed", lambda: processes.kill(spark.workers[0])),
        ):
            with solving_on(site, folder / "sweep" / "spark.log") as solve_all:
                found = measured(solve_all, snapshot, goals, seeds, after or (lambda: None))
            rows.append(_row(name, found, here))
    finally:
        processes.close()
        shutil.rmtree(folder, ignore_errors=True)
    TABLE.write_text(_page(rows, seeds))
    print(TABLE.read_text())


def _row(name: str, found: Sweep, here: Sweep) -> Sequence[str]:
    equal = sum(a == b for a, b in zip(found.plans, here.plans, strict=True))
    best = min(plan.objective for plan in found.plans if plan is not None)
    return [
        name,
        f"{found.wall_s:.0f}",
        f"{found.cpu_s:.0f}",
        f"{best:.6g}",
        f"{equal} of {len(found.plans)}",
    ]


def _page(rows: Sequence[Sequence[str]], seeds: int) -> str:
    executors, cpu_s, solves = ASSUMED
    hours = cpu_s * solves / executors / 60
    head = ("where", "seconds", "CPU s", "best F", "plans equal to those of this process")
    return (
        f"`make bench-sweep`; {processor()}.\n"
        f"{SHAPE}, seed 1 of the instance, {seeds} seeds of the search with {WORK:g} work units "
        "each. Seconds include the start of Spark's driver; executors have one core each, and "
        "all run on this machine.\n\n"
        f"{table(head, rows)}\n"
        "## On paper: 1,000 brokers\n\n"
        f"A sweep of {solves} solves of 1,000 brokers and 200,000 partitions, each of about "
        f"{cpu_s:g} CPU seconds, takes {cpu_s * solves / 3600:.1f} hours in one process. "
        f"On {executors} executors of one core it takes {hours:.0f} minutes: the solves are "
        "independent, the snapshot (some 20 MB) is sent once to each executor, and results are a "
        "plan each. The last round may leave executors idle, so solves should outnumber them.\n"
    )


if __name__ == "__main__":
    main()
