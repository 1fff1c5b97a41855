"""The observed pace of moves on a cluster."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from executor.schedule.task import CopyDirection, CopyResource, CopySpeed
from executor.timing import RunLimits
from model.run import MoveProgress

_USUAL_RATE: Final = 100e6
"""Bytes per second of a broker, assumed without observations."""
_USUAL_S: Final = 1.5
"""Seconds of a move that copies almost nothing, assumed likewise."""
MUCH: Final = 50_000_000
"""Bytes above which a duration shows the throughput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The pace of moves on this cluster."""

    seconds: float = _USUAL_S
    """Fixed seconds per move."""
    bytes_per_s: float = _USUAL_RATE
    """Bytes per second through a broker, in and out each."""
    known: int = 0
    """Number of moves observed."""

    @classmethod
    def of(cls, runs: Iterable[Sequence[MoveProgress]]) -> "Pace":
        """Derive the pace from the completed moves of runs.

        Medians are used so that a stuck move does not count. Copies share brokers, so
        none of them shows what a broker can do; the fastest broker of each run does.
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
        """The speed under a run's throttle, which does not apply within a broker."""
        throttle = limits.copy_bytes_per_s
        return CopySpeed(
            network=min(throttle, self.bytes_per_s), inside=self.bytes_per_s, seconds=self.seconds
        )


def _fastest(run: Iterable[MoveProgress]) -> float | None:
    """Bytes per second through the busiest resource while it was in use."""
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
    """Bytes that a move has sent through each resource between brokers."""
    move, size = at.move, at.bytes_copied or 0
    if not move.added or not size:
        return {}
    resources: dict[CopyResource, float] = {(move.leader_before, CopyDirection.OUT): size}
    for broker in move.added:
        resources[broker, CopyDirection.IN] = size / len(move.added)
    return resources


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """Length of the union of these spans, in milliseconds."""
    covered, reached = 0, -1
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return covered
