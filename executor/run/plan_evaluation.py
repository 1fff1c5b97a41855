"""Evaluate a plan's rules again, just before anything is sent.

A plan file is not trusted, even if its hash fits: placements are judged by the cluster's metadata,
amounts by the loads in the plan itself, since nothing measures loads while a plan is executed.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from executor.client.cluster_admin import ClusterReads
from executor.client.responses import PartitionView
from executor.health import competing_rebalancers
from executor.platforms.platform import PlatformReads
from executor.run import preflight
from executor.run.preflight import Observed
from model.errors import GuardrailRefused
from model.ids import BrokerId, PartitionId
from model.plan.plan import ANY_DIR, BrokerChange, Move, Plan
from model.plan.proposal import HOLDING, Proposal
from model.plan.remaining import over_limit_text
from model.rules import Violation, violations_of
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    LogDir,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)
from model.units import bytes_text

_NAMED: Final = 5
"""Number of violations listed in a message."""

_FAILED: Final = "a failed directory"
"""Stands for the path of a directory whose disk has failed: brokers list nothing in it."""

_NEAR: Final = 1e-6
"""Relative rounding error of sums of figures with nine digits."""


def judge(
    admin: ClusterReads,
    plan: Plan,
    platforms: Mapping[StorageKind, PlatformReads],
    ours: Mapping[PartitionId, str],
    in_progress: Collection[PartitionId],
    *,
    undoes: bool,
) -> Iterator[str]:
    """Check a plan against its cluster and its own goals; yield warnings.

    `ours` is as for `preflight.check`. Reassignments of partitions `in_progress` are those of
    the run being resumed. `undoes`: whether the plan rolls back a run, which exempts it from
    the goals. Raises as `preflight.check`, `refuse_broken` and `PlatformReads.check` do, and
    GuardrailRefused where another rebalancer would undo the moves.
    """
    seen = preflight.observe(admin, plan)
    listed = {p: to for p, to in seen.reassignments.items() if p not in in_progress}
    preflight.check(plan, replace(seen, reassignments=listed), ours, undoes=undoes)
    if not undoes:
        refuse_broken(plan, seen)
        yield from unjudged(plan)
    yield from competing_rebalancers.check(admin, seen.cluster)
    for kind in {move.storage for move in plan.moves}:
        platforms[kind].check([m for m in plan.moves if m.storage is kind])


def refuse_broken(plan: Plan, seen: Observed) -> None:
    """Raise GuardrailRefused where moves would violate a rule of the plan's goals.

    `seen` has the partitions of all moves as they are before them. Capacity and replica
    counts are checked by `refuse_overfilled`; cooldowns are not, since a partition that
    moved after planning is not where the plan expects it.
    """
    _refuse([f"{v.rule}: {v.words}" for v in _violations(plan, seen)])


def refuse_overfilled(plan: Plan) -> None:
    """Raise GuardrailRefused where a plan fills a broker above a limit of its goals.

    Uses the plan's own figures: each broker's load before, and the loads of the moves.
    The plan must be complete.
    """
    _refuse(list(_overfilled(plan)))


def unjudged(plan: Plan) -> Iterator[str]:
    """Yield a warning where `refuse_overfilled` cannot check the plan.

    Such plans remain usable: nothing shows whether their figures were removed.
    """
    if plan.moves and not _has_figures(plan):
        yield (
            "The plan has no loads and no brokers, so neither capacity limits nor the "
            "limit on replicas per broker are checked. Plan again to have them checked."
        )


def _refuse(faults: list[str]) -> None:
    if faults:
        more = f"; and {len(faults) - _NAMED} more" if len(faults) > _NAMED else ""
        raise GuardrailRefused(
            f"The plan violates rules of its own goals, so nothing was started: "
            f"{'; '.join(faults[:_NAMED])}{more}. Plan again."
        )


# ---- places


def _violations(plan: Plan, seen: Observed) -> Iterator[Violation]:
    # `log_dir_checks` compares directories with those of the brokers; here they only show which
    # replicas leave a directory that is emptied.
    kept = bool(plan.goals.emptied)
    moves = [m if kept else m.model_copy(update={"log_dirs_after": ()}) for m in plan.moves]
    # Minimum leaders concern whole topics, and only the plan's partitions are known here.
    goals = plan.goals.model_copy(update={"min_leaders": ()})
    # A run that is resumed has no moves of topics that it has finished.
    topics = {m.topic for m in moves}
    replication = tuple(change for change in plan.replication if change.topic in topics)
    proposal = Proposal.of_moves(_snapshot(plan, seen), goals, moves, replication)
    return violations_of(proposal)


def _snapshot(plan: Plan, seen: Observed) -> Snapshot:
    """A snapshot of the plan's partitions from metadata, without loads."""
    moves = sorted(plan.moves, key=lambda m: m.id)
    topics = {m.topic: _topic(m) for m in moves}
    header = SnapshotHeader(
        cluster_id=seen.cluster.cluster_id,
        taken_at_ms=0,
        brokers=_brokers(plan, seen),
        topics=tuple(topics.values()),
        resources=(),
    )
    rows = [_row(m, seen.partitions[m.id], topics[m.topic]) for m in moves]
    loads = np.zeros((len(rows), 0))
    columns = partitions_from_rows(header.topics, rows, loads)
    if plan.goals.emptied or seen.failed:
        paths = _named_dirs(plan, seen)
        dirs = [at for move in moves for at in _dirs(move, seen, paths)]
        columns = replace(columns, replica_dir=np.array(dirs, np.int64))
    return Snapshot(header, columns)


def _named_dirs(plan: Plan, seen: Observed) -> dict[BrokerId, list[str]]:
    """Directories that the plan names, and `_FAILED` where one has failed, by broker; in order."""
    found: dict[BrokerId, set[str]] = defaultdict(set)
    for broker in seen.failed:
        found[broker].add(_FAILED)
    for entry in plan.goals.emptied:
        found[entry.broker].add(entry.path)
    for move in plan.moves:
        before = zip(move.replicas_before, move.log_dirs_before, strict=False)
        after = zip(move.replicas_after, move.log_dirs_after, strict=False)
        for broker, path in (*before, *after):
            if path != ANY_DIR:
                found[broker].add(path)
    return {broker: sorted(paths) for broker, paths in found.items()}


def _dirs(move: Move, seen: Observed, paths: Mapping[BrokerId, list[str]]) -> Iterator[int]:
    """Position in `paths` of the directory that each replica is in, -1 where it is not named.

    Preflight has compared the directories of the plan with those of the brokers. A replica that
    leaves is in a failed directory if it is offline and its broker reports such a directory.
    """
    before = dict(zip(move.replicas_before, move.log_dirs_before, strict=False))
    view = seen.partitions[move.id]
    for broker in view.replicas:
        lost = broker in view.offline and broker in move.removed and broker in seen.failed
        path, known = before.get(broker, ANY_DIR), paths.get(broker, [])
        path = _FAILED if lost else path
        yield known.index(path) if path in known else -1


def _topic(move: Move) -> Topic:
    # Preflight has compared id and storage; Kafka's internal topics have the prefix.
    return Topic(
        name=move.topic,
        topic_id=move.topic_id,
        storage=move.storage,
        internal=move.topic.startswith("__"),
    )


def _row(move: Move, view: PartitionView, topic: Topic) -> PartitionRow:
    known = move.bytes_to_copy is not None and bool(move.added)
    each = (move.bytes_to_copy or 0) // len(move.added) if known else -1
    return PartitionRow(
        id=move.id,
        topic_id=view.topic_id,
        storage=topic.storage,
        internal=topic.internal,
        replicas=view.replicas,
        leader=view.leader,
        size_bytes=-1,
        local_bytes=each,
    )


def _brokers(plan: Plan, seen: Observed) -> tuple[Broker, ...]:
    """Live brokers and those with replicas; racks from the cluster, states from the plan."""
    planned = {b.id: b for b in plan.brokers}
    paths = _named_dirs(plan, seen) if plan.goals.emptied or seen.failed else {}
    holding = {b for m in plan.moves for b in seen.partitions[m.id].replicas}
    return tuple(
        Broker(
            id=b,
            rack=seen.cluster.racks.get(b, planned[b].rack if b in planned else None),
            state=_state(planned.get(b), alive=b in seen.cluster.alive),
            log_dirs=tuple(LogDir(path=p, failed=p == _FAILED) for p in paths.get(b, ())),
        )
        for b in sorted(seen.cluster.alive | holding)
    )


def _state(planned: BrokerChange | None, *, alive: bool) -> BrokerState:
    if not alive:
        return BrokerState.DEAD
    if planned is None or planned.state is BrokerState.DEAD:
        return BrokerState.ALIVE
    return planned.state


# ---- amounts


def _overfilled(plan: Plan) -> Iterator[str]:
    yield from _missing(plan)
    grown = _growth(plan.moves)
    count = Counter(b for m in plan.moves for b in m.added)
    count.subtract(b for m in plan.moves for b in m.removed)
    for broker in plan.brokers:
        if broker.state not in HOLDING and broker.id not in grown:
            continue
        yield from _over_capacity(plan, broker, grown.get(broker.id, {}))
        held = broker.replicas_before + count[broker.id]
        if held > max(plan.goals.replicas_per_broker, broker.replicas_before):
            yield (
                f"replicas per broker: broker {broker.id} would hold {held} replicas; "
                f"the limit is {plan.goals.replicas_per_broker}"
            )


def _missing(plan: Plan) -> Iterator[str]:
    """Sentences about missing figures in a plan that otherwise has figures."""
    if not _has_figures(plan):
        return
    known = {b.id for b in plan.brokers}
    taking = {b for m in plan.moves for b in m.added}
    for broker in sorted((taking | {*plan.live_brokers}) - known):
        yield f"it has no figures for broker {broker}"
    limited = {b.id: {*b.capacity} & {*b.before} for b in plan.brokers}
    for move in plan.moves:
        needed = {r for b in move.replicas_after for r in limited.get(b, ())}
        for resource in sorted(needed - (move.leader_load.keys() & move.follower_load)):
            yield f"it has no {resource} of {move.id}, but brokers have a limit for it"
        yield from _too_small(plan, move)


def _has_figures(plan: Plan) -> bool:
    return bool(plan.brokers or plan.levels or any(m.leader_load for m in plan.moves))


def _too_small(plan: Plan, move: Move) -> Iterator[str]:
    """A sentence if a move's size contradicts its load on disk."""
    if plan.goals.budgets.bytes is None or move.storage is StorageKind.SHARED:
        return
    load = move.follower_load.get(Resource.DISK, 0.0) * len(move.added)
    if move.bytes_to_copy is not None and 2 * move.bytes_to_copy + 1 < load:
        yield (
            f"budgets: {move.id} would copy {bytes_text(load)} by its load on disk, "
            f"not {bytes_text(move.bytes_to_copy)}"
        )


def _over_capacity(plan: Plan, broker: BrokerChange, grown: Mapping[str, float]) -> Iterator[str]:
    for resource, capacity in broker.capacity.items():
        before = broker.before.get(resource, 0.0)
        after = before + grown.get(resource, 0.0)
        limit = plan.goals.limit_of(Resource(resource)) * capacity
        if after > max(limit, before) * (1 + _NEAR):
            yield f"capacity: {over_limit_text(broker.id, resource, after, limit)}"


def _growth(moves: Iterable[Move]) -> dict[BrokerId, dict[str, float]]:
    """Load change of each broker by the moves, by dimension."""
    grown: dict[BrokerId, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for move in moves:
        for sign, brokers, leader in (
            (1, move.replicas_after, move.leader_after),
            (-1, move.replicas_before, move.leader_before),
        ):
            for broker in brokers:
                leads = broker == leader
                loads = move.leader_load if leads else move.follower_load
                for key, load in loads.items():
                    grown[broker][key] += sign * load
    return grown
