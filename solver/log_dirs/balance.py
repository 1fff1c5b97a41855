"""Log directories for all brokers of a placement, with costs and reasons."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.goals.goals import SolveLimits
from model.ids import BrokerId
from model.plan.plan import ANY_DIR, Move
from solver.budget import Budget
from solver.log_dirs.broker_dirs import CLOSE, BrokerDirs, find_dirs
from solver.log_dirs.dual_bound import price_bound
from solver.log_dirs.exact_directories import fit, is_small, solve_exactly
from solver.log_dirs.gains import BalancedBroker, change_words, gains, paths_of
from solver.log_dirs.moves_and_swaps import improve, place_and_improve
from solver.problem.placement import Placement
from solver.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryAssignment:
    """The directories chosen, their cost, and what is left to the brokers.

    All costs are in units of F, over the brokers whose directories are balanced.
    """

    chosen: dict[int, dict[BrokerId, str]]
    """By row, ascending: the directory of each replica that is assigned one."""
    cost_before: float = 0.0
    """Cost of all deviations before the plan."""
    cost: float = 0.0
    """Cost of all deviations after the plan."""
    price: float = 0.0
    """Cost of the replicas that change directory within their broker."""
    bound: float = 0.0
    """Proved lower bound of cost + price for the given brokers."""
    gain: dict[int, float]
    """By changed row: rise of cost + price if the row stayed as it was, brokers
    included and others kept."""
    reason: dict[int, str]
    """By row with a replica that changes its directory: the reason."""

    def log_dirs(self, row: int, replicas: tuple[BrokerId, ...]) -> tuple[str, ...]:
        """Return `Move.log_dirs_after`: a directory for each broker of a plan's replica list.

        `ANY_DIR` where the broker chooses; empty if it does so for all replicas of the
        row.
        """
        if row not in self.chosen:
            return ()
        return tuple(self.chosen[row].get(b, ANY_DIR) for b in replicas)


WORK_SHARE: Final = 0.05
"""Share of the search budget for directories, more where there are many."""

MOST_SHARE: Final = 0.2
"""Largest share of the search budget for directories."""

WORK_OF_REPLICA: Final = 1e-4
"""Work units per replica on a broker with several directories."""

FREE_WORK: Final = 0.25
"""Work units that moves and swaps may use beyond that."""

BROKER_SHARE: Final = 0.25
"""Share of the remaining work for one broker's exact model, so that each gets some."""

LEAST_WORK: Final = 0.005
"""Work units below which an exact model ends before it finds anything."""


def reserved_work(problem: Problem, limits: SolveLimits) -> float:
    """Return the work units to reserve for directories, after the brokers are chosen.

    Grows with the replicas on brokers that have several directories; 0 without such
    replicas, or unless the goals balance directories.
    """
    if not problem.goals.level_directories:
        return 0.0
    several = [len(b.log_dirs) > 1 for b in problem.snapshot.header.brokers]
    held = problem.replicas[problem.replicas >= 0]
    replicas = int(np.array(several, np.bool_)[held].sum())
    work = WORK_SHARE * limits.work + WORK_OF_REPLICA * replicas
    return min(MOST_SHARE * limits.work, work) if replicas else 0.0


def balance_directories(
    problem: Problem, placement: Placement, budget: Budget | None = None
) -> DirectoryAssignment:
    """Choose directories on every broker that may take load and has several.

    A broker's directories are optimal where the problem is small; otherwise no single
    move or swap improves them. Both as far as the search budget allows.
    """
    whole = budget or Budget(limits=SolveLimits())
    part = whole.part(max(WORK_SHARE * whole.limits.work, reserved_work(problem, whole.limits)))
    balanced = [_balance_broker(dirs, part) for dirs in find_dirs(problem, placement)]
    whole.spend(part)
    return _gather(problem, placement, balanced)


def keep_directories(
    problem: Problem, placement: Placement, moves: Iterable[Move]
) -> DirectoryAssignment | None:
    """Use the log directories that moves name; all other replicas keep theirs.

    Returns None if a directory would exceed its limit.
    """
    named = {
        (problem.snapshot.row_of[move.id], broker): path
        for move in moves
        for broker, path in zip(move.replicas_after, move.log_dirs_after, strict=False)
        if path != ANY_DIR
    }
    found = [_with_named(problem, d, named) for d in find_dirs(problem, placement)]
    if not all(balanced.dirs.fits(balanced.where) for balanced in found):
        return None
    return _gather(problem, placement, found)


def _with_named(
    problem: Problem, dirs: BrokerDirs, named: Mapping[tuple[int, BrokerId], str]
) -> BalancedBroker:
    broker, paths = problem.brokers[dirs.broker], paths_of(problem, dirs)
    where = dirs.home.copy()
    for i, row in enumerate(dirs.row.tolist()):
        if (row, broker) in named:
            where[i] = paths.index(named[row, broker])
    lies = where >= 0
    return BalancedBroker(dirs=dirs.only(lies), where=where[lies])


def _balance_broker(dirs: BrokerDirs, budget: Budget) -> BalancedBroker:
    if not dirs.counts(dirs.total):
        stays = dirs.home >= 0
        return BalancedBroker(dirs=dirs.only(stays), where=dirs.home[stays])
    steps = budget.part(budget.work_left + FREE_WORK)
    where = place_and_improve(dirs, steps)
    work = budget.work_left * BROKER_SHARE
    small = is_small(dirs) and work >= LEAST_WORK
    exact = budget.part(work)
    if small and (where < 0).any():
        where = fit(dirs, where, exact)
    if (where < 0).any():
        dirs, where = dirs.only(where >= 0), where[where >= 0]
        where = improve(dirs, where, steps)
    bound = price_bound(dirs, where, steps)
    if small and dirs.objective(where) * (1 - CLOSE) - bound > budget.limits.gap:
        where, proved = solve_exactly(dirs, where, exact)
        bound = max(bound, proved)
    budget.spend(steps)
    budget.spend(exact)
    return BalancedBroker(dirs=dirs, where=where, bound=min(bound, dirs.objective(where)))


def _gather(
    problem: Problem, placement: Placement, balanced: list[BalancedBroker]
) -> DirectoryAssignment:
    chosen: dict[int, dict[BrokerId, str]] = {}
    reason: dict[int, str] = {}
    for found in balanced:
        broker = problem.brokers[found.dirs.broker]
        paths = paths_of(problem, found.dirs)
        for i in np.flatnonzero(found.where != found.dirs.home).tolist():
            path = paths[int(found.where[i])]
            chosen.setdefault(int(found.dirs.row[i]), {})[broker] = path
        for i in np.flatnonzero(found.changed).tolist():
            row = int(found.dirs.row[i])
            reason.setdefault(row, change_words(problem, found, i))
    before = find_dirs(problem, Placement.home(problem))
    return DirectoryAssignment(
        chosen=dict(sorted(chosen.items())),
        cost_before=sum(dirs.imbalance(dirs.before) for dirs in before),
        cost=sum(found.dirs.imbalance(found.used) for found in balanced),
        price=sum(found.dirs.change_cost(found.where) for found in balanced),
        bound=sum(found.bound for found in balanced),
        gain=gains(problem, placement, balanced),
        reason=reason,
    )
