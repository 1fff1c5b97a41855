"""Symmetry breaking: of plans that differ by exchanging equals, the model keeps one.

Both orders can hold at once, since exchanging equal rows changes no broker's load.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import pairwise

from ortools.sat.python import cp_model

from solver.cpsat.variables import Variables
from solver.problem.placement import Placement
from solver.problem.problem import Problem


class Symmetry:
    """Orders of equal rows and equal brokers, as constraints and as an exchange."""

    def __init__(
        self, problem: Problem, variables: Variables, filled: Mapping[int, cp_model.IntVar]
    ) -> None:
        """Post the orders as constraints.

        Of equal rows, an earlier one is not led by a later broker; of equal brokers, an
        earlier one has at least the load of a later one in the first resource. `filled` has
        each broker's deviation there; if it is empty, brokers are not ordered.
        """
        self._problem, self._variables, self._filled = problem, variables, filled
        self._rows = equal_rows(problem, variables)
        self._brokers = equal_brokers(problem, variables) if filled else []
        for group in self._rows:
            for earlier, later in pairwise(map(self._led, group)):
                variables.model.add(earlier <= later)
        for group in self._brokers:
            for one, other in pairwise(group):
                variables.model.add(filled[one] >= filled[other])

    def ordered(self, placement: Placement) -> Placement:
        """Return an equivalent placement that respects the order of equal rows and brokers.

        It has the same F and complies with the constraints that break the symmetry.
        """
        on = placement.on(len(self._problem.brokers))
        leader = placement.leader.copy()
        known = self._variables.values(placement)
        for group in self._brokers:
            filled = {b: known[self._filled[b].index] for b in group}
            order = [b for _, b in sorted((-filled[b], b) for b in group)]
            on[:, group] = on[:, order]
            before = leader.copy()
            for old, new in zip(order, group, strict=True):
                leader[before == old] = new
        for group in self._rows:
            order = sorted(group, key=lambda row: (int(leader[row]), row))
            on[group], leader[group] = on[order], leader[order]
        return Placement.of(on, leader, placement.replicas.shape[1])

    def _led(self, row: int) -> cp_model.LinearExpr:
        leaders = self._variables.leaders[row]
        by = [self._variables.lead[row, b] for b in leaders]
        return cp_model.LinearExpr.weighted_sum(by, list(leaders))


def equal_rows(problem: Problem, variables: Variables) -> list[list[int]]:
    """Group rows that may be exchanged: same loads, brokers, costs and choices.

    Also the same topic where topics are balanced or have budgets or minimum leaders, and the same
    bytes to copy where bytes have a budget. Returns ascending positions in groups of two or more.
    """
    spreading, topic = problem.may.spreading, problem.snapshot.partitions.topic
    budgets = problem.goals.budgets
    by_topic = (
        bool(problem.topic_share)
        or bool(problem.minimums)
        or budgets.replica_moves_per_topic is not None
        or budgets.partitions_per_topic is not None
    )
    # Bytes count only where there is a budget of them.
    size = problem.copied_bytes * (budgets.bytes is not None)

    def key(row: int) -> Hashable:
        return (
            problem.home[row].tobytes(),
            problem.leader[row].item(),
            problem.lead[row].tobytes(),
            problem.follow[row].tobytes(),
            int(spreading.group[row]),
            bool(problem.may.displaced[row]),
            topic[row].item() if by_topic else None,
            int(size[row]),
            problem.costs.replica[row].item(),
            variables.holders[row],
            variables.leaders[row],
        )

    return _groups(variables.rows, key)


def equal_brokers(problem: Problem, variables: Variables) -> list[list[int]]:
    """Group empty brokers that may be exchanged: same capacities, limits, choices and rack.

    The rack does not matter without a rack rule, or where it holds only that broker and explicit
    placements treat it alike. Returns ascending positions in groups of two brokers or more.
    """
    spreading = problem.may.spreading
    racks = Counter(spreading.rack.tolist())
    rows = list(variables.rows)
    empty = [b for b in variables.terms if not problem.home[:, b].any()]

    def key(b: int) -> Hashable:
        # A rack's name does not matter where it holds one broker.
        rack = int(spreading.rack[b])
        alone = racks[rack] == 1 or not (spreading.mode > 0).any()
        return (
            None if alone else rack,
            problem.slope[b].tobytes(),
            problem.allowed[b].tobytes(),
            int(problem.allowed_replicas[b]),
            spreading.required[:, rack].tobytes(),
            problem.hold[rows, b].tobytes(),
            problem.may_lead[rows, b].tobytes(),
            tuple(b in minimum.brokers for minimum in problem.minimums),
        )

    return _groups(sorted(empty), key)


def _groups(items: Iterable[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    """Group items with equal keys, two or more together, in order."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return [group for group in found.values() if len(group) > 1]
