"""Which replica list to ask for next, where brokers show older ones again."""

from dataclasses import dataclass, field

from executor.client.responses import PartitionView, Reassignment
from executor.platforms.move_progress import steps
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move


@dataclass(slots=True)
class _Place:
    """How far a move is, as positions in its lists; the first is that before it."""

    reached: int = 0
    asked: int = 0


@dataclass(slots=True)
class Steps:
    """How far moves have come, which never goes back.

    A client asks any broker, and one that lags shows a list that was left long ago. To
    ask for what follows that one would undo what was done since.
    """

    _places: dict[PartitionId, _Place] = field(default_factory=dict)

    def see(
        self, move: Move, view: PartitionView | None, listed: Reassignment | None
    ) -> None:
        """Note one look at a move."""
        place, lists = self._of(move), (move.replicas_before, *steps(move))
        if view is not None and view.replicas in lists:
            place.reached = max(place.reached, lists.index(view.replicas))
        for number, replicas in enumerate(lists[1:], start=1):
            if listed is not None and set(listed.target) == set(replicas):
                place.asked = max(place.asked, number)

    def next(self, move: Move) -> tuple[BrokerId, ...] | None:
        """The list to ask for; None where the last one is reached."""
        place, lists = self._of(move), (move.replicas_before, *steps(move))
        if place.reached == len(lists) - 1:
            return None
        place.asked = max(place.asked, place.reached + 1)
        return lists[place.asked]

    def _of(self, move: Move) -> _Place:
        return self._places.setdefault(move.id, _Place())
