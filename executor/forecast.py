"""What a run will take, before it begins: time, bytes, and room on disks meanwhile."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Final

from executor.concurrency import Concurrency
from executor.flows import fair_rates
from executor.schedule import NO_LIMIT, bytes_per_replica, in_order, startable
from executor.timing import RunLimits
from model.ids import BrokerId, PartitionId
from model.plan import Move

_USUAL_RATE: Final = 100e6
"""Bytes per second of a copy where nothing is known."""
_USUAL_S: Final = 1.5
"""Of a move that copies next to nothing, likewise."""
_MUCH: Final = 50_000_000
"""Bytes from which on a move's time tells how fast it copied."""


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
    def of(cls, done: Sequence[tuple[float, int]]) -> "Pace":
        """From seconds and bytes of moves; medians, lest one that hung count."""
        short = [seconds for seconds, size in done if size < _MUCH]
        rates = [size / max(seconds, 0.1) for seconds, size in done if size >= _MUCH]
        return cls(
            seconds=median(short) if short else _USUAL_S,
            bytes_per_s=median(rates) if rates else _USUAL_RATE,
            known=len(done),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run is expected to take."""

    seconds: float
    bytes_to_copy: int
    most_more_bytes: dict[BrokerId, int]
    """By how much each broker's disk is fuller than before at the worst moment."""
    known: int
    """Moves of before that the time is estimated from."""


@dataclass(slots=True)
class _Running:
    """One move under way on paper: first its bytes, then what else it takes."""

    move: Move
    bytes_left: float
    seconds_left: float

    def ends_in_s(self, rate: float) -> float:
        """Seconds until its bytes are copied, or until its end where they are."""
        return self.bytes_left / rate if self.bytes_left > 0.0 else self.seconds_left


def forecast(
    moves: Sequence[Move],
    limits: RunLimits,
    pace: Pace,
    free_bytes: Mapping[BrokerId, int] = NO_LIMIT,
) -> Forecast:
    """Run the schedule on paper.

    Copies share brokers fairly, at the throttle or at the pace of before.
    """
    concurrency = Concurrency(limits)
    paper = _Paper(pace, min(limits.throttle_bytes_per_s or inf, pace.bytes_per_s))
    waiting = in_order(moves)
    while waiting or paper.running:
        under_way = [r.move for r in paper.running]
        chosen = startable(waiting, under_way, concurrency.limits, free_bytes)
        if not chosen and not under_way:
            break
        for move in chosen:
            waiting.remove(move)
            paper.begin(move)
        for move in paper.go_on():
            concurrency.ended(move, pace.seconds)
    return Forecast(
        seconds=paper.now_s,
        bytes_to_copy=sum(m.bytes_to_copy for m in moves),
        most_more_bytes={b: n for b, n in sorted(paper.most.items()) if n > 0},
        known=pace.known,
    )


class _Paper:
    """The moves under way, the time, and what lies on disks more than before."""

    def __init__(self, pace: Pace, bytes_per_s: float) -> None:
        self._pace = pace
        self._bytes_per_s = bytes_per_s
        self._more: Counter[BrokerId] = Counter()
        self.most: Counter[BrokerId] = Counter()
        self.now_s = 0.0
        self.running: list[_Running] = []

    def begin(self, move: Move) -> None:
        """Start one; its new replicas are taken to be whole at once."""
        seconds = self._pace.seconds * max(1, len(move.added))
        self.running.append(_Running(move, move.bytes_to_copy, seconds))
        for broker in move.added:
            self._more[broker] += bytes_per_replica(move)
            self.most[broker] = max(self.most[broker], self._more[broker])

    def go_on(self) -> list[Move]:
        """Pass the time until something ends; the moves that did."""
        rates = self._rates()
        step_s = min(r.ends_in_s(rates.get(r.move.id, 0.0)) for r in self.running)
        self.now_s += step_s
        ended = []
        for now in list(self.running):
            if now.bytes_left > 0.0:
                now.bytes_left -= step_s * rates[now.move.id]
                if now.bytes_left < 1.0:
                    now.bytes_left = 0.0
            else:
                now.seconds_left -= step_s
            if now.bytes_left == 0.0 and now.seconds_left <= 1e-9:
                self.running.remove(now)
                ended.append(now.move)
                for broker in now.move.removed:
                    self._more[broker] -= bytes_per_replica(now.move)
        return ended

    def _rates(self) -> dict[PartitionId, float]:
        flows = {
            r.move.id: [(r.move.leader_before, "out")]
            + [(broker, "in") for broker in r.move.added]
            for r in self.running
            if r.bytes_left > 0.0
        }
        limits = {limit for of in flows.values() for limit in of}
        return fair_rates(flows, dict.fromkeys(limits, self._bytes_per_s))
