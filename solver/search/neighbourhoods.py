"""Annealing on a few brokers at a time, in parallel, over the changes that can matter.

Large neighbourhood search: Shaw, 1998.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from queue import SimpleQueue
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import twin
from solver.kernels.move_deltas import State, adopt, copied
from solver.kernels.neighbourhood_annealing import AnnealingScratch, anneal, new_annealing_scratch
from solver.kernels.problem_arrays import NO_BUDGET, Columns, unit_prices
from solver.kernels.reduced_cost_candidates import (
    Candidates,
    find_candidates,
    large_rows,
    least_reduced_costs,
    new_candidates,
)
from solver.search.dual import Relaxation, pricing_work

THREADS: Final = cpu_count() or 1
"""Neighbourhoods annealed at the same time; the plan does not depend on it."""

MOST_STEPS: Final = 1_000_000
"""Steps of one annealing at most, so that others have their turn."""

STEPS_PER_SET: Final = 6
"""Steps that take as long as listing a candidate row with several replicas; measured."""

LEADER_REDUCED_COST: Final = 0.03
"""Highest reduced cost of leader-only changes, which are many, in costs of a move."""

LAST_TEMPERATURE: Final = 0.03
"""Final temperature, in costs of a move."""

MOST_CANDIDATE_PAIRS: Final = 50_000_000
"""Pairs of row and broker for which candidates are kept, one byte each."""

CURABLE_DEVIATION: Final = 0.04
"""Largest deviation that moving a large partition cures: its gain is below 4 x this x
its load (docs/explanation/solving.md), so smaller partitions cannot pay for their move.
"""

MOST_LARGE_ROWS: Final = 2_000
"""Rows, largest first, that may be moved to any broker."""

MOST_LARGE_PAIRS: Final = 8_000_000
"""Pairs of such a row and broker where an arm has its own size; nine bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One setting of the annealing; the most profitable gets most turns."""

    reduced_cost: float | None
    """Highest reduced cost of candidates, in costs of a move; None for large partitions."""
    brokers: int
    """Number of brokers in a neighbourhood."""
    hot: float = 0.3
    """Initial temperature, in costs of a move."""
    most_steps: int = MOST_STEPS
    """Steps of one annealing at most."""
    cold: float = LAST_TEMPERATURE
    """Final temperature, in costs of a move."""
    size: float | None = None
    """Load of the smallest large partition, as a share of a broker's mean; None for the least
    whose move can pay. Without `reduced_cost` only."""


@dataclass(slots=True, kw_only=True)
class ArmWorkspace:
    """An arm's candidates, and working memory for each concurrent annealing."""

    candidates: Candidates
    spaces: SimpleQueue[AnnealingScratch]


class Neighbourhoods:
    """What neighbourhoods are drawn from, with caches of the candidates.

    `relaxation` must be solved before the first `anneal`, unless prices come from `follow`.
    The caller closes `threads`.
    """

    def __init__(self, relaxation: Relaxation, seed: int) -> None:
        self.threads = ThreadPoolExecutor(THREADS)
        self._relaxation, self._rng = relaxation, np.random.default_rng(seed)
        self._guide: Floats | None = None
        """(B, K) dual prices that candidates are found at; None for the relaxation's."""
        self.work = 0.0
        """Work units spent on finding candidates."""
        self._workspaces: dict[tuple[float | None, float | None, int], ArmWorkspace] = {}
        """By reduced cost, size and number of brokers of an arm."""

    def follow(self, guide: Floats | None) -> None:
        """Find candidates at the dual prices `guide`, (B, K), from now on; None: at the best."""
        self._guide, self._workspaces = guide, {}

    def forget(self) -> None:
        """Free the memory of all candidates; they are found again when needed."""
        self._workspaces = {}

    def anneal(
        self, state: State, arm: Arm, effort: int, turn: int, most: int
    ) -> tuple[float, int]:
        """Anneal disjoint neighbourhoods that cover all brokers.

        Neighbourhoods share no broker, and a row belongs to the one that holds its replica
        number `turn`; so they do not interact, and their order does not matter. Each thread
        works on its own state, so that none waits for another's cache. Takes `effort` steps
        per item, but at most `most` in all (at least 1 per neighbourhood), and leaves the
        remaining neighbourhoods unchanged when the observer asks to stop. Changes `state`;
        its totals of budgets and topics may be stale after several threads. Returns the change
        of F, at most 0, and the number of steps plus those that listing the candidates takes.
        """
        r, c, ready = self._relaxation, self._relaxation.uncharged, self._ready(arm)
        brokers = self._rng.permutation(np.flatnonzero(c.holding))
        groups = max(1, len(brokers) // arm.brokers)
        subsets = [brokers[g::groups].astype(np.int64) for g in range(groups)]
        seeds = self._rng.integers(1, 2**63, groups, dtype=np.uint64)
        mine = _split_candidates(c, state, ready.candidates, subsets, turn)
        heat = arm.hot * r.price, arm.cold * r.price
        done = np.zeros((groups, 2))
        each = max(1, min(arm.most_steps, most // groups))

        def run(s: State, batch: range) -> None:
            scratch = ready.spaces.get()
            own, x = twin(c), twin(ready.candidates)
            for g in batch:
                if r.stops():
                    break
                among = mine[g], subsets[g]
                done[g] = anneal(own, s, x, *among, effort, each, *heat, seeds[g], scratch)
            ready.spaces.put(scratch)

        # Budgets and topic totals couple the neighbourhoods.
        coupled = (c.budgets != NO_BUDGET).any() or c.topic_weight.size
        threads = 1 if coupled else min(THREADS, groups)
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
        listing = 1 if c.home.shape[1] == 1 else STEPS_PER_SET
        return change, int(done[:, 1].sum()) + listing * len(ready.candidates.row)

    def _ready(self, arm: Arm) -> ArmWorkspace:
        """Return an arm's workspace; arms that differ only in temperature share one."""
        key = arm.reduced_cost, arm.size, arm.brokers
        found = self._workspaces.get(key)
        if found is None:
            candidates = self._candidates(arm)
            spaces: SimpleQueue[AnnealingScratch] = SimpleQueue()
            c = self._relaxation.uncharged
            all_brokers = len(c.scale)
            for _ in range(1 if arm.brokers >= all_brokers else THREADS):
                largest = min(2 * arm.brokers, all_brokers)
                spaces.put(new_annealing_scratch(c, candidates, largest))
            found = self._workspaces[key] = ArmWorkspace(candidates=candidates, spaces=spaces)
        return found

    def _candidates(self, arm: Arm) -> Candidates:
        """Find changes of small reduced cost, or all changes of large rows."""
        r, c = self._relaxation, self._relaxation.columns
        rows, reduced_cost = r.rows, arm.reduced_cost
        if reduced_cost is None:
            room = MOST_LARGE_ROWS if arm.size is None else MOST_LARGE_PAIRS // len(c.scale)
            rows = largest_first(c, rows)[: max(1, room)]
        most = max(1, min(len(rows), MOST_CANDIDATE_PAIRS // len(c.scale)))
        row = np.zeros(most, np.int64)
        may = np.zeros((most, len(c.scale)), np.uint8)
        if reduced_cost is None:
            size = r.price / (4 * CURABLE_DEVIATION) if arm.size is None else arm.size
            found = large_rows(c, rows, size, row, may)
        else:
            within = reduced_cost * r.price
            single = c.home.shape[1] == 1
            # Where their budget has a price, leader changes cost about as much as moves.
            same = single or r.budget_prices[-1] > 0.0
            leading = within if same else min(within, LEADER_REDUCED_COST * r.price)
            q = unit_prices(c, r.prices if self._guide is None else self._guide)
            self.work += len(rows) * pricing_work(c)
            found = find_candidates(c, q, rows, within, leading, r.scratch, row, may)
            if found == most < len(rows):
                # There is no room for all: the rest has the largest reduced costs.
                self.work += 2 * len(rows) * pricing_work(c)
                least = least_reduced_costs(c, q, rows, r.scratch)
                kept = np.sort(np.argsort(least, kind="stable")[:most])
                found = find_candidates(c, q, rows[kept], within, leading, r.scratch, row, may)
        return new_candidates(row[:found].copy(), may[:found].copy())


def largest_first(c: Columns, rows: Ints) -> Ints:
    """Sort rows by the largest of their loads as leaders, in descending order.

    Takes and returns (m,) positions of rows. Equal rows keep their order.
    """
    size = c.lead[rows].max(axis=1, initial=0.0)
    return rows[np.argsort(-size, kind="stable")]


def _split_candidates(
    c: Columns, state: State, x: Candidates, subsets: list[Ints], turn: int
) -> list[Ints]:
    """Split the candidates by the subset that holds their replica number `turn`."""
    subset_of = np.full(len(c.scale), -1, np.int64)
    for g, subset in enumerate(subsets):
        subset_of[subset] = g
    lies = subset_of[state.at[x.row, turn % c.rf[x.row]]]
    order = np.argsort(lies, kind="stable")
    ends = np.searchsorted(lies[order], np.arange(-1, len(subsets)), side="right")
    return [order[ends[g] : ends[g + 1]] for g in range(len(subsets))]
