"""Lifting of bounds where the costs of moves are multiples of one step."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats
from solver.band.load_prices import BandDual
from solver.problem.problem import Problem

SAME_PRICE: Final = 1e-9
"""Costs that differ by no more than this share are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """Raises bounds to the next possible cost of all moves together.

    Let P be the cost of the moves and E that of the excess, F = P + E. Prices pi that
    are `slack` times below their maximum even prove P + E / slack >= D. P comes in
    steps, so either P reaches the step above D, or E has to make up the difference.
    """

    step: float
    """Every cost is a multiple of this; 0 where that is not known."""
    slack: float
    """At least 1."""

    def of(self, bound: float) -> float:
        """Return the bound of F that a bound of P + E / slack proves, both in units of F.

        Never below `bound`; equal to it where the step is not known.
        """
        if self.step <= 0.0 or math.isinf(bound):
            return bound
        below = math.floor(bound / self.step + SAME_PRICE) * self.step
        if bound <= below * (1 + SAME_PRICE):
            return bound
        # Lowered by the possible rounding error of the steps.
        above = (below + self.step) * (1 - SAME_PRICE / 10)
        return max(bound, min(above, below + self.slack * (bound - below)))

    def needed(self, value: float) -> float:
        """Return the least bound of P + E / slack that proves F >= value; the inverse of `of`.

        All in units of F. Equal to `value` where the step is not known.
        """
        if self.step <= 0.0 or math.isinf(value):
            return value
        below = (math.ceil(value / self.step - SAME_PRICE) - 1) * self.step
        return min(value, below + self.step / self.slack)


def find_lift(dual: BandDual, prices: Floats) -> Lift:
    """Derive the lift from the costs of moves and (B, K) dual prices of deviation.

    The slack is the least ratio of the highest price that the excess allows to the
    highest price used, over the K dimensions.
    """
    steepest = np.abs(prices).max(axis=0, initial=0.0)
    slack = [
        most / price
        for most, price in zip(dual.most.tolist(), steepest.tolist(), strict=True)
        if price > 0
    ]
    step = _price_step(dual.problem)
    return Lift(step=step, slack=max(1.0, min(slack, default=1.0) * (1 - SAME_PRICE)))


def _price_step(problem: Problem) -> float:
    """A step of which every plan's cost of moves is a multiple; 0 if none is known.

    With one replica per row, a move changes the leader too.
    """
    free = problem.may.fixed_reason == 0
    prices, leader = problem.costs.replica[free], problem.costs.leader
    if not len(prices) or np.ptp(prices) > SAME_PRICE * prices.max():
        return 0.0
    price = float(prices[0])
    if (problem.rf[free] == 1).all() and not problem.may.forced.any():
        return price + leader
    if leader == 0:
        return price
    steps = price / leader
    whole = abs(steps - round(steps)) <= SAME_PRICE * steps
    return leader if whole else 0.0
