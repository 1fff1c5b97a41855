"""The best plan of several seeds: the search is random, and luck differs."""

from dataclasses import replace

from model.goals.goals import MOST_SEED, Goals, SolveLimits
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.studies.solve_tasks import SolveAll, SolveTask, solve_in_turn


def best_of_seeds(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver,
    seeds: int = 1,
    solve_all: SolveAll | None = None,
    earlier: Plan | None = None,
) -> Result:
    """Solve with `seeds` seeds from `limits.seed` on; return the result of least F.

    Each solve has the whole search budget of `limits`. Of equal results the lowest seed's is
    returned, whose plan names the seed. The work is that of all solves. After a proof that no
    plan is better, or that there is none, further results are not waited for. Without
    `solve_all`, the solves run in turn in this process. All stay near `earlier` if there is one.
    """
    tasks = [
        SolveTask(
            goals=goals,
            limits=limits.model_copy(update={"seed": (limits.seed + more) % (MOST_SEED + 1)}),
            earlier=earlier,
        )
        for more in range(seeds)
    ]
    results: list[Result] = []
    for result in (solve_all or solve_in_turn)(snapshot, tasks, observer):
        results.append(result)
        if not result.exhausted or observer.stops():
            break
    if not results:
        return Result(
            status=PlanStatus.STOPPED,
            best=None,
            objective=None,
            bound=None,
            work=0.0,
            seconds=0.0,
            reasons=("stopped before a plan was found",),
        )
    best = min(results, key=lambda r: float("inf") if r.objective is None else r.objective)
    work, seconds = sum(r.work for r in results), sum(r.seconds for r in results)
    return replace(best, work=work, seconds=seconds)
