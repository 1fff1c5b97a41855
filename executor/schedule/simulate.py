"""Simulation of a schedule: when each move starts and ends, and each broker's load."""

import copy
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from executor.schedule.admission import NO_LIMIT, brokers_of, bytes_per_replica, startable, too_big
from executor.schedule.concurrency import Concurrency
from executor.schedule.task import Copy, CopyDirection, CopyResource, CopySpeed, MoveTask
from executor.throttle.fair_share import fair_rates
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move

_NOTHING: Mapping[PartitionId, float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Peak load of one broker during a run, and its totals."""

    more_bytes: int = 0
    """Additional bytes on its disk, at most."""
    moves: int = 0
    """Most moves in flight at once that involve the broker."""
    in_bytes: int = 0
    out_bytes: int = 0
    inside_bytes: int = 0
    """Bytes between its own log directories."""
    in_per_s: float = 0.0
    """Highest bytes per second."""
    out_per_s: float = 0.0

    @property
    def copied_bytes(self) -> int:
        """Total bytes through the broker."""
        return self.in_bytes + self.out_bytes + self.inside_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The simulated course of a run."""

    seconds: float
    spans: dict[PartitionId, tuple[float, float]]
    """Start and end of each move in seconds from now, in order of start."""
    peaks: dict[BrokerId, Peak]
    unfit: tuple[tuple[Move, str], ...]
    """Moves that never fit on a target's disk, with the reason."""


def simulated(
    order: Sequence[MoveTask],
    speed: CopySpeed,
    concurrency: Concurrency,
    free_bytes: Mapping[BrokerId, int] = NO_LIMIT,
    in_flight: Sequence[MoveTask] = (),
    copied: Mapping[PartitionId, float] = _NOTHING,
    urgent: Collection[PartitionId] = (),
) -> Timeline:
    """Simulate moves in this order, as `Execution` runs them.

    Copies share brokers fairly (max-min). `in_flight` moves have begun already, with `copied`
    bytes done. `concurrency` is not changed. `urgent` as in `startable`.
    """
    simulation = _Simulation(speed, copy.deepcopy(concurrency), free_bytes, urgent)
    for task in in_flight:
        simulation.begin(task, copied.get(task.move.id, 0.0))
    waiting = {task.move.id: task for task in order}
    while waiting or simulation.running:
        chosen = simulation.startable(task.move for task in waiting.values())
        if not chosen and not simulation.running:
            move = waiting.pop(next(iter(waiting))).move
            simulation.unfit.append((move, too_big(move, simulation.free)))
        for move in chosen:
            simulation.begin(waiting.pop(move.id))
        while simulation.running and not simulation.advance():
            pass
    return simulation.timeline()


@dataclass(slots=True, eq=False)
class _Left:
    """A copy in progress, with its remaining bytes."""

    copy: Copy
    size: float


@dataclass(slots=True, eq=False)
class _Running:
    """A move in flight: first its bytes, then its fixed time."""

    task: MoveTask
    legs: list[_Left]
    inside: list[_Left]
    seconds_left: float
    begun_s: float

    @property
    def copies(self) -> bool:
        """Whether bytes remain to be copied."""
        return bool(self.legs or self.inside)


@dataclass(slots=True)
class _Tally:
    """Counters of one broker."""

    now_bytes: int = 0
    most_bytes: int = 0
    moves: int = 0
    most_moves: int = 0
    passed: Counter[CopyDirection] = field(default_factory=Counter)
    fastest: dict[CopyDirection, float] = field(default_factory=dict)

    def hold(self, size: int) -> None:
        self.now_bytes += size
        self.most_bytes = max(self.most_bytes, self.now_bytes)

    def join(self, moves: int) -> None:
        self.moves += moves
        self.most_moves = max(self.most_moves, self.moves)

    def peak(self) -> Peak:
        return Peak(
            more_bytes=self.most_bytes,
            moves=self.most_moves,
            in_bytes=self.passed[CopyDirection.IN],
            out_bytes=self.passed[CopyDirection.OUT],
            inside_bytes=self.passed[CopyDirection.INSIDE],
            in_per_s=self.fastest.get(CopyDirection.IN, 0.0),
            out_per_s=self.fastest.get(CopyDirection.OUT, 0.0),
        )


class _Simulation:
    """The moves in flight, the clock, and the load of brokers."""

    def __init__(
        self,
        speed: CopySpeed,
        concurrency: Concurrency,
        free_bytes: Mapping[BrokerId, int],
        urgent: Collection[PartitionId],
    ) -> None:
        self._speed = speed
        self._urgent = urgent
        self._concurrency = concurrency
        self.free = dict(free_bytes)
        """Free bytes, not counting moves in flight."""
        self.running: list[_Running] = []
        self.unfit: list[tuple[Move, str]] = []
        self._now_s = 0.0
        self._spans: dict[PartitionId, tuple[float, float]] = {}
        self._tallies: dict[BrokerId, _Tally] = {}

    def startable(self, waiting: Iterable[Move]) -> list[Move]:
        """The moves that start now."""
        in_flight = [r.task.move for r in self.running]
        limits = self._concurrency.limits
        return startable(waiting, in_flight, limits, self.free, self._urgent)

    def begin(self, task: MoveTask, copied: float = 0.0) -> None:
        """Start a move; its new replicas occupy their full size at once."""
        legs = [_Left(leg, leg.size) for leg in task.legs]
        inside = [_Left(one, one.size) for one in task.inside]
        for left in (*legs, *inside):
            done = min(copied, left.size)
            left.size -= done
            copied -= done
        now = _Running(task, legs, inside, task.fixed_s(self._speed), self._now_s)
        _drop_ended(now)
        self.running.append(now)
        self._spans[task.move.id] = (self._now_s, self._now_s)
        for resource, size in task.resources():
            self._tally(resource[0]).passed[resource[1]] += size
        for one in task.copies:
            self._tally(one.target).hold(one.size)
        for broker in brokers_of(task.move):
            self._tally(broker).join(1)

    def advance(self) -> bool:
        """Advance to the next end of a copy or move; return whether a move ended."""
        flows = {left: left.copy.resources for left in self._flows()}
        resources = {resource for of in flows.values() for resource in of}
        rates = fair_rates(flows, {resource: self._speed.of(resource) for resource in resources})
        self._note_rates(rates)
        ends = [left.size / rate for left, rate in rates.items()]
        ends += [r.seconds_left for r in self.running if not r.copies]
        self._pass(min(ends), rates)
        return self._end()

    def timeline(self) -> Timeline:
        """Return the result."""
        return Timeline(
            seconds=self._now_s,
            spans=self._spans,
            peaks={b: t.peak() for b, t in sorted(self._tallies.items())},
            unfit=tuple(self.unfit),
        )

    def _tally(self, broker: BrokerId) -> _Tally:
        return self._tallies.setdefault(broker, _Tally())

    def _flows(self) -> Iterator[_Left]:
        """Copies in progress: one of each move between brokers, one within each broker."""
        taken = set()
        for now in self.running:
            yield from now.legs[:1]
            for left in now.inside:
                if left.copy.target not in taken:
                    taken.add(left.copy.target)
                    yield left

    def _note_rates(self, rates: Mapping[_Left, float]) -> None:
        through: defaultdict[CopyResource, float] = defaultdict(float)
        for left, rate in rates.items():
            for resource in left.copy.resources:
                through[resource] += rate
        for (broker, direction), rate in through.items():
            fastest = self._tally(broker).fastest
            fastest[direction] = max(fastest.get(direction, 0.0), rate)

    def _pass(self, step_s: float, rates: Mapping[_Left, float]) -> None:
        self._now_s += step_s
        for now in self.running:
            if not now.copies:
                now.seconds_left -= step_s
        for left, rate in rates.items():
            left.size -= step_s * rate

    def _end(self) -> bool:
        """Remove what has ended; return whether a move has."""
        ended = []
        for now in self.running:
            _drop_ended(now)
            if not now.copies and now.seconds_left <= 1e-9:
                ended.append(now)
        for now in ended:
            self.running.remove(now)
            self._settle(now)
        return bool(ended)

    def _settle(self, now: _Running) -> None:
        """Account for a completed move."""
        move, size = now.task.move, bytes_per_replica(now.task.move)
        self._spans[move.id] = (now.begun_s, self._now_s)
        for broker in move.removed:
            self._tally(broker).hold(-size)
        for one in now.task.inside:
            self._tally(one.target).hold(-one.size)
        for broker in brokers_of(move):
            self._tally(broker).join(-1)
        for brokers, change in ((move.added, -size), (move.removed, size)):
            for broker in brokers:
                if broker in self.free:
                    self.free[broker] += change
        self._concurrency.ended(move, self._speed.seconds, move.bytes_to_copy or 0, self._now_s)


def _drop_ended(now: _Running) -> None:
    """Drop completed copies; less than a byte is rounding."""
    while now.legs and now.legs[0].size < 1.0:
        now.legs.pop(0)
    now.inside = [left for left in now.inside if left.size >= 1.0]
