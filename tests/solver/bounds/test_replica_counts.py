"""The bound by numbers of replicas, against every placement and beside prices."""

from random import Random

import pytest

from model.goals.goals import SolveLimits
from solver.bounds.replica_counts import METHOD, prove_by_replica_counts
from solver.problem.problem import compile_problem
from solver.search.observer import SolveObserver
from solver.search.search import Search
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, least

LIMITS = SolveLimits(work=5.0)


@pytest.mark.parametrize("seed", range(60))
def test_no_placement_is_below_the_bound(seed: int) -> None:
    random = Random(seed)
    size, rf = random.choice([(2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (3, 3)])
    spread = random.choice([0.0, 0.05, 0.5])
    rows = [
        Row(
            replicas=tuple(random.sample(range(size), rf)),
            load=(1.0 + spread * random.random(), random.choice([1.0, 1.0 + spread, 0.0])),
        )
        for _ in range(random.randint(1, 5 if rf == 1 else 3))
    ]
    snapshot = cluster([broker(n) for n in range(size)], rows)
    wanted = goals(random.choice([1e-9, 0.05, None]))
    search = Search(
        problem=compile_problem(snapshot, wanted), limits=LIMITS, observer=SolveObserver()
    )
    prove_by_replica_counts(search)
    best = least(snapshot, wanted)
    assert best is not None
    assert search.bound <= best + 1e-9


@pytest.mark.search
@pytest.mark.parametrize(
    ("spread", "most"), [(0.0, 0.25), pytest.param(0.03, 0.35, marks=pytest.mark.slow)]
)
def test_few_alike_partitions_with_two_replicas(spread: float, most: float) -> None:
    """Prices alone left a gap of 70 to 85 %."""
    random = Random(1)
    rows = [
        Row(replicas=tuple(random.sample(range(12), 2)), load=(load, load))
        for load in (1.0 + spread * random.random() for _ in range(20))
    ]
    plan = solve(cluster([broker(n) for n in range(12)], rows), goals(), LIMITS).best
    assert plan is not None
    assert plan.bound_method == METHOD
    assert plan.objective - plan.bound <= most * plan.objective
