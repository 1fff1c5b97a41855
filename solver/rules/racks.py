"""Replicas of a row lie in as many racks as possible."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from solver.placement import Placement
from solver.problem import Problem
from solver.variables import Known, Variables

Racks = Mapping[int, Sequence[int]]
"""Brokers that may hold a row, by rack."""


@dataclass(frozen=True)
class RackSpread:
    """A row whose replicas move ends in `problem.racks_wanted` racks."""

    name: str = "rack spread"

    def post(self, problem: Problem, variables: Variables) -> None:
        """Spread each row, or leave all of its replicas where they are."""
        for row, holders in variables.holders.items():
            wanted = int(problem.racks_wanted[row])
            if wanted < 2:
                continue
            racks: dict[int, list[int]] = defaultdict(list)
            for b in holders:
                racks[int(problem.racks[b])].append(b)
            stays = _stays(problem, variables, row, wanted)
            if wanted == problem.rf[row]:
                _at_most_one(variables, row, racks, stays)
            else:
                _count(problem, variables, row, racks, stays)


def _stays(
    problem: Problem, variables: Variables, row: int, wanted: int
) -> cp_model.IntVar | None:
    """Whether the replicas stay: a choice only where they lie in too few racks now."""
    home = problem.home[row]
    if problem.may.forced[row] or len(set(problem.racks[home].tolist())) >= wanted:
        return None

    def unmoved(placement: Placement, _: Known) -> int:
        return int((placement.on[row] == home).all())

    stays = variables.boolean(f"stays[{problem.snapshot.ids[row]}]", unmoved)
    for b in variables.holders[row]:
        if home[b]:
            variables.model.add_implication(stays, variables.on[row, b])
    return stays


def _at_most_one(
    variables: Variables, row: int, racks: Racks, stays: cp_model.IntVar | None
) -> None:
    for members in racks.values():
        on = [variables.on[row, b] for b in members]
        if len(on) < 2:
            continue
        if stays is None:
            variables.model.add_at_most_one(on)
        else:
            variables.model.add(sum(on) <= 1).only_enforce_if(~stays)


def _count(
    problem: Problem,
    variables: Variables,
    row: int,
    racks: Racks,
    stays: cp_model.IntVar | None,
) -> None:
    """More replicas than racks: count the racks that hold one."""
    used = []
    for rack, members in racks.items():

        def holds(
            placement: Placement, _: Known, members: Sequence[int] = members
        ) -> int:
            return int(placement.on[row, members].any())

        name = f"rack[{problem.snapshot.ids[row]},{rack}]"
        used.append(variables.boolean(name, holds))
        on = [variables.on[row, b] for b in members]
        variables.model.add_bool_or(on).only_enforce_if(used[-1])
        # A rack counts whenever it holds one, so that hints have one value only.
        variables.model.add(sum(on) == 0).only_enforce_if(~used[-1])
    spread = variables.model.add(sum(used) >= int(problem.racks_wanted[row]))
    if stays is not None:
        spread.only_enforce_if(~stays)
