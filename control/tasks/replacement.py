"""Replacing a broker by another: its replicas, one for one, at the same places of the lists."""

from collections.abc import Iterator

import numpy as np

from control.planning.staging import barring_budget, staged
from control.planning.validate import refuse_breaches, refuse_broken
from control.tasks.broker_task import BrokerTask
from control.tasks.removal import drained, member
from control.tasks.task_parts import FoundPlan, TaskParts
from model.errors import ConfigError, GuardrailRefused
from model.goals.goals import Goals, RackRule, SolveLimits
from model.goals.topic_placement import with_topic_placements
from model.ids import NO_BROKER, BrokerId
from model.plan.proposal import Change, Proposal
from model.plan.unplaceable import deferring
from model.snapshot.snapshot import TAKING, Snapshot
from model.units import bytes_text, count_text

Places = dict[int, tuple[tuple[BrokerId, ...], BrokerId]]
"""New replicas and leader by row."""


def refuse_replacement(
    snapshot: Snapshot, goals: Goals, old: BrokerId, new: BrokerId
) -> tuple[Goals, Places]:
    """Goals and places of the replacement of `old`, which drains, by `new`.

    What the user's budgets do not allow is left to a later plan. Raises GuardrailRefused where
    `new` may not take the replicas, and names the partition or the broker.
    """
    for reason in _obstacles(snapshot, old, new):
        raise GuardrailRefused(f"cannot replace broker {old} with {new}: {reason}")
    if member(snapshot, old).rack == member(snapshot, new).rack:
        # Every partition stays in its racks, even one that was in too few.
        goals = goals.model_copy(update={"rack_rule": RackRule.OFF})
    found = with_topic_placements(goals, snapshot)
    mine = _held_by(snapshot, old)
    forced = Proposal(snapshot, found, ()).forced
    others = np.flatnonzero(forced.rows & ~mine).tolist()
    found = deferring(snapshot, found, others)
    before = found
    found, _ = staged(snapshot, found, repair_rules=False)
    deferred = Proposal(snapshot, found, ()).deferred
    rows = np.flatnonzero(mine & ~deferred).tolist()
    if not rows:
        why = barring_budget(Proposal(snapshot, before, ()), np.flatnonzero(mine).tolist())
        if why:
            raise GuardrailRefused(f"cannot replace broker {old} with {new}: {why}")
    places = {row: exchanged(snapshot, row, old, new) for row in rows}
    changes = tuple(Change(row, held, leads) for row, (held, leads) in places.items())
    refuse_breaches(Proposal(snapshot, found, changes), f"cannot replace broker {old} with {new}")
    return found, places


def exchanged(
    snapshot: Snapshot, row: int, old: BrokerId, new: BrokerId
) -> tuple[tuple[BrokerId, ...], BrokerId]:
    """The replicas and the leader of a row, with one broker in the place of another.

    A partition that `old` leads, though another replica is preferred, is led by that one: Kafka
    elects no other.
    """
    partition = snapshot.row(row)
    held = tuple(new if b == old else b for b in partition.replicas)
    return held, held[0] if partition.leader == old else partition.leader


def _held_by(snapshot: Snapshot, broker: BrokerId) -> np.ndarray:
    """(n,) rows that a broker holds a replica of."""
    columns = snapshot.partitions
    held = columns.replica_broker == broker
    return np.bincount(snapshot.replica_row[held], minlength=len(snapshot)) > 0


def _obstacles(snapshot: Snapshot, old: BrokerId, new: BrokerId) -> Iterator[str]:
    if old == new:
        yield "name two brokers"
    state = member(snapshot, new).state
    if state not in TAKING:
        yield f"broker {new} is {state.words} and takes no new replicas"
    mine, columns = _held_by(snapshot, old), snapshot.partitions
    both = np.flatnonzero(mine & _held_by(snapshot, new)).tolist()
    if both:
        more = f" (and {len(both) - 1:,} more)" if len(both) > 1 else ""
        yield (
            f"broker {new} holds a replica of {snapshot.id(both[0])}{more} already; take a broker "
            f"that shares none, or spread its replicas with plimsoll broker remove {old}"
        )
    offline = np.flatnonzero(mine & (columns.leader == NO_BROKER)).tolist()
    if offline:
        yield f"{snapshot.id(offline[0])} has no leader to copy from; bring its replicas back first"


def replaced(task: BrokerTask) -> tuple[BrokerId, BrokerId]:
    """The broker that leaves and the one that takes over. Raises ConfigError without the latter."""
    (old,), new = task.brokers, task.onto
    if new is None:
        raise ConfigError(f"task {task.task_id} does not say which broker replaces {old}")
    return old, new


def plan_replacement(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    """Plan that another broker takes over each replica; nothing else moves.

    Raises GuardrailRefused as `refuse_replacement` does.
    """
    from solver.report.given_plan import given_plan

    old, new = replaced(task)
    leaving = drained(snapshot, [old])
    goals, places = refuse_replacement(leaving, parts.goals, old, new)
    reason = f"broker {new} replaces broker {old}"
    plan = given_plan(leaving, goals, SolveLimits(), places, reason)
    refuse_broken(leaving, plan)
    held = int(np.count_nonzero(_held_by(leaving, old)))
    note = f"{count_text(len(plan.moves), 'move')}, {bytes_text(plan.bytes_to_copy)} to copy"
    if held > len(places):
        left = count_text(held - len(places), "partition")
        note += f"; budgets leave {left} to the next plan of the task"
    return FoundPlan.of(plan, note, left=held, least_bytes=plan.bytes_to_copy)
