"""No field of a plan can be altered and re-sealed without `verify` noticing it.

`UNCHECKED` is the whole list of exceptions; a field that is new in the model and that
nothing checks fails here.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from control.cli.plan_claims import claims, settings_claims, snapshot_claim
from model.errors import PlimsollError
from model.goals.goals import Goal, Goals, ObjectiveKind, SolveLimits
from model.goals.rack_placement import PlacementRule, RackConstraint, RackCount, ReplicaPlacement
from model.names import Names
from model.plan.plan import BrokerChange, Move, Plan, PlanStatus, plan_hash, plan_of_document
from model.snapshot.snapshot import BrokerState, LogDir, Resource, Snapshot, StorageKind
from solver.replication.replication_plan import replication_plan
from solver.solve import solve
from tests.support.model.clusters import TOPIC, brokers, snapshot

UNCHECKED: Final = {
    "kind": "another kind is not a plan file",
    "schema_version": "says which fields there must be; nobody acts on it",
    "hash": "what this test makes fit again",
    "bound_method": "a name; the bound itself is checked, or proved again by --prove",
    "near_to": "the name of another plan; nothing follows from it",
    "leaders_only": "advice for another plan, which is solved and judged by itself",
    "brokers.bound_prices": "any prices prove what they prove: the bound is recomputed",
    "budget_prices": "the same",
    "rack_violations.reason": "words for people",
    "moves.reason": "words for people; `explain` gives the figures behind them",
}
"""Fields that are not checked, and why this is harmless."""

PART: Final[dict[str, type[Plan | Move | BrokerChange]]] = {"moves": Move, "brokers": BrokerChange}
CHECKED: Final = [name for name in Plan.model_fields if name not in UNCHECKED]
CHECKED_PARTS: Final = [
    (part, name)
    for part, model in PART.items()
    for name in model.model_fields
    if f"{part}.{name}" not in UNCHECKED
]
GOALS = Goals(balance=tuple(Goal(resource=r) for r in (Resource.NET_IN, Resource.NET_OUT)))
LIMITS = SolveLimits(work=2.0)


@pytest.fixture(scope="module")
def state() -> Snapshot:
    """Two replicas in three racks, with capacities and sizes."""
    return snapshot(
        brokers(3, racks="abc", capacity={1: 1e9, 2: 1e9, 3: 1e9}),
        [(1, 2)] * 6,
        [(1e7 * (i + 1), 1e7) for i in range(6)],
        storage=StorageKind.REPLICATED,
    )


@pytest.fixture(scope="module")
def document(state: Snapshot) -> dict[str, Any]:
    plan = solve(state, GOALS, LIMITS).best
    assert plan is not None
    assert any(m.added for m in plan.moves)
    return plan.model_dump(mode="json")


def rejected(document: dict[str, Any], state: Snapshot) -> bool:
    """Whether `verify` or the reader finds a fault; the hash is valid."""
    sealed = document | {"hash": plan_hash(document)}
    try:
        plan = plan_of_document(sealed, Path("forged.json"))
        result = [snapshot_claim(plan, state)]
        if result[0].holds:
            result += claims(plan, state)
            result += settings_claims(plan, GOALS, LIMITS, given=True)
    except PlimsollError:
        return True
    noticed = [c.name for c in result if c.holds is False]
    # Limits that differ from the settings are reported; that alone is not a fault.
    noticed += [c.name for c in result if c.name == "limits" and c.holds is None]
    return bool(noticed)


def altered(value: Any) -> Iterator[Any]:
    """Other values of the same type."""
    match value:
        case None:
            yield "x"
        case int():
            yield value + 1
        case float():
            yield value * 1.01 + 0.03
        case str():
            yield value + "x"
        case []:
            yield ["x"]
        case [*items]:
            yield items[:-1]
        case dict():
            yield value | {"x": 1.0}
            for name in value:
                yield {k: v for k, v in value.items() if k != name}
                yield from (value | {name: v} for v in altered(value[name]))


def changes(name: str, value: Any) -> Iterator[Any]:
    if name == "status":
        yield from ("improved", "level already", "infeasible")
    elif name == "goals":
        yield value | {"rack_rule": "off"}
        yield value | {"capacity_limit": 1.0}
        yield value | {"move_price": 1e-9}
    elif name == "limits":
        yield value | {"gap": 0.5}
        yield value | {"work": 3.0}
    elif name == "storage":
        yield "shared"
    elif name == "state":
        yield "draining"
    else:
        yield from altered(value)


def test_the_plan_itself_holds(document: dict[str, Any], state: Snapshot) -> None:
    assert not rejected(document, state)


@pytest.mark.parametrize("name", CHECKED)
def test_no_field_can_be_altered(document: dict[str, Any], state: Snapshot, name: str) -> None:
    for value in changes(name, document.get(name, empty(Plan, name))):
        assert rejected(document | {name: value}, state), value


@pytest.mark.parametrize(("part", "name"), CHECKED_PARTS)
def test_no_field_of_a_part_can_be_altered(
    document: dict[str, Any], state: Snapshot, part: str, name: str
) -> None:
    for number, item in enumerate(document[part]):
        for value in changes(name, item.get(name, empty(PART[part], name))):
            items = list(document[part])
            items[number] = item | {name: value}
            assert rejected(document | {part: items}, state), (item, value)


@pytest.fixture(scope="module")
def troubled() -> Snapshot:
    """Brokers over their limits, and partitions that share a rack."""
    return snapshot(
        brokers(4, racks="aabb", capacity=dict.fromkeys(range(1, 5), 2e7)),
        [(1, 2)] * 6,
        [(1e7, 1e7)] * 6,
        storage=StorageKind.REPLICATED,
    )


@pytest.mark.parametrize("name", ["over_limit", "rack_violations"])
def test_no_violation_can_be_hidden_or_altered(troubled: Snapshot, name: str) -> None:
    plan = solve(troubled, GOALS, LIMITS).best
    assert plan is not None
    document = plan.model_dump(mode="json")
    assert not rejected(document, troubled)
    part = document[name]
    assert rejected({k: v for k, v in document.items() if k != name}, troubled)
    assert rejected(document | {name: part[1:]}, troubled)
    for field, value in part[0].items():
        if field == "reason":
            continue
        other = value + 1 if not isinstance(value, bool | str) else value
        other = not value if isinstance(value, bool) else other
        other = "x" if isinstance(value, str) else other
        assert rejected(document | {name: [part[0] | {field: other}, *part[1:]]}, troubled)


@pytest.mark.parametrize("replicas", [1, 3])
def test_another_replication_factor_cannot_be_hidden_or_altered(
    state: Snapshot, replicas: int
) -> None:
    plan = replication_plan(state, GOALS, LIMITS, {TOPIC: replicas})
    assert plan is not None
    document = plan.model_dump(mode="json")
    assert not rejected(document, state)
    (change,) = document["replication"]
    others = [{**change, name: value + 1} for name, value in change.items() if name != "topic"]
    for forged in ([], [change | {"topic": "others"}], *([other] for other in others)):
        assert rejected(document | {"replication": forged}, state), forged
    assert rejected(document | {"moves": document["moves"][1:]}, state)
    first, *rest = document["moves"]
    for name in ("bytes_to_copy", "gain", "follower_load", "replicas_after"):
        for value in changes(name, first[name]):
            assert rejected(document | {"moves": [first | {name: value}, *rest]}, state), name


def empty(model: type[Plan | Move | BrokerChange], name: str) -> Any:
    """The value that stands for an omitted field."""
    default = model.model_fields[name].get_default(call_default_factory=True)
    return list(default) if isinstance(default, tuple) else default


def test_an_optimum_by_a_loose_gap_is_not_believed(
    document: dict[str, Any], state: Snapshot
) -> None:
    half = document | {"limits": document["limits"] | {"gap": 1e9}, "bound": 0.0}
    plan = plan_of_document(half | {"hash": plan_hash(half)}, Path("forged.json"))
    (result,) = [c for c in settings_claims(plan, GOALS, LIMITS, given=False) if c.name == "limits"]
    assert result.holds is False


def test_a_move_whose_first_replica_would_not_lead_is_noticed(
    document: dict[str, Any], state: Snapshot
) -> None:
    """The next preferred election would make another broker lead than is planned."""
    move, *others = document["moves"]
    turned = move | {"replicas_after": move["replicas_after"][::-1]}
    assert turned != move
    assert rejected(document | {"moves": [turned, *others]}, state)


def judged(state: Snapshot, goals: Goals) -> tuple[Plan, list[str]]:
    """A plan of the planner, and the faults that verify finds."""
    plan = solve(state, goals, LIMITS).best
    assert plan is not None
    assert snapshot_claim(plan, state).holds
    result = [*claims(plan, state), *settings_claims(plan, goals, LIMITS, given=True)]
    return plan, [f"{c.name}: {c.words}" for c in result if c.holds is False]


@pytest.mark.parametrize("loads", [[2.5e6, 2.5e6, 1e6], [2.5e6, 2.5e6]])
def test_an_optimum_of_a_large_objective_holds_though_its_figures_are_rounded(
    loads: list[float],
) -> None:
    """Nine digits of 35,000 are coarser than the gap of 1e-6 that counts as zero."""
    state = snapshot(brokers(3), [(1,)] * len(loads), [(a, 3.1 * a) for a in loads])
    goals = Goals(balance=GOALS.balance, objective=ObjectiveKind.BAND)
    plan, faults = judged(state, goals)
    assert plan.status is PlanStatus.OPTIMAL
    assert plan.gap > plan.limits.gap
    assert not faults


def test_costs_of_log_directories_are_not_called_proved() -> None:
    """The bound omits them, so a plan that cannot be improved has a gap too."""
    dirs = tuple(LogDir(path=f"/d{i}") for i in range(2))
    members = tuple(b.model_copy(update={"log_dirs": dirs}) for b in brokers(2))
    bare = snapshot(members, [(1,)] * 3, storage=StorageKind.REPLICATED)
    at = np.zeros(len(bare.partitions.replica_broker), np.int64)
    state = Snapshot(bare.header, replace(bare.partitions, replica_dir=at))
    disk = Goal(resource=Resource.NET_IN)
    excluded = Names(exact=("orders",))
    goals = Goals(balance=(disk,), level_directories=True, excluded_topics=excluded)
    plan, faults = judged(state, goals)
    assert plan.gap > plan.limits.gap
    assert plan.limited_by == "proved optimal but for log directories"
    assert not faults


def test_a_leader_on_an_excluded_broker_stays_where_its_placement_keeps_it() -> None:
    """Prices excluded leaders on brokers that take no load: the bound was too high."""
    excluded = {1: BrokerState.EXCLUDED}
    members = brokers(6, racks="abcabc", states=excluded)
    loads = [(1e6 * (1 + i % 7), 1e6) for i in range(60)]
    state = snapshot(members, [(1, 4)] * 60, loads)
    counts = [RackCount(count=1, constraints=RackConstraint(rack=rack)) for rack in "ac"]
    placement = ReplicaPlacement(version=1, replicas=tuple(counts))
    rule = PlacementRule(topics=Names(prefix=("",)), placement=placement)
    goals = Goals(balance=(Goal(resource=Resource.NET_IN),), placements=(rule,))
    plan, faults = judged(state, goals)
    assert not faults
    assert any(m.leader_after == 1 for m in plan.moves)
