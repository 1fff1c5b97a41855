"""What `--auto` costs between plans: `python -P -m benchmarks.loop`, into `loop.md`.

The loop watches a large cluster whose loads change every second: once while the cluster is
balanced, and once while a plan waits for approval. The loads come from memory: this is the cost of
the loop alone. `pipeline.md` and `stream.md` say what it costs to measure loads.
"""

import gc
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from benchmarks.canned import AT_MS, GOALS, snapshots
from benchmarks.machine import processor
from benchmarks.sections import table
from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.view import Mode, Phase
from control.settings.auto_limits import EAGER
from control.settings.trigger_table import Response, TriggerTable
from lab.simulated_cluster.quiet_observer import QuietObserver
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Broker, Snapshot
from solver.solve import solve

TABLE: Final = Path(__file__).with_name("loop.md")
BROKERS: Final = 60
PARTITIONS: Final = 20_000
WORK: Final = 4.0
WATCHED_S: Final = 60.0
SETTLED_S: Final = 10.0
PLAN_S: Final = 120.0
MIB: Final = 2**20
HEAD: Final = (
    "# The loop between plans\n\n"
    "`python -P -m benchmarks.loop`, on {processor}. {brokers} brokers, {partitions:,} partitions "
    "with three replicas, new loads every second, two decisions a second, no screen. CPU seconds "
    "are those of the process and all its threads, over {watched:.0f} s. Loads come from memory: "
    "measuring them has tables of its own, [pipeline.md](pipeline.md) and [stream.md](stream.md)."
    "\n\n"
)
HEADERS: Final = ("while", "CPU, share of a core", "resident memory", "Python objects gained")


@dataclass
class Remembered(QuietObserver):
    """An observer of a cluster in memory: the next snapshot every second, again and again."""

    states: tuple[Snapshot, ...]

    def start(self) -> None:
        """There is nothing to connect to."""
        self._begun_s = time.monotonic()

    def brokers(self) -> tuple[Broker, ...]:
        """Those of the first snapshot; none changes."""
        return self.states[0].header.brokers

    def snapshot(self) -> Snapshot:
        """The one of this second."""
        return self.states[int(time.monotonic() - self._begun_s) % len(self.states)]


def row(words: str, phase: Phase, states: tuple[Snapshot, ...], goals: Goals) -> tuple[str, ...]:
    """Watch a cluster in one phase of the loop; return its line of the table."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        settings = LoopSettings(
            bootstrap="",
            name="bench",
            mode=Mode.AUTO,
            goals=goals,
            solve=SolveLimits(work=WORK),
            limits=EAGER,
            triggers=TriggerTable(uneven_load=Response.ASK),
            journal_dir=Path(folder, "journal"),
            decisions_dir=Path(folder),
        )
        parts = LoopParts(
            observer=lambda: Remembered(states),
            planner=solve,
            executor=None,
            clock=lambda: AT_MS / 1000 + len(states),
        )
        with Loop(settings, parts) as loop:
            if not loop.wait(lambda view: view.phase is phase, PLAN_S):
                sys.exit(f"the loop did not come to {phase}: {loop.view.message}")
            time.sleep(SETTLED_S)
            before = _objects()
            cpu_s, begun_s = time.process_time(), time.monotonic()
            time.sleep(WATCHED_S)
            share = (time.process_time() - cpu_s) / (time.monotonic() - begun_s)
            if loop.view.phase is not phase:
                sys.exit(f"the loop did not stay in {phase}: {loop.view.message}")
            memory = psutil.Process().memory_info().rss / MIB
            return words, f"{share:.1%}", f"{memory:.0f} MiB", f"{_objects() - before:+,}"


def _objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def main() -> None:
    """Measure both phases and write the table."""
    states = snapshots(BROKERS, PARTITIONS)
    wide = tuple(goal.model_copy(update={"tolerance": 1.0}) for goal in GOALS.balance)
    balanced = GOALS.model_copy(update={"balance": wide})
    rows = [
        row("the cluster is balanced (wide tolerance)", Phase.BALANCED, states, balanced),
        row("a plan waits for approval", Phase.PLAN_READY, states, GOALS),
    ]
    head = HEAD.format(
        processor=processor(), brokers=BROKERS, partitions=PARTITIONS, watched=WATCHED_S
    )
    TABLE.write_text(head + table(HEADERS, rows))
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
