"""The order in which a run takes its moves.

Those that leave a dead or draining broker go first, those of internal topics last.
Among the others time decides, and what is gained early where that costs next to none.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from executor.schedule.concurrency import Concurrency
from executor.schedule.list_scheduling import list_schedule
from executor.schedule.makespan_bound import least_s
from executor.schedule.simulate import Timeline, simulated
from executor.schedule.task import MoveTask, ScheduleConstraints
from model.ids import PartitionId
from model.plan.plan import Plan
from model.snapshot.snapshot import LEAVING

_SLACKS: Final = (0.1, 0.2, 1.0)
"""Shares of the least time that `idle_lanes_first` is tried with."""
_CLOSE: Final = 0.02
"""Share of a run's time that is given up for what is gained early."""
_PROVED: Final = 0.005
"""Share of the least time within which an order counts as proved the best."""
_MANY: Final = 1000
"""Moves from which on they are taken as the plan has them."""
_FEW: Final = 40
"""Moves up to which CP-SAT is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """An order, and how it goes on paper."""

    order: tuple[MoveTask, ...]
    timeline: Timeline
    least_s: float = 0.0
    """Proved: no order is quicker at this pace."""

    def ends_s(self, ids: Collection[PartitionId]) -> float:
        """When the last of these moves has ended."""
        spans = self.timeline.spans
        return max((spans[pid][1] for pid in ids if pid in spans), default=0.0)

    @property
    def waits_s(self) -> float:
        """Seconds until a move has ended, in the mean by what moves gain."""
        spans = self.timeline.spans
        done = [w.move for w in self.order if w.move.id in spans and w.move.gain > 0]
        total = sum(move.gain for move in done)
        return sum(m.gain * spans[m.id][1] for m in done) / total if total else 0.0


def urgent_of(plan: Plan) -> frozenset[PartitionId]:
    """The moves of a plan that cannot wait."""
    leaving = {b.id for b in plan.brokers if b.state in LEAVING}
    return frozenset(m.id for m in plan.moves if leaving.intersection(m.removed))


def schedule(tasks: Sequence[MoveTask], constraints: ScheduleConstraints) -> Schedule:
    """The best order found, and the least time that is proved for any."""
    concurrent = [task for task in tasks if not task.is_alone]
    alone = [task for task in tasks if task.is_alone]
    if len(tasks) > _MANY or not any(task.copies for task in concurrent):
        orders = [sorted(concurrent, key=lambda w: w.move.id not in constraints.urgent)]
    else:
        orders = [list_schedule(concurrent, constraints, slack=s) for s in _SLACKS]
    tried = [_run([*order, *alone], constraints) for order in orders]
    best = _best(tried, constraints)
    unfit = {move.id for move, _ in best.timeline.unfit}
    held = [task for task in best.order if task.move.id not in unfit]
    least = least_s(held, constraints.limits, constraints.speed)
    is_proved = best.timeline.seconds <= least * (1 + _PROVED)
    is_small = len(concurrent) <= _FEW and any(task.copies for task in concurrent)
    if is_small and not (unfit or is_proved):
        # Importing CP-SAT takes a third of a second.
        from executor.schedule.exact_schedule import prove

        found, least = prove(concurrent, alone, constraints, least)
        tried += [_run([*order, *alone], constraints) for order in found]
        best = _best(tried, constraints)
    return Schedule(order=best.order, timeline=best.timeline, least_s=least)


def _run(order: Sequence[MoveTask], constraints: ScheduleConstraints) -> Schedule:
    concurrency = Concurrency(constraints.limits)
    timeline = simulated(order, constraints.speed, concurrency, constraints.free_bytes)
    return Schedule(order=tuple(order), timeline=timeline)


def _best(tried: Sequence[Schedule], constraints: ScheduleConstraints) -> Schedule:
    """The one that leaves least out, ends what is urgent and then all soonest."""
    fewest = min(len(s.timeline.unfit) for s in tried)
    left = [s for s in tried if len(s.timeline.unfit) == fewest]
    soon = min(s.ends_s(constraints.urgent) for s in left) * (1 + _CLOSE)
    left = [s for s in left if s.ends_s(constraints.urgent) <= soon]
    soon = min(s.timeline.seconds for s in left) * (1 + _CLOSE)
    left = [s for s in left if s.timeline.seconds <= soon]
    return min(left, key=lambda s: s.waits_s)
