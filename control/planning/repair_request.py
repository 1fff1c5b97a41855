"""A request to repair the cluster: dead brokers, failed directories, racks, pins and placements."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from control.planning.disk_request import (
    MOST_NAMED,
    Solve,
    counted,
    dirs_of,
    later_notes,
    with_fewest_moves,
)
from control.planning.least_bytes import bound_sentence, least_repair
from control.planning.staging import (
    barring_budget,
    staged,
    without_broken_minimum,
    without_cooldowns,
)
from control.planning.validate import refuse_broken
from model.errors import GuardrailRefused
from model.goals.goals import EmptiedDir, Goals, RackRule
from model.goals.topic_placement import with_topic_placements
from model.ids import NO_BROKER, BrokerId, PartitionId
from model.plan.outages import dead_brokers, unavailable
from model.plan.plan import Plan
from model.plan.proposal import Proposal
from model.plan.unplaceable import deferring, placeless, stays
from model.plan.violations import rack_violations
from model.snapshot.snapshot import TAKING, BrokerState, Ints, Snapshot
from model.units import bytes_text, count_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan:
    """A plan that only repairs, and what it leaves."""

    plan: Plan | None
    """None where nothing can be moved."""
    dead: tuple[BrokerId, ...]
    """Dead brokers that hold replicas."""
    directories: tuple[EmptiedDir, ...]
    """Failed log directories that hold replicas."""
    misplaced: int
    """Partitions that pins or placement constraints want elsewhere."""
    racks: tuple[PartitionId, ...]
    """Partitions that break the rack rule and no longer do after the plan."""
    racks_left: tuple[PartitionId, ...]
    """Partitions that break the rack rule and still do."""
    later: int
    """Partitions that the user's budgets leave to another plan."""
    unavailable: tuple[PartitionId, ...]
    """Partitions without a leader, of which no live broker has a copy."""
    placeless: tuple[PartitionId, ...]
    """Partitions that have to move and that too few brokers may hold."""
    least_bytes: int | None
    """No plan that repairs the same copies fewer bytes; None where a size is unknown."""

    @property
    def bounds(self) -> tuple[str, ...]:
        """How far its bytes are from the fewest possible, in sentences."""
        if self.plan is None:
            return ()
        found = bound_sentence("repairs this", self.plan.bytes_to_copy, self.least_bytes)
        return (found,) if found else ()

    @property
    def words(self) -> str:
        """What is repaired, and how much of it is copied."""
        parts = [
            *(f"dead broker {broker}" for broker in self.dead[:MOST_NAMED]),
            *(f"failed {d.path} of broker {d.broker}" for d in self.directories[:MOST_NAMED]),
        ]
        if self.misplaced:
            parts.append(f"{count_text(self.misplaced, 'misplaced partition')}")
        if self.racks:
            parts.append(f"racks of {counted(self.racks)}")
        copied = bytes_text(self.plan.bytes_to_copy) if self.plan is not None else "nothing"
        return f"repairs {', '.join(parts) or 'nothing'}; {copied} to copy"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is left."""
        found = later_notes(self.later)
        if self.unavailable:
            found.append(
                f"{counted(self.unavailable)} without a leader, of which no live broker has a "
                "copy; start the dead brokers, or repair the disks"
            )
        if self.placeless:
            found.append(
                f"{counted(self.placeless)} that too few brokers may hold; start a dead broker, "
                "or add one"
            )
        if self.racks_left:
            found.append(f"the rack rule stays broken by {counted(self.racks_left)}")
        return tuple(found)


def plan_repair(snapshot: Snapshot, goals: Goals, solve: Solve) -> RepairPlan | None:
    """Plan that whatever is broken is repaired, with the fewest moves, and nothing else moves.

    Partitions with the fewest live replicas come first where budgets allow only some. What tasks
    on brokers have to move is theirs. None where nothing is broken. Raises GuardrailRefused where
    rules leave no plan, or budgets no move.
    """
    snapshot = without_cooldowns(snapshot)
    found = with_topic_placements(goals, snapshot)
    found = found.model_copy(update={"level_directories": False})
    found = without_broken_minimum(snapshot, found)
    before = Proposal(snapshot, found, ())
    broken = _broken(before)
    racks = [snapshot.row_of[v.id] for v in rack_violations(before)]
    lost = unavailable(snapshot)
    if not broken and not racks and not lost:
        return None
    tasks = sorted({*np.flatnonzero(before.forced.rows).tolist()} - broken)
    kept = sorted({*range(len(snapshot))} - broken - {*racks} - {*tasks})
    found = deferring(snapshot, found, tasks)
    found = found.model_copy(update={"stay": (*found.stay, *stays(snapshot, kept))})
    stuck = sorted(placeless(snapshot, found))
    all_of_it = Proposal(snapshot, found, ())
    found, later = staged(snapshot, found)
    plan = _plan(snapshot, found, racks, solve)
    refuse_broken(snapshot, plan)
    if plan is None or not plan.moves:
        _refuse_small_budgets(all_of_it, racks)
    repaired = () if plan is None else plan.repaired
    forced = Proposal(snapshot, found, ()).forced.replicas
    return RepairPlan(
        plan=plan if plan is not None and plan.moves else None,
        dead=tuple(b.id for b in dead_brokers(snapshot)),
        directories=dirs_of(snapshot),
        misplaced=int((before.forced.outside_pins | before.forced.off_placement).sum()),
        racks=repaired,
        racks_left=tuple(pid for row in racks if (pid := snapshot.id(row)) not in repaired),
        later=later,
        unavailable=lost,
        placeless=tuple(map(snapshot.id, stuck)),
        least_bytes=least_repair(snapshot, forced, [snapshot.row_of[pid] for pid in repaired]),
    )


def broken_partitions(snapshot: Snapshot, goals: Goals) -> list[PartitionId]:
    """The partitions that `plan_repair` is about, sorted: broken, or without any copy left."""
    snapshot = without_cooldowns(snapshot)
    found = without_broken_minimum(snapshot, with_topic_placements(goals, snapshot))
    before = Proposal(snapshot, found, ())
    broken = {snapshot.id(row) for row in _broken(before)}
    racks = {violation.id for violation in rack_violations(before)}
    return sorted(broken | racks | {*unavailable(snapshot)})


def _broken(before: Proposal) -> set[int]:
    """Rows with a leader that dead brokers, failed directories, pins or placements force out."""
    snapshot, forced = before.snapshot, before.forced
    gone = snapshot.in_state({BrokerState.DEAD})[snapshot.replica_position]
    gone |= snapshot.in_failed_dir
    rows = np.bincount(snapshot.replica_row[gone], minlength=len(snapshot)) > 0
    rows &= snapshot.partitions.leader != NO_BROKER
    return {*np.flatnonzero(rows | forced.outside_pins | forced.off_placement).tolist()}


def _plan(snapshot: Snapshot, goals: Goals, racks: Sequence[int], solve: Solve) -> Plan | None:
    """The plan with the fewest moves, or one with more where that repairs more racks."""
    proposal = Proposal(snapshot, goals, ())
    if not proposal.forced.rows.any() and not racks:
        return None
    needed = np.maximum(proposal.forced.replicas, _missing_racks(proposal, racks))
    fewest = {"replica_moves": int(needed.sum())}
    if goals.rack_rule is RackRule.EVEN:
        fewest = {}
    plan = with_fewest_moves(snapshot, goals, fewest, solve)
    if isinstance(plan, str):
        raise GuardrailRefused(f"cannot repair the cluster: {plan}")
    if fewest and len(plan.repaired) < len(racks):
        more = solve(snapshot, goals).best
        if more is not None and len(more.repaired) > len(plan.repaired):
            return more
    return plan


def _refuse_small_budgets(proposal: Proposal, racks: Sequence[int]) -> None:
    """Raise GuardrailRefused where the budgets allow no repair at all; racks: rows to spread."""
    forced = proposal.forced
    needed = np.maximum(forced.replicas, _missing_racks(proposal, racks))
    rows = np.flatnonzero(forced.rows | (needed > 0)).tolist()
    if why := barring_budget(proposal, rows, needed):
        raise GuardrailRefused(f"cannot repair the cluster: {why}")


def _missing_racks(proposal: Proposal, rows: Sequence[int]) -> Ints:
    """(n,) new replicas that rows need at least to be spread over all racks that take replicas."""
    snapshot = proposal.snapshot
    members = snapshot.broker
    usable = {b.rack for b in snapshot.header.brokers if b.state in TAKING}
    found = np.zeros(len(snapshot), np.int64)
    for row in rows:
        replicas = snapshot.replicas(row)
        used = {members[b].rack for b in replicas if members[b].state is not BrokerState.DEAD}
        found[row] = max(0, min(len(replicas), len(usable)) - len(used & usable))
    return found
