"""Measures `plimsoll simulate`: `python -P -m benchmarks.simulate`, into `simulate.md`.

With --only, the other sections of the table stay as they are.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.machine import processor
from benchmarks.sections import Section, measure_sections, table
from clients.jvm.java import find_java
from lab.local_cluster.processes import Processes
from model.units import bytes_text
from tests.support.cli_offline import PLIMSOLL
from tests.support.lab.local_spark import LocalSpark

TABLE: Final = Path(__file__).with_name("simulate.md")
WORDS: Final = "What `plimsoll simulate` takes, and what it finds; `make bench-simulate`"
DAYS: Final = 7
SEEDS: Final = (1, 2, 3)
POLICIES: Final = ("conservative", "eager")
HARD: Final = ("sawtooth", "swap", "follow", "crush")
LARGE: Final = ("--brokers", "20", "--partitions", "2000")
SKEWED: Final = ("--brokers", "21", "--partitions", "2000")
MONTH: Final = ("--brokers", "10", "--partitions", "1000")
MONTH_DAYS: Final = 30
QUARTERS: Final = 4
SAMPLED_EVERY_S: Final = 0.5
BUDGETS: Final = (4000, 40, 20)
KILLED_AT: Final = 0.4
"""When the worker is killed, as a share of the seconds of an undisturbed simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What one command took, and what it printed."""

    wall_s: float
    cpu_s: float
    """Of the command and what it started and waited for."""
    printed: str

    @property
    def policies(self) -> list[dict[str, Any]]:
        """The outcome of each policy."""
        found: list[dict[str, Any]] = json.loads(self.printed)["policies"]
        return found


def simulated(*options: str, policies: tuple[str, ...] = POLICIES) -> Simulated:
    """Run the command as a person does; Spark's workers use the Python of this process."""
    named = [option for name in policies for option in ("--policy", name)]
    order = [str(PLIMSOLL), "simulate", "--days", str(DAYS), "-o", "json", *named, *options]
    began, before = time.perf_counter(), os.times()
    environment = {"PLIMSOLL_SPARK": json.dumps({"spark.pyspark.python": sys.executable})}
    done = subprocess.run(
        order, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    wall_s, after = time.perf_counter() - began, os.times()
    children = (
        after.children_user - before.children_user + after.children_system - before.children_system
    )
    print(" ".join(order[1:]), f"{wall_s:.0f} s, {children:.0f} CPU s", flush=True)
    return Simulated(wall_s=wall_s, cpu_s=children, printed=done.stdout)


def weeks() -> str:
    """The section of single weeks."""
    rows = []
    for policy in POLICIES:
        for seed in SEEDS:
            week = simulated(*LARGE, "--seed", str(seed), policies=(policy,))
            (found,) = week.policies
            rows.append(
                [
                    policy,
                    str(seed),
                    f"{week.wall_s:.0f}",
                    f"{week.cpu_s:.0f}",
                    str(found["solves"]),
                    f"{found['outside']:.1%}",
                    f"{found['moves'] / DAYS:.1f}",
                    f"{found['undone']} ({_undone(found):.1%})",
                ]
            )
    headers = ["policy", "seed", "seconds", "CPU s", "plans", "outside", "moves/day", "undone"]
    return table(headers, rows)


def _undone(found: dict[str, Any]) -> float:
    return float(found["undone"] / max(1, found["moves"]))


def hard_loads() -> str:
    """The section of loads that are hard to balance, over all seeds."""
    rows = []
    for shape in HARD:
        weeks = [simulated("--shape", shape, "--seed", str(seed)).policies for seed in SEEDS]
        for policy, found in zip(POLICIES, zip(*weeks, strict=True), strict=True):
            moves = [one["moves"] / DAYS for one in found]
            undone = [_undone(one) for one in found]
            rows.append(
                [
                    shape,
                    policy,
                    f"{statistics.median(moves):.1f} / {max(moves):.1f}",
                    str(max(day["moves"] for one in found for day in one["days"])),
                    f"{statistics.median(undone):.2%} / {max(undone):.2%}",
                ]
            )
    headers = [
        "loads",
        "policy",
        "moves/day, median / most",
        "most in one day",
        "undone, median / most",
    ]
    return table(headers, rows)


def executors() -> str:
    """The section of two policies on two executors, one of which is killed."""
    here = simulated(*LARGE)
    folder = Path(tempfile.mkdtemp(prefix="simulate-"))
    processes = Processes(folder / "lab")
    try:
        spark = LocalSpark(processes, find_java())
        spark.launch()
        spark.wait_ready()
        there = simulated(*LARGE, "--spark-master", spark.master)
        killing = threading.Timer(
            KILLED_AT * there.wall_s, lambda: processes.kill(spark.workers[0])
        )
        killing.start()
        killed = simulated(*LARGE, "--spark-master", spark.master)
        killing.join()
    finally:
        processes.close()
        shutil.rmtree(folder, ignore_errors=True)
    rows = [
        [name, f"{found.wall_s:.0f}", "yes" if found.printed == here.printed else "NO"]
        for name, found in (
            ("this process, one policy after the other", here),
            ("two executors", there),
            (f"two executors, one killed after {KILLED_AT:.0%} of the time", killed),
        )
    ]
    return table(["where", "seconds", "output equal, byte for byte"], rows)


def several_runs() -> str:
    """The section of plans that are larger than one run."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policies = tuple(f"{most}={_limits(folder, most)}" for most in BUDGETS)
        for seed in SEEDS:
            cluster = folder / f"cluster-{seed}"
            made = (*SKEWED, "--days", "0", "--seed", str(seed), "--out", str(cluster))
            subprocess.run([PLIMSOLL, "generate", *made], check=True)
            order = ("--steady", "--snapshot", str(cluster / "snapshot.json"))
            rows += [
                [
                    str(seed),
                    found["policy"],
                    str(found["runs"]),
                    str(found["moves"]),
                    bytes_text(found["bytes_copied"]),
                    f"{found['outside'] * DAYS * 24:.1f} h",
                    str(found["undone"]),
                ]
                for found in simulated(*order, policies=policies).policies
            ]
    headers = ["seed", "most moves in a run", "runs", "moves", "copied", "outside for", "undone"]
    return table(headers, rows)


def _limits(folder: Path, most: int) -> Path:
    """A file with limits that allow so many moves in a run, and nearly everything else."""
    path = folder / f"most-{most}.toml"
    path.write_text(
        f"[limits.own]\nreplica_moves = {most}\nleader_changes = {most}\n"
        f'partitions_per_topic = {most}\nbytes = "100 TiB"\nmoves_in_flight = 20\n'
        'min_gain = 0.0\npause = "15m"\nconfirm = "1m"\n'
    )
    return path


def month() -> str:
    """The section of the memory of a loop over a simulated month."""
    rows = []
    for policy in POLICIES:
        order = [str(PLIMSOLL), "simulate", "--days", str(MONTH_DAYS), "-o", "json"]
        order += ["--policy", policy, *MONTH]
        began, held = time.perf_counter(), list[float]()
        process = subprocess.Popen(order, stdout=subprocess.DEVNULL)
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):
                held.append(watched.memory_info().rss / 2**20)
            time.sleep(SAMPLED_EVERY_S)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, order)
        each = len(held) // QUARTERS
        quarters = [statistics.median(held[i * each : (i + 1) * each]) for i in range(QUARTERS)]
        seconds = f"{time.perf_counter() - began:.0f}"
        rows.append([policy, seconds, *(f"{q:.0f} MiB" for q in quarters)])
    named = [f"quarter {i}" for i in range(1, QUARTERS + 1)]
    return table(["policy", "seconds", *named], rows)


SECTIONS: Final[dict[str, Section]] = {
    "weeks": (
        "A week of 20 brokers and 2,000 partitions",
        "Three replicas, days and weeks with growth and bursts, steps of 5 minutes; `undone` as "
        "in [try-a-policy.md](../docs/how-to/try-a-policy.md#read-the-result). Seconds include "
        "the start of the command. With 20 brokers in three racks, those of the smallest rack "
        "hold a ninth more than the average whatever is moved, which is outside the tolerance.",
        weeks,
    ),
    "hard": (
        "Loads that are hard to balance",
        f"A week of 6 brokers and 300 partitions with each shape of `--shape`, {len(SEEDS)} seeds.",
        hard_loads,
    ),
    "several": (
        "Plans larger than one run",
        "A skewed cluster of 21 brokers and 2,000 partitions with constant loads, balanced by "
        "one run or by several, each of which plans again within its limits "
        "([decision 0058](../docs/decisions/0058-each-run-plans-again-within-its-limits.md)).",
        several_runs,
    ),
    "month": (
        "Memory over a month",
        f"{MONTH_DAYS} days of a cluster of 10 brokers and 1,000 partitions, with runs; resident "
        "memory of the command, median of each quarter of its seconds. What is added are the "
        "figures of each hour, which the result contains, and loops of the planner, which are "
        "compiled when they are first needed; the loop keeps its size.",
        month,
    ),
    "executors": (
        "Two policies on two executors",
        "The week above on a standalone Spark cluster with two workers of one core each, all on "
        "this machine; seconds include the start of Spark's driver.",
        executors,
    ),
}


def main() -> None:
    measure_sections(TABLE, f"{WORDS}, {processor()}.", SECTIONS)


if __name__ == "__main__":
    main()
