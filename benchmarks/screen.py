"""The screen and its speed: `python -P -m benchmarks.screen`, into `screen.md`.

With --only, the other sections of the table stay as they are.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks import screen_keys
from benchmarks.canned import GOALS, snapshots
from benchmarks.machine import processor
from benchmarks.sections import Section, measure_sections, table
from benchmarks.terminals import Terminal, terminal
from control.demo.simulated_demo import SPEED
from model.goals.goals import SolveLimits
from model.plan.plan import write_plan
from solver.solve import solve
from tui.viewmodel.modes import MODES

TABLE: Final = Path(__file__).with_name("screen.md")
PLIMSOLL: Final = "from control.cli.main import main; main()"
BROKERS: Final = 60
PARTITIONS: Final = 20_000
WORK: Final = 4.0
WATCHED_S: Final = 60.0
SETTLE_S: Final = 5.0
STARTS: Final = 9
NOWHERE: Final = "127.0.0.1:9"
"""Nobody listens there."""
MIB: Final = 2**20


@contextmanager
def plimsoll(*arguments: str) -> Iterator[Terminal]:
    """The command in a terminal, with a state folder of its own."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        command = [sys.executable, "-P", "-c", PLIMSOLL, *arguments]
        with terminal(command, {"PLIMSOLL_STATE_DIR": folder}) as found:
            yield found


# ---- what it takes


def cost() -> str:
    """The section of what the screen takes while it shows a run."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        plan = Path(folder) / "plan.json"
        made = solve(snapshots(BROKERS, PARTITIONS)[0], GOALS, SolveLimits(work=WORK))
        assert made.best is not None
        write_plan(plan, made.best)
        shown = [sys.executable, "-P", "-m", "benchmarks.screen_shown", str(plan)]
        with terminal([*shown, str(BROKERS), str(PARTITIONS)], {}) as alone:
            alone.until("Overview")
            for number, mode in enumerate(MODES, 1):
                alone.press(str(number))
                rows.append([mode.title, *_taken(alone)])
    with plimsoll("demo", "--simulated", "--brokers", str(BROKERS)) as demo:
        demo.until("plan ready")
        rows.append(["the demo: planner and simulated cluster, too", *_taken(demo)])
    return table(["screen", "CPU, share of a core", "resident memory"], rows)


def _taken(shown: Terminal) -> list[str]:
    """Share of a core and memory of a process, in words."""
    process = psutil.Process(shown.process.pid)
    time.sleep(SETTLE_S)
    before_s, begun_s = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(WATCHED_S)
    took_s = sum(process.cpu_times()[:2]) - before_s
    share = took_s / (time.monotonic() - begun_s)
    return [f"{share:.1%}", f"{process.memory_info().rss / MIB:.0f} MiB"]


# ---- how long until


def keys() -> str:
    """The section of keys."""
    views = screen_keys.views()
    first = asyncio.run(screen_keys.first_visits(views["ready"]))
    found = asyncio.run(screen_keys.all_presses(views))
    missing = screen_keys.not_pressed(press.id for press in found)
    if missing:
        sys.exit(f"no scene has the keys {missing}; add one to benchmarks.screen_keys")
    rows = [
        _scene_row(name, [p for p in found if p.scene == name])
        for name in dict.fromkeys(p.scene for p in found)
    ]
    rows.append(_scene_row("a screen for the first time", first))
    headers = [
        "scene",
        "keys",
        "median: until painted / CPU",
        "slowest: until painted / CPU",
        "over 100 ms",
        "over 100 ms of CPU",
    ]
    return table(headers, rows)


def _scene_row(name: str, presses: list[screen_keys.Press]) -> list[str]:
    slowest = max(presses, key=lambda p: p.wall_ms)
    wall_ms, cpu_ms = (
        statistics.median(values)
        for values in ([p.wall_ms for p in presses], [p.cpu_ms for p in presses])
    )
    return [
        name,
        str(len(presses)),
        f"{wall_ms:.0f} / {cpu_ms:.0f} ms",
        f"`{slowest.key}` {slowest.wall_ms:.0f} / {slowest.cpu_ms:.0f} ms",
        _named(p.key for p in presses if p.wall_ms > 100),
        _named(p.key for p in presses if p.cpu_ms > 100),
    ]


def _named(keys: Iterable[str]) -> str:
    return ", ".join(f"`{key}`" for key in sorted(set(keys)))


def start() -> str:
    """The section of the first picture."""
    demo = ("demo", "--simulated")
    cases = (
        ("`plimsoll -b`, an address where nobody answers", ("-b", NOWHERE), "Overview"),
        ("`plimsoll demo --simulated`", demo, "Overview"),
        ("the same, its brokers on the screen", demo, "average │"),
        ("the same with 60 brokers", (*demo, "--brokers", "60"), "average │"),
    )
    rows = [
        [what, *_seconds([_start_s(arguments, words) for _ in range(STARTS)])]
        for what, arguments, words in cases
    ]
    return table(["what", "median", "slowest"], rows)


def _start_s(arguments: tuple[str, ...], words: str) -> float:
    begun_s = time.perf_counter()
    with plimsoll(*arguments) as shown:
        return shown.until(words) - begun_s


def _seconds(values: list[float]) -> list[str]:
    return [f"{kind(values):.2f} s" for kind in (statistics.median, max)]


# ---- an hour


def hour() -> str:
    """The section of an hour of a simulated cluster."""
    command = [sys.executable, "-P", "-m", "benchmarks.screen_hour"]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    minutes: list[dict[str, Any]] = [json.loads(line) for line in run.stdout.splitlines()]
    rows = [
        [
            str(minute["minute"]),
            f"{minute['cluster_s'] / 60:.0f} min",
            f"{minute['rss_mib']:.0f} MiB",
            f"{minute['blocks']:,}",
            str(minute["plans"]),
            str(minute["runs"]),
        ]
        for minute in minutes
    ]
    headers = [
        "minute",
        "of the cluster's clock",
        "resident memory",
        "blocks of memory",
        "plans approved",
        "runs ended",
    ]
    return table(headers, rows)


SECTIONS: Final[dict[str, Section]] = {
    "start": (
        "First picture",
        f"From the start of the process to the words on the terminal, {STARTS} times, "
        "files in the page cache. Asked: 1 s.",
        start,
    ),
    "keys": (
        "Keys",
        f"{screen_keys.BROKERS} brokers, {screen_keys.PARTITIONS:,} partitions of "
        "2,812 topics, a plan of about 3,000 moves. Each key that counts in a scene is "
        "pressed by Textual's pilot, and timed until its last paint. Those over "
        f"{screen_keys.SLOW_MS:.0f} ms are pressed again, and the median counts. "
        "Asked: 100 ms. What takes longer makes widgets, each of which Textual styles, "
        "lays out and mounts: its own palette (`ctrl+p`) and forms (`g`, `w`, `e`). "
        "Screens are built before the first visit, as `plimsoll` does. Little CPU beside a "
        "long time: a notice that an earlier key brought went just then, and was painted over. The "
        "estimate behind `A` is made beforehand: on the screen it follows the dialog.",
        keys,
    ),
    "cost": (
        "A view each second",
        f"{BROKERS} brokers, {PARTITIONS:,} partitions, a run of about 800 moves, "
        f"{WATCHED_S:.0f} s on each screen. CPU is user and system time of the "
        "process; it has the screen and the views that it is given, no planner and no "
        "connection. Asked: 5 % and 250 MiB.",
        cost,
    ),
    "hour": (
        "An hour of a simulated cluster",
        f"{BROKERS} brokers, its clock {SPEED:.0f} times as fast as ours, a key every "
        "2 s on all screens, each plan, of 200 moves at most, approved. The process "
        "has the planner and the cluster, too. After a garbage collection each minute.",
        hour,
    ),
}


def main() -> None:
    words = "The screen of 160 x 50; `make bench-screen`"
    measure_sections(TABLE, f"{words}, {processor()}.", SECTIONS)


if __name__ == "__main__":
    main()
