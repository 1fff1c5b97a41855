"""The reason of each move: the broker it relieves and the one it fills."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from model.plan.remaining import load_text
from model.snapshot.snapshot import Floats
from solver.problem.co_location import RackMode
from solver.problem.placement import Placement, loads_of, row_shift
from solver.problem.problem import Problem
from solver.problem.remaining_violations import ROUNDING, held, sharing


@dataclass(frozen=True)
class Reasons:
    """Reasons of the changed rows of a plan.

    Brokers are judged by their loads before the plan.
    """

    problem: Problem
    placement: Placement

    def of(self, row: int, gain: float) -> str:
        """Explain in one clause why a row, given by position, changes.

        `gain` is by how much F would rise without the change, as in `gains`. Named is the first
        that applies: a replica that must go, a rule, a limit exceeded, or balance.
        """
        problem = self.problem
        must = problem.replicas[row][problem.may.must_go[row]]
        if len(must):
            broker = problem.snapshot.header.brokers[int(must[0])]
            if problem.may.leaving[must[0]]:
                return f"leaves broker {broker.id}, which is {broker.state}"
            if broker.id in problem.snapshot.lost_on(row):
                path = problem.snapshot.log_dirs(row)[broker.id]
                return f"leaves {path} of broker {broker.id}, which has failed"
            return f"leaves broker {broker.id}, where a pin or placement forbids it"
        if problem.may.forced[row]:
            return _forced(problem, row)
        return (
            self._minimum_words(row)
            or self._limit_words(row, within=False)
            or (self._limit_words(row, within=True) if gain <= 0 and self._repairs else "")
            or _balance(problem, self.placement, row)
        )

    def _minimum_words(self, row: int) -> str:
        """Names the broker whose minimum of leaders a row completes; empty if none.

        Only where the broker led too few before, and leads no more than the minimum afterwards.
        """
        leader = int(self.placement.leader[row])
        for minimum in self.problem.minimums:
            if leader == self.problem.leader[row] or leader not in minimum.brokers:
                continue
            rows = minimum.rows
            if row not in rows:
                continue
            before = int((self.problem.leader[rows] == leader).sum())
            after = int((self.placement.leader[rows] == leader).sum())
            if before < minimum.leaders >= after:
                broker = self.problem.brokers[leader]
                return f"gives broker {broker} its minimum of leaders of {minimum.topic}"
        return ""

    def _limit_words(self, row: int, *, within: bool) -> str:
        """Names the broker over a limit that a row relieves most; empty if none.

        Judged by the loads before the plan, or, if `within`, by those after it without this
        move. Relief is measured as a share of the limit.
        """
        brokers, shift = self._shift(row)
        loads = self._after[brokers] - shift if within else self._before[brokers]
        limit = self._limit[brokers]
        relief = np.where(loads > limit * (1 + ROUNDING), -shift / limit, 0.0)
        if relief.max(initial=0.0) <= 0:
            return ""
        at, d = divmod(int(np.argmax(relief)), relief.shape[1])
        key, text = "replicas", "{:,.0f}".format
        if d < len(self.problem.dimensions):
            key = self.problem.dimensions[d].key
            text = partial(load_text, key)
        broker, load = self.problem.brokers[brokers[at]], text(loads[at, d])
        its_limit = f"the limit is {text(limit[at, d])}"
        if within:
            words = f"keeps broker {broker} within its limit of {key}"
            return f"{words} ({load} without this move, {its_limit})"
        return f"relieves broker {broker}, which is over its limit of {key} ({load}, {its_limit})"

    def _shift(self, row: int) -> tuple[list[int], Floats]:
        """Brokers that a row touches, and their (brokers, D + 1) change of loads and replicas."""
        brokers, shift = row_shift(self.problem, self.placement, row)
        home, holders = self.problem.replicas[row], self.placement.holders(row)
        count = [(b in holders) - int(b in home) for b in brokers]
        return brokers, np.column_stack([shift, count])

    @cached_property
    def _before(self) -> Floats:
        """(B, D + 1) loads and replicas before the plan."""
        problem = self.problem
        return np.column_stack([problem.loads_before, held(problem, problem.replicas)])

    @cached_property
    def _after(self) -> Floats:
        """(B, D + 1) loads and replicas after the plan."""
        problem, placement = self.problem, self.placement
        return np.column_stack([loads_of(problem, placement), held(problem, placement.replicas)])

    @cached_property
    def _limit(self) -> Floats:
        """(B, D + 1) limits of loads and replicas."""
        problem = self.problem
        most = problem.goals.replicas_per_broker
        return np.column_stack([problem.limit, np.where(problem.may.holding, most, np.inf)])

    @cached_property
    def _repairs(self) -> bool:
        """Whether the plan reduces an excess or spreads replicas that share racks."""
        over = self._before > self._limit * (1 + ROUNDING)
        if (self._after < self._before)[over].any():
            return True
        problem = self.problem
        before = sharing(problem, problem.replicas)
        return bool((before & ~sharing(problem, self.placement.replicas)).any())


def _forced(problem: Problem, row: int) -> str:
    """Why a row that may keep any one of its replicas still has to change."""
    spreading = problem.may.spreading
    if problem.may.demoted[row]:
        leader = problem.brokers[int(problem.leader[row])]
        return f"relieves broker {leader}, which is {problem.snapshot.broker[leader].state}"
    if spreading.mode[spreading.group[row]] == RackMode.EXACT:
        return "goes where its placement wants it"
    home = problem.replicas[row]
    names = sorted({str(spreading.racks[spreading.rack[b]]) for b in home[home >= 0]})
    noun = "rack" if len(names) == 1 else "racks"
    return f"repairs racks: {noun} {', '.join(names)} held all its replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class MainEffect:
    """The broker a changed row relieves most, the one it fills, and in which dimension."""

    source: int
    """Position of the broker relieved."""
    target: int
    """Position of the broker filled."""
    goal: int
    """The balanced dimension that gains most, 0 to K - 1."""


def main_effect(problem: Problem, placement: Placement, row: int) -> MainEffect | None:
    """Find which broker a row relieves and which it fills; None if no balanced load changes.

    The dimension is the one whose weighted squares improve most by the deviations before the plan;
    in it, of the brokers that lose load the fullest, and of those that gain the emptiest. Ties go
    to the lower position.
    """
    brokers, moved = row_shift(problem, placement, row)
    shift = moved[:, problem.column] * problem.slope[brokers]
    if not np.any(shift):
        return None
    where = problem.deviations_before[brokers]
    gained = -(shift * where * problem.weight).sum(axis=0)
    k = int(np.argmax(np.where(np.any(shift, axis=0), gained, -np.inf)))
    return MainEffect(
        source=brokers[int(np.argmax(np.where(shift[:, k] < 0, where[:, k], -np.inf)))],
        target=brokers[int(np.argmin(np.where(shift[:, k] > 0, where[:, k], np.inf)))],
        goal=k,
    )


def _balance(problem: Problem, placement: Placement, row: int) -> str:
    found = main_effect(problem, placement, row)
    if found is None and problem.topic_share:
        return f"spreads topic {problem.snapshot.id(row).topic}"
    if found is None:
        return "lets other moves pay"
    where = problem.deviations_before
    over, under = where[found.source, found.goal], where[found.target, found.goal]
    return (
        f"{'relieves' if over > 0 else 'takes from'} "
        f"broker {problem.brokers[found.source]} "
        f"({problem.keys[found.goal]} {deviation_text(over)}); "
        f"broker {problem.brokers[found.target]} is {deviation_text(under)}"
    )


def deviation_text(deviation: float) -> str:
    """Format a deviation, a share of the mean load, in whole percent.

    `200 % over its level` for 2.0, `10 % under its level`; `at its level` if it rounds to 0 %.
    """
    percent = round(100 * abs(deviation))
    if percent == 0:
        return "at its level"
    return f"{percent} % {'over' if deviation > 0 else 'under'} its level"
