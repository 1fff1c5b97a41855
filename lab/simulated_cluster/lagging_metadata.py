"""Metadata of brokers that lag behind the controller.

A broker learns of a change once it has read that part of the controller's log. Clients
ask any broker, so a later response may show an older state.
"""

from collections.abc import Collection, Iterable, Mapping

from executor.client.responses import PartitionView
from model.ids import BrokerId, PartitionId


class LaggingMetadata:
    """Former states of partitions, for brokers that lag."""

    def __init__(self) -> None:
        self.lags_s: Mapping[BrokerId, float] = {}
        """Seconds that brokers lag behind the controller; others: 0."""
        self._past: dict[PartitionId, list[tuple[float, PartitionView]]] = {}
        self._asked = 0

    def note(self, views: Iterable[PartitionView], now_s: float) -> None:
        """Record the controller's current state."""
        for view in views:
            past = self._past.setdefault(view.id, [])
            if not past or past[-1][1] != view:
                past.append((now_s, view))

    def shown(
        self, ids: Iterable[PartitionId], alive: Collection[BrokerId], now_s: float
    ) -> dict[PartitionId, PartitionView]:
        """Partitions as the next broker in turn describes them."""
        self._asked += 1
        asked = sorted(alive)[self._asked % len(alive)]
        at_s = now_s - self.lags_s.get(asked, 0.0)
        return {pid: self._as_of(pid, at_s) for pid in ids if pid in self._past}

    def _as_of(self, pid: PartitionId, at_s: float) -> PartitionView:
        past = self._past[pid]
        known = [view for noted_s, view in past if noted_s <= at_s]
        return known[-1] if known else past[0][1]
