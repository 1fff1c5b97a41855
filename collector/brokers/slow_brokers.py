"""Brokers that answer small requests much later than the others, for minutes."""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from model.ids import BrokerId
from model.units import seconds_text

LASTING_S: Final = 180.0
"""Time for which a broker has to stand out before it is slow, and not to before it is not."""
TIMES: Final = 5.0
"""A broker stands out if it takes so many times as long as the median of the others."""
LEAST_S: Final = 0.25
"""A broker that answers sooner never stands out."""
SHARE: Final = 0.9
"""Share of the answers of that time that has to agree."""
LEAST_OTHERS: Final = 2
"""Brokers to compare one with."""
LEAST_ROUNDS: Final = 10
"""Rounds without which nothing is decided: a probe that pauses measures nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowBroker:
    """A broker that is slow, and by how much. Medians over `LASTING_S`, seconds."""

    broker: BrokerId
    answer_s: float
    others_s: float

    def words(self) -> str:
        """Describe it in a clause: `it answers in 2.1 s, the others in 4 ms`."""
        own, others = _time_text(self.answer_s), _time_text(self.others_s)
        return f"it answers in {own}, the others in {others}"


def _time_text(seconds: float) -> str:
    return seconds_text(seconds) if seconds >= 1 else f"{1000 * seconds:.0f} ms"


class SlowBrokerWatch:
    """Compares brokers round by round. One thread owns it."""

    def __init__(self) -> None:
        self._rounds: deque[tuple[float, Mapping[int, tuple[float, float]]]] = deque()
        """Time of each round, and of each broker its own time and the median of the others."""
        self._slow: dict[int, SlowBroker] = {}

    def see(self, now_s: float, answers_s: Mapping[int, float]) -> tuple[SlowBroker, ...]:
        """Add a round; return the slow brokers, by id.

        now_s: of a clock that is never set. answers_s: by broker that was asked, how long it took,
        or for how long it has not answered.
        """
        self._rounds.append((now_s, compared(answers_s)))
        while len(self._rounds) > 1 and now_s - self._rounds[1][0] >= LASTING_S:
            self._rounds.popleft()
        whole = now_s - self._rounds[0][0] >= LASTING_S
        if whole and len(self._rounds) >= LEAST_ROUNDS:
            self._slow = {b: s for b in answers_s if (s := self._judged(b)) is not None}
        return tuple(found for _, found in sorted(self._slow.items()))

    def _judged(self, broker: int) -> SlowBroker | None:
        pairs = [found[broker] for _, found in self._rounds if broker in found]
        if len(pairs) < LEAST_ROUNDS:
            return self._slow.get(broker)
        out = sum(own >= LEAST_S and own >= TIMES * others for own, others in pairs) / len(pairs)
        # Between the two, a broker stays what it was.
        if out < SHARE and (broker not in self._slow or out <= 1 - SHARE):
            return None
        own, others = zip(*pairs, strict=True)
        return SlowBroker(broker=BrokerId(broker), answer_s=median(own), others_s=median(others))


def compared(answers_s: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    """Of each broker its time and the median of the others; none where there are too few."""
    if len(answers_s) <= LEAST_OTHERS:
        return {}
    ordered = sorted(answers_s.values())
    found = {}
    for broker, own in answers_s.items():
        at = bisect_left(ordered, own)
        found[broker] = own, median(ordered[:at] + ordered[at + 1 :])
    return found
