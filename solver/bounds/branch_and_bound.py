"""Small problems by branch and bound: better plans, and a proof if it ends in time.

A row's configuration names the brokers that hold its replicas and the one that leads.
`solver.kernels.configuration_search` chooses one for each row, bounded by dual prices
computed at every node. It alternates between

freeing some rows around the incumbent and finding the best choice for them, or giving
up (large neighbourhood search; Shaw, 1998);

freeing all rows, but accepting only solutions under a cutoff. If there is none, the
cutoff is a bound. It is raised until it meets the incumbent;

fixing the number of moves to each value that is still open (`solver.bounds.cardinality`).

A node's bound splits rows, which is loose where a broker holds few. Rows with one replica have a
bound that keeps them whole (`solver.bounds.lagrangian`), which often ends the search.

Capacities, replica limits and balance per topic are not part of a node's bound, which
is a valid bound of F all the same; a choice that breaks a rule is dropped at the end,
and its value stays in the bound. What `Problem.most_excess` leaves to each deviation is part
of a node's bound, and choices outside are not searched.
"""

from itertools import cycle, pairwise, product
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.bounds.cardinality import prove_by_counts
from solver.bounds.configurations import list_configurations
from solver.bounds.four_row_exchanges import RowExchanges
from solver.bounds.incumbent import Incumbent, found_choice
from solver.bounds.lagrangian import improve_bound
from solver.bounds.reduced_cost_fixing import SLACK
from solver.kernels.arithmetic import exponential, logarithm
from solver.kernels.configuration_search import EXHAUSTED, FOUND, anneal_choice
from solver.kernels.node_bound import CUTOFF, FLOOR, new_tree
from solver.kernels.node_bound import NODES as NODES_MADE
from solver.kernels.problem_arrays import NO_BUDGET
from solver.search.local_search import LocalSearch
from solver.tolerance.keep_tolerance import come_closest

FEWEST_FREE: Final = 4
"""Rows set free at least."""

NODES: Final = 300
"""Nodes explored among the rows set free."""

WORK_PER_NEIGHBOURHOOD: Final = 3e-4
"""Work units for setting rows free, before the search among them; measured."""

MOST_IDLE: Final = 150
"""Neighbourhoods without a gain after which the proof gets all remaining work."""

FIRST_SHARE: Final = 0.05
"""Share of the remaining work in which easy problems are proved at once."""

WHOLE_SHARE: Final = 0.3
"""Share of the then remaining work for the bound that keeps rows of one replica whole."""

COUNTING_SHARE: Final = 0.7
"""Share of the then remaining work for trying numbers of moves."""

ANNEALING_SHARE: Final = 0.4
"""Share of the then remaining work for annealing."""

EXCHANGING_SHARE: Final = 0.6
"""The same where rows are exchanged after it."""

FEWEST_EXCHANGED: Final = 32
"""Rows from which on rows are exchanged; trees soon exhaust fewer."""

ARMS: Final = tuple(product((0.1, 0.3, 0.03), (0.3, 0.1)))
"""Highest reduced costs of configurations, and initial temperatures, in costs of a move."""

LAST_TEMPERATURE: Final = 0.01
"""Final temperature, in costs of a move."""

STEPS: Final = 300_000
"""Steps of one annealing: several short ones find more than a long one."""

WORK_PER_STEP: Final = 2e-7

IMPROVING_SHARE: Final = 0.6
"""Share of the remaining work for neighbourhoods before a proof is tried."""

RAISES: Final = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Cutoffs between bound and incumbent, as shares of the gap."""


def branch_and_bound(local: LocalSearch) -> bool:
    """Improve incumbent and bound within the remaining work.

    The relaxation must be solved. Returns False, with nothing tried, without an incumbent,
    where budgets are set or topics balanced one by one, which the bound ignores, and where
    `list_configurations` returns None. Otherwise True, whether or not optimality is proved.
    """
    search = local.search
    budgets = bool((local.columns.budgets != NO_BUDGET).any())
    if budgets or search.problem.topic_share or search.best is None:
        return False
    listed = list_configurations(local)
    if listed is not None and come_closest(search):
        # Plans of least excess may use choices that lead to no lower F.
        listed = list_configurations(local)
    if listed is None:
        return False
    b = Incumbent(local, listed)
    if listed.bounded:
        b.price_bounds()
    reduced = _reduced_costs(b)
    exchanges = RowExchanges(b, reduced) if len(listed.rows) >= FEWEST_EXCHANGED else None
    share = ANNEALING_SHARE if exchanges is None else EXCHANGING_SHARE
    if listed.bounded:
        # So far the incumbent has been annealed for its excess alone.
        _anneal(b, exchanges, reduced, search.work + FIRST_SHARE * search.work_left)
    _raise_cutoffs(b, search.work + FIRST_SHARE * search.work_left)
    improve_bound(local, WHOLE_SHARE * search.work_left)
    prove_by_counts(b, search.work + COUNTING_SHARE * search.work_left)
    _anneal(b, exchanges, reduced, search.work + share * search.work_left)
    while not search.near_enough and not search.over():
        before = search.objective
        idle = _improve(b, search.work + IMPROVING_SHARE * search.work_left)
        if exchanges is not None and search.objective < before:
            b.offer(exchanges.descend(b.chosen, search.work + share * search.work_left))
        share = 1.0 if idle else IMPROVING_SHARE
        if not _raise_cutoffs(b, search.work + share * search.work_left) and idle:
            break
    return True


def _anneal(b: Incumbent, exchanges: RowExchanges | None, reduced: Floats, end: float) -> None:
    """Anneal over configurations of small reduced cost, arm after arm, and exchange rows.

    All arms have had one turn before rows of the best choice are exchanged; then those of
    further choices are, too.
    """
    search, price = b.local.search, b.local.relaxation.price
    for turn, (within, hot) in enumerate(cycle(ARMS)):
        if search.near_enough or search.over(end):
            return
        annealed = _annealed(b, reduced, within * price, hot * price)
        b.offer(annealed)
        if exchanges is None:
            continue
        if turn + 1 == len(ARMS):
            b.offer(exchanges.descend(b.chosen, end))
        elif turn >= len(ARMS):
            b.offer(exchanges.descend(annealed, end))


def _annealed(b: Incumbent, reduced: Floats, within: float, hot: float) -> Ints:
    """Anneal a choice, from each row's cheapest configuration, or the incumbent if bounded."""
    c = b.listed.configurations
    may = np.flatnonzero(reduced <= within)
    start = np.searchsorted(may, c.start).astype(np.int64)
    chosen = b.chosen.copy()
    if not b.listed.bounded:
        firsts = [reduced[s:e].argmin() for s, e in pairwise(c.start.tolist())]
        chosen = c.start[:-1] + np.array(firsts, np.int64)
    cold = LAST_TEMPERATURE * b.local.relaxation.price
    cooling = exponential(-logarithm(hot / cold) / STEPS)
    random = b.rng.integers(1, 2**63, 1, dtype=np.uint64)
    fixed, between = b.listed.fixed, b.listed.between
    anneal_choice(c, fixed, start, may, chosen, STEPS, hot, cooling, random, between)
    b.local.search.work += STEPS * WORK_PER_STEP
    return chosen


def _reduced_costs(b: Incumbent) -> Floats:
    """(N,) reduced cost of each configuration against its row's cheapest one."""
    c = b.listed.configurations
    cost = c.price.copy()
    for z in range(c.at.shape[1]):
        cost += c.load[:, z] * b.prices[c.at[:, z]]
    least = np.minimum.reduceat(cost, c.start[:-1])
    reduced: Floats = cost - np.repeat(least, np.diff(c.start))
    return reduced


def _improve(b: Incumbent, end: float) -> bool:
    """Look for better choices of some rows at a time; return whether gains have stopped."""
    search, idle = b.local.search, 0
    while idle < MOST_IDLE and not search.near_enough and not search.over(end):
        before = search.objective
        size = min(b.free, len(b.listed.rows))
        free = np.sort(b.rng.choice(len(b.listed.rows), size, replace=False))
        ended = _neighbourhood(b, free)
        b.free = b.free + 1 if ended else max(FEWEST_FREE, b.free - 1)
        b.free = min(b.free, len(b.listed.rows))
        idle = idle + 1 if search.objective >= before else 0
    return idle >= MOST_IDLE


def _neighbourhood(b: Incumbent, free: Ints) -> bool:
    """Find the best choice of some rows, given the others; return whether it completed."""
    c, search = b.listed.configurations, b.local.search
    part, kept = b.listed.part(free)
    stay = np.ones(len(b.listed.rows), np.bool_)
    stay[free] = False
    others = b.chosen[stay]
    at, load = c.at[others].ravel(), c.load[others].ravel()
    v = b.listed.fixed + np.bincount(at, load, len(b.listed.fixed))
    tree = new_tree(part, v, b.prices, b.listed.between)
    tree.decided[0] = sum(c.price[others].tolist())
    tree.figure[CUTOFF] = search.objective - SLACK
    found, last = FOUND, NODES
    while found == FOUND and tree.counter[NODES_MADE] < last and not search.over():
        nodes = last - int(tree.counter[NODES_MADE])
        found = b.explore(part, tree, nodes)
        if found == FOUND:
            chosen, before = b.chosen.copy(), search.objective
            chosen[free] = kept[found_choice(tree)]
            b.offer(chosen)
            # A choice that breaks a limit is not a plan, and earns no further nodes.
            if search.objective < before:
                last = int(tree.counter[NODES_MADE]) + NODES
        tree.figure[CUTOFF] = search.objective - SLACK
    search.work += WORK_PER_NEIGHBOURHOOD
    return bool(found == EXHAUSTED)


def _raise_cutoffs(b: Incumbent, end: float) -> bool:
    """Prove that no plan is under ever higher cutoffs; return whether all searches completed."""
    search, c = b.local.search, b.listed.configurations
    bound = search.bound
    for share in RAISES:
        cutoff = min(b.goal, bound + share * (b.goal - bound))
        if cutoff <= search.bound:
            continue
        tree = new_tree(c, b.listed.fixed, b.prices, b.listed.between)
        tree.figure[CUTOFF] = cutoff
        if not b.exhaust(c, tree, end):
            return False
        b.prove(float(tree.figure[FLOOR]))
    return True
