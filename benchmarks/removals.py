"""One of 50 brokers is removed on paper, each plan in a process of its own.

`python -P -m benchmarks.removals NAME SEED` prints one measurement as JSON.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any, Final

import numpy as np

from benchmarks.machine import processor
from benchmarks.sections import table
from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.ids import BrokerId
from model.snapshot.snapshot import Snapshot, StorageKind

SIZE: Final[dict[str, Any]] = {"brokers": 50, "partitions": 5_000, "rf": 3, "racks": 3}
SHAPES: Final = {
    "generator's default": ClusterShape(**SIZE),
    "no young brokers": ClusterShape(**SIZE, young=False),
    "heavier tails": ClusterShape(**SIZE, topic_skew=1.3, partition_skew=0.8),
    "heaviest tails": ClusterShape(**SIZE, topic_skew=1.6, partition_skew=1.2),
    "large partitions": ClusterShape(**SIZE, large_partitions=True),
    "brokers of two sizes": ClusterShape(**SIZE, two_sizes=True, topic_skew=1.3),
}
"""Zipf exponents of topics and of partitions within a topic are 0.9 and 0.4 by default."""
SEEDS: Final = (1, 2, 3)
REMOVED: Final = BrokerId(0)
TAKEN_AT_MS: Final = 1_700_000_000_000


def snapshot_of(name: str, seed: int) -> Snapshot:
    """The cluster of this shape and seed; the same bytes each time."""
    named = ClusterName(cluster_id=f"removal-{seed}", taken_at_ms=TAKEN_AT_MS)
    rng = np.random.default_rng([seed, [*SHAPES].index(name)])
    return cluster(SHAPES[name], StorageKind.REPLICATED, named, rng)


def measure(name: str, seed: int) -> dict[str, float]:
    """Plan one removal with the goals and limits of `plimsoll broker remove` without settings."""
    snapshot = snapshot_of(name, seed)
    wall, cpu = time.perf_counter(), time.process_time()
    from control.settings.solve_table import SolveTable, task_limits
    from control.tasks.removal import plan_removal
    from model.goals.goals import Goals
    from solver.solve import solve

    limits = task_limits(SolveTable(), len(snapshot), len(snapshot.header.brokers))
    found = plan_removal(snapshot, (REMOVED,), Goals(), lambda s, g: solve(s, g, limits))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    entry = found.entry
    assert entry.bytes_to_copy is not None
    assert entry.least_bytes
    return {
        "replicas": entry.replicas,
        "moves": entry.moves,
        "ratio": entry.bytes_to_copy / entry.least_bytes,
        "cpu_s": cpu,
        "wall_s": wall,
    }


def removals() -> str:
    """The section of removal plans; a first process fills the cache of compiled loops."""
    measured_apart(next(iter(SHAPES)), SEEDS[0])
    headers = [
        "cluster",
        "seed",
        "replicas on the broker",
        "moves",
        "bytes / bound",
        "plan, CPU s",
        "plan, wall s",
        "process, CPU s",
        "process, wall s",
    ]
    rows = [_row(name, seed) for name in SHAPES for seed in SEEDS]
    return f"{table(headers, rows)}\n{processor()}.\n"


def measured_apart(name: str, seed: int) -> dict[str, float]:
    """Measure in a process of its own, and how much that takes as a whole, imports included."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-P", "-m", "benchmarks.removals", name, str(seed)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found: dict[str, float] = json.loads(run.stdout)
    return found | {"process_cpu_s": cpu_s, "process_wall_s": wall_s}


def _row(name: str, seed: int) -> list[str]:
    found = measured_apart(name, seed)
    print(name, seed, found, flush=True)
    return [
        name,
        str(seed),
        f"{found['replicas']:.0f}",
        f"{found['moves']:.0f}",
        f"{found['ratio']:.4f}",
        *(f"{found[key]:.2f}" for key in ("cpu_s", "wall_s", "process_cpu_s", "process_wall_s")),
    ]


def main() -> None:
    """Print one measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SHAPES)
    parser.add_argument("seed", type=int)
    given = parser.parse_args()
    print(json.dumps(measure(given.name, given.seed)))


if __name__ == "__main__":
    main()
