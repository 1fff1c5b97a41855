"""Plans for problems too large for the exact model, with a bound from prices.

Dual prices first; they say which changes can matter. The relaxed placement is rounded,
and annealed on a few brokers at a time until the work is used up.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import cpu_count
from queue import SimpleQueue
from typing import Final

import numpy as np

from model.snapshot import Floats, Ints
from solver.choices import has_choices
from solver.dual import (
    Relaxation,
    new_relaxation,
    solve_relaxation,
    unit_prices,
    warm_up,
)
from solver.giants import Tree, grow, plant
from solver.kernels.annealing import Room, anneal, new_room
from solver.kernels.candidates import (
    Candidates,
    find_candidates,
    large_rows,
    new_candidates,
)
from solver.kernels.columns import NO_BUDGET, Columns, find_columns
from solver.kernels.compiled import twin
from solver.kernels.moves import State, adopt, copied, new_state, objective
from solver.kernels.rounding import bring, evacuate, heaviest, round_off
from solver.placement import NOTHING, Placement, is_allowed
from solver.problem import Problem
from solver.search import Search

THREADS: Final = cpu_count() or 1
"""Neighbourhoods annealed at a time; the plan does not depend on it."""

DUAL_SHARE: Final = 0.5
"""Share of the work that the prices may take."""

EFFORTS: Final = (100, 300, 1_000, 3_000, 10_000)
"""Steps an item in one annealing of a neighbourhood: many that are short gain most at
first, few that are long at last."""

TRIAL_EFFORT: Final = EFFORTS[1]

MOST_STEPS: Final = 1_000_000
"""Steps of one annealing at most, so that others have their turn."""

LEADING: Final = 0.03
"""Reduced cost of changes of leader alone, in prices of a move: they are many."""

COLD: Final = 0.03
"""Last temperature, in prices of a move."""

WORK_PER_STEP: Final = 3e-7

CACHE_LINE: Final = 16
"""Words, twice a line of the cache: what threads write must not lie closer."""

CANDIDATE_ROOM: Final = 50_000_000
"""Pairs of row and broker that candidates are kept for, a byte each."""

GIANT: Final = 0.2
"""Load of a partition, in levels, from which it is large against a broker."""

GIANTS: Final = 0.05
"""Share of all load from which on giants decide how good a plan can be."""

WORTH: Final = 0.04
"""Deviation that a giant's move cures at most: its gain is under 4 x this x its load
(docs/solving.md), so smaller ones cannot pay their price."""

OFFER_EVERY: Final = 0.02
"""Share of the work between two plans that are offered."""

ROUND_ROBIN: Final = 6
"""Every so many rounds the next arm has its turn, whatever it gained before."""

IDLE_ROUNDS: Final = 40
"""Rounds without a gain after which more effort is made, or the search ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to anneal; the most profitable has most turns."""

    reduced_cost: float | None
    """Candidates up to this reduced cost, in prices of a move; None for giants."""
    brokers: int
    """Size of a neighbourhood."""
    hot: float = 0.3
    """First temperature, in prices of a move."""


ARMS: Final = (
    Arm(reduced_cost=0.1, brokers=12, hot=1.0),
    Arm(reduced_cost=0.3, brokers=12),
    Arm(reduced_cost=1.0, brokers=5),
    Arm(reduced_cost=0.5, brokers=25),
)

GIANT_ARMS: Final = (
    Arm(reduced_cost=None, brokers=3),
    Arm(reduced_cost=None, brokers=12),
    Arm(reduced_cost=None, brokers=12, hot=10.0),
)

TRIALS: Final = 8
"""Rounds that each of two starts gets before the better is kept, beside giants."""

TRIAL_SHARE: Final = 0.1
"""Share of the work that each of these trials may take."""

TREE_SHARE: Final = 0.1
"""Share of the work for branch and bound on giants before the plan is searched."""

START_SHARE: Final = 0.05
"""Share of the work for each start that it finds."""

MOST_GIANTS: Final = 2_000
"""Rows, largest first, that are tried everywhere."""


@dataclass(slots=True, kw_only=True)
class LocalSearch:
    """The columns, the relaxation and the best state."""

    search: Search
    columns: Columns
    relaxation: Relaxation
    state: State
    rng: np.random.Generator
    threads: ThreadPoolExecutor
    ready: dict[tuple[float | None, int], "Field"] = field(default_factory=dict)
    guide: Floats | None = None
    """(B, K) prices that candidates are found at; None for those of the relaxation."""
    tree: Tree | None = None
    """Of branch and bound on giants, where there are any."""


@dataclass(slots=True, kw_only=True)
class Field:
    """An arm's candidates, and room for each of its concurrent annealings."""

    candidates: Candidates
    rooms: SimpleQueue[Room]


def search_locally(search: Search, work: float) -> LocalSearch | None:
    """Offer plans and prove a bound, within this much work.

    Returns
    -------
    The search as it ended; None where no start was found that keeps every rule.
    """
    problem = search.problem
    columns = find_columns(problem)
    home = new_state(columns, columns.home)
    relaxation = new_relaxation(columns, home.v, search.limits.seed)
    local = LocalSearch(
        search=search,
        columns=columns,
        relaxation=relaxation,
        state=home,
        rng=np.random.default_rng(search.limits.seed),
        threads=ThreadPoolExecutor(THREADS),
    )
    with local.threads:
        return local if _found(local, work) else None


def _found(local: LocalSearch, work: float) -> bool:
    search, relaxation = local.search, local.relaxation
    if relaxation.impossible:
        return False
    end = search.work + work
    if _evacuated(local):
        offer(local)
    home = local.state
    warm_up(relaxation)
    _round(local, home)
    _price(local, work)
    _round(local, home)
    if search.best is None:
        return False
    if has_giants(local.columns):
        local.state = _better(local, home, local.state)
        offer(local)
        _keep_giants_whole(local, work)
    _anneal(local, end)
    return True


def _evacuated(local: LocalSearch) -> bool:
    """Take what must leave to where F rises least, largest first."""
    c = local.columns
    rows = _largest_first(c, np.flatnonzero(c.forced))
    return bool(evacuate(c, local.state, rows, local.relaxation.room))


def _price(local: LocalSearch, work: float) -> None:
    search, relaxation, c = local.search, local.relaxation, local.columns
    solve_relaxation(relaxation, work * DUAL_SHARE)
    search.work += relaxation.work
    refund = float(search.problem.prices.refund.sum())
    prices = np.zeros((len(c.scale), len(search.problem.weight)))
    prices[:, search.problem.weight > 0] = relaxation.prices
    search.prove_by_prices(relaxation.bound - refund, prices)


def _round(local: LocalSearch, home: State) -> None:
    """Round the relaxed placement off from home, and keep it if it is better."""
    c, relaxation = local.columns, local.relaxation
    state = copied(home)
    split = np.flatnonzero(relaxation.masses.head >= 0)
    whole = np.zeros(len(c.home), np.bool_)
    heaviest(relaxation.masses, split, whole)
    round_off(c, relaxation.masses, state, _largest_first(c, split), whole)
    none = local.search.best is None
    if none or objective(c, state) < objective(c, local.state):
        local.state = state
        offer(local)


def _largest_first(c: Columns, rows: Ints) -> Ints:
    size = c.lead[rows].max(axis=1, initial=0.0)
    return rows[np.argsort(-size, kind="stable")]


def _keep_giants_whole(local: LocalSearch, work: float) -> None:
    """Branch on where giants go, and keep the start that some annealing makes best.

    A start whose own bound is nearer to F than to what is proved is not tried.
    """
    c, r, search = local.columns, local.relaxation, local.search
    if not has_choices(c, r):
        return
    local.tree = plant(search, c, r)
    grow(local.tree, TREE_SHARE * work)
    plain, found = local.state, [(local.state, r.prices)]
    middle = (search.bound + search.objective) / 2 - local.tree.choices.decided
    for start in (s for s in local.tree.starts if s.bound < middle):
        local.state, local.guide, local.ready = copied(plain), start.prices, {}
        size = c.lead[start.rows].max(axis=1, initial=0.0)
        order = np.argsort(-size, kind="stable")
        for _ in range(2):
            bring(c, local.state, start.rows[order], start.at[order])
        _try(local, ARMS + GIANT_ARMS, START_SHARE * work)
        found.append((local.state, start.prices))
    local.state, local.guide = min(found, key=lambda f: objective(c, f[0]))
    local.ready = {}
    offer(local)


def _try(local: LocalSearch, arms: tuple[Arm, ...], work: float) -> None:
    """Some rounds of annealing."""
    end = local.search.work + work
    for turn in range(TRIALS):
        _round_of(local, arms[turn % len(arms)], TRIAL_EFFORT, turn)
        if local.search.work >= end:
            break


def has_giants(c: Columns) -> bool:
    """Whether large partitions decide, of which prices say little where they belong."""
    size = c.lead.max(axis=1, initial=0.0)
    return bool(size[size > GIANT].sum() > GIANTS * c.holding.sum())


def _better(local: LocalSearch, one: State, other: State) -> State:
    """Of two starts the one that some annealing makes better."""
    found = []
    for start in (one, other):
        local.state = copied(start)
        _try(local, GIANT_ARMS, TRIAL_SHARE * local.search.limits.work)
        found.append(local.state)
    return min(found, key=lambda s: objective(local.columns, s))


def offer(local: LocalSearch) -> None:
    """Offer the state's placement, if it keeps every rule."""
    problem = local.search.problem
    placement = placement_of(problem, local.columns, local.state)
    if is_allowed(problem, placement):
        local.search.offer(placement)


def placement_of(problem: Problem, c: Columns, s: State) -> Placement:
    """The placement of a state; rows that may not change as the snapshot has them."""
    free = c.free[:, None]
    replicas = np.where(free, s.at, problem.replicas).astype(np.int64)
    leader = np.where(c.free, s.at[:, 0], problem.leader).astype(np.int64)
    return Placement(replicas=replicas, leader=leader)


def _anneal(local: LocalSearch, end: float) -> None:
    """Anneal neighbourhoods, arm by arm, until the work or the gain is used up."""
    search = local.search
    arms = ARMS + (GIANT_ARMS if has_giants(local.columns) else ())
    efforts: tuple[int, ...] = EFFORTS
    profit = {(arm, efforts[0]): np.inf for arm in arms}
    idle, turn, told = 0, 0, search.work
    while search.work < end and not search.proved:
        if idle >= IDLE_ROUNDS:
            if len(efforts) == 1:
                break
            efforts, idle = efforts[1:], 0
            profit = {(arm, efforts[0]): np.inf for arm in arms}
        if search.observer.stops():
            search.stopped = True
            break
        arm, effort = max(profit, key=lambda choice: profit[choice])
        if turn % ROUND_ROBIN == ROUND_ROBIN - 1:
            arm = arms[turn // ROUND_ROBIN % len(arms)]
            effort = efforts[min(efforts.index(effort) + 1, len(efforts) - 1)]
        before = search.work
        gain = -_round_of(local, arm, effort, turn)
        turn += 1
        idle = 0 if gain > NOTHING else idle + 1
        rate = gain / max(1e-9, search.work - before)
        last = profit.get((arm, effort), rate)
        profit[arm, effort] = rate if np.isinf(last) else (last + rate) / 2
        if search.work - told > OFFER_EVERY * search.limits.work:
            offer(local)
            told = search.work
    local.state = new_state(local.columns, local.state.at)
    offer(local)


def _round_of(local: LocalSearch, arm: Arm, effort: int, turn: int) -> float:
    """Anneal disjoint neighbourhoods of all brokers side by side; change of F.

    The neighbourhoods share no broker, and a row belongs to the one in which its
    replica number `turn` lies; so they cannot meet, and their order is of no account.
    Each thread works on a state of its own, so that none waits for another's cache.
    """
    c, ready = local.columns, _ready(local, arm)
    brokers = local.rng.permutation(np.flatnonzero(c.holding))
    groups = max(1, len(brokers) // arm.brokers)
    subsets = [brokers[g::groups].astype(np.int64) for g in range(groups)]
    seeds = local.rng.integers(1, 2**63, groups, dtype=np.uint64)
    mine = _shared_out(local, ready.candidates, subsets, turn)
    hot, cold = arm.hot * local.relaxation.price, COLD * local.relaxation.price

    def run(s: State, batch: range) -> tuple[float, int]:
        random, room = np.zeros(CACHE_LINE, np.uint64), ready.rooms.get()
        own, x = twin(c), twin(ready.candidates)
        change, steps = 0.0, 0
        for g in batch:
            random[0] = seeds[g]
            heat, among = (hot, cold), (mine[g], subsets[g])
            fell, made = anneal(
                own, s, x, *among, effort, MOST_STEPS, *heat, random, room
            )
            change, steps = change + fell, steps + made
        ready.rooms.put(room)
        return change, steps

    threads = min(THREADS, groups) if _independent(c) else 1
    batches = [range(t, groups, threads) for t in range(threads)]
    if threads == 1:
        done = [run(local.state, batches[0])]
    else:
        states = [copied(local.state) for _ in batches]
        done = list(local.threads.map(run, states, batches))
        for s, batch in zip(states, batches, strict=True):
            rows = np.concatenate([ready.candidates.row[mine[g]] for g in batch])
            adopt(local.state, s, rows, np.concatenate([subsets[g] for g in batch]))
    steps = sum(made for _, made in done) + len(ready.candidates.row)
    local.search.work += steps * WORK_PER_STEP
    return sum(change for change, _ in done)


def _shared_out(
    local: LocalSearch, x: Candidates, subsets: list[Ints], turn: int
) -> list[Ints]:
    """The candidates of each subset: their replica number `turn` lies there."""
    c, at = local.columns, local.state.at
    subset_of = np.full(len(c.scale), -1, np.int64)
    for g, subset in enumerate(subsets):
        subset_of[subset] = g
    lies = subset_of[at[x.row, turn % c.rf[x.row]]]
    order = np.argsort(lies, kind="stable")
    ends = np.searchsorted(lies[order], np.arange(-1, len(subsets)), side="right")
    return [order[ends[g] : ends[g + 1]] for g in range(len(subsets))]


def _independent(c: Columns) -> bool:
    """Whether nothing that all brokers share is kept count of."""
    return bool((c.budgets == NO_BUDGET).all()) and not c.topic_weight.size


def _ready(local: LocalSearch, arm: Arm) -> Field:
    """Candidates and rooms of an arm; arms that differ in their heat alone share."""
    key = arm.reduced_cost, arm.brokers
    found = local.ready.get(key)
    if found is None:
        candidates = _candidates(local, arm.reduced_cost)
        rooms: SimpleQueue[Room] = SimpleQueue()
        for _ in range(THREADS):
            largest = min(2 * arm.brokers, len(local.columns.scale))
            rooms.put(new_room(local.columns, candidates, largest))
        found = local.ready[key] = Field(candidates=candidates, rooms=rooms)
    return found


def _candidates(local: LocalSearch, reduced_cost: float | None) -> Candidates:
    """Changes of small reduced cost, or all of the rows that are large."""
    c, r = local.columns, local.relaxation
    rows = r.rows
    if reduced_cost is None:
        rows = _largest_first(c, rows)[:MOST_GIANTS]
    most = max(1, min(len(rows), CANDIDATE_ROOM // len(c.scale)))
    row = np.zeros(most, np.int64)
    may = np.zeros((most, len(c.scale)), np.uint8)
    if reduced_cost is None:
        found = large_rows(c, rows, r.price / (4 * WORTH), row, may)
    else:
        within = reduced_cost * r.price
        leading = within if c.home.shape[1] == 1 else min(within, LEADING * r.price)
        q = unit_prices(c, r.prices if local.guide is None else local.guide)
        found = find_candidates(c, q, rows, within, leading, r.room, row, may)
    return new_candidates(row[:found].copy(), may[:found].copy())
