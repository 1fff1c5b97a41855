"""Fields of a plan that restate its snapshot and goals, compared value by value."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from model.dimensions import Dimension, replica_loads
from model.evaluate import Evaluation, counted_dimensions, mean_load
from model.goals.goals import Goal, Goals, SolveLimits
from model.plan.plan import ANY_DIR, BrokerChange, Move, Plan, minor_of
from model.plan.proposal import Proposal
from model.plan.remaining import OverLimit
from model.plan.replication_change import ReplicationChange
from model.plan.tolerance import misstates_tolerance
from model.plan.warnings import plan_warnings
from model.snapshot.snapshot import BrokerState, Snapshot

NEAR: Final = 1e-8
"""Relative difference allowed between a figure of a file and its recomputed value: ten
times the largest effect of rounding loads and figures to nine digits."""

LEAST: Final = 1e-10
"""Absolute difference allowed, in units of F, for values near 0."""


def is_near(claimed: float, found: float) -> bool:
    """Whether two figures are equal apart from rounding."""
    return abs(claimed - found) <= LEAST + NEAR * max(abs(claimed), abs(found))


def are_near(claimed: Mapping[str, float], found: Mapping[str, float]) -> bool:
    """Whether two tables have the same keys, and figures equal apart from rounding."""
    return claimed.keys() == found.keys() and all(
        is_near(claimed[key], found[key]) for key in claimed
    )


def _different(pairs: Mapping[str, tuple[object, object]]) -> Iterator[str]:
    """Names of the claimed values that differ from the recomputed ones."""
    return (name for name, (claimed, found) in pairs.items() if claimed != found)


@dataclass(frozen=True)
class Facts:
    """Values recomputed from a snapshot for a plan that was made for it."""

    plan: Plan
    snapshot: Snapshot

    @cached_property
    def proposal(self) -> Proposal:
        """The assignment after the plan."""
        plan = self.plan
        return Proposal.of_moves(self.snapshot, plan.goals, plan.moves, plan.replication)

    @cached_property
    def _before(self) -> Proposal:
        return Proposal(self.snapshot, self.plan.goals, ())

    @cached_property
    def minor(self) -> int:
        """Minor schema version of the plan, which determines its fields."""
        return minor_of(self.plan.schema_version)

    @cached_property
    def _now(self) -> tuple[Dimension, ...]:
        return tuple(d for d in self.proposal.dimensions if "@" not in d.key)

    @cached_property
    def _loads(self) -> Mapping[str, Any]:
        return {d.key: replica_loads(self.snapshot, d) for d in self._now}

    def cluster(self) -> Iterator[str]:
        """Names of the plan's own fields that differ from the snapshot."""
        plan, header = self.plan, self.snapshot.header
        live = tuple(b.id for b in header.brokers if b.state is not BrokerState.DEAD)
        pairs: dict[str, tuple[object, object]] = {
            "cluster_id": (plan.cluster_id, header.cluster_id),
            "snapshot_taken_at_ms": (plan.snapshot_taken_at_ms, header.taken_at_ms),
            "live_brokers": (plan.live_brokers, live),
        }
        if self.minor >= 3:
            pairs["forecast"] = (plan.forecast, header.forecast)
        if self.minor >= 4:
            pairs["warnings"] = (plan.warnings, self._warnings())
        if self.minor < 9 and plan.replication:
            yield "replication"
        if any(not self._changes(change) for change in plan.replication):
            yield "replication"
        yield from _different(pairs)

    def _changes(self, change: ReplicationChange) -> bool:
        """Whether a topic has as many replicas before the plan as it states."""
        pids = [m.id for m in self.plan.moves if m.topic == change.topic and m.resizes]
        rows = [row for pid in pids if (row := self.snapshot.find(pid)) is not None]
        counts = {len(self.snapshot.replicas(row)) for row in rows}
        return change.before == (min if change.before < change.after else max)(
            counts, default=change.after
        )

    def _warnings(self) -> tuple[str, ...]:
        goals = self.plan.goals
        return plan_warnings(self.snapshot, goals, self._ignored(), self.plan.moves)

    def _ignored(self) -> Iterator[tuple[Goal, float]]:
        before = self._before
        if not before.holding or not len(self.snapshot):
            return
        counted = {weighted.dimension.measure for weighted in counted_dimensions(before)}
        table = dict(zip((d.key for d in before.dimensions), before.table_before.T, strict=True))
        for goal in self.plan.goals.balance:
            if goal.resource not in counted:
                column = table.get(goal.resource)
                total = 0.0 if column is None else float(column.sum())
                yield goal, total / len(before.holding)

    def faults(self, after: Evaluation) -> Iterator[str]:
        """Names of wrong statements: brokers over a limit, rack violations, the tolerance."""
        if self.minor < 4:
            return
        if not are_near(_figures(self.plan.over_limit), _figures(after.over_limit)):
            yield "over_limit"
        claimed, found = (
            {v.id: v.repaired for v in violations}
            for violations in (self.plan.rack_violations, after.rack_violations)
        )
        if claimed != found or len(claimed) < len(self.plan.rack_violations):
            yield "rack_violations"
        unmet = self.plan.tolerance_unmet
        if (self.minor >= 5 or unmet) and misstates_tolerance(
            self.plan.goals, unmet, after.deviations
        ):
            yield "tolerance_unmet"

    def move(self, move: Move) -> Iterator[str]:
        """Names of a move's fields that differ from the snapshot."""
        row = self.snapshot.find(move.id)
        if row is None:
            yield "partition"
            return
        here = self.snapshot.row(row)
        size = here.bytes_to_copy(len(move.added))
        if self.minor < 4:
            size = size or 0
        pairs: dict[str, tuple[object, object]] = {
            "replicas_before": (move.replicas_before, here.replicas),
            "leader_before": (move.leader_before, here.leader),
            "topic_id": (move.topic_id, here.topic_id),
            "storage": (move.storage, here.storage),
            "bytes_to_copy": (move.bytes_to_copy, size),
            "log_dirs_before": (move.log_dirs_before, self._log_dirs(move, row)),
        }
        yield from _different(pairs)
        if move.resizes and move.gain:
            yield "gain"
        # Kafka elects the first replica, now or at its next preferred election.
        if move.replicas_after[:1] != (move.leader_after,):
            yield "order of replicas_after"
        if self.minor >= 2:
            leader = {key: float(both[0][row]) for key, both in self._loads.items()}
            follower = {key: float(both[1][row]) for key, both in self._loads.items()}
            if not are_near(move.leader_load, leader):
                yield "leader_load"
            if not are_near(move.follower_load, follower):
                yield "follower_load"

    def _log_dirs(self, move: Move, row: int) -> tuple[str, ...]:
        if not move.log_dirs_after:
            return ()
        return tuple(path or ANY_DIR for path in self.snapshot.log_dirs(row).values())

    def broker(self, change: BrokerChange, before: Evaluation, after: Evaluation) -> Iterator[str]:
        """Names of a broker's fields that differ from the recomputed values."""
        known = self.snapshot.broker.get(change.id)
        if known is None:
            yield "id"
            return
        proposal = self.proposal
        capacity = {r.value: c for r, c in known.capacity.items()}
        if self.minor < 4:
            capacity = {}
        now = [d.key for d in self._now]
        exact: dict[str, tuple[object, object]] = {
            "rack": (change.rack, known.rack),
            "state": (change.state, known.state),
            "replicas_before": (change.replicas_before, proposal.replicas_before[change.id]),
            "replicas_after": (change.replicas_after, proposal.replicas_after[change.id]),
        }
        yield from _different(exact)
        tables = {
            "capacity": (change.capacity, capacity),
            "before": (change.before, {key: proposal.loads_before[change.id][key] for key in now}),
            "after": (change.after, {key: proposal.loads_after[change.id][key] for key in now}),
        }
        yield from (name for name, pair in tables.items() if not are_near(*pair))
        if not _deviates_as(change.deviation_before, before, change):
            yield "deviation_before"
        if not _deviates_as(change.deviation_after, after, change):
            yield "deviation_after"

    def levels(self) -> dict[str, float]:
        """Average load of brokers that hold replicas, by counted dimension."""
        # A change of the replication factor changes the average.
        proposal = self.proposal if self.plan.replication else self._before
        return {w.key: mean_load(proposal, w) for w in counted_dimensions(proposal)}


def _figures(over: Iterable[OverLimit]) -> dict[str, float]:
    return {
        f"{one.broker} {one.dimension} {name}": value
        for one in over
        for name in ("before", "after", "limit", "capacity")
        if (value := getattr(one, name)) is not None
    }


def _deviates_as(claimed: Mapping[str, float], found: Evaluation, change: BrokerChange) -> bool:
    here = {k: by[change.id] for k, by in found.deviations.items() if change.id in by}
    # Rounding a load changes the average as well.
    return claimed.keys() == here.keys() and all(
        abs(claimed[k] - v) <= NEAR * (1 + abs(v)) for k, v in here.items()
    )


def differences(claimed: Goals | SolveLimits, given: Goals | SolveLimits) -> list[str]:
    """Names of the fields in which two goals, or two limits, differ."""
    fields = type(claimed).model_fields
    return [n for n in fields if getattr(claimed, n) != getattr(given, n)]
