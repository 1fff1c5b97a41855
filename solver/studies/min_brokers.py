"""The smallest number of brokers that can carry a cluster, with proof.

The lower bound counts what has to be carried against what that many brokers may hold,
resource by resource, rack by rack, and by the partitions too large to share a broker
(the bin packing bound L2 of Martello and Toth). The witness is a plan: the emptiest
brokers are drained, or brokers are added, until the solver finds a placement.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.remaining import load_text
from model.snapshot.snapshot import Bools, Floats, Ints, Snapshot, dimension_words
from model.snapshot.what_if import AddedBrokers, FewestBrokers, Scenario, suppose
from model.units import count_text
from solver.budget import Budget
from solver.cpsat.model import is_small
from solver.kernels.compiled import interpreted
from solver.leaders.anchors import find_anchors
from solver.problem.co_location import RackMode
from solver.problem.leader_minimums import find_minimums
from solver.problem.placement import loads_of
from solver.problem.problem import CAPACITY_SLACK, Problem, compile_problem
from solver.problem.remaining_violations import excess, held
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.search.search import Search
from solver.solve import find_placement, solve


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerBound:
    """A proved lower bound on the number of brokers, and its reason."""

    brokers: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fewest:
    """The result: a number with its proof, and the plan that reaches it."""

    need: BrokerBound
    """The proved lower bound."""
    answer: FewestBrokers | None
    """None where no number of brokers was found to suffice."""
    snapshot: Snapshot
    """What the plan is for: some brokers drain, or some were added."""
    result: Result
    limited_by: str
    """What ended the search for fewer brokers undecided; empty if it was decided."""


FIRST_PLAN: Final = 1e9
"""A gap that any plan closes, so that a solve ends with the first one."""

TRIALS_SHARE: Final = 0.5
"""Share of the search budget for finding the number; the plan gets the rest."""

TRIAL_SHARE: Final = 0.3
"""Share of what is left of that for each number tried."""

WORK_OF_ROW: Final = 2e-5
"""Work units for compiling a problem, per partition; measured."""

MOST_TIMES: Final = 3
"""At most this many times the present brokers, or the bound, are tried."""

MOST_SIZES: Final = 256
"""Item sizes at which the bound for large partitions is computed."""


def fewest_brokers(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver | None = None
) -> Fewest:
    """Find the smallest number of brokers that keeps every rule.

    The work of `limits` is shared by all trials and the plan. As many racks stay in use as the rack
    rule requires now. The number is proved smallest where it equals the bound; otherwise fewer were
    tried by draining the emptiest brokers first, without success. `answer` is None where up to
    `MOST_TIMES` the brokers did not suffice, the trials ended first, or one replica is too large
    for any broker; the plan is then for the present brokers.
    """
    problem = compile_problem(snapshot, goals)
    need, order = broker_lower_bound(problem), removal_order(problem)
    too_large = _too_large(problem)
    if too_large:
        need = BrokerBound(brokers=need.brokers, words=too_large)

    def at(brokers: int) -> Snapshot:
        return _with(snapshot, problem, order, brokers)

    budget = Budget(limits=limits, observer=observer or SolveObserver())
    trials = budget.part(TRIALS_SHARE * limits.work)
    undecided: list[int] = []

    def can_do(brokers: int) -> bool:
        search = _trial(at(brokers), goals, trials)
        can = _keeps_limits(search) and _reaches_minimums(search)
        if not can and not _ruled_out(search):
            undecided.append(brokers)
        return can

    most = MOST_TIMES * max(need.brokers, len(order))
    tried = bool(order) and not too_large
    found = _least(can_do, need.brokers, most, trials.over) if tried else None
    budget.spend(trials)
    supposed = at(len(order) if found is None else found)
    result = solve(supposed, goals, limits, budget.observer, spent=budget.work)
    answer = None
    if found is not None:
        answer = FewestBrokers(
            present=len(order),
            fewest=found,
            bound=need.brokers,
            binding=need.words,
            removed=tuple(sorted(problem.brokers[b] for b in order[found:])),
            added=tuple(b.id for b in supposed.header.brokers[len(problem.brokers) :]),
        )
    decided = found == need.brokers or bool(too_large)
    limited_by = "" if decided else _limited(undecided, trials)
    return Fewest(need=need, answer=answer, snapshot=supposed, result=result, limited_by=limited_by)


def _trial(snapshot: Snapshot, goals: Goals, trials: Budget) -> Search:
    """A search that ends with the first placement."""
    part = trials.part(TRIAL_SHARE * trials.work_left)
    search = Search(
        problem=compile_problem(snapshot, goals),
        limits=part.limits.model_copy(update={"gap": FIRST_PLAN}),
        observer=part.observer,
    )
    search.work += WORK_OF_ROW * len(snapshot)
    with interpreted(is_small(search.problem)):
        find_placement(search)
    trials.spend(search)
    return search


def _keeps_limits(search: Search) -> bool:
    """Whether a placement was found in which no broker exceeds a limit.

    A plan may leave a broker over a limit that already is; such a plan does not count here.
    """
    problem, best = search.problem, search.best
    if best is None:
        return False
    return excess(problem, loads_of(problem, best), held(problem, best.replicas)) == 0.0


def _reaches_minimums(search: Search) -> bool:
    """Whether every broker can have its minimum of leaders, as far as single rows decide."""
    problem, best = search.problem, search.best
    minimums = find_minimums(problem.snapshot, problem.goals, problem.may.alive)
    return best is None or not find_anchors(problem, minimums, best).lacking


def _ruled_out(search: Search) -> bool:
    """Whether it is proved that every placement breaks a rule or exceeds a limit."""
    return search.infeasible or (search.best is not None and search.repaired_most)


def _limited(undecided: list[int], trials: Budget) -> str:
    """What ended the trials before they were decided."""
    if trials.stopped:
        return "stopped before fewer brokers were ruled out"
    if not undecided and trials.work_left > 0:
        return ""
    numbers = ", ".join(map(str, sorted(undecided)))
    which = f": {count_text(len(undecided), 'number')} undecided, {numbers}"
    return "search budget exhausted" + (which if undecided else "")


def _with(snapshot: Snapshot, problem: Problem, order: list[int], brokers: int) -> Snapshot:
    """The snapshot with this many brokers that may hold load."""
    removed: tuple[BrokerId, ...] = tuple(problem.brokers[b] for b in order[brokers:])
    more = brokers - len(order)
    add = (AddedBrokers(count=more),) if more > 0 else ()
    return suppose(snapshot, Scenario(remove=removed, add=add))


def _least(
    can_do: Callable[[int], bool], bound: int, most: int, over: Callable[[], bool]
) -> int | None:
    """The least number from `bound` to `most` that suffices, assuming more never hurt.

    `over` is asked before each further number whether to stop with what is known.
    """
    low, high, step = bound - 1, bound, 1
    while not can_do(high):
        if high >= most or over():
            return None
        low, high, step = high, min(most, high + step), 2 * step
    while high - low > 1 and not over():
        middle = (low + high) // 2
        if can_do(middle):
            high = middle
        else:
            low = middle
    return high


def removal_order(problem: Problem) -> list[int]:
    """Order the brokers that may hold load, by position: the last one is to drain first.

    The emptiest drains first, by `Problem.fill`; where replicas are spread over racks, the emptiest
    in the racks with the most brokers left, so that racks stay as even as possible. Of equals, the
    one with the higher id drains first.
    """
    spread = bool((problem.may.spreading.mode != RackMode.OFF).any())
    rack = problem.may.spreading.rack
    fill = problem.fill.tolist()
    left = np.flatnonzero(problem.may.holding).tolist()
    drained = []
    while left:
        in_rack = np.bincount(rack[left])

        def place(b: int, in_rack: Ints = in_rack) -> tuple[int, float, int]:
            return -int(in_rack[rack[b]]) if spread else 0, fill[b], -b

        first = min(left, key=place)
        left.remove(first)
        drained.append(first)
    return drained[::-1]


# ---- the bound


def broker_lower_bound(problem: Problem) -> BrokerBound:
    """Return the strongest proved lower bound on the number of brokers, with its reason.

    The greatest of the bounds by replication factor, replicas per broker, total load, partitions
    too large to share a broker, and racks; at least 1. Rows without a leader are not counted.
    """
    needs = [BrokerBound(brokers=1, words="a cluster has at least one broker"), *_bounds(problem)]
    need = max(needs, key=lambda need: need.brokers)
    if np.isfinite(problem.limit).any():
        return need
    words = f"{need.words}; no capacity is known, so loads limit nothing"
    return BrokerBound(brokers=need.brokers, words=words)


def _bounds(problem: Problem) -> Iterator[BrokerBound]:
    carried = problem.leader >= 0
    if not carried.any():
        return
    most = int(problem.rf[carried].max())
    words = f"a partition has {count_text(most, 'replica')} on distinct brokers"
    yield BrokerBound(brokers=most, words=words)
    everywhere = problem.may.holding
    replicas = int(problem.rf[carried].sum())
    few = _enough(_most_replicas(problem), everywhere, replicas)
    limit = count_text(problem.goals.replicas_per_broker, "replica")
    words = f"{count_text(replicas, 'replica')} at {limit} per broker"
    yield BrokerBound(brokers=few, words=words)
    for d, dimension in enumerate(problem.dimensions):
        allowed, items = problem.limit[:, d], _items(problem, d, carried)
        total = float(items.sum())
        few = _enough(allowed, everywhere, total)
        room = _words_of_room(problem, d)
        load = load_text(dimension.key, total)
        words = f"{load} of {dimension_words(dimension.key)} have to be carried, {room}"
        yield BrokerBound(brokers=few, words=words)
        large = too_large_to_share(items, _largest(problem, allowed))
        words = (
            f"partitions too large in {dimension_words(dimension.key)} to share a broker, {room}"
        )
        yield BrokerBound(brokers=large, words=words)
    yield _rack_bound(problem, carried)


def _too_large(problem: Problem) -> str:
    """Describe a replica whose load no broker may carry; empty if there is none."""
    for d, dimension in enumerate(problem.dimensions):
        most = float(_items(problem, d, problem.leader >= 0).max(initial=0.0))
        if most > _largest(problem, problem.limit[:, d]) * (1 + CAPACITY_SLACK):
            room = _words_of_room(problem, d)
            load = load_text(dimension.key, most)
            return f"one partition alone carries {load} of {dimension_words(dimension.key)}, {room}"
    return ""


def _words_of_room(problem: Problem, d: int) -> str:
    most = _largest(problem, problem.limit[:, d])
    return f"and a broker may carry {load_text(problem.dimensions[d].key, most)}"


def _largest(problem: Problem, allowed: Floats) -> float:
    return float(allowed[problem.may.holding].max(initial=0.0))


def _items(problem: Problem, d: int, carried: Bools) -> Floats:
    """(replicas,) load of every replica, independent of which one leads."""
    followers = np.repeat(problem.follow[carried, d], problem.rf[carried] - 1)
    return np.concatenate([problem.lead[carried, d], followers])


def _most_replicas(problem: Problem) -> Ints:
    """(B,) replicas that each broker may hold."""
    return np.full(len(problem.brokers), problem.goals.replicas_per_broker, np.int64)


def _enough(allowed: Floats | Ints, among: Bools, total: float) -> int:
    """Number of brokers whose limits add up to a total, the largest first.

    `allowed` is (B,) limits; further brokers count as large as the largest one.
    """
    rooms = np.sort(allowed[among].astype(np.float64))[::-1]
    total *= 1 - CAPACITY_SLACK
    if not len(rooms) or not math.isfinite(rooms[0]) or total <= 0:
        return 1 if total > 0 else 0
    rising = np.cumsum(rooms)
    if rising[-1] >= total:
        return 1 + int(np.searchsorted(rising, total))
    # Counting added brokers as the largest one keeps the bound valid.
    short = float((total - rising[-1]) / rooms[0])
    return len(rooms) + math.ceil(short)


def too_large_to_share(items: Floats, room: float) -> int:
    """Compute a lower bound on equal bins of size `room` for indivisible items.

    Martello and Toth's L2 (Knapsack Problems, 1990, chapter 8): for a size a, items over room - a
    need a bin each, those over half the room lie in different bins, and the remaining items of at
    least a fill what these leave. `items`, (items,), and `room` are in the same unit. An item
    larger than `room` counts as one bin; 0 if `room` is infinite or not positive.
    """
    if not math.isfinite(room) or room <= 0:
        return 0
    room *= 1 + CAPACITY_SLACK
    items = np.sort(items)
    small = np.unique(items[items <= room / 2])
    picked = np.unique(np.linspace(0, len(small) - 1, MOST_SIZES).astype(np.int64))
    sizes = [0.0, *small[picked].tolist()] if len(small) else [0.0]
    return max(_bins(items, room, size) for size in sizes)


def _bins(items: Floats, room: float, size: float) -> int:
    alone = int((items > room - size).sum())
    apart = items[(items > room / 2) & (items <= room - size)]
    rest = items[(items >= size) & (items <= room / 2)]
    over = float(rest.sum()) - (len(apart) * room - float(apart.sum()))
    return alone + len(apart) + max(0, math.ceil(over / room - CAPACITY_SLACK))


def _rack_bound(problem: Problem, carried: Bools) -> BrokerBound:
    """Brokers of all racks together, where rules say what each rack must hold."""
    racks = problem.may.spreading.racks
    each = [_needed_in(problem, carried, q) for q in range(len(racks))]
    shares = [f"{count} in rack {rack}" for rack, count in zip(racks, each, strict=True) if count]
    words = f"the racks have to hold their share: {', '.join(shares)}"
    return BrokerBound(brokers=sum(each), words=words)


def _needed_in(problem: Problem, carried: Bools, rack: int) -> int:
    """Brokers that one rack needs for what must lie in it."""
    among = problem.may.holding & (problem.may.spreading.rack == rack)
    there = _must_lie_in(problem, rack) * carried
    follow = np.where((problem.rf > 1)[:, None], problem.follow, problem.lead)
    least = np.minimum(problem.lead, follow) * there[:, None]
    needs = [int(there.max())]
    needs.append(_enough(_most_replicas(problem), among, int(there.sum())))
    for d in range(least.shape[1]):
        total = float(least[:, d].sum())
        needs.append(_enough(problem.limit[:, d], among, total))
    return max(needs)


def _must_lie_in(problem: Problem, rack: int) -> Ints:
    """(n,) replicas of each row that one rack holds under every plan."""
    spreading = problem.may.spreading
    group, racks = spreading.group, int(spreading.usable.any(axis=0).sum())
    mode, usable = spreading.mode[group], bool(spreading.usable[:, rack].any())
    there = np.zeros(len(group), np.int64)
    # Every usable rack is used where there are not more racks than replicas.
    there[(mode == RackMode.SPREAD) & (problem.rf >= racks) & usable] = 1
    even = (mode == RackMode.EVEN) & usable
    there[even] = problem.rf[even] // max(1, racks)
    here = (problem.replicas >= 0) & (spreading.rack[problem.replicas] == rack)
    # Rows that break the rule now may stay as they are.
    there[here.sum(axis=1) < there] = 0
    exact = mode == RackMode.EXACT
    there[exact] = spreading.required[group[exact], rack]
    return there
