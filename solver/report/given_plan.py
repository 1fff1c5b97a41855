"""A sealed plan for a placement that is given, instead of searched."""

from collections.abc import Mapping

from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.plan import Move, Plan, PlanStatus
from model.snapshot.snapshot import Snapshot
from solver.log_dirs.balance import DirectoryAssignment
from solver.problem.placement import Placement
from solver.problem.problem import compile_problem
from solver.report.build_plan import build_plan
from solver.search.observer import SolveObserver
from solver.search.search import Search


def given_plan(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    places: Mapping[int, tuple[tuple[BrokerId, ...], BrokerId]],
    reason: str,
    dirs: Mapping[int, Mapping[BrokerId, str]] | None = None,
) -> Plan:
    """Build the plan after which rows have these replicas, in this order, and leaders.

    Whether the rules allow that is not checked, and no bound is proved. `reason`: of each move.
    `dirs`: log directories by row and broker; replicas of these rows without one keep theirs, or
    are left to the broker. Changing them is free, so that goals must empty the present ones.
    Raises KeyError for a broker that the snapshot does not have, and for a row that may not stay as
    it is, is not given and not deferred by the goals.
    """
    problem = compile_problem(snapshot, goals)
    replicas, leader = problem.replicas.copy(), problem.leader.copy()
    position = {broker: b for b, broker in enumerate(problem.brokers)}
    for row, (held, leads) in places.items():
        replicas[row] = -1
        replicas[row, : len(held)] = [position[b] for b in held]
        leader[row] = position[leads]
    placement = Placement(replicas=replicas, leader=leader)
    search = Search(problem=problem, limits=limits, observer=SolveObserver())
    search.prove(0.0, "no search")
    found = None if dirs is None else _assigned(dirs)
    plan = build_plan(search, placement, PlanStatus.IMPROVED, found)
    order = {snapshot.id(row): (row, held) for row, (held, _) in places.items()}

    def placed(move: Move) -> Move:
        row, held = order[move.id]
        update: dict[str, object] = {"replicas_after": held, "reason": reason}
        if found is not None:
            update["log_dirs_after"] = found.log_dirs(row, held)
        return move.model_copy(update=update)

    return plan.model_copy(update={"moves": tuple(map(placed, plan.moves))}).seal()


def _assigned(dirs: Mapping[int, Mapping[BrokerId, str]]) -> DirectoryAssignment:
    chosen = {row: dict(paths) for row, paths in sorted(dirs.items())}
    return DirectoryAssignment(chosen=chosen, gain=dict.fromkeys(chosen, 0.0), reason={})
