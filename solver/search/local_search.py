"""Plans for problems too large for the exact model, with a Lagrangian bound.

Dual prices come first, since they show which changes can matter. The relaxed placement is
rounded, then annealed on a few brokers at a time until the search budget is exhausted.
"""

from typing import Final

import numpy as np

from solver.bounds.large_partitions import LargePartitionTree
from solver.bounds.single_replica_choices import has_choices
from solver.kernels.move_deltas import State, copied, new_state, objective
from solver.kernels.problem_arrays import (
    NO_BUDGET,
    Columns,
    find_columns,
    leader_first,
    placement_of,
    prices_in_file,
)
from solver.kernels.rounding import frugal, place_forced, place_single_replicas, round_relaxed
from solver.problem.placement import NOTHING, is_allowed
from solver.search.broker_groups import BROKER_SWEEPS, Groups
from solver.search.budget_prices import are_limited, exceeds, price_budgets
from solver.search.coarse_to_fine import levels, passes, starts_coarse
from solver.search.configuration_annealing import anneal_configurations
from solver.search.diving import dive
from solver.search.dual import PRICED_BUDGETS, WARM_SWEEPS, Relaxation, solve_relaxation, warm_up
from solver.search.large_places import place_large, places_large
from solver.search.neighbourhoods import Arm, Neighbourhoods, largest_first
from solver.search.search import Search

DUAL_SHARE: Final = 0.5
"""Share of the search budget that the dual prices may take, their warm-up included."""

PRICINGS: Final = 2
"""Times that prices of budgets are looked for again after the relaxation is solved."""

DIVE_SHARE: Final = 0.25
"""Share of the search budget that diving may take."""

SOON: Final = 5
"""Sweeps over all rows before prices are sought for budgets, where there are any."""

WARM_SHARE: Final = 0.3
"""Share of the search budget that the warm-up may take."""

GROUPS_SHARE: Final = 0.5
"""Share of that for the prices of groups of brokers, where there are any."""

EFFORTS: Final = (100, 1_000)
"""Steps per item in one annealing of a neighbourhood: many short runs gain most at
first, a few long ones at the end."""

EARLY_TURNS: Final = 12
"""Annealings of all brokers before the dual is solved, at most."""

EARLY_SHARE: Final = 0.1
"""Share of the search budget that they may take."""

EARLY_GAIN: Final = 0.2
"""Share of F by which one of them must lower it for another to follow."""

TRIAL_EFFORT: Final = 300
"""Steps per item in a trial of a start."""

WORK_PER_STEP: Final = 2e-7
"""Work units per annealing step; measured."""

LARGE_LOAD: Final = 0.2
"""Load, as a share of a broker's mean, from which a partition is large."""

DECISIVE_SHARE: Final = 0.05
"""Share of all load from which on large partitions decide how good a plan can be."""

OFFER_EVERY: Final = 0.02
"""Share of the search budget between two offered plans."""

OFFER_SOON: Final = 0.1
"""The same as a share of the work so far, where that is less."""

ROUND_ROBIN: Final = 6
"""Every so many rounds the next arm has its turn, whatever it gained before."""

CHECK_EVERY: Final = 40
"""Rounds between two checks of what was gained."""

EARLY_CHECK: Final = 8
"""Rounds between two checks whether the first arm alone closes the gap in time. Used
with many brokers and one replica per row, where other arms can gain ten times as much.
"""

MANY_BROKERS: Final = 48
"""Brokers from which on `EARLY_CHECK` applies."""

MOST_OPENED: Final = 500
"""Brokers up to which the search may begin with all of them."""

OPENING_SHARE: Final = 0.2
"""Share of the search budget that this may take."""

OPENING_EFFORT: Final = 100_000
"""Steps per item in it, a tenth of this with many items (`anneal`)."""

COARSE_SHARE: Final = 0.5
"""Share of the search budget for a start from coarse to fine, with large partitions."""

UNLIMITED: Final = 1_000_000_000
"""Steps per item where the arm alone limits them."""

OPENING_HOT: Final = 0.12
"""Its initial temperature, in costs of a move; with more it forgets its start."""

SLOW_SHARE: Final = 0.02
"""Share of F - bound; a gain below it calls for more arms and more effort."""

ARMS: Final = (
    Arm(reduced_cost=0.1, brokers=12, hot=1.0),
    Arm(reduced_cost=0.3, brokers=12),
    Arm(reduced_cost=1.0, brokers=5),
    Arm(reduced_cost=0.5, brokers=25),
)
"""Neighbourhood settings that compete for turns, as in a multi-armed bandit."""

LARGE_PARTITION_ARMS: Final = (
    Arm(reduced_cost=None, brokers=3),
    Arm(reduced_cost=None, brokers=12),
    Arm(reduced_cost=None, brokers=12, hot=10.0),
)
"""Settings added where large partitions decide; they move these anywhere."""

CONFIGURATIONS_SHARE: Final = 0.85
"""Share of the remaining work for annealing whole configurations, where they are few."""

PLACING_SHARE: Final = 0.9
"""Share of the remaining work for placing large partitions first, where it is done."""

TRIALS: Final = 8
"""Rounds each of two starts gets before the better is kept, with large partitions."""

TRIAL_SHARE: Final = 0.1
"""Share of the search budget for each of these trials."""

TREE_SHARE: Final = 0.1
"""Share of the search budget for branch and bound on large partitions."""

START_SHARE: Final = 0.05
"""Share of the search budget for annealing each start that it finds."""


class LocalSearch:
    """One local search: the columns, the relaxation and the best state."""

    def __init__(self, search: Search) -> None:
        problem, seed = search.problem, search.limits.seed
        self.search = search
        """The incumbent, the bound and the search budget."""
        self.columns = c = find_columns(problem)
        home = new_state(c, c.home)
        start = problem.start
        self.state = home if start is None else new_state(c, leader_first(c, *start))
        """The best placement so far, with its loads."""
        self.relaxation = Relaxation(c, home.v, seed, search.stops)
        self.around = Neighbourhoods(self.relaxation, seed)
        """The neighbourhoods it is annealed in."""
        self.counted = 0.0
        """Work of the relaxation that the search has been charged for."""
        self.tree: LargePartitionTree | None = None
        """Branch and bound on large partitions; None without any."""


def search_locally(search: Search, work: float) -> LocalSearch | None:
    """Offer plans and prove a bound, within `work` work units.

    Large neighbourhood search (Shaw, 1998) by simulated annealing from a rounded
    Lagrangian relaxation. Returns the search as it ended; None where no start was found
    that keeps every rule, or where a row that must move has nowhere to go.
    """
    local = LocalSearch(search)
    with local.around.threads:
        return local if _search_within(local, work) else None


def _search_within(local: LocalSearch, work: float) -> bool:
    search, relaxation = local.search, local.relaxation
    if relaxation.impossible:
        return False
    end = search.work + work
    if _evacuate_forced(local):
        offer(local)
    home = copied(local.state)
    _warm_up(local, home, WARM_SHARE * work)
    _round_relaxed(local, home)
    _anneal_early(local, EARLY_SHARE * work)
    _solve_dual(local, home, work)
    _dive(local, DIVE_SHARE * work)
    _round_relaxed(local, home)
    if search.best is None:
        return False
    if not has_large_partitions(local.columns):
        # Prices say little about large partitions: their configurations of small reduced cost
        # lead into worse plans than the arms find.
        _anneal_configurations(local, search.work + CONFIGURATIONS_SHARE * (end - search.work))
    else:
        if starts_coarse(local.columns):
            _start_coarse(local, home, COARSE_SHARE * work)
        else:
            local.state = _better_start(local, home, local.state)
        offer(local)
        if places_large(search, local.columns):
            _place_large(local, search.work + PLACING_SHARE * (end - search.work))
        else:
            _branch_on_large(local, work)
    _open_wide(local, work)
    for first in range(len(ARMS)):
        if first > 0:
            local.state = copied(home)
        _anneal(local, ARMS[first:] + ARMS[:first], end)
        if search.near_enough or search.over(end):
            break
    _go_on_from_repair(local, end)
    return True


def _warm_up(local: LocalSearch, home: State, work: float) -> None:
    """Bring the relaxed placement near its optimum; offer a first plan where brokers are many."""
    relaxation, seed = local.relaxation, local.search.limits.seed
    groups = Groups.of(relaxation, home.v, seed)
    if groups is None:
        sweeps = WARM_SWEEPS
        if are_limited(local.columns):
            warm_up(relaxation, work, SOON)
            price_budgets(relaxation, objective(local.columns, home), work - relaxation.work)
            sweeps -= SOON
        if not relaxation.budget_prices.any():
            warm_up(relaxation, work - relaxation.work, sweeps)
        return
    groups.warm_up(objective(local.columns, home), work)
    _round_relaxed(local, home)
    groups.solve(GROUPS_SHARE * work)
    warm_up(relaxation, work - relaxation.work, BROKER_SWEEPS)


def _start_coarse(local: LocalSearch, home: State, work: float) -> None:
    """Anneal from home, from large partitions to small ones; keep what is better than before."""
    search, c, price = local.search, local.columns, local.relaxation.price
    best = local.state
    count, steps = passes(c, price, int(work / WORK_PER_STEP))
    for _ in range(count):
        if search.near_enough or search.over():
            break
        local.state = copied(home)
        for arm in levels(c, price, steps):
            if search.over():
                break
            _anneal_once(local, arm, UNLIMITED, 0)
        offer(local)
        best = min(best, local.state, key=lambda s: objective(c, s))
    local.state = best
    local.around.forget()


def _open_wide(local: LocalSearch, work: float) -> None:
    """Anneal over all brokers at once, before neighbourhoods are drawn; see `opens_wide`."""
    if not opens_wide(local.columns):
        return
    arm = Arm(
        reduced_cost=0.3,
        brokers=len(local.columns.scale),
        hot=OPENING_HOT,
        most_steps=int(OPENING_SHARE * work / WORK_PER_STEP),
    )
    _anneal_once(local, arm, OPENING_EFFORT, 0)
    offer(local)


def opens_wide(c: Columns) -> bool:
    """Return whether the search begins with one annealing over all brokers.

    With one replica per row and `MANY_BROKERS` to `MOST_OPENED` brokers. Not where large
    partitions decide, which are started otherwise; nor with budgets, which such an annealing
    spends on moves that gain less than later ones.
    """
    many = MANY_BROKERS <= len(c.scale) <= MOST_OPENED and c.home.shape[1] == 1
    return many and not (c.budgets != NO_BUDGET).any() and not has_large_partitions(c)


def _evacuate_forced(local: LocalSearch) -> bool:
    """Place the replicas that must leave where F rises least, largest first."""
    if local.search.problem.start is not None:
        return True
    c, scratch = local.columns, local.relaxation.scratch
    rows = largest_first(c, np.flatnonzero(c.forced))
    # Loops that have nothing to do need not be compiled.
    if not len(rows) or place_forced(c, local.state, rows, scratch):
        return True
    local.state = new_state(c, c.home)
    return bool(place_forced(frugal(c), local.state, rows, scratch))


def _anneal_early(local: LocalSearch, work: float) -> None:
    """Anneal a few times before the dual is solved, where budgets have prices.

    Rounding leaves out what no longer fits into the budgets, and the dual may take long. The search
    does not go on from here: its budgets are used up by moves that better prices would not make.
    """
    search, relaxation = local.search, local.relaxation
    if search.best is None or not relaxation.budget_prices.any():
        return
    _count(local)
    end = search.work + work
    rounded = copied(local.state)
    local.around.follow(2.0 * local.columns.weight * relaxation.v)
    for turn in range(EARLY_TURNS):
        if search.over(end):
            break
        before = objective(local.columns, local.state)
        gain = -_anneal_once(local, ARMS[1], EFFORTS[0], turn)
        offer(local)
        if gain < EARLY_GAIN * before:
            break
    local.state = rounded
    local.around.follow(None)


def _solve_dual(local: LocalSearch, home: State, work: float) -> None:
    """Solve the relaxation, with other prices of budgets where it uses too much of one."""
    search, relaxation = local.search, local.relaxation
    before, end = objective(local.columns, home), DUAL_SHARE * work
    for last in (*[False] * PRICINGS, True):
        solve_relaxation(relaxation, end - relaxation.work)
        _count(local)
        _prove_by_prices(search, relaxation)
        if last or search.over() or relaxation.work >= end or not exceeds(relaxation):
            break
        price_budgets(relaxation, before, end - relaxation.work)


def _count(local: LocalSearch) -> None:
    """Charge the search for what the relaxation has done since."""
    local.search.work += local.relaxation.work - local.counted
    local.counted = local.relaxation.work


def _prove_by_prices(search: Search, relaxation: Relaxation) -> None:
    refund = float(search.problem.costs.refund.sum())
    prices = prices_in_file(search.problem, relaxation.prices)
    bound = relaxation.bound - refund - relaxation.given_back
    budgets = zip(PRICED_BUDGETS, relaxation.budget_prices.tolist(), strict=True)
    search.prove_by_prices(bound, prices, {name: y for name, y in budgets if y > 0.0})


def _dive(local: LocalSearch, work: float) -> None:
    """Make the rows whole step by step, where brokers are many."""
    if local.relaxation.start is not None:
        dive(local.relaxation, work)
        _count(local)


def _round_relaxed(local: LocalSearch, home: State) -> None:
    """Round the relaxed placement, starting from home, and keep it if it is better."""
    c, relaxation = local.columns, local.relaxation
    state = copied(home)
    split = np.flatnonzero(relaxation.masses.head >= 0)
    round_relaxed(c, relaxation.masses, state, largest_first(c, split))
    none = local.search.best is None
    if none or objective(c, state) < objective(c, local.state):
        local.state = state
        offer(local)


def _anneal_configurations(local: LocalSearch, end: float) -> None:
    """Anneal whole configurations where they are few, and go on from the best plan."""
    if anneal_configurations(local.search, local.columns, local.relaxation, end):
        _adopt_best(local)


def _place_large(local: LocalSearch, end: float) -> None:
    """Search for the places of large rows, then for those of the others given these."""
    place_large(local.search, local.columns, end)
    _adopt_best(local)


def _adopt_best(local: LocalSearch) -> None:
    """Go on from the incumbent where it is better than the state."""
    search, c = local.search, local.columns
    if search.best is not None:
        best = new_state(c, leader_first(c, search.best.replicas, search.best.leader))
        local.state = min(local.state, best, key=lambda s: objective(c, s))


def _branch_on_large(local: LocalSearch, work: float) -> None:
    """Branch on where large partitions go; keep the start that annealing makes best.

    A start whose own bound is nearer to F than to the proved bound is not tried.
    """
    c, r, search = local.columns, local.relaxation, local.search
    if not has_choices(c, r):
        return
    local.tree = LargePartitionTree(search, r.columns, r)
    local.tree.grow(TREE_SHARE * work)
    plain, found = local.state, [(local.state, r.prices)]
    middle = (search.bound + search.objective) / 2 - local.tree.choices.decided
    rows = local.tree.choices.rows
    order = np.argsort(-c.lead[rows].max(axis=1, initial=0.0), kind="stable")
    for start in (s for s in local.tree.starts if s.bound < middle):
        if search.over():
            break
        local.state = copied(plain)
        local.around.follow(start.point.prices)
        at = start.point.at[order].astype(np.int64)
        for _ in range(2):
            place_single_replicas(c, local.state, rows[order], at)
        _anneal_briefly(local, ARMS + LARGE_PARTITION_ARMS, START_SHARE * work)
        found.append((local.state, start.point.prices))
    local.state, prices = min(found, key=lambda f: objective(c, f[0]))
    local.around.follow(prices)
    offer(local)


def _anneal_briefly(local: LocalSearch, arms: tuple[Arm, ...], work: float) -> None:
    """Run a few rounds of annealing."""
    end = local.search.work + work
    for turn in range(TRIALS):
        if local.search.over(end):
            break
        _anneal_once(local, arms[turn % len(arms)], TRIAL_EFFORT, turn)


def has_large_partitions(c: Columns) -> bool:
    """Return whether large partitions decide how good a plan can be.

    True where partitions with a load above `LARGE_LOAD` of a broker's mean hold more than
    `DECISIVE_SHARE` of the load; prices say little about where they belong.
    """
    size = c.lead.max(axis=1, initial=0.0)
    return bool(size[size > LARGE_LOAD].sum() > DECISIVE_SHARE * c.holding.sum())


def _better_start(local: LocalSearch, one: State, other: State) -> State:
    """Return the one of two starts that a brief annealing makes better."""
    found = []
    for start in (one, other):
        local.state = copied(start)
        _anneal_briefly(local, LARGE_PARTITION_ARMS, TRIAL_SHARE * local.search.limits.work)
        found.append(local.state)
    return min(found, key=lambda s: objective(local.columns, s))


def offer(local: LocalSearch) -> None:
    """Offer the placement of `local.state` to the search; ignore it if it breaks a rule."""
    problem = local.search.problem
    placement = placement_of(problem, local.state.at)
    if is_allowed(problem, placement):
        local.search.offer(placement)


def _anneal(local: LocalSearch, among: tuple[Arm, ...], end: float) -> None:
    """Anneal neighbourhoods until the search budget or the gain is exhausted.

    The first arm runs alone as long as it gains, or closes the gap in time, because early gains
    of the others block its own. If work is left over, another arm leads, from home again.
    """
    search = local.search
    large = LARGE_PARTITION_ARMS if has_large_partitions(local.columns) else ()
    stages = [(among[:1] + large, EFFORTS[0]), *((among + large, e) for e in EFFORTS)]
    arms, effort = stages.pop(0)
    profit = dict.fromkeys(ARMS + large, np.inf)
    gained, turn, offered_at = 0.0, 0, search.work
    recent_gain, checked_at = 0.0, search.work
    early_check_pending = (
        len(local.columns.scale) >= MANY_BROKERS and local.columns.home.shape[1] == 1
    )
    while not search.near_enough and not search.over(end):
        arm = max(arms, key=lambda a: profit[a])
        if turn % ROUND_ROBIN == ROUND_ROBIN - 1:
            arm = arms[turn // ROUND_ROBIN % len(arms)]
        before = search.work
        gain = -_anneal_once(local, arm, effort, turn)
        rate = gain / max(1e-9, search.work - before)
        profit[arm] = rate if np.isinf(profit[arm]) else (profit[arm] + rate) / 2
        gained += gain
        recent_gain += gain
        turn += 1
        if early_check_pending and turn % EARLY_CHECK == 0:
            left, gap = end - search.work, search.objective - search.bound
            if recent_gain * left < gap * (search.work - checked_at):
                arms, effort = stages.pop(0)
                early_check_pending, gained = False, 0.0
            recent_gain, checked_at = 0.0, search.work
        if turn % CHECK_EVERY == 0:
            if stages and gained < SLOW_SHARE * (search.objective - search.bound):
                arms, effort = stages.pop(0)
                early_check_pending = False
            elif gained <= NOTHING:
                break
            gained = 0.0
        offer_after = min(OFFER_EVERY * search.limits.work, OFFER_SOON * search.work)
        if search.work - offered_at > offer_after:
            offer(local)
            offered_at = search.work
    local.state = new_state(local.columns, local.state.at)
    offer(local)


def _go_on_from_repair(local: LocalSearch, end: float) -> None:
    """After a repair, anneal on at the prices of the best plan's deviations, until no arm gains.

    The relaxation knows no limits. Where a repair keeps rows away from where it wants them, its
    prices are not those at which others make up for that.
    """
    search, c = local.search, local.columns
    if search.problem.start is None or not len(local.relaxation.rows):
        return
    _adopt_best(local)
    idle = 0
    while idle < len(ARMS) and not search.near_enough and not search.over(end):
        before = search.objective
        local.around.follow(np.where(c.holding[:, None], 2.0 * c.weight * local.state.v, 0.0))
        _anneal(local, ARMS[idle:] + ARMS[:idle], end)
        idle = 0 if search.objective < before - NOTHING else idle + 1


def _anneal_once(local: LocalSearch, arm: Arm, effort: int, turn: int) -> float:
    """Anneal all neighbourhoods of one draw; return the change of F."""
    search = local.search
    most, before = int(search.work_left / WORK_PER_STEP), local.around.work
    change, steps = local.around.anneal(local.state, arm, effort, turn, most)
    search.work += steps * WORK_PER_STEP + local.around.work - before
    return change
