"""Bring every broker inside its tolerance, where the plan of least F leaves one outside.

F trades balance for the cost of moves, so its optimum may leave a broker outside. Then the
excess over the tolerance is made as small as the rules and budgets allow, and only among
plans of that excess does F decide. The excess found becomes a constraint of the problem
(`Problem.most_excess`), so that a bound of F proved afterwards counts only such plans.
"""

import logging
import math
from dataclasses import dataclass, replace
from typing import Final

from model.goals.goals import MOST, ObjectiveKind
from solver.band.tolerance_band import FEW_PAIRS, solve_by_prices
from solver.cpsat.model import is_small, pairs, solve_exactly
from solver.log_dirs.balance import reserved_work
from solver.problem.placement import (
    EDGE,
    NOTHING,
    Placement,
    excess_price,
    is_allowed,
    objective,
    revert_needless,
    tolerance_excess,
)
from solver.problem.problem import Problem
from solver.search.search import Search
from solver.tolerance.excess_annealing import ExcessAnnealing
from solver.tolerance.forced_excess import NOTHING_FORCED, ForcedExcess, forced_excess

log = logging.getLogger("plimsoll.solver")

SHARE: Final = 0.25
"""Share of the search budget kept, while the incumbent is outside, to bring it inside."""

ANNEALING_SHARE: Final = 0.4
"""Share of that for annealing before a bound of the excess is sought."""

LEAST_EXCESS_SHARE: Final = 0.6
"""Share of what is then left for that bound, and for plans of less excess."""

TIDYING_SHARE: Final = 0.05
"""Share of the search budget for reverting changes that neither F nor the tolerance needs."""

PROOF_SHARE: Final = 0.25
"""Share of the search budget for proving that no plan inside the tolerance has a lower F."""

MOST_DENSE: Final = 20_000_000
"""Rows x brokers up to which the bound of the excess, which needs tables of them, is sought."""

FINEST: Final = 1e-5
"""Excess, in shares of the mean, that outweighs the cost of all moves; a plan that is proved
closest is so but for twice this."""

USUAL_PRICE: Final = 10_000.0
"""Price of the excess beyond exact sizes, in costs of a move, whose integers hold no more."""

MOST_IDLE: Final = 3
"""Runs without a gain after which annealing ends."""

PROVED: Final = "no allowed plan brings every broker inside, which is proved"
PROVED_CLOSEST: Final = "no allowed plan comes closer, which is proved"
NOT_FOUND: Final = "no allowed plan that does was found within the search budget"
STOPPED: Final = "the solve was stopped before it looked for a plan inside"


def work_for_tolerance(search: Search) -> float:
    """Return the work units to keep for `keep_tolerance` while the incumbent is outside."""
    return SHARE * search.limits.work if _comes_first(search.problem) else 0.0


def keep_tolerance(search: Search) -> None:
    """Replace an incumbent outside the tolerance by the best one inside, or the closest found.

    Does nothing without an incumbent, where it is inside or `come_closest` has succeeded, and
    where the goals do not put the tolerance first. Otherwise constrains `search.problem`, and
    states in `search` what remains outside and whether that is proved. Raises ValueError if
    CP-SAT rejects a model as invalid.
    """
    search.reserved_for_tolerance = 0.0
    closest = None if search.tolerance_unmet else _closest(search)
    if closest is None:
        return
    before = closest.excess
    if search.stops():
        search.tolerance_unmet, search.least_excess = STOPPED, False
        return
    search.reserved = reserved_work(search.problem, search.limits)
    closest.find()
    search.tolerance_unmet, search.least_excess = closest.unmet, closest.proved
    if closest.excess < before - EDGE:
        _adopt(search, closest)
    log.info("tolerance: excess %.6g -> %.6g, work %.3g", before, closest.excess, search.work)
    search.reserved = 0.0


def come_closest(search: Search) -> bool:
    """Anneal an incumbent outside the tolerance until no excess is left but what rules force.

    Returns whether that succeeds. Then the excess is a constraint before F is minimised, so that
    search and bound count only such plans, and `keep_tolerance` has nothing left to do. Otherwise
    up to a tenth of the search budget is spent, and nothing else changes.
    """
    closest = _closest(search)
    if closest is None:
        return False
    closest.forced = forced_excess(search.problem)
    closest.anneal_to_forced(search.work + ANNEALING_SHARE * SHARE * search.limits.work)
    if not closest.is_closest:
        return False
    closest.proved = True
    _constrain(search, closest)
    search.reserved_for_tolerance = 0.0
    log.info("tolerance: least excess %.6g, work %.3g", closest.excess, search.work)
    return True


def is_kept_outside(problem: Problem) -> bool:
    """Whether rules force excess over a tolerance that comes before F."""
    return _comes_first(problem) and forced_excess(problem).excess > EDGE


def _comes_first(problem: Problem) -> bool:
    weighed = bool((problem.weight > 0).any()) and bool(problem.may.holding.any())
    return problem.goals.tolerance_first and not problem.band and weighed


def _closest(search: Search) -> "_Closest | None":
    """The incumbent to come closer from; None where it is inside, or the tolerance not first."""
    if search.best is None or not _comes_first(search.problem):
        return None
    excess = tolerance_excess(search.problem, search.best)
    return _Closest(search, excess, search.best, search.objective) if excess > 0.0 else None


def _constrain(search: Search, closest: "_Closest") -> None:
    """Make the closest plan the incumbent, and its excess the highest that plans may have."""
    search.problem = replace(search.problem, most_excess=closest.excess)
    search.tolerance_unmet, search.least_excess = closest.unmet, closest.proved
    search.best, search.objective = None, math.inf
    search.offer(closest.best)


def _adopt(search: Search, closest: "_Closest") -> None:
    """Make the closest plan the incumbent, revert what it does not need, and prove its F."""
    search.optimal_without_tolerance = search.proved
    _constrain(search, closest)
    part = search.part(min(TIDYING_SHARE * search.limits.work, search.work_left))
    search.offer(revert_needless(search.problem, closest.best, part))
    search.spend(part)
    if pairs(search.problem) <= FEW_PAIRS and not search.over():
        _prove(search)


def _prove(search: Search) -> None:
    """Look for the least F of all plans of this excess, by the exact model."""
    known, limits = search.work, search.limits
    end = min(limits.work, known + search.reserved + PROOF_SHARE * limits.work)
    search.limits = limits.model_copy(update={"work": end})
    solve_exactly(search)
    search.limits = limits


@dataclass(slots=True)
class _Closest:
    """The plan of least excess so far, and of least F among those."""

    search: Search
    excess: float
    """Of `best`: weight x deviation beyond the tolerance, summed."""
    best: Placement
    value: float
    """F of `best`."""
    proved: bool = False
    """No allowed plan has less excess."""
    unreachable: bool = False
    """Proved that no allowed plan has none."""
    forced: ForcedExcess = NOTHING_FORCED
    """What rules force, whichever plan is chosen."""

    @property
    def unmet(self) -> str:
        """Why the plan leaves brokers outside; empty where it does not."""
        if self.excess <= 0.0:
            return ""
        why = f": {self.forced.reason}" if self.forced.reason else ""
        if self.proved:
            return PROVED_CLOSEST + why
        return PROVED + why if self.unreachable else NOT_FOUND

    def find(self) -> None:
        """Anneal; where excess is left, look for the least of it, and anneal from there.

        In small problems the exact model finds it at once.
        """
        search = self.search
        problem = search.problem
        most = min(SHARE * search.limits.work, search.work_left)
        if not (problem.may.fixed_reason == 0).any():
            self.proved = self.unreachable = True
            return
        self.forced = forced_excess(problem)
        self.unreachable = self.forced.excess > EDGE
        if is_small(problem):
            if not self.is_closest:
                self._least_excess(most)
            self.proved = self.proved or self.is_closest
            return
        annealing = ExcessAnnealing(problem, search.limits.seed)
        end = search.work + most
        if most > 0.0:
            self._anneal(annealing, search.work + ANNEALING_SHARE * most)
        if not self.is_closest and search.work < end and not search.stops():
            self._least_excess(LEAST_EXCESS_SHARE * (end - search.work))
            if self.excess > 0.0 or search.work < end:
                self._anneal(annealing, end)
        self.proved = self.proved or self.is_closest

    def anneal_to_forced(self, end: float) -> None:
        """Anneal until no excess is left but what rules force, or the work reaches `end`."""
        annealing = ExcessAnnealing(self.search.problem, self.search.limits.seed)
        while not self.is_closest and self._anneal_once(annealing, end):
            pass

    @property
    def is_closest(self) -> bool:
        """Whether no excess is left but what rules force."""
        if self.forced.excess <= EDGE:
            return self.excess <= 0.0
        return self.excess <= self.forced.excess + 2 * FINEST

    def offer(self, placement: Placement) -> bool:
        """Keep a placement if it is allowed and better; return whether it was kept."""
        problem = self.search.problem
        if not is_allowed(problem, placement):
            return False
        excess, value = tolerance_excess(problem, placement), objective(problem, placement)
        closer = excess < self.excess - EDGE
        if not closer and (excess > self.excess or value >= self.value - NOTHING):
            return False
        self.best, self.excess, self.value = placement, excess, value
        return True

    def _anneal(self, annealing: ExcessAnnealing, end: float) -> None:
        """Anneal from the best plan until that gains nothing, or the work reaches `end`."""
        idle = 0
        while self.search.work < end and idle < MOST_IDLE and not self.search.stops():
            idle = 0 if self._anneal_once(annealing, end) else idle + 1

    def _anneal_once(self, annealing: ExcessAnnealing, end: float) -> bool:
        """Anneal from the best plan, until the work reaches `end`; return whether that gained."""
        search = self.search
        if search.work >= end or search.stops():
            return False
        part = search.part(end - search.work)
        gained = [self.offer(found) for found in annealing.run(self.best, part)]
        search.spend(part)
        return any(gained)

    def _least_excess(self, work: float) -> None:
        """Minimise the excess alone, exactly or by prices, as far as the work allows."""
        search = self.search
        problem = _excess_problem(search.problem)
        if len(problem.leader) * len(problem.brokers) > MOST_DENSE:
            return
        part = search.part(work)
        sub = Search(problem=problem, limits=part.limits, observer=part.observer)
        sub.offer(self.best)
        if pairs(problem) > FEW_PAIRS:
            solve_by_prices(sub)
        else:
            solve_exactly(sub)
        search.work += sub.work
        search.stopped = search.stopped or sub.stopped
        if sub.best is not None:
            self.offer(sub.best)
        # F is the cost of moves, at most that of all, and the price of the excess.
        least = (sub.bound - _cost_of_everything(problem)) / excess_price(problem)
        least = max(least, self.forced.excess)
        self.unreachable = least > EDGE
        self.proved = self.excess <= least + 2 * FINEST


def _cost_of_everything(problem: Problem) -> float:
    """Cost of moving every replica and leader, in units of F."""
    costs = problem.costs
    return float((costs.replica * problem.rf + costs.leader).sum())


def _excess_problem(problem: Problem) -> Problem:
    """The same rules and costs; for the exact model with an excess of `FINEST` above all moves."""
    price = USUAL_PRICE
    if pairs(problem) <= FEW_PAIRS:
        price = max(price, _cost_of_everything(problem) / problem.costs.move / FINEST)
    update = {"objective": ObjectiveKind.BAND, "excess_price": min(MOST, price)}
    return replace(problem, goals=problem.goals.model_copy(update=update))
