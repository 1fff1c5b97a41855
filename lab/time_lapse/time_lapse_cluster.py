"""A cluster as columns whose time jumps from one change to the next."""

import copy
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from lab.time_lapse.broker_faults import BrokerEvent, BrokerFault, FaultKind, events_of
from lab.time_lapse.load_shapes import LoadShape, Surroundings
from lab.time_lapse.varying_loads import VaryingLoads, rate_columns
from model.errors import ConfigError
from model.ids import NO_BROKER, BrokerId
from model.plan.plan import Move
from model.snapshot.snapshot import Broker, BrokerState, Floats, Ints, Snapshot, Source

WINDOW_S: Final = 15.0
"""Time that measured loads are averaged over, as the probe does by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What happens on a cluster: where it starts, its loads, and faults of its brokers."""

    start: Snapshot
    loads: VaryingLoads
    shapes: tuple[LoadShape, ...] = ()
    faults: tuple[BrokerFault, ...] = ()
    step_s: float = 60.0
    """Loads are constant for so long."""

    def __post_init__(self) -> None:
        known = [b.id for b in self.start.header.brokers]
        for fault in self.faults:
            if fault.broker not in known:
                raise ConfigError(
                    f"--fault {fault.kind}:{fault.broker}: there is no broker {fault.broker}; "
                    f"brokers are {', '.join(map(str, known))}"
                )


class TimeLapseCluster:
    """Placement, loads and states of brokers; time passes only in `advance`.

    A broker that returns has all its data, and leads again what it is the preferred leader of.
    Sizes of partitions do not change.
    """

    def __init__(self, course: Course) -> None:
        self._course, start = course, course.start
        # Some remember what they reacted to.
        self._shapes = copy.deepcopy(course.shapes)
        self.begin_s = start.header.taken_at_ms / 1000
        self.now_s = self.begin_s
        self._rates = rate_columns(start)
        self._replicas: Ints = start.partitions.replica_broker.copy()
        self._leader: Ints = start.partitions.leader.copy()
        self._moved_at_s = np.full(len(start), -math.inf)
        self._events = events_of(course.faults)
        self._next_event: BrokerEvent | None = next(self._events, None)
        self._open: Counter[tuple[BrokerId, FaultKind]] = Counter()
        """Faults of each kind that have begun and not ended; those of a broker may overlap."""
        self._step = 0
        self._loads = self._loads_now()
        self._before = self._loads
        self._pass_events()

    @property
    def dead(self) -> frozenset[BrokerId]:
        """Brokers that are dead now."""
        return self._in_fault(FaultKind.DEAD) | {
            b.id for b in self._course.start.header.brokers if b.state is BrokerState.DEAD
        }

    @property
    def slow(self) -> frozenset[BrokerId]:
        """Brokers that copy slowly now."""
        return self._in_fault(FaultKind.SLOW)

    @property
    def loads(self) -> Floats:
        """(n, resources) the loads at this moment; not to be changed."""
        return self._loads

    @property
    def placement(self) -> Ints:
        """(replicas,) broker of each replica, as a copy."""
        return self._replicas.copy()

    @property
    def offline(self) -> frozenset[int]:
        """Rows without a leader now."""
        return frozenset(np.flatnonzero(self._leader == NO_BROKER).tolist())

    def rows_on(self, brokers: Iterable[BrokerId]) -> frozenset[int]:
        """Rows with a replica on one of these brokers now."""
        there = np.isin(self._replicas, np.array(sorted(brokers), np.int64))
        return frozenset(self._course.start.replica_row[there].tolist())

    def rows_of(self, moves: Iterable[Move]) -> frozenset[int]:
        """Rows that some moves are of."""
        return frozenset(self._course.start.row_of[move.id] for move in moves)

    @property
    def next_event_s(self) -> float:
        """When a broker changes next; inf for never."""
        event = self._next_event
        return math.inf if event is None else self.begin_s + event.at_s

    @property
    def next_change_s(self) -> float:
        """The next time at which an observer could see anything new by itself.

        Loads of a step are seen once the window covers them alone.
        """
        seen_s = self._step_begins_s(self._step) + WINDOW_S
        if self.now_s >= seen_s:
            seen_s = self._step_begins_s(self._step + 1) + WINDOW_S
        return min(seen_s, self.next_event_s)

    def advance(self, to_s: float) -> None:
        """Let time pass until `to_s`, seconds since the epoch."""
        while True:
            step_s = self._step_begins_s(self._step + 1)
            next_s = min(step_s, self.next_event_s)
            if next_s > to_s:
                break
            self.now_s = next_s
            self._pass_events()
            if next_s == step_s:
                self._step += 1
                self._before, self._loads = self._loads, self._loads_now()
        self.now_s = max(self.now_s, to_s)

    def snapshot(self) -> Snapshot:
        """The snapshot that a collector would take now, with loads over the last window."""
        return self._snapshot(self._measured(), self._replicas, self._leader)

    def present(self) -> Snapshot:
        """The same with the loads of this moment."""
        return self._snapshot(self._loads, self._replicas, self._leader)

    def refused(self, moves: Iterable[Move]) -> str:
        """Why the moves cannot be made now, since a partition is elsewhere; empty if they can."""
        for move in moves:
            row = self._course.start.find(move.id)
            if row is None or self._of(row) != list(move.replicas_before):
                return f"{move.id} is not on the brokers {move.replicas_before} any more"
        return ""

    def apply(self, move: Move) -> None:
        """Let a move take effect at once.

        Precondition: `refused` does not refuse it, and the number of replicas stays.
        """
        row = self._course.start.row_of[move.id]
        start, end = self._span(row)
        self._replicas[start:end] = move.replicas_after
        dead = self.dead
        alive = [b for b in (move.leader_after, *move.replicas_after) if b not in dead]
        self._leader[row] = alive[0] if alive else NO_BROKER
        self._moved_at_s[row] = self.now_s - self.begin_s

    def _snapshot(self, loads: Floats, replicas: Ints, leader: Ints) -> Snapshot:
        start, now_ms = self._course.start, int(1000 * self.now_s)
        source = Source(
            name="simulation",
            newest_sample_ms=now_ms,
            window_s=WINDOW_S,
            samples=round(WINDOW_S) * len(start),
            measured_share=1.0,
        )
        update = {
            "taken_at_ms": now_ms,
            "sources": (source,),
            "brokers": tuple(map(self._broker, start.header.brokers)),
        }
        columns = replace(
            start.partitions, loads=loads, replica_broker=replicas.copy(), leader=leader.copy()
        )
        return Snapshot(start.header.model_copy(update=update), columns)

    def _broker(self, broker: Broker) -> Broker:
        # As in the metadata of a cluster, which do not say that one is slow.
        if self._open[broker.id, FaultKind.DEAD]:
            return broker.model_copy(update={"state": BrokerState.DEAD})
        return broker

    def _in_fault(self, kind: FaultKind) -> frozenset[BrokerId]:
        return frozenset(b for (b, k), faults in self._open.items() if k is kind and faults)

    def _step_begins_s(self, step: int) -> float:
        return self.begin_s + step * self._course.step_s

    def _loads_now(self) -> Floats:
        course, at_s = self._course, self._step * self._course.step_s
        found = course.loads.at(int(1000 * self._step_begins_s(self._step)))
        if not self._shapes:
            return found
        around = Surroundings(leader=self._leader, moved_at_s=self._moved_at_s)
        factors = np.ones(len(course.start))
        for shape in self._shapes:
            factors *= shape.factors(at_s, around)
        found = found.copy()
        found[:, self._rates] *= factors[:, None]
        return found

    def _measured(self) -> Floats:
        """Loads averaged over the window that ends now."""
        share = (self.now_s - self._step_begins_s(self._step)) / WINDOW_S
        if share >= 1 or self._before is self._loads:
            return self._loads
        mixed: Floats = share * self._loads + (1 - share) * self._before
        return mixed

    def _pass_events(self) -> None:
        while (event := self._next_event) and self.next_event_s <= self.now_s:
            self._next_event = next(self._events, None)
            dead = self.dead
            self._open[event.broker, event.kind] += 1 if event.begins else -1
            if dead != self.dead:
                self._elect(event.broker)

    def _elect(self, broker: BrokerId) -> None:
        """Elect leaders of what a broker that died or returned led, or would prefer to lead."""
        preferred = self._replicas[self._course.start.partitions.replica_start[:-1]]
        affected = (self._leader == broker) | (preferred == broker) | (self._leader == NO_BROKER)
        led = _led(self._course.start, self._replicas, self.dead)
        self._leader[affected] = led[affected]

    def _span(self, row: int) -> tuple[int, int]:
        start, end = self._course.start.partitions.replica_start[row : row + 2].tolist()
        return start, end

    def _of(self, row: int) -> list[int]:
        start, end = self._span(row)
        found: list[int] = self._replicas[start:end].tolist()
        return found


def _led(start: Snapshot, placement: Ints, dead: Iterable[BrokerId]) -> Ints:
    """(n,) first live replica of each row, `NO_BROKER` where there is none."""
    live = ~np.isin(placement, np.array(sorted(dead), np.int64))
    row = start.replica_row
    first = np.full(len(start), NO_BROKER, np.int64)
    # Assigned backwards, so that the first of a row remains.
    order = np.flatnonzero(live)[::-1]
    first[row[order]] = placement[order]
    return first


def placed(snapshot: Snapshot, placement: Ints) -> Snapshot:
    """The snapshot with other replicas, each partition led by its first live one.

    placement: (replicas,) as `TimeLapseCluster.placement`.
    """
    dead = [b.id for b in snapshot.header.brokers if b.state is BrokerState.DEAD]
    leader = _led(snapshot, placement, dead)
    columns = replace(snapshot.partitions, replica_broker=placement, leader=leader)
    return Snapshot(snapshot.header, columns)


def loaded(snapshot: Snapshot, loads: Floats) -> Snapshot:
    """The snapshot with other loads, (n, resources)."""
    return Snapshot(snapshot.header, replace(snapshot.partitions, loads=loads))


def placement_after(snapshot: Snapshot, moves: Iterable[Move]) -> Ints:
    """(replicas,) placement of the snapshot after some moves that keep the number of replicas."""
    columns = snapshot.partitions
    found: Ints = columns.replica_broker.copy()
    for move in moves:
        start = int(columns.replica_start[snapshot.row_of[move.id]])
        found[start : start + len(move.replicas_after)] = move.replicas_after
    return found
