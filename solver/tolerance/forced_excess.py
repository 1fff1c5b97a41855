"""Excess over the tolerance that no allowed plan avoids, and what forces it.

Five bounds that need no search, at any size: what the rack rule keeps in a rack, what partitions
that may not move keep on a broker, a partition that is too large for any broker, a total that has
nowhere else to go because some brokers may not lead, or hold, their share of it, and replicas that
are too few to be divided evenly: twelve equal ones on eight brokers.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from model.units import count_text, percent_text
from solver.problem.co_location import RackMode
from solver.problem.placement import EDGE
from solver.problem.problem import Problem

MOST_COUNTED: Final = 20_000
"""Replicas of some load up to which their counts on brokers are looked at."""

ROUNDING: Final = 1e-9
"""Share of a sum of loads that rounding may have added."""

MOST_IN_RACKS: Final = 20_000_000
"""Rows x racks up to which the bound by racks is sought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedExcess:
    """A lower bound of the excess over the tolerance, and its cause."""

    excess: float
    """Sum of weight x deviation beyond the tolerance, as a share of the mean; 0 where nothing is
    forced."""
    reason: str
    """A clause on the largest part; empty where nothing is forced."""


NOTHING_FORCED: Final = ForcedExcess(excess=0.0, reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(ForcedExcess):
    """What rules force in one dimension on the brokers of a rack, or on one broker."""

    brokers: Ints
    """Positions of the brokers."""
    k: int
    """The dimension."""
    over: bool
    """Whether they are above their tolerance; below it otherwise."""


def forced_excess(problem: Problem) -> ForcedExcess:
    """Find excess over the tolerance that every allowed plan has.

    What racks and single brokers force adds up over them. The largest partition counts on its
    own, as it may be on any broker, and so does what the totals force.
    """
    if not problem.may.holding.any() or not (problem.weight > 0).any():
        return NOTHING_FORCED
    parts: list[ForcedExcess] = list(_Kept(problem).parts())
    total = sum(part.excess for part in parts)
    for part in _large_partitions(problem):
        if part.excess > total:
            parts, total = [part], part.excess
    divided = _divided(problem)
    if divided.excess > total + EDGE:
        # The reason of a smaller bound still holds.
        reason = max(parts, key=lambda part: part.excess).reason if parts else divided.reason
        return ForcedExcess(excess=divided.excess, reason=reason)
    if total <= EDGE:
        return NOTHING_FORCED
    return ForcedExcess(excess=total, reason=max(parts, key=lambda part: part.excess).reason)


def deviations_between(problem: Problem) -> Floats:
    """(2, B, K) least and largest deviations that `Problem.most_excess` leaves to a plan.

    K counts only dimensions of positive weight. Infinite where any is left. What rules do not
    force of the excess is free, and may be any broker's alone. Where rules force the brokers of a
    rack to be outside together, one that is further inside puts the others further outside.
    """
    low = np.full(problem.slope.shape, -np.inf)
    high = -low
    kept, holding = problem.weight > 0, problem.may.holding
    if problem.most_excess < np.inf and kept.any() and holding.any():
        parts = list(_Kept(problem).parts())
        forced = sum(part.excess for part in parts)
        # Each deviation may be `EDGE` beyond its tolerance, and so may their weighted sum.
        rounding = EDGE * (1 + float(holding.sum() * problem.weight.sum()))
        free = max(0.0, problem.most_excess - forced) + rounding
        beyond = free / np.where(kept, problem.weight, np.inf)
        low[holding], high[holding] = -problem.tolerance - beyond, problem.tolerance + beyond
        for part in parts:
            at, k = part.brokers, part.k
            slope = problem.slope[at, k]
            inside = problem.tolerance[k] - beyond[k] * slope / slope.min()
            low[at, k] = inside if part.over else -np.inf
            high[at, k] = np.inf if part.over else -inside
    return np.array((low[:, kept], high[:, kept]))


class _Kept:
    """What rules keep in each rack, and on each broker."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._free = problem.may.fixed_reason == 0
        fixed = problem.loads_of_rows(np.flatnonzero(~self._free))[:, problem.column]
        self._fixed: Floats = fixed * (1 - ROUNDING)
        """(B, K) load of rows that may not move."""
        self._bounded = len(problem.leader) * len(problem.may.spreading.racks) <= MOST_IN_RACKS
        if self._bounded:
            self._kind, self._bounds = _replicas_in_racks(problem)

    def parts(self) -> Iterator[_Part]:
        """Yield excess that adds up: of a rack, or of its single brokers where that is more."""
        problem = self._problem
        for rack in range(len(problem.may.spreading.racks)):
            brokers = np.flatnonzero(_inside(problem, rack))
            for k in np.flatnonzero(problem.weight > 0).tolist() if len(brokers) else []:
                single = [part for b in brokers.tolist() if (part := self._of_broker(b, k))]
                whole = self._of_rack(rack, brokers, k) if self._bounded else None
                if whole and whole.excess > sum(part.excess for part in single):
                    yield whole
                else:
                    yield from single

    def _of_broker(self, b: int, k: int) -> _Part | None:
        """What rows that may not move force on one broker; None where that is nothing."""
        problem, tolerance = self._problem, float(self._problem.tolerance[k])
        deviation = float(self._fixed[b, k] * problem.slope[b, k]) - 1.0
        if deviation <= tolerance + EDGE:
            return None
        return _Part(
            brokers=np.array([b]),
            k=k,
            over=True,
            excess=float(problem.weight[k]) * (deviation - tolerance),
            reason=f"partitions that may not move keep broker {problem.brokers[b]} at least "
            f"{percent_text(deviation)} above the average {_of(problem, k)}",
        )

    def _of_rack(self, rack: int, brokers: Ints, k: int) -> _Part | None:
        problem, tolerance = self._problem, float(self._problem.tolerance[k])
        slope = problem.slope[brokers, k]
        if (slope <= 0.0).any():
            return None
        mean = float((1.0 / slope).sum())
        least, most = self._count(rack)
        low, high = _load_between(problem, least, most, k)
        low = low[self._free].sum() * (1 - ROUNDING) + self._fixed[brokers, k].sum()
        high = high[self._free].sum() + self._fixed[brokers, k].sum() / (1 - ROUNDING)
        over, under = float(low) / mean - 1.0, 1.0 - float(high) * (1 + ROUNDING) / mean
        deviation = max(over, under)
        if deviation <= tolerance + EDGE:
            return None
        # All of it may be on the largest broker, where it deviates least.
        beyond = (deviation - tolerance) * mean * float(slope.min())
        bound = least > 0 if over >= under else most < problem.rf
        rule = "the rack rule keeps" if bound[self._free].any() else "rules of partitions keep"
        side = "above" if over >= under else "below"
        name = problem.may.spreading.racks[rack]
        where = "without a rack" if name is None else f"of rack {name}"
        return _Part(
            brokers=brokers,
            k=k,
            over=over >= under,
            excess=float(problem.weight[k]) * beyond,
            reason=f"{rule} the {count_text(len(brokers), 'broker')} {where} together at least "
            f"{percent_text(deviation)} {side} the average {_of(problem, k)}",
        )

    def _count(self, rack: int) -> tuple[Ints, Ints]:
        """(n,) least and most replicas of each row on the rack's holding brokers."""
        problem, may = self._problem, self._problem.may
        least, most = self._bounds[self._kind, rack].T
        here = problem.replicas >= 0
        present = (here & _inside(problem, rack)[problem.replicas]).sum(axis=1)
        # A row whose replicas stay need not keep the rack rule.
        stays = ~may.displaced
        least = np.where(stays, np.minimum(least, present), least)
        most = np.where(stays, np.maximum(most, present), most)
        # Replicas on brokers that are not balanced are in the rack, but not counted.
        uncounted = (here & ~may.holding[problem.replicas] & ~may.must_go).any(axis=1)
        return np.where(uncounted, 0, least), most


def _inside(problem: Problem, rack: int) -> Bools:
    """(B,) balanced brokers of a rack."""
    return np.asarray((problem.may.spreading.rack == rack) & problem.may.holding)


def _of(problem: Problem, k: int) -> str:
    tolerance = percent_text(float(problem.tolerance[k]))
    return f"in {problem.keys[k]} (tolerance {tolerance})"


def _load_between(problem: Problem, least: Ints, most: Ints, k: int) -> tuple[Floats, Floats]:
    """(n,) least and most load of `least` to `most` replicas, (n,), of rows that have leaders."""
    column, rf = problem.column[k], problem.rf
    lead, follow = problem.lead[:, column], problem.follow[:, column]
    led = lead + np.maximum(0, least - 1) * follow
    low = np.where(least >= rf, led, np.minimum(led, least * follow))
    led = np.where(most > 0, lead + np.maximum(0, most - 1) * follow, 0.0)
    return low, np.maximum(led, np.minimum(most, rf - 1) * follow)


def _large_partitions(problem: Problem) -> Iterator[ForcedExcess]:
    """Yield what the largest partition of each dimension forces on the broker that leads it."""
    may = problem.may
    here = problem.replicas >= 0
    led = (problem.leader >= 0) & ~(here & ~may.holding[problem.replicas]).any(axis=1)
    able = (may.spreading.allow.any(axis=0) & may.alive & ~may.holding).any()
    if able or not led.any():
        return
    rows = np.flatnonzero(led)
    columns = problem.snapshot.partitions
    for k in np.flatnonzero(problem.weight > 0).tolist():
        load = problem.lead[rows, problem.column[k]]
        row = int(rows[int(load.argmax())])
        slope = float(problem.slope[may.holding, k].min())
        deviation = float(load.max()) * slope - 1.0
        tolerance = float(problem.tolerance[k])
        if deviation <= tolerance + EDGE:
            continue
        topic = problem.snapshot.header.topics[int(columns.topic[row])].name
        yield ForcedExcess(
            excess=float(problem.weight[k]) * (deviation - tolerance),
            reason=f"{topic}-{int(columns.partition[row])} alone puts its leader at least "
            f"{percent_text(deviation)} above the average {_of(problem, k)}",
        )


def _divided(problem: Problem) -> ForcedExcess:
    """What is left if each total, or the number of replicas, could be divided at will.

    Among the brokers that may take it, and by dimension.
    """
    may = problem.may
    if not problem.holds_all:
        return NOTHING_FORCED
    free = may.fixed_reason == 0
    fixed = problem.loads_of_rows(np.flatnonzero(~free))[:, problem.column]
    holding = np.flatnonzero(may.holding)
    excess, reason = 0.0, ""
    for k in np.flatnonzero(problem.weight > 0).tolist():
        lead, follow = (of[:, problem.column[k]] for of in (problem.lead, problem.follow))
        held = np.where(problem.may_lead, np.maximum(lead, follow)[:, None], 0.0)
        held = np.maximum(held, np.where(problem.hold, follow[:, None], 0.0))
        least = fixed[holding, k] * (1 - ROUNDING)
        most = (fixed[holding, k] + held[free][:, holding].sum(axis=0)) * (1 + ROUNDING)
        total = float(problem.loads_of_rows(np.arange(len(lead)))[:, problem.column[k]].sum())
        slope, tolerance = problem.slope[holding, k], float(problem.tolerance[k])
        if (slope > 0.0).all():
            beyond = _least_beyond(least, most, total, slope, tolerance)
            loads = problem.replica_loads(k)
            counted = _least_by_counts(loads, slope, tolerance)
            excess += float(problem.weight[k]) * max(beyond, counted)
            if counted > beyond + EDGE and not reason:
                replicas = count_text(len(loads), "replica")
                brokers = count_text(len(holding), "broker")
                reason = f"{brokers} cannot share {replicas} evenly {_of(problem, k)}"
    return ForcedExcess(excess=excess * (1 - ROUNDING), reason=reason)


def _least_beyond(
    least: Floats, most: Floats, total: float, slope: Floats, tolerance: float
) -> float:
    """Least sum of deviations beyond the tolerance, where loads from `least` to `most` are `total`.

    All but `total`, and the result as a share of the mean, are (B,) of balanced brokers. A load
    costs -slope up to the tolerance, then nothing, and slope beyond it, so that filling brokers
    by rising cost is exact.
    """
    low, high = (1.0 - tolerance) / slope, (1.0 + tolerance) / slope
    rest = total - float(least.sum())
    cost = float((np.maximum(0.0, np.maximum(low - least, least - high)) * slope).sum())
    ends = (least, np.clip(low, least, most), np.clip(high, least, most), np.maximum(least, most))
    rooms = np.concatenate([after - before for before, after in itertools.pairwise(ends)])
    costs = np.concatenate([-slope, np.zeros(len(slope)), slope])
    for piece in np.argsort(costs, kind="stable").tolist():
        taken = min(float(rooms[piece]), max(0.0, rest))
        cost, rest = cost + taken * float(costs[piece]), rest - taken
    return max(0.0, cost)


def _least_by_counts(loads: Floats, slope: Floats, tolerance: float) -> float:
    """Least sum of deviations beyond the tolerance over all numbers of replicas on brokers.

    A broker with n replicas has at least the load of the n smallest, at most that of the n largest.
    What that leaves beyond the tolerance is convex in n, so that giving each replica to the broker
    where it costs least is exact. `loads` ascend; `slope` is (B,), of balanced brokers; the result
    is a share of the mean.
    """
    if not len(loads) or len(loads) > MOST_COUNTED:
        return 0.0
    low = np.concatenate(([0.0], np.cumsum(loads))) * (1 - ROUNDING)
    high = np.concatenate(([0.0], np.cumsum(loads[::-1]))) * (1 + ROUNDING)

    def beyond(b: int, count: int) -> float:
        over = float(low[count] * slope[b]) - 1.0 - tolerance
        return max(0.0, over, 1.0 - tolerance - float(high[count] * slope[b]))

    total = sum(beyond(b, 0) for b in range(len(slope)))
    queue = [(beyond(b, 1) - beyond(b, 0), b, 1) for b in range(len(slope))]
    heapify(queue)
    for _ in range(len(loads)):
        change, b, count = queue[0]
        total += change
        after = beyond(b, count + 1) - beyond(b, count) if count < len(loads) else np.inf
        heapreplace(queue, (after, b, count + 1))
    return max(0.0, total)


def _replicas_in_racks(problem: Problem) -> tuple[Ints, Ints]:
    """(n,) kind of each row, and (kinds, Q, 2) least and most replicas in each rack if it moves."""
    may, spreading = problem.may, problem.may.spreading
    racks = len(spreading.racks)
    room = np.bincount(spreading.rack[may.alive | may.holding], minlength=racks)
    in_rack = (spreading.rack[:, None] == np.arange(racks)).astype(np.int64)
    usable = (spreading.allow & may.alive).astype(np.int64) @ in_rack
    uncounted = (spreading.allow & may.alive & ~may.holding).any()
    factors = int(problem.rf.max(initial=0)) + 1
    kinds, kind = np.unique(spreading.group * factors + problem.rf, return_inverse=True)
    bounds = np.zeros((len(kinds), racks, 2), np.int64)
    for i, (g, rf) in enumerate((int(x) // factors, int(x) % factors) for x in kinds):
        for q in range(racks):
            few = range(min(rf, int(room[q])) + 1)
            found = [m for m in few if _fits(problem, (g, rf), q, m, room, usable[g])]
            bounds[i, q] = (found[0], found[-1]) if found else (0, rf)
    if uncounted:
        bounds[:, :, 0] = 0
    return kind.reshape(-1), bounds


def _fits(
    problem: Problem, kind: tuple[int, int], q: int, m: int, room: Ints, usable: Ints
) -> bool:
    """Whether rack q may hold m replicas of a row that moves; True where that is not certain.

    `kind` is the row's group and its number of replicas. `room`, (Q,), are the brokers of each
    rack, and `usable`, (Q,), those that may take a replica.
    """
    spreading, (g, rf) = problem.may.spreading, kind
    mode, others = spreading.mode[g], np.delete(room, q)
    if mode == RackMode.EXACT:
        return m == int(spreading.required[g, q])
    if m + int(others.sum()) < rf:
        return False
    if mode == RackMode.SPREAD:
        distinct = int(spreading.distinct[g])
        return m <= rf - distinct + 1 if m else int((others > 0).sum()) >= distinct
    if mode == RackMode.EVEN:
        # No rack holds two replicas more than one with a free broker.
        most = others if m >= usable[q] else np.minimum(others, m + 1)
        least = np.minimum(np.delete(usable, q), max(0, m - 1))
        return bool(m + most.sum() >= rf and m + least.sum() <= rf)
    return True
