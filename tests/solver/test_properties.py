"""Whatever the cluster and the goals, the solver and the evaluator agree."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from model.evaluate import evaluate
from model.goals import Budgets, Goals, ObjectiveKind, RackRule, SolveLimits
from model.plan import PlanStatus
from model.snapshot import BrokerState, Snapshot, StorageKind
from solver.solve import solve
from tests.solver.small import OTHER, TOPIC, Row, broker, cluster, goals, least, moved

pytestmark = pytest.mark.search

LIMITS = SolveLimits(work=1.0)
STATES = [
    *[BrokerState.ALIVE] * 5,
    BrokerState.NEW,
    BrokerState.DRAINING,
    BrokerState.DEAD,
    BrokerState.EXCLUDED,
    BrokerState.SLOW,
    BrokerState.CORDONED,
]
LOADS = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0]), st.floats(0.001, 100), st.just(float("nan"))
)
COUNTS = ("replicas", "leaders", "leader_net_in", "topic_replicas", "topic_leaders")


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
    rf = draw(st.integers(1, min(most_rf, len(ids))))
    places = list(itertools.permutations(ids, rf))
    slots = draw(st.booleans())
    rows = [
        draw(placed(places, slots=slots))
        for _ in range(draw(st.integers(0, most_rows)))
    ]
    ages = st.sampled_from([0.0, 599.0, 601.0, 3599.0, 3601.0, 1e6])
    recent = [
        moved(draw(st.integers(0, most_rows)), draw(st.sampled_from(ids)), draw(ages))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return cluster(
        brokers,
        sorted(rows, key=lambda row: row.topic),
        storage=draw(st.sampled_from(list(StorageKind))),
        internal=draw(st.sampled_from([False, False, False, True])),
        recent=recent,
    )


@st.composite
def placed(draw: st.DrawFn, places: Sequence[tuple[int, ...]], *, slots: bool) -> Row:
    """A row on one of these lists of brokers."""
    replicas = draw(st.sampled_from(places))
    return Row(
        replicas=replicas,
        load=(draw(LOADS), draw(LOADS)),
        later=(draw(LOADS), draw(LOADS)) if slots else None,
        leader=draw(st.sampled_from([*replicas, *replicas, -1])),
        local_bytes=draw(st.integers(-1, 1000)),
        topic=draw(st.sampled_from([TOPIC, OTHER])),
    )


@st.composite
def wishes(draw: st.DrawFn) -> Goals:
    """Goals of both kinds, with any of the rules."""
    weight = st.sampled_from([0.0, 0.5, 1.0, 7.0])
    tolerance = st.sampled_from([0.01, 0.1, 0.5, 1.0])
    measures = ["net_in", "net_out"]
    measures += draw(st.lists(st.sampled_from(COUNTS), max_size=2, unique=True))
    return goals(
        draw(st.one_of(st.none(), st.floats(1e-6, 3.0))),
        objective=draw(st.sampled_from(ObjectiveKind)),
        excess_price=draw(st.sampled_from([0.5, 10_000.0])),
        leader_price_share=draw(st.sampled_from([0.05, 0.0])),
        storage_price={"shared": draw(st.sampled_from([1.0, 2.0, 0.0]))},
        replicas_per_broker=draw(st.sampled_from([2, 10_000])),
        rack_rule=draw(st.sampled_from(RackRule)),
        excluded_topics=draw(st.sampled_from([(), (), ("ord.*",)])),
        pins=draw(st.lists(pins(), max_size=1)),
        placements=draw(st.lists(placements(), max_size=1)),
        budgets=draw(budgets()),
        balance=[
            {
                "resource": measure,
                "weight": draw(weight),
                "floor": float(measure == "net_out"),
                "tolerance": draw(tolerance),
            }
            for measure in measures
        ],
    )


@st.composite
def pins(draw: st.DrawFn) -> dict[str, object]:
    return {
        "topics": {"exact": [draw(st.sampled_from([TOPIC, OTHER]))]},
        "partitions": draw(st.sampled_from([[], [0]])),
        "brokers": draw(st.sampled_from([[], [1, 2], [2, 3, 4]])),
        "racks": draw(st.sampled_from([[], ["a"], ["a", "b"]])),
    }


@st.composite
def placements(draw: st.DrawFn) -> dict[str, object]:
    counts = {
        rack: count
        for rack in "ab"
        if (count := draw(st.integers(0, 2))) or rack == "a"
    }
    replicas = [
        {"count": max(1, count), "constraints": {"rack": rack}}
        for rack, count in counts.items()
    ]
    observers = draw(
        st.sampled_from([[], [], [{"count": 1, "constraints": {"rack": "b"}}]])
    )
    placement = {"version": 1, "replicas": replicas, "observers": observers}
    topics = {"exact": [draw(st.sampled_from([TOPIC, OTHER]))]}
    return {"topics": topics, "placement": placement}


@st.composite
def budgets(draw: st.DrawFn) -> dict[str, int]:
    names = st.sampled_from(sorted(Budgets.model_fields))
    chosen = draw(st.lists(names, max_size=2, unique=True))
    most = st.sampled_from([0, 1, 2, 3])
    return {n: draw(most) * (300 if n == "bytes" else 1) for n in chosen}


def racks_exist(snapshot: Snapshot, wanted: Goals) -> bool:
    racks = {b.rack for b in snapshot.header.brokers}
    asked = [r for rule in wanted.placements for r in rule.placement.replica_racks]
    asked += [r for rule in wanted.placements for r in rule.placement.observer_racks]
    return racks.issuperset(asked)


@settings(max_examples=100, deadline=None)
@given(snapshot=clusters(), wanted=wishes())
def test_every_plan_passes_the_evaluator(snapshot: Snapshot, wanted: Goals) -> None:
    """Same F, same levels, no violation, and a bound that is not above F."""
    assume(racks_exist(snapshot, wanted))
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
    levels = result.best.levels
    assert {key: evaluation.levels[key] for key in levels} == pytest.approx(levels)
    assert result.best.moves or result.reasons


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(most_brokers=3, most_rows=4, most_rf=2), wanted=wishes())
def test_no_placement_beats_the_bound(snapshot: Snapshot, wanted: Goals) -> None:
    """The bound holds for all placements; none is missed, none is made up."""
    assume(racks_exist(snapshot, wanted))
    best = least(snapshot, wanted)
    result = solve(snapshot, wanted, LIMITS)
    if best is None:
        assert result.status is PlanStatus.INFEASIBLE
        return
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound <= best
    assert result.objective <= best + 1e-5
