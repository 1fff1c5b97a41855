"""What the operator requests of a plan beyond the configured goals."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from control.planning.topic_mode import goals_for
from model.errors import ConfigError
from model.goals.effort import Effort
from model.goals.goals import Goals, Pin, Stay
from model.goals.topic_placement import with_topic_placements
from model.ids import PartitionId, TopicName
from model.plan.frontier import FrontierPoint, goals_at
from model.plan.proposal import Proposal
from model.plan.unplaceable import with_placeless_deferred
from model.snapshot.snapshot import Snapshot
from model.units import count_text


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOverrides:
    """Requests made on the screen, for the plans of this session."""

    stay: tuple[PartitionId, ...] = ()
    """Partitions whose move was removed."""
    pins: tuple[Pin, ...] = ()
    topics: tuple[TopicName, ...] = ()
    """Only these may move; empty for all."""
    goals: Goals | None = None
    """Goals in place of the configured ones."""
    cut: FrontierPoint | None = None
    """The chosen point of the frontier."""
    effort: Effort | None = None
    """How far plans go, in place of the configured effort."""
    before: "PlanOverrides | None" = field(default=None, compare=False, repr=False)
    """The overrides before the last request."""

    def dropping(self, partition: PartitionId) -> "PlanOverrides":
        """Remove the move of this partition."""
        return replace(self, stay=(*self.stay, partition), before=self)

    def pinning(self, pin: Pin) -> "PlanOverrides":
        """Add a pin, replacing one of the same partitions."""
        others = tuple(p for p in self.pins if _whose(p) != _whose(pin))
        return replace(self, pins=(*others, pin), before=self)

    def with_goals(self, goals: Goals) -> "PlanOverrides":
        """Replace the goals; a point chosen under others no longer applies."""
        return replace(self, goals=goals, cut=None, before=self)

    def at_effort(self, effort: Effort | None) -> "PlanOverrides":
        """Choose how far plans go; None: as configured."""
        return replace(self, effort=effort, before=self)

    def cut_at(self, point: FrontierPoint) -> "PlanOverrides":
        """Choose a point of the frontier."""
        return replace(self, cut=point, before=self)

    def without_last(self) -> "PlanOverrides":
        """The overrides before the last request."""
        return self.before or NOTHING

    def only_removes_from(self, other: "PlanOverrides") -> bool:
        """Whether this differs from `other` only by further removed moves."""
        same = replace(self, stay=other.stay) == other
        return same and set(self.stay) > set(other.stay)

    def beyond(self, other: "PlanOverrides") -> str:
        """Describe the requests not in `other`, as actions of the operator."""
        found = [f"plan only topic {t}" for t in self.topics if t not in other.topics]
        if self.goals != other.goals:
            found.append("edit the goals")
        if self.effort != other.effort:
            found.append(f"plan at the effort {self.effort or 'configured'}")
        if self.cut is not None and self.cut != other.cut:
            moves = count_text(self.cut.moves, "new replica")
            found.append(f"choose the point of the frontier with {moves}")
        found += [f"remove the move of {p}" for p in self.stay if p not in other.stay]
        found += [f"pin {_pin_words(p)}" for p in self.pins if p not in other.pins]
        return "; ".join(found) or "replan"

    def check(self, configured: Goals, snapshot: Snapshot) -> None:
        """Check the requests against a cluster.

        Raises
        ------
        ConfigError
            A topic or broker does not exist, or a rule forces a removed move.
        """
        goals = self.goals_for(configured, snapshot)
        _refuse_forced(snapshot, goals, self.stay)
        _refuse_unknown(snapshot, self.pins)

    def fitting(self, snapshot: Snapshot) -> "PlanOverrides":
        """Remove topics that the cluster no longer has."""
        names = {t.name for t in snapshot.header.topics}
        return replace(self, topics=tuple(t for t in self.topics if t in names))

    def after_a_run(self) -> "PlanOverrides":
        """The overrides that remain in force after a run."""
        return replace(self, topics=(), cut=None, effort=None, before=None)

    def goals_for(self, configured: Goals, snapshot: Snapshot) -> Goals:
        """The configured goals with these overrides.

        Raises
        ------
        ConfigError
            A topic does not exist, or the goals exclude it.
        """
        goals = with_topic_placements(self.goals or configured, snapshot)
        goals = goals.model_copy(
            update={"stay": (*goals.stay, *_stays(self.stay)), "pins": (*goals.pins, *self.pins)}
        )
        if self.topics:
            goals = goals_for(goals, snapshot, self.topics)
        if self.cut is not None:
            goals = goals_at(goals, self.cut.move_price, self.cut.most_moves)
        return with_placeless_deferred(goals, snapshot)

    def words(self) -> tuple[str, ...]:
        """Each override in words, such as `orders-3 stays`."""
        found = [f"only topic {topic}" for topic in self.topics]
        if self.goals is not None:
            found.append("session goals")
        if self.effort is not None:
            found.append(f"effort {self.effort}")
        if self.cut is not None:
            found.append(f"frontier point with {count_text(self.cut.moves, 'new replica')}")
        found += [f"{partition} stays" for partition in self.stay]
        found += [_pin_words(pin) for pin in self.pins]
        return tuple(found)


NOTHING: Final = PlanOverrides()


def _whose(pin: Pin) -> tuple[object, ...]:
    return pin.topics, pin.partitions


def _stays(partitions: Iterable[PartitionId]) -> Iterator[Stay]:
    for topic, group in groupby(sorted(set(partitions)), key=lambda p: p.topic):
        yield Stay(topic=topic, partitions=tuple(p.partition for p in group))


def _refuse_forced(snapshot: Snapshot, goals: Goals, stay: Iterable[PartitionId]) -> None:
    forced = Proposal(snapshot, goals, ()).forced.rows
    for partition in stay:
        row = snapshot.find(partition)
        if row is not None and forced[row]:
            raise ConfigError(
                f"the move of {partition} cannot be removed: a draining or dead "
                "broker, a pin or a placement constraint forces it"
            )


def _refuse_unknown(snapshot: Snapshot, pins: Iterable[Pin]) -> None:
    for pin in pins:
        for broker in pin.brokers:
            if broker not in snapshot.broker:
                known = ", ".join(map(str, snapshot.broker)) or "none"
                raise ConfigError(f"there is no broker {broker}; the cluster has: {known}")


def _pin_words(pin: Pin) -> str:
    topic = ", ".join(pin.topics.exact)
    numbers = ",".join(map(str, pin.partitions))
    whose = f"{topic}-{numbers}" if numbers else f"topic {topic}"
    one = len(pin.brokers) == 1
    ids = ", ".join(map(str, pin.brokers))
    return f"{whose} on broker{'' if one else 's'} {ids}"
