"""Removing brokers: what forbids it, and which plans do it. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from control.planning.least_bytes import bound_sentence, least_bytes
from control.planning.staging import barring_budget, spreading_by_number, staged, without_cooldowns
from control.planning.validate import refuse_broken
from control.tasks.broker_task import BrokerTask, Operation, brokers_text
from control.tasks.task_parts import FoundPlan, NoPlan, Solve
from model.errors import ConfigError, GuardrailRefused
from model.goals.goals import Budgets, Goals, RackRule
from model.goals.topic_placement import with_topic_placements
from model.ids import NO_BROKER, BrokerId
from model.plan.plan import Plan, PlanStatus
from model.plan.proposal import Proposal
from model.plan.unplaceable import deferring, placeless
from model.snapshot.snapshot import TAKING, Broker, BrokerState, Resource, Snapshot, StorageKind
from model.units import bytes_text, count_text, listed, share_text

if TYPE_CHECKING:
    from solver.report.result import Result

_REPAIRS: Final = frozenset({Operation.DISK_HEAL, Operation.REPAIR})
MOST_NAMED: Final = 5
"""Brokers, racks or partitions named in a sentence."""


# ---- the request


def brokers_of(
    members: Sequence[Broker],
    ids: Iterable[int],
    racks: Iterable[str],
    noun: str = "broker",
    *,
    ends: bool = False,
) -> list[BrokerId]:
    """Live brokers that ids and racks name, ascending.

    noun: `live broker` where members have no others, or as `exclusion.INCLUDABLE`. ends:
    whether a demotion is to be undone, which is given up where the broker does not return.

    Raises ConfigError: an id or a rack is unknown, a broker named by its id is dead, or nothing
    is named.
    """
    known = {b.id: b for b in members}
    found = {BrokerId(b) for b in ids}
    alone = len(found) < 2
    for broker in sorted(found):
        if broker not in known:
            raise ConfigError(f"there is no {noun} {broker}; known: {_ids(known) or 'none'}")
        if known[broker].state is BrokerState.DEAD:
            way = (
                f"end its mark with plimsoll broker include {broker}"
                f"{'' if alone else ' and name the others alone'}"
                if ends
                else "create its replicas on other brokers with plimsoll cluster repair"
            )
            raise ConfigError(f"broker {broker} is dead; start it, or {way}")
    for rack in racks:
        found.update(_in_rack(members, rack))
    if not found:
        raise ConfigError("no broker is named; give ids or --rack RACK")
    return sorted(found)


def _in_rack(members: Sequence[Broker], rack: str) -> list[BrokerId]:
    inside = [b for b in members if b.rack == rack]
    live = [b.id for b in inside if b.state is not BrokerState.DEAD]
    if not live:
        names = sorted({b.rack for b in members if b.rack is not None})
        why = "has no live broker" if inside else "does not exist"
        raise ConfigError(f"rack {rack!r} {why}; known: {listed(names, MOST_NAMED) or 'none'}")
    return live


def refuse_conflicts(
    tasks: Iterable[BrokerTask], brokers: Sequence[BrokerId], but: str = ""
) -> None:
    """Raise GuardrailRefused where an open task, except `but`, names one of these brokers."""
    for task in tasks:
        if both := sorted({*task.named} & {*brokers}) if task.is_open else []:
            if task.task_id == but:
                continue
            raise GuardrailRefused(
                f"task {task.task_id} ({task.words()}, {task.phase}) names {brokers_text(both)}, "
                f"too; finish it with plimsoll task resume {task.task_id}, or cancel it with "
                f"plimsoll task cancel {task.task_id}"
            )


def refuse_contradictions(tasks: Sequence[BrokerTask], task: BrokerTask) -> None:
    """Raise GuardrailRefused where an open task is about the same brokers, topics or repairs."""
    refuse_conflicts(tasks, task.named, task.task_id)
    for other in tasks:
        if not other.is_open or other.task_id == task.task_id:
            continue
        same = f"topic {both[0]}" if (both := sorted({*task.topics} & {*other.topics})) else ""
        if {task.operation, other.operation} <= _REPAIRS:
            same = "the same repairs"
        if same:
            raise GuardrailRefused(
                f"task {other.task_id} ({other.words()}, {other.phase}) is about {same}, too; "
                f"finish it with plimsoll task resume {other.task_id}, or cancel it with "
                f"plimsoll task cancel {other.task_id}"
            )


# ---- what forbids a removal


def member(snapshot: Snapshot, broker: BrokerId) -> Broker:
    """A broker that a task names. Raises GuardrailRefused where the cluster has lost it since."""
    found = snapshot.broker.get(broker)
    if found is None:
        raise GuardrailRefused(
            f"broker {broker} is not in the cluster any longer; start it, or cancel the task"
        )
    return found


def drained(snapshot: Snapshot, brokers: Iterable[BrokerId]) -> Snapshot:
    """The snapshot with these brokers draining, and without cooldowns."""
    return requested(snapshot, brokers, BrokerState.DRAINING)


def requested(snapshot: Snapshot, brokers: Iterable[BrokerId], state: BrokerState) -> Snapshot:
    """The snapshot with live brokers in the state that was requested, and without cooldowns."""
    named = {*brokers}
    members = tuple(
        b.model_copy(update={"state": state})
        if b.id in named and b.state is not BrokerState.DEAD
        else b
        for b in snapshot.header.brokers
    )
    found = without_cooldowns(snapshot)
    return replace(found, header=found.header.model_copy(update={"brokers": members}))


def refuse_removal(snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]) -> None:
    """Raise GuardrailRefused where these brokers cannot be emptied, and name the reason.

    snapshot: as `drained` returns it. Rules of single partitions and limits of single brokers
    are the planner's; this finds what no plan could solve, before anything is stored.
    """
    for reason in _obstacles(snapshot, goals, brokers):
        raise GuardrailRefused(f"cannot remove {brokers_text(brokers)}: {reason}")


@dataclass(frozen=True, slots=True)
class _Counts:
    """Replicas of each partition by what becomes of them."""

    leaving: np.ndarray
    """(n,) on the brokers that are removed."""
    kept: np.ndarray
    """(n,) on others that may take replicas."""

    @classmethod
    def of(cls, snapshot: Snapshot, brokers: Sequence[BrokerId]) -> "_Counts":
        n, row, at = len(snapshot), snapshot.replica_row, snapshot.replica_position
        gone = np.array([b.id in {*brokers} for b in snapshot.header.brokers], np.bool_)
        taking = snapshot.in_state(TAKING)
        return cls(
            leaving=np.bincount(row[gone[at]], minlength=n),
            kept=np.bincount(row[taking[at]], minlength=n),
        )


def _obstacles(snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]) -> Iterator[str]:
    takers = [b.id for b in snapshot.header.brokers if b.state in TAKING]
    if not takers:
        yield "no other broker may take replicas; add brokers, or include excluded ones"
        return
    counts = _Counts.of(snapshot, brokers)
    yield from _offline(snapshot, counts)
    yield from _too_few_brokers(snapshot, counts, takers)
    yield from _too_few_racks(snapshot, goals, counts, brokers)
    yield from _too_little_room(snapshot, goals, counts)
    yield from _too_small_budgets(snapshot, goals, counts)


def _offline(snapshot: Snapshot, counts: _Counts) -> Iterator[str]:
    rows = np.flatnonzero((counts.leaving > 0) & (snapshot.partitions.leader == NO_BROKER))
    if len(rows):
        yield (
            f"{_partitions(snapshot, rows.tolist())} has no leader to copy from; bring its other "
            "replicas back first"
        )


def _too_few_brokers(
    snapshot: Snapshot, counts: _Counts, takers: Sequence[BrokerId]
) -> Iterator[str]:
    rows = np.flatnonzero(counts.leaving > len(takers) - counts.kept)
    if len(rows):
        row = int(rows[0])
        replicas = count_text(int(snapshot.replica_counts[row]), "replica")
        yield (
            f"{_partitions(snapshot, rows.tolist())} has {replicas}, and only "
            f"{count_text(len(takers), 'broker')} that may take them would remain "
            f"({_ids(takers)}); add brokers, or lower the replication factor"
        )


def _too_few_racks(
    snapshot: Snapshot, goals: Goals, counts: _Counts, brokers: Sequence[BrokerId]
) -> Iterator[str]:
    """Partitions that would lie in fewer racks because a rack loses all its brokers."""
    if goals.rack_rule is not RackRule.SPREAD:
        return
    members = [b for b in snapshot.header.brokers if b.state is not BrokerState.DEAD]
    if any(b.rack is None for b in members):
        return
    before = {b.rack for b in members}
    after = {b.rack for b in members if b.id not in {*brokers}}
    racks = np.minimum(snapshot.replica_counts, len(before))
    rows = np.flatnonzero((counts.leaving > 0) & (racks > len(after)))
    lost = sorted(str(rack) for rack in before - after)
    if lost and len(rows):
        yield (
            f"rack{'s' if len(lost) > 1 else ''} {listed(lost, MOST_NAMED)} would have no broker "
            f"left, and {_partitions(snapshot, rows.tolist())} would lie in "
            f"{count_text(len(after), 'rack')} instead of {int(racks[rows[0]])}; add a broker "
            'there, or set rack_rule = "off" in the goals'
        )


def _too_little_room(snapshot: Snapshot, goals: Goals, counts: _Counts) -> Iterator[str]:
    """The disks that remain, up to their limit, against what leaves the brokers."""
    if Resource.DISK not in snapshot.header.resources:
        return
    columns = snapshot.partitions
    shared = np.array([t.storage is StorageKind.SHARED for t in snapshot.header.topics], np.bool_)
    sizes = np.where(shared[columns.topic], 0, np.maximum(columns.local_bytes, 0))
    used = np.bincount(
        snapshot.replica_position,
        weights=sizes[snapshot.replica_row],
        minlength=len(snapshot.header.brokers),
    )
    takers = [(at, b) for at, b in enumerate(snapshot.header.brokers) if b.state in TAKING]
    if any(Resource.DISK not in b.capacity for _, b in takers):
        return
    share = goals.limit_of(Resource.DISK)
    room = sum(max(0.0, share * b.capacity[Resource.DISK] - used[at]) for at, b in takers)
    needed = float((counts.leaving * sizes).sum())
    if needed > room:
        yield (
            f"the brokers that remain have {bytes_text(room)} of disk left up to their limit of "
            f"{share_text(share)}, and {bytes_text(needed)} would have to move there; add "
            "brokers, or raise capacity_limits.disk"
        )


def _too_small_budgets(snapshot: Snapshot, goals: Goals, counts: _Counts) -> Iterator[str]:
    """The budgets, where they allow no move at all; the planner names what is placed nowhere."""
    if goals.budgets == Budgets():
        return
    found = with_topic_placements(goals, snapshot)
    proposal = Proposal(snapshot, found, ())
    rows = np.flatnonzero(proposal.forced.rows & (counts.leaving > 0)).tolist()
    why = barring_budget(proposal, rows)
    if why and not placeless(snapshot, found):
        yield why


def _partitions(snapshot: Snapshot, rows: Sequence[int]) -> str:
    more = f" (and {len(rows) - 1:,} more)" if len(rows) > 1 else ""
    return f"{snapshot.id(rows[0])}{more}"


def _ids(brokers: Iterable[int]) -> str:
    return listed(sorted(brokers), 2 * MOST_NAMED)


# ---- its plans


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalGoals:
    """What one plan of a removal aims for."""

    goals: Goals
    """With budgets that allow no more replica moves than the removal needs."""
    relaxed: Goals
    """With the user's budgets alone, for racks or limits that need further moves."""
    replicas: int
    """Replicas on the brokers."""
    least_bytes: int | None
    """No plan moves the replicas of this plan with fewer bytes; None where sizes are unknown."""
    deferred: int
    """Partitions left to the task's next plan, since the user's budgets end before."""


def removal_goals(snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]) -> RemovalGoals:
    """Goals that empty brokers with the fewest replica moves, and keep the others balanced.

    snapshot: as `drained` returns it. Leader changes are free to balance the rest. Partitions
    that only dead brokers force to move are left alone, and those beyond the user's budgets are
    left to a later plan.
    """
    counts = _Counts.of(snapshot, brokers)
    found = with_topic_placements(goals, snapshot)
    forced = Proposal(snapshot, found, ()).forced
    others = np.flatnonzero(forced.rows & (counts.leaving == 0)).tolist()
    found = deferring(snapshot, found, others)
    deferred = 0
    # A partition that fits nowhere makes the plan infeasible, which names the rule.
    if not placeless(snapshot, found):
        found, deferred = staged(snapshot, found, repair_rules=False)
    forced = Proposal(snapshot, found, ()).forced
    least = int(forced.replicas.sum())
    limit = found.budgets.replica_moves
    budgets = {"replica_moves": least if limit is None else min(least, limit)}
    tight = found.budgets.model_copy(update=budgets)
    fewest = spreading_by_number(snapshot, found).model_copy(update={"budgets": tight})
    return RemovalGoals(
        goals=fewest,
        relaxed=found,
        replicas=int(counts.leaving.sum()),
        least_bytes=least_bytes(snapshot, forced.replicas),
        deferred=deferred,
    )


def bound_text(plan_bytes: int | None, least: int | None, brokers: Sequence[int]) -> str:
    """How far a plan's bytes are from the fewest possible; empty where sizes are unknown."""
    return bound_sentence(f"empties {brokers_text(brokers)}", plan_bytes, least)


def plan_note(plan: Plan, found: RemovalGoals, brokers: Sequence[int]) -> str:
    """A sentence on one plan of a removal."""
    text = f"{count_text(len(plan.moves), 'move')}, {bytes_text(plan.bytes_to_copy)} to copy"
    if bound := bound_text(plan.bytes_to_copy, found.least_bytes, brokers):
        text += f"; {bound}"
    if found.deferred:
        left = count_text(found.deferred, "partition")
        text += f"; budgets leave {left} to the next plan of the task"
    return text


def plan_removal(
    snapshot: Snapshot, brokers: tuple[BrokerId, ...], goals: Goals, solve: Solve
) -> FoundPlan:
    """Plan the removal of brokers from a cluster, with the fewest replica moves first.

    Raises GuardrailRefused as `refuse_removal` does, and NoPlan where there is no plan.
    """
    leaving = drained(snapshot, brokers)
    refuse_removal(leaving, goals, brokers)
    found = removal_goals(leaving, goals, brokers)
    result = solve(leaving, found.goals)
    if result.best is None and result.status is not PlanStatus.STOPPED:
        result = solve(leaving, found.relaxed)
    plan = best_of(result, f"empties {brokers_text(brokers)}")
    refuse_broken(leaving, plan)
    note = plan_note(plan, found, brokers)
    return FoundPlan.of(plan, note, left=found.replicas, least_bytes=found.least_bytes)


def best_of(result: "Result", what: str) -> Plan:
    """The plan of a solve. Raises NoPlan where there is none: `no plan empties broker 4: ...`."""
    if result.best is None:
        reasons = "; ".join(result.reasons) or str(result.status)
        raise NoPlan(f"no plan {what}: {reasons}", result.status)
    return result.best
