"""Log directories for all brokers of a placement, with costs and reasons."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.goals.goals import SolveLimits
from model.ids import BrokerId
from model.plan.plan import ANY_DIR, Move
from model.snapshot.snapshot import Floats, Ints
from solver.budget import Budget
from solver.log_dirs.broker_dirs import CLOSE, BrokerDirs, find_dirs
from solver.log_dirs.dual_bound import price_bound
from solver.log_dirs.exact_directories import fit, is_small, solve_exactly
from solver.log_dirs.moves_and_swaps import improve, place_and_improve
from solver.problem.placement import Placement, changed_rows
from solver.problem.problem import Problem
from solver.report.reasons import deviation_text


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
        """Return `Move.log_dirs_after`: the path of a directory for each broker of `replicas`.

        `ANY_DIR` where the replica stays or the broker chooses; empty if that applies to all
        replicas of the row.
        """
        if row not in self.chosen:
            return ()
        return tuple(self.chosen[row].get(b, ANY_DIR) for b in replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BalancedBroker:
    """The directories chosen for one broker's k replicas, and their bound."""

    dirs: BrokerDirs
    """The broker, without replicas that are assigned no directory."""
    where: Ints
    """(k,) directory of each replica."""
    bound: float = 0.0

    @property
    def used(self) -> Floats:
        """(m,) bytes in each directory after the plan."""
        return self.dirs.used(self.where)


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

    `WORK_SHARE` of the search budget, more with the replicas on brokers that have several
    directories, up to `MOST_SHARE`; 0 without such replicas, or unless the goals balance
    directories.
    """
    if not problem.goals.level_directories:
        return 0.0
    several = [len(b.log_dirs) > 1 for b in problem.snapshot.header.brokers]
    held = problem.replicas[problem.replicas >= 0]
    replicas = int(np.array(several, np.bool_)[held].sum())
    work = WORK_SHARE * limits.work + WORK_OF_REPLICA * replicas
    return min(MOST_SHARE * limits.work, work) if replicas else 0.0


def balance_directories(
    problem: Problem, placement: Placement, budget: Budget
) -> DirectoryAssignment:
    """Choose directories on every broker that may take load and has several.

    A broker's directories are optimal up to a small gap where its problem is small; otherwise no
    single move or tried swap improves them. Both as far as the search budget allows, which is
    charged. Arrivals that fit in no directory are left to the broker.
    """
    reserved = reserved_work(problem, budget.limits)
    part = budget.part(max(WORK_SHARE * budget.limits.work, reserved))
    balanced = [_balance_broker(dirs, part) for dirs in find_dirs(problem, placement)]
    budget.spend(part)
    return _gather(problem, placement, balanced)


def keep_directories(
    problem: Problem, placement: Placement, moves: Iterable[Move]
) -> DirectoryAssignment | None:
    """Use the log directories that moves name; all other replicas keep theirs.

    Returns None if a directory would exceed its limit. Raises KeyError if the snapshot lacks the
    partition of a move that names a directory, and ValueError if the broker has no such directory.
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
) -> _BalancedBroker:
    broker, paths = problem.brokers[dirs.broker], _paths(problem, dirs)
    where = dirs.home.copy()
    for i, row in enumerate(dirs.row.tolist()):
        if (row, broker) in named:
            where[i] = paths.index(named[row, broker])
    lies = where >= 0
    return _BalancedBroker(dirs=dirs.only(lies), where=where[lies])


def _balance_broker(dirs: BrokerDirs, budget: Budget) -> _BalancedBroker:
    if not dirs.counts(dirs.total):
        stays = dirs.home >= 0
        return _BalancedBroker(dirs=dirs.only(stays), where=dirs.home[stays])
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
    return _BalancedBroker(dirs=dirs, where=where, bound=min(bound, dirs.objective(where)))


def _gather(
    problem: Problem, placement: Placement, balanced: list[_BalancedBroker]
) -> DirectoryAssignment:
    chosen: dict[int, dict[BrokerId, str]] = {}
    reason: dict[int, str] = {}
    for found in balanced:
        broker = problem.brokers[found.dirs.broker]
        paths = _paths(problem, found.dirs)
        for i in np.flatnonzero(found.where != found.dirs.home).tolist():
            row = int(found.dirs.row[i])
            chosen.setdefault(row, {})[broker] = paths[int(found.where[i])]
            if found.dirs.home[i] >= 0:
                reason.setdefault(row, _reason(problem, found, i))
    before = find_dirs(problem, Placement.home(problem))
    return DirectoryAssignment(
        chosen=dict(sorted(chosen.items())),
        cost_before=sum(dirs.imbalance(dirs.before) for dirs in before),
        cost=sum(found.dirs.imbalance(found.used) for found in balanced),
        price=sum(found.dirs.change_cost(found.where) for found in balanced),
        bound=sum(found.bound for found in balanced),
        gain=_gains(problem, placement, balanced),
        reason=reason,
    )


def _paths(problem: Problem, dirs: BrokerDirs) -> list[str]:
    """Paths of one broker's directories, in the snapshot's order."""
    listed = problem.snapshot.header.brokers[dirs.broker].log_dirs
    return [d.path for d in listed]


def _reason(problem: Problem, found: _BalancedBroker, item: int) -> str:
    """Why a replica, by position, changes its directory: the utilisation of both before."""
    pair = int(found.dirs.home[item]), int(found.where[item])
    source, target = (_paths(problem, found.dirs)[j] for j in pair)
    relative = found.dirs.deviation(found.dirs.before)
    over, under = (float(relative[j]) for j in pair)
    broker = problem.brokers[found.dirs.broker]
    return (
        f"{'relieves' if over > 0 else 'takes from'} {source} of broker {broker} "
        f"(disk {deviation_text(over)}); {target} is {deviation_text(under)}"
    )


def _gains(
    problem: Problem, placement: Placement, balanced: list[_BalancedBroker]
) -> dict[int, float]:
    """By changed row: rise of costs, in units of F, if it stayed as it was.

    Covers rows that change broker, directory or leader.
    """
    used = {found.dirs.broker: found.used for found in balanced}
    cost = {f.dirs.broker: f.dirs.imbalance(f.used) for f in balanced}
    of_broker = {found.dirs.broker: found.dirs for found in balanced}
    chosen, price = _chosen_dirs(balanced)
    gain = {}
    for row in sorted({*changed_rows(problem, placement), *chosen}):
        back: dict[int, Floats] = {}
        for broker, j, size in _reverted(problem, placement, row, chosen[row]):
            if broker in used:
                back.setdefault(broker, used[broker].copy())[j] += size
        rise = sum(of_broker[b].imbalance(u) - cost[b] for b, u in back.items())
        gain[row] = rise - price[row]
    return gain


def _chosen_dirs(
    balanced: list[_BalancedBroker],
) -> tuple[dict[int, dict[int, int]], dict[int, float]]:
    """By row: the directory chosen on each broker, by position, and the cost."""
    chosen: dict[int, dict[int, int]] = defaultdict(dict)
    price: dict[int, float] = defaultdict(float)
    for found in balanced:
        for i in np.flatnonzero(found.where != found.dirs.home).tolist():
            row = int(found.dirs.row[i])
            chosen[row][found.dirs.broker] = int(found.where[i])
            price[row] += float(found.dirs.price[i])
    return chosen, price


def _reverted(
    problem: Problem, placement: Placement, row: int, chosen: dict[int, int]
) -> Iterator[tuple[int, int, float]]:
    """Brokers and directories, with the bytes they would hold more if a row stayed."""
    size = max(0.0, float(problem.snapshot.partitions.local_bytes[row]))
    for broker, j in chosen.items():
        yield broker, j, -size
    after = set(placement.holders(row))
    for broker, j in _home_dirs(problem, row):
        if broker in chosen or broker not in after:
            yield broker, j, size


def _home_dirs(problem: Problem, row: int) -> list[tuple[int, int]]:
    """Broker and directory of each of a row's replicas whose directory is known."""
    columns = problem.snapshot.partitions
    if columns.replica_dir is None:
        return []
    start, end = columns.replica_start[row : row + 2].tolist()
    pairs = zip(
        problem.replicas[row].tolist(), columns.replica_dir[start:end].tolist(), strict=False
    )
    return [(broker, j) for broker, j in pairs if j >= 0]
