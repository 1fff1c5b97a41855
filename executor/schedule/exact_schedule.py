"""The shortest schedule of a few moves, proved by CP-SAT.

A copy has its resources to itself here: two copies that share one finish no sooner than
one after the other. So each move takes as long as it does alone, whenever it starts.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ortools.sat.python import cp_model

from executor.schedule.admission import brokers_of, bytes_per_replica
from executor.schedule.concurrency import Concurrency
from executor.schedule.task import CopyResource, MoveTask, ScheduleConstraints
from model.ids import BrokerId, PartitionId

_WORK: Final = 1.0
"""Deterministic time limit of CP-SAT, about seconds; the same on every machine."""
_SHARE: Final = 0.01
"""Limit as a share of the minimum duration: short runs need no proof."""
_UNITS: Final = 20_000
"""Time resolution: units in which all moves could run one after the other."""


def prove(
    tasks: Sequence[MoveTask],
    alone: Sequence[MoveTask],
    constraints: ScheduleConstraints,
    least_s: float,
) -> tuple[list[list[MoveTask]], float]:
    """Return candidate orders, and a lower bound in seconds for any order.

    `alone`: moves that run one at a time after the others. `least_s`: a lower bound already known.
    """
    alone_s = sum(task.alone_s(constraints.speed) for task in alone)
    constraints = replace(constraints, limits=Concurrency(constraints.limits).widest)
    separate, _ = _solve(tasks, constraints, least_s - alone_s, separate=True)
    shared, shared_s = _solve(tasks, constraints, least_s - alone_s, separate=False)
    orders = [
        sorted(tasks, key=lambda task: begins[task.move.id])
        for begins in (separate, shared)
        if begins
    ]
    return orders, max(least_s, alone_s + shared_s)


def _solve(
    tasks: Sequence[MoveTask], constraints: ScheduleConstraints, least_s: float, *, separate: bool
) -> tuple[dict[PartitionId, float], float]:
    """The start of each move in the shortest schedule, and a proved bound on its duration.

    Both in seconds; no starts if no schedule was found. `least_s`: a bound already known.
    Without `separate` copies, a resource carries any number of them at full speed: no
    such schedule can be executed, but its bound then holds for every way of sharing.
    Urgent moves take precedence only with `separate` copies.
    """
    model = _Model(tasks, constraints, least_s)
    if separate:
        model.separate_copies()
    model.limit_concurrency()
    model.limit_disk_usage()
    return model.solve(urgent=separate)


class _Model:
    """The CP-SAT model: moves as intervals; times are rounded down to keep bounds valid."""

    def __init__(
        self, tasks: Sequence[MoveTask], constraints: ScheduleConstraints, least_s: float
    ) -> None:
        self._tasks = tasks
        self._constraints = constraints
        self._least_s = least_s
        self._model = cp_model.CpModel()
        total_s = sum(task.alone_s(constraints.speed) for task in tasks)
        self._per_s = _UNITS / max(total_s, 1e-3)
        self._horizon = _UNITS + len(tasks)
        least = min(self._horizon, int(least_s * self._per_s))
        self._makespan = self._model.new_int_var(least, self._horizon, "makespan")
        self._begin: dict[PartitionId, cp_model.IntVar] = {}
        self._end: dict[PartitionId, cp_model.LinearExprT] = {}
        self._interval: dict[PartitionId, cp_model.IntervalVar] = {}
        for task in tasks:
            self._add(task)

    def separate_copies(self) -> None:
        """Allow one copy at a time on each resource."""
        busy: dict[CopyResource, list[cp_model.IntervalVar]] = defaultdict(list)
        speed = self._constraints.speed
        for task in self._tasks:
            for resource, begin_s, lasts_s in task.spans(speed):
                begin = self._begin[task.move.id] + int(begin_s * self._per_s)
                lasts = int(lasts_s * self._per_s)
                name = f"{resource[1].value}[{task.move.id},{resource[0]}]"
                interval = self._model.new_fixed_size_interval_var(begin, lasts, name)
                busy[resource].append(interval)
        for intervals in busy.values():
            self._model.add_no_overlap(intervals)

    def limit_concurrency(self) -> None:
        """Limit the moves in flight, in the cluster and per broker."""
        limits = self._constraints.limits
        at: dict[BrokerId, list[cp_model.IntervalVar]] = defaultdict(list)
        for task in self._tasks:
            for broker in brokers_of(task.move):
                at[broker].append(self._interval[task.move.id])
        self._cap(list(self._interval.values()), limits.moves_in_flight)
        for intervals in at.values():
            self._cap(intervals, limits.moves_per_broker)

    def limit_disk_usage(self) -> None:
        """Limit disk usage: a new replica counts from its start, an old one until its end."""
        for broker, free in self._constraints.free_bytes.items():
            changes = [*self._changes(broker)]
            if sum(size for _, size in changes if size > 0) <= free:
                continue
            times, sizes = zip(*changes, strict=True)
            gone = sum(size for size in sizes if size < 0)
            self._model.add_reservoir_constraint(times, sizes, gone, free)

    def solve(self, *, urgent: bool) -> tuple[dict[PartitionId, float], float]:
        """Solve with one thread and a fixed seed, so that results are reproducible."""
        objective: cp_model.LinearExprT = self._makespan
        last = self._urgent_end() if urgent else None
        if last is not None:
            objective = last * (self._horizon + 1) + self._makespan
        self._model.minimize(objective)
        solver = _new_solver(self._least_s)
        status = solver.solve(self._model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return {}, 0.0
        bound = 0.0 if last is not None else solver.best_objective_bound
        begins = {pid: solver.value(begin) / self._per_s for pid, begin in self._begin.items()}
        return begins, bound / self._per_s

    def _add(self, task: MoveTask) -> None:
        pid, name = task.move.id, str(task.move.id)
        lasts = int(task.alone_s(self._constraints.speed) * self._per_s)
        begin = self._model.new_int_var(0, self._horizon - lasts, f"begin[{name}]")
        self._begin[pid] = begin
        self._end[pid] = begin + lasts
        self._interval[pid] = self._model.new_fixed_size_interval_var(begin, lasts, f"move[{name}]")
        self._model.add(self._makespan >= begin + lasts)

    def _cap(self, intervals: Sequence[cp_model.IntervalVar], most: int) -> None:
        if len(intervals) > most:
            self._model.add_cumulative(intervals, [1] * len(intervals), most)

    def _changes(self, broker: BrokerId) -> Iterator[tuple[cp_model.LinearExprT, int]]:
        for task in self._tasks:
            size = bytes_per_replica(task.move)
            if size and broker in task.move.added:
                yield self._begin[task.move.id], size
            if size and broker in task.move.removed:
                yield self._end[task.move.id], -size

    def _urgent_end(self) -> cp_model.IntVar | None:
        if not self._constraints.urgent & self._end.keys():
            return None
        last = self._model.new_int_var(0, self._horizon, "urgent")
        for pid in sorted(self._constraints.urgent & self._end.keys()):
            self._model.add(last >= self._end[pid])
        return last


def _new_solver(least_s: float) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    # With this, presolve of OR-Tools 9.15 proves wrong optima (google/or-tools#5293).
    solver.parameters.presolve_inclusion_work_limit = 0
    solver.parameters.num_workers = 1
    # Otherwise Ctrl-C would kill the process at once afterwards.
    solver.parameters.catch_sigint_signal = False
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = min(_WORK, _SHARE * least_s)
    return solver
