"""Inputs of a solve less their noise, so that equal inputs are not solved twice."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from control.planning.plan_needs import PlanNeed, Reason
from control.planning.snapshot_changes import basis
from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.ids import BrokerId, PartitionId
from model.snapshot.snapshot import Bools, Snapshot

Figure = tuple[str, BrokerId | None]
"""A dimension and a broker: its deviation, or, with `OVER` before the dimension, its
load over a limit; without a broker: the mean load."""

AVERAGED_WINDOWS: Final = 20
"""Windows of loads to average; a single window is noisy."""
SETTLED_DEVIATION: Final = 0.5
"""Least change of a broker's mean deviation, as a share of the tolerance."""
MATERIAL_SHARE: Final = 0.25
"""The same, as a share of the deviation or of the mean load."""
MATERIAL_EXCESS: Final = 0.02
"""Least change of the load over a limit, as a share of the limit."""
FIRST: Final = 2.0
"""Factor for comparisons with the loads of the solve itself, which cover one window:
among many brokers, one is far off by chance."""
OVER: Final = "over "
"""Prefix of the dimension of a load over a limit; such a figure is 0 where absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """A cluster as the planner sees it, less the noise of its loads."""

    cluster: tuple[object, ...]
    """Brokers, placement and placement constraints, as `snapshot_changes.basis` has them."""
    reasons: frozenset[Reason]
    """Why a plan is needed."""
    resting: frozenset[tuple[PartitionId, bool]]
    """Partitions in cooldown; False where only the way back is closed."""
    loads: Mapping[Figure, float]
    """Figures of the loads in the balanced dimensions."""
    unsized: Bools
    """(n,) partitions of unknown size, which no budget of bytes allows to copy."""

    @classmethod
    def of(
        cls, snapshot: Snapshot, goals: Goals, evaluation: Evaluation, needs: tuple[PlanNeed, ...]
    ) -> "Inputs":
        """Collect the inputs of a snapshot and its evaluation without moves."""
        return cls(
            cluster=basis(snapshot),
            reasons=frozenset(need.reason for need in needs),
            resting=_resting(snapshot, goals),
            loads=loads_of(evaluation),
            unsized=snapshot.partitions.local_bytes < 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedInputs:
    """Inputs of the newest result, and the mean loads since then.

    To tell a change from noise, means are compared: with the loads of the solve, and
    with the first mean that agrees with them.
    """

    inputs: Inputs
    at_s: float
    """Start of the solve, seconds of a clock that is never set."""
    seen_at_s: float
    """When loads were last averaged, by the same clock."""
    mean: Mapping[Figure, float]
    """Mean of the loads since then, or of the newest windows."""
    basis: Mapping[Figure, float] | None = None
    """The first mean; None until there is one."""
    earlier: Mapping[Figure, float] | None = None
    """The mean when the previous result was outdated: while it holds, nothing has
    shifted, however far the loads of the solve are from it."""

    @classmethod
    def of(
        cls, inputs: Inputs, now_s: float, before: "SolvedInputs | None" = None
    ) -> "SolvedInputs":
        """Start averaging for a solve at `now_s`, after the one `before`."""
        return cls(
            inputs=inputs,
            at_s=now_s,
            seen_at_s=now_s,
            mean=inputs.loads,
            earlier=before.mean if before is not None else None,
        )

    def seen(
        self, loads: Mapping[Figure, float], now_s: float, span_s: float, goals: Goals
    ) -> "SolvedInputs":
        """Average in the loads of another snapshot, over at most `span_s` seconds."""
        since_s, passed_s = now_s - self.at_s, now_s - self.seen_at_s
        # The mean since the solve at first, later one that forgets.
        over_s = min(since_s, span_s)
        share = passed_s / over_s if passed_s < over_s else 1.0
        mean = _mixed(self.mean, loads, share)
        found = replace(self, mean=mean, seen_at_s=now_s)
        if self.basis is not None or since_s < span_s or found.has_shifted(goals):
            return found
        return replace(found, basis=mean)

    def differs(self, now: Inputs, span_s: float, goals: Goals) -> bool:
        """Whether the planner might find another result by now."""
        old = self.inputs
        if now.cluster != old.cluster or now.resting != old.resting:
            return True
        has_span = self.seen_at_s - self.at_s >= span_s
        known, lost = old.unsized & ~now.unsized, now.unsized & ~old.unsized
        # Where sizes come and go in turn, not with each window of loads.
        if known.any() and (has_span or not lost.any()):
            return True
        # Reasons that depend on loads may flicker; each one is solved for once.
        if now.reasons - old.reasons:
            return True
        return has_span and self.has_shifted(goals)

    def has_shifted(self, goals: Goals) -> bool:
        """Whether the mean of the loads has changed by more than noise."""
        if self.basis is not None and _differ(self.mean, self.basis, goals):
            return True
        if self.earlier is not None and not _differ(self.mean, self.earlier, goals):
            return False
        return _differ(self.mean, self.inputs.loads, goals, FIRST)


def _differ(
    mean: Mapping[Figure, float], basis: Mapping[Figure, float], goals: Goals, factor: float = 1.0
) -> bool:
    # A dimension without load had no average, and nothing to balance.
    return any(
        abs(now - old) > _material(figure, old, goals, factor)
        for figure, now in mean.items()
        if (old := basis.get(figure, None if figure[1] is None else 0.0)) is not None
    )


def _mixed(
    mean: Mapping[Figure, float], loads: Mapping[Figure, float], share: float
) -> dict[Figure, float]:
    """Mix a share of newer loads into the mean.

    A figure absent from one is taken from the other; an absent excess is 0.
    """
    absent = {
        figure: 0.0 if figure[0].startswith(OVER) else value
        for figure, value in {**loads, **mean}.items()
    }
    before, now = {**absent, **mean}, {**absent, **loads}
    return {f: old + share * (now[f] - old) for f, old in before.items()}


def loads_of(evaluation: Evaluation) -> dict[Figure, float]:
    """Mean loads, deviations of brokers, and loads over limits as shares of these."""
    deviations = {
        (key, broker): value
        for key, by_broker in evaluation.deviations.items()
        for broker, value in by_broker.items()
    }
    over = {
        (OVER + o.dimension, o.broker): o.before / o.limit - 1.0
        for o in evaluation.over_limit
        if o.limit
    }
    levels: dict[Figure, float] = {(k, None): v for k, v in evaluation.levels.items()}
    return levels | deviations | over


def _material(figure: Figure, before: float, goals: Goals, factor: float) -> float:
    """Least change of a figure that counts; `factor` scales for a single window."""
    key, broker = figure
    share = MATERIAL_SHARE * abs(before)
    if broker is None:
        return share
    if key.startswith(OVER):
        return max(factor * MATERIAL_EXCESS, share)
    tolerance = goals.tolerance_of(key.partition("@")[0]) or 1.0
    return max(factor * SETTLED_DEVIATION * tolerance, share)


def _resting(snapshot: Snapshot, goals: Goals) -> frozenset[tuple[PartitionId, bool]]:
    """Partitions in cooldown; True for those that may not move at all."""
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
