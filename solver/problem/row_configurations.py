"""The configurations of one row: which brokers hold it, and which one leads."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from solver.problem.problem import Problem
from solver.problem.rack_rule import keeps_racks


def configurations_of(
    problem: Problem, row: int, holders: Sequence[int], leaders: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Iterate over the configurations of a row that keep its own rules: brokers and cost.

    `holders` and `leaders` are the ascending positions of the brokers that may hold and lead the
    row. Brokers are given by position, the leader first; costs are in units of F, without those
    of the new replicas that every allowed placement has.
    """
    home = {b for b in problem.replicas[row].tolist() if b >= 0}
    free = int(problem.may.least_new[row])
    leading = set(leaders)
    for held in combinations(holders, int(problem.rf[row])):
        if not keeps_racks(problem, row, held):
            continue
        new = max(0, len(set(held) - home) - free) * problem.costs.replica[row]
        for leader in held:
            if leader in leading:
                led = leader != problem.leader[row]
                others = (b for b in held if b != leader)
                yield (leader, *others), float(new + led * problem.costs.leader)
