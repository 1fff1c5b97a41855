"""A placement of every row, and its value by the solver's own arithmetic."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.plan.plan import Move
from model.snapshot.snapshot import Bools, Count, Floats, Ints
from solver.budget import Budget
from solver.problem.problem import CAPACITY_SLACK, Problem, membership, sum_loads
from solver.problem.rack_rule import keeps_racks

WORK_OF_GAIN: Final = 2e-4
"""Work units charged for evaluating one change; measured."""

EDGE: Final = 1e-9
"""Deviation beyond the tolerance, as a share of the mean, that counts as rounding."""

NOTHING: Final = 1e-12
"""Differences of F below this are rounding errors of floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the replicas of each of n rows lie, and which broker leads.

    Brokers are positions in `Problem.brokers`; M is the largest replication factor.
    """

    replicas: Ints
    """(n, M) broker positions of each row, in any order; -1 fills shorter rows."""
    leader: Ints
    """(n,) position of the leading broker, -1 for none."""

    @classmethod
    def home(cls, problem: Problem) -> "Placement":
        """Return the placement that the snapshot has, before any move."""
        return cls(replicas=problem.replicas, leader=problem.leader)

    @classmethod
    def after(cls, problem: Problem, moves: Iterable[Move]) -> "Placement":
        """Return the placement after moves; those of unknown partitions change nothing.

        Replicas are in the order of `replicas_after`. Raises KeyError for a replica or leader on a
        broker that the problem does not have, and ValueError for more than M replicas.
        """
        replicas, leader = problem.replicas.copy(), problem.leader.copy()
        position = {broker: b for b, broker in enumerate(problem.brokers)}
        for move in moves:
            row = problem.snapshot.find(move.id)
            if row is not None:
                replicas[row] = -1
                held = [position[b] for b in move.replicas_after]
                replicas[row, : len(held)] = held
                leader[row] = position[move.leader_after]
        return cls(replicas=replicas, leader=leader)

    @classmethod
    def of(cls, on: Bools, leader: Ints, most: int) -> "Placement":
        """Build a placement from (n, B) membership and (n,) leaders, -1 for none.

        `most` is M, which no row of `on` may exceed; each row lists its brokers in ascending order.
        """
        order = np.argsort(~on, axis=1, kind="stable")[:, :most]
        held = np.take_along_axis(on, order, axis=1)
        return cls(replicas=np.where(held, order, -1), leader=leader)

    def on(self, brokers: int) -> Bools:
        """Return the (n, B) membership of replicas on B `brokers`.

        Needs n x B bytes, so it is meant for sizes of the exact model.
        """
        return membership(self.replicas, brokers)

    def holders(self, row: int) -> list[int]:
        """Return the broker positions of one row in ascending order."""
        return sorted(b for b in self.replicas[row].tolist() if b >= 0)

    def same_as(self, other: "Placement") -> bool:
        """Return whether two placements have the same leaders and replicas, in the same order."""
        return np.array_equal(self.replicas, other.replicas) and np.array_equal(
            self.leader, other.leader
        )

    def reverted(self, problem: Problem, row: int) -> "Placement":
        """Return a copy in which one row is as the snapshot has it."""
        replicas, leader = self.replicas.copy(), self.leader.copy()
        replicas[row], leader[row] = problem.replicas[row], problem.leader[row]
        return Placement(replicas=replicas, leader=leader)


def changed_rows(problem: Problem, placement: Placement) -> list[int]:
    """List the rows, ascending, whose set of brokers or leader differs from the snapshot.

    Rows that may not stay as they are always count, since a new order of their list may be what
    changes. Every row must have as many replicas as in the snapshot.
    """
    rows = np.flatnonzero((placement.replicas != problem.replicas).any(axis=1))
    moved = _lacking(placement.replicas[rows], problem.replicas[rows]).any(axis=1)
    led = np.flatnonzero(placement.leader != problem.leader)
    forced = np.flatnonzero(problem.may.forced)
    return sorted({*rows[moved].tolist(), *led.tolist(), *forced.tolist()})


def _lacking(lists: Ints, others: Ints) -> Bools:
    """(m, M) brokers in `lists`, (m, M), that are not in the same row of `others`, (m, M)."""
    shared = (lists[:, :, None] == others[:, None, :]).any(axis=2)
    lacking: Bools = ~shared & (lists >= 0)
    return lacking


def loads_of(problem: Problem, placement: Placement) -> Floats:
    """Return the (B, D) loads of a placement, each column in its own unit."""
    return sum_loads(
        placement.replicas, placement.leader, problem.lead, problem.follow, len(problem.brokers)
    )


def deviations(problem: Problem, loads: Floats) -> Floats:
    """Return (B, K) utilisation / mean - 1, from (B, D) loads in the columns' units.

    0.1 is 10 % over the mean; 0 for brokers that are not balanced.
    """
    relative: Floats = loads[:, problem.column] * problem.slope - 1.0
    relative[~problem.may.holding] = 0.0
    return relative


def objective(problem: Problem, placement: Placement) -> float:
    """Compute F, the imbalance score: imbalance plus the cost of the changes.

    The formula is in docs/explanation/planning.md; `model.evaluate` computes the same
    independently.
    """
    imbalance = deviation_cost(problem, loads_of(problem, placement))
    return imbalance + topic_cost(problem, placement) + change_cost(problem, placement)


def deviation_cost(problem: Problem, loads: Floats) -> float:
    """Compute the part of F for the imbalance over brokers, from (B, D) loads.

    Balance of single topics is not included; see `topic_cost`.
    """
    return float(broker_costs(problem, deviations(problem, loads)).sum())


def broker_costs(problem: Problem, relative: Floats) -> Floats:
    """Return the (B,) cost of (B, K) deviations as of `deviations`, in units of F.

    Weighted squares, or under `band` the weighted excess over the tolerance. Also takes a
    selection of brokers.
    """
    if problem.band:
        excess = np.maximum(0.0, np.abs(relative) - problem.tolerance)
        each: Floats = excess_price(problem) * (excess * problem.weight).sum(axis=1)
        return each
    squares: Floats = (relative**2 * problem.weight).sum(axis=1)
    return squares


def tolerance_excess(problem: Problem, placement: Placement) -> float:
    """Sum weight x deviation beyond the tolerance over brokers and balanced dimensions.

    In shares of the mean, less rounding: 0 where every broker is inside. Columns of weight 0
    do not count.
    """
    relative = np.abs(deviations(problem, loads_of(problem, placement)))
    beyond = np.maximum(0.0, relative - problem.tolerance)
    beyond[beyond <= EDGE] = 0.0
    return float((beyond * problem.weight).sum())


def excess_price(problem: Problem) -> float:
    """Return the cost, in units of F, of a deviation of one mean load beyond the band."""
    return problem.goals.excess_price * problem.costs.move


def topic_cost(problem: Problem, placement: Placement) -> float:
    """Compute the part of F that balances topics one by one.

    0 unless a goal does so with a positive weight, and always under `band`.
    """
    return sum(
        weight * float(topic_imbalance(problem, placement, measure).sum())
        for measure, weight in problem.topic_share
    )


def topic_imbalance(problem: Problem, placement: Placement, measure: Count) -> Floats:
    """Return (topics,) squared deviations of the counts on brokers, summed and weighted.

    `measure` counts replicas or leaders, and deviations are from the mean over holding brokers.
    The weight is the topic's share of all of them; that of the goal is not applied.
    """
    count = topic_counts(problem, placement, measure)[:, problem.may.holding]
    total = topic_totals(problem, measure)
    level = np.maximum(total, 1.0) / max(1, count.shape[1])
    squares = ((count / level[:, None] - 1.0) ** 2).sum(axis=1)
    share: Floats = total / max(1.0, float(total.sum())) * squares
    return share


def topic_totals(problem: Problem, measure: Count) -> Floats:
    """Return (topics,) the number of replicas of each topic in the snapshot, or of its leaders.

    `measure` is `TOPIC_REPLICAS` or `TOPIC_LEADERS`; rows without a leader count for none.
    """
    topics = len(problem.snapshot.header.topics)
    each = problem.rf if measure is Count.TOPIC_REPLICAS else problem.leader >= 0
    return np.bincount(problem.snapshot.partitions.topic, each, minlength=topics).astype(np.float64)


def topic_counts(problem: Problem, placement: Placement, measure: Count) -> Ints:
    """Return (topics, B) replicas or leaders of each topic on each broker.

    `measure` is `TOPIC_REPLICAS` or `TOPIC_LEADERS`; topics are in the header's order.
    """
    topic, brokers = problem.snapshot.partitions.topic, len(problem.brokers)
    lists = placement.replicas
    if measure is Count.TOPIC_LEADERS:
        lists = placement.leader[:, None]
    rows, at = np.nonzero(lists >= 0)
    key = topic[rows] * brokers + lists[rows, at]
    topics = len(problem.snapshot.header.topics)
    found: Ints = np.bincount(key, minlength=topics * brokers)
    return found.reshape(topics, brokers)


def change_cost(problem: Problem, placement: Placement) -> float:
    """Compute the part of F that is the cost of the changes.

    Replicas that every allowed placement adds are free.
    """
    rows = changed_rows(problem, placement)
    return float(change_costs(problem, placement, rows).sum())


def change_costs(problem: Problem, placement: Placement, changed: list[int]) -> Floats:
    """Return the cost of each changed row, (changed,), in units of F.

    `changed` are row positions, in any order. Replicas that every allowed placement adds are
    free; leader changes never are.
    """
    rows = np.array(changed, np.int64)
    new = _lacking(placement.replicas[rows], problem.replicas[rows]).sum(axis=1)
    free = problem.may.least_new[rows]
    paid: Floats = np.maximum(0, new - free) * problem.costs.replica[rows]
    led = placement.leader[rows] != problem.leader[rows]
    paid += led * problem.costs.leader
    return paid


def gains(problem: Problem, placement: Placement) -> dict[int, float]:
    """Compute, by changed row, how much F would rise if it alone were reverted.

    Whether reverting is allowed is not considered. Negative where F would fall, as for rows that
    have to move although that raises F.
    """
    relative = deviations(problem, loads_of(problem, placement))
    rows = changed_rows(problem, placement)
    prices = change_costs(problem, placement, rows)
    topics = topic_gains(problem, placement, rows)
    found = {}
    for row, price, topic in zip(rows, prices.tolist(), topics, strict=True):
        brokers, shift = row_shift(problem, placement, row)
        shift = shift[:, problem.column] * problem.slope[brokers]
        without = relative[brokers] - shift
        rise = broker_costs(problem, without) - broker_costs(problem, relative[brokers])
        found[row] = float(rise.sum()) + topic - price
    return found


def topic_gains(problem: Problem, placement: Placement, rows: list[int]) -> list[float]:
    """Compute, for each of `rows`, how much `topic_cost` would rise if it alone were reverted.

    In units of F and in the order of `rows`; all 0 unless topics are balanced one by one.
    """
    found = [0.0] * len(rows)
    if not problem.topic_share:
        return found
    cost = topic_cost(problem, placement)
    for at, row in enumerate(rows):
        found[at] = topic_cost(problem, placement.reverted(problem, row)) - cost
    return found


def row_shift(problem: Problem, placement: Placement, row: int) -> tuple[list[int], Floats]:
    """Return the brokers that hold a row before or after, and how their loads change.

    Brokers are ascending positions; changes are (brokers, D), after minus before, in the columns'
    units.
    """
    after = _row_loads(problem, placement, row)
    before = _row_loads(problem, Placement.home(problem), row)
    brokers = sorted({*after, *before})
    none = np.zeros(problem.lead.shape[1])
    shift = [after.get(b, none) - before.get(b, none) for b in brokers]
    return brokers, np.array(shift)


def _row_loads(problem: Problem, placement: Placement, row: int) -> dict[int, Floats]:
    led = int(placement.leader[row])
    return {
        b: problem.lead[row] if b == led else problem.follow[row] for b in placement.holders(row)
    }


def is_allowed(problem: Problem, placement: Placement) -> bool:
    """Return whether a placement keeps limits, racks and budgets and empties leaving brokers.

    It must also come as close to the tolerance as `most_excess` requires.

    Where new replicas and leaders may be is not checked, nor which rows may move: searches choose
    among what `Problem.may` allows. They check by this what they rounded or relaxed.
    """
    return (
        _keeps_limits(problem, placement)
        and keeps_budgets(problem, placement)
        and _keeps_tolerance(problem, placement)
        and all(
            keeps_racks(problem, row, placement.holders(row))
            for row in changed_rows(problem, placement)
        )
    )


def _keeps_limits(problem: Problem, placement: Placement) -> bool:
    """Whether limits hold, and replicas and leaders that had to leave a broker have left.

    A broker that is over its limit in the snapshot breaks it only by getting more.
    """
    size = len(problem.brokers)
    count = np.bincount(placement.replicas[placement.replicas >= 0], minlength=size)
    most = problem.allowed * (1 + CAPACITY_SLACK)
    rows = np.flatnonzero(problem.may.must_go.any(axis=1))
    gone = _lacking(problem.replicas[rows], placement.replicas[rows])
    demoted = np.flatnonzero(problem.may.demoted)
    return bool(
        (loads_of(problem, placement) <= most).all()
        and (count <= problem.allowed_replicas).all()
        and (gone >= problem.may.must_go[rows]).all()
        and (placement.leader[demoted] != problem.leader[demoted]).all()
    )


def _keeps_tolerance(problem: Problem, placement: Placement) -> bool:
    """Whether the excess over the tolerance is no more than what a plan must reach."""
    if problem.most_excess == np.inf:
        return True
    return tolerance_excess(problem, placement) <= problem.most_excess + EDGE


def keeps_budgets(problem: Problem, placement: Placement) -> bool:
    """Return whether the changes stay within every budget of the goals."""
    used = usage(problem, placement)
    budgets = problem.goals.budgets
    return all(limit is None or used[name] <= limit for name, limit in budgets.model_dump().items())


def usage(problem: Problem, placement: Placement) -> dict[str, int]:
    """Compute what the changes use of each budget, by its field name in `Budgets`.

    Those per topic or per broker are the largest use by any of them. Bytes are `copied_bytes` of
    each new replica; forced changes count as well.
    """
    rows = np.array(changed_rows(problem, placement), np.int64)
    topic, before = problem.snapshot.partitions.topic[rows], problem.replicas[rows]
    after = placement.replicas[rows]
    new, gone = _lacking(after, before), _lacking(before, after)
    each = new.sum(axis=1)
    led = placement.leader[rows] != problem.leader[rows]
    changed = led | (each > 0)
    return {
        "replica_moves": int(each.sum()),
        "bytes": int((each * problem.copied_bytes[rows]).sum()),
        "leader_changes": int(led.sum()),
        "replica_moves_per_topic": _most(topic, each),
        "replica_moves_in_per_broker": _most(after[new]),
        "replica_moves_out_per_broker": _most(before[gone]),
        "partitions": int(changed.sum()),
        "partitions_per_topic": _most(topic[changed]),
    }


def _most(keys: Ints, weights: Ints | None = None) -> int:
    """The largest number, or sum of weights, that any of the keys comes to; 0 without keys."""
    return int(np.bincount(keys, weights).max(initial=0))


def revert_needless(problem: Problem, placement: Placement, budget: Budget) -> Placement:
    """Revert changes that gain nothing in F, one at a time, those with the least gain first.

    Keeps forced rows and changes without which the placement would not be allowed. Charges its
    work to `budget` and returns the placement reached when nothing is left or it is exhausted.
    """
    while not budget.over():
        budget.work += WORK_OF_GAIN * len(changed_rows(problem, placement))
        gain = gains(problem, placement)
        needless = [
            row
            for row in sorted(gain, key=lambda r: (gain[r], r))
            if gain[row] <= NOTHING and not problem.may.forced[row]
        ]
        for row in needless:
            budget.work += WORK_OF_GAIN
            reverted = placement.reverted(problem, row)
            if is_allowed(problem, reverted):
                placement = reverted
                break
        else:
            break
    return placement
