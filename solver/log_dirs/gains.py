"""Gains and reasons of the directories of each changed row."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.log_dirs.broker_dirs import BrokerDirs
from solver.problem.placement import Placement, changed_rows
from solver.problem.problem import Problem
from solver.report.reasons import deviation_text


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedBroker:
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

    @property
    def changed(self) -> Bools:
        """(k,) replicas that change directory within the broker."""
        home = self.dirs.home
        changed: Bools = (home >= 0) & (home != self.where)
        return changed


def paths_of(problem: Problem, dirs: BrokerDirs) -> list[str]:
    """List the paths of one broker's directories, in the snapshot's order."""
    listed = problem.snapshot.header.brokers[dirs.broker].log_dirs
    return [d.path for d in listed]


def change_words(problem: Problem, found: BalancedBroker, item: int) -> str:
    """Explain why a replica changes its directory, by the utilisation of both before.

    `item` is the replica's position in the broker's `dirs`; the text is the move's
    reason in the plan.
    """
    pair = int(found.dirs.home[item]), int(found.where[item])
    source, target = (paths_of(problem, found.dirs)[j] for j in pair)
    relative = found.dirs.deviation(found.dirs.before)
    over, under = (float(relative[j]) for j in pair)
    broker = problem.brokers[found.dirs.broker]
    return (
        f"{'relieves' if over > 0 else 'takes from'} {source} of broker {broker} "
        f"(disk {deviation_text(over)}); {target} is {deviation_text(under)}"
    )


def gains(
    problem: Problem, placement: Placement, balanced: list[BalancedBroker]
) -> dict[int, float]:
    """Compute, by changed row, how much costs would rise if it stayed as it was.

    In units of F, over the directories of balanced brokers. Covers rows that change
    broker, directory or leader.
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
    balanced: list[BalancedBroker],
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
