"""Measures the demo and writes `benchmarks/demo.md`: `python -P -m benchmarks.demo`."""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.processes import Tree

HERE = Path(__file__).parent
PLIMSOLL = Path(sys.executable).with_name("plimsoll")
SAMPLE_S = 0.5


class Memory(threading.Thread):
    """The largest proportional set size of a process tree."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._tree = Tree(pid)
        self.peak_bytes = 0

    def run(self) -> None:
        while self._tree.running:
            self.peak_bytes = max(self.peak_bytes, self._tree.pss_bytes())
            time.sleep(SAMPLE_S)


def help_cpu_s() -> float:
    """User and system seconds of `plimsoll --help`."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([PLIMSOLL, "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return statistics.median(once() for _ in range(9))


def demo_once() -> dict[str, Any]:
    """One headless demo: its report, with peak memory."""
    command = [str(PLIMSOLL), "demo", "--headless", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        memory = Memory(process.pid)
        memory.start()
        out, _ = process.communicate()
    if process.returncode:
        sys.exit(f"the demo ended with {process.returncode}")
    report: dict[str, Any] = json.loads(out)
    return report | {"memory_bytes": memory.peak_bytes}


def table(reports: list[dict[str, Any]], help_s: float) -> str:
    """The table as Markdown."""

    def median(pick: Any) -> float:
        return float(statistics.median(pick(r) for r in reports))

    def moves(report: dict[str, Any], key: str) -> float:
        return float(statistics.median(m[key] for m in report["run"]["moves"]))

    rows = [
        ("brokers ready", f"{median(lambda r: r['brokers_ready_s']):.1f} s"),
        ("first plan", f"{median(lambda r: r['planned_s']):.1f} s"),
        ("balanced", f"{median(lambda r: r['level_s']):.1f} s"),
        ("from first contact to plan", f"{median(lambda r: r['contact_to_plan_s']):.1f} s"),
        ("moves", f"{median(lambda r: len(r['run']['moves'])):.0f}"),
        ("one move, median", f"{median(lambda r: moves(r, 'duration_s')):.2f} s"),
        ("bytes copied by a move", f"{median(lambda r: moves(r, 'bytes_copied')) / 1e6:.1f} MB"),
        ("longest stall of the producer", f"{median(lambda r: r['longest_stall_s']):.2f} s"),
        ("largest deviation at the end", f"{100 * median(lambda r: r['level_within']):.1f} %"),
        (
            "records lost, duplicated",
            ", ".join(str(sum(r[k] for r in reports)) for k in ("lost", "duplicated")),
        ),
        ("memory, all processes", f"{median(lambda r: r['memory_bytes']) / 1e9:.2f} GB"),
        ("CPU of `plimsoll --help`", f"{help_s:.2f} s"),
    ]
    head = (
        f"Medians of {len(reports)} runs of `make bench`, {os.cpu_count()} cores "
        f"({platform.machine()}), Python {platform.python_version()}. Seconds are "
        "counted from the start of the demo, with everything cached.\n\n"
        "| what | measured |\n|---|---|\n"
    )
    return head + "".join(f"| {what} | {figure} |\n" for what, figure in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    text = table([demo_once() for _ in range(arguments.runs)], help_cpu_s())
    (HERE / "demo.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
