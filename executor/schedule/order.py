"""The order in which a run executes its moves.

Leader changes, which copy nothing, are a first stage; only moves off dead or draining brokers
do not wait for it. These come first among the others, and those of internal topics last. The
rest is ordered by duration, and by early gains where these cost almost no time.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from executor.schedule.admission import is_leader_change
from executor.schedule.concurrency import Concurrency
from executor.schedule.list_scheduling import list_schedule
from executor.schedule.makespan_bound import least_s
from executor.schedule.simulate import Timeline, simulated
from executor.schedule.task import MoveTask, ScheduleConstraints
from model.ids import PartitionId
from model.plan.plan import Plan
from model.snapshot.snapshot import LEAVING

_SLACKS: Final = (0.1, 0.2, 1.0)
"""Values of `slack` tried with `list_schedule`."""
_CLOSE: Final = 0.02
"""Share of the duration that may be given up for early gains."""
_PROVED: Final = 0.005
"""Relative gap to the lower bound within which an order counts as optimal."""
_MANY: Final = 1000
"""Number of moves beyond which the plan's order is kept."""
_FEW: Final = 40
"""Number of moves up to which CP-SAT is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """An order and its simulated timeline."""

    order: tuple[MoveTask, ...]
    timeline: Timeline
    least_s: float = 0.0
    """Proved lower bound in seconds at this pace."""

    def ends_s(self, ids: Collection[PartitionId]) -> float:
        """Seconds until the last of these moves ends."""
        spans = self.timeline.spans
        return max((spans[pid][1] for pid in ids if pid in spans), default=0.0)

    @property
    def waits_s(self) -> float:
        """Mean seconds until a move ends, weighted by gain."""
        spans = self.timeline.spans
        done = [w.move for w in self.order if w.move.id in spans and w.move.gain > 0]
        total = sum(move.gain for move in done)
        return sum(m.gain * spans[m.id][1] for m in done) / total if total else 0.0


def urgent_of(plan: Plan) -> frozenset[PartitionId]:
    """Partitions that leave dead or draining brokers."""
    leaving = {b.id for b in plan.brokers if b.state in LEAVING}
    return frozenset(m.id for m in plan.moves if leaving.intersection(m.removed))


def schedule(tasks: Sequence[MoveTask], constraints: ScheduleConstraints) -> Schedule:
    """Return the best order found, with a proved lower bound on the duration."""
    leads = [task for task in tasks if is_leader_change(task.move)]
    concurrent = [t for t in tasks if not (t.is_alone or is_leader_change(t.move))]
    alone = [task for task in tasks if task.is_alone]
    stage_s = _stage_s(leads, constraints)
    if len(tasks) > _MANY or not any(task.copies for task in concurrent):
        orders = [sorted(concurrent, key=lambda w: w.move.id not in constraints.urgent)]
    else:
        orders = [list_schedule(concurrent, constraints, slack=s) for s in _SLACKS]
    tried = [_run([*leads, *order, *alone], constraints) for order in orders]
    best = _best(tried, constraints)
    unfit = {move.id for move, _ in best.timeline.unfit}
    held = [task for task in (*concurrent, *alone) if task.move.id not in unfit]
    least = least_s(held, constraints.limits, constraints.speed)
    is_proved = best.timeline.seconds <= _staged_s(stage_s, least, constraints) * (1 + _PROVED)
    is_small = len(concurrent) <= _FEW and any(task.copies for task in concurrent)
    if is_small and not (unfit or is_proved):
        # Importing CP-SAT takes a third of a second.
        from executor.schedule.exact_schedule import prove

        found, least = prove(concurrent, alone, constraints, least)
        tried += [_run([*leads, *order, *alone], constraints) for order in found]
        best = _best(tried, constraints)
    least = _staged_s(stage_s, least, constraints)
    return Schedule(order=best.order, timeline=best.timeline, least_s=least)


def _stage_s(leads: Sequence[MoveTask], constraints: ScheduleConstraints) -> float:
    """Seconds of the stage of leader changes, which all take equally long."""
    rounds = ceil(len(leads) / constraints.limits.leader_changes_in_flight)
    return rounds * constraints.speed.seconds


def _staged_s(stage_s: float, least: float, constraints: ScheduleConstraints) -> float:
    """A lower bound on both stages, from one for each; urgent moves run beside the first."""
    return max(stage_s, least) if constraints.urgent else stage_s + least


def quick_schedule(tasks: Sequence[MoveTask], constraints: ScheduleConstraints) -> Schedule:
    """Return one good order of the moves; tries no others and proves no bound."""
    leads = [task for task in tasks if is_leader_change(task.move)]
    concurrent = [t for t in tasks if not (t.is_alone or is_leader_change(t.move))]
    alone = [task for task in tasks if task.is_alone]
    if len(tasks) <= _MANY:
        concurrent = list_schedule(concurrent, constraints, slack=_SLACKS[0])
    return _run([*leads, *concurrent, *alone], constraints)


def _run(order: Sequence[MoveTask], constraints: ScheduleConstraints) -> Schedule:
    concurrency = Concurrency(constraints.limits)
    timeline = simulated(
        order, constraints.speed, concurrency, constraints.free_bytes, urgent=constraints.urgent
    )
    return Schedule(order=tuple(order), timeline=timeline)


def _best(tried: Sequence[Schedule], constraints: ScheduleConstraints) -> Schedule:
    """The candidate with the fewest unfit moves, then the earliest urgent and last end."""
    fewest = min(len(s.timeline.unfit) for s in tried)
    left = [s for s in tried if len(s.timeline.unfit) == fewest]
    soon = min(s.ends_s(constraints.urgent) for s in left) * (1 + _CLOSE)
    left = [s for s in left if s.ends_s(constraints.urgent) <= soon]
    soon = min(s.timeline.seconds for s in left) * (1 + _CLOSE)
    left = [s for s in left if s.timeline.seconds <= soon]
    return min(left, key=lambda s: s.waits_s)
