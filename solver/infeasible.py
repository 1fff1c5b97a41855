"""Why no placement keeps every rule, in words with names."""

from collections.abc import Iterator, Sequence

import numpy as np
from ortools.sat.python import cp_model

from model.goals import SolveLimits
from model.snapshot import BrokerState
from model.units import count_text
from solver.exact import new_solver
from solver.problem import Problem
from solver.rules import ALWAYS, LIMITS, ExactRule
from solver.variables import choices, make_variables

MOST_NAMED = 5
"""Reasons of one kind that are told; more help nobody."""


def plain_reasons(problem: Problem) -> tuple[str, ...]:
    """What makes every plan impossible, and shows without a search."""
    if not problem.may.forced.any():
        return ()
    if not problem.may.alive.any():
        return (f"{_emptying(problem)} must empty and no alive broker is left",)
    stuck = list(_nowhere_to_go(problem))
    more = len(stuck) - MOST_NAMED
    if more > 0:
        stuck[MOST_NAMED:] = [f"and {count_text(more, 'more partition')} alike"]
    return tuple(stuck) or tuple(_too_little_room(problem))


def conflict(problem: Problem, limits: SolveLimits) -> tuple[str, ...]:
    """The first limit that cannot be kept beside those before it."""
    for known in range(len(LIMITS)):
        if not _feasible(problem, limits, LIMITS[: known + 1]):
            beside = [repr(r.name) for r in (*ALWAYS, *LIMITS[:known])]
            return (
                f"{_emptying(problem)} cannot empty: no placement keeps the rule "
                f"{LIMITS[known].name!r} beside {', '.join(beside)}",
            )
    return ("no placement keeps every rule",)


def _emptying(problem: Problem) -> str:
    full = problem.may.leaving & problem.home[problem.may.forced > 0].any(axis=0)
    return _names(problem, np.flatnonzero(full).tolist())


def _names(problem: Problem, positions: Sequence[int]) -> str:
    """`broker 2`, `broker 2 (draining)`, `brokers 1, 2`."""
    found = [problem.snapshot.header.brokers[b] for b in positions]
    told = [
        str(b.id) if b.state is BrokerState.ALIVE else f"{b.id} ({b.state})"
        for b in found
    ]
    return f"broker{'s' if len(told) > 1 else ''} {', '.join(told)}"


def _nowhere_to_go(problem: Problem) -> Iterator[str]:
    """Rows that too few brokers, or brokers in too few racks, may hold."""
    holders, leaders = choices(problem)
    for row, able in holders.items():
        wanted, racks_wanted = int(problem.rf[row]), int(problem.racks_wanted[row])
        if not problem.may.forced[row]:
            continue
        racks = len(set(problem.racks[list(able)].tolist()))
        name = problem.snapshot.ids[row]
        who = f"only {_names(problem, able)}" if able else "no broker"
        if len(able) < wanted:
            yield (
                f"{name} has {count_text(wanted, 'replica')}, and {who} may hold one"
            )
        elif not leaders[row]:
            yield f"no broker may lead {name}"
        elif racks < racks_wanted:
            yield (
                f"{name} has to lie in {racks_wanted} racks, and the brokers that may "
                f"hold it are in {count_text(racks, 'rack')}"
            )


def _too_little_room(problem: Problem) -> Iterator[str]:
    """A resource of which all brokers together have too little."""
    held = problem.may.holding
    allowed = np.where(held[:, None], problem.allowed, 0.0).sum(axis=0)
    # What is served to followers depends on who leads, but not its sum.
    total = problem.loads_before.sum(axis=0)
    for r in np.flatnonzero(total > allowed * (1 + 1e-9)).tolist():
        yield (
            f"the brokers that may hold load are allowed {allowed[r]:.0f} of "
            f"{problem.snapshot.header.resources[r]} together, and {total[r]:.0f} has "
            "to be carried"
        )


def _feasible(
    problem: Problem, limits: SolveLimits, rules: Sequence[ExactRule]
) -> bool:
    variables = make_variables(problem, cp_model.CpModel())
    for rule in (*ALWAYS, *rules):
        rule.post(problem, variables)
    status = new_solver(limits, limits.work).solve(variables.model)
    return bool(status != cp_model.INFEASIBLE)
