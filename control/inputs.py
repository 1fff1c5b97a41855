"""What an answer of the planner rests on, so that equal inputs are not solved twice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from control.changes import placements
from control.needs import Need, Reason
from model.evaluate import Evaluation
from model.goals import Goals
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot import Snapshot

MATERIAL_DEVIATION: Final = 0.25
"""Change of a broker's deviation, as a share of it or of the tolerance, whichever is
larger, from which loads count as others: measured loads are noisy."""
MATERIAL_LEVEL: Final = 0.25
"""The same of the mean load, as a share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """A cluster as the planner sees it, less the noise of its loads."""

    fingerprint: str
    """Of brokers and placement."""
    states: tuple[tuple[BrokerId, str], ...]
    """Of brokers, of which the fingerprint knows only those that are dead."""
    placements: tuple[tuple[TopicName, str], ...]
    """Constraints in the topics' configs."""
    reasons: frozenset[Reason]
    """Why a plan is needed."""
    resting: frozenset[tuple[PartitionId, bool]]
    """Partitions that may not move, or not back, after a recent move."""
    levels: Mapping[str, float]
    deviations: Mapping[str, Mapping[BrokerId, float]]

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        goals: Goals,
        evaluation: Evaluation,
        needs: tuple[Need, ...],
    ) -> "Inputs":
        """Those of a snapshot and its evaluation."""
        return cls(
            fingerprint=snapshot.fingerprint,
            states=tuple((b.id, b.state.value) for b in snapshot.header.brokers),
            placements=tuple(placements(snapshot).items()),
            reasons=frozenset(need.reason for need in needs),
            resting=_resting(snapshot, goals),
            levels=evaluation.levels,
            deviations=evaluation.deviations,
        )

    def differs(self, before: "Inputs", goals: Goals) -> bool:
        """Whether the planner might answer otherwise than before."""
        return self.placed != before.placed or self._loads_differ(before, goals)

    @property
    def placed(self) -> tuple[object, ...]:
        """All but the loads."""
        placed = self.fingerprint, self.states, self.placements
        return *placed, self.reasons, self.resting

    def _loads_differ(self, before: "Inputs", goals: Goals) -> bool:
        if self.levels.keys() != before.levels.keys():
            return True
        levels = ((v, before.levels[key]) for key, v in self.levels.items())
        if any(abs(now - old) > MATERIAL_LEVEL * old for now, old in levels):
            return True
        return any(
            _material(before.deviations[key].get(broker, 0.0), now, key, goals)
            for key, by_broker in self.deviations.items()
            if key in before.deviations
            for broker, now in by_broker.items()
        )


def _material(before: float, now: float, key: str, goals: Goals) -> bool:
    """Whether a deviation changed: by more than noise of what is far off anyway."""
    tolerance = goals.tolerance_of(key.partition("@")[0]) or 1.0
    return abs(now - before) > MATERIAL_DEVIATION * max(tolerance, abs(before))


def _resting(snapshot: Snapshot, goals: Goals) -> frozenset[tuple[PartitionId, bool]]:
    """Recently moved partitions; True for those that may not move at all."""
    header = snapshot.header
    storage = {t.name: t.storage for t in header.topics}
    found = set()
    for move in header.recent_moves:
        if move.topic not in storage:
            continue
        cooldown = goals.rest_of(storage[move.topic])
        age_s = (header.taken_at_ms - move.at_ms) / 1000
        if age_s < max(cooldown.rest_s, cooldown.return_window_s):
            partition = PartitionId(move.topic, move.partition)
            found.add((partition, age_s < cooldown.rest_s))
    return frozenset(found)
