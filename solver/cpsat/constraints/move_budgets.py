"""A plan changes no more than its budgets allow."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ortools.sat.python import cp_model

from solver.cpsat.constraints.constraint import Guard, enforce, unguarded
from solver.cpsat.variables import Variables
from solver.problem.problem import Problem

Sums = tuple[list[cp_model.IntVar], list[int], int]
"""Variables, coefficients, constant."""


@dataclass(frozen=True)
class BudgetConstraints:
    """Moves, bytes and leader changes stay within the budgets of one plan.

    A replica that leaves one broker is new on another, so leaving replicas are counted,
    which needs variables only where replicas already are. Guards `budget of moves`,
    `budget of bytes`, `budget of leader changes`, `budget of moves of topic NAME`,
    `budget of moves to broker ID`, `budget of moves from broker ID`, `budget of
    partitions` and `budget of partitions of topic NAME`.
    """

    name: str = "budgets"

    def post(self, problem: Problem, variables: Variables, guard: Guard = unguarded) -> None:
        """Post one sum for each budget of the goals that the moves could exceed."""
        for thing, most, (of, each, constant) in _limited_sums(problem, variables):
            high = constant + sum(c for c in each if c > 0)
            if high > most:
                total = cp_model.LinearExpr.weighted_sum(of, each) + constant
                enforce(variables.model.add(total <= most), guard(f"budget of {thing}"))


def _limited_sums(problem: Problem, variables: Variables) -> Iterator[tuple[str, int, Sums]]:
    budgets, rows = problem.goals.budgets, variables.rows
    if budgets.replica_moves is not None:
        yield ("moves", budgets.replica_moves, _moved(problem, variables, rows, lambda _: 1))
    if budgets.bytes is not None:
        # One copy over the budget is already too much, so larger sizes are capped.
        most = budgets.bytes + 1
        size = [min(most, v) for v in problem.copied_bytes.tolist()]
        moved = _moved(problem, variables, rows, lambda row: size[row])
        yield "bytes", budgets.bytes, moved
    if budgets.leader_changes is not None:
        yield ("leader changes", budgets.leader_changes, _leader_changes(problem, variables))
    if budgets.replica_moves_per_topic is not None:
        for topic, members in _by_topic(problem, rows).items():
            moved = _moved(problem, variables, members, lambda _: 1)
            yield f"moves of topic {topic}", budgets.replica_moves_per_topic, moved
    yield from _broker_sums(problem, variables)
    yield from _partition_sums(problem, variables)


def _partition_sums(problem: Problem, variables: Variables) -> Iterator[tuple[str, int, Sums]]:
    budgets = problem.goals.budgets
    if budgets.partitions is None and budgets.partitions_per_topic is None:
        return
    changed = {row: _changed(problem, variables, row) for row in variables.rows}
    if budgets.partitions is not None:
        yield "partitions", budgets.partitions, _counted(changed.values())
    if budgets.partitions_per_topic is not None:
        for topic, members in _by_topic(problem, variables.rows).items():
            found = _counted(changed[row] for row in members)
            yield f"partitions of topic {topic}", budgets.partitions_per_topic, found


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


def _counted(changed: Iterable[cp_model.IntVar | None]) -> Sums:
    changed = list(changed)
    open_ = [variable for variable in changed if variable is not None]
    return open_, [1] * len(open_), len(changed) - len(open_)


def _broker_sums(problem: Problem, variables: Variables) -> Iterator[tuple[str, int, Sums]]:
    into, out = (
        problem.goals.budgets.replica_moves_in_per_broker,
        problem.goals.budgets.replica_moves_out_per_broker,
    )
    for b, broker in enumerate(problem.brokers):
        if into is not None:
            new = [
                v
                for (row, holder), v in variables.on.items()
                if holder == b and not problem.home[row, b]
            ]
            yield f"moves to broker {broker}", into, (new, [1] * len(new), 0)
        if out is not None:
            here = [row for row in variables.rows if problem.home[row, b]]
            stay = [variables.on[r, b] for r in here if (r, b) in variables.on]
            sums = stay, [-1] * len(stay), len(here)
            yield f"moves from broker {broker}", out, sums


def _moved(
    problem: Problem, variables: Variables, rows: Iterable[int], size: Callable[[int], int]
) -> Sums:
    """Sum of the replicas that leave their broker, each weighted by its row's size."""
    stay, each, constant = [], [], 0
    for row in rows:
        constant += size(row) * int(problem.rf[row])
        for b in problem.replicas[row].tolist():
            if (row, b) in variables.on:
                stay.append(variables.on[row, b])
                each.append(-size(row))
    return stay, each, constant


def _leader_changes(problem: Problem, variables: Variables) -> Sums:
    led = [(row, int(problem.leader[row])) for row in variables.rows]
    stay = [variables.lead[key] for key in led if key in variables.lead]
    return stay, [-1] * len(stay), len(led)


def _by_topic(problem: Problem, rows: Iterable[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[problem.snapshot.id(row).topic].append(row)
    return found
