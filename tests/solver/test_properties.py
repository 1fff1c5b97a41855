"""Whatever the cluster and the goals, the solver and the evaluator agree."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.evaluate import evaluate
from model.goals import Goals, SolveLimits
from model.plan import PlanStatus
from model.snapshot import BrokerState, Snapshot, StorageKind
from solver.greedy import greedy_start
from solver.placement import Placement, changed_rows, is_allowed
from solver.problem import compile_problem
from solver.solve import solve
from tests.solver.small import Row, broker, cluster, goals, least, moved

LIMITS = SolveLimits(work=1.0)
STATES = [
    BrokerState.ALIVE,
    BrokerState.ALIVE,
    BrokerState.ALIVE,
    BrokerState.DRAINING,
    BrokerState.DEAD,
    BrokerState.EXCLUDED,
]
LOADS = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0]), st.floats(0.001, 100), st.just(float("nan"))
)


@st.composite
def clusters(
    draw: st.DrawFn, most_brokers: int = 4, most_rows: int = 6, most_rf: int = 3
) -> Snapshot:
    """Small clusters with all that the rules speak of."""
    ids = range(1, draw(st.integers(1, most_brokers)) + 1)
    racks = draw(st.sampled_from([None, "a", "ab", "abc"]))
    capacity = draw(st.sampled_from([None, 50.0, 400.0]))
    brokers = [
        broker(
            i,
            racks and draw(st.sampled_from(racks)),
            draw(st.sampled_from(STATES)),
            capacity and capacity * draw(st.sampled_from([1.0, 1.0, 2.5])),
        )
        for i in ids
    ]
    rf = st.integers(1, min(most_rf, len(ids)))
    places = list(itertools.permutations(ids, draw(rf)))
    rows = [
        Row(
            replicas=(replicas := draw(st.sampled_from(places))),
            load=(draw(LOADS), draw(LOADS)),
            leader=draw(st.sampled_from([*replicas, *replicas, -1])),
            local_bytes=draw(st.integers(-1, 1000)),
        )
        for _ in range(draw(st.integers(0, most_rows)))
    ]
    ages = st.sampled_from([0.0, 599.0, 601.0, 3599.0, 3601.0, 1e6])
    recent = [
        moved(draw(st.integers(0, most_rows)), draw(st.sampled_from(ids)), draw(ages))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return cluster(
        brokers,
        rows,
        storage=draw(st.sampled_from(list(StorageKind))),
        internal=draw(st.sampled_from([False, False, False, True])),
        recent=recent,
    )


@st.composite
def wishes(draw: st.DrawFn) -> Goals:
    weight = st.sampled_from([0.0, 0.5, 1.0, 7.0])
    return goals(
        draw(st.one_of(st.none(), st.floats(1e-6, 3.0))),
        replicas_per_broker=draw(st.sampled_from([2, 10_000])),
        excluded_topics=draw(st.sampled_from([(), (), ("ord.*",)])),
        balance=[
            {"resource": "net_in", "weight": draw(weight), "floor": 0.0},
            {"resource": "net_out", "weight": draw(weight), "floor": 1.0},
        ],
    )


@settings(max_examples=100, deadline=None)
@given(snapshot=clusters(), wanted=wishes())
def test_every_plan_passes_the_evaluator(snapshot: Snapshot, wanted: Goals) -> None:
    """Same F, same levels, no violation, and a bound that is not above F."""
    result = solve(snapshot, wanted, LIMITS)
    assert (result.best is None) == (
        result.status in (PlanStatus.INFEASIBLE, PlanStatus.NONE_IN_TIME)
    )
    if result.best is None:
        assert result.reasons
        return
    assert result.objective is not None
    assert result.bound is not None
    evaluation = evaluate(snapshot, wanted, result.best.moves)
    assert evaluation.violations == ()
    assert evaluation.objective == pytest.approx(result.objective, rel=1e-9, abs=1e-9)
    assert result.bound <= evaluation.objective
    assert evaluation.levels == pytest.approx(result.best.levels)
    assert bool(result.best.moves) != bool(result.reasons)


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(most_brokers=3, most_rows=4, most_rf=2), wanted=wishes())
def test_no_placement_beats_the_bound(snapshot: Snapshot, wanted: Goals) -> None:
    """The bound holds for all placements; none is missed, none is made up."""
    best = least(snapshot, wanted)
    result = solve(snapshot, wanted, LIMITS)
    if best is None:
        assert result.status is PlanStatus.INFEASIBLE
        return
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound <= best
    assert result.objective <= best + 1e-5


@settings(max_examples=100, deadline=None)
@given(snapshot=clusters(), wanted=wishes())
def test_a_greedy_start_breaks_no_limit(snapshot: Snapshot, wanted: Goals) -> None:
    """And where nothing is forced it is never worse than staying."""
    problem = compile_problem(snapshot, wanted)
    start = greedy_start(problem)
    if start is None or any(problem.may.forced[row] for row in problem.may.fixed):
        return
    assert is_allowed(problem, start)
    assert set(changed_rows(problem, start)).isdisjoint(problem.may.fixed)
    home = Placement.home(problem)
    assert problem.may.forced.any() or is_allowed(problem, home)
