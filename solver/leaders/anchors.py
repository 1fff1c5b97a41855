"""Choose which row each broker must lead, so that every broker gets its minimum of leaders.

A row that is anchored may be led by one broker only, a rule that every search knows from explicit
placements. The rows are chosen by a minimum cost flow: those that the broker leads already in a
good placement, then those that it holds, then others. Small rows first, so that the large ones
stay free to balance the load.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from ortools.graph.python import min_cost_flow

from model.snapshot.snapshot import Bools, Ints
from model.units import count_text, listed
from solver.problem.eligibility import Eligibility
from solver.problem.leader_minimums import LeaderMinimum
from solver.problem.placement import Placement
from solver.problem.problem import Problem

LEADS: Final = 0
HOLDS: Final = 1_000_000
"""Cost of a change of leader among the replicas; row ranks are below it."""
MOVES: Final = 100_000_000
"""Cost of a new replica: more than any number of leader changes saves."""

WORK_PER_ROW: Final = 2e-5
"""Work units for finding the brokers that may lead a row; measured."""

WORK_PER_ARC: Final = 2e-6
"""Work units per row and broker that may lead it."""

MOST_NAMED: Final = 5
"""Brokers named in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchors:
    """The broker that must lead each of some rows, or why there is no such choice."""

    leader: dict[int, int]
    """Position of a broker, by row."""
    lacking: tuple[str, ...] = ()
    """A sentence for each topic whose minimum no placement reaches, which is proved."""
    work: float = 0.0


def find_anchors(problem: Problem, minimums: tuple[LeaderMinimum, ...], near: Placement) -> Anchors:
    """Choose as many rows per broker as each minimum asks for, at the least change from `near`.

    Only rules of single rows are considered: whether a row may move, and which brokers may hold
    and lead it. So a choice may break limits, budgets or racks together, but where there is none,
    no allowed placement reaches the minimum.
    """
    leader: dict[int, int] = {}
    lacking: list[str] = []
    work = 0.0
    for minimum in minimums:
        flow = _Flow(problem, minimum, near)
        work += WORK_PER_ROW * len(minimum.rows) + WORK_PER_ARC * flow.arcs
        chosen, short = flow.solve()
        leader |= chosen
        if short:
            lacking.append(_lacking_text(problem, minimum, flow.may, short))
    return Anchors(leader=leader, lacking=tuple(lacking), work=work)


class _Flow:
    """Rows of one topic flow to the brokers that must lead them."""

    def __init__(self, problem: Problem, minimum: LeaderMinimum, near: Placement) -> None:
        self._minimum = minimum
        self.may = np.array([_may_lead(problem, row) for row in minimum.rows.tolist()], np.bool_)
        self.may = self.may[:, list(minimum.brokers)]
        self._row, self._broker = np.nonzero(self.may)
        self.arcs = len(self._row)
        self._cost = self._costs(problem, near)

    def _costs(self, problem: Problem, near: Placement) -> Ints:
        rows = self._minimum.rows[self._row]
        brokers = np.array(self._minimum.brokers)[self._broker]
        led = near.leader[rows] == brokers
        held = (near.replicas[rows] == brokers[:, None]).any(axis=1)
        at_home = (problem.replicas[rows] == brokers[:, None]).any(axis=1)
        kind = np.where(led, LEADS, np.where(held, HOLDS, np.where(at_home, 2 * HOLDS, MOVES)))
        weight = problem.lead[self._minimum.rows].sum(axis=1) if problem.lead.shape[1] else None
        rank = np.zeros(len(self._minimum.rows), np.int64)
        order = np.arange(len(rank)) if weight is None else np.argsort(weight, kind="stable")
        rank[order] = np.arange(len(rank)) * (HOLDS - 1) // max(1, len(rank))
        cost: Ints = kind + rank[self._row]
        return cost

    def solve(self) -> tuple[dict[int, int], dict[int, int]]:
        """The broker of each chosen row, and by broker how many leaders are missing."""
        rows, brokers = len(self._minimum.rows), len(self._minimum.brokers)
        solver = min_cost_flow.SimpleMinCostFlow()
        source, sink = rows + brokers, rows + brokers + 1
        solver.add_arcs_with_capacity_and_unit_cost(
            np.full(rows, source),
            np.arange(rows),
            np.ones(rows, np.int64),
            np.zeros(rows, np.int64),
        )
        solver.add_arcs_with_capacity_and_unit_cost(
            self._row, rows + self._broker, np.ones(self.arcs, np.int64), self._cost
        )
        ends = solver.add_arcs_with_capacity_and_unit_cost(
            rows + np.arange(brokers),
            np.full(brokers, sink),
            np.full(brokers, self._minimum.leaders),
            np.zeros(brokers, np.int64),
        )
        wanted = brokers * self._minimum.leaders
        solver.set_node_supply(source, wanted)
        solver.set_node_supply(sink, -wanted)
        if solver.solve_max_flow_with_min_cost() != solver.OPTIMAL:
            raise AssertionError("a flow without lower bounds has a solution")
        taken = np.flatnonzero(solver.flows(np.arange(rows, rows + self.arcs)) > 0)
        chosen = {
            int(self._minimum.rows[self._row[arc]]): self._minimum.brokers[self._broker[arc]]
            for arc in taken.tolist()
        }
        got = solver.flows(ends).tolist()
        short = {
            b: self._minimum.leaders - n
            for b, n in zip(self._minimum.brokers, got, strict=True)
            if n < self._minimum.leaders
        }
        return chosen, short


def _may_lead(problem: Problem, row: int) -> Bools:
    """(B,) brokers that may lead a row after the plan; its leader alone where it may not move."""
    at = int(problem.leader[row])
    if problem.may.fixed_reason[row]:
        may = np.zeros(len(problem.brokers), np.bool_)
        if at >= 0:
            may[at] = True
        return may
    return problem.may.may_lead(row, problem.replicas[row], at)


def _lacking_text(
    problem: Problem, minimum: LeaderMinimum, may: Bools, short: dict[int, int]
) -> str:
    """Why a topic cannot have its minimum: too few partitions, or too few that may be led."""
    each, brokers = minimum.leaders, len(minimum.brokers)
    needed, there = each * brokers, len(minimum.rows)
    wants = f"min_leaders wants {count_text(each, 'leader')} of {minimum.topic} on each of "
    wants += count_text(brokers, "broker")
    if there < needed:
        return (
            f"{wants}, {needed} in all, but it has {count_text(there, 'partition')}; add "
            "partitions, or lower min_leaders for it"
        )
    named = listed([problem.brokers[b] for b in short], MOST_NAMED)
    able = int(may[:, [minimum.brokers.index(b) for b in short]].any(axis=1).sum())
    which = f"broker {named} may" if len(short) == 1 else f"brokers {named} may together"
    return (
        f"{wants}, but {which} lead {count_text(able, 'partition')} of it; pins, placements, "
        "exclusions and cooldowns keep the others elsewhere. Allow more, or lower min_leaders"
    )


def anchored(problem: Problem, leader: dict[int, int]) -> Problem:
    """The problem in which each of these rows may only be led by one broker.

    Costs and all other rules stay, so that F means the same.
    """
    rows = np.array(sorted(leader), np.int64)
    brokers = np.array([leader[row] for row in rows.tolist()], np.int64)
    free = problem.may.fixed_reason[rows] == 0
    return replace(problem, may=_with_leaders(problem, rows[free], brokers[free]))


def _with_leaders(problem: Problem, rows: Ints, brokers: Ints) -> Eligibility:
    may, spreading = problem.may, problem.may.spreading
    keys = spreading.group[rows] * len(problem.brokers) + brokers
    kinds, kind = np.unique(keys, return_inverse=True)
    old, only = kinds // len(problem.brokers), kinds % len(problem.brokers)
    lead = spreading.lead[old] & (np.arange(len(problem.brokers)) == only[:, None])
    group = spreading.group.copy()
    group[rows] = len(spreading.allow) + kind
    forced = may.forced.copy()
    forced[rows] = np.maximum(forced[rows], problem.leader[rows] != brokers)
    wider = replace(
        spreading,
        group=group,
        lead=np.vstack([spreading.lead, lead]),
        allow=np.concatenate([spreading.allow, spreading.allow[old]]),
        mode=np.concatenate([spreading.mode, spreading.mode[old]]),
        distinct=np.concatenate([spreading.distinct, spreading.distinct[old]]),
        required=np.concatenate([spreading.required, spreading.required[old]]),
        observers=np.concatenate([spreading.observers, spreading.observers[old]]),
        usable=np.concatenate([spreading.usable, spreading.usable[old]]),
    )
    return replace(may, spreading=wider, forced=forced)
