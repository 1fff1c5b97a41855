"""Limits of brokers and of the whole plan, as sums bounded while a requirement is kept.

Loads are rounded down and limits are rounded up, so what is infeasible here is truly infeasible.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from model.goals.goals import Budgets
from model.snapshot.snapshot import Floats, Ints, Resource
from solver.infeasible.assumptions import BUDGETS, REPLICA_LIMIT, Requirement, RequirementKind
from solver.infeasible.feasibility import Feasibility, Sum
from solver.problem.problem import sum_loads

LOAD_UNITS: Final = 2**44
"""Integer units of a dimension's whole load; sums of twice that over 1,000 brokers fit 64 bits."""

ROOM_SLACK: Final = 2e-9
"""Share by which limits are enlarged; more than the evaluator tolerates."""

BUDGET_OF: Final = {name: Requirement(RequirementKind.BUDGET, i) for i, name in enumerate(BUDGETS)}

Cells = Mapping[tuple[int, int], Sum]
"""Counts by row and broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedSum:
    """A sum that does not exceed `room` while its requirement is kept.

    Its limit is `now`, in percent of a capacity, moves, replicas or `scale` bytes.
    Under another limit x the sum may reach `nothing + each * x`.
    """

    requirement: Requirement
    total: Sum
    room: int
    """By the limit, or the present value where that is larger."""
    nothing: int
    each: int
    now: int
    scale: int = 1
    unlimited: Sum = 0
    """Positive where no other limit suffices, as for copies of unknown size."""


def keep_limits(feasibility: Feasibility) -> list[LimitedSum]:
    """Post the limits of brokers and budgets that can bind, each under its requirement.

    Call once for a model, before requirements are fixed. Returns the limits in order: capacities,
    replicas per broker, budgets.
    """
    limits = [*_capacities(feasibility), *_replica_limits(feasibility), *_budgets(feasibility)]
    for limit in limits:
        posted = feasibility.model.add(limit.total <= limit.room)
        feasibility.when(limit.requirement, posted)
    return limits


class _Loads:
    """Load of each broker in one dimension, as sums over the decisions.

    Rows without decisions that may move are pooled into one divisible mass, which can
    only make fewer problems infeasible.
    """

    def __init__(self, feasibility: Feasibility, lead: Floats, follow: Floats, unit: float) -> None:
        self._feasibility, self._unit = feasibility, unit
        self._lead, self._follow = lead[:, None], follow[:, None]
        self._spare = self._spread_rest() if len(self._rest) else {}

    def of(self, broker: int) -> Sum:
        """Load of a broker, without partitions that have no leader to copy from, in units."""
        found, rows = self._feasibility, self._feasibility.rows
        variables = [found.on[row, broker] for row in rows]
        single = self._feasibility.problem.rf == 1
        units = [self._units(self._lead[r] if single[r] else self._follow[r]) for r in rows]
        shared = [row for row in rows if not single[row]]
        variables += [found.lead[row, broker] for row in shared]
        units += [self._units(self._lead[r]) - self._units(self._follow[r]) for r in shared]
        total = cp_model.LinearExpr.weighted_sum(variables, units)
        return total + self._spare.get(broker, 0)

    @cached_property
    def stuck(self) -> list[float]:
        """(places,) load of partitions without a leader."""
        rows = np.flatnonzero(self._feasibility.problem.leader < 0)
        return [*self._before(rows).tolist(), *(0.0 for _ in self._feasibility.added)]

    def _units(self, load: Floats) -> int:
        return int(load[0] / self._unit)

    @cached_property
    def _rest(self) -> Ints:
        rest = self._feasibility.problem.leader >= 0
        rest[list(self._feasibility.rows)] = False
        return np.flatnonzero(rest)

    def _before(self, rows: Ints) -> Floats:
        """(B,) load of some rows in the snapshot."""
        problem = self._feasibility.problem
        found: Floats = sum_loads(
            problem.replicas[rows],
            problem.leader[rows],
            self._lead[rows],
            self._follow[rows],
            len(problem.brokers),
        )[:, 0]
        return found

    def _spread_rest(self) -> dict[int, cp_model.IntVar]:
        found, model = self._feasibility, self._feasibility.model
        before = self._before(self._rest)
        whole = int(before.sum() / self._unit)
        spare = {b: model.new_int_var(0, whole, f"rest[{b}]") for b in found.places}
        model.add(cp_model.LinearExpr.sum(list(spare.values())) == whole)
        for b, alive in enumerate(found.problem.may.alive.tolist()):
            if not alive:
                most = math.ceil(before[b] / self._unit) + 1
                found.when(Requirement(RequirementKind.STATE, b), model.add(spare[b] <= most))
        self._keep_staying(spare)
        return spare

    def _keep_staying(self, spare: dict[int, cp_model.IntVar]) -> None:
        """Make rows that may not move a fixed part of the mass."""
        found = self._feasibility
        why = found.problem.may.fixed_reason[self._rest]
        reasons = np.unique(why[why > 0]).tolist()
        each = {r - 1: self._before(self._rest[why == r]) for r in reasons}
        for b in range(len(found.problem.brokers)):
            kept = [
                found.keep(Requirement(RequirementKind.STAYS, r)) * int(load[b] / self._unit)
                for r, load in each.items()
                if load[b] > 0
            ]
            if kept:
                found.model.add(spare[b] >= cp_model.LinearExpr.sum(kept))


def _capacities(feasibility: Feasibility) -> Iterator[LimitedSum]:
    problem = feasibility.problem
    resources = problem.snapshot.header.resources
    for d, dimension in enumerate(problem.dimensions):
        resource = dimension.measure
        whole = float(problem.loads_before[:, d].sum())
        if not isinstance(resource, Resource) or whole <= 0:
            continue
        capacity = _capacity(feasibility, resource)
        limit, unit = problem.goals.limit_of(resource), whole / LOAD_UNITS
        before = [*problem.loads_before[:, d].tolist(), *(0.0 for _ in feasibility.added)]
        tight = {
            b: most
            for b, size in capacity.items()
            if (most := max(limit * size, before[b])) < whole
        }
        if not tight:
            continue
        loads = _Loads(feasibility, problem.lead[:, d], problem.follow[:, d], unit)
        for b, most in tight.items():
            yield LimitedSum(
                requirement=Requirement(RequirementKind.CAPACITY, b, resources.index(resource)),
                total=loads.of(b),
                room=math.ceil((most * (1 + ROOM_SLACK) - loads.stuck[b]) / unit),
                nothing=math.ceil(-loads.stuck[b] / unit),
                each=math.ceil(capacity[b] / 100 / unit),
                now=int(limit * 100),
            )


def _capacity(feasibility: Feasibility, resource: Resource) -> dict[int, float]:
    """Known capacities; an added broker has the least of them."""
    brokers = feasibility.problem.snapshot.header.brokers
    known = {
        b: broker.capacity[resource]
        for b, broker in enumerate(brokers)
        if resource in broker.capacity
    }
    if len(known) == len(brokers):
        least = min(known.values())
        known |= dict.fromkeys(feasibility.places[len(brokers) :], least)
    return known


def _replica_limits(feasibility: Feasibility) -> Iterator[LimitedSum]:
    problem = feasibility.problem
    limit, one = problem.goals.replicas_per_broker, np.ones(len(problem.leader))
    if limit >= len(problem.leader):
        return
    loads = _Loads(feasibility, one, one, 1.0)
    held = np.bincount(
        problem.replicas[problem.replicas >= 0], minlength=len(feasibility.places)
    ).tolist()
    for b in feasibility.places:
        stuck = int(loads.stuck[b])
        yield LimitedSum(
            requirement=REPLICA_LIMIT,
            total=loads.of(b),
            room=max(limit, held[b]) - stuck,
            nothing=-stuck,
            each=1,
            now=limit,
        )


def _budgets(feasibility: Feasibility) -> Iterator[LimitedSum]:
    budgets = feasibility.problem.goals.budgets
    if budgets == Budgets():
        return
    new, gone = _changes(feasibility)
    topic = feasibility.problem.snapshot.partitions.topic

    def counted(
        name: str, totals: list[Sum], scale: int = 1, unlimited: Sum = 0
    ) -> Iterator[LimitedSum]:
        limit = getattr(budgets, name)
        if limit is not None:
            now = math.ceil(limit / scale)
            for total in totals:
                yield LimitedSum(
                    requirement=BUDGET_OF[name],
                    total=total,
                    room=now,
                    nothing=0,
                    each=1,
                    now=now,
                    scale=scale,
                    unlimited=unlimited,
                )

    yield from counted("replica_moves", [_sum(gone.values())])
    yield from counted("leader_changes", [_led(feasibility)])
    yield from counted("replica_moves_per_topic", _by(gone, lambda row, _: int(topic[row])))
    yield from counted("replica_moves_in_per_broker", _by(new, lambda _, b: b))
    yield from counted("replica_moves_out_per_broker", _by(gone, lambda _, b: b))
    if budgets.partitions is not None or budgets.partitions_per_topic is not None:
        changed = _changed(feasibility, gone)
        yield from counted("partitions", [_sum(changed.values())])
        yield from counted("partitions_per_topic", _by(changed, lambda row, _: int(topic[row])))
    if budgets.bytes is not None:
        size = feasibility.problem.copied_bytes
        scale = max(1, int(float(size.sum()) * 4) // LOAD_UNITS)
        sizes = (size // scale).tolist()
        copied = _sum(left * sizes[row] for (row, _), left in gone.items())
        local = feasibility.problem.snapshot.partitions.local_bytes
        unknown = _sum(left for (row, _), left in gone.items() if size[row] and local[row] < 0)
        yield from counted("bytes", [copied], scale, unknown)


def _changes(feasibility: Feasibility) -> tuple[Cells, Cells]:
    """New and leaving replicas; a kept row has equally many of both."""
    on = feasibility.on
    home = {row: feasibility.home(row) for row in feasibility.rows}
    new = {(r, b): v for (r, b), v in on.items() if b not in home[r]}
    gone = {(r, b): feasibility.missing(r, on[r, b]) for r, held in home.items() for b in held}
    return new, gone


def _led(feasibility: Feasibility) -> Sum:
    leader = feasibility.problem.leader.tolist()
    return _sum(
        feasibility.missing(row, feasibility.lead[row, leader[row]]) for row in feasibility.rows
    )


def _changed(feasibility: Feasibility, gone: Cells) -> Cells:
    """By row: at least 1 where it gets a new replica or another leader."""
    leader = feasibility.problem.leader.tolist()
    left: dict[int, list[Sum]] = defaultdict(list)
    for (row, _), variable in gone.items():
        left[row].append(variable)
    found: dict[tuple[int, int], Sum] = {}
    for row in feasibility.rows:
        changed = feasibility.model.new_bool_var(f"changed[{row}]")
        led = feasibility.missing(row, feasibility.lead[row, leader[row]])
        feasibility.model.add_max_equality(changed, [led, *left[row]])
        found[row, 0] = changed
    return found


def _by(cells: Cells, key: Callable[[int, int], int]) -> list[Sum]:
    found: dict[int, list[Sum]] = defaultdict(list)
    for (row, broker), count in cells.items():
        found[key(row, broker)].append(count)
    return [_sum(found[k]) for k in sorted(found)]


def _sum(terms: Iterable[Sum]) -> Sum:
    return cp_model.LinearExpr.sum(list(terms))
