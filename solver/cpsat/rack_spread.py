"""The replicas of a row that moves comply with the rack mode of its group."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from ortools.sat.python import cp_model

from solver.cpsat.variables import Known, Variables
from solver.problem.co_location import RackMode
from solver.problem.placement import Placement
from solver.problem.problem import Problem
from solver.problem.rack_rule import keeps_racks

Literal = cp_model.LiteralT
"""A boolean variable or its negation."""

Racks = Mapping[int, Sequence[int]]
"""Brokers that may hold a row, by rack."""


def post_racks(problem: Problem, variables: Variables) -> None:
    """Constrain the racks of each row whose replicas move, by the rack mode of its group.

    A row that is not displaced may keep all its replicas, and rows with a single replica
    need no constraint; but an explicit placement binds every row.
    """
    spreading = problem.may.spreading
    for row, holders in variables.holders.items():
        mode = spreading.mode[spreading.group[row]]
        if mode == RackMode.OFF:
            continue
        racks: dict[int, list[int]] = defaultdict(list)
        for b in holders:
            racks[int(spreading.rack[b])].append(b)
        if mode == RackMode.EXACT:
            _exactly(problem, variables, row, racks)
        elif problem.rf[row] > 1:
            moves = _moves(problem, variables, row)
            spread = _even if mode == RackMode.EVEN else _spread
            spread(problem, variables, row, racks, moves)


def _enforce(constraint: cp_model.Constraint, *literals: Literal | None) -> None:
    """Make a constraint bind only where all literals are true; None is always true."""
    given = [literal for literal in literals if literal is not None]
    if given:
        constraint.only_enforce_if(given)


def _moves(problem: Problem, variables: Variables, row: int) -> Literal | None:
    """Whether the replicas move; None if a constraint binds whether or not they do."""
    home = [b for b in problem.replicas[row].tolist() if b >= 0]
    if problem.may.displaced[row] or keeps_racks(problem, row, home, as_if_moved=True):
        return None

    def unmoved(placement: Placement, _: Known) -> int:
        return int(placement.holders(row) == sorted(home))

    stays = variables.boolean(f"stays[{problem.snapshot.id(row)}]", unmoved)
    for b in home:
        variables.model.add_implication(stays, variables.on[row, b])
    # The variable must follow from the placement, so that hints are complete.
    on = [~variables.on[row, b] for b in home]
    variables.model.add_bool_or([stays, *on])
    return ~stays


def _spread(
    problem: Problem, variables: Variables, row: int, racks: Racks, moves: Literal | None
) -> None:
    spreading = problem.may.spreading
    wanted = int(spreading.distinct[spreading.group[row]])
    if wanted < 2:
        return
    if wanted == problem.rf[row]:
        for members in racks.values():
            if len(members) > 1:
                on = [variables.on[row, b] for b in members]
                _enforce(variables.model.add(sum(on) <= 1), moves)
        return
    used = [_used(problem, variables, row, rack, m) for rack, m in racks.items()]
    _enforce(variables.model.add(sum(used) >= wanted), moves)


def _used(
    problem: Problem, variables: Variables, row: int, rack: int, members: Sequence[int]
) -> cp_model.IntVar:
    """Whether a rack holds a replica of the row."""

    def holds(placement: Placement, _: Known) -> int:
        return int(any(b in members for b in placement.holders(row)))

    used = variables.boolean(f"rack[{problem.snapshot.id(row)},{rack}]", holds)
    on = [variables.on[row, b] for b in members]
    variables.model.add_bool_or(on).only_enforce_if(used)
    # Equivalence, not implication: hints must determine every variable.
    variables.model.add(sum(on) == 0).only_enforce_if(~used)
    return used


def _even(
    problem: Problem, variables: Variables, row: int, racks: Racks, moves: Literal | None
) -> None:
    spreading = problem.may.spreading
    takers = problem.may.alive & spreading.allow[spreading.group[row]]
    counts = {
        rack: cp_model.LinearExpr.sum([variables.on[row, b] for b in members])
        for rack, members in racks.items()
    }
    for other in np.unique(spreading.rack[takers]).tolist():
        here = np.flatnonzero(takers & (spreading.rack == other)).tolist()
        free = _free(problem, variables, row, here)
        for rack, most in counts.items():
            if rack != other:
                low = variables.model.add(most <= counts.get(other, 0) + 1)
                _enforce(low, moves, free)


def _free(
    problem: Problem, variables: Variables, row: int, takers: Sequence[int]
) -> Literal | None:
    """Whether some broker that may take the row does not hold it; None if always."""
    on = [variables.on[row, b] for b in takers if (row, b) in variables.on]
    if len(on) < len(takers) or len(takers) >= problem.rf[row]:
        return None

    def some(placement: Placement, _: Known) -> int:
        return int(not set(takers) <= set(placement.holders(row)))

    name = f"free[{problem.snapshot.id(row)},{takers[0]}]"
    free = variables.boolean(name, some)
    variables.model.add_bool_or([~v for v in on]).only_enforce_if(free)
    # The variable must follow from the placement, so that hints are complete.
    variables.model.add_bool_and(on).only_enforce_if(~free)
    return free


def _exactly(problem: Problem, variables: Variables, row: int, racks: Racks) -> None:
    spreading = problem.may.spreading
    wanted = spreading.required[spreading.group[row]].tolist()
    if sum(wanted) != problem.rf[row]:
        variables.model.add_bool_or([])
    for rack, count in enumerate(wanted):
        on = [variables.on[row, b] for b in racks.get(rack, ())]
        variables.model.add(sum(on) == count)
