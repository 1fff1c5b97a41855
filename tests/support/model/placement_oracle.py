"""Every placement of tiny clusters: the oracle of evaluator and bound."""

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

from model.evaluate import Evaluation, evaluate_proposal
from model.goals.goals import Goal, Goals, ObjectiveKind, Pin, RackRule
from model.goals.rack_placement import PlacementRule, RackConstraint, RackCount, ReplicaPlacement
from model.ids import BrokerId
from model.names import Names
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import BrokerState, Count, RecentMove, Resource, Snapshot, StorageKind
from tests.support.model.clusters import RATES, TAKEN_AT_MS, TOPIC, brokers, ids, snapshot

ALL = Names(prefix=("",))

PRICE = st.floats(-2.0, 2.0, allow_nan=False)


def row_changes(state: Snapshot, row: int) -> Iterator[Change]:
    """Every ordered list and leader of one row, the present one among them."""
    rf = len(state.replicas(row))
    for replicas in itertools.permutations(state.broker, rf):
        for leader in replicas:
            yield Change(row, replicas, leader)


def is_present(state: Snapshot, change: Change) -> bool:
    """Whether a change changes nothing."""
    return (
        change.replicas == state.replicas(change.row)
        and change.leader == state.partitions.leader[change.row]
    )


def least_objective(state: Snapshot, goals: Goals) -> Evaluation | None:
    """The best allowed placement, None where there is none."""
    best = None
    for chosen in itertools.product(
        *([None, *row_changes(state, row)] for row in range(len(state)))
    ):
        changes = tuple(c for c in chosen if c and not is_present(state, c))
        evaluation = evaluate_proposal(Proposal(state, goals, changes))
        if evaluation.violations:
            continue
        if best is None or evaluation.objective < best.objective:
            best = evaluation
    return best


@st.composite
def clusters(draw: st.DrawFn, rows: int = 2, most: int = 4) -> Snapshot:
    """Up to four brokers of any state, some racks, rows of one topic."""
    count = draw(st.integers(2, most))
    states = draw(st.lists(st.sampled_from(BrokerState), min_size=count, max_size=count))
    rf = draw(st.integers(1, min(3, count)))
    places = [
        tuple(draw(st.permutations(range(1, count + 1)))[:rf])
        for _ in range(draw(st.integers(1, rows)))
    ]
    some = st.integers(0, 9).map(float)
    recent = [
        RecentMove(
            topic=TOPIC,
            partition=0,
            left=ids(left) if draw(st.booleans()) else (),
            leader_left=draw(st.sampled_from([None, *ids(*range(1, count + 1))])),
            at_ms=TAKEN_AT_MS - age,
        )
        for left in draw(st.lists(st.integers(1, count), max_size=1))
        for age in draw(st.sampled_from([[60_000], [1_000_000], [9_000_000]]))
    ]
    return snapshot(
        brokers(
            count,
            draw(st.sampled_from(["abcd", "aabb", "aaab", "a-bb"]))[:count],
            # Mostly alive, so that not every move is forced.
            {i: s for i, s in enumerate(states, 1) if draw(st.booleans())},
            draw(st.sampled_from([{}, dict.fromkeys(range(1, count + 1), 40.0)])),
        ),
        places,
        draw(st.lists(st.tuples(some, some), min_size=len(places), max_size=len(places))),
        storage=draw(st.sampled_from(StorageKind)),
        leaders=[draw(st.sampled_from([*p, p[0], p[0], -1])) for p in places],
        local_bytes=[draw(st.sampled_from([-1, 50, 300])) for _ in places],
        recent=recent,
    )


@st.composite
def random_goals(draw: st.DrawFn, rf: int) -> Goals:
    """Goals with any objective and some of the rules."""
    measures = draw(
        st.lists(st.sampled_from([*RATES, *Count, Resource.DISK]), min_size=1, unique=True)
    )
    weight = st.sampled_from([0.0, 0.5, 1.0, 2.0])
    return Goals(
        objective=draw(st.sampled_from(ObjectiveKind)),
        balance=tuple(Goal(resource=m, weight=draw(weight)) for m in measures),
        move_price=draw(st.sampled_from([None, 0.05, 0.5])),
        storage_price={StorageKind.SHARED: draw(st.sampled_from([0.0, 1.0, 3.0]))},
        excess_price=10.0,
        rack_rule=draw(st.sampled_from(RackRule)),
        pins=draw(st.lists(_pins(), max_size=1).map(tuple)),
        placements=draw(st.lists(_placements(rf), max_size=1).map(tuple))
        if draw(st.booleans())
        else (),
    )


@st.composite
def _pins(draw: st.DrawFn) -> Pin:
    return Pin(
        topics=ALL,
        partitions=draw(st.sampled_from([(), (0,)])),
        brokers=draw(st.sampled_from([(), ids(1, 2), ids(1, 2, 3)])),
        racks=draw(st.sampled_from([(), ("a", "b")])),
    )


@st.composite
def _placements(draw: st.DrawFn, rf: int) -> PlacementRule:
    leading = draw(st.integers(1, rf))
    parts = [
        tuple(RackCount(count=1, constraints=RackConstraint(rack=r)) for r in racks)
        for racks in (
            draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n))
            for n in (leading, rf - leading)
        )
    ]
    return PlacementRule(
        topics=ALL, placement=ReplicaPlacement(version=1, replicas=parts[0], observers=parts[1])
    )


@st.composite
def priced_clusters(
    draw: st.DrawFn, rows: int = 2, most: int = 4
) -> tuple[Snapshot, Goals, dict[BrokerId, dict[str, float]]]:
    """A cluster, goals for it, and any prices."""
    state = draw(clusters(rows=rows, most=most))
    goals = draw(random_goals(len(state.replicas(0))))
    keys = [g.resource.value for g in goals.balance]
    scale = draw(st.sampled_from([0.05, 0.5, 5.0]))
    return (state, goals, {b: {k: scale * draw(PRICE) for k in keys} for b in state.broker})
