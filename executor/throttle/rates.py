"""Which rates a throttle has: no less than copies need, no more than is free."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import ceil
from typing import Final

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import PartitionView
from executor.schedule.concurrency import Concurrency
from executor.throttle.produce_rates import ProduceRates
from executor.throttle.quota import FOLLOWER_RATE, LEADER_RATE, Rates, ThrottleSettings
from executor.timing import RunLimits, Timing
from model.errors import GuardrailRefused, PlimsollError
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move, Plan
from model.snapshot.snapshot import Resource, StorageKind
from model.units import count_text, rate_text

Limit = tuple[BrokerId, str]
"""A broker, and the setting of one way through it."""

_MARGIN: Final = 2
"""What a copy gets of what it needs to keep its distance; Kafka wants more than 1."""
_WAYS: Final = {LEADER_RATE: Resource.NET_OUT, FOLLOWER_RATE: Resource.NET_IN}
_log = logging.getLogger("plimsoll.executor")


def copying(moves: Iterable[Move]) -> list[Move]:
    """Those that copy from broker to broker."""
    return [m for m in moves if m.added and m.storage is not StorageKind.SHARED]


def needed(
    moves: Iterable[Move], written: Mapping[PartitionId, float], at_once: int
) -> dict[Limit, float]:
    """The least rates under which copies arrive, bytes per second.

    Traffic of replicas in sync counts into a rate, so a leader needs what producers
    write once for every replica; a new replica's broker needs it once. Of the moves
    that a broker takes part in, the `at_once` that need most count.
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
    """What producers, consumers and replicas in sync take of each broker's card.

    None where none of a broker's partitions was measured; a broker without any is
    absent.
    """
    found: defaultdict[Limit, float] = defaultdict(float, _sent(consumed))
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
        for key in _WAYS
    }


def _sent(consumed: Mapping[BrokerId, float]) -> dict[Limit, float]:
    return {(broker, LEADER_RATE): rate for broker, rate in consumed.items()}


def consumed_of(plan: Plan) -> dict[BrokerId, float]:
    """Bytes per second to consumers, the more of before and after the plan's moves."""
    key = Resource.NET_OUT
    return {b.id: max(b.before.get(key, 0), b.after.get(key, 0)) for b in plan.brokers}


class RunRates:
    """The rates of one run: one given for all brokers, or what is free of each."""

    def __init__(
        self,
        admin: ClusterAdmin,
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
        """Whether the run is to have a throttle."""
        return self.follows or self._given is not None

    def check(self, moves: Sequence[Move]) -> None:
        """Measure what is written, if a throttle is wanted, and whether it fits.

        Raises GuardrailRefused where copies would never arrive under the limit given.
        """
        if self.is_requested and (copies := copying(moves)):
            self.measure(copies, fresh=True)
            limit = self._auto.ceiling if self.follows else self._given
            self._refuse_too_low(copies, limit)

    def choose(self, bytes_per_s: int | None, moves: Sequence[Move]) -> None:
        """Have this rate from now on; None follows. Raises as `check`."""
        before = self.follows, self._given
        self.follows, self._given = bytes_per_s is None, bytes_per_s
        try:
            self.check(moves)
        except PlimsollError:
            self.follows, self._given = before
            raise
        self._least.clear()

    def measure(self, moves: Sequence[Move], *, fresh: bool = False) -> None:
        """See what is written now; the whole cluster where the rates follow it."""
        ids = self._everything() if self.follows else [m.id for m in moves]
        views = self._admin.partitions(ids).values()
        self._traffic.measure(views, fresh=fresh)
        if self.follows:
            self._used = used(views, self._traffic.written, self._consumed)

    def measure_first(self, moves: Sequence[Move]) -> None:
        """As `measure`, if nothing was measured yet that rates follow."""
        if self.follows and not self._used:
            self.measure(moves)

    def keep(self, held: ThrottleSettings) -> None:
        """Have the rates that the run of before had."""
        for broker, of in held.ours.items():
            for key, values in of.items():
                self.raise_to((broker, key), values[-1])

    def raise_to(self, limit: Limit, bytes_per_s: int) -> None:
        """Have at least this rate from now on."""
        self._least[limit] = bytes_per_s

    def find(self, brokers: Collection[BrokerId], moves: Sequence[Move]) -> Rates:
        """The rate of each broker and way; what these moves need goes before limits."""
        needs = needed(moves, self._traffic.written, self._at_once)
        return {
            broker: {key: self._rate((broker, key), needs) for key in _WAYS}
            for broker in brokers
        }

    def _rate(self, limit: Limit, needs: Mapping[Limit, float]) -> int:
        broker, key = limit
        least = self._least.get(limit, 1)
        if not self.follows:
            return max(self._given or 0, least)
        free = self._auto.rate(broker, _WAYS[key], self._used.get(limit, 0.0))
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
            )
        needs = needed(moves, written, self._at_once)
        most = max(needs, key=lambda at: needs[at])
        if limit is None or limit >= needs[most]:
            return
        raise GuardrailRefused(self._words(limit, most, needs[most], len(moves)))

    def _words(self, limit: int, at: Limit, need: float, moves: int) -> str:
        what = "ceiling" if self.follows else "throttle"
        way = "out of" if at[1] == LEADER_RATE else "into"
        at_once = count_text(min(self._at_once, moves), "move")
        enough = rate_text(_rounded_up(need)).replace(" ", "")
        return (
            f"A {what} of {rate_text(limit)} is too low: with {at_once} at once, "
            f"current production needs {rate_text(need)} {way} broker {at[0]}, twice "
            f"what replicas fetch to keep up, or copies never complete. Use {enough} "
            "or more, or allow fewer moves at once."
        )


def _rounded_up(rate: float) -> int:
    """To two digits, so that what is said is enough when measured again."""
    step: int = 10 ** max(0, len(str(ceil(rate))) - 2)
    return step * ceil(rate / step)
