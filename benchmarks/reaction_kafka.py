"""How soon `--auto` acts on a local Kafka: `python -P -m benchmarks.reaction_kafka [--only PART]`.

A producer loads three brokers evenly. The load of one of them then grows, and stays so or not;
between two of these shifts the shares of the load follow the partitions to where they are. The
loop runs in this process, with Spark, as `run --auto --limits eager` does.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.sections import table
from clients.jvm.jars import default_cache_dir
from control import compose
from control.loop.loop import Loop
from control.loop.view import LoopView, Mode, Phase
from control.settings.auto_limits import EAGER
from control.settings.settings import Settings
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.evaluate import evaluate
from model.goals.goals import Cooldown, Goals
from model.ids import BrokerId
from model.run import MoveState
from model.snapshot.snapshot import StorageKind

TOPIC: Final = "shifting"
PARTITIONS: Final = 24
BYTES_PER_S: Final = 6e6
BROKER_COUNT: Final = 3
PATIENCE_S: Final = 120.0
SETTLED_S: Final = 25.0
"""Even load before each shift."""
SHIFTS_PER_LOOP: Final = 3
"""A loop that sees more shifts to and fro takes them for feedback of its own runs, and pauses."""
PLAIN: Final = {"segment.bytes": str(2 * 2**20), "retention.bytes": str(16 * 2**20)}
NO_COOLDOWN: Final = {kind: Cooldown(rest_s=0.0, return_window_s=0.0) for kind in StorageKind}


class Times:
    """When the loop first showed something, in seconds of the steady clock."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._lock = loop, threading.Lock()
        self.at_s: dict[str, float] = {}
        loop.subscribe(self._see)

    def clear(self) -> None:
        """Forget everything seen so far."""
        with self._lock:
            self.at_s = {}

    def _see(self, view: LoopView) -> None:
        now_s, run = time.monotonic(), view.run
        seen = {
            "contact": bool(view.brokers),
            "loads": view.snapshot is not None,
            "plan": view.plan is not None and bool(view.plan.moves),
            "run": view.phase is Phase.RUNNING,
            "request": view.phase is Phase.RUNNING
            and run is not None
            and any(move.state is not MoveState.PLANNED for move in run.moves),
        }
        with self._lock:
            for what, holds in seen.items():
                if holds:
                    self.at_s.setdefault(what, now_s)


class Bench:
    """A cluster under an even load, watched by the loop."""

    def __init__(self, load: Load, loop: Loop) -> None:
        self.loop, self.times, self._load = loop, Times(loop), load

    def leaders(self) -> list[BrokerId]:
        """Leader of each partition of the topic, as last seen."""
        snapshot = self.loop.view.snapshot
        if snapshot is None:
            sys.exit("no load has been measured")
        found = {row.id.partition: row.leader for row in snapshot.rows() if row.id.topic == TOPIC}
        return [found[number] for number in range(PARTITIONS)]

    def shift(self, *factors: float) -> None:
        """Load the brokers with most partitions by these factors, all others evenly."""
        leaders = self.leaders()
        counts = Counter(leaders)
        loaded = sorted(counts, key=lambda broker: (-counts[broker], broker))
        factor = dict(zip(loaded, factors, strict=False))
        weights = [factor.get(b, 1.0) / counts[b] for b in leaders]
        self._load.shift(tuple(weights), BYTES_PER_S * sum(weights) / BROKER_COUNT)

    def settle(self) -> None:
        """Even the load out, and wait until the loop has seen it so for long enough."""
        self.shift(1.0)
        deadline_s, even_s = time.monotonic() + 2 * PATIENCE_S, time.monotonic()
        while time.monotonic() - even_s < SETTLED_S:
            time.sleep(0.5)
            if self.loop.view.phase is not Phase.BALANCED:
                even_s = time.monotonic()
            if time.monotonic() > deadline_s or self.loop.error is not None:
                sys.exit(f"the cluster is not balanced: {self.loop.view.message}")

    def react(self, *factors: float) -> dict[str, float]:
        """Shift the load for good; seconds until plan, run, first request and balance.

        `moves` counts those of all runs until then.
        """
        self.settle()
        runs = len(self.loop.reports)
        self.times.clear()
        begun_s = time.monotonic()
        self.shift(*factors)
        while "request" not in self.times.at_s and time.monotonic() - begun_s < PATIENCE_S:
            time.sleep(0.05)
        at_s = {what: s - begun_s for what, s in self.times.at_s.items()}
        if self.loop.wait(lambda view: view.phase is Phase.BALANCED, PATIENCE_S):
            at_s["balance"] = time.monotonic() - begun_s
        moves = [move for report in self.loop.reports[runs:] for move in report.moves]
        return at_s | {"moves": len(moves)}

    def rest(self, length_s: float) -> tuple[int, int]:
        """Plans that wait or ran, and runs, while the load stays as it is."""
        self.times.clear()
        runs = len(self.loop.reports)
        time.sleep(length_s)
        return int("plan" in self.times.at_s), len(self.loop.reports) - runs

    def bear(self, factor: float, length_s: float) -> bool:
        """Shift the load for so long; whether a run began."""
        self.settle()
        runs = len(self.loop.reports)
        self.shift(factor)
        time.sleep(length_s)
        self.shift(1.0)
        time.sleep(PATIENCE_S / 4)
        return len(self.loop.reports) > runs or self.loop.running


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Start cluster, load and loop."""
    with (
        LocalCluster(default_cache_dir(), LocalPlan(tier=False)) as cluster,
        contextlib.ExitStack() as stack,
    ):
        homes = [[1 + number % BROKER_COUNT] for number in range(PARTITIONS)]
        cluster.create_topic(TOPIC, homes, PLAIN)
        order = LoadOrder(topic=TOPIC, bytes_per_s=BYTES_PER_S, weights=(1.0,) * PARTITIONS)
        load = Load(cluster.processes, cluster.bootstrap, order)
        load.start()
        stack.callback(load.kill)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-"))
        goals = Goals(cooldown=NO_COOLDOWN)
        settings = Settings(bootstrap_server=cluster.bootstrap, state_dir=Path(folder), goals=goals)
        loop = compose.loop(settings, mode=Mode.AUTO, limits=EAGER)
        found = Bench(load, loop)
        stack.enter_context(loop)
        if not loop.wait(lambda view: view.phase is Phase.BALANCED, PATIENCE_S):
            sys.exit(f"the cluster is not balanced: {loop.view.message}")
        yield found


def shifts(factor: float, times: int) -> str:
    """Table of the seconds after a shift."""
    seen: list[dict[str, float]] = []
    while len(seen) < times:
        with bench() as found:
            for _ in range(min(SHIFTS_PER_LOOP, times - len(seen))):
                seen.append(found.react(factor))
                print(factor, seen[-1], flush=True)
    words = {
        "plan": "plan",
        "run": "run approved",
        "request": "first request",
        "balance": "balanced",
    }
    rows = []
    for what, name in words.items():
        values = [at_s.get(what, float("inf")) for at_s in seen]
        middle = statistics.median(values)
        rows.append((name, *(f"{s:.1f} s" for s in (min(values), middle, max(values)))))
    counts = [at_s["moves"] for at_s in seen]
    middle = statistics.median(counts)
    rows.append(("moves", *(f"{count:g}" for count in (min(counts), middle, max(counts)))))
    return table((f"load x {factor:g}, {times} times", "least", "median", "most"), rows)


def quiet(minutes: float) -> str:
    """Table of a shift of two brokers' loads, and of what follows while the load stays."""
    with bench() as found:
        seen = found.react(3.0, 2.0)
        plans, runs = found.rest(60.0 * minutes)
        off = spread(found.loop, Goals(cooldown=NO_COOLDOWN))
    rows = [
        ("first request", f"{seen.get('request', float('inf')):.1f} s"),
        ("balanced", f"{seen.get('balance', float('inf')):.1f} s"),
        ("moves", f"{seen['moves']:g}"),
        (f"further plans in {minutes:g} minutes", f"{plans}"),
        (f"further runs in {minutes:g} minutes", f"{runs}"),
        ("largest deviation from the average at the end", f"{off:.1%}"),
    ]
    return table(("loads of three brokers from 1/1/1 to 3/2/1", "seen"), rows)


def spread(loop: Loop, goals: Goals) -> float:
    """Largest deviation of a broker from the average, as a share of it, in any resource."""
    snapshot = loop.view.snapshot
    if snapshot is None:
        sys.exit("no load has been measured")
    found = evaluate(snapshot, goals, ()).deviations.values()
    return max(abs(deviation) for by_broker in found for deviation in by_broker.values())


def bursts(times: int) -> str:
    """Table of bursts and of runs that they caused."""
    with bench() as found:
        rows = []
        for length_s in (5.0, 9.0):
            ran = sum(found.bear(2.0, length_s) for _ in range(times))
            rows.append((f"doubled for {length_s:.0f} s", f"{times}", f"{ran}"))
            print(*rows[-1], sep=" | ", flush=True)
    return table(("burst", "times", "runs"), rows)


def main() -> None:
    """Measure, and print what belongs into `reaction.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("double", "half", "bursts", "quiet"))
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=10.0)
    arguments = parser.parse_args()
    parts: dict[str, Callable[[], str]] = {
        "double": lambda: shifts(2.0, arguments.times),
        "half": lambda: shifts(1.5, arguments.times),
        "bursts": lambda: bursts(arguments.times),
        "quiet": lambda: quiet(arguments.minutes),
    }
    for name, measure in parts.items():
        if arguments.only in (None, name):
            print(measure())


if __name__ == "__main__":
    main()
