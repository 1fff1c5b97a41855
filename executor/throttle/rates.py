"""The rates of a throttle: at least what copies need, at most what clients leave free."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import ceil
from typing import Final

from executor.client.cluster_admin import ClusterReads, OffsetKind, local_bytes
from executor.client.responses import PartitionView, by_leader
from executor.schedule.concurrency import Concurrency
from executor.throttle.quota import FOLLOWER_RATE, LEADER_RATE, Rates, ThrottleSettings
from executor.timing import RunLimits, Timing
from model.errors import ClusterUnreachable, GuardrailRefused, PlimsollError
from model.ids import BrokerId, PartitionId
from model.log_events import LogEvent, named
from model.plan.plan import Move, Plan
from model.snapshot.snapshot import Resource, StorageKind
from model.units import count_text, rate_text

Limit = tuple[BrokerId, str]
"""A broker and a throttle setting, which is one direction."""

_MARGIN: Final = 2
"""Bandwidth of a copy in multiples of the produce rate; it must exceed 1."""
_DIRECTIONS: Final = {LEADER_RATE: Resource.NET_OUT, FOLLOWER_RATE: Resource.NET_IN}
_SPAN_S: Final = 2.0
"""Seconds between two polls of leaders' logs where there was none before."""
_log = logging.getLogger("plimsoll.executor")


def copying(moves: Iterable[Move]) -> list[Move]:
    """Moves that copy between brokers."""
    return [m for m in moves if m.added and m.storage is not StorageKind.SHARED]


def needed(
    moves: Iterable[Move], written: Mapping[PartitionId, float], at_once: int
) -> dict[Limit, float]:
    """Minimum rates under which copies complete, in bytes per second.

    Replicas in sync count towards a rate, so a leader needs the produce rate once per replica; a
    new replica's broker needs it once. Of the moves at a broker, the `at_once` largest count.
    """
    needs: defaultdict[Limit, list[float]] = defaultdict(list)
    for move in moves:
        rate = written.get(move.id, 0.0)
        needs[move.leader_before, LEADER_RATE].append(rate * len(move.replicas_before))
        for broker in move.added:
            needs[broker, FOLLOWER_RATE].append(rate)
    return {at: _MARGIN * sum(nlargest(at_once, of)) for at, of in needs.items()}


def used(
    views: Collection[PartitionView],
    written: Mapping[PartitionId, float],
    consumed: Mapping[BrokerId, float],
) -> dict[Limit, float | None]:
    """Bytes per second that producers, consumers and replicas in sync use, by direction.

    None where none of a broker's partitions was measured; brokers without any are absent.
    """
    found: defaultdict[Limit, float] = defaultdict(float)
    found |= {(broker, LEADER_RATE): rate for broker, rate in consumed.items()}
    measured: set[BrokerId] = set()
    for view in (v for v in views if v.id in written):
        rate = written[view.id]
        measured |= view.in_sync
        for broker in view.in_sync:
            found[broker, FOLLOWER_RATE] += rate
        found[view.leader, LEADER_RATE] += rate * len(view.in_sync - {view.leader})
    brokers = {broker for view in views for broker in view.in_sync}
    return {
        (broker, key): found[broker, key] if broker in measured else None
        for broker in brokers
        for key in _DIRECTIONS
    }


def consumed_of(plan: Plan) -> dict[BrokerId, float]:
    """Bytes per second to consumers by broker: the maximum over before and after."""
    key = Resource.NET_OUT
    return {b.id: max(b.before.get(key, 0), b.after.get(key, 0)) for b in plan.brokers}


@dataclass(frozen=True, slots=True)
class _Log:
    """A leader's log of one partition at one moment."""

    at_s: float
    size: int
    first: int
    """First offset on the leader's disk."""
    end: int

    def rate_since(self, before: "_Log") -> float:
        """Bytes per second appended since an earlier poll.

        Retention hides growth in bytes, and compaction makes records look small, so the
        larger of the growth in bytes and in records of mean size counts.
        """
        records = self.end - self.first
        each = self.size / records if records > 0 else 0.0
        grown = (self.size - before.size, each * (self.end - before.end), 0.0)
        return max(grown) / max(self.at_s - before.at_s, 1e-3)


class ProduceRates:
    """Polls leaders' logs, and derives the produce rate of each partition. One thread uses it."""

    def __init__(self, admin: ClusterReads, timing: Timing) -> None:
        self._admin = admin
        self._timing = timing
        self._seen: dict[tuple[PartitionId, BrokerId], _Log] = {}
        self.written: dict[PartitionId, float] = {}
        """Bytes per second from producers, of partitions seen at least twice."""

    def measure(self, views: Iterable[PartitionView], *, fresh: bool = False) -> None:
        """Poll the leaders; twice, 2 s apart, on the first call or if `fresh`.

        Partitions whose leader does not answer keep their previous rates.
        """
        led = by_leader(views)
        if fresh or not self._seen:
            self._seen = {}
            self._look(led)
            self._timing.pause(_SPAN_S)
        self._look(led)

    def _look(self, led: Mapping[BrokerId, Sequence[PartitionId]]) -> None:
        seen = {}
        for leader, ids in led.items():
            for pid, log in self._logs(leader, ids).items():
                seen[pid, leader] = log
                if before := self._seen.get((pid, leader)):
                    self.written[pid] = log.rate_since(before)
        self._seen = seen

    def _logs(self, leader: BrokerId, ids: Sequence[PartitionId]) -> dict[PartitionId, _Log]:
        try:
            at_s = self._timing.steady_s()
            ends = self._admin.offsets(leader, ids, OffsetKind.LATEST)
            sizes = local_bytes(self._admin, leader, ids)
            firsts = self._admin.offsets(leader, ids, OffsetKind.EARLIEST_LOCAL)
        except ClusterUnreachable as exc:
            _log.debug(
                "the produce rate at broker %s is unknown: %s",
                leader,
                exc,
                extra=named(LogEvent.THROTTLE_FAILED),
            )
            return {}
        known = set(ends).intersection(sizes, firsts)
        return {p: _Log(at_s, sizes[p], firsts[p], ends[p]) for p in known}


class RunRates:
    """The rates of one run: a given one for all brokers, or what clients leave free."""

    def __init__(
        self,
        admin: ClusterReads,
        timing: Timing,
        limits: RunLimits,
        consumed: Mapping[BrokerId, float],
    ) -> None:
        self._admin = admin
        self._traffic = ProduceRates(admin, timing)
        self._given = limits.throttle_bytes_per_s
        self._auto = limits.auto_throttle
        self.follows = limits.throttle_follows
        """Whether the rates follow what clients leave free."""
        most = Concurrency(limits).widest
        self._at_once = min(most.moves_in_flight, most.moves_per_broker)
        self._consumed = consumed
        self._used: Mapping[Limit, float | None] = {}
        self._least: dict[Limit, int] = {}

    @property
    def is_requested(self) -> bool:
        """Whether a throttle is requested."""
        return self.follows or self._given is not None

    def check(self, moves: Sequence[Move]) -> None:
        """Measure produce rates if a throttle is requested, and check that it suffices.

        Raises GuardrailRefused where copies would never complete under the given limit.
        """
        if self.is_requested and (copies := copying(moves)):
            self.measure(copies, fresh=True)
            limit = self._auto.ceiling if self.follows else self._given
            self._refuse_too_low(copies, limit)

    def choose(self, bytes_per_s: int | None, moves: Sequence[Move]) -> None:
        """Use this rate from now on; None follows clients. Raises as `check`."""
        before = self.follows, self._given
        self.follows, self._given = bytes_per_s is None, bytes_per_s
        try:
            self.check(moves)
        except PlimsollError:
            self.follows, self._given = before
            raise
        self._least.clear()

    def measure(self, moves: Sequence[Move], *, fresh: bool = False) -> None:
        """Measure current produce rates; of the whole cluster if the rates follow clients."""
        ids = self._everything() if self.follows else [m.id for m in moves]
        views = self._admin.partitions(ids).values()
        self._traffic.measure(views, fresh=fresh)
        if self.follows:
            self._used = used(views, self._traffic.written, self._consumed)

    def measure_first(self, moves: Sequence[Move]) -> None:
        """Measure unless it was done, if the rates follow clients."""
        if self.follows and not self._used:
            self.measure(moves)

    def keep(self, held: ThrottleSettings) -> None:
        """Keep the rates of the run being resumed."""
        for broker, of in held.ours.items():
            for key, values in of.items():
                self.raise_to((broker, key), values[-1])

    def raise_to(self, limit: Limit, bytes_per_s: int) -> None:
        """Use at least this rate from now on."""
        self._least[limit] = bytes_per_s

    def find(self, brokers: Collection[BrokerId], moves: Sequence[Move]) -> Rates:
        """Return rates by broker and setting; what moves need takes precedence over limits."""
        needs = needed(moves, self._traffic.written, self._at_once)
        return {
            broker: {key: self._rate((broker, key), needs) for key in _DIRECTIONS}
            for broker in brokers
        }

    def _rate(self, limit: Limit, needs: Mapping[Limit, float]) -> int:
        broker, key = limit
        least = self._least.get(limit, 1)
        if not self.follows:
            return max(self._given or 0, least)
        free = self._auto.rate(broker, _DIRECTIONS[key], self._used.get(limit, 0.0))
        return ceil(max(free, needs.get(limit, 0.0), least))

    def _everything(self) -> list[PartitionId]:
        return [
            PartitionId(topic, number)
            for topic, count in self._admin.topics().items()
            for number in range(count)
        ]

    def _refuse_too_low(self, moves: Sequence[Move], limit: int | None) -> None:
        written = self._traffic.written
        if unknown := [m.id for m in moves if m.id not in written]:
            _log.warning(
                "the throttle was not compared with the produce rate of %s%s, which "
                "could not be measured",
                unknown[0],
                f" and {len(unknown) - 1} more" if len(unknown) > 1 else "",
                extra=named(LogEvent.THROTTLE_FAILED),
            )
        needs = needed(moves, written, self._at_once)
        most = max(needs, key=lambda at: needs[at])
        if limit is None or limit >= needs[most]:
            return
        raise GuardrailRefused(self._words(limit, most, needs[most], len(moves)))

    def _words(self, limit: int, at: Limit, need: float, moves: int) -> str:
        what = "ceiling" if self.follows else "throttle"
        where = "out of" if at[1] == LEADER_RATE else "into"
        at_once = count_text(min(self._at_once, moves), "move")
        enough = rate_text(_rounded_up(need)).replace(" ", "")
        return (
            f"A {what} of {rate_text(limit)} is too low: with {at_once} at once, "
            f"current production needs {rate_text(need)} {where} broker {at[0]}, twice "
            f"what replicas fetch to keep up, or copies never complete. Use {enough} "
            "or more, or allow fewer moves at once."
        )


def _rounded_up(rate: float) -> int:
    """Round up to two digits, so that the suggestion suffices when measured again."""
    step: int = 10 ** max(0, len(str(ceil(rate))) - 2)
    return step * ceil(rate / step)
