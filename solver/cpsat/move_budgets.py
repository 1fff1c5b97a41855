"""A plan changes no more than its budgets allow."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ortools.sat.python import cp_model

from solver.cpsat.variables import Variables
from solver.problem.problem import Problem

Sums = tuple[list[cp_model.IntVar], list[int], int]
"""Variables, coefficients, constant."""


def post_budgets(problem: Problem, variables: Variables) -> None:
    """Bound moves, bytes and leader changes by the budgets that they could exceed.

    A replica that leaves one broker is new on another, so leaving replicas are counted, which needs
    variables only where replicas already are. Requires that rows keep their replication factor.
    """
    for most, (of, each, constant) in _limited_sums(problem, variables):
        if constant + sum(c for c in each if c > 0) > most:
            total = cp_model.LinearExpr.weighted_sum(of, each) + constant
            variables.model.add(total <= most)


def _limited_sums(problem: Problem, variables: Variables) -> Iterator[tuple[int, Sums]]:
    """Each limit, with the sum it bounds."""
    budgets, rows = problem.goals.budgets, variables.rows
    one = [1] * len(problem.leader)
    if budgets.replica_moves is not None:
        yield budgets.replica_moves, _moved(problem, variables, rows, one)
    if budgets.bytes is not None:
        # One copy over the budget is already too much, so larger sizes are capped.
        size = [min(budgets.bytes + 1, v) for v in problem.copied_bytes.tolist()]
        yield budgets.bytes, _moved(problem, variables, rows, size)
    if budgets.leader_changes is not None:
        led = [(row, int(problem.leader[row])) for row in rows]
        stay = [variables.lead[key] for key in led if key in variables.lead]
        yield budgets.leader_changes, (stay, [-1] * len(stay), len(led))
    if budgets.replica_moves_per_topic is not None:
        for members in _by_topic(problem, rows):
            yield budgets.replica_moves_per_topic, _moved(problem, variables, members, one)
    yield from _broker_sums(problem, variables)
    yield from _partition_sums(problem, variables)


def _partition_sums(problem: Problem, variables: Variables) -> Iterator[tuple[int, Sums]]:
    budgets = problem.goals.budgets
    if budgets.partitions is None and budgets.partitions_per_topic is None:
        return
    changed = {row: _changed(problem, variables, row) for row in variables.rows}
    if budgets.partitions is not None:
        yield budgets.partitions, _counted(list(changed.values()))
    if budgets.partitions_per_topic is not None:
        for members in _by_topic(problem, variables.rows):
            yield budgets.partitions_per_topic, _counted([changed[row] for row in members])


def _changed(problem: Problem, variables: Variables, row: int) -> cp_model.IntVar | None:
    """At least 1 where the row gets a replica or another leader; None if it must."""
    leader = int(problem.leader[row])
    held = [(row, b) for b in problem.replicas[row].tolist() if b >= 0]
    if (row, leader) not in variables.lead or any(h not in variables.on for h in held):
        return None
    stays = [variables.lead[row, leader], *(variables.on[h] for h in held)]
    found = variables.boolean(
        f"changed[{row}]", lambda _, known: int(not all(known[v.index] for v in stays))
    )
    for variable in stays:
        variables.model.add(found + variable >= 1)
    return found


def _counted(changed: Sequence[cp_model.IntVar | None]) -> Sums:
    open_ = [variable for variable in changed if variable is not None]
    return open_, [1] * len(open_), len(changed) - len(open_)


def _broker_sums(problem: Problem, variables: Variables) -> Iterator[tuple[int, Sums]]:
    into = problem.goals.budgets.replica_moves_in_per_broker
    out = problem.goals.budgets.replica_moves_out_per_broker
    for b in range(len(problem.brokers)):
        if into is not None:
            held = [(row, v) for (row, holder), v in variables.on.items() if holder == b]
            new = [v for row, v in held if not problem.home[row, b]]
            yield into, (new, [1] * len(new), 0)
        if out is not None:
            here = [row for row in variables.rows if problem.home[row, b]]
            stay = [variables.on[r, b] for r in here if (r, b) in variables.on]
            yield out, (stay, [-1] * len(stay), len(here))


def _moved(
    problem: Problem, variables: Variables, rows: Iterable[int], size: Sequence[int]
) -> Sums:
    """Sum of the replicas of `rows` that leave their broker, each weighted by its row's size."""
    stay, each, constant = [], [], 0
    for row in rows:
        constant += size[row] * int(problem.rf[row])
        for b in problem.replicas[row].tolist():
            if (row, b) in variables.on:
                stay.append(variables.on[row, b])
                each.append(-size[row])
    return stay, each, constant


def _by_topic(problem: Problem, rows: Iterable[int]) -> list[list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[problem.snapshot.id(row).topic].append(row)
    return list(found.values())
