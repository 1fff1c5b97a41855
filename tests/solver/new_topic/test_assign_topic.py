"""Assignment of a new topic: the rules are kept, the best spread is proved."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import ConfigError
from model.goals.goals import Goals, RackRule, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.proposal import Change, Proposal
from model.rules import violations_of
from model.snapshot.snapshot import (
    TAKING,
    Broker,
    BrokerState,
    PartitionRow,
    Snapshot,
    StorageKind,
    Topic,
    partitions_from_rows,
)
from solver.budget import Budget
from solver.new_topic.apportion import Leadership, choose_leaders, deal
from solver.new_topic.assign_topic import assign_replicas
from solver.new_topic.replica_counts import (
    CountLimits,
    Slopes,
    allocate_counts,
    greatest_lowest,
    least_highest,
)
from solver.new_topic.topic_problem import NewTopic, TopicAssignment
from tests.support.solver.exact_oracle import Row, broker, cluster, goals
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

NEW = TopicName("new")


def topic(partitions: int, rf: int, **others: float) -> NewTopic:
    return NewTopic(name=NEW, partitions=partitions, replication_factor=rf, **others)


def empty(count: int, racks: str = "") -> Snapshot:
    names = list(racks) or [None] * count  # type: ignore[list-item]
    return cluster([broker(i + 1, names[i]) for i in range(count)], [])


def counts(placing: TopicAssignment) -> list[int]:
    return [replicas for replicas, _ in placing.counts().values()]


def broken(snapshot: Snapshot, given_goals: Goals, placing: TopicAssignment) -> list[str]:
    """Rules of `model` that the assignment breaks."""
    made = Topic(name=NEW, topic_id="new", storage=StorageKind.SHARED)
    # A partition that stays is asked less than one that moves: none may stay.
    last = snapshot.header.brokers[-1].id
    leaving = [
        Broker(id=BrokerId(last + 1 + i), rack=f"old{i}", state=BrokerState.DRAINING)
        for i in range(len(placing.replicas[0]))
    ]
    start = [b.id for b in leaving]
    rows = [
        PartitionRow(
            id=PartitionId(NEW, number),
            topic_id="new",
            storage=StorageKind.SHARED,
            internal=False,
            replicas=tuple(start),
            leader=start[0],
            size_bytes=1,
            local_bytes=1,
        )
        for number in range(len(placing.replicas))
    ]
    brokers = (*snapshot.header.brokers, *leaving)
    header = snapshot.header.model_copy(update={"topics": (made,), "brokers": brokers})
    width = len(header.resources)
    before = Snapshot(header, partitions_from_rows((made,), rows, np.zeros((len(rows), width))))
    changes = tuple(
        Change(row, replicas, replicas[0]) for row, replicas in enumerate(placing.replicas)
    )
    proposal = Proposal(before, given_goals, changes)
    return [v.words for v in violations_of(proposal)]


def test_replicas_and_leaders_are_even() -> None:
    placing = assign_replicas(empty(6, "abcabc"), goals(), topic(12, 3))
    assert counts(placing) == [6] * 6
    assert [led for _, led in placing.counts().values()] == [2] * 6
    assert placing.evenness is not None
    assert placing.leader_evenness is not None
    assert placing.evenness.proved
    assert placing.leader_evenness.proved


def test_the_remainder_goes_to_the_emptier_brokers() -> None:
    rows = [Row(replicas=(1,)), Row(replicas=(1,)), Row(replicas=(2,))]
    state = cluster([broker(i) for i in (1, 2, 3)], rows)
    placing = assign_replicas(state, goals(), topic(4, 1))
    assert dict(placing.counts()) == {1: (1, 1), 2: (1, 1), 3: (2, 2)}


def test_an_expected_load_fills_the_emptier_brokers_more() -> None:
    rows = [Row(replicas=(1,), load=(6, 6)), Row(replicas=(2,), load=(1, 1))]
    state = cluster([broker(1), broker(2)], rows)
    placing = assign_replicas(state, goals(), topic(8, 1, net_in=1.0, net_out=1.0))
    one, two = counts(placing)
    assert one < two
    assert placing.load_evenness is not None
    assert placing.load_evenness.proved


def test_only_brokers_that_take_new_load_are_used() -> None:
    states = [s for s in BrokerState if s not in TAKING]
    members = [broker(i + 1, state=s) for i, s in enumerate(states)]
    state = cluster([*members, broker(8), broker(9)], [])
    placing = assign_replicas(state, goals(), topic(3, 2))
    assert placing.brokers == (8, 9)
    assert {b for row in placing.replicas for b in row} == {8, 9}


def test_observers_come_last_and_do_not_lead() -> None:
    rule = placement({"a": 2}, {"b": 1})
    given_goals = goals(placements=[rule])
    placing = assign_replicas(empty(5, "aaabb"), given_goals, topic(7, 3))
    assert all(set(row[:2]) <= {1, 2, 3} for row in placing.replicas)
    assert all(row[2] in {4, 5} for row in placing.replicas)
    assert broken(empty(5, "aaabb"), given_goals, placing) == []


def placement(replicas: dict[str, int], observers: dict[str, int]) -> dict[str, object]:
    def as_json(counts: dict[str, int]) -> list[dict[str, object]]:
        return [{"count": count, "constraints": {"rack": rack}} for rack, count in counts.items()]

    spec = {"version": 1, "replicas": as_json(replicas), "observers": as_json(observers)}
    return {"topics": {"exact": [NEW]}, "placement": spec}


def test_a_pin_of_some_partitions_binds_those_alone() -> None:
    pin = {"topics": {"exact": [NEW]}, "partitions": [0, 2], "brokers": [1]}
    placing = assign_replicas(empty(3), goals(pins=[pin]), topic(4, 1))
    assert [row[0] for row in placing.replicas][::2] == [1, 1]
    assert sorted(counts(placing)) == [1, 1, 2]


def test_a_full_broker_takes_no_replica() -> None:
    rows = [Row(replicas=(1,)), Row(replicas=(1,))]
    state = cluster([broker(i) for i in (1, 2, 3)], rows)
    placing = assign_replicas(state, goals(replicas_per_broker=2), topic(4, 1))
    assert 1 not in placing.brokers
    assert counts(placing) == [2, 2]


def test_an_expected_load_stays_under_the_capacity_limit() -> None:
    brokers = [broker(1, capacity=10.0), broker(2, capacity=100.0)]
    rows = [Row(replicas=(1,), load=(4, 4)), Row(replicas=(2,), load=(40, 40))]
    placing = assign_replicas(cluster(brokers, rows), goals(), topic(10, 1, net_in=2.0))
    assert placing.counts()[BrokerId(1)][0] <= 2


@pytest.mark.parametrize(
    ("state", "given_goals", "asked", "message"),
    [
        (empty(2), goals(), topic(1, 3), "3 replicas need as many brokers, and 2"),
        (cluster([], []), goals(), topic(1, 1), "and 0 brokers may take"),
        (
            empty(3, "aab"),
            goals(placements=[placement({"a": 1, "b": 2}, {})]),
            topic(4, 3),
            "rack b has to hold 8 replicas and has room for 4",
        ),
        (
            empty(3, "aab"),
            goals(placements=[placement({"a": 1, "c": 2}, {})]),
            topic(4, 3),
            "no broker is in rack 'c' (racks: a and b)",
        ),
        (
            empty(3),
            goals(replicas_per_broker=1),
            topic(4, 1),
            "4 replicas have to be placed, and the brokers and racks that may take "
            "them have room for 3",
        ),
    ],
)
def test_an_impossible_placement_reports_the_reason(
    state: Snapshot, given_goals: Goals, asked: NewTopic, message: str
) -> None:
    placing = assign_replicas(state, given_goals, asked)
    assert placing.replicas == ()
    assert message in "; ".join(placing.reasons)


def test_an_existing_topic_is_rejected() -> None:
    state = cluster([broker(1)], [Row(replicas=(1,))])
    with pytest.raises(ConfigError, match="plan --topic orders"):
        assign_replicas(state, goals(), replace(topic(1, 1), name=TopicName("orders")))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a b"},
        {"name": ""},
        {"name": ".."},
        {"name": "x" * 250},
        {"partitions": 0},
        {"partitions": 10**9},
        {"replication_factor": 0},
        {"net_in": -1.0},
        {"net_out": float("nan")},
    ],
)
def test_an_invalid_topic_is_rejected(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        replace(topic(1, 1), **fields)  # type: ignore[arg-type]


def test_two_hundred_brokers_and_thousands_of_partitions_are_even() -> None:
    placing = assign_replicas(synthetic(200, 2000, rf=3), Goals(), topic(5000, 3))
    assert placing.evenness is not None
    assert placing.leader_evenness is not None
    assert placing.evenness.proved
    assert placing.leader_evenness.proved


def test_equal_arguments_give_equal_lists() -> None:
    state = synthetic(10, 100, rf=3)
    asked = topic(31, 3, net_in=1e5, net_out=2e5)
    assert assign_replicas(state, Goals(), asked) == assign_replicas(state, Goals(), asked)


# ---- against every placement


@st.composite
def places(draw: st.DrawFn) -> tuple[Snapshot, Goals, NewTopic]:
    count = draw(st.integers(1, 4))
    racks = draw(st.sampled_from([None, "ab", "abc"]))
    states = st.sampled_from([BrokerState.ALIVE] * 4 + [BrokerState.DRAINING])
    members = [
        broker(i + 1, racks and draw(st.sampled_from(racks)), draw(states)) for i in range(count)
    ]
    rows = [
        Row(replicas=(draw(st.integers(1, count)),), load=(load, load))
        for load in draw(st.lists(st.floats(0.1, 5.0), max_size=4))
    ]
    rule = draw(st.sampled_from(RackRule))
    expected = draw(st.sampled_from([{}, {"net_in": 1.0, "net_out": 2.0}]))
    asked = topic(draw(st.integers(1, 3)), draw(st.integers(1, 3)), **expected)
    return cluster(members, rows), goals(rack_rule=rule), asked


def every(snapshot: Snapshot, given_goals: Goals, asked: NewTopic) -> Iterator[TopicAssignment]:
    taking = [b.id for b in snapshot.header.brokers if b.state in TAKING]
    sets = itertools.combinations(taking, asked.replication_factor)
    for lists in itertools.product(list(sets), repeat=asked.partitions):
        tried = TopicAssignment(topic=asked, brokers=tuple(taking), replicas=lists)
        if not broken(snapshot, given_goals, tried):
            yield tried


@settings(max_examples=60, deadline=None)
@given(places())
def test_a_placement_is_allowed_and_as_even_as_possible(
    given_: tuple[Snapshot, Goals, NewTopic],
) -> None:
    snapshot, given_goals, asked = given_
    placing = assign_replicas(snapshot, given_goals, asked)
    others = list(every(snapshot, given_goals, asked))
    assert bool(placing.replicas) == bool(others)
    if not others:
        assert placing.reasons
        return
    assert broken(snapshot, given_goals, placing) == []
    assert placing.evenness is not None
    most = min(max(counts(o)) for o in others)
    fewest = max(min(counts(o)) for o in others)
    assert placing.evenness.least_highest == most
    assert placing.evenness.greatest_lowest == fewest
    if asked.net_in is None:
        assert (placing.evenness.least, placing.evenness.most) == (fewest, most)


# ---- the parts


@settings(deadline=None)
@given(
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=8),
    st.integers(0, 3),
)
def test_dealing_keeps_every_count_and_repeats_no_broker(
    rows: int, given_: list[tuple[int, int]], seed: int
) -> None:
    count = np.array([min(c, rows) for c, _ in given_], np.int64)
    rack = np.array([q for _, q in given_], np.int64)
    # What is missing to whole rows goes to a broker of its own rack.
    count = np.append(count, -int(count.sum()) % rows)
    rack = np.append(rack, 3)
    dealt = deal(count, rack, rows, seed)
    assert np.bincount(dealt.ravel(), minlength=len(count)).tolist() == count.tolist()
    for row in dealt.tolist():
        assert len(set(row)) == len(row)
    for q in range(4):
        per_rack = [int((rack[row] == q).sum()) for row in dealt]
        assert max(per_rack) - min(per_rack) <= 1


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.integers(0, 3), min_size=2, max_size=2, unique=True), min_size=1, max_size=6
    ),
    st.lists(st.floats(-3, 3), min_size=4, max_size=4),
)
def test_no_choice_of_leaders_costs_less(rows: list[list[int]], first: list[float]) -> None:
    slopes = Slopes(first=np.array(first), rise=np.ones(4), tie=np.zeros(4))
    rules = Leadership(able=np.ones(4, np.bool_), cap=np.full(4, 9), slopes=slopes)
    leader = choose_leaders(np.array(rows), rules, Budget(limits=SolveLimits()))
    assert leader is not None
    best = min(slopes.cost(np.bincount(led, minlength=4)) for led in itertools.product(*rows))
    cost = slopes.cost(np.bincount(leader, minlength=4))
    assert cost == pytest.approx(best, abs=1e-9)


@st.composite
def rooms(draw: st.DrawFn) -> CountLimits:
    cap = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    rack = [draw(st.integers(0, 1)) for _ in cap]
    least = [draw(st.integers(0, 2)) for _ in range(2)]
    most = [low + draw(st.integers(0, 6)) for low in least]
    return CountLimits(
        cap=np.array(cap),
        rack=np.array(rack),
        least=np.array(least),
        most=np.array(most),
        total=draw(st.integers(0, sum(cap))),
    )


@settings(deadline=None, max_examples=60)
@given(rooms(), st.lists(st.floats(-2, 2), min_size=5, max_size=5))
def test_greedy_counts_have_the_least_cost(room: CountLimits, first: list[float]) -> None:
    size = len(room.cap)
    slopes = Slopes(first=np.array(first[:size]), rise=np.ones(size), tie=np.zeros(size))
    allowed = list(every_count(room))
    assert room.enough == bool(allowed)
    if not allowed:
        return
    result = allocate_counts(room, slopes)
    assert tuple(result.tolist()) in set(allowed)
    best = min(slopes.cost(np.array(c)) for c in allowed)
    assert slopes.cost(result) == pytest.approx(best, abs=1e-9)
    able = [i for i in range(size) if room.cap[i]]
    assert least_highest(room) == min(max(c) for c in allowed)
    lowest = max(min((c[i] for i in able), default=0) for c in allowed)
    assert greatest_lowest(room) == lowest


def every_count(room: CountLimits) -> Iterator[tuple[int, ...]]:
    for count in itertools.product(*(range(c + 1) for c in room.cap.tolist())):
        directories = room.in_racks(np.array(count))
        within = (room.least <= directories).all() and (directories <= room.most).all()
        if within and sum(count) == room.total:
            yield count
