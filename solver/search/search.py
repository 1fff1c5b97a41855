"""The state of a solve: incumbent, bound and search budget."""

from dataclasses import dataclass, field
from typing import Final

from model.snapshot.snapshot import Floats
from solver.budget import Budget
from solver.problem.placement import Placement, changed_rows, objective, tolerance_excess
from solver.problem.problem import Problem

PROOF_SHARE: Final = 0.05
"""Share of the search budget that goes into a proof even where the gap is small."""


@dataclass(slots=True, kw_only=True)
class Search(Budget):
    """The best placement and the best bound of one solve; both only improve."""

    problem: Problem
    """The compiled problem; repairs may replace it by a tighter one."""
    best: Placement | None = None
    """The incumbent; None until a placement that keeps every rule is found."""
    objective: float = float("inf")
    """F of the incumbent; infinite without one."""
    moves: int = 0
    """Number of partitions that the incumbent changes."""
    bound: float = 0.0
    """Proved lower bound of F over all allowed placements."""
    infeasible: bool = False
    """Proved that no placement keeps every rule."""
    reserved: float = 0.0
    """Work units kept for the steps after the search."""
    exhausted: bool = False
    """The search budget is exhausted."""
    reserved_for_reasons: float = 0.0
    """Work units kept to explain infeasibility while there is no incumbent."""
    reserved_for_tolerance: float = 0.0
    """Work units kept, while the incumbent is outside the tolerance, to bring it inside."""
    tolerance_unmet: str = ""
    """Why no plan inside the tolerance was found; empty if the search did not look for one."""
    optimal_without_tolerance: bool = False
    """Proved that no allowed plan has a lower F than one outside the tolerance, now replaced."""
    least_excess: bool = True
    """Proved that no allowed plan comes closer to the tolerance; True where it was not sought."""
    price_bound: float = 0.0
    """The bound that dual prices prove on their own."""
    prices: Floats | None = None
    """(B, K) dual prices of deviation that prove it; None without any."""
    budget_prices: dict[str, float] = field(default_factory=dict)
    """Prices of budgets that prove it, by their field names in `Budgets`, those above 0."""
    method: str = "none"
    """What proved the bound."""
    unrepaired: dict[int, str] = field(default_factory=dict)
    """Rows that may move but still share racks, with the reason."""
    repaired_most: bool = True
    """Proved that no allowed plan repairs more."""
    repair_cut: bool = False
    """The share of the budget for repairs ended with brokers over limits and changes to try."""
    ended: str = ""
    """Clause on the part of the search that ran last and ended of its own accord."""
    near_to: str = ""
    """Hash of the earlier plan that the incumbent was kept near to; empty for none."""
    _judged: Placement | None = None
    _outside: bool = False

    @property
    def proved(self) -> bool:
        """Whether the best F is within the gap that the limits accept of the bound."""
        return self.objective - self.bound <= self.limits.gap

    @property
    def near_enough(self) -> bool:
        """Whether the search may end here: its best plan is proved, or near its bound.

        Near is a gap of at most `limits.gap_share` of F or `limits.noise`, once the work that a
        proof may take regardless, `PROOF_SHARE` of its limit, is done. Without a change in the
        plan the gap must also be below the cost of a move, so that none that could pay is missed.
        F under `band` counts moves, and is always proved.
        """
        if self.proved or self.problem.band or self.work < PROOF_SHARE * self.limits.work:
            return self.proved
        if self.best is None:
            return False
        near = self.limits.gap_share * abs(self.objective)
        if not self.moves:
            near = min(near, self.problem.costs.move)
        return self.objective - self.bound <= max(near, self.noise)

    @property
    def noise(self) -> float:
        """The gap that the noise of the loads excuses, in units of F: below the cost of a move."""
        return min(self.limits.noise, self.problem.costs.move)

    @property
    def work_left(self) -> float:
        """Work units that the search may still spend; excludes what later steps reserve."""
        kept = self.reserved + (self.reserved_for_reasons if self.best is None else 0.0)
        return max(0.0, self.limits.work - kept - self.work)

    def over(self, end: float = float("inf")) -> bool:
        """Return whether to stop now, as `Budget.over`; leaves what the tolerance may need."""
        if Budget.over(self, end):
            return True
        kept = self.reserved_for_tolerance
        return kept > 0.0 and self.work_left <= kept and self._is_outside()

    @property
    def work_before_tolerance(self) -> float:
        """Work units left for one step, less those kept while the incumbent is outside."""
        kept = self.reserved_for_tolerance
        return max(0.0, self.work_left - kept) if kept and self._is_outside() else self.work_left

    def _is_outside(self) -> bool:
        """Whether the incumbent leaves a broker outside its tolerance; False without one."""
        if self.best is None:
            return False
        if self._judged is not self.best:
            self._judged = self.best
            self._outside = tolerance_excess(self.problem, self.best) > 0.0
        return self._outside

    def offer(self, placement: Placement) -> None:
        """Make a placement the incumbent if its F is lower, and notify the observer.

        Rules are not checked: see `is_allowed`. Nothing happens at an equal F.
        """
        value = objective(self.problem, placement)
        if value < self.objective:
            self.best, self.objective = placement, value
            self.moves = len(changed_rows(self.problem, placement))
            self.observer.on_solution(value, self.moves)

    def keep(self, placement: Placement, near_to: str) -> None:
        """Make an allowed placement the incumbent though its F may be higher.

        `near_to` is the hash of the plan that it was kept near to.
        """
        self.best, self.objective = placement, objective(self.problem, placement)
        self.moves = len(changed_rows(self.problem, placement))
        self.near_to = near_to
        self.observer.on_solution(self.objective, self.moves)

    def prove(self, bound: float, method: str = "exact search") -> None:
        """Keep a lower bound of F if it is higher, and notify the observer.

        `method` names the proof in the plan file.
        """
        if bound > self.bound:
            self.bound, self.method = bound, method
            self.observer.on_bound(bound)

    def prove_by_prices(
        self, bound: float, prices: Floats, budget_prices: dict[str, float] | None = None
    ) -> None:
        """Keep a lower bound of F and the (B, K) prices that prove it, if it is higher.

        B brokers, and K balanced columns of the problem, including those of weight 0.
        `budget_prices` are as the field. All prices must be rounded as in a plan file, so that
        the bound can be checked from it. A `price_bound` below 0 is kept as 0.
        """
        if self.prices is None or bound > self.price_bound:
            self.price_bound, self.prices = max(0.0, bound), prices
            self.budget_prices = budget_prices or {}
        self.prove(bound, "prices")
