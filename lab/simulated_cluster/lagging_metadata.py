"""What brokers show of the placement: each as it was some time ago.

A broker learns of a change when it has read that far in the controller's log, and a
client asks any of them, so that a later answer may show an older state.
"""

from collections.abc import Collection, Iterable, Mapping

from executor.client.responses import PartitionView
from model.ids import BrokerId, PartitionId


class LaggingMetadata:
    """Remembers what partitions looked like, while any broker lags."""

    def __init__(self) -> None:
        self.lags_s: Mapping[BrokerId, float] = {}
        """Seconds that brokers lag behind the controller; others: 0."""
        self._past: dict[PartitionId, list[tuple[float, PartitionView]]] = {}
        self._asked = 0

    def note(self, views: Iterable[PartitionView], now_s: float) -> None:
        """What the controller knows now."""
        for view in views:
            past = self._past.setdefault(view.id, [])
            if not past or past[-1][1] != view:
                past.append((now_s, view))

    def shown(
        self, ids: Iterable[PartitionId], alive: Collection[BrokerId], now_s: float
    ) -> dict[PartitionId, PartitionView]:
        """As the next broker in turn shows them."""
        self._asked += 1
        asked = sorted(alive)[self._asked % len(alive)]
        at_s = now_s - self.lags_s.get(asked, 0.0)
        return {pid: self._as_of(pid, at_s) for pid in ids if pid in self._past}

    def _as_of(self, pid: PartitionId, at_s: float) -> PartitionView:
        past = self._past[pid]
        known = [view for noted_s, view in past if noted_s <= at_s]
        return known[-1] if known else past[0][1]
