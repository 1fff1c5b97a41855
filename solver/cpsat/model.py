"""The exact model, and the rounds in which it is solved and refined."""

import math
from typing import Final

from ortools.sat.python import cp_model

from model.goals.goals import SolveLimits
from solver.bounds.row_branching import branch_over_rows, is_tiny
from solver.cpsat.constraints import post_constraints
from solver.cpsat.objective import Objective, bound_of
from solver.cpsat.stopping import Solutions, proved_bound, solve_stoppable
from solver.cpsat.symmetry import Symmetry
from solver.cpsat.variables import Choices, Variables, make_variables
from solver.problem.placement import Placement, is_allowed
from solver.problem.problem import Problem
from solver.search.search import PROOF_SHARE, Search

SEEDS: Final = 2**31
"""Number of seeds that CP-SAT knows; larger ones are taken modulo this."""

MAX_PAIRS: Final = 20_000
"""Rows with a choice x brokers they may use, above which no exact model is built."""

FEW_PAIRS: Final = 100
"""Movable rows x brokers x replicas up to which the exact model alone is the quickest."""

CUTS_WORK: Final = 4.0
"""Work units per unit of CP-SAT's deterministic time when it adds cuts; measured."""

SQUARES_WORK: Final = 1.75
"""The same in rounds with tangents of squares: 0.9 to 2.6 s; measured."""

BAND_WORK: Final = 2.0
"""The same in rounds with cuts but without probing, as under `band`: 1.0 to 3.2 s; measured."""

WORK_OF_PAIR: Final = 1e-4
"""Work units for building and presolving a model, per pair of row and broker; measured."""

WORK_OF_BUILDING: Final = 6e-5
"""Work units for building a model, per pair over `FREE_PAIRS`; measured."""

FREE_PAIRS: Final = 1_000
"""Pairs of row and broker whose building is not charged."""

LEAST_SHARE: Final = 0.01
"""Least share of the search budget that one round gets."""

SOON_SHARE: Final = PROOF_SHARE
"""Share of the search budget after which a tiny problem is branched over rows."""

MOST_REPEATS: Final = 50
"""Solutions in a row with the same placement that end a round: CP-SAT then lowers its
costs one unit at a time towards their true value, which can take 2^40 solutions."""


def pairs(problem: Problem) -> int:
    """Return the approximate size of the exact model: movable rows x brokers that take load."""
    return int(problem.may.alive.sum()) * int((problem.may.fixed_reason == 0).sum())


def is_small(problem: Problem) -> bool:
    """Return whether the exact model alone is the quickest, and compiling loops takes longer."""
    few = pairs(problem) * int(problem.rf.max(initial=1)) <= FEW_PAIRS
    return few and not problem.band


def solve_exactly(search: Search) -> None:
    """Solve the exact model in rounds until optimality is proved or the budget is exhausted.

    Each round refines the piecewise linear squares at the plan found. Tiny problems that are not
    solved soon are branched over rows. Charges the building of the model beyond `FREE_PAIRS`.
    Results are left in `search`: incumbent, bound and `infeasible`.
    Raises ValueError if CP-SAT rejects the model as invalid.
    """
    pairs_charged = max(0, pairs(search.problem) - FREE_PAIRS)
    solve_in_rounds(search, WORK_OF_BUILDING * pairs_charged)


def solve_in_rounds(search: Search, work: float, open_choices: Choices | None = None) -> None:
    """Build the exact model and solve it in rounds, adding tangents after each.

    Ends when the plan is proved optimal or the search budget is exhausted. `work` units are charged
    for building the model, up to what is left of the budget. `open_choices` are the brokers that
    may still hold or lead rows, None for all; the others must be proved not to lower F, since the
    bound is recorded for all placements. Raises ValueError if CP-SAT rejects the model as invalid.
    """
    if search.over():
        return
    search.work += min(work, search.work_left)
    if search.over():
        return
    model = ExactModel(search.problem, search.objective, open_choices)
    soon = math.inf
    if open_choices is None and is_tiny(search.problem, model.variables.holders):
        soon = search.work + SOON_SHARE * search.limits.work
    while not search.near_enough and not search.over():
        if search.work >= soon - LEAST_SHARE * search.limits.work:
            soon = math.inf
            if branch_over_rows(search):
                break
        elif not model.solve_round(search, soon):
            break


class ExactModel:
    """All rules and F over the choices `among`, None for all, as one CP-SAT model.

    `most` is an upper bound of F, such as the incumbent's; if infinite, one is computed.
    """

    def __init__(self, problem: Problem, most: float, among: Choices | None = None) -> None:
        self.problem = problem
        self.variables = make_variables(problem, cp_model.CpModel(), among)
        post_constraints(problem, self.variables)
        self.objective = Objective(problem, self.variables, most)
        terms = self.objective.terms.items()
        filled = {} if among else {b: term.deviation for (b, k), term in terms if k == 0}
        self._symmetry = Symmetry(problem, self.variables, filled)
        self._follows_hints = True

    def hint(self, placement: Placement) -> None:
        """Give CP-SAT a complete placement as its starting hint.

        Equal rows and brokers are exchanged first, as the symmetry constraints demand. Brokers
        outside the model's choices are ignored.
        """
        self.variables.hint(self._symmetry.ordered(placement))

    def solve_round(self, search: Search, soon: float = math.inf) -> bool:
        """Solve once, then add tangents at the plans found; return whether another round can help.

        Uses up to the work left, and ends once the search has done `soon` work units. Placements,
        bound and `infeasible`, the latter only without an incumbent, are left in `search`. Raises
        ValueError if CP-SAT rejects the model as invalid.
        """
        # Without squares the relaxation is strong and cuts are decisive; with tangents
        # they cost more than they save: 2.4 s without, 19 s with them (6 x 60, RF 3).
        cuts, rate = (1, BAND_WORK) if self.problem.band else (0, SQUARES_WORK)
        work, first = search.work_before_tolerance, PROOF_SHARE * search.limits.work - search.work
        # The gap that ends a search applies only later; CP-SAT is asked again then.
        cut_short = 0.0 < first < work and not self.problem.band
        if cut_short:
            work = max(first, LEAST_SHARE * search.limits.work)
        if search.work < soon < search.work + work:
            work, cut_short = soon - search.work, True
        share = 0.0 if first > 0.0 or self.problem.band else search.limits.gap_share
        probes = not self.problem.band
        status, solver, found = self._solve(search, work, rate, cuts, share, probes=probes)
        if status == cp_model.INFEASIBLE:
            search.infeasible = search.best is None
            return False
        search.prove(bound_of(proved_bound(solver), self.objective.units))
        finer = [self.objective.refine(p) for p in (search.best, found.last) if p]
        if found.stuck and self._follows_hints:
            self._follows_hints = False
            return True
        if status != cp_model.OPTIMAL:
            return cut_short
        return any(finer)

    def solve_part(self, search: Search, work: float) -> float:
        """Solve a model of some of the choices once; return a lower bound of F for them.

        `work` limits CP-SAT, in work units; building the model is charged in addition. The bound
        is `Objective.most` if the model is infeasible, and 0 if CP-SAT has none. Placements found
        are offered to `search`. Raises ValueError if CP-SAT rejects the model as invalid.
        """
        search.work += WORK_OF_PAIR * len(self.variables.on)
        status, solver, _ = self._solve(search, work, CUTS_WORK, cuts=1)
        if status == cp_model.INFEASIBLE:
            return self.objective.most
        return bound_of(proved_bound(solver), self.objective.units)

    def _solve(
        self,
        search: Search,
        work: float,
        rate: float,
        cuts: int,
        share: float = 0.0,
        *,
        probes: bool = True,
    ) -> tuple[cp_model.CpSolverStatus, cp_model.CpSolver, "_Placements"]:
        """Run CP-SAT from the best placement known, at `rate` work units per unit of its time.

        It also ends at half the gap `share`, relative to F. Without `probes`, it does not try
        values of variables between restarts: with cuts, that solves linear programs of which its
        deterministic time counts a tenth.
        """
        if search.best is not None:
            self.hint(search.best)
        solver = new_solver(search.limits, work / rate)
        solver.parameters.cut_level = cuts
        if not probes:
            solver.parameters.inprocessing_probing_dtime = 0.0
        # A quarter of the gap is left to the solver, the rest to the tangents.
        solver.parameters.absolute_gap_limit = search.limits.gap / 4 * self.objective.units
        solver.parameters.relative_gap_limit = share / 2
        if not self._follows_hints:
            solver.parameters.hint_conflict_limit = 0
        found = _Placements(self.variables, search)
        status = solve_stoppable(search, solver, self.variables.model, found, rate=rate)
        if status == cp_model.MODEL_INVALID:
            raise ValueError(self.variables.model.validate())
        return status, solver, found


class _Placements(Solutions):
    """Hands each placement that CP-SAT finds to the search."""

    def __init__(self, variables: Variables, search: Search) -> None:
        super().__init__()
        self._variables, self._search = variables, search
        self._repeats = 0
        self.last: Placement | None = None

    @property
    def stuck(self) -> bool:
        """Whether the same placement kept coming back."""
        return self._repeats >= MOST_REPEATS

    def on_solution_callback(self) -> None:
        """Offer the placement to the search; called by CP-SAT."""
        super().on_solution_callback()
        found = self._variables.placement(self._search.problem, self.value)
        again = self.last is not None and found.same_as(self.last)
        self._repeats = self._repeats + 1 if again else 0
        self.last = found
        problem = self._search.problem
        # The model's tolerance is wider by its rounding.
        if problem.most_excess == math.inf or is_allowed(problem, found):
            self._search.offer(found)
        if self.stuck or self._search.near_enough:
            self.stop_search()


def new_solver(limits: SolveLimits, work: float) -> cp_model.CpSolver:
    """Create a reproducible solver with one thread and the seed of `limits`.

    `work` is its limit in units of CP-SAT's deterministic time, not in work units.
    """
    solver = cp_model.CpSolver()
    # A higher limit makes presolve of 9.15 prove wrong optima (google/or-tools#5293).
    solver.parameters.presolve_inclusion_work_limit = 0
    # Pins, brokers that may not lead and more make a sum over brokers constant. The new
    # propagation moves two bounds of such a sum towards each other, one unit at a time, within one
    # step: minutes and gigabytes, whatever the budget.
    solver.parameters.new_linear_propagation = False
    solver.parameters.num_workers = 1
    # CP-SAT would leave the process with Ctrl-C's default action: immediate death.
    solver.parameters.catch_sigint_signal = False
    solver.parameters.random_seed = limits.seed % SEEDS
    solver.parameters.max_deterministic_time = work
    return solver
