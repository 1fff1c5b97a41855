"""A smallest set of requirements that conflict.

First an irreducible set is found by halving (QuickXplain; Junker, AAAI 2004). Then a smallest one:
a set conflicts exactly if it shares a member with every correction set, a set whose removal makes
the rest feasible. In turns, a minimum hitting set of the correction sets known so far is tried, and
if it does not conflict, the largest feasible set around it gives one more (implicit hitting sets;
Ignatiev, Previti, Liffiton and Marques-Silva, CP 2015).

Requirements are kept and dropped by fixing their variables: as assumptions, which
presolve does not see, the same questions take CP-SAT up to a hundred times longer.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ortools.sat.python import cp_model

from solver.budget import Budget
from solver.cpsat.model import new_solver
from solver.cpsat.stopping import solve_stoppable
from solver.infeasible.assumptions import Requirement, RequirementKind
from solver.infeasible.feasibility import Feasibility
from solver.infeasible.limits import keep_limits
from solver.problem.problem import Problem

MOST_PAIRS: Final = 3_000
"""Rows x brokers up to which all rows are placed again; above it, only forced rows."""

MOST_FORCED_PAIRS: Final = 50_000
"""Forced rows x brokers above which no conflict is searched for."""

MOST_ROUNDS: Final = 200
"""Sets tried for the smallest; after that the irreducible one is reported, though a
smaller one may exist."""

MOST_ROWS: Final = 12
"""Rows up to which the rows needed for the conflict are determined."""

WORK_OF_TIME: Final = 2.0
"""Work units per unit of CP-SAT's deterministic time in these models; measured."""

WORK_OF_KEEP: Final = 1e-5
"""Work units of one question, per requirement; measured."""

WORK_OF_PAIR: Final = 1e-4
"""Work units for building a model, per pair of row and broker; measured."""

FREE_WORK: Final = 0.5
"""Work units of a model that is built even if less of the search budget is left."""

_ONE: Final = 1_000_000
"""Weight of one requirement; its kind only breaks ties between equally small sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Requirements that cannot all be met, and the rows that show it."""

    requirements: tuple[Requirement, ...]
    """An irreducible set: without any one of them there is no conflict."""
    rows: tuple[int, ...]
    """Rows that cannot all be placed under the requirements; up to `MOST_ROWS` only needed ones."""
    smallest: bool
    """Proved that no set of fewer requirements conflicts."""


def find_conflict(problem: Problem, budget: Budget) -> Conflict | None:
    """Find a set of requirements that cannot all be met, minimal if the budget allows.

    `Conflict.smallest` is whether it was. None where no conflict exists or was found within the
    search budget, which is charged, or where too many rows would have to be modelled.
    """
    rows = modelled_rows(problem)
    return conflict_of_rows(problem, rows, budget) if rows else None


def conflict_of_rows(problem: Problem, rows: Sequence[int], budget: Budget) -> Conflict | None:
    """Find a conflict that shows when only these rows, given by position, are placed again.

    The other rows count as one divisible load. Returns None if there is no such conflict, or none
    was found within the search budget.
    """
    if not affordable(problem, rows, budget):
        return None
    feasibility = Feasibility(problem, rows)
    keep_limits(feasibility)
    try:
        return _ConflictSearch(feasibility, budget).conflict()
    except _BudgetError:
        return None


def affordable(problem: Problem, rows: Sequence[int], budget: Budget) -> bool:
    """Charge the building of a model of these rows; return whether the budget allows it.

    It may exceed the work left by `FREE_WORK`. Where it is not allowed, nothing is charged.
    """
    work = WORK_OF_PAIR * len(rows) * len(problem.brokers)
    if budget.over() or work > budget.work_left + FREE_WORK:
        return False
    budget.work += work
    return True


def modelled_rows(problem: Problem) -> list[int]:
    """Return the rows to place again, ascending: all with a leader, or only forced ones.

    The latter above `MOST_PAIRS` pairs of row and broker; empty if the forced rows make more than
    `MOST_FORCED_PAIRS`.
    """
    brokers = len(problem.brokers)
    rows: list[int] = (problem.leader >= 0).nonzero()[0].tolist()
    if len(rows) * brokers > MOST_PAIRS:
        rows = problem.may.forced.nonzero()[0].tolist()
    return rows if len(rows) * brokers <= MOST_FORCED_PAIRS else []


def quick_solver(budget: Budget, work: float) -> cp_model.CpSolver:
    """Create a solver with light presolve, for many easy questions; `work` is in work units.

    403 rows of three replicas on 50 brokers: 2 s per question, 18 s with full presolve.
    """
    solver = new_solver(budget.limits, work / WORK_OF_TIME)
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.symmetry_level = 0
    solver.parameters.max_presolve_iterations = 1
    return solver


class _TooManyError(Exception):
    """More requirements are needed than asked for."""


class _BudgetError(Exception):
    """The search budget is exhausted, or the observer asks to stop."""


class _ConflictSearch:
    """Solves one model repeatedly with varying requirements kept."""

    def __init__(self, feasibility: Feasibility, budget: Budget) -> None:
        self._feasibility, self._budget = feasibility, budget
        self._rules = feasibility.rules
        self._rows = [Requirement(RequirementKind.ROW, row) for row in feasibility.rows]

    def conflict(self) -> Conflict | None:
        if not self._conflicts([*self._rules, *self._rows]):
            return None
        rules = self._needed(self._rules, lambda kept: self._conflicts([*kept, *self._rows]))
        least, rows = None, self._rows
        with suppress(_BudgetError):
            least = self._smallest(len(rules))
        rules = rules if least is None else least
        with suppress(_BudgetError):
            rows = self._needed_rows(rules)
        return Conflict(
            requirements=tuple(sorted(rules)),
            rows=tuple(sorted(t.at for t in rows)),
            smallest=least is not None,
        )

    # ---- irreducible sets

    def _needed(
        self,
        requirements: Sequence[Requirement],
        conflicts: Callable[[Collection[Requirement]], bool],
        most: int | None = None,
    ) -> list[Requirement]:
        """Reduce requirements to an irreducible conflicting set, by halving.

        Raises `_TooManyError` if more than `most` are needed.
        """
        found: list[Requirement] = []

        def search(
            known: list[Requirement], added: bool, left: Sequence[Requirement]
        ) -> list[Requirement]:
            if added and conflicts(known):
                return []
            if len(left) == 1:
                found.append(left[0])
                if most is not None and len(found) > most:
                    raise _TooManyError
                return list(left)
            half = len(left) // 2
            first, second = left[:half], left[half:]
            later = search([*known, *first], bool(first), second)
            return search([*known, *later], bool(later), first) + later

        if not requirements or conflicts([]):
            return []
        return search([], False, requirements)

    def _needed_rows(self, rules: Sequence[Requirement]) -> list[Requirement]:
        """The rows in conflict: only those needed, where these are few."""

        def conflicts(kept: Collection[Requirement]) -> bool:
            return self._conflicts([*rules, *kept])

        forced = self._feasibility.problem.may.forced
        rows = [t for t in self._rows if forced[t.at]]
        if len(rows) == len(self._rows) or not conflicts(rows):
            rows = self._rows
        if len(rows) * len(self._feasibility.places) > MOST_PAIRS:
            return rows
        try:
            return self._needed(rows, conflicts, MOST_ROWS)
        except _TooManyError:
            return rows

    # ---- the smallest set

    def _smallest(self, known: int) -> list[Requirement] | None:
        """The smallest conflicting set of rules over all rows.

        `known` is the size of a conflicting set. None if it was not found in time.
        """
        missed: list[set[Requirement]] = []
        for _ in range(MOST_ROUNDS):
            tried = self._minimum_hitting_set(missed)
            kept = self._largest_feasible_with(tried)
            if kept is None:
                return tried
            if len(tried) > known:
                return None
            missed.append(set(self._rules) - kept)
        return None

    def _minimum_hitting_set(self, sets: Sequence[set[Requirement]]) -> list[Requirement]:
        model = cp_model.CpModel()
        takes = {t: model.new_bool_var("") for t in self._rules}
        for members in sets:
            model.add_bool_or([takes[t] for t in sorted(members)])
        weight = [_ONE + 10 * t.kind + t.part for t in self._rules]
        model.minimize(cp_model.LinearExpr.weighted_sum([*takes.values()], weight))
        solver = self._solver()
        if self._solve(solver, model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise _BudgetError
        return [t for t in self._rules if solver.value(takes[t])]

    def _largest_feasible_with(self, tried: Sequence[Requirement]) -> set[Requirement] | None:
        """The most rules that can be kept with these and all rows; None if none."""
        keeps, model = self._feasibility.keeps, self._feasibility.model
        self._fix([*tried, *self._rows], others=None)
        model.maximize(cp_model.LinearExpr.sum([keeps[t] for t in self._rules]))
        solver = self._solver()
        status = self._solve(solver, model)
        model.clear_objective()  # type: ignore[no-untyped-call]  # untyped upstream
        if status == cp_model.INFEASIBLE:
            return None
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise _BudgetError
        return {t for t in self._rules if solver.value(keeps[t])}

    # ---- feasibility checks

    def _conflicts(self, kept: Iterable[Requirement]) -> bool:
        """Whether these cannot all be kept, with all others dropped."""
        self._fix(kept, others=0)
        status = self._solve(self._solver(), self._feasibility.model)
        return status == cp_model.INFEASIBLE

    def _fix(self, kept: Iterable[Requirement], *, others: int | None) -> None:
        """Keep these; drop all others or leave them open."""
        keeps, variables = (self._feasibility.keeps, self._feasibility.model.proto.variables)
        wanted = set(kept)
        for requirement, keep in keeps.items():
            domain = variables[keep.index].domain
            domain[0] = 1 if requirement in wanted else 0
            domain[1] = 1 if requirement in wanted or others is None else others

    def _solver(self) -> cp_model.CpSolver:
        if self._budget.over():
            raise _BudgetError
        return quick_solver(self._budget, self._budget.work_left)

    def _solve(self, solver: cp_model.CpSolver, model: cp_model.CpModel) -> int:
        self._budget.work += WORK_OF_KEEP * len(self._feasibility.keeps)
        return int(solve_stoppable(self._budget, solver, model, rate=WORK_OF_TIME))
