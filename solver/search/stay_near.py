"""Stable plans: a new plan for almost the same cluster is almost the same plan.

Many plans have nearly the same F, and searches of slightly different problems end at different
ones. Between the plan found and an earlier one, this looks for the plan that is best once each
partition treated otherwise than in the earlier plan costs a little.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.ids import BrokerId
from model.plan.plan import Move, Plan
from model.snapshot.snapshot import Bools, Floats, Ints
from solver.budget import Budget
from solver.problem.placement import (
    EDGE,
    NOTHING,
    Placement,
    broker_costs,
    change_costs,
    deviations,
    is_allowed,
    loads_of,
    objective,
    tolerance_excess,
)
from solver.problem.problem import CAPACITY_SLACK, Problem
from solver.problem.rack_rule import keeps_racks
from solver.search.search import Search

DIFFERENCE_SHARE: Final = 0.25
"""Cost of a partition that the earlier plan treats otherwise, in costs of a move."""

NEAR_SHARE: Final = 0.05
"""Share of the search budget, beyond the search, for staying near an earlier plan."""

MOST_PAIRED: Final = 200
"""Changes that are considered two at a time, those of the largest gain first."""

MOST_DENSE: Final = 2_000_000
"""Largest size of the tables that this needs: pairs x brokers x load columns."""

EXCESS_COST: Final = 1e4
"""Cost of the excess over the tolerance, in costs of a move, while plans are changed."""

WORK_PER_SHIFT: Final = 2e-8
"""Work units for the change of one broker by one considered change; measured."""

log = logging.getLogger("plimsoll.solver")


def stay_near(search: Search, earlier: Plan) -> None:
    """Replace the incumbent by a plan nearer to `earlier`, where that costs little.

    `earlier` may be of another snapshot of the cluster; what rules or brokers no longer allow is
    left out. The plan with the least F + `DIFFERENCE_SHARE` x differences is kept, of the incumbent
    and of those reached by changing single partitions from either plan to the other. It is never
    further outside the tolerance than the incumbent. The bound of F is not affected. Does nothing
    without an incumbent, or where a stop is requested. May use `NEAR_SHARE` of the search budget
    beyond it.
    """
    problem, found = search.problem, search.best
    if found is None or search.stops():
        return
    target = _allowed_part(problem, earlier.moves, found)
    rows = np.flatnonzero(_differ(target, found))
    if not len(rows):
        return
    part = search.part(NEAR_SHARE * search.limits.work)
    path = _Path(problem, part, rows, (target, found, Placement.home(problem)))
    most = tolerance_excess(problem, found) + EDGE

    def value(placement: Placement) -> float:
        return objective(problem, placement) + path.difference * int(
            _differ(target, placement).sum()
        )

    best, least = found, value(found)
    for option in (0, 1):
        near = path.descend(option)
        if not is_allowed(problem, near) or tolerance_excess(problem, near) > most:
            continue
        if (reached := value(near)) < least - NOTHING:
            best, least = near, reached
    search.spend(part)
    if best is not found:
        log.info("near plan %s: F %.6g -> %.6g", earlier.hash, search.objective, least)
        search.keep(best, earlier.hash)


def _allowed_part(problem: Problem, moves: Iterable[Move], found: Placement) -> Placement:
    """The placement after those of the moves that are allowed here; forced rows as in `found`.

    Moves to brokers that are not in the snapshot, or with another number of replicas, are left out.
    """
    position = {broker: b for b, broker in enumerate(problem.brokers)}
    allowed = [move for move in moves if _may_be_made(problem, position, move)]
    target, kept = Placement.after(problem, allowed), problem.may.forced > 0
    kept[[problem.snapshot.row_of[move.id] for move in allowed]] = False
    return Placement(
        replicas=np.where(kept[:, None], found.replicas, target.replicas),
        leader=np.where(kept, found.leader, target.leader),
    )


def _may_be_made(problem: Problem, position: Mapping[BrokerId, int], move: Move) -> bool:
    """Whether the rules of a single row allow a move's replicas and leader."""
    row = problem.snapshot.find(move.id)
    if row is None or not {*move.replicas_after, move.leader_after} <= position.keys():
        return False
    held, led = [position[b] for b in move.replicas_after], position[move.leader_after]
    may, home = problem.may, problem.replicas[row]
    return (
        may.fixed_reason[row] == 0
        and len(held) == int((home >= 0).sum())
        and bool(may.may_hold(row, home)[held].all())
        and bool(may.may_lead(row, home, int(problem.leader[row]))[led])
        and keeps_racks(problem, row, held)
    )


def _differ(one: Placement, other: Placement) -> Bools:
    """(n,) rows whose set of brokers or leader differs."""
    sets = np.sort(one.replicas, axis=1) != np.sort(other.replicas, axis=1)
    differ: Bools = sets.any(axis=1) | (one.leader != other.leader)
    return differ


@dataclass(slots=True)
class _Options:
    """One considered change for each of C rows: to the same option."""

    brokers: Ints
    """(C, 2M) brokers whose load changes; 0 as filler, without a change."""
    shift: Floats
    """(C, 2M, D) change of their loads, in the columns' units."""
    count: Ints
    """(C, 2M) change of their number of replicas."""
    cost: Floats
    """(C,) change of the cost of changes and of differences, in units of F."""


class _Path:
    """Plans in which each of C rows is as in one of three placements."""

    def __init__(
        self, problem: Problem, budget: Budget, rows: Ints, options: tuple[Placement, ...]
    ) -> None:
        self._problem, self._budget = problem, budget
        self._rows, self._options = rows, options
        self.difference = DIFFERENCE_SHARE * self._problem.costs.move
        """Cost of one row that is not as in the first of the options, in units of F."""
        changed = rows.tolist()
        self._costs = np.array(
            [
                change_costs(self._problem, option, changed)
                + self.difference * _differ(options[0], option)[rows]
                for option in options
            ]
        )
        self._legal = np.ones(self._costs.shape, np.bool_)
        self._legal[2] = self._problem.may.forced[rows] == 0

    def descend(self, start: int) -> Placement:
        """Change one row at a time, or two where one does not gain, from all rows as in `start`.

        The change with the largest gain comes first. Ends when none gains, or the search budget is
        exhausted.
        """
        problem, options = self._problem, self._options
        chosen = np.full(len(self._rows), start)
        changes = [self._changes(chosen, to) for to in range(len(options))]
        placement = self._placement(chosen)
        loads = loads_of(problem, placement)
        held = placement.replicas[placement.replicas >= 0]
        count = np.bincount(held, minlength=len(problem.brokers))
        while not self._budget.over():
            gains = np.array([self._gains(c, loads, count) for c in changes])
            self._budget.work += WORK_PER_SHIFT * sum(c.shift.size for c in changes)
            gains[~self._legal] = -np.inf
            gains[chosen, np.arange(len(chosen))] = -np.inf
            best = [int(gains.argmax())]
            if gains.flat[best[0]] <= NOTHING:
                best = self._best_pair(changes, gains, loads, count)
            for to, at in (divmod(b, len(chosen)) for b in best):
                change = changes[to]
                np.add.at(loads, change.brokers[at], change.shift[at])
                np.add.at(count, change.brokers[at], change.count[at])
                chosen[at] = to
                for other, known in enumerate(changes):
                    self._renew(known, chosen, other, at)
            if not best:
                break
        return self._placement(chosen)

    def _best_pair(
        self, changes: list[_Options], gains: Floats, loads: Floats, count: Ints
    ) -> list[int]:
        """Two changes, as positions in `gains`, that gain most together; [] where none gain."""
        brokers, width = loads.shape
        most = int(min(MOST_PAIRED, (MOST_DENSE / (brokers * width)) ** 0.5))
        order = np.argsort(-gains, axis=None, kind="stable")[:most]
        order = order[np.isfinite(gains.flat[order])]
        shift, added = np.zeros((len(order), brokers, width)), np.zeros((len(order), brokers))
        cost, row = np.zeros(len(order)), order % gains.shape[1]
        for i, (to, at) in enumerate(zip(order // gains.shape[1], row, strict=True)):
            np.add.at(shift[i], changes[to].brokers[at], changes[to].shift[at])
            np.add.at(added[i], changes[to].brokers[at], changes[to].count[at])
            cost[i] = changes[to].cost[at]
        before, largest, pair = self._costs_of(loads[None])[0], NOTHING, list[int]()
        for i in range(len(order) - 1):
            both = shift[i] + shift[i + 1 :]
            after, now = loads + both, count + added[i] + added[i + 1 :]
            gain = before - self._costs_of(after) - cost[i] - cost[i + 1 :]
            over = (after > self._problem.allowed * (1 + CAPACITY_SLACK)) & (both > 0)
            crowded = (now > self._problem.allowed_replicas) & (now > count)
            gain[over.any(axis=(1, 2)) | crowded.any(axis=1) | (row[i] == row[i + 1 :])] = -np.inf
            self._budget.work += WORK_PER_SHIFT * both.size
            k = int(gain.argmax())
            if gain[k] > largest:
                largest, pair = float(gain[k]), [int(order[i]), int(order[i + 1 + k])]
        return pair

    def _costs_of(self, loads: Floats) -> Floats:
        """(N,) cost of the deviations of N tables of loads, (N, B, D)."""
        problem = self._problem
        relative = loads[:, :, problem.column] * problem.slope - 1.0
        relative[:, ~problem.may.holding] = 0.0
        flat = relative.reshape(-1, relative.shape[2])
        costs: Floats = self._value(flat).reshape(relative.shape[:2]).sum(axis=1)
        return costs

    def _placement(self, chosen: Ints) -> Placement:
        replicas, leader = self._options[0].replicas.copy(), self._options[0].leader.copy()
        for at, option in enumerate(self._options):
            rows = self._rows[chosen == at]
            replicas[rows], leader[rows] = option.replicas[rows], option.leader[rows]
        return Placement(replicas=replicas, leader=leader)

    def _changes(self, chosen: Ints, to: int) -> _Options:
        size, width = len(self._rows), 2 * self._problem.replicas.shape[1]
        made = _Options(
            brokers=np.zeros((size, width), np.int64),
            shift=np.zeros((size, width, self._problem.lead.shape[1])),
            count=np.zeros((size, width), np.int64),
            cost=np.zeros(size),
        )
        for at in range(size):
            self._renew(made, chosen, to, at)
        return made

    def _renew(self, made: _Options, chosen: Ints, to: int, at: int) -> None:
        """Work out what changing one row to the option `to` changes on its brokers."""
        problem, row = self._problem, int(self._rows[at])
        made.brokers[at], made.shift[at], made.count[at] = 0, 0.0, 0
        slot: dict[int, int] = {}
        for option, sign in ((self._options[chosen[at]], -1), (self._options[to], 1)):
            for broker in option.holders(row):
                k = slot.setdefault(broker, len(slot))
                leads = broker == int(option.leader[row])
                made.brokers[at, k] = broker
                made.shift[at, k] += sign * (problem.lead if leads else problem.follow)[row]
                made.count[at, k] += sign
        made.cost[at] = self._costs[to, at] - self._costs[chosen[at], at]

    def _gains(self, change: _Options, loads: Floats, count: Ints) -> Floats:
        """(C,) how much each change lowers F with differences; -inf where a limit forbids it."""
        problem, brokers = self._problem, change.brokers
        after = loads[brokers] + change.shift
        before = self._value(deviations(problem, loads))[brokers].sum(axis=1)
        relative = after[:, :, problem.column] * problem.slope[brokers] - 1.0
        relative[~problem.may.holding[brokers]] = 0.0
        flat = relative.reshape(-1, relative.shape[2])
        gain: Floats = before - self._value(flat).reshape(brokers.shape).sum(axis=1) - change.cost
        over = (after > problem.allowed[brokers] * (1 + CAPACITY_SLACK)) & (change.shift > 0)
        crowded = count[brokers] + change.count > problem.allowed_replicas[brokers]
        gain[over.any(axis=(1, 2)) | (crowded & (change.count > 0)).any(axis=1)] = -np.inf
        return gain

    def _value(self, relative: Floats) -> Floats:
        """(B,) cost of (B, K) deviations, with the excess over the tolerance where it is first."""
        problem = self._problem
        value = broker_costs(problem, relative)
        if problem.goals.tolerance_first and not problem.band:
            beyond = np.maximum(0.0, np.abs(relative) - problem.tolerance)
            value = value + EXCESS_COST * problem.costs.move * (beyond * problem.weight).sum(axis=1)
        return value
