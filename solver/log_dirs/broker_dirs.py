"""The log directories of one broker, and what may lie where, as numpy columns."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from model.goals.goals import Goal
from model.snapshot.snapshot import Bools, Floats, Ints, Resource
from solver.problem.placement import Placement, excess_price
from solver.problem.problem import Problem

CLOSE: Final = 1e-4
"""A gap of this share of the objective is good enough."""


WORK_OF_CALL: Final = 1e-4
"""Work units of one evaluation, for any number of replicas; measured."""

WORK_OF_PLACE: Final = 2e-8
"""Work units for evaluating one replica in one directory, or one swap; measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDirs:
    """One broker with m log directories and k replicas that may be in several.

    A `where` is (k,) directories by position, -1 for an arrival without one.
    """

    broker: int
    """Position in the problem's brokers."""
    row: Ints
    """(k,) row of each replica, ascending."""
    size: Floats
    """(k,) bytes, above 0."""
    home: Ints
    """(k,) present directory, -1 for replicas that arrive."""
    price: Floats
    """(k,) cost of any directory but the present one; 0 for replicas that arrive."""
    fixed: Floats
    """(m,) bytes that stay where they are."""
    before: Floats
    """(m,) bytes before the plan."""
    capacity: Floats
    """(m,) bytes; 1 each where one is unknown."""
    limit: Floats
    """(m,) most bytes: the limit of the capacity, or the present bytes if more;
    infinite where the capacity is unknown."""
    open: Bools
    """(m,) may take new replicas."""
    weight: float
    floor: float
    """Bytes on the broker below which nothing is balanced."""
    tolerance: float
    excess: float | None
    """Under `band`, the cost of a deviation of one mean beyond the tolerance; otherwise None."""

    @property
    def total(self) -> float:
        """Bytes in all directories of the broker together, after the plan."""
        return float(self.fixed.sum() + self.size.sum())

    @property
    def slope(self) -> Floats:
        """(m,) deviation per byte: 1 / (capacity x mean utilisation of the broker)."""
        scale: Floats = self.capacity.sum() / (self.capacity * max(1.0, self.total))
        return scale

    def allowed(self, items: Ints) -> Bools:
        """Return (items, m) whether replicas may be in each directory, apart from capacity.

        `items` are positions among the k replicas. Besides open directories, the present one.
        """
        places = np.arange(len(self.open))
        may: Bools = self.open | (self.home[items, None] == places)
        return may

    def used(self, where: Ints) -> Floats:
        """Return the (m,) bytes in each directory for a `where`, (k,); -1 counts nowhere."""
        here = where >= 0
        sizes = self.size[here]
        added = np.bincount(where[here], sizes, minlength=len(self.fixed))
        return self.fixed + added.astype(np.float64)

    def fits(self, where: Ints) -> bool:
        """Return whether a `where`, (k,), keeps every directory within its limit of bytes."""
        return bool((self.used(where) <= self.limit).all())

    def cost(self, deviation: Floats) -> Floats:
        """Compute the cost of each deviation, in units of F; takes and returns any shape.

        Weighted squares, or under `band` the weighted excess over the tolerance. Deviations are
        shares of the broker's mean utilisation, 0 at the mean.
        """
        if self.excess is None:
            squares: Floats = self.weight * deviation * deviation
            return squares
        over: Floats = np.maximum(0.0, np.abs(deviation) - self.tolerance)
        return self.weight * self.excess * over

    def cost_slope(self, deviation: Floats) -> Floats:
        """Compute the derivative of each cost by its deviation, of the same shape.

        Under `band` it is 0 within the tolerance.
        """
        if self.excess is None:
            slopes: Floats = 2 * self.weight * deviation
            return slopes
        outside = np.abs(deviation) > self.tolerance
        return np.where(outside, np.sign(deviation) * self.weight * self.excess, 0.0)

    def change_cost(self, where: Ints) -> float:
        """Return the cost, in units of F, of the replicas that change directory in `where`, (k,).

        Arrivals cost nothing.
        """
        return float(self.price[where != self.home].sum())

    def counts(self, total: float) -> bool:
        """Return whether a broker with `total` bytes is balanced: one below the floor is not."""
        return total > 0 and total >= self.floor

    def deviation(self, used: Floats) -> Floats:
        """Return (m,) utilisation over that of the broker - 1, for (m,) bytes used.

        All 0 where the broker holds too few bytes to be balanced.
        """
        total = float(used.sum())
        if not self.counts(total):
            return np.zeros(len(used))
        relative: Floats = used * self.capacity.sum() / (self.capacity * total) - 1.0
        return relative

    def imbalance(self, used: Floats) -> float:
        """Add up the cost of all deviations, in units of F, for (m,) bytes used."""
        return float(self.cost(self.deviation(used)).sum())

    def objective(self, where: Ints) -> float:
        """Compute imbalance plus cost of changes of a `where`, (k,), in units of F."""
        return self.imbalance(self.used(where)) + self.change_cost(where)

    def only(self, keep: Bools) -> "BrokerDirs":
        """Return a copy with the replicas that the booleans `keep`, (k,), select.

        The others no longer count: their bytes are not added to `fixed`.
        """
        return replace(
            self,
            row=self.row[keep],
            size=self.size[keep],
            home=self.home[keep],
            price=self.price[keep],
        )


def find_dirs(problem: Problem, placement: Placement) -> Iterator[BrokerDirs]:
    """Yield the brokers that may take load and have two or more directories, by position.

    Replicas on shared storage or of size 0 or unknown are left out; those of unknown directory, or
    of rows that may not move, keep theirs. Weight and tolerance are those of the first goal for
    disk, or defaults without one. Nothing is yielded if its weight is 0 or no directory is known.
    """
    disks = [g for g in problem.goals.balance if g.resource is Resource.DISK]
    goal = disks[0] if disks else Goal(resource=Resource.DISK)
    if problem.snapshot.partitions.replica_dir is None or goal.weight == 0:
        return
    replicas = _find_replicas(problem, placement)
    listed = [len(b.log_dirs) for b in problem.snapshot.header.brokers]
    before = _bytes_before(problem, max(listed))
    for broker, count in enumerate(listed):
        if count > 1 and problem.may.alive[broker]:
            here = replicas.of(broker)
            yield _broker(problem, goal, broker, here, before[broker, :count])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replicas:
    """Replicas of a placement, by broker, then row."""

    row: Ints
    broker: Ints
    home: Ints
    """Position of the directory, -1 where unknown or where the replica arrives."""
    may: Bools
    """May be assigned a directory."""

    def of(self, broker: int) -> "_Replicas":
        first, last = np.searchsorted(self.broker, [broker, broker + 1])
        part = slice(int(first), int(last))
        return _Replicas(
            row=self.row[part], broker=self.broker[part], home=self.home[part], may=self.may[part]
        )


def _positions(problem: Problem) -> Ints:
    """(n, M) directory of each of the snapshot's replicas, -1 where unknown."""
    columns = problem.snapshot.partitions
    found = np.full(problem.replicas.shape, -1, np.int64)
    if columns.replica_dir is not None:
        found[problem.replicas >= 0] = columns.replica_dir
    return found


def _sizes(problem: Problem) -> Floats:
    """(n,) local bytes of one replica; 0 where unknown."""
    local = problem.snapshot.partitions.local_bytes
    return np.maximum(0, local).astype(np.float64)


def _bytes_before(problem: Problem, most: int) -> Floats:
    """(B, most) bytes in each directory, as far as directories are known."""
    at = _positions(problem)
    row, k = np.nonzero(at >= 0)
    key = problem.replicas[row, k] * most + at[row, k]
    size = len(problem.brokers) * most
    held = np.bincount(key, _sizes(problem)[row], minlength=size)
    return held.astype(np.float64).reshape(len(problem.brokers), most)


def _find_replicas(problem: Problem, placement: Placement) -> _Replicas:
    after, before = placement.replicas, problem.replicas
    same = after[:, :, None] == before[:, None, :]
    stays = same.any(axis=2)
    home = np.take_along_axis(_positions(problem), same.argmax(axis=2), axis=1)
    row, k = np.nonzero(after >= 0)
    broker, stays, home = after[row, k], stays[row, k], home[row, k]
    movable = (problem.may.fixed_reason[row] == 0) & (home >= 0)
    may = (~stays | movable) & (_sizes(problem)[row] > 0) & ~problem.shared[row]
    order = np.argsort(broker, kind="stable")
    return _Replicas(
        row=row[order], broker=broker[order], home=np.where(stays, home, -1)[order], may=may[order]
    )


def _broker(
    problem: Problem, goal: Goal, broker: int, here: _Replicas, before: Floats
) -> BrokerDirs:
    listed = problem.snapshot.header.brokers[broker].log_dirs
    known = [d.capacity_bytes for d in listed]
    limit = problem.goals.limit_of(Resource.DISK)
    row, home = here.row[here.may], here.home[here.may]
    stuck = ~here.may & (here.home >= 0)
    sizes = _sizes(problem)
    return BrokerDirs(
        broker=broker,
        row=row,
        size=sizes[row],
        home=home,
        price=np.where(home >= 0, problem.costs.replica[row], 0.0),
        fixed=np.bincount(here.home[stuck], sizes[here.row[stuck]], minlength=len(listed)).astype(
            np.float64
        ),
        before=before,
        capacity=np.array([1.0 if None in known else c for c in known], np.float64),
        limit=np.array([np.inf if c is None else limit * c for c in known], np.float64).clip(
            min=before
        ),
        open=np.array([not d.cordoned for d in listed], np.bool_),
        weight=goal.weight,
        floor=goal.floor,
        tolerance=goal.tolerance,
        excess=excess_price(problem) if problem.band else None,
    )
