"""Repairs of rules that are already broken, before plans are compared: racks, then limits.

The search starts from the placement found here and must keep its repairs: rows whose
racks are repaired may not stay as they are, and a broker over a limit may carry no more
than it does here. So the plan that repairs more is better, whatever its F; and since
the placement itself satisfies all this, no repair makes a solve infeasible.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from model.goals.goals import SolveLimits
from model.snapshot.snapshot import Bools, Ints
from solver.budget import Budget
from solver.cpsat.model import pairs
from solver.kernels.compiled import changed
from solver.kernels.move_deltas import State, new_state, reassign
from solver.kernels.pricing import PricingScratch, new_pricing_scratch
from solver.kernels.problem_arrays import (
    NO_BUDGET,
    Columns,
    find_columns,
    leader_first,
    placement_of,
)
from solver.kernels.repair_moves import (
    Limits,
    excess_of,
    exchange,
    new_limits,
    relieve,
    single_move_pays,
    spread,
    swap,
)
from solver.kernels.rounding import frugal, place_forced
from solver.problem.placement import NOTHING, Placement, is_allowed, loads_of
from solver.problem.problem import Problem
from solver.problem.remaining_violations import ROUNDING, excess, held, sharing
from solver.repair.exact_repair import repair_exactly
from solver.search.neighbourhoods import largest_first
from solver.search.observer import SolveObserver

SHARE: Final = 0.2
"""Share of the search budget that repairs may take."""

MOVING_SHARE: Final = 0.8
"""The same while changes still relieve brokers over their limits, which come first."""

EXPLAINING_SHARE: Final = 0.25
"""Share of that which may be added to explain why racks are not repaired."""

WORK_PER_TRY: Final = 1e-6
"""Work units of one configuration or pair tried; measured."""

WORK_PER_ROW: Final = 1e-7
"""Work units for ordering one row of a broker by how much it relieves it; measured."""

ROWS_AT_A_TIME: Final = 16
"""Rows of a broker tried for one change, those that relieve it most."""

ROWS_PER_ORDER: Final = 1_000
"""Rows of a broker for each change that one ordering serves, so that large ones cost no more."""

BULK_PAIRS: Final = 30_000
"""Movable rows x brokers from which on single changes are made in bulk."""

MOST_PAIRS: Final = 1_000_000
"""Exchanges tried for one broker at a time."""

EXACT_PAIRS: Final = 2_000
"""Size up to which the exact model looks for a better repair, and proves it."""

ROWS_AT_ONCE: Final = 1_000
"""Forced rows placed between two checks whether to stop."""

MOST_EXPLAINED: Final = 1_000
"""Unrepaired rows for which the reason is worked out."""

REASONS_UNREPAIRED: Final = {
    "budgets": "the budgets of the plan leave no move for it",
    "limits": "no broker in another rack has room below its limits",
    "both": "no broker in another rack has room within limits and budgets",
    "brokers": "no broker in another rack may take it",
    "work": "the search budget was exhausted before it was repaired",
}
"""Why the racks of a row that may move are not repaired; part of plan files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What a solve has to keep because it can be repaired."""

    problem: Problem
    """The problem with the repair as a constraint; unchanged where there is none."""
    proved: bool = True
    """Whether no allowed plan repairs more."""
    unrepaired: dict[int, str] = field(default_factory=dict)
    """Rows that may move and still share racks, with the reason."""
    work: float = 0.0
    """Work units spent."""
    cut: bool = False
    """The share of the budget ended while a broker was over a limit and changes were left to try.
    """

    @property
    def placement(self) -> Placement | None:
        """The placement that repairs this much; None for the present one."""
        start = self.problem.start
        return None if start is None else Placement(replicas=start[0], leader=start[1])


def find_repair(problem: Problem, limits: SolveLimits, observer: SolveObserver) -> Repair:
    """Repair what can be repaired, within a share of the search budget.

    The share is `SHARE` of `limits.work`, or `MOVING_SHARE` while changes relieve brokers over a
    limit, plus what reasons take. Nothing is repaired where no placement was found for the forced
    rows. Raises AssertionError if a repair breaks a rule, which is a bug, and ValueError if CP-SAT
    rejects its model as invalid.
    """
    broken = repairable(problem)
    if not is_broken(problem):
        return Repair(problem=problem)
    budget = Budget(limits=_with_work(limits, limits.work * SHARE), observer=observer)
    task = _RepairSearch(problem, broken, budget)
    found = task.run()
    proved = found is not None and _is_complete(problem, broken, found)
    if not proved and pairs(problem) <= EXACT_PAIRS and not budget.over():
        found, proved = repair_exactly(problem, broken, found, budget)
    if found is None:
        why = dict.fromkeys(np.flatnonzero(broken).tolist(), REASONS_UNREPAIRED["work"])
        return Repair(problem=problem, proved=False, unrepaired=why, work=budget.work)
    kept = _keeping_repairs(problem, broken, found)
    if not is_allowed(kept, found):
        raise AssertionError("a repair breaks a rule")
    left = np.flatnonzero(broken & sharing(problem, found.replicas))
    proved = proved or _is_proved_by_sums(problem, broken, found)
    return Repair(
        problem=kept,
        proved=proved,
        unrepaired=dict(zip(left.tolist(), task.reasons(found, left), strict=True)),
        work=budget.work,
        cut=task.cut and not proved,
    )


def is_broken(problem: Problem) -> bool:
    """Return whether a limit is exceeded, or a row that may move shares racks."""
    count = held(problem, problem.replicas)
    over = excess(problem, problem.loads_before, count)
    return over > 0.0 or bool(repairable(problem).any())


def repairable(problem: Problem) -> Bools:
    """Return (n,) rows that share racks and may move; none if the goals turn repairs off."""
    if not problem.goals.repair_racks:
        return np.zeros(len(problem.leader), np.bool_)
    return np.asarray(sharing(problem, problem.replicas) & (problem.may.fixed_reason == 0))


def _keeping_repairs(problem: Problem, broken: Bools, found: Placement) -> Problem:
    """The problem whose plans must repair as much as a placement does."""
    loads, count = loads_of(problem, found), held(problem, found.replicas)
    repaired = broken & ~sharing(problem, found.replicas)
    return replace(
        _displacing(problem, repaired),
        allowed=np.minimum(problem.allowed, np.maximum(problem.limit, loads)),
        allowed_replicas=np.minimum(
            problem.allowed_replicas, np.maximum(problem.goals.replicas_per_broker, count)
        ),
        start=(found.replicas, found.leader),
    )


def _is_complete(problem: Problem, broken: Bools, found: Placement) -> bool:
    """Whether everything is repaired."""
    loads, count = loads_of(problem, found), held(problem, found.replicas)
    left = bool((broken & sharing(problem, found.replicas)).any())
    return not left and excess(problem, loads, count) == 0.0


def _is_proved_by_sums(problem: Problem, broken: Bools, found: Placement) -> bool:
    """Whether sums alone prove that no placement repairs more.

    A broker keeps what may not move, and all holding brokers together carry at least
    what leaving ones need not give up.
    """
    if (broken & sharing(problem, found.replicas)).any():
        return False
    loads, count = loads_of(problem, found), held(problem, found.replicas)
    holding = problem.may.holding
    if (count > problem.goals.replicas_per_broker)[holding].any():
        return False
    over = np.maximum(0.0, loads / problem.limit - 1.0)[holding]
    limit = problem.limit[holding]
    for d in np.flatnonzero((over > ROUNDING).any(axis=0)).tolist():
        beyond = float(loads[holding, d].sum() - limit[:, d].sum())
        if over[:, d].sum() > max(0.0, beyond) / limit[:, d].max() + ROUNDING:
            return False
    return True


class _RepairSearch:
    """A greedy search for a repair: one change at a time, then exchanges."""

    def __init__(self, problem: Problem, broken: Bools, budget: Budget) -> None:
        self._problem, self._broken, self._budget = problem, broken, budget
        self.cut = False
        """The budget ended while brokers were over limits and changes were left to try."""

    def run(self) -> Placement | None:
        """Return the placement found; None where a forced row has no place."""
        c = find_columns(self._problem)
        state = self._evacuated(c) or self._evacuated(frugal(c))
        if state is None:
            return None
        state = self._racks(state)
        state = self._limits(state)
        state = self._racks(state)
        return placement_of(self._problem, state.at)

    def _evacuated(self, c: Columns) -> State | None:
        """Place the forced rows, the largest first; None where that fails, or the budget ends."""
        state, scratch = new_state(c, c.home), new_pricing_scratch(c)
        forced = largest_first(c, np.flatnonzero(c.forced))
        for start in range(0, len(forced), ROWS_AT_ONCE):
            rows = forced[start : start + ROWS_AT_ONCE]
            if self._budget.over() or not place_forced(c, state, rows, scratch):
                return None
        return state

    def _racks(self, state: State) -> State:
        """Repair the rows that still share racks."""
        problem = self._problem
        here = sharing(problem, placement_of(problem, state.at).replicas)
        rows = np.flatnonzero(self._broken & here)
        if not len(rows):
            return state
        c = find_columns(_displacing(problem, rows))
        state, scratch = new_state(c, state.at), new_pricing_scratch(c)
        for row in _order(c, rows).tolist():
            if self._budget.over():
                break
            self._repair_row(c, state, row, scratch)
        return state

    def _limits(self, state: State) -> State:
        """Take load off the brokers over a limit, the worst first.

        In large clusters all single changes come first, in bulk; in others exchanges, which can
        make room for more, are tried in between.
        """
        problem = self._problem
        here = sharing(problem, placement_of(problem, state.at).replicas)
        c = find_columns(_displacing(problem, self._broken & ~here))
        limited = np.flatnonzero(np.isfinite(problem.allowed).any(axis=0))
        most = np.where(problem.may.holding, float(problem.goals.replicas_per_broker), np.inf)
        m = new_limits(problem.limit[:, limited], most, c.home.shape[1])
        state = new_state(c, state.at)
        share = self._budget.limits
        if pairs(problem) >= BULK_PAIRS:
            longest = share.work / SHARE * MOVING_SHARE
            self._budget.limits = _with_work(share, longest)
            self._move_in_bulk(c, state, m)
            # Exchanges have the usual share besides.
            after = min(longest, self._budget.work + share.work)
            self._budget.limits = _with_work(share, after)
        rest = [b for b in range(len(c.scale)) if excess_of(state, m, b) > ROUNDING]
        while rest and not self._budget.over():
            rest.sort(key=lambda b: (-excess_of(state, m, b), b))
            if not self._relieved(c, state, m, rest[0]):
                rest.pop(0)
            rest = [b for b in rest if excess_of(state, m, b) > ROUNDING]
        self.cut = bool(rest)
        self._budget.limits = share
        return state

    def _move_in_bulk(self, c: Columns, state: State, m: Limits) -> None:
        """Make single changes while they relieve a broker, the worst first."""
        excess = np.array([excess_of(state, m, b) for b in range(len(c.scale))])
        on = _rows_by_broker(c, state, excess > ROUNDING)
        while on and not self._budget.over():
            worst = max(on, key=lambda b: (excess[b], -b))
            relieved = self._relieve_once(c, state, m, worst, on[worst])
            excess[worst] = excess_of(state, m, worst)
            if not relieved or excess[worst] <= ROUNDING:
                del on[worst]

    def _relieve_once(self, c: Columns, state: State, m: Limits, b: int, on: "_Ordered") -> bool:
        """Make one change for broker b, whose rows are `on`.

        Returns False where no single change relieves it any further.
        """
        budget = self._budget
        while not budget.over():
            if on.left == 0:
                on.order(c, state, m, b)
                budget.work += WORK_PER_ROW * len(on.rows)
            some = on.rows[on.first : on.first + ROWS_AT_A_TIME]
            if not len(some):
                if on.left == on.serves:
                    return False
                on.left = 0
                continue
            before = int(m.tried[0])
            row = relieve(c, state, m, b, some)
            budget.work += WORK_PER_TRY * (int(m.tried[0]) - before + len(some))
            if row < 0:
                on.first += len(some)
                continue
            reassign(c, state, row, m.at.copy())
            on.left -= 1
            if not (state.at[row] == b).any():
                on.rows = on.rows[on.rows != row]
            return True
        return True

    def _relieved(self, c: Columns, state: State, m: Limits, b: int) -> bool:
        """Make one change, or else one exchange, for broker b; return whether one was made."""
        rows = np.flatnonzero((state.at == b).any(axis=1))
        rows = rows[np.argsort(c.price[rows], kind="stable")]
        before = int(m.tried[0])
        row = relieve(c, state, m, b, rows)
        if row >= 0:
            reassign(c, state, row, m.at.copy())
        done = row >= 0 or self._exchanged(c, state, m, b, rows)
        tried = int(m.tried[0]) - before + len(rows)
        self._budget.work += WORK_PER_TRY * tried
        return done

    def _exchanged(self, c: Columns, state: State, m: Limits, b: int, rows: Ints) -> bool:
        others = np.argwhere((state.at >= 0) & (state.at != b) & c.free[:, None])
        tries = min(MOST_PAIRS, round(self._budget.work_left / WORK_PER_TRY))
        pair = exchange(c, state, m, b, rows, others.astype(np.int64), tries)
        if pair < 0:
            return False
        row, (other, place) = rows[pair // len(others)], others[pair % len(others)]
        slot = int(np.flatnonzero(state.at[row] == b)[0])
        swap(c, state, int(row), slot, int(other), int(place))
        return True

    def reasons(self, found: Placement, rows: Ints) -> Iterator[str]:
        """Yield, in order, why each of `rows`, which share racks in `found`, is not repaired.

        Values of `REASONS_UNREPAIRED`; allows the budget a further `EXPLAINING_SHARE`, and
        gives the reason "work" for rows beyond it or beyond `MOST_EXPLAINED`.
        """
        if not len(rows):
            return
        budget = self._budget
        most = budget.work + EXPLAINING_SHARE * budget.limits.work
        budget.limits = _with_work(budget.limits, most)
        c = find_columns(_displacing(self._problem, rows))
        at = leader_first(c, found.replicas, found.leader)
        relaxed = {
            name: (x, new_state(x, at), new_pricing_scratch(x)) for name, x in _relaxed_columns(c)
        }
        for i, row in enumerate(rows.tolist()):
            reason = "work"
            if not budget.over() and i < MOST_EXPLAINED:
                able = (name for name, x in relaxed.items() if self._can_repair(*x, row))
                reason = next(able, "brokers")
            yield REASONS_UNREPAIRED[reason]

    def _can_repair(self, c: Columns, state: State, scratch: PricingScratch, row: int) -> bool:
        """Whether a row can be repaired; its placement is restored."""
        back = state.at[row].copy()
        could = self._repair_row(c, state, row, scratch)
        if could:
            reassign(c, state, row, back)
        return could

    def _repair_row(self, c: Columns, state: State, row: int, scratch: PricingScratch) -> bool:
        """Move one replica of a row, or else as many as needed; return success."""
        self._budget.work += WORK_PER_TRY * c.scale.shape[0] * c.home.shape[1]
        rows = np.array([row], np.int64)
        return bool(spread(c, state, row) or place_forced(c, state, rows, scratch))


def ruled_out(problem: Problem, placement: Placement) -> str:
    """Name the constraint that alone prevents a paying move; empty if nothing does.

    A clause for the plan's reasons. Only for the objective `variance`, where a single move
    can pay for itself: empty for `band`, and where no broker may take load.
    """
    if problem.band or not problem.may.alive.any():
        return ""
    c = find_columns(problem)
    at = leader_first(c, placement.replicas, placement.leader)
    words = {
        "budgets": "budgets rule out the moves that would pay",
        "limits": "limits of capacity or replicas rule out the moves that would pay",
        "both": "limits and budgets together rule out the moves that would pay",
    }
    for name, relaxed in _relaxed_columns(c):
        if single_move_pays(relaxed, new_state(relaxed, at), NOTHING):
            # A move that pays with all constraints was missed, not ruled out.
            return words.get(name, "")
    return ""


def _relaxed_columns(c: Columns) -> Iterator[tuple[str, Columns]]:
    """The columns as they are, without budgets, without limits, without both."""
    free = np.full_like(c.budgets, NO_BUDGET)
    most = np.full_like(c.most_replicas, NO_BUDGET)
    anything = {"limit": np.full_like(c.limit, np.inf), "most_replicas": most}
    yield "work", c
    yield "budgets", changed(c, budgets=free)
    yield "limits", changed(c, **anything)
    yield "both", changed(c, budgets=free, **anything)


@dataclass(slots=True, kw_only=True)
class _Ordered:
    """The rows on a broker over its limits, in an order that serves several changes."""

    rows: Ints
    first: int = 0
    """Rows before this one were tried in vain."""
    left: int = 0
    """Changes that the order still serves."""
    serves: int = 0
    """The same when it was made."""

    def order(self, c: Columns, state: State, m: Limits, b: int) -> None:
        """Put those rows first whose loss lowers the excess of broker b most; the cheapest first.

        One order serves all changes where only replicas are too many, which weigh the same.
        """
        leads = (state.at[self.rows, 0] == b)[:, None]
        load = np.where(leads, c.limit_lead[self.rows], c.limit_follow[self.rows])
        beyond = np.maximum(0.0, state.used[b] - m.cap[b])
        gone = (np.minimum(load, beyond) / m.cap[b]).sum(axis=1)
        self.rows = self.rows[np.lexsort((c.price[self.rows], -gone))]
        count = len(self.rows)
        self.left = self.serves = 1 + count // ROWS_PER_ORDER if beyond.any() else count
        self.first = 0


def _rows_by_broker(c: Columns, state: State, of: Bools) -> dict[int, _Ordered]:
    """The rows on each of some brokers, (B,), that may change, in ascending order."""
    movable = (c.free & c.led)[:, None] & (state.at >= 0)
    row, slot = np.nonzero(movable & of[state.at])
    broker = state.at[row, slot]
    order = np.argsort(broker, kind="stable")
    ends = np.searchsorted(broker[order], np.arange(len(of) + 1))
    brokers = np.flatnonzero(of).tolist()
    return {b: _Ordered(rows=row[order[ends[b] : ends[b + 1]]]) for b in brokers}


def _with_work(limits: SolveLimits, work: float) -> SolveLimits:
    return limits.model_copy(update={"work": work})


def _order(c: Columns, rows: Ints) -> Ints:
    """Largest first, as space is short; by bytes where a budget is."""
    if (c.budgets == NO_BUDGET).all():
        return largest_first(c, rows)
    return rows[np.argsort(c.bytes_[rows], kind="stable")]


def _displacing(problem: Problem, rows: Bools | Ints) -> Problem:
    """The problem in which the replicas of these rows may not all stay."""
    return replace(problem, may=problem.may.displacing(rows))
