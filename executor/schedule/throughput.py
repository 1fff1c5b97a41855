"""How fast moves went on a cluster, from what was seen of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from executor.schedule.task import CopyDirection, CopyResource, CopySpeed
from executor.timing import RunLimits
from model.run import MoveProgress

_USUAL_RATE: Final = 100e6
"""Bytes per second of a broker where nothing is known."""
_USUAL_S: Final = 1.5
"""Of a move that copies next to nothing, likewise."""
MUCH: Final = 50_000_000
"""Bytes from which on a time tells how fast was copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast moves went on this cluster."""

    seconds: float = _USUAL_S
    """Of a move apart from its bytes."""
    bytes_per_s: float = _USUAL_RATE
    """Through a broker, in and out each."""
    known: int = 0
    """Moves of before that tell."""

    @classmethod
    def of(cls, runs: Iterable[Sequence[MoveProgress]]) -> "Pace":
        """From the moves of each run that are done; medians, lest one that hung count.

        Copies share brokers, so that none of them tells what a broker can do: of each
        run, the broker that copied fastest does.
        """
        runs = list(runs)
        short = [
            at.seconds
            for run in runs
            for at in run
            if at.seconds is not None and (at.bytes_copied or 0) < MUCH
        ]
        rates = [rate for run in runs if (rate := _fastest(run)) is not None]
        return cls(
            seconds=median(short) if short else _USUAL_S,
            bytes_per_s=median(rates) if rates else _USUAL_RATE,
            known=sum(len(run) for run in runs),
        )

    def speed(self, limits: RunLimits) -> CopySpeed:
        """Under the throttle of a run, which copies inside a broker do not know."""
        throttle = limits.copy_bytes_per_s
        return CopySpeed(
            network=min(throttle, self.bytes_per_s),
            inside=self.bytes_per_s,
            seconds=self.seconds,
        )


def _fastest(run: Iterable[MoveProgress]) -> float | None:
    """Bytes per second through the busiest lane, while anything passed it."""
    spans: dict[CopyResource, list[tuple[int, int]]] = defaultdict(list)
    passed: dict[CopyResource, float] = defaultdict(float)
    for at in run:
        if at.issued_at_ms is None or at.done_at_ms is None:
            continue
        for resource, size in through(at).items():
            spans[resource].append((at.issued_at_ms, at.done_at_ms))
            passed[resource] += size
    rates = [
        1000 * size / max(100, _covered(spans[resource]))
        for resource, size in passed.items()
        if size >= MUCH
    ]
    return max(rates, default=None)


def through(at: MoveProgress) -> Mapping[CopyResource, float]:
    """What a move has sent so far through each lane between brokers."""
    move, size = at.move, at.bytes_copied or 0
    if not move.added or not size:
        return {}
    resources: dict[CopyResource, float] = {
        (move.leader_before, CopyDirection.OUT): size
    }
    for broker in move.added:
        resources[broker, CopyDirection.IN] = size / len(move.added)
    return resources


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """Length of the union of these spans."""
    covered, reached = 0, -1
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return covered
