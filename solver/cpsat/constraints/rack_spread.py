"""The replicas of a row that moves comply with the rack mode of its group."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from solver.cpsat.constraints.constraint import Guard, Literal, enforce, unguarded
from solver.cpsat.variables import Known, Variables
from solver.problem.co_location import RackMode
from solver.problem.placement import Placement
from solver.problem.problem import Problem
from solver.problem.rack_rule import keeps_racks

Racks = Mapping[int, Sequence[int]]
"""Brokers that may hold a row, by rack."""

When = tuple[Literal | None, ...]
"""Literals under which a constraint binds; None stands for always."""


@dataclass(frozen=True)
class RackConstraints:
    """Rack spread, even racks and explicit placements.

    Guards `racks of TOPIC-PARTITION` and `placement of TOPIC-PARTITION`.
    """

    name: str = "racks"

    def post(self, problem: Problem, variables: Variables, guard: Guard = unguarded) -> None:
        """Constrain the racks of each row that changes; a row may also keep all its replicas.

        Explicit placements bind in any case.
        """
        spreading = problem.may.spreading
        for row, holders in variables.holders.items():
            mode = spreading.mode[spreading.group[row]]
            if mode == RackMode.OFF:
                continue
            racks: dict[int, list[int]] = defaultdict(list)
            for b in holders:
                racks[int(spreading.rack[b])].append(b)
            pid = problem.snapshot.id(row)
            when: When
            if mode == RackMode.EXACT:
                when = (guard(f"placement of {pid}"),)
                _exactly(problem, variables, row, racks, when)
            elif problem.rf[row] > 1:
                when = (guard(f"racks of {pid}"), _moves(problem, variables, row))
                spread = _even if mode == RackMode.EVEN else _spread
                spread(problem, variables, row, racks, when)


def _moves(problem: Problem, variables: Variables, row: int) -> Literal | None:
    """Whether the replicas move; None if a constraint binds whether or not they do."""
    home = [b for b in problem.replicas[row].tolist() if b >= 0]
    if problem.may.forced[row] or _moved_there_is_allowed(problem, row, home):
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


def _moved_there_is_allowed(problem: Problem, row: int, home: list[int]) -> bool:
    return keeps_racks(problem, row, home, as_if_moved=True)


def _spread(problem: Problem, variables: Variables, row: int, racks: Racks, when: When) -> None:
    spreading = problem.may.spreading
    wanted = int(spreading.distinct[spreading.group[row]])
    if wanted < 2:
        return
    if wanted == problem.rf[row]:
        for members in racks.values():
            if len(members) > 1:
                on = [variables.on[row, b] for b in members]
                enforce(variables.model.add(sum(on) <= 1), *when)
        return
    used = [_used(problem, variables, row, rack, m) for rack, m in racks.items()]
    enforce(variables.model.add(sum(used) >= wanted), *when)


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


def _even(problem: Problem, variables: Variables, row: int, racks: Racks, when: When) -> None:
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
                enforce(low, *when, free)


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


def _exactly(problem: Problem, variables: Variables, row: int, racks: Racks, when: When) -> None:
    spreading = problem.may.spreading
    wanted = spreading.wanted[spreading.group[row]].tolist()
    if sum(wanted) != problem.rf[row]:
        enforce(variables.model.add_bool_or([]), *when)
    for rack, count in enumerate(wanted):
        on = [variables.on[row, b] for b in racks.get(rack, ())]
        enforce(variables.model.add(sum(on) == count), *when)
