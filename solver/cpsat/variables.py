"""The decisions of the exact model: which brokers hold each row, and which one leads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model

from model.snapshot.snapshot import Floats
from solver.problem.placement import Placement
from solver.problem.problem import Problem, sum_loads

Known = Mapping[int, int]
"""Values of the variables made so far, by index."""

Choices = tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]
"""Brokers that may hold, and brokers that may lead, by row with a choice."""

Hint = Callable[[Placement, Known], int]
"""Computes a variable's value from a placement and the values of earlier variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Variables of one model, for rows with a choice and the brokers they may use.

    Rows and brokers are given by position; B is the number of brokers, R that of load columns.
    """

    model: cp_model.CpModel
    holders: dict[int, tuple[int, ...]]
    """Brokers that may hold each row with a choice; all other rows stay."""
    leaders: dict[int, tuple[int, ...]]
    """Brokers, among the holders, that may lead the row."""
    on: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    """By row and broker: a replica lies there."""
    lead: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    """By row and broker: it leads. With one replica the same variable as `on`."""
    terms: dict[int, list[tuple[cp_model.IntVar, Floats]]] = field(default_factory=dict)
    """By broker: each variable with the load, (R,), that it adds when true."""
    fixed: Floats
    """(B, R) load of the rows without a choice."""
    hints: list[tuple[cp_model.IntVar, Hint]] = field(default_factory=list)
    """Every variable, with the function for its value in a given placement."""

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows with a choice, by position, in ascending order."""
        return tuple(self.holders)

    def boolean(self, name: str, hint: Hint) -> cp_model.IntVar:
        """Create a 0-1 variable whose value follows from the placement by `hint`.

        `hint` gets the placement and the values of the variables created before, by index.
        """
        return self.integer(0, 1, name, hint)

    def integer(self, low: int, high: int, name: str, hint: Hint) -> cp_model.IntVar:
        """Create an integer variable from `low` to `high` that follows from the placement.

        `hint` computes its value from a placement and the values of earlier variables.
        """
        variable = self.model.new_int_var(low, high, name)
        self.hints.append((variable, hint))
        return variable

    def placement(self, problem: Problem, value: Callable[[cp_model.IntVar], int]) -> Placement:
        """Read the placement from the variables' values; rows without a choice stay at home.

        `value` returns the value of a variable in CP-SAT's solution. Each row's brokers are in
        ascending order.
        """
        on, leader = problem.home.copy(), problem.leader.copy()
        on[list(self.rows)] = False
        for (row, b), variable in self.on.items():
            on[row, b] = bool(value(variable))
        for (row, b), variable in self.lead.items():
            if value(variable):
                leader[row] = b
        return Placement.of(on, leader, problem.replicas.shape[1])

    def hint(self, placement: Placement) -> None:
        """Give CP-SAT a complete placement as its starting hint, replacing an earlier one."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]  # untyped upstream
        known = self.values(placement)
        for variable, _ in self.hints:
            self.model.add_hint(variable, known[variable.index])

    def values(self, placement: Placement) -> Known:
        """Compute the value of every variable in a placement, by its index in the model.

        Includes only variables made by `boolean` and `integer`.
        """
        known: dict[int, int] = {}
        for variable, value in self.hints:
            known[variable.index] = value(placement, known)
        return known


def make_variables(
    problem: Problem, model: cp_model.CpModel, among: Choices | None = None
) -> Variables:
    """Create the variables of each row with a choice and each broker it may use.

    `among` restricts the choices, as `choices` returns them; None for all. Rows it does not name
    stay. No constraint is posted.
    """
    holders, leaders = choices(problem) if among is None else among
    free = list(holders)
    stay = problem.replicas.copy()
    stay[free] = -1
    variables = Variables(
        model=model,
        holders=holders,
        leaders=leaders,
        fixed=sum_loads(stay, problem.leader, problem.lead, problem.follow, len(problem.brokers)),
    )
    for row in free:
        _make_row(problem, variables, row)
    _find_terms(problem, variables)
    return variables


def choices(problem: Problem) -> Choices:
    """Find the brokers that may hold, and those that may lead, each row with a choice.

    Returns two dicts, holders and leaders, from row to ascending positions of brokers. Rows that
    may not move are left out, and those with only one placement unless they are forced to change.
    A row's only replica must be able to lead.
    """
    holders: dict[int, tuple[int, ...]] = {}
    leaders: dict[int, tuple[int, ...]] = {}
    may, rf = problem.may, problem.rf
    for row in np.flatnonzero(may.fixed_reason == 0).tolist():
        hold, lead = problem.hold[row], problem.may_lead[row]
        if rf[row] == 1:
            hold = hold & lead
        free = hold.sum() > rf[row] or lead.sum() > 1 or may.forced[row]
        if free:
            holders[row] = tuple(map(int, np.flatnonzero(hold)))
            leaders[row] = tuple(map(int, np.flatnonzero(lead)))
    return holders, leaders


def _make_row(problem: Problem, variables: Variables, row: int) -> None:
    name, brokers = problem.snapshot.id(row), problem.brokers
    for b in variables.holders[row]:
        variables.on[row, b] = variables.boolean(f"on[{name},{brokers[b]}]", _holds(row, b))
    if problem.rf[row] == 1:
        variables.lead.update({(row, b): variables.on[row, b] for b in variables.holders[row]})
        return
    for b in variables.leaders[row]:
        variables.lead[row, b] = variables.boolean(f"lead[{name},{brokers[b]}]", _leads(row, b))


def _holds(row: int, b: int) -> Hint:
    return lambda placement, _: int(b in placement.replicas[row])


def _leads(row: int, b: int) -> Hint:
    return lambda placement, _: int(placement.leader[row] == b)


def _find_terms(problem: Problem, variables: Variables) -> None:
    lead, follow = problem.lead, problem.follow
    for (row, b), on in variables.on.items():
        terms = variables.terms.setdefault(b, [])
        if problem.rf[row] == 1:
            terms.append((on, lead[row]))
            continue
        terms.append((on, follow[row]))
        if (row, b) in variables.lead:
            terms.append((variables.lead[row, b], lead[row] - follow[row]))
