"""The cheapest changes of goals or brokers that would make a plan possible."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from model.snapshot.snapshot import TAKING, Bools, BrokerState
from model.units import count_text
from solver.budget import Budget
from solver.cpsat.stopping import solve_stoppable
from solver.infeasible.assumptions import Requirement, RequirementKind
from solver.infeasible.feasibility import Feasibility
from solver.infeasible.limits import LimitedSum, keep_limits
from solver.infeasible.messages import budget_text, names_text, pin_text
from solver.infeasible.minimal_conflict import WORK_OF_TIME, affordable, modelled_rows, quick_solver
from solver.problem.eligibility import FIXED_REASONS, FixedReason
from solver.problem.problem import Problem

MOST_REPORTED: Final = 3
"""Alternatives reported; each avoids everything that those before it change."""

MOST_TRIED: Final = 10
"""Single changes tried where the cheapest combination was not proved."""

MOST_WORK: Final = 1.0
"""Work units for each alternative."""

_STEPS: Final = 100
"""Steps in which a budget of bytes is raised, as parts of its present limit."""

COST: Final[Mapping[RequirementKind, int]] = {
    RequirementKind.BUDGET: 5,
    RequirementKind.REPLICA_LIMIT: 5,
    RequirementKind.CAPACITY: 10,
    RequirementKind.RETURN: 30,
    RequirementKind.PIN: 80,
    RequirementKind.PLACEMENT: 80,
    RequirementKind.RACKS: 120,
    RequirementKind.NEW_BROKER: 150,
}
"""Cost to an operator of dropping a requirement, in moves of a budget."""

COST_OF_STATE: Final = {BrokerState.DRAINING: 100, BrokerState.DEAD: 300}
"""Not draining a broker; bringing one back. Other brokers take load again."""

COST_OF_STAYING: Final = {
    FixedReason.IN_COOLDOWN: 20,
    FixedReason.KEPT: 30,
    FixedReason.UNKNOWN: 40,
    FixedReason.EXCLUDED: 60,
    FixedReason.INTERNAL: 90,
}
_OTHER: Final = 60

COST_OF_MORE: Final = {RequirementKind.CAPACITY: 2}
"""Cost of one more percent; one more move, replica or step of bytes costs 1."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One requirement that is dropped, or whose limit is raised."""

    requirement: Requirement
    limit: int | None = None
    """The new limit: percent of capacity, moves, replicas or bytes."""


def relaxations(problem: Problem, budget: Budget) -> tuple[str, ...]:
    """Describe alternatives that make an infeasible problem feasible, cheapest first.

    One sentence each, at most `MOST_REPORTED`; worded as uncertain where only some rows could be
    placed again. Empty where none was found within the search budget, which is charged.
    """
    whole = len(modelled_rows(problem)) == int((problem.leader >= 0).sum())
    # Unless all rows were placed again, further changes may be needed.
    start = "it would be feasible" if whole else "it may become feasible"
    ways = (map(partial(_words, problem), way) for way in cheapest_changes(problem, budget))
    return tuple(f"{start} {' and '.join(words)}" for words in ways)


def cheapest_changes(problem: Problem, budget: Budget) -> tuple[tuple[RuleChange, ...], ...]:
    """Find alternatives that make a problem feasible, cheapest first.

    Each of at most `MOST_REPORTED` alternatives avoids all changes of those before it, and none of
    its changes can be left out. Costs are those of `COST` and its companions. If no cheapest
    combination is proved, single changes are tried. Empty where nothing was found in the budget.
    """
    rows = modelled_rows(problem)
    if not rows or not affordable(problem, rows, budget):
        return ()
    racks = _open_racks(problem)
    feasibility = Feasibility(problem, rows, racks=racks, next_rules=True)
    return tuple(_RelaxedRules(feasibility, budget).ways())


def _open_racks(problem: Problem) -> list[int]:
    """Racks in which an additional broker changes no rule."""
    spreading = problem.may.spreading
    wanted: Bools = np.any(spreading.required > 0, axis=0)
    usable: Bools = np.any(spreading.usable, axis=0)
    return [int(rack) for rack in np.flatnonzero(wanted | usable)]


@dataclass(slots=True, kw_only=True)
class _Limit:
    """Sums that share one limit, which may be raised."""

    sums: list[LimitedSum] = field(default_factory=list)
    more: cp_model.IntVar
    step: int
    """Units of `LimitedSum.now` in one unit of `more`."""


class _RelaxedRules:
    """The same rules, each of which may be dropped at its cost."""

    def __init__(self, feasibility: Feasibility, budget: Budget) -> None:
        self._feasibility, self._budget = feasibility, budget
        self._problem, self._model = feasibility.problem, feasibility.model
        self._raised: dict[Requirement, _Limit] = {}
        for limit in keep_limits(feasibility):
            self._let_rise(limit)
        for requirement, keep in feasibility.keeps.items():
            if not self._may_give_up(requirement):
                self._model.add(keep == 1)
        self._given_up = self._groups()
        self._minimize()

    def ways(self) -> Iterator[tuple[RuleChange, ...]]:
        """Alternatives, cheapest first; single changes where that cannot be proved."""
        found = list(itertools.islice(self._cheapest_ways(), MOST_REPORTED))
        yield from found or itertools.islice(self._single_ways(), MOST_REPORTED)

    def _cheapest_ways(self) -> Iterator[tuple[RuleChange, ...]]:
        """The cheapest alternative; then the cheapest that avoids all earlier changes."""
        while solver := self._solve():
            used = [t for t, gone in self._given_up.items() if solver.value(gone)]
            if not used:
                return
            yield self._steps(used, solver)
            for requirement in used:
                self._allow(requirement, most=0)

    def _single_ways(self) -> Iterator[tuple[RuleChange, ...]]:
        """Changes of one requirement, the cheapest kinds first."""
        order = sorted(self._given_up, key=lambda t: (self._cost(t), t))
        for requirement in order:
            self._allow(requirement, most=0)
        for requirement in order[:MOST_TRIED]:
            self._allow(requirement, most=1)
            solver = self._solve()
            if solver is not None and solver.value(self._given_up[requirement]):
                yield self._steps([requirement], solver)
            self._allow(requirement, most=0)

    def _solve(self) -> cp_model.CpSolver | None:
        """A solver that holds the cheapest alternative; None where none was proved."""
        if self._budget.over():
            return None
        solver = quick_solver(self._budget, min(self._budget.work_left, MOST_WORK))
        # Linear relaxations of droppable rules are too weak to help: 165
        # rows of three replicas took 11 s with them and 0.1 s without.
        solver.parameters.linearization_level = 0
        found = solve_stoppable(self._budget, solver, self._model, rate=WORK_OF_TIME)
        return solver if found == cp_model.OPTIMAL else None

    def _allow(self, requirement: Requirement, most: int) -> None:
        """Allow a requirement to be dropped (`most` 1), or not (0)."""
        self._model.proto.variables[self._given_up[requirement].index].domain[1] = most

    def _steps(
        self, used: Sequence[Requirement], solver: cp_model.CpSolver
    ) -> tuple[RuleChange, ...]:
        raised = self._raised
        return tuple(RuleChange(t, self._needed(t, solver) if t in raised else None) for t in used)

    def _may_give_up(self, requirement: Requirement) -> bool:
        added = requirement.kind is RequirementKind.CAPACITY and requirement.at >= len(
            self._problem.brokers
        )
        return requirement.kind is not RequirementKind.ROW and not added

    def _let_rise(self, limit: LimitedSum) -> None:
        """Let a sum exceed its limit as far as a raised limit allows."""
        group = _group(limit.requirement)
        if group not in self._raised:
            step = math.ceil(limit.now / _STEPS) if limit.scale > 1 else 1
            step = max(step, 1)
            highest = 100 - limit.now if group.kind is RequirementKind.CAPACITY else 10**6
            more = self._model.new_int_var(0, highest, f"more[{group}]")
            self._raised[group] = _Limit(more=more, step=step)
        raised = self._raised[group]
        raised.sums.append(limit)
        most = limit.nothing + limit.each * (limit.now + raised.more * raised.step)
        posted = self._model.add(limit.total <= most)
        posted.only_enforce_if(~self._feasibility.keep(limit.requirement))
        unmet = self._model.add(limit.unlimited == 0)
        unmet.only_enforce_if(~self._feasibility.keep(limit.requirement))

    def _groups(self) -> dict[Requirement, cp_model.IntVar]:
        """By what an operator changes: whether any of its requirements is dropped."""
        members: dict[Requirement, list[cp_model.IntVar]] = defaultdict(list)
        for requirement, keep in sorted(self._feasibility.keeps.items()):
            if self._may_give_up(requirement):
                members[_group(requirement)].append(keep)
        found = {}
        for group, keeps in sorted(members.items()):
            gone = found[group] = self._model.new_bool_var(f"gives up[{group}]")
            for keep in keeps:
                self._model.add_implication(~gone, keep)
        return found

    def _minimize(self) -> None:
        costs = [self._cost(t) * gone for t, gone in self._given_up.items()]
        costs += [COST_OF_MORE.get(t.kind, 1) * limit.more for t, limit in self._raised.items()]
        self._model.minimize(cp_model.LinearExpr.sum(costs))

    def _cost(self, requirement: Requirement) -> int:
        if requirement.kind is RequirementKind.STATE:
            state = self._problem.snapshot.header.brokers[requirement.at].state
            return COST_OF_STATE.get(state, _OTHER)
        if requirement.kind is RequirementKind.STAYS:
            return COST_OF_STAYING.get(FIXED_REASONS[requirement.at], _OTHER)
        return COST[requirement.kind]

    def _needed(self, requirement: Requirement, solver: cp_model.CpSolver) -> int:
        """The least limit that the placement found respects."""
        found = 0
        for limit in self._raised[requirement].sums:
            if not solver.value(self._feasibility.keep(limit.requirement)):
                reached = int(solver.value(limit.total)) - limit.nothing
                found = max(found, -(-reached // limit.each) * limit.scale)
        return found


def _words(problem: Problem, step: RuleChange) -> str:
    """`with a budget of 14 moves`, `without draining broker 3`."""
    requirement = step.requirement
    if step.limit is not None:
        return _raised_words(problem, requirement, step.limit)
    match requirement.kind:
        case RequirementKind.STATE:
            return _without_state(problem, requirement.at)
        case RequirementKind.PIN:
            pin = pin_text(problem, requirement.at).removeprefix("a pin keeps ")
            return f"without the pin of {pin}"
        case RequirementKind.PLACEMENT:
            names = names_text(problem.goals.placements[requirement.at].topics)
            return f"without the placement of {names}"
        case RequirementKind.RACKS:
            return "without the rack rule"
        case RequirementKind.RETURN:
            return "without the return window"
        case RequirementKind.STAYS:
            return _without_staying(problem, FIXED_REASONS[requirement.at])
        case _:
            rack = problem.may.spreading.racks[requirement.at]
            return "with one more broker" + (f" in rack {rack}" if rack else "")


def _raised_words(problem: Problem, requirement: Requirement, limit: int) -> str:
    if requirement.kind is RequirementKind.BUDGET:
        return f"with a budget of {budget_text(problem, requirement, limit)}"
    if requirement.kind is RequirementKind.REPLICA_LIMIT:
        return f"with {count_text(limit, 'replica')} per broker"
    resource = problem.snapshot.header.resources[requirement.part]
    now = 100 * problem.goals.limit_of(resource)
    return f"with a capacity limit of {limit} % in {resource.words} (now {now:.4g} %)"


def _group(requirement: Requirement) -> Requirement:
    """What an operator changes at once: a capacity limit applies to all brokers."""
    if requirement.kind is RequirementKind.CAPACITY:
        return Requirement(RequirementKind.CAPACITY, 0, requirement.part)
    return requirement


def _without_state(problem: Problem, broker: int) -> str:
    found = problem.snapshot.header.brokers[broker]
    if found.state is BrokerState.DRAINING:
        return f"without draining broker {found.id}"
    if found.state is BrokerState.DEAD:
        return f"with broker {found.id} back alive"
    if found.state in TAKING:
        return f"with the failed log directory of broker {found.id} working again"
    return f"with broker {found.id} no longer {found.state.words}"


def _without_staying(problem: Problem, why: FixedReason) -> str:
    partitions = count_text(int(problem.may.kept_by(why).sum()), "partition")
    return {
        FixedReason.EXCLUDED: f"with {partitions} of excluded topics free to move",
        FixedReason.INTERNAL: f"with {partitions} of internal topics free to move",
        FixedReason.KEPT: f"with {partitions} no longer kept in place by the goals",
        FixedReason.UNKNOWN: f"once the load of {partitions} is known",
        FixedReason.IN_COOLDOWN: f"once the cooldown of {partitions} has ended",
    }.get(why, f"if {partitions} could move")
