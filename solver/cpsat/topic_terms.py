"""Balance topic by topic, as terms of the exact model.

A topic's replicas on a broker are a whole number, so the secants between neighbouring
numbers represent the square exactly, and none has to be added later.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from ortools.sat.python import cp_model

from model.snapshot.snapshot import Count, Floats, Ints
from solver.cpsat.variables import Known, Variables
from solver.problem.placement import Placement, topic_counts, topic_totals
from solver.problem.problem import Problem


def topic_terms(
    problem: Problem, variables: Variables, units: int
) -> tuple[list[cp_model.IntVar], int]:
    """Create the cost variables of counts that can change, and add up the cost of the others.

    Returns the variables and the sum, both in parts of 1 / `units` of F and rounded down; [] and 0
    unless topics are balanced one by one. Adds the constraints that tie the variables to counts.
    """
    costs: list[cp_model.IntVar] = []
    constant = 0.0
    for measure, weight in problem.topic_share:
        cost, mean = _weights(problem, measure, weight)
        fixed = _fixed(problem, variables, measure)
        varying = _varying(problem, variables, measure)
        holding = np.flatnonzero(problem.may.holding).tolist()
        for topic, b in itertools.product(range(len(fixed)), holding):
            held = varying.get((topic, b), [])
            squares = _squares(cost[topic] * units, mean[topic], fixed[topic, b], len(held))
            if held:
                name = f"{measure},{topic},{problem.brokers[b]}"
                costs.append(_term(variables, squares, held, name))
            else:
                constant += float(squares[0])
    return costs, math.floor(constant)


def worst_topic_cost(problem: Problem) -> float:
    """Return an upper bound of `topic_cost`, in units of F: each topic on one broker."""
    brokers = int(problem.may.holding.sum())
    return sum(weight for _, weight in problem.topic_share) * brokers * (brokers + 1)


def _squares(height: float, mean: float, fixed: int, most: int) -> Floats:
    """(most + 1,) height x ((count + fixed) / mean - 1)^2 of each count up to `most`."""
    relative = (np.arange(most + 1) + fixed) / mean - 1.0
    squares: Floats = height * relative * relative
    return squares


def _secants(squares: Floats) -> Iterator[tuple[int, int]]:
    """Slopes and intercepts; no line is above a square at its count."""
    count = np.arange(len(squares))
    for slope in sorted({math.floor(s) for s in np.diff(squares).tolist()}):
        yield slope, math.floor(float((squares - slope * count).min())) - 1


def _term(
    variables: Variables, squares: Floats, held: list[cp_model.IntVar], name: str
) -> cp_model.IntVar:
    lines = list(_secants(squares))
    highest = max(0, *(s * c + h for s, h in lines for c in (0, len(held))))
    indices = [v.index for v in held]

    def number(_: Placement, known: Known) -> int:
        return sum(known[i] for i in indices)

    # Lines over the decisions themselves would need quadratically many terms.
    count = variables.integer(0, len(held), f"count[{name}]", number)
    variables.model.add(count == cp_model.LinearExpr.sum(held))

    def value(_: Placement, known: Known) -> int:
        return max(0, *(s * known[count.index] + h for s, h in lines))

    cost = variables.integer(0, highest, f"imbalance[{name}]", value)
    for slope, height in lines:
        variables.model.add(cost >= slope * count + height)
    return cost


def _weights(problem: Problem, measure: Count, weight: float) -> tuple[Floats, Floats]:
    """(topics,) factor of each topic's square, and (topics,) mean per broker."""
    total = topic_totals(problem, measure)
    brokers = max(1, int(problem.may.holding.sum()))
    share = weight * total / max(1.0, float(total.sum()))
    return share, np.maximum(total, 1.0) / brokers


def _fixed(problem: Problem, variables: Variables, measure: Count) -> Ints:
    """(topics, B) counts of the rows without a choice."""
    replicas, leader = problem.replicas.copy(), problem.leader.copy()
    rows = list(variables.rows)
    replicas[rows], leader[rows] = -1, -1
    stay = Placement(replicas=replicas, leader=leader)
    return topic_counts(problem, stay, measure)


def _varying(
    problem: Problem, variables: Variables, measure: Count
) -> dict[tuple[int, int], list[cp_model.IntVar]]:
    """Decisions that count, by topic and broker."""
    leads = measure is Count.TOPIC_LEADERS
    decisions = variables.lead if leads else variables.on
    topic = problem.snapshot.partitions.topic.tolist()
    found: dict[tuple[int, int], list[cp_model.IntVar]] = defaultdict(list)
    for (row, b), variable in decisions.items():
        found[topic[row], b].append(variable)
    return found
