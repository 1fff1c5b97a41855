"""What a solve knows so far."""

from dataclasses import dataclass, field

from model.snapshot.snapshot import Floats
from solver.budget import Budget
from solver.problem.placement import Placement, changed_rows, objective
from solver.problem.problem import Problem


@dataclass(slots=True, kw_only=True)
class Search(Budget):
    """The best placement and the best bound; both only get better."""

    problem: Problem
    best: Placement | None = None
    objective: float = float("inf")
    """True F of the best placement; infinite without one."""
    bound: float = 0.0
    """Proved: no allowed placement has an F below this."""
    infeasible: bool = False
    """Proved that there is no allowed placement."""
    reserved: float = 0.0
    """Work that is kept for the steps after the search."""
    exhausted: bool = False
    """The search has done all the work that it may."""
    reserved_for_reasons: float = 0.0
    """The same while no placement is known: to find out why there is none."""
    price_bound: float = 0.0
    """The part of the bound that prices prove alone."""
    prices: Floats | None = None
    """(B, K) prices of deviation that prove it; None without any."""
    method: str = "none"
    """What proved the bound."""
    unrepaired: dict[int, str] = field(default_factory=dict)
    """Rows that may move and still share racks, and why."""
    repaired_most: bool = True
    """Proved that no allowed plan repairs more."""

    @property
    def proved(self) -> bool:
        """Whether nothing is left to gain."""
        return self.objective - self.bound <= self.limits.gap

    @property
    def work_left(self) -> float:
        """Deterministic work that the search may still do."""
        kept = self.reserved + (self.reserved_for_reasons if self.best is None else 0.0)
        return max(0.0, self.limits.work - kept - self.work)

    def offer(self, placement: Placement) -> None:
        """Keep a placement if it is the best."""
        value = objective(self.problem, placement)
        if value < self.objective:
            self.best, self.objective = placement, value
            moves = len(changed_rows(self.problem, placement))
            self.observer.on_solution(value, moves)

    def prove(self, bound: float, method: str = "exact search") -> None:
        """Keep a bound if it is the best."""
        if bound > self.bound:
            self.bound, self.method = bound, method
            self.observer.on_bound(bound)

    def prove_by_prices(self, bound: float, prices: Floats) -> None:
        """Keep a bound and the prices that prove it; (B, K), as a file has them."""
        if self.prices is None or bound > self.price_bound:
            self.price_bound, self.prices = max(0.0, bound), prices
        self.prove(bound, "prices")
