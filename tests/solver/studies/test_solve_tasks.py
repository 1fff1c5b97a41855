"""Solves of a sweep: the same wherever they run."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace

from model.goals.goals import SolveLimits
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.best_seed import best_of_seeds
from solver.studies.solve_tasks import SolveTask, solve_in_turn, solve_pickled
from solver.studies.trace_frontier import trace_plans
from tests.support.solver.exact_oracle import Row, broker, cluster, goals

SMALL = SolveLimits(work=1.0)
FOUR = [broker(b) for b in range(4)]


def small() -> Snapshot:
    return cluster(FOUR, [Row(replicas=(b % 2,), load=(1.0 + b, 2.0)) for b in range(6)])


def elsewhere(
    shared: Snapshot, tasks: Sequence[SolveTask], _observer: SolveObserver
) -> Iterator[Result]:
    """Solve all tasks before the first result, from bytes and to bytes."""
    sent = pickle.dumps(shared)
    answers = [solve_pickled(sent, pickle.dumps(task)) for task in tasks]
    yield from (pickle.loads(answer) for answer in answers)  # noqa: S301 - our own


def test_a_frontier_is_the_same_wherever_it_is_solved() -> None:
    # The first search budget is exhausted before the last solve.
    for work in (0.002, 1.0):
        limits = SolveLimits(work=work)
        here, _ = trace_plans(small(), goals(), limits, SolveObserver())
        there, answers = trace_plans(small(), goals(), limits, SolveObserver(), elsewhere)
        assert there.model_dump_json() == here.model_dump_json()
        assert len(answers) == len(there.points)


def test_a_frontier_that_is_stopped_before_its_first_plan_states_so() -> None:
    brokers = [broker(0, state=BrokerState.DRAINING), *FOUR[1:]]

    def none(*_: object) -> Iterator[Result]:
        return iter(())

    must_move = cluster(brokers, [Row(replicas=(0,))])
    frontier, answers = trace_plans(must_move, goals(), SMALL, SolveObserver(), none)
    assert (answers, frontier.points) == ((), ())
    assert frontier.reasons == ("stopped before a plan was found",)


def given_results(*objectives: float | None, exhausted: bool = True) -> list[Result]:
    found = solve(small(), goals(), SMALL)
    return [replace(found, objective=o, exhausted=exhausted, work=1.0) for o in objectives]


def best(results: list[Result], seeds: int = 3) -> tuple[Result, list[SolveTask]]:
    """The best of given results, and the tasks that were solved for it."""
    asked: list[SolveTask] = []

    def given(_: Snapshot, tasks: Sequence[SolveTask], __: SolveObserver) -> Iterator[Result]:
        for task, result in zip(tasks, results, strict=True):
            asked.append(task)
            yield result

    limits = SolveLimits(work=1.0, seed=7)
    return best_of_seeds(small(), goals(), limits, SolveObserver(), seeds, given), asked


def test_the_plan_of_least_f_is_kept_and_the_lowest_seed_among_equals() -> None:
    results = given_results(3.0, 1.0, 1.0)
    found, asked = best(results)
    assert found.objective == 1.0
    assert found.best is results[1].best
    assert found.work == 3.0
    assert [task.limits.seed for task in asked] == [7, 8, 9]
    assert {task.limits.work for task in asked} == {1.0}


def test_a_seed_without_a_plan_is_worse_than_any_plan() -> None:
    assert best(given_results(None, 5.0, None))[0].objective == 5.0


def test_no_seed_follows_a_proof() -> None:
    results = given_results(1.0, 1.0, 1.0, exhausted=False)
    assert len(best(results)[1]) == 1


def test_a_stop_before_the_first_result_is_reported() -> None:
    def none(*_: object) -> Iterator[Result]:
        return iter(())

    found = best_of_seeds(small(), goals(), SMALL, SolveObserver(), 2, none)
    assert (found.status, found.best) == (PlanStatus.STOPPED, None)


def test_one_seed_gives_the_plan_of_a_solve() -> None:
    alone = solve(small(), goals(), SMALL).best
    assert best_of_seeds(small(), goals(), SMALL, SolveObserver()).best == alone
    tasks = [SolveTask(goals=goals(), limits=SMALL, snapshot=small())]
    other = cluster(FOUR, [Row(replicas=(0,))])
    (result,) = solve_in_turn(other, tasks, SolveObserver())
    assert result.best == alone
