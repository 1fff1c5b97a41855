"""F in whole numbers, never above the true F.

CP-SAT counts in integers and has no squares. Each squared deviation is replaced by the
highest of its tangents (an outer approximation: Duran and Grossmann, 1986), each
coefficient is rounded down, and each tangent is lowered by the largest effect of
rounding loads. So the optimum of the model is a true lower bound of F; how tight it is
depends on the tangents, which are added at the plans found until nothing is left to
gain. The excess over a tolerance band is linear and needs only two lines.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from ortools.sat.python import cp_model

from solver.cpsat.topic_terms import topic_terms, worst_topic_cost
from solver.cpsat.variables import Known, Variables
from solver.problem.placement import Placement, deviations, excess_price, loads_of
from solver.problem.problem import Problem

MEAN_UNITS: Final = 2**26
"""Parts of a mean load in which deviations are counted. Rounding the loads of 60 rows
errs by 2e-7 of a mean on average, and F by that times twice the deviation: far below
1e-6. Coarser units were no faster."""

F_BITS: Final = 40
"""F is counted in parts of 2^-40. Slopes of tangents then come in steps that put each
within 3e-5 of its intended deviation, which costs 1e-9 of F."""

MOST_BITS: Final = 50
"""No sum of costs exceeds 2^50, so that 1,000 terms and their products with slopes fit
64 bits: where F is over 2^10 it is counted more coarsely."""

WEIGHT_UNITS: Final = 2**16
"""Parts in which weights of the excess are counted."""

SLOPE_BITS: Final = 57
"""Under `band` an excess of one mean load costs at most 2^57 parts of F; twice that,
with the cost beside it, fits 64 bits."""

FIRST_TANGENTS: Final = tuple(sign * 0.002 * 1.35**step for step in range(20) for sign in (-1, 1))
"""Deviations with a tangent from the start: dense near 0, where good plans are, and up
to 60 %; between two of them the square is underestimated by at most 2.3 %."""


MOST_SECANTS: Final = 60
"""Attainable deviations of a broker up to which secants replace tangents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationTerm:
    """Cost of one deviation from a mean load, held up by lines that never exceed it."""

    model: cp_model.CpModel
    units: int
    """Parts in which one unit of F is counted."""
    weight: float
    deviation: cp_model.IntVar
    """In parts of 1 / `MEAN_UNITS` of the mean load."""
    error: float
    """Largest shift of the deviation by rounding, as a share of the mean load."""
    cost: cp_model.IntVar
    """At most weight x deviation^2, or the cost of the excess, in parts of F."""
    attainable: range = range(0)
    """Deviations that whole loads can add up to, or a superset."""
    tangents: dict[int, int] = field(default_factory=dict)
    """Value at deviation 0 by slope, both in whole units."""

    @property
    def exact(self) -> bool:
        """Whether so few deviations are attainable that secants represent the square."""
        return 1 < len(self.attainable) <= MOST_SECANTS

    def add_tangent(self, deviation: float) -> bool:
        """Add the tangent of the square near a deviation; return whether it is new.

        `deviation` is a share of the mean load, 0 at the mean. The slope is rounded to whole units
        and the height down, so the tangent never exceeds the square; it is not new if there is one
        with its slope. Requires a weight above 0; not for `band`.
        """
        steep = 2 * self.weight * self.units / MEAN_UNITS
        slope = round(steep * deviation)
        if slope in self.tangents:
            return False
        # The tangent with this slope touches at slope / steep, wherever that is.
        height = -(slope * slope / steep * MEAN_UNITS / 2)
        height -= abs(slope) * MEAN_UNITS * self.error
        self._add_line(slope, math.floor(height) - 1)
        return True

    def add_secants(self, attainable: range) -> None:
        """Add lines that meet the square at the only deviations attainable.

        `attainable` is two deviations or more, ascending, in parts of 1 / `MEAN_UNITS`. Where
        few are, the secants are far above the tangents, and no line has to be added later.
        """
        steep = self.weight * self.units / MEAN_UNITS**2
        squares = [steep * x * x for x in attainable]
        most = max(abs(attainable[0]), abs(attainable[-1]))
        # The true deviation is off by the rounding of loads.
        lowered = 2 * steep * most * self.error * MEAN_UNITS
        # Secants are tight between two deviations, but whole slopes miss their squares by a
        # little; a line between two secants' slopes meets the square.
        slopes = {round(2 * steep * x) for x in attainable}
        slopes |= {round((b - a) / attainable.step) for a, b in itertools.pairwise(squares)}
        for slope in sorted(slopes):
            pairs = zip(attainable, squares, strict=True)
            height = min(square - slope * x for x, square in pairs) - lowered
            self._add_line(slope, math.floor(height) - 1)

    def add_band(self, tolerance: float, excess: float) -> None:
        """Add the two lines of the excess over a tolerance band.

        `tolerance` is a share of the mean load; `excess` is the cost, in units of F and before the
        term's weight, of a deviation of one mean load beyond it.
        """
        slope = math.floor(self.weight * excess * self.units / MEAN_UNITS)
        height = -math.ceil(slope * (tolerance + self.error) * MEAN_UNITS) - 1
        self._add_line(slope, height)
        self._add_line(-slope, height)

    def _add_line(self, slope: int, height: int) -> None:
        self.tangents[slope] = height
        self.model.add(self.cost >= slope * self.deviation + height)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLoads:
    """Loads of one broker in whole `MEAN_UNITS`, and the deviation that they add up to."""

    units: list[int]
    """Of each load with a variable."""
    start: int
    """The deviation without them."""
    error: float
    """Largest error of the deviation by rounding, as a share of the mean load."""

    @classmethod
    def of(cls, loads: list[float], fixed: float) -> "WholeLoads":
        """Round loads, one for each variable, and the load that is fixed, to whole units.

        All are given in parts of 1 / `MEAN_UNITS` of the mean load.
        """
        start = fixed - MEAN_UNITS
        units = [round(load) for load in loads]
        pairs = zip([*loads, start], [*units, round(start)], strict=True)
        error = sum(abs(exact - whole) for exact, whole in pairs) / MEAN_UNITS
        return cls(units=units, start=round(start), error=error)

    def deviation(self, values: Iterable[int]) -> int:
        """Compute the deviation, in parts of 1 / `MEAN_UNITS` of the mean load.

        `values`, 0 or 1, are those of the variables, in the order of `units`; raises ValueError
        if there are more or fewer.
        """
        return self.start + sum(u * v for u, v in zip(self.units, values, strict=True))

    def attainable(self, low: int, high: int) -> range:
        """Return the deviations within a range that loads can add up to, or a superset.

        Where all loads are multiples of one, they lie that far apart.
        """
        step = math.gcd(*self.units)
        if not step:
            return range(self.start, self.start + 1)
        first = self.start + -(-(low - self.start) // step) * step
        return range(first, high + 1, step)

    def range(self, reach: float) -> tuple[int, int]:
        """Return the least and highest deviation within `reach`, a share of the mean load.

        Both are in parts of 1 / `MEAN_UNITS` of the mean load, and rounded outwards.
        """
        most = math.ceil(reach * MEAN_UNITS) + 1
        low = max(self.start, -most)
        # Where even the start is out of reach, the cost's upper bound forbids it.
        return low, max(low, min(self.start + sum(self.units), most))


def bound_of(value: float, units: int) -> float:
    """Convert CP-SAT's bound, counted in parts of 1 / `units` of F, to a valid lower bound of F.

    Rounded down past the accuracy of floating-point F and at least 0; 0 where CP-SAT has none.
    """
    if not math.isfinite(value):
        return 0.0
    # The floating-point sum of F is accurate to a share of 1e-13.
    return max(0.0, math.floor(value) * (1 - 1e-12) / units - 1e-12)


class Objective:
    """The terms of F over the variables of one model, as sums of integers.

    `most` is an upper bound of F, such as the incumbent's; it limits the domains.
    `units` is the number of parts in which one unit of F is counted.
    """

    def __init__(self, problem: Problem, variables: Variables, most: float) -> None:
        self._problem, self._variables = problem, variables
        if not math.isfinite(most):
            most = worst_cost(problem)
        returned = float(problem.costs.refund.sum())
        self._cost_cap = most + returned + 1
        room = MOST_BITS - math.ceil(math.log2(self._cost_cap))
        self.units: int = 2 ** min(room, _band_bits(problem) if problem.band else F_BITS)
        self.most = most
        # The deviations that are balanced, by broker and goal.
        self.terms = {(b, k): self._term(b, k) for b, k in self._balanced()}
        for (_, k), term in self.terms.items():
            if problem.band:
                term.add_band(float(problem.tolerance[k]), excess_price(problem))
            elif term.exact:
                term.add_secants(term.attainable)
            else:
                for deviation in FIRST_TANGENTS:
                    term.add_tangent(deviation)
        self._post_excess()
        costs, coefficients, fixed = self._change_costs()
        topics, imbalance = topic_terms(problem, variables, self.units)
        costs += [*(term.cost for term in self.terms.values()), *topics]
        coefficients += [1] * (len(self.terms) + len(topics))
        total = cp_model.LinearExpr.weighted_sum(costs, coefficients)
        refund = math.ceil(returned * self.units)
        variables.model.minimize(total + (fixed + imbalance - refund))

    def refine(self, placement: Placement) -> bool:
        """Add tangents of the squares at a placement's deviations; return whether any was new.

        An outer approximation: with no new tangent, the model's value is F at the
        placement. Never new for `band`, whose terms are linear.
        """
        problem = self._problem
        if problem.band:
            return False
        where = deviations(problem, loads_of(problem, placement))
        terms = [(at, term) for at, term in self.terms.items() if not term.exact]
        new = [term.add_tangent(where[at]) for at, term in terms]
        return any(new)

    def _post_excess(self) -> None:
        """Demand that plans come as close to the tolerance as `Problem.most_excess` says.

        Rounding only widens what is allowed, so that the bound stays valid.
        """
        problem, variables = self._problem, self._variables
        if not math.isfinite(problem.most_excess):
            return
        excesses, weights, slack = [], [], 0.0
        # Sums of excesses must stay below 2^63, however large the weights are.
        units = WEIGHT_UNITS / max(1.0, float(problem.weight.max(initial=0.0)))
        for (b, k), term in self.terms.items():
            edge = float(problem.tolerance[k])
            inside = math.ceil((edge + term.error) * MEAN_UNITS) + 1
            weight = float(problem.weight[k])
            if problem.most_excess <= 0.0:
                variables.model.add_linear_constraint(term.deviation, -inside, inside)
                continue
            name = f"excess[{problem.keys[k]},{problem.brokers[b]}]"
            at = term.deviation

            def beyond(_: Placement, known: Known, at: Any = at, inside: int = inside) -> int:
                return max(0, abs(known[at.index]) - inside)

            excess = variables.integer(0, 2**40, name, beyond)
            variables.model.add(excess >= at - inside)
            variables.model.add(excess >= -at - inside)
            excesses.append(excess)
            weights.append(max(0, math.floor(weight * units)))
            slack += weight
        if excesses:
            most = math.ceil(problem.most_excess * (1 + 1e-9) * MEAN_UNITS * units)
            most += math.ceil(slack * units)
            total = cp_model.LinearExpr.weighted_sum(excesses, weights)
            variables.model.add(total <= most)

    def _balanced(self) -> list[tuple[int, int]]:
        holding = np.flatnonzero(self._problem.may.holding).tolist()
        weighed = np.flatnonzero(self._problem.weight > 0).tolist()
        return [(b, k) for b in holding for k in weighed]

    def _term(self, b: int, k: int) -> DeviationTerm:
        problem, variables = self._problem, self._variables
        held, column = variables.terms.get(b, []), problem.column[k]
        slope = problem.slope[b, k] * MEAN_UNITS
        whole = WholeLoads.of(
            [float(load[column] * slope) for _, load in held],
            float(variables.fixed[b, column] * slope),
        )
        names = f"{problem.keys[k]},{problem.brokers[b]}"
        sum_of = [variable for variable, _ in held]

        def deviation(_: Placement, known: Known) -> int:
            return whole.deviation(known[v.index] for v in sum_of)

        low, high = whole.range(self._reach(k, whole.error))
        at = variables.integer(low, high, f"deviation[{names}]", deviation)
        tangents: dict[int, int] = {}

        def highest(_: Placement, known: Known) -> int:
            return max(0, *(s * known[at.index] + h for s, h in tangents.items()))

        most = math.ceil(self.most * self.units) + 1
        cost = variables.integer(0, most, f"cost[{names}]", highest)
        total = cp_model.LinearExpr.weighted_sum(sum_of, whole.units) + whole.start
        variables.model.add(at == total)
        return DeviationTerm(
            model=variables.model,
            units=self.units,
            weight=float(problem.weight[k]),
            deviation=at,
            error=whole.error,
            cost=cost,
            attainable=whole.attainable(low, high),
            tangents=tangents,
        )

    def _reach(self, k: int, error: float) -> float:
        """Deviations beyond this cost more by themselves than the incumbent."""
        problem, weight = self._problem, float(self._problem.weight[k])
        reach = math.sqrt(self.most / weight) + error
        if problem.band:
            reach = float(problem.tolerance[k]) + error
            reach += self.most / (weight * excess_price(problem))
        return reach * (1 + 1e-9)

    def _change_costs(self) -> tuple[list[cp_model.IntVar], list[int], int]:
        """Variables, coefficients and constant of the cost of changes.

        A replica that leaves is new elsewhere, so what stays at home is subtracted. A
        cost above that of any plan counts as just that.
        """
        problem, variables = self._problem, self._variables
        stay, each, fixed = [], [], 0
        led = math.floor(min(self._cost_cap, problem.costs.leader) * self.units)
        for row in variables.rows:
            each_new = min(self._cost_cap, float(problem.costs.replica[row]))
            price = math.floor(each_new * self.units)
            fixed += price * int(problem.rf[row]) + led
            leader = int(problem.leader[row])
            kept = [(variables.on.get((row, b)), price) for b in problem.replicas[row].tolist()]
            kept.append((variables.lead.get((row, leader)), led))
            stay += [v for v, _ in kept if v is not None]
            each += [-p for v, p in kept if v is not None]
        return stay, each, fixed


def _band_bits(problem: Problem) -> int:
    """Parts of F such that the whole slope of the excess neither vanishes nor overflows."""
    steepest = excess_price(problem) * float(problem.weight.max(initial=0.0))
    return SLOPE_BITS - math.ceil(math.log2(steepest)) if steepest > 0 else F_BITS


def worst_cost(problem: Problem) -> float:
    """Return an upper bound of F: all load on one broker, and every replica moved."""
    most = (problem.mean_load * problem.may.holding.sum()) * problem.slope
    most = np.maximum(1, most)
    cost = excess_price(problem) * most if problem.band else most**2
    moved = problem.costs.replica * problem.rf + problem.costs.leader
    imbalance = float((cost * problem.weight).sum()) + worst_topic_cost(problem)
    return imbalance + float(moved.sum()) + 1
