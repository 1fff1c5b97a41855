"""Annealing on a few brokers at a time, side by side, over what can matter there.

Small neighbourhoods one after another: Shaw, 1998.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import cpu_count
from queue import SimpleQueue
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import twin
from solver.kernels.move_deltas import State, adopt, copied
from solver.kernels.neighbourhood_annealing import (
    AnnealingScratch,
    anneal,
    new_annealing_scratch,
)
from solver.kernels.problem_arrays import NO_BUDGET, Columns
from solver.kernels.reduced_cost_candidates import (
    Candidates,
    find_candidates,
    large_rows,
    new_candidates,
)
from solver.search.dual import Relaxation, unit_prices

THREADS: Final = cpu_count() or 1
"""Neighbourhoods annealed at a time; the plan does not depend on it."""

MOST_STEPS: Final = 1_000_000
"""Steps of one annealing at most, so that others have their turn."""

LEADER_REDUCED_COST: Final = 0.03
"""Reduced cost of changes of leader alone, in prices of a move: they are many."""

LAST_TEMPERATURE: Final = 0.03
"""Last temperature, in prices of a move."""

CACHE_LINE: Final = 16
"""Words, twice a line of the cache: what threads write must not lie closer."""

MOST_CANDIDATE_PAIRS: Final = 50_000_000
"""Pairs of row and broker that candidates are kept for, a byte each."""

CURABLE_DEVIATION: Final = 0.04
"""Deviation that a giant's move cures at most: its gain is under 4 x this x its load
(docs/explanation/solving.md), so smaller ones cannot pay their price."""

MOST_LARGE_ROWS: Final = 2_000
"""Rows, largest first, that are tried everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to anneal; the most profitable has most turns."""

    reduced_cost: float | None
    """Candidates up to this reduced cost, in prices of a move; None for giants."""
    brokers: int
    """Size of a neighbourhood."""
    hot: float = 0.3
    """First temperature, in prices of a move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One draw of neighbourhoods, and how far they are annealed."""

    effort: int
    """Steps for each item."""
    turn: int
    """Number of the replica by which rows belong to a neighbourhood."""
    most: int
    """Steps in all neighbourhoods together."""
    stops: Callable[[], bool]
    """Asked before each neighbourhood whether to leave the others as they are."""


@dataclass(slots=True, kw_only=True)
class ArmWorkspace:
    """An arm's candidates, and room for each of its concurrent annealings."""

    candidates: Candidates
    spaces: SimpleQueue[AnnealingScratch]


@dataclass(slots=True, kw_only=True)
class Neighbourhoods:
    """All that neighbourhoods are drawn from."""

    columns: Columns
    relaxation: Relaxation
    rng: np.random.Generator
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS)
    )
    guide: Floats | None = None
    """(B, K) prices that candidates are found at; None for those of the relaxation."""
    ready: dict[tuple[float | None, int], ArmWorkspace] = field(default_factory=dict)
    """By reduced cost and brokers of an arm."""

    def follow(self, guide: Floats) -> None:
        """Find candidates at other prices from now on."""
        self.guide, self.ready = guide, {}

    def anneal(self, state: State, arm: Arm, draw: Draw) -> tuple[float, int]:
        """Anneal disjoint neighbourhoods of all brokers.

        They share no broker, and a row belongs to the one in which its replica number
        `draw.turn` lies; so they cannot meet, and their order is of no account. Each
        thread works on a state of its own, so that none waits for another's cache.

        Returns
        -------
        Change of F, and the steps made.
        """
        c, ready = self.columns, self._ready(arm)
        brokers = self.rng.permutation(np.flatnonzero(c.holding))
        groups = max(1, len(brokers) // arm.brokers)
        subsets = [brokers[g::groups].astype(np.int64) for g in range(groups)]
        seeds = self.rng.integers(1, 2**63, groups, dtype=np.uint64)
        mine = _split_candidates(c, state, ready.candidates, subsets, draw.turn)
        heat = (
            arm.hot * self.relaxation.price,
            LAST_TEMPERATURE * self.relaxation.price,
        )
        done = np.zeros((groups, 2))
        most = max(1, min(MOST_STEPS, draw.most // groups))

        def run(s: State, batch: range) -> None:
            random, room = np.zeros(CACHE_LINE, np.uint64), ready.spaces.get()
            own, x = twin(c), twin(ready.candidates)
            for g in batch:
                random[0] = seeds[g]
                among = (mine[g], subsets[g])
                if draw.stops():
                    break
                done[g] = anneal(
                    own, s, x, *among, draw.effort, most, *heat, random, room
                )
            ready.spaces.put(room)

        threads = min(THREADS, groups) if _no_shared_totals(c) else 1
        batches = [range(t, groups, threads) for t in range(threads)]
        if threads == 1:
            run(state, batches[0])
        else:
            states = [copied(state) for _ in batches]
            list(self.threads.map(run, states, batches))
            for s, batch in zip(states, batches, strict=True):
                rows = np.concatenate([ready.candidates.row[mine[g]] for g in batch])
                adopt(state, s, rows, np.concatenate([subsets[g] for g in batch]))
        # Summed in a fixed order: the number of threads must not affect rounding.
        change = sum(done[:, 0].tolist())
        return change, int(done[:, 1].sum()) + len(ready.candidates.row)

    def _ready(self, arm: Arm) -> ArmWorkspace:
        """Candidates and rooms of an arm; arms that differ in their heat share."""
        key = arm.reduced_cost, arm.brokers
        found = self.ready.get(key)
        if found is None:
            candidates = self._candidates(arm.reduced_cost)
            spaces: SimpleQueue[AnnealingScratch] = SimpleQueue()
            for _ in range(THREADS):
                largest = min(2 * arm.brokers, len(self.columns.scale))
                spaces.put(new_annealing_scratch(self.columns, candidates, largest))
            found = self.ready[key] = ArmWorkspace(candidates=candidates, spaces=spaces)
        return found

    def _candidates(self, reduced_cost: float | None) -> Candidates:
        """Changes of small reduced cost, or all of the rows that are large."""
        c, r = self.columns, self.relaxation
        rows = r.rows
        if reduced_cost is None:
            rows = largest_first(c, rows)[:MOST_LARGE_ROWS]
        most = max(1, min(len(rows), MOST_CANDIDATE_PAIRS // len(c.scale)))
        row = np.zeros(most, np.int64)
        may = np.zeros((most, len(c.scale)), np.uint8)
        if reduced_cost is None:
            found = large_rows(c, rows, r.price / (4 * CURABLE_DEVIATION), row, may)
        else:
            within = reduced_cost * r.price
            single = c.home.shape[1] == 1
            leading = within if single else min(within, LEADER_REDUCED_COST * r.price)
            q = unit_prices(c, r.prices if self.guide is None else self.guide)
            found = find_candidates(c, q, rows, within, leading, r.scratch, row, may)
        return new_candidates(row[:found].copy(), may[:found].copy())


def largest_first(c: Columns, rows: Ints) -> Ints:
    """Rows by the largest of their loads, in levels."""
    size = c.lead[rows].max(axis=1, initial=0.0)
    return rows[np.argsort(-size, kind="stable")]


def _split_candidates(
    c: Columns, state: State, x: Candidates, subsets: list[Ints], turn: int
) -> list[Ints]:
    """The candidates of each subset: their replica number `turn` lies there."""
    subset_of = np.full(len(c.scale), -1, np.int64)
    for g, subset in enumerate(subsets):
        subset_of[subset] = g
    lies = subset_of[state.at[x.row, turn % c.rf[x.row]]]
    order = np.argsort(lies, kind="stable")
    ends = np.searchsorted(lies[order], np.arange(-1, len(subsets)), side="right")
    return [order[ends[g] : ends[g + 1]] for g in range(len(subsets))]


def _no_shared_totals(c: Columns) -> bool:
    """Whether nothing that all brokers share is kept count of."""
    return bool((c.budgets == NO_BUDGET).all()) and not c.topic_weight.size
