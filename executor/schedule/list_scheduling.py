"""List scheduling: each idle resource gets its next copy."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence

from executor.schedule.admission import brokers_of
from executor.schedule.concurrency import Concurrency
from executor.schedule.makespan_bound import least_s
from executor.schedule.task import CopyResource, MoveTask, ScheduleConstraints
from model.ids import BrokerId

_Key = tuple[bool, bool, float, float]


def list_schedule(
    tasks: Sequence[MoveTask], constraints: ScheduleConstraints, *, slack: float
) -> list[MoveTask]:
    """Order moves as they would start with one copy on each resource at a time.

    Among moves whose resources are idle, urgent ones start first, then those on a
    critical resource or a broker with critical slots: one whose remaining load ends
    within `slack` (a share of the lower bound) of the end. The rest start by gain per
    second. With a `slack` of 1, only the longest queue and the longest move count.
    """
    return _Greedy(tasks, constraints, slack).order() if tasks else []


class _Greedy:
    """The waiting moves, and the remaining load of each resource."""

    def __init__(
        self, tasks: Sequence[MoveTask], constraints: ScheduleConstraints, slack: float
    ) -> None:
        self._tasks, self._constraints, self._slack = tasks, constraints, slack
        self._alone_s = [task.alone_s(constraints.speed) for task in tasks]
        self._spans = [
            [(resource, begin_s, begin_s + lasts_s) for resource, begin_s, lasts_s in spans]
            for spans in (task.spans(constraints.speed) for task in tasks)
        ]
        """The resources of each move, and when it occupies and frees each, in seconds."""
        self._taken: dict[CopyResource, list[tuple[float, float]]] = defaultdict(list)
        """Start and end of the present and future copies on each resource."""
        self._needs = [_needs(task, constraints) for task in tasks]
        self._queue: dict[CopyResource | BrokerId, float] = defaultdict(float)
        for needs in self._needs:
            for key, seconds in needs.items():
                self._queue[key] += seconds
        self._late_s = least_s(tasks, constraints.limits, constraints.speed) * (1 - slack)
        self._now_s = 0.0

    def order(self) -> list[MoveTask]:
        """Return all moves in order."""
        widest = Concurrency(self._constraints.limits).widest
        waiting = list(range(len(self._tasks)))
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
            order.append(self._tasks[index])
            for moment in self._begin(index):
                heapq.heappush(changes, moment)
            heapq.heappush(ends, self._now_s + self._alone_s[index])
        return order

    def _is_idle(self, index: int) -> bool:
        """Whether each resource will be free when the move reaches it."""
        return not any(
            begin < self._now_s + until_s and self._now_s + from_s < end
            for resource, from_s, until_s in self._spans[index]
            for begin, end in self._taken[resource]
        )

    def _begin(self, index: int) -> Iterator[float]:
        """Start a move; yield the times at which it frees a resource, and ends."""
        now_s = self._now_s
        for resource, from_s, until_s in self._spans[index]:
            left = [span for span in self._taken[resource] if span[1] > now_s]
            self._taken[resource] = [*left, (now_s + from_s, now_s + until_s)]
            yield now_s + until_s
        for key, seconds in self._needs[index].items():
            self._queue[key] -= seconds
        yield now_s + self._alone_s[index]

    def _place(self, index: int) -> _Key:
        move, alone_s = self._tasks[index].move, self._alone_s[index]
        queue_s = max(self._queue[key] for key in self._needs[index])
        is_urgent = move.id in self._constraints.urgent
        if self._slack == 1.0:
            return is_urgent, True, queue_s, alone_s
        gain = move.gain / max(alone_s, 1e-6)
        is_late = self._now_s + queue_s >= self._late_s
        return is_urgent, is_late, queue_s if is_late else gain, gain


def _needs(
    task: MoveTask, constraints: ScheduleConstraints
) -> dict[CopyResource | BrokerId, float]:
    """Seconds that a move occupies each resource, and its share of each broker's slots."""
    slot_s = task.alone_s(constraints.speed) / constraints.limits.moves_per_broker
    needs: dict[CopyResource | BrokerId, float] = dict.fromkeys(brokers_of(task.move), slot_s)
    for resource, size in task.resources():
        needs[resource] = needs.get(resource, 0.0) + size / constraints.speed.of(resource)
    return needs
