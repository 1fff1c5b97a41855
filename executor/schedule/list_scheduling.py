"""An order made by list scheduling: whatever lane is idle gets its next copy."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence

from executor.schedule.admission import brokers_of
from executor.schedule.concurrency import Concurrency
from executor.schedule.makespan_bound import least_s
from executor.schedule.task import Lane, Terms, Work
from model.ids import BrokerId

_Key = tuple[bool, bool, float, float]


def list_schedule(works: Sequence[Work], terms: Terms, *, slack: float) -> list[Work]:
    """Moves in the order in which they would begin with one copy in each lane.

    Of those whose lanes are idle the urgent ones begin first, then those of a lane, or
    of a broker's slots, that has hardly time left for what waits there: `slack` is the
    share of the least time of all within which that is so. Then what gains most for
    its time does; with a `slack` of 1, only the longest queue and the longest move
    count.
    """
    return _Greedy(works, terms, slack).order() if works else []


class _Greedy:
    """The moves that wait, and what each lane has to do yet."""

    def __init__(self, works: Sequence[Work], terms: Terms, slack: float) -> None:
        self._works, self._terms, self._slack = works, terms, slack
        self._alone_s = [work.alone_s(terms.speed) for work in works]
        self._spans = [list(_spans(work, terms)) for work in works]
        self._taken: dict[Lane, list[tuple[float, float]]] = defaultdict(list)
        """Begin and end of what passes each lane now and later."""
        self._needs = [_needs(work, terms) for work in works]
        self._queue: dict[Lane | BrokerId, float] = defaultdict(float)
        for needs in self._needs:
            for key, seconds in needs.items():
                self._queue[key] += seconds
        self._late_s = least_s(works, terms.limits, terms.speed) * (1 - slack)
        self._now_s = 0.0

    def order(self) -> list[Work]:
        """All of them."""
        widest = Concurrency(self._terms.limits).widest
        waiting = list(range(len(self._works)))
        ends: list[float] = []
        changes: list[float] = []
        order = []
        while waiting:
            idle = [i for i in waiting if self._is_idle(i)]
            if not idle or len(ends) >= widest.moves_in_flight:
                self._now_s = heapq.heappop(changes)
                while ends and ends[0] <= self._now_s:
                    heapq.heappop(ends)
                continue
            index = max(idle, key=self._place)
            waiting.remove(index)
            order.append(self._works[index])
            for moment in self._begin(index):
                heapq.heappush(changes, moment)
            heapq.heappush(ends, self._now_s + self._alone_s[index])
        return order

    def _is_idle(self, index: int) -> bool:
        """Whether every lane is free for it, when it comes to that lane."""
        return not any(
            begin < self._now_s + until_s and self._now_s + from_s < end
            for resource, from_s, until_s in self._spans[index]
            for begin, end in self._taken[resource]
        )

    def _begin(self, index: int) -> Iterator[float]:
        """Let one begin; the moments at which it leaves a lane, and ends."""
        now_s = self._now_s
        for resource, from_s, until_s in self._spans[index]:
            left = [span for span in self._taken[resource] if span[1] > now_s]
            self._taken[resource] = [*left, (now_s + from_s, now_s + until_s)]
            yield now_s + until_s
        for key, seconds in self._needs[index].items():
            self._queue[key] -= seconds
        yield now_s + self._alone_s[index]

    def _place(self, index: int) -> _Key:
        move, alone_s = self._works[index].move, self._alone_s[index]
        queue_s = max(self._queue[key] for key in self._needs[index])
        is_urgent = move.id in self._terms.urgent
        if self._slack == 1.0:
            return is_urgent, True, queue_s, alone_s
        gain = move.gain / max(alone_s, 1e-6)
        is_late = self._now_s + queue_s >= self._late_s
        return is_urgent, is_late, queue_s if is_late else gain, gain


def _spans(work: Work, terms: Terms) -> Iterator[tuple[Lane, float, float]]:
    """When a move comes to each lane and leaves it, from its begin on."""
    begin_s = 0.0
    for one in work.legs:
        end_s = begin_s + one.size / terms.speed.network
        for lane in one.lanes:
            yield lane, begin_s, end_s
        begin_s = end_s
    for one in work.inside:
        for lane in one.lanes:
            yield lane, 0.0, one.size / terms.speed.of(lane)


def _needs(work: Work, terms: Terms) -> dict[Lane | BrokerId, float]:
    """Seconds of each lane, and of a slot of each broker by how many it has."""
    slot_s = work.alone_s(terms.speed) / terms.limits.moves_per_broker
    needs: dict[Lane | BrokerId, float] = dict.fromkeys(brokers_of(work.move), slot_s)
    for lane, size in work.lanes():
        needs[lane] = needs.get(lane, 0.0) + size / terms.speed.of(lane)
    return needs
