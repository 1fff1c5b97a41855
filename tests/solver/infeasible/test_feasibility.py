"""Conflicts are real, irreducible, smallest, and reported by name."""

import itertools
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model.evaluate import evaluate_proposal
from model.goals.goals import Budgets, Cooldown, Goals, RackRule, SolveLimits
from model.plan.plan import PlanStatus
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import Broker, BrokerState, Snapshot, StorageKind, partitions_from_rows
from model.snapshot.snapshot_parts import LogDir
from solver.budget import Budget
from solver.infeasible.assumptions import BUDGETS, Requirement, RequirementKind
from solver.infeasible.feasibility import Feasibility
from solver.infeasible.limits import keep_limits
from solver.infeasible.messages import conflict_text
from solver.infeasible.minimal_conflict import Conflict, find_conflict, modelled_rows
from solver.infeasible.plain_reasons import plain_reasons
from solver.problem.eligibility import FIXED_REASONS, FixedReason
from solver.problem.problem import Problem, compile_problem
from solver.solve import solve
from solver.studies.goal_repair import RuleChange, cheapest_changes, relaxations
from tests.support.solver.exact_oracle import (
    OTHER,
    TOPIC,
    Row,
    broker,
    cluster,
    goals,
    least,
    moved,
)

LIMITS = SolveLimits(work=20.0)
STATES = (BrokerState.ALIVE, BrokerState.DRAINING, BrokerState.CORDONED)
LEADERLESS = (BrokerState.ALIVE, BrokerState.DRAINING, BrokerState.DEMOTED)
DRAINING = BrokerState.DRAINING


def conflict_of(problem: Problem) -> Conflict | None:
    return find_conflict(problem, Budget(limits=LIMITS))


def conflict(problem: Problem) -> tuple[str, ...]:
    """The text of a conflict that is known to exist."""
    found = conflict_of(problem)
    assert found is not None
    return conflict_text(problem, found)


def evident(problem: Problem) -> tuple[str, ...]:
    return plain_reasons(problem, Budget(limits=LIMITS))


def is_possible(snapshot: Snapshot, given_goals: Goals) -> bool:
    """Whether any placement keeps every rule of `model`, by enumeration."""
    places = [list(_places(snapshot, row)) for row in range(len(snapshot))]
    return any(
        not evaluate_proposal(
            Proposal(snapshot, given_goals, tuple(c for c in changes if c))
        ).violations
        for changes in itertools.product(*places)
    )


def _places(snapshot: Snapshot, row: int) -> Iterable[Change | None]:
    before, leader = snapshot.replicas(row), snapshot.partitions.leader[row]
    yield None
    for chosen in itertools.permutations(snapshot.broker, len(before)):
        if set(chosen) != set(before) or chosen[0] != leader:
            yield Change(row, chosen, chosen[0])


def with_requirements(
    problem: Problem, requirements: Collection[Requirement], rows: Collection[int]
) -> tuple[Snapshot, Goals]:
    """The cluster and the goals with all requirements dropped but these."""
    return _rows_alone(_brokers(problem, requirements), rows), _goals(problem, requirements)


def _brokers(problem: Problem, requirements: Collection[Requirement]) -> Snapshot:
    snapshot = problem.snapshot
    resources = snapshot.header.resources

    def changed(b: int, known: Broker) -> Broker:
        state = (
            known.state
            if Requirement(RequirementKind.STATE, b) in requirements
            else BrokerState.ALIVE
        )
        capacity = {
            r: c
            for r, c in known.capacity.items()
            if Requirement(RequirementKind.CAPACITY, b, resources.index(r)) in requirements
        }
        return known.model_copy(update={"state": state, "capacity": capacity})

    brokers = tuple(changed(b, k) for b, k in enumerate(snapshot.header.brokers))
    header = snapshot.header.model_copy(update={"brokers": brokers})
    return Snapshot(header, snapshot.partitions)


def _rows_alone(snapshot: Snapshot, rows: Collection[int]) -> Snapshot:
    order = sorted(rows)
    columns = partitions_from_rows(
        snapshot.header.topics,
        [snapshot.row(row) for row in order],
        snapshot.partitions.loads[order],
    )
    return Snapshot(snapshot.header, columns)


def _goals(problem: Problem, requirements: Collection[Requirement]) -> Goals:
    def is_required(reason: FixedReason) -> bool:
        return Requirement(RequirementKind.STAYS, FIXED_REASONS.index(reason)) in requirements

    given_goals = problem.goals
    some = given_goals.cooldown[StorageKind.SHARED]
    rest = Cooldown(
        rest_s=some.rest_s if is_required(FixedReason.IN_COOLDOWN) else 0,
        return_window_s=some.return_window_s
        if Requirement(RequirementKind.RETURN) in requirements
        else 0,
    )
    budgets = {
        name: limit
        for i, name in enumerate(BUDGETS)
        if Requirement(RequirementKind.BUDGET, i) in requirements
        and (limit := getattr(given_goals.budgets, name)) is not None
    }
    limit = given_goals.replicas_per_broker
    return given_goals.model_copy(
        update={
            "pins": tuple(
                p
                for i, p in enumerate(given_goals.pins)
                if Requirement(RequirementKind.PIN, i) in requirements
            ),
            "placements": tuple(
                p
                for i, p in enumerate(given_goals.placements)
                if Requirement(RequirementKind.PLACEMENT, i) in requirements
            ),
            "rack_rule": (
                given_goals.rack_rule
                if Requirement(RequirementKind.RACKS) in requirements
                else RackRule.OFF
            ),
            "cooldown": {StorageKind.SHARED: rest},
            "budgets": Budgets(**budgets),
            "replicas_per_broker": (
                limit if Requirement(RequirementKind.REPLICA_LIMIT) in requirements else 10_000
            ),
        }
    )


def tight(seed: int, racks: str = "ab") -> Problem:
    """A tiny cluster with rules that are often infeasible together."""
    rng = np.random.default_rng(seed)

    def maybe(share: float) -> bool:
        return bool(rng.random() < share)

    size, rf = int(rng.integers(3, 5)), int(rng.integers(1, 3))
    states = rng.choice(3, size, p=[0.5, 0.35, 0.15]).tolist()
    capacity = [float(rng.integers(2, 9)) if maybe(0.7) else None for _ in states]
    members = [
        broker(
            i + 1, racks[i % len(racks)], (STATES, LEADERLESS)[seed % 2][s], capacity=capacity[i]
        )
        for i, s in enumerate(states)
    ]
    rows = []
    for _ in range(int(rng.integers(1, 4 if rf == 1 else 3))):
        replicas = tuple((rng.permutation(size)[:rf] + 1).tolist())
        rows.append(Row(replicas=replicas, load=(float(rng.integers(1, 4)), 1.0)))
    recent = [moved(0, int(rng.integers(1, size + 1)), 900)] if maybe(0.4) else []
    others: dict[str, Any] = {"rack_rule": str(rng.choice(["spread", "off"]))}
    if maybe(0.4):
        others["budgets"] = {"replica_moves": int(rng.integers(0, 3))}
    if maybe(0.3):
        others["budgets"] = {"replica_moves_in_per_broker": int(rng.integers(0, 2))}
    if maybe(0.3):
        pin = {"topics": {"exact": ("orders",)}, "brokers": (1, 2)}
        others["pins"] = (pin,)
    if maybe(0.3):
        others["replicas_per_broker"] = int(rng.integers(1, 3))
    if rf == 2 and maybe(0.3):
        others |= placement({"a": 1, "b": 1} if maybe(0.5) else {"a": 2})
    return compile_problem(cluster(members, rows, recent=recent), goals(**others))


def placement(counts: dict[str, int]) -> dict[str, Any]:
    replicas = [{"count": c, "constraints": {"rack": r}} for r, c in counts.items()]
    rule = {"version": 1, "replicas": tuple(replicas)}
    named = {"topics": {"exact": ("orders",)}, "placement": rule}
    return {"placements": (named,), "rack_rule": "off"}


def all_rows(problem: Problem) -> range:
    return range(len(problem.leader))


@pytest.mark.parametrize("seed", range(60))
def test_a_reported_conflict_is_real_and_irreducible(seed: int) -> None:
    """Compared with enumeration, for feasible clusters too."""
    problem = tight(seed)
    result = conflict_of(problem)
    if result is None:
        assert is_possible(problem.snapshot, problem.goals)
        return
    assert result.smallest
    assert not is_possible(*with_requirements(problem, result.requirements, result.rows))
    for requirement in result.requirements:
        others = set(result.requirements) - {requirement}
        assert is_possible(*with_requirements(problem, others, result.rows)), requirement
    for row in result.rows:
        fewer = set(result.rows) - {row}
        assert is_possible(*with_requirements(problem, result.requirements, fewer)), row


@pytest.mark.parametrize("seed", [s for s in range(60) if s % 3 == 0])
def test_no_smaller_set_of_rules_conflicts(seed: int) -> None:
    """All sets with one member less are possible, by brute force."""
    problem = tight(seed)
    result = conflict_of(problem)
    if result is None or len(result.requirements) > 3:
        pytest.skip("not infeasible, or too many sets")
    feasibility = Feasibility(problem, all_rows(problem))
    keep_limits(feasibility)
    for fewer in itertools.combinations(feasibility.rules, len(result.requirements) - 1):
        assert is_possible(*with_requirements(problem, fewer, all_rows(problem))), fewer


# ---- words


def three(*rows: Row, **others: Any) -> Problem:
    """Broker 1 drains; brokers 2 and 3 may carry 8.5 of each rate."""
    members = [broker(1, state=DRAINING), broker(2, capacity=10), broker(3, capacity=10)]
    return compile_problem(cluster(members, rows), goals(**others))


def test_a_partition_without_enough_brokers_is_named_with_their_racks() -> None:
    members = [broker(i, rack) for i, rack in enumerate("ab", start=1)]
    members.append(broker(3, "c", DRAINING))
    problem = compile_problem(cluster(members, [Row(replicas=(1, 2, 3))]), goals())
    assert evident(problem) == (
        "orders-0 has 3 replicas; racks a and b have 2 brokers that are not draining; "
        "replication factor 3 cannot be kept",
    )


def test_a_rack_without_a_broker_is_named_however_many_replicas_must_move() -> None:
    members = [broker(i, rack) for i, rack in enumerate("aabb", start=1)]
    counts = [{"count": 1, "constraints": {"rack": rack}} for rack in "xy"]
    placement = {"version": 1, "replicas": counts}
    given_goals = goals(placements=[{"topics": {"exact": [TOPIC]}, "placement": placement}])
    problem = compile_problem(cluster(members, [Row(replicas=(1, 2))]), given_goals)
    (message,) = evident(problem)
    assert "no broker is in rack 'x' (racks: a and b)" in message


def test_identical_partitions_are_reported_once_with_their_count() -> None:
    members = [broker(1, state=DRAINING), broker(2)]
    problem = compile_problem(cluster(members, [Row(replicas=(1, 2))] * 7), goals())
    assert evident(problem) == (
        "orders-0 has 2 replicas; only broker 2 is not draining; replication factor 2 "
        "cannot be kept",
        "and 6 more partitions like these",
    )


def test_a_capacity_conflict_names_partitions_and_brokers() -> None:
    problem = three(*[Row(replicas=(1,), load=(5.0, 5.0))] * 3)
    assert evident(problem) == ()
    assert conflict(problem) == (
        "orders-0 (1 replica), orders-1 (1 replica) and orders-2 (1 replica) have to "
        "be placed; broker 1 is draining; brokers 2 and 3 may be filled to 85 % in "
        "bytes in; these requirements cannot all be met",
    )


def test_a_budget_that_is_too_small_for_a_drain_is_named() -> None:
    problem = three(*[Row(replicas=(1,))] * 8, budgets={"replica_moves": 7})
    assert conflict(problem) == (
        "8 partitions have to be placed; broker 1 is draining; the budget is 7 "
        "replica moves; these requirements cannot all be met",
    )


def test_a_conflict_without_single_rows_is_about_all_partitions() -> None:
    problem = three(Row(replicas=(1,)), budgets={"replica_moves": 0})
    requirements = (
        Requirement(RequirementKind.STATE, 0),
        Requirement(RequirementKind.BUDGET, BUDGETS.index("replica_moves")),
    )
    found = Conflict(requirements=requirements, rows=(), smallest=True)
    assert conflict_text(problem, found) == (
        "all partitions have to be placed; broker 1 is draining; the budget is 0 "
        "replica moves; these requirements cannot all be met",
    )


def test_a_return_window_conflict_names_broker_and_window() -> None:
    members = [broker(1, state=DRAINING), broker(2)]
    snapshot = cluster(members, [Row(replicas=(1,))], recent=[moved(0, 2, 60)])
    assert evident(compile_problem(snapshot, goals())) == (
        "orders-0 has 1 replica; broker 1 is draining; orders-0 left broker 2 less "
        "than 1 h 00 min ago and may not return yet; no broker may hold a replica; "
        "replication factor 1 cannot be kept",
    )


def test_a_placement_that_no_rack_can_keep_is_named() -> None:
    members = [broker(1, "a"), broker(2, "b"), broker(3, "b", DRAINING)]
    snapshot = cluster(members, [Row(replicas=(1, 2))])
    problem = compile_problem(snapshot, goals(**placement({"b": 2})))
    assert evident(problem) == (
        "orders-0 (2 replicas) has to be placed; broker 3 is draining; the placement "
        "of orders asks for 2 in rack b; these requirements cannot all be met",
    )


def test_a_drain_beyond_the_total_capacity_reports_the_totals() -> None:
    members = [broker(1, state=DRAINING), broker(2, capacity=8)]
    snapshot = cluster(members, [Row(replicas=(1,))] * 8)
    (message, *_) = evident(compile_problem(snapshot, goals()))
    assert message == (
        "the brokers that may hold load are allowed 7 B/s of bytes in together, but "
        "they have to carry 8 B/s"
    )


# ---- ways out


def test_a_larger_budget_is_offered_with_the_least_that_is_enough() -> None:
    problem = three(*[Row(replicas=(1,))] * 8, budgets={"replica_moves": 5})
    first, *others = relaxations(problem, Budget(limits=LIMITS))
    assert first == "it would be feasible with a budget of 8 replica moves"
    assert "it would be feasible without draining broker 1" in others
    for moves, possible in ((8, True), (7, False)):
        given_goals = problem.goals.model_copy(update={"budgets": Budgets(replica_moves=moves)})
        again = compile_problem(problem.snapshot, given_goals)
        assert (conflict_of(again) is None) is possible


def test_a_higher_capacity_limit_is_offered_with_the_least_that_is_enough() -> None:
    problem = three(*[Row(replicas=(1,), load=(4.5, 4.5))] * 4)
    first, *_ = relaxations(problem, Budget(limits=LIMITS))
    assert first == (
        "it would be feasible with a capacity limit of 90 % in bytes in (now 85 %) and "
        "with a capacity limit of 90 % in bytes out (now 85 %)"
    )
    for limit, possible in ((0.90, True), (0.89, False)):
        given_goals = problem.goals.model_copy(update={"capacity_limit": limit})
        again = compile_problem(problem.snapshot, given_goals)
        assert (conflict_of(again) is None) is possible


def test_a_broker_is_offered_where_a_rack_lacks_one() -> None:
    members = [broker(1, "a"), broker(2, "b"), broker(3, "b", BrokerState.DEAD)]
    snapshot = cluster(members, [Row(replicas=(2, 3))])
    problem = compile_problem(snapshot, goals(**placement({"b": 2})))
    assert relaxations(problem, Budget(limits=LIMITS)) == (
        "it would be feasible without the placement of orders",
        "it would be feasible with one more broker in rack b",
        "it would be feasible with broker 3 back alive",
    )


def test_no_broker_is_offered_where_a_pin_lists_ids() -> None:
    """An added broker would be in no list of ids."""
    members = [broker(1), broker(2), broker(3)]
    pin = {"topics": {"exact": ("orders",)}, "brokers": (2,)}
    snapshot = cluster(members, [Row(replicas=(1, 3))])
    problem = compile_problem(snapshot, goals(pins=(pin,)))
    assert relaxations(problem, Budget(limits=LIMITS)) == (
        "it would be feasible without the pin of orders on broker 2",
    )


def test_no_budget_is_offered_for_copies_of_unknown_size() -> None:
    members = [broker(1, state=DRAINING), broker(2), broker(3)]
    rows = [Row(replicas=(1,), local_bytes=size) for size in (-1, 300)]
    snapshot = cluster(members, rows, storage=StorageKind.REPLICATED)
    problem = compile_problem(snapshot, goals(budgets={"bytes": 100}))
    assert relaxations(problem, Budget(limits=LIMITS)) == (
        "it would be feasible without draining broker 1",
    )
    assert conflict(problem) == (
        "orders-0 (1 replica) has to be placed; broker 1 is draining; the budget is 100 B to "
        "copy; the size of orders-0 is unknown; these requirements cannot all be met",
    )


def test_a_failed_log_directory_is_named_not_its_broker_that_is_alive() -> None:
    dirs = (LogDir(path="/a", failed=True), LogDir(path="/b"))
    members = [broker(1).model_copy(update={"log_dirs": dirs}), broker(2), broker(3)]
    rows = [Row(replicas=(1, 2), local_bytes=-1)]
    snapshot = cluster(members, rows, storage=StorageKind.REPLICATED)
    held = replace(snapshot.partitions, replica_dir=np.array([0, -1], np.int64))
    problem = compile_problem(replace(snapshot, partitions=held), goals(budgets={"bytes": 100}))
    assert conflict(problem) == (
        "orders-0 (2 replicas) has to be placed; a log directory of broker 1 has failed; "
        "the budget is 100 B to copy; the size of orders-0 is unknown; "
        "these requirements cannot all be met",
    )
    assert relaxations(problem, Budget(limits=LIMITS)) == (
        "it would be feasible with the failed log directory of broker 1 working again",
    )


def overlapping(seed: int) -> Problem:
    """A cluster in which several placements match the same topic, the first binds."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 5))
    states = [STATES[s] for s in rng.choice(3, size, p=[0.7, 0.2, 0.1]).tolist()]
    members = [broker(i + 1, "ab"[i % 2], state) for i, state in enumerate(states)]
    rows = []
    for topic in (TOPIC, TOPIC, OTHER):
        replicas = tuple((rng.permutation(size)[:2] + 1).tolist())
        rows.append(Row(replicas=replicas, topic=topic))
    counts = ({"a": 2}, {"b": 2}, {"a": 1, "b": 1}, {"c": 2}, {"a": 3})
    rules = []
    for _ in range(int(rng.integers(2, 4))):
        topics = ((TOPIC,), (OTHER,), (TOPIC, OTHER))[int(rng.integers(0, 3))]
        chosen = counts[int(rng.integers(0, len(counts)))]
        (rule,) = placement(chosen)["placements"]
        rules.append({**rule, "topics": {"exact": topics}})
    rack_rule = str(rng.choice(["spread", "even", "off"]))
    given_goals = goals(placements=tuple(rules), rack_rule=rack_rule)
    return compile_problem(cluster(members, rows), given_goals)


def each_is_possible(snapshot: Snapshot, given_goals: Goals) -> bool:
    """Whether all rows have a placement, where none depends on another row's."""
    rows = range(len(snapshot))
    return all(is_possible(_rows_alone(snapshot, [row]), given_goals) for row in rows)


@pytest.mark.parametrize("seed", range(40))
def test_advice_on_overlapping_placements_makes_a_plan_possible(seed: int) -> None:
    """The next placement binds, or the rack rule, once one is dropped."""
    problem = overlapping(seed)
    possible = each_is_possible(problem.snapshot, problem.goals)
    ways = cheapest_changes(problem, Budget(limits=LIMITS))
    assert bool(ways) is not possible
    for way in ways:
        snapshot, given_goals = taken(problem, way)
        assert each_is_possible(snapshot, given_goals), way
        assert solve(snapshot, given_goals, LIMITS).status is not PlanStatus.INFEASIBLE


@pytest.mark.parametrize("seed", range(120))
def test_advice_makes_a_plan_possible(seed: int) -> None:
    """Every alternative is applied as an operator would, and checked by enumeration."""
    problem = tight(seed, racks="abc"[: 2 + seed % 2])
    for way in cheapest_changes(problem, Budget(limits=LIMITS)):
        snapshot, given_goals = taken(problem, way)
        assert is_possible(snapshot, given_goals), way
        again = compile_problem(snapshot, given_goals)
        assert conflict_of(again) is None, way


def taken(problem: Problem, way: Iterable[RuleChange]) -> tuple[Snapshot, Goals]:
    """The cluster and the goals after all changes of an alternative."""
    every = {
        *(Requirement(kind, at) for kind in RequirementKind for at in range(len(BUDGETS))),
        *(Requirement(RequirementKind.CAPACITY, b, r) for b in range(9) for r in range(9)),
    }
    given_up = {s.requirement for s in way if s.limit is None}
    snapshot = _brokers(problem, every - given_up)
    given_goals = _goals(problem, every - given_up)
    for step in way:
        if step.limit is not None:
            given_goals = _raised(problem, given_goals, step.requirement, step.limit)
        elif step.requirement.kind is RequirementKind.NEW_BROKER:
            snapshot = _extended(problem, snapshot, step.requirement.at)
    return snapshot, given_goals


def _raised(problem: Problem, given_goals: Goals, requirement: Requirement, limit: int) -> Goals:
    if requirement.kind is RequirementKind.REPLICA_LIMIT:
        return given_goals.model_copy(update={"replicas_per_broker": limit})
    if requirement.kind is RequirementKind.BUDGET:
        budgets = given_goals.budgets.model_copy(update={BUDGETS[requirement.at]: limit})
        return given_goals.model_copy(update={"budgets": budgets})
    resource = problem.snapshot.header.resources[requirement.part]
    limits = {**given_goals.capacity_limits, resource: limit / 100}
    return given_goals.model_copy(update={"capacity_limits": limits})


def _extended(problem: Problem, snapshot: Snapshot, rack: int) -> Snapshot:
    """Add a broker with the least capacity of the present ones."""
    members = snapshot.header.brokers
    capacity = {
        r: min(b.capacity[r] for b in members)
        for r in snapshot.header.resources
        if all(r in b.capacity for b in members)
    }
    name = problem.may.spreading.racks[rack]
    added = broker(len(members) + 1, name).model_copy(update={"capacity": capacity})
    header = snapshot.header.model_copy(update={"brokers": (*members, added)})
    return Snapshot(header, snapshot.partitions)


def test_a_feasible_problem_has_neither_conflict_nor_advice() -> None:
    problem = three(*[Row(replicas=(1,))] * 8)
    assert conflict_of(problem) is None
    assert relaxations(problem, Budget(limits=LIMITS)) == ()


def test_a_large_cluster_is_judged_by_the_rows_that_must_move() -> None:
    """The others are pooled into one divisible load, so the conflict is still real."""
    members = [broker(1, state=DRAINING), *(broker(i, capacity=100) for i in range(2, 13))]
    rows = [Row(replicas=(i % 11 + 2,), load=(0.4, 0.1)) for i in range(2000)]
    rows += [Row(replicas=(1,), load=(50.0, 1.0))] * 5
    problem = compile_problem(cluster(members, rows), goals())
    assert modelled_rows(problem) == [2000, 2001, 2002, 2003, 2004]
    (message,) = conflict(problem)
    assert message.startswith("orders-2000 (1 replica)")
    assert "may be filled to 85 % in bytes in" in message


def test_load_that_stays_on_a_dead_broker_needs_no_capacity() -> None:
    """Brokers 2 and 3 may carry 18.5 B/s; of all 20 B/s, broker 1 keeps 6."""
    members = [
        broker(1, state=BrokerState.DEAD, capacity=10.0),
        broker(2, capacity=10.0),
        broker(3, capacity=10.0),
    ]
    rows = [
        Row(replicas=(1, 2), leader=2, load=(6.0, 0.1)),
        Row(replicas=(1, 2), leader=2, load=(4.0, 0.1), topic=OTHER),
    ]
    stay = [{"topic": TOPIC, "partitions": [0]}]
    state = cluster(members, rows)
    given_goals = goals(1e-4, deferred=stay)
    assert least(state, given_goals) is not None
    assert solve(state, given_goals, SolveLimits(work=1.0)).best is not None


def test_a_leader_that_has_to_change_is_named_with_its_broker() -> None:
    members = [broker(1), broker(2, state=BrokerState.DEMOTED)]
    budget = {"leader_changes": 0}
    problem = compile_problem(cluster(members, [Row(replicas=(2, 1))]), goals(budgets=budget))
    (message,) = conflict(problem)
    assert "broker 2 is demoted; the budget is 0 leader changes" in message
