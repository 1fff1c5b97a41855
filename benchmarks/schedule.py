"""Measures the order of moves: `python -P -m benchmarks.schedule`.

Each plan is run on paper in its own order, by list scheduling, and as a run takes it,
which asks CP-SAT where there are few moves. Writes `benchmarks/schedule.md`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.instances import build, goals_of
from benchmarks.machine import processor
from benchmarks.shapes import shape_of
from executor.schedule.concurrency import Concurrency
from executor.schedule.list_scheduling import list_schedule
from executor.schedule.order import Schedule, schedule, urgent_of
from executor.schedule.simulate import simulated
from executor.schedule.task import CopySpeed, MoveTask, ScheduleConstraints, tasks_of
from executor.timing import RunLimits
from model.goals.goals import SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.snapshot.snapshot import StorageKind
from solver.solve import solve

TABLE: Final = Path(__file__).with_name("schedule.md")
SPEED: Final = CopySpeed(network=50e6, inside=100e6, seconds=1.5)
IN_FLIGHT: Final = (2, 4, 8)
RANDOM: Final = ((10, 5), (20, 5), (40, 8), (40, 20), (200, 3), (200, 20), (500, 50))
"""Moves and brokers."""
SEEDS: Final = (1, 2, 3)
PLANNED: Final = (("10x500-drain", 1), ("9x500-rf3", 1), ("24x5000-rf3-band", 1))
WORK: Final = 5.0

Drawn = tuple[Sequence[Move], frozenset[PartitionId]]
"""Moves, and those of them that leave a draining broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One order on paper, against the least time that is proved."""

    time: float
    """Makespan as a multiple of the least time."""
    wait: float
    """Mean time until a move has ended, by what moves gain, as the same multiple."""
    cpu_s: float


def random_moves(seed: int, moves: int, brokers: int) -> Drawn:
    """Replicas of three, or of two on few brokers, from anywhere to anywhere."""
    rng = np.random.default_rng([seed, moves, brokers])
    return [_random_move(rng, n, brokers) for n in range(moves)], frozenset()


def _random_move(rng: np.random.Generator, number: int, brokers: int) -> Move:
    replicas = min(3, brokers - 1)
    drawn = [BrokerId(int(b)) for b in rng.permutation(brokers)[: replicas + 1]]
    before, after = drawn[:replicas], drawn[:replicas]
    after[int(rng.integers(replicas))] = drawn[replicas]
    return Move(
        topic=TopicName("random"),
        topic_id="random",
        partition=number,
        storage=StorageKind.REPLICATED,
        replicas_before=tuple(before),
        replicas_after=tuple(after),
        leader_before=before[0],
        leader_after=after[0],
        bytes_to_copy=int(rng.lognormal(6.5, 1.0) * 1e6),
        gain=float(rng.exponential()),
        reason="drawn",
    )


def planned_moves(name: str, seed: int) -> Drawn:
    """The moves of a plan of the planner's benchmark."""
    shape = shape_of(name)
    result = solve(build(shape, seed), goals_of(shape), SolveLimits(work=WORK))
    assert result.best is not None
    return result.best.moves, urgent_of(result.best)


def cases() -> Iterator[tuple[str, list[Drawn]]]:
    """Names, and plans over which is averaged."""
    for moves, brokers in RANDOM:
        drawn = [random_moves(seed, moves, brokers) for seed in SEEDS]
        yield f"random, {brokers} brokers", drawn
    for name, seed in PLANNED:
        yield name, [planned_moves(name, seed)]


def measured(plan: Drawn, in_flight: int) -> dict[str, Found]:
    """Each way to order moves."""
    moves, urgent = plan
    limits = RunLimits(moves_in_flight=in_flight)
    terms = ScheduleConstraints(limits=limits, speed=SPEED, free_bytes={}, urgent=urgent)
    wanted = tasks_of(moves)
    begun = time.process_time()
    best = schedule(wanted, terms)
    cpu_s = time.process_time() - begun
    return {
        "plan": _found(lambda: list(wanted), terms, best.least_s),
        "list": _found(lambda: list_schedule(wanted, terms, slack=0.1), terms, best.least_s),
        "run": _against(best, best.least_s, cpu_s),
    }


def _found(
    order: Callable[[], list[MoveTask]], terms: ScheduleConstraints, least_s: float
) -> Found:
    begun = time.process_time()
    taken = order()
    timeline = simulated(taken, terms.speed, Concurrency(terms.limits))
    cpu_s = time.process_time() - begun
    return _against(Schedule(order=tuple(taken), timeline=timeline), least_s, cpu_s)


def _against(of: Schedule, least_s: float, cpu_s: float) -> Found:
    return Found(time=of.timeline.seconds / least_s, wait=of.waits_s / least_s, cpu_s=cpu_s)


def row(name: str, plans: Sequence[Drawn], in_flight: int) -> str:
    """One line of the table; means over the plans, the worst time beside them."""
    found = [measured(plan, in_flight) for plan in plans]
    cells = [name, f"{np.mean([len(moves) for moves, _ in plans]):.0f}"]
    cells.append(str(in_flight))
    for way in ("plan", "list", "run"):
        times = [of[way].time for of in found]
        cells.append(f"{np.mean(times):.3f} ({max(times):.3f})")
        cells.append(f"{np.mean([of[way].wait for of in found]):.2f}")
    cells.append(f"{max(of['run'].cpu_s for of in found):.2f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure all and write the table."""
    head = (
        "# The order of moves\n\n"
        f"`python -P -m benchmarks.schedule`, on {processor()}. Each broker "
        "copies 50 MB/s in and out. Times are multiples of the shortest time that is "
        "proved for any order; the worst plan in brackets. A wait is the mean time "
        "until a move has ended, weighted by the gain of the moves: what a run that is "
        "stopped early has not gained yet. CPU seconds are those of the slowest plan, "
        "with CP-SAT.\n\n"
    )
    columns = ["case", "moves", "in flight", "plan's order", "wait", "list", "wait"]
    columns += ["as run", "wait", "CPU s"]
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for name, plans in cases():
        for in_flight in IN_FLIGHT:
            lines.append(row(name, plans, in_flight))
            print(lines[-1], flush=True)
    TABLE.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
