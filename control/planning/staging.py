"""Split a large repair: what fits the budgets now; the rest is deferred."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from model.evaluate import counted_dimensions
from model.goals.goals import Budgets, Goal, Goals
from model.ids import BrokerId
from model.plan.proposal import Proposal
from model.plan.unplaceable import deferring, placeless
from model.rules.leaders import leaders_missing
from model.snapshot.snapshot import LEAVING, TAKING, BrokerState, Count, Ints, Snapshot, StorageKind
from model.units import bytes_text, count_text


def staged(
    snapshot: Snapshot,
    goals: Goals,
    *,
    waited: Collection[BrokerId] = (),
    hurried: Collection[int] = (),
    repair_dirs: bool = True,
    repair_rules: bool = True,
) -> tuple[Goals, int]:
    """Defer forced moves that exceed the budgets.

    Otherwise a rule that forces more moves than the budgets allow would leave no plan
    at all. Partitions with the fewest live replicas come first. Partitions without any
    allowed placement keep theirs.

    Parameters
    ----------
    waited
        Dead brokers that keep their replicas, because they may return or nobody agreed yet.
    hurried
        Rows that leave dead brokers even if these are waited for; nothing else moves then.
    repair_dirs
        Whether replicas may leave failed log directories.
    repair_rules
        Whether replicas may move that racks, pins or placement constraints alone forbid, and
        leaders change for minimum leaders alone.

    Returns
    -------
    The goals, and the number of partitions deferred for the budgets.
    """
    if not repair_rules:
        goals = without_broken_minimum(snapshot, goals.model_copy(update={"repair_racks": False}))
    proposal = Proposal(snapshot, goals, ())
    forced = np.flatnonzero(proposal.forced.rows).tolist()
    if not forced:
        return goals, 0
    lost = placeless(snapshot, goals)
    if not repair_rules:
        demoted = proposal.forced.demoted
        lost = lost | {r for r in forced if not (_leaves(snapshot, r) or demoted[r])}
    keep = [row for row in forced if row in lost or set(snapshot.replicas(row)) & set(waited)]
    if not repair_dirs:
        keep = sorted({*keep, *(row for row in forced if snapshot.lost_on(row))})
    if urgent := set(forced).intersection(hurried) - lost:
        keep = sorted(set(range(len(snapshot))) - urgent) if waited else keep
    rest = sorted(set(forced) - set(keep), key=lambda row: (_live(snapshot, row), row))
    budgets = _RemainingBudgets(proposal)
    over = [row for row in rest if not budgets.take(row)]
    return deferring(snapshot, goals, (*keep, *over)), len(over)


def spreading_by_number(snapshot: Snapshot, goals: Goals) -> Goals:
    """Goals that spread replicas by their number where no balanced load is measured or counts.

    Without any, every broker is as good as another to a plan, and one may get all that moves.
    """
    if any(counted.weight > 0 for counted in counted_dimensions(Proposal(snapshot, goals, ()))):
        return goals
    others = (goal for goal in goals.balance if goal.resource is not Count.REPLICAS)
    return goals.model_copy(update={"balance": (*others, Goal(resource=Count.REPLICAS))})


def without_cooldowns(snapshot: Snapshot) -> Snapshot:
    """The snapshot for a plan that was requested.

    Cooldowns keep plans from moving partitions to and fro.
    """
    header = snapshot.header.model_copy(update={"recent_moves": ()})
    return replace(snapshot, header=header)


def without_broken_minimum(snapshot: Snapshot, goals: Goals) -> Goals:
    """The goals without minimum leaders, if the snapshot breaks them already."""
    if any(leaders_missing(Proposal(snapshot, goals, ()))):
        return goals.model_copy(update={"min_leaders": ()})
    return goals


def barring_budget(proposal: Proposal, rows: Sequence[int], new: Ints | None = None) -> str:
    """Why the budgets allow the move of none of these rows, as a clause; empty where they do.

    new: (n,) new replicas that each needs at least; those that are forced if None.
    """
    goals = proposal.goals
    if goals.budgets == Budgets():
        return ""
    budgets, short = _RemainingBudgets(proposal, new), list[dict[str, int]]()
    for row in rows:
        short.append(budgets.exceeded(row))
        if not short[-1]:
            return ""
    for name in Budgets.model_fields:
        needs = [found[name] for found in short if name in found]
        if needs and len(needs) == len(rows):
            text = bytes_text if name == "bytes" else "{:,}".format
            limit = f"the budget {name} = {text(getattr(goals.budgets, name))}"
            least = text(min(needs))
            if len(rows) == 1:
                return f"{limit} does not allow the only move, which needs {least}; raise it"
            moves = count_text(len(rows), "move")
            return f"{limit} allows none of {moves}, the smallest needs {least}; raise it"
    return f"the budgets allow none of {count_text(len(rows), 'move')}; raise them" if rows else ""


class _RemainingBudgets:
    """Budgets of a plan, less what the moves taken so far need."""

    def __init__(self, proposal: Proposal, new: Ints | None = None) -> None:
        self._snapshot = proposal.snapshot
        self._new = proposal.forced.replicas if new is None else new
        self._demoted = proposal.forced.demoted
        self._budgets = proposal.goals.budgets
        brokers = self._snapshot.header.brokers
        self._leaving = {b.id for b in brokers if b.state in LEAVING}
        self._taking = sum(b.state in TAKING for b in brokers)
        self._domains = proposal.domains
        self._at = {b.id: at for at, b in enumerate(brokers)}
        self._spent = Counter[str]()

    def take(self, row: int) -> bool:
        """Take the least that moving a row needs; False if the budgets lack it."""
        spent = self._spent + self._needed(row)
        if any(count > self._most(name) for name, count in spent.items()):
            return False
        self._spent = spent
        return True

    def exceeded(self, row: int) -> dict[str, int]:
        """What a row alone needs of each budget that is too small for it."""
        found = self._needed(row).items()
        return {name.partition(" ")[0]: count for name, count in found if count > self._most(name)}

    def _needed(self, row: int) -> Counter[str]:
        partition, new = self._snapshot.row(row), int(self._new[row])
        leaves = partition.leader in self._leaving or self._may_not_lead(row)
        leaves |= bool(self._demoted[row])
        shared = partition.storage is StorageKind.SHARED
        found = Counter(
            {
                "replica_moves": new,
                "bytes": 0 if shared else new * max(0, partition.local_bytes),
                "leader_changes": int(leaves),
                "partitions": 1,
                f"partitions_per_topic {partition.id.topic}": 1,
                f"replica_moves_per_topic {partition.id.topic}": new,
                "replica_moves_in_per_broker": new,
            }
        )
        gone = self._leaving | self._snapshot.lost_on(row)
        for broker in set(partition.replicas) & gone:
            found[f"replica_moves_out_per_broker {broker}"] = 1
        return found

    def _may_not_lead(self, row: int) -> bool:
        """Whether pins or placement constraints forbid the current leader."""
        leader = self._snapshot.broker.get(self._snapshot.row(row).leader)
        domain = self._domains.of(row)
        if leader is None:
            return False
        racks = domain.placement.placement.replica_racks if domain.placement else None
        misplaced = racks is not None and leader.rack not in racks
        return misplaced or not domain.allowed[self._at[leader.id]]

    def _most(self, name: str) -> float:
        field = name.partition(" ")[0]
        limit: int | None = getattr(self._budgets, field)
        if limit is None:
            return float("inf")
        # The planner chooses which brokers get the replicas.
        return limit * (self._taking if field == "replica_moves_in_per_broker" else 1)


def _leaves(snapshot: Snapshot, row: int) -> bool:
    """Whether a row has a replica on a broker that is dead or draining, or on a failed disk."""
    leaving = any(snapshot.broker[b].state in LEAVING for b in snapshot.replicas(row))
    return leaving or bool(snapshot.lost_on(row))


def _live(snapshot: Snapshot, row: int) -> int:
    """Replicas of a row on brokers that are not dead, outside failed log directories."""
    whole = set(snapshot.replicas(row)) - snapshot.lost_on(row)
    return sum(snapshot.broker[b].state is not BrokerState.DEAD for b in whole)
