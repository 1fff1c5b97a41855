"""A start for the exact search: forced moves first, then the best single steps.

A step takes one replica, or the leadership of one row, from one broker to another.
Planning notes: greedy ends near 50 % over the optimum at 10 brokers x 500 rows, so
this is a start and a last resort, not an answer.
"""

from dataclasses import dataclass

import numpy as np

from model.snapshot import Bools, Floats, Ints
from solver.placement import NOTHING, Placement, row_loads
from solver.problem import CAPACITY_SLACK, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    row: int
    source: int
    target: int
    change: float
    """Of F."""
    leadership: bool
    """Only the leader changes, no replica moves."""


class _State:
    """A placement under change, with its sums."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.on = problem.home.copy()
        self.leader = problem.leader.copy()
        self.loads = problem.loads_before.copy()
        self.count = problem.home.sum(axis=0)
        self.racks = _rack_counts(problem)

    def apply(self, step: _Step) -> None:
        row, source, target = step.row, step.source, step.target
        self.loads -= row_loads(self.problem, self.placement(), row)
        if not step.leadership:
            self.on[row, source], self.on[row, target] = False, True
            self.count[source] -= 1
            self.count[target] += 1
            self.racks[row, self.problem.racks[source]] -= 1
            self.racks[row, self.problem.racks[target]] += 1
        if self.leader[row] == source:
            self.leader[row] = target
        self.loads += row_loads(self.problem, self.placement(), row)

    def placement(self) -> Placement:
        return Placement(on=self.on, leader=self.leader)


def greedy_start(problem: Problem, most_steps: int = 5_000) -> Placement | None:
    """Evacuate, then improve until no single step does.

    Returns
    -------
    None where evacuating one replica after the other found no room; another order
    may still find some.
    """
    state = _State(problem)
    if not _evacuate(state):
        return None
    for _ in range(most_steps):
        step = _best_improvement(state)
        if step is None:
            break
        state.apply(step)
    return state.placement()


def _evacuate(state: _State) -> bool:
    problem = state.problem
    for source in np.flatnonzero(problem.may.leaving).tolist():
        rows = np.flatnonzero(state.on[:, source] & (problem.leader >= 0))
        size = (problem.lead[rows] / _positive(problem.lead.sum(axis=0))).sum(axis=1)
        for row in rows[np.argsort(-size, kind="stable")].tolist():
            # Handing over the leadership alone would leave the replica behind.
            step = _Steps(state, source, np.array([row]), leadership=False).best()
            if step is None:
                return False
            state.apply(step)
    return True


def _positive(values: Floats) -> Floats:
    return np.where(values > 0, values, 1.0)


def _best_improvement(state: _State) -> _Step | None:
    """The best step off the first broker, most uneven first, that has a good one."""
    problem = state.problem
    free = np.ones(len(state.on), np.bool_)
    free[list(problem.may.fixed)] = False
    uneven = (_relative(state) ** 2 @ problem.weight).tolist()
    for source in sorted(range(len(uneven)), key=lambda b: (-uneven[b], b)):
        rows = np.flatnonzero(state.on[:, source] & free)
        step = _best_step(state, source, rows)
        if step is not None and step.change < -NOTHING:
            return step
    return None


def _relative(state: _State) -> Floats:
    problem = state.problem
    relative: Floats = state.loads[:, problem.column] * problem.slope - 1.0
    return np.where(problem.may.holding[:, None], relative, 0.0)


def _best_step(state: _State, source: int, rows: Ints) -> _Step | None:
    leading = rows[state.leader[rows] == source]
    found = (
        _Steps(state, source, rows, leadership=False).best(),
        _Steps(state, source, leading, leadership=True).best(),
    )
    steps = [step for step in found if step is not None]
    return min(steps, key=lambda s: s.change, default=None)


class _Steps:
    """All steps of one kind off one broker, as (rows, B) matrices."""

    def __init__(
        self, state: _State, source: int, rows: Ints, *, leadership: bool
    ) -> None:
        self.state, self.problem = state, state.problem
        self.source, self.rows = source, rows
        self.leadership = leadership
        self.leads: Bools = state.leader[rows] == source
        self.load = self._load()

    def best(self) -> _Step | None:
        """The allowed step with the least change of F."""
        change = np.where(self._allowed(), self._change(), np.inf)
        if not change.size or not np.isfinite(change.min()):
            return None
        at, target = np.unravel_index(int(change.argmin()), change.shape)
        return _Step(
            row=int(self.rows[at]),
            source=self.source,
            target=int(target),
            change=float(change[at, target]),
            leadership=self.leadership,
        )

    def _load(self) -> Floats:
        """(rows, R) load that changes its broker."""
        lead, follow = self.problem.lead[self.rows], self.problem.follow[self.rows]
        if self.leadership:
            return lead - follow
        return np.where(self.leads[:, None], lead, follow)

    def _change(self) -> Floats:
        return self._balance() + self._prices()

    def _balance(self) -> Floats:
        problem, relative = self.problem, _relative(self.state)
        moved = self.load[:, problem.column]
        less = relative[self.source] - moved * problem.slope[self.source]
        off: Floats = (less**2 - relative[self.source] ** 2) @ problem.weight
        off *= problem.may.holding[self.source]
        more = relative + moved[:, None, :] * problem.slope
        on: Floats = (more**2 - relative**2) @ problem.weight
        return off[:, None] + on

    def _prices(self) -> Floats:
        problem, prices = self.problem, self.problem.prices
        leader = np.arange(len(problem.brokers)) != problem.leader[self.rows, None]
        paid = leader * 1.0 - leader[:, [self.source]]
        price: Floats = prices.leader * paid * self.leads[:, None]
        if not self.leadership:
            new = ~problem.home[self.rows]
            free = new[:, self.source] | problem.may.leaving[self.source]
            price += prices.replica[self.rows, None] * (new * 1.0 - free[:, None])
        return price

    def _allowed(self) -> Bools:
        state, problem = self.state, self.problem
        on, loads = state.on[self.rows], state.loads + self.load[:, None, :]
        fits: Bools = np.all(loads <= problem.allowed * (1 + CAPACITY_SLACK), axis=2)
        fits &= problem.may.lead[self.rows] | ~self.leads[:, None]
        if self.leadership:
            others: Bools = on & (np.arange(on.shape[1]) != self.source)
            return fits & others
        fits &= problem.may.hold[self.rows] & ~on
        fits &= state.count < problem.allowed_replicas
        return fits & self._spread()

    def _spread(self) -> Bools:
        """Whether replicas would lie in as many racks as possible.

        Not asked while another replica still has to leave.
        """
        state, problem = self.state, self.problem
        counts = state.racks[self.rows].copy()
        counts[:, problem.racks[self.source]] -= 1
        racks = (counts > 0).sum(axis=1)[:, None] + (counts[:, problem.racks] == 0)
        waiting: Bools = state.on[self.rows] & problem.may.leaving
        waiting[:, self.source] = False
        waits: Bools = np.any(waiting, axis=1)
        spread: Bools = racks >= problem.racks_wanted[self.rows, None]
        return spread | waits[:, None]


def _rack_counts(problem: Problem) -> Ints:
    """(n, racks) replicas of each row in each rack."""
    counts = np.zeros((len(problem.home), int(problem.racks.max(initial=0)) + 1))
    for b, rack in enumerate(problem.racks.tolist()):
        counts[:, rack] += problem.home[:, b]
    return counts.astype(np.int64)
