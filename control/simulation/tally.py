"""Count what a policy does, hour by hour and day by day, in memory that does not grow with runs."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from control.simulation.outcome import DAY_S, HOUR_S, DayFigures, HeldBack, HourFigures
from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move


@dataclass(slots=True)
class Means:
    """Sums over time, for means."""

    seconds: float = 0.0
    outside_s: float = 0.0
    imbalance: float = 0.0
    deviation: float = 0.0

    def add(self, other: "Means") -> None:
        """Add the sums of another span of time."""
        self.seconds += other.seconds
        self.outside_s += other.outside_s
        self.imbalance += other.imbalance
        self.deviation += other.deviation

    def hour(self, at_ms: int) -> HourFigures:
        """As figures of the hour that begins then."""
        over = max(self.seconds, 1e-9)
        return HourFigures(
            at_ms=at_ms,
            outside=self.outside_s / over,
            imbalance=self.imbalance / over,
            deviation=self.deviation / over,
        )


@dataclass(slots=True)
class Counts:
    """What runs did."""

    runs: int = 0
    stopped: int = 0
    moves: int = 0
    leader_changes: int = 0
    bytes_copied: int = 0
    undone: int = 0


@dataclass(slots=True)
class _Held:
    times: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """Figures of one simulation; times are seconds since the epoch."""

    goals: Goals
    begin_s: float
    regret_of: Callable[["Counts"], float]
    """Called at the end of each day with its counts."""
    hours: list[HourFigures] = field(default_factory=list)
    days: list[DayFigures] = field(default_factory=list)
    whole: Means = field(default_factory=Means)
    total: Counts = field(default_factory=Counts)
    _day: Means = field(default_factory=Means)
    _of_day: Counts = field(default_factory=Counts)
    _hour: Means = field(default_factory=Means)
    _held: dict[str, _Held] = field(default_factory=dict)
    _rule: str = ""
    _seen: Evaluation | None = None
    _figures: tuple[bool, float, float] = (False, 0.0, 0.0)
    _recent: "deque[tuple[float, Move]]" = field(default_factory=deque)
    _left: dict[PartitionId, list[Move]] = field(default_factory=dict)

    def passed(self, evaluation: Evaluation | None, from_s: float, to_s: float) -> None:
        """Count a span of time in which the cluster was as evaluated."""
        if self._rule:
            self._held[self._rule].seconds += to_s - from_s
        outside, imbalance, deviation = self._judged(evaluation)
        while from_s < to_s:
            hour = int((from_s - self.begin_s + 1e-6) // HOUR_S)
            end_s = min(to_s, self.begin_s + (hour + 1) * HOUR_S)
            span_s = end_s - from_s
            self._hour.add(Means(span_s, span_s * outside, span_s * imbalance, span_s * deviation))
            if end_s >= self.begin_s + (hour + 1) * HOUR_S:
                self._end_hour(hour)
            from_s = end_s

    def close(self, now_s: float) -> None:
        """Count the hour and the day that have begun."""
        hours, rest_s = divmod(now_s - self.begin_s, HOUR_S)
        if self._hour.seconds > 1e-6 and rest_s > 0:
            self._end_hour(int(hours))
        if self._day.seconds > 1e-6:
            self._end_day(int((now_s - self.begin_s) // DAY_S))

    def decided(self, rule: str) -> None:
        """Count a decision; `rule`: what holds an action back, empty for none."""
        if rule and rule != self._rule:
            self._held.setdefault(rule, _Held()).times += 1
        self._rule = rule

    def moved(self, move: Move, now_s: float) -> None:
        """Count a move that has taken effect."""
        while self._recent and now_s - self._recent[0][0] > DAY_S:
            _, old = self._recent.popleft()
            of = self._left[old.id]
            of.remove(old)
            if not of:
                del self._left[old.id]
        undone = any(_undoes(move, earlier) for earlier in self._left.get(move.id, ()))
        for counts in (self.total, self._of_day):
            counts.moves += 1
            counts.leader_changes += not move.added
            counts.bytes_copied += move.bytes_to_copy or 0
            counts.undone += undone
        self._recent.append((now_s, move))
        self._left.setdefault(move.id, []).append(move)

    def run_ended(self, complete: bool) -> None:
        """Count a run."""
        for counts in (self.total, self._of_day):
            counts.runs += 1
            counts.stopped += not complete

    @property
    def held(self) -> dict[str, HeldBack]:
        """By rule, the longest first."""
        found = sorted(self._held.items(), key=lambda item: (-item[1].seconds, item[0]))
        return {rule: HeldBack(times=h.times, seconds=h.seconds) for rule, h in found}

    def _judged(self, evaluation: Evaluation | None) -> tuple[bool, float, float]:
        if evaluation is not None and evaluation is not self._seen:
            self._seen = evaluation
            deviations = [
                abs(value)
                for by_broker in evaluation.deviations.values()
                for value in by_broker.values()
            ]
            # Without a live broker, no broker deviates, and nothing is in order either.
            outside = not deviations or not evaluation.within_band(self.goals)
            self._figures = outside, evaluation.deviation, max(deviations, default=0.0)
        return self._figures

    def _end_hour(self, hour: int) -> None:
        at_s = self.begin_s + hour * HOUR_S
        self.hours.append(self._hour.hour(int(1000 * at_s)))
        self._day.add(self._hour)
        self.whole.add(self._hour)
        self._hour = Means()
        if (hour + 1) * HOUR_S % DAY_S == 0:
            self._end_day(int(hour * HOUR_S // DAY_S))

    def _end_day(self, day: int) -> None:
        of_day, means = self._of_day, self._day.hour(0)
        self.days.append(
            DayFigures(
                at_ms=int(1000 * (self.begin_s + day * DAY_S)),
                outside=means.outside,
                imbalance=means.imbalance,
                runs=of_day.runs,
                moves=of_day.moves,
                bytes_copied=of_day.bytes_copied,
                undone=of_day.undone,
                regret=self.regret_of(of_day),
            )
        )
        self._day, self._of_day = Means(), Counts()


def _undoes(move: Move, earlier: Move) -> bool:
    """Whether a move returns a replica, or leadership alone, to where another took it from."""
    if earlier.removed or move.added:
        return bool(set(move.added).intersection(earlier.removed))
    back: BrokerId = earlier.leader_before
    return move.leader_after == back and move.leader_before == earlier.leader_after
