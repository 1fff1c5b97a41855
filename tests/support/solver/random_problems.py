"""Random tiny clusters and goals, for properties that hold for all of them."""

import itertools
from collections.abc import Sequence

from hypothesis import strategies as st

from model.goals.goals import Budgets, Goals, ObjectiveKind, RackRule
from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState, Snapshot, StorageKind
from tests.support.solver.exact_oracle import (
    OTHER,
    RESOURCES,
    TOPIC,
    Row,
    cluster,
    goals,
    moved,
    passed_on,
)

STATES = [*[BrokerState.ALIVE] * 9, *BrokerState]
LOADS = st.one_of(st.sampled_from([1.0, 2.0, 5.0, 0.0, float("nan")]), st.floats(0.001, 100))
COUNTS = (
    "replicas",
    "leaders",
    "leader_net_in",
    "potential_net_out",
    "topic_replicas",
    "topic_leaders",
)
MOST_PLACES = 20_000
"""Placements of a cluster with more rows than one, all rows together."""

RACKS: list[Sequence[str | None]] = ["ab", "abc", "abcd", "a", [None], [None, "a"]]
CAPACITIES: list[Sequence[float | None]] = [[None], [None, 3.0, 50.0], [50.0, 400.0]]
TOPICS = st.sampled_from([TOPIC, OTHER])


@st.composite
def clusters(
    draw: st.DrawFn, most_brokers: int = 5, most_rows: int = 5, most_rf: int = 3
) -> Snapshot:
    """Small clusters with everything that rules refer to."""
    ids = range(1, draw(st.integers(1, most_brokers)) + 1)
    racks = draw(st.sampled_from(RACKS))
    capacity = draw(st.sampled_from(CAPACITIES))
    members = [draw(brokers(i, racks, capacity)) for i in ids]
    most_rf = draw(st.integers(1, min(most_rf, len(ids))))
    slots = draw(st.booleans())
    rows: list[Row] = []
    places = 1
    for _ in range(draw(st.sampled_from([*range(most_rows + 1), *[most_rows] * 5]))):
        rf = draw(st.integers(1, most_rf))
        lists = list(itertools.permutations(ids, rf))
        places *= len(lists) * rf
        if rows and places > MOST_PLACES:
            break
        rows.append(draw(placed(lists, slots=slots)))
    ages = st.sampled_from([0.0, 599.0, 601.0, 3599.0, 3601.0, 1e6])
    recent = [
        draw(st.sampled_from([moved, moved, passed_on]))(
            draw(st.integers(0, most_rows)), draw(st.sampled_from(ids)), draw(ages)
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    return cluster(
        members,
        sorted(rows, key=lambda row: row.topic),
        storage={t: draw(st.sampled_from(StorageKind)) for t in (TOPIC, OTHER)},
        internal=draw(st.sampled_from([False, False, False, True])),
        recent=recent,
    )


@st.composite
def brokers(
    draw: st.DrawFn, number: int, racks: Sequence[str | None], capacity: Sequence[float | None]
) -> Broker:
    """A broker of any state; its capacities may be known, and may be little."""
    some = st.sampled_from(capacity)
    known = {r: c for r in RESOURCES if (c := draw(some)) is not None}
    return Broker(
        id=BrokerId(number),
        rack=draw(st.sampled_from(racks)),
        state=draw(st.sampled_from(STATES)),
        capacity=known,
    )


@st.composite
def placed(draw: st.DrawFn, places: Sequence[tuple[int, ...]], *, slots: bool) -> Row:
    """A row on one of these lists of brokers."""
    replicas = draw(st.sampled_from(places))
    return Row(
        replicas=replicas,
        load=(draw(LOADS), draw(LOADS)),
        later=(draw(LOADS), draw(LOADS)) if slots else None,
        leader=draw(st.sampled_from([*replicas, *replicas, *replicas, -1])),
        local_bytes=draw(st.integers(-1, 1000)),
        topic=draw(TOPICS),
    )


@st.composite
def random_goals(draw: st.DrawFn) -> Goals:
    """Goals of both kinds, with any of the rules, a few of them at a time."""
    weight = st.sampled_from([1.0, 0.5, 7.0, 0.0])
    tolerance = st.sampled_from([0.1, 0.01, 0.5, 1.0])
    measures = draw(st.sampled_from([["net_in", "net_out"], ["net_in"], []]))
    counts = st.lists(st.sampled_from(COUNTS), min_size=not measures, max_size=2)
    rules: dict[str, st.SearchStrategy[object]] = {
        "excess_price": st.just(0.5),
        "leader_price_share": st.sampled_from([0.0, 2.0]),
        "storage_price": st.sampled_from([{"shared": 2.0}, {"shared": 0.0}]),
        "capacity_limit": st.sampled_from([0.1, 1.0]),
        "replicas_per_broker": st.sampled_from([1, 2]),
        "excluded_topics": st.just(("ord.*",)),
        "stay": st.sampled_from(
            [[{"topic": TOPIC, "partitions": [0, 1]}], [{"topic": OTHER, "partitions": [9]}]]
        ),
        "pins": st.lists(pins(), min_size=1, max_size=2),
        "placements": st.lists(placements(), min_size=1, max_size=2),
        "budgets": budgets(),
    }
    named = st.lists(st.sampled_from(sorted(rules)), max_size=4, unique=True)
    chosen = {name: draw(rules[name]) for name in draw(named)}
    return goals(
        draw(st.one_of(st.just(0.01), st.none(), st.floats(1e-6, 3.0))),
        objective=draw(st.sampled_from(ObjectiveKind)),
        rack_rule=draw(st.sampled_from(RackRule)),
        balance=[
            {
                "resource": measure,
                "weight": draw(weight),
                "floor": float(measure == "net_out"),
                "tolerance": draw(tolerance),
            }
            for measure in [*measures, *sorted(set(draw(counts)))]
        ],
        **chosen,
    )


@st.composite
def pins(draw: st.DrawFn) -> dict[str, object]:
    """A pin of some partitions, to brokers or racks that may not exist."""
    return {
        "topics": {"exact": [draw(TOPICS)]},
        "partitions": draw(st.sampled_from([[], [0], [1, 2]])),
        "brokers": draw(st.sampled_from([[], [1, 2], [2, 3, 4], [9]])),
        "racks": draw(st.sampled_from([[], [], ["a"], ["a", "b"], ["z"]])),
    }


@st.composite
def placements(draw: st.DrawFn) -> dict[str, object]:
    """Replicas and observers in some racks, which may not exist."""
    parts = st.lists(st.sampled_from("aabbcz"), min_size=1, max_size=3)
    replicas, observers = draw(parts), draw(st.one_of(st.just([]), parts))
    placement = {"version": 1, "replicas": _counts(replicas), "observers": _counts(observers)}
    return {"topics": {"exact": [draw(TOPICS)]}, "placement": placement}


def _counts(racks: Sequence[str]) -> list[dict[str, object]]:
    return [
        {"count": len(list(same)), "constraints": {"rack": rack}}
        for rack, same in itertools.groupby(racks)
    ]


@st.composite
def budgets(draw: st.DrawFn) -> dict[str, int]:
    """Up to two budgets, small ones."""
    names = st.sampled_from(sorted(Budgets.model_fields))
    chosen = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    most = st.sampled_from([0, 1, 2, 3])
    return {n: draw(most) * (300 if n == "bytes" else 1) for n in chosen}
