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

from solver.dual import (
    Relaxation,
    new_relaxation,
    solve_relaxation,
    unit_prices,
)
from solver.kernels.annealing import Room, anneal, new_room
from solver.kernels.candidates import (
    Candidates,
    find_candidates,
    large_rows,
    new_candidates,
)
from solver.kernels.columns import NO_BUDGET, Columns, find_columns
from solver.kernels.moves import State, copied, new_state, objective
from solver.kernels.rounding import evacuate, heaviest, round_off
from solver.placement import NOTHING, Placement, is_allowed
from solver.problem import Problem
from solver.search import Search

THREADS: Final = cpu_count() or 1
"""Neighbourhoods annealed at a time; the plan does not depend on it."""

DUAL_SHARE: Final = 0.5
"""Share of the work that the prices may take."""

EFFORTS: Final = (300, 1_500, 7_500)
"""Steps an item in one annealing of a neighbourhood; the next where nothing is gained
any more."""

MOST_STEPS: Final = 500_000
"""Steps of one annealing at most, which bounds the memory of its log."""

LEADING: Final = 0.03
"""Reduced cost of changes of leader alone, in prices of a move: they are many."""

COLD: Final = 0.03
"""Last temperature, in prices of a move."""

WORK_PER_STEP: Final = 3e-7

CANDIDATE_ROOM: Final = 50_000_000
"""Pairs of row and broker that candidates are kept for, a byte each."""

GIANT: Final = 0.2
"""Load of a partition, in levels, from which it is large against a broker."""

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
    Arm(reduced_cost=0.3, brokers=12),
    Arm(reduced_cost=1.0, brokers=5),
    Arm(reduced_cost=0.1, brokers=16),
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
    effort: int = EFFORTS[0]
    ready: dict[Arm, "Field"] = field(default_factory=dict)


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
    started = _evacuated(local)
    if started:
        offer(local)
    _price(local, work)
    _round(local, started=started)
    if search.best is not None:
        _anneal(local, end)
    return search.best is not None


def _evacuated(local: LocalSearch) -> bool:
    """Take what must leave to where F rises least, largest first."""
    c = local.columns
    rows = np.flatnonzero(c.forced)
    size = np.maximum(c.lead[rows].max(axis=1, initial=0), 0)
    order = rows[np.argsort(-size, kind="stable")]
    return bool(evacuate(c, local.state, order, local.relaxation.room))


def _price(local: LocalSearch, work: float) -> None:
    search, relaxation, c = local.search, local.relaxation, local.columns
    before = relaxation.work
    solve_relaxation(relaxation, work * DUAL_SHARE)
    search.work += relaxation.work - before
    refund = float(search.problem.prices.refund.sum())
    prices = np.zeros((len(c.scale), len(search.problem.weight)))
    prices[:, search.problem.weight > 0] = relaxation.prices
    search.prove_by_prices(relaxation.bound - refund, prices)


def _round(local: LocalSearch, *, started: bool) -> None:
    """Round the relaxed placement off from home, and keep it if it is better."""
    c, relaxation = local.columns, local.relaxation
    first = local.state
    state = copied(first)
    split = np.flatnonzero(relaxation.masses.head >= 0)
    whole = np.zeros(len(c.home), np.bool_)
    heaviest(relaxation.masses, split, whole)
    size = c.lead[split].max(axis=1, initial=0)
    order = split[np.argsort(-size, kind="stable")]
    round_off(c, relaxation.masses, state, order, whole)
    if started and has_giants(c):
        state = _better(local, first, state)
    if not started or objective(c, state) < objective(c, first):
        local.state = state
    offer(local)


def has_giants(c: Columns) -> bool:
    """Whether a partition is so large that prices say little of where it belongs."""
    return bool(c.lead.max(initial=0.0) > GIANT)


def _better(local: LocalSearch, one: State, other: State) -> State:
    """Of two starts the one that some annealing makes better."""
    found = []
    for start in (one, other):
        local.state = copied(start)
        end = local.search.work + TRIAL_SHARE * local.search.limits.work
        for turn in range(TRIALS):
            _round_of(local, GIANT_ARMS[turn % len(GIANT_ARMS)], turn)
            if local.search.work >= end:
                break
        found.append(local.state)
    return min(found, key=lambda s: float(objective(local.columns, s)))


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
    profit = dict.fromkeys(arms, np.inf)
    idle, turn, told = 0, 0, search.work
    while search.work < end and not search.proved:
        if idle >= IDLE_ROUNDS:
            if local.effort == EFFORTS[-1]:
                break
            local.effort, idle = EFFORTS[EFFORTS.index(local.effort) + 1], 0
        if search.observer.stops():
            search.stopped = True
            break
        arm = max(arms, key=lambda a: profit[a])
        if turn % ROUND_ROBIN == 0:
            arm = arms[turn // ROUND_ROBIN % len(arms)]
        before = search.work
        gain = -_round_of(local, arm, turn)
        turn += 1
        idle = 0 if gain > NOTHING else idle + 1
        rate = gain / max(1e-9, search.work - before)
        profit[arm] = rate if np.isinf(profit[arm]) else (profit[arm] + rate) / 2
        if search.work - told > OFFER_EVERY * search.limits.work:
            offer(local)
            told = search.work
    local.state = new_state(local.columns, local.state.at)
    offer(local)


def _round_of(local: LocalSearch, arm: Arm, turn: int) -> float:
    """Anneal disjoint neighbourhoods of all brokers side by side; change of F.

    The neighbourhoods share no broker, and a row belongs to the one in which its
    replica number `turn` lies; so they cannot meet, and their order is of no account.
    """
    c = local.columns
    ready = _ready(local, arm)
    brokers = local.rng.permutation(np.flatnonzero(c.holding))
    groups = max(1, len(brokers) // arm.brokers)
    subsets = [brokers[g::groups].astype(np.int64) for g in range(groups)]
    seeds = local.rng.integers(1, 2**63, groups, dtype=np.uint64)
    hot, cold = arm.hot * local.relaxation.price, COLD * local.relaxation.price

    def run(g: int) -> tuple[float, int]:
        random = seeds[g : g + 1].copy()
        room = ready.rooms.get()
        x, s, subset = ready.candidates, local.state, subsets[g]
        change, steps = anneal(
            c, s, x, subset, turn, local.effort, MOST_STEPS, hot, cold, random, room
        )
        ready.rooms.put(room)
        return float(change), int(steps)

    if groups == 1 or not _independent(c):
        done = [run(g) for g in range(groups)]
    else:
        done = list(local.threads.map(run, range(groups)))
    local.search.work += sum(steps for _, steps in done) * WORK_PER_STEP
    local.search.work += groups * len(ready.candidates.row) * WORK_PER_STEP
    return sum(change for change, _ in done)


def _independent(c: Columns) -> bool:
    """Whether nothing that all brokers share is kept count of."""
    return bool((c.budgets == NO_BUDGET).all()) and not c.topic_weight.size


def _ready(local: LocalSearch, arm: Arm) -> Field:
    found = local.ready.get(arm)
    if found is None:
        candidates = _candidates(local, arm)
        rooms: SimpleQueue[Room] = SimpleQueue()
        for _ in range(THREADS):
            largest = min(2 * arm.brokers, len(local.columns.scale))
            rooms.put(new_room(local.columns, candidates, largest, MOST_STEPS))
        found = local.ready[arm] = Field(candidates=candidates, rooms=rooms)
    return found


def _candidates(local: LocalSearch, arm: Arm) -> Candidates:
    """Changes of small reduced cost, or all of the rows that are large."""
    c, r = local.columns, local.relaxation
    most = max(1, min(len(r.rows), CANDIDATE_ROOM // len(c.scale)))
    row = np.zeros(most, np.int64)
    may = np.zeros((most, len(c.scale)), np.uint8)
    if arm.reduced_cost is None:
        size = c.lead[r.rows].max(axis=1, initial=0.0)
        order = r.rows[np.argsort(-size, kind="stable")][:MOST_GIANTS]
        found = large_rows(c, order, r.price / (4 * WORTH), row, may)
    else:
        within = arm.reduced_cost * r.price
        leading = within if c.home.shape[1] == 1 else min(within, LEADING * r.price)
        q = unit_prices(c, r.prices)
        found = find_candidates(c, q, r.rows, within, leading, r.room, row, may)
    return new_candidates(row[:found].copy(), may[:found].copy())
