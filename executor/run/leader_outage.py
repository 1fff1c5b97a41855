"""How long nobody led a partition, bounded by looks at its metadata.

An answer tells of some moment between asking and answering, and nothing of the time
between two looks. So there are two figures: what the looks prove, and what they leave
open. It is what the asked broker shows; clients wait until theirs shows it, too.
"""

from dataclasses import dataclass

from executor.client.responses import PartitionView
from model.ids import BrokerId


@dataclass(slots=True)
class LeaderOutage:
    """The time without a leader of one partition, summed over its elections.

    Where two looks show one leader, it is taken to have led in between.
    """

    leader: BrokerId
    """As metadata showed it last."""
    led_at_s: float
    """Before metadata were asked that showed it."""
    at_least_s: float = 0.0
    at_most_s: float = 0.0
    _gone_at_s: float | None = None
    """After the first look of a row of them that shows no leader."""
    _still_gone_at_s: float = 0.0
    """Before the last of that row."""

    def observe(self, view: PartitionView, asked_s: float, answered_s: float) -> None:
        """One look; times by a clock that nobody sets."""
        if not view.is_led:
            if self._gone_at_s is None:
                self._gone_at_s = answered_s
            self._still_gone_at_s = asked_s
            return
        if self._gone_at_s is not None:
            self.at_least_s += max(0.0, self._still_gone_at_s - self._gone_at_s)
        if self._gone_at_s is not None or view.leader != self.leader:
            self.at_most_s += answered_s - self.led_at_s
        self._gone_at_s, self.leader, self.led_at_s = None, view.leader, asked_s

    @property
    def bounds_s(self) -> tuple[float, float]:
        """At least and at most, in seconds."""
        return round(self.at_least_s, 3), round(self.at_most_s, 3)
