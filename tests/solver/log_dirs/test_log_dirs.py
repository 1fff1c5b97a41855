"""Log directories, compared with every possible choice and the evaluator."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.evaluate import evaluate_proposal
from model.goals.goals import MIB, Goal, Goals, ObjectiveKind, SolveLimits
from model.ids import BrokerId
from model.names import Names
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    LogDir,
    RecentMove,
    Resource,
    Snapshot,
    StorageKind,
)
from solver.budget import Budget
from solver.log_dirs.balance import DirectoryAssignment, balance_directories
from solver.problem.placement import Placement, change_cost
from solver.problem.problem import Problem, compile_problem
from solver.solve import solve
from tests.support.model.clusters import TAKEN_AT_MS, TOPIC, brokers, ids, wide

pytestmark = pytest.mark.search

DISK = Goal(resource=Resource.DISK, floor=0.0)
CHEAP = Goals(balance=(DISK,), move_price=0.001, level_directories=True)
PATHS = ("/a", "/b", "/c")
NO_WORK = SolveLimits(work=1e-9)
"""Moves and swaps alone."""

NOTHING_TO_DO = DirectoryAssignment(chosen={}, gain={}, reason={})


def jbod(
    replicas: Sequence[Sequence[tuple[int, int]]],
    sizes: Sequence[int],
    *,
    count: int = 2,
    brokers_: int = 2,
    capacity: Sequence[float | None] | None = None,
    cordoned: Sequence[int] = (),
    states: dict[int, BrokerState] | None = None,
    storage: StorageKind = StorageKind.REPLICATED,
) -> Snapshot:
    """Partitions as lists of (broker, directory), with as many directories on each."""
    known = capacity or [None] * count
    listed = tuple(
        LogDir(path=PATHS[j], capacity_bytes=known[j], cordoned=j in cordoned) for j in range(count)
    )
    members: list[Broker] = [
        b.model_copy(update={"log_dirs": listed}) for b in brokers(brokers_, states=states)
    ]
    state = wide(
        members,
        [tuple(b for b, _ in row) for row in replicas],
        {Resource.DISK: [float(max(0, s)) for s in sizes]},
        dirs=[[d for _, d in row] for row in replicas],
        storage=storage,
    )
    size = np.array(sizes, np.int64)
    columns = dataclasses.replace(state.partitions, local_bytes=size, size_bytes=size)
    return Snapshot(state.header, columns)


def on_one_broker(*replicas: tuple[int, int], **others: object) -> Snapshot:
    """Partitions of broker 1 alone, as (directory, bytes)."""
    places = [[(1, directory)] for directory, _ in replicas]
    sizes = [size for _, size in replicas]
    return jbod(places, sizes, brokers_=1, **others)  # type: ignore[arg-type]


def solved(
    state: Snapshot, goals: Goals = CHEAP, limits: SolveLimits | None = None
) -> DirectoryAssignment:
    """The directories where no replica leaves its broker."""
    problem = compile_problem(state, goals)
    return assigned(problem, Placement.home(problem), limits)


def assigned(
    problem: Problem, placement: Placement, limits: SolveLimits | None = None
) -> DirectoryAssignment:
    return balance_directories(problem, placement, Budget(limits=limits or SolveLimits()))


def filled(state: Snapshot, result: DirectoryAssignment, broker: int = 1) -> list[int]:
    """Bytes in each directory of a broker that no replica leaves, after the plan."""
    member = BrokerId(broker)
    used = {d.path: 0 for d in state.broker[member].log_dirs}
    for row in range(len(state)):
        replicas, path = state.replicas(row), result.chosen.get(row, {}).get(member)
        if path is None and member in replicas:
            path = state.log_dirs(row)[member]
        if path is not None:
            used[path] += int(state.partitions.local_bytes[row])
    return list(used.values())


def sent(problem: Problem, *moves: tuple[int, int, int]) -> Placement:
    """Row, broker left and broker reached, as ids."""
    replicas, leader = problem.replicas.copy(), problem.leader.copy()
    for row, left, reached in moves:
        source, target = (problem.brokers.index(BrokerId(b)) for b in (left, reached))
        replicas[row][replicas[row] == source] = target
        leader[row] = target if leader[row] == source else leader[row]
    return Placement(replicas=replicas, leader=leader)


def proposal_of(problem: Problem, placement: Placement, result: DirectoryAssignment) -> Proposal:
    """The proposal of a placement and its directories, for the evaluator."""
    changes = []
    for row in range(len(problem.leader)):
        replicas = placement.replicas[row]
        after = tuple(problem.brokers[b] for b in replicas[replicas >= 0].tolist())
        leader = problem.brokers[int(placement.leader[row])]
        log_dirs = result.log_dirs(row, after)
        before = problem.snapshot.replicas(row)
        if log_dirs or (set(after), leader) != (
            set(before),
            problem.snapshot.partitions.leader[row],
        ):
            changes.append(Change(row, after, leader, log_dirs))
    return Proposal(problem.snapshot, problem.goals, tuple(changes))


# ---- what is chosen


def test_a_full_directory_is_relieved() -> None:
    state = on_one_broker((0, 60), (0, 40))
    result = solved(state)
    assert result.chosen == {1: {1: "/b"}}
    assert filled(state, result) == [60, 40]
    assert result.cost_before == pytest.approx(2.0)
    assert result.cost == pytest.approx(2 * 0.2**2)


def test_a_change_that_gains_less_than_its_price_is_not_made() -> None:
    state = on_one_broker((0, 60), (0, 40))
    expensive = CHEAP.model_copy(update={"move_price": 10.0})
    result = solved(state, expensive)
    assert result.chosen == {}
    assert result.cost == result.cost_before == pytest.approx(result.bound)


def test_a_balanced_broker_keeps_its_directories() -> None:
    assert solved(on_one_broker((0, 50), (1, 50))).chosen == {}


def test_directories_are_filled_as_their_capacity_is() -> None:
    """Three quarters belong into the directory that is three times as large."""
    state = on_one_broker(*[(0, 10)] * 8, capacity=[300.0, 900.0])
    assert filled(state, solved(state)) == [20, 60]


def test_directories_of_unknown_capacity_count_as_equal() -> None:
    state = on_one_broker(*[(0, 10)] * 8, capacity=[300.0, None])
    assert filled(state, solved(state)) == [40, 40]


def test_a_directory_is_not_filled_beyond_its_limit() -> None:
    """85 % of 30 bytes hold 25; balance alone would put 40 there."""
    state = on_one_broker(*[(0, 10)] * 8, capacity=[None, 30.0])
    assert filled(state, solved(state)) == [60, 20]


def test_a_cordoned_directory_takes_nothing_new() -> None:
    state = on_one_broker(*[(0, 10)] * 8, (1, 10), cordoned=[1])
    assert solved(state).chosen == {}


def test_a_cordoned_directory_may_be_relieved() -> None:
    state = on_one_broker(*[(1, 10)] * 8, cordoned=[1])
    assert filled(state, solved(state)) == [40, 40]


def test_a_swap_is_found_where_no_move_helps() -> None:
    """55 and 45 become 50 and 50 by two changes alone."""
    state = on_one_broker((0, 30), (0, 25), (1, 25), (1, 20))
    for limits in (NO_WORK, SolveLimits()):
        result = solved(state, limits=limits)
        assert filled(state, result) == [50, 50]
        assert len(result.chosen) == 2


def test_brokers_are_balanced_independently() -> None:
    state = jbod([[(1, 0), (2, 1)], [(1, 0), (2, 1)]], [50, 50])
    result = solved(state)
    assert sorted(b for chosen in result.chosen.values() for b in chosen) == [1, 2]
    assert filled(state, result, 1) == filled(state, result, 2) == [50, 50]


# ---- what stays


def test_excluded_topics_keep_their_directories() -> None:
    goals = CHEAP.model_copy(update={"excluded_topics": Names(exact=(TOPIC,))})
    assert solved(on_one_broker((0, 60), (0, 40)), goals).chosen == {}


def test_a_replica_in_cooldown_keeps_its_directory() -> None:
    state = on_one_broker((0, 50), (0, 50))
    in_cooldown = RecentMove(topic=TOPIC, partition=0, left=(), at_ms=TAKEN_AT_MS)
    header = state.header.model_copy(update={"recent_moves": (in_cooldown,)})
    assert list(solved(Snapshot(header, state.partitions)).chosen) == [1]


def test_shared_storage_has_no_directories() -> None:
    state = on_one_broker((0, 60), (0, 40), storage=StorageKind.SHARED)
    assert solved(state).chosen == {}


def test_local_segments_of_tiered_topics_are_balanced() -> None:
    state = on_one_broker((0, 60), (0, 40), storage=StorageKind.TIERED)
    assert len(solved(state).chosen) == 1


def test_replicas_of_unknown_directory_or_size_are_not_assigned() -> None:
    state = on_one_broker((-1, 60), (0, -1), (0, 40), (0, 40))
    result = solved(state)
    assert list(result.chosen) in ([2], [3])


@pytest.mark.parametrize(
    "state", [BrokerState.SLOW, BrokerState.CORDONED, BrokerState.EXCLUDED, BrokerState.DEAD]
)
def test_brokers_that_take_no_load_are_left_alone(state: BrokerState) -> None:
    replicas = [[(1, 0), (2, 0)], [(1, 0), (2, 0)]]
    result = solved(jbod(replicas, [50, 50], states={1: state}))
    assert {b for chosen in result.chosen.values() for b in chosen} == {2}


def test_a_single_directory_leaves_no_choice() -> None:
    assert solved(on_one_broker((0, 60), (0, 40), count=1)) == NOTHING_TO_DO


def test_a_snapshot_without_directories_is_left_alone() -> None:
    bare = wide(brokers(2), [(1, 2)], {Resource.DISK: [1.0]})
    assert solved(bare) == NOTHING_TO_DO


def test_a_broker_under_the_floor_of_disks_is_left_alone() -> None:
    """The goal's floor is of a broker's bytes, here those of all its directories."""
    state = on_one_broker((0, 60), (0, 40))
    goal = DISK.model_copy(update={"floor": 101.0})
    result = solved(state, CHEAP.model_copy(update={"balance": (goal,)}))
    assert (result.chosen, result.cost_before, result.cost) == ({}, 0.0, 0.0)


def test_an_empty_cluster_has_nothing_to_balance() -> None:
    assert solved(jbod([], [])) == NOTHING_TO_DO


# ---- what arrives


def test_an_arrival_goes_where_there_is_least() -> None:
    """At no extra cost: it is already charged as a new replica."""
    state = jbod([[(1, 0)], [(1, 0)], [(2, 1)]], [50, 50, 50])
    problem = compile_problem(state, CHEAP)
    result = assigned(problem, sent(problem, (0, 1, 2)))
    assert result.chosen[0] == {2: "/a"}
    assert result.log_dirs(0, ids(2)) == ("/a",)


def test_a_plan_names_directories_in_the_order_of_its_replicas() -> None:
    state = jbod([[(1, 0), (2, 0)], [(3, 1)]], [50, 50], brokers_=3)
    problem = compile_problem(state, CHEAP)
    result = assigned(problem, sent(problem, (0, 2, 3)))
    assert result.log_dirs(0, ids(3, 1)) == ("/a", "any")
    assert result.log_dirs(0, ids(1, 3)) == ("any", "/a")
    assert result.log_dirs(1, ids(3)) == ()


def test_a_plan_has_directories_before_and_after() -> None:
    state = jbod([[(2, 0), (1, 1)], [(2, 1), (1, 1)]], [50, 50])
    best = solve(state, CHEAP, SolveLimits()).best
    assert best is not None
    (result,) = best.moves
    assert result.replicas_before == result.replicas_after == ids(2, 1)
    assert result.log_dirs_before == ("/b" if result.partition else "/a", "/b")
    assert result.log_dirs_after == ("any", "/a")


def test_replicas_that_stay_make_room_for_one_that_arrives() -> None:
    """Each directory may hold 100; the 80 fit only if both 40 share one."""
    full = [120.0, 120.0]
    state = jbod([[(1, 0)], [(1, 1)], [(2, 0)]], [40, 40, 80], capacity=full)
    problem = compile_problem(state, CHEAP)
    result = assigned(problem, sent(problem, (2, 2, 1)))
    assert filled(state, result) == [80, 80]


def test_an_arrival_that_fits_nowhere_is_left_to_the_broker() -> None:
    full = [50.0, 50.0]
    state = jbod([[(1, 0)], [(1, 1)], [(2, 0)]], [10, 10, 80], capacity=full)
    problem = compile_problem(state, CHEAP)
    result = assigned(problem, sent(problem, (2, 2, 1)))
    assert 2 not in result.chosen


def test_a_broker_whose_only_arrival_fits_nowhere_costs_nothing() -> None:
    """What remains is the cost of broker 1, of whose directories one is empty."""
    state = jbod([[(1, 0)], [(1, 1)]], [80, 80], capacity=[50.0, 50.0])
    problem = compile_problem(state, CHEAP)
    result = assigned(problem, sent(problem, (0, 1, 2)))
    assert (result.chosen, result.cost) == ({}, 2.0)


def test_an_arrival_does_not_go_into_a_cordoned_directory() -> None:
    state = jbod([[(1, 0)], [(2, 0)]], [10, 10], cordoned=[1])
    problem = compile_problem(state, CHEAP)
    result = assigned(problem, sent(problem, (0, 1, 2)))
    assert result.chosen[0] == {2: "/a"}


# ---- what it is worth


def test_a_gain_is_what_staying_would_cost() -> None:
    result = solved(on_one_broker((0, 60), (0, 40)))
    whole = result.cost_before - result.cost - result.price
    assert result.gain == {1: pytest.approx(whole)}


def test_a_reason_names_both_directories() -> None:
    assert solved(on_one_broker((0, 60), (0, 40))).reason == {
        1: "relieves /a of broker 1 (disk 100 % over its level); /b is 100 % under its level"
    }


def test_under_a_band_it_is_enough_to_reach_it() -> None:
    """46 and 54 lie within 10 % of 50: the change of 46 and no more."""
    band = CHEAP.model_copy(update={"objective": ObjectiveKind.BAND})
    result = solved(on_one_broker((0, 44), (0, 10), (0, 46)), band)
    assert (len(result.chosen), result.cost) == (1, 0.0)
    assert result.price == pytest.approx(result.bound)


def test_without_search_budget_moves_and_swaps_remain() -> None:
    state = crowd(3, 40)
    few, more = solved(state, limits=NO_WORK), solved(state)
    assert more.cost + more.price <= few.cost + few.price < few.cost_before


def test_equal_input_gives_equal_directories() -> None:
    state = crowd(5, 60)
    assert solved(state) == solved(state)


def test_many_replicas_are_balanced_close_to_the_bound() -> None:
    """3,000 replicas on each broker: no exact model, a bound from prices."""
    cheap = CHEAP.model_copy(update={"move_price": 1e-5})
    result = solved(crowd(11, 3_000), cheap)
    assert result.cost + result.price <= 1.02 * result.bound
    assert result.cost < 0.01 * result.cost_before


def crowd(seed: int, partitions: int) -> Snapshot:
    """Two brokers of three directories, the first of them too full."""
    rng = np.random.default_rng(seed)
    sizes = (rng.lognormal(0.0, 1.0, partitions) * MIB).astype(np.int64)
    dirs = np.maximum(0, rng.integers(-1, 3, (partitions, 2))).tolist()
    replicas = [[(1, a), (2, b)] for a, b in dirs]
    return jbod(replicas, sizes.tolist(), count=3)


# ---- against every choice, and the plain rules


class Case(NamedTuple):
    """A problem and a placement of its replicas."""

    problem: Problem
    placement: Placement


@st.composite
def tiny(draw: st.DrawFn) -> Case:
    """Up to 5 partitions on 2 brokers of 2 or 3 directories; some change broker."""
    count = draw(st.integers(2, 3))
    place = st.tuples(st.sampled_from([1, 2]), st.integers(-1, count - 1))
    drawn_replicas = draw(st.lists(place, min_size=1, max_size=5))
    sizes = draw(
        st.lists(st.integers(-1, 20), min_size=len(drawn_replicas), max_size=len(drawn_replicas))
    )
    known = st.one_of(st.none(), st.integers(5, 60).map(float))
    state = jbod(
        [[h] for h in drawn_replicas],
        sizes,
        count=count,
        capacity=draw(st.lists(known, min_size=count, max_size=count)),
        cordoned=draw(st.lists(st.integers(0, count - 1), max_size=1)),
    )
    moved = draw(st.lists(st.sampled_from(range(len(drawn_replicas))), unique=True, max_size=2))
    goals = CHEAP.model_copy(
        update={
            "objective": draw(st.sampled_from(list(ObjectiveKind))),
            "move_price": draw(st.sampled_from([0.001, 0.1, 1.0])),
        }
    )
    problem = compile_problem(state, goals)
    moves = ((r, drawn_replicas[r][0], 3 - drawn_replicas[r][0]) for r in sorted(moved))
    return Case(problem, sent(problem, *moves))


@settings(max_examples=25, deadline=None)
@given(tiny())
def test_directories_are_optimal(case: Case) -> None:
    """The rules of `model` allow them, and no other choice is better."""
    result = assigned(*case)
    value = result.cost + result.price
    proposal = proposal_of(*case, result)
    assert directory_words(proposal) == []
    assert value == pytest.approx(plain_objective(proposal))
    assert result.bound <= value + 1e-9
    least = min(plain_objective(p) for p in choices(proposal, result))
    assert value == pytest.approx(least, rel=2e-4, abs=2e-6)


@settings(max_examples=25, deadline=None)
@given(tiny())
def test_gains_are_what_each_row_would_cost_if_it_stayed(case: Case) -> None:
    result = assigned(*case, NO_WORK)
    proposal = proposal_of(*case, result)
    value = plain_objective(proposal)
    assert sorted(result.gain) == sorted(proposal.changed)
    for row, gain in result.gain.items():
        others = tuple(c for c in proposal.changes if c.row != row)
        without = plain_objective(Proposal(proposal.snapshot, proposal.goals, others))
        assert gain == pytest.approx(without - value, abs=1e-9 + 1e-12 * without)


@settings(max_examples=25, deadline=None)
@given(tiny())
def test_costs_agree_with_the_evaluator(case: Case) -> None:
    result = assigned(*case)
    evaluation = evaluate_proposal(proposal_of(*case, result))
    expected = change_cost(*case) + result.price
    assert evaluation.prices == pytest.approx(expected)


def directory_words(proposal: Proposal) -> list[str]:
    violations = evaluate_proposal(proposal).violations
    return [v.words for v in violations if v.rule == "log directories"]


def choices(proposal: Proposal, result: DirectoryAssignment) -> Iterator[Proposal]:
    """Every choice of directories that `model` allows for the given brokers.

    Arrivals of known size are assigned a directory, but for those that found none.
    """
    state = proposal.snapshot
    rows = range(len(state))
    for picked in itertools.product(*(_assigned(proposal, result, row) for row in rows)):
        changes = []
        for row, path in zip(rows, picked, strict=True):
            moved = proposal.changed.get(row)
            (broker,) = moved.replicas if moved else state.replicas(row)
            if path is not None:
                changes.append(Change(row, (broker,), broker, (path,)))
            elif broker not in state.replicas(row):
                changes.append(Change(row, (broker,), broker))
        chosen = Proposal(state, proposal.goals, tuple(changes))
        if not directory_words(chosen):
            yield chosen


def _assigned(proposal: Proposal, result: DirectoryAssignment, row: int) -> list[str | None]:
    state = proposal.snapshot
    moved = proposal.changed.get(row)
    (before,) = state.replicas(row)
    stays = moved is None or moved.replicas == (before,)
    broker = before if stays else moved.replicas[0]  # type: ignore[union-attr]
    known = int(state.partitions.local_bytes[row]) > 0
    paths: list[str | None] = [d.path for d in state.broker[broker].log_dirs]
    if stays:
        return [None, *paths] if known and state.log_dirs(row)[before] else [None]
    return paths if known and row in result.chosen else [None]


def plain_objective(proposal: Proposal) -> float:
    """Cost of all directories and price of the changes, worked out from objects."""
    state, goals = proposal.snapshot, proposal.goals
    used = {b.id: dict.fromkeys((d.path for d in b.log_dirs), 0.0) for b in state.header.brokers}
    for row in range(len(state)):
        moved = proposal.changed.get(row)
        (broker,) = moved.replicas if moved else state.replicas(row)
        path = state.log_dirs(row).get(broker)
        if moved and moved.log_dirs not in ((), ("any",)):
            (path,) = moved.log_dirs
        if path is not None:
            used[broker][path] += max(0, int(state.partitions.local_bytes[row]))
    cost = sum(_uneven(b, used[b.id], goals) for b in state.header.brokers)
    of_change = [c for c in proposal.changes if c.replicas == state.replicas(c.row)]
    paid = evaluate_proposal(Proposal(state, goals, tuple(of_change))).prices
    return cost + paid


def _uneven(broker: Broker, used: dict[str, float], goals: Goals) -> float:
    capacity = [d.capacity_bytes for d in broker.log_dirs]
    known = [1.0 if None in capacity else float(c or 0) for c in capacity]
    total = sum(used.values())
    if total <= 0:
        return 0.0
    level = total / sum(known)
    where = [u / c / level - 1 for u, c in zip(used.values(), known, strict=True)]
    if goals.objective is ObjectiveKind.VARIANCE:
        return sum(v * v for v in where)
    over = sum(max(0.0, abs(v) - DISK.tolerance) for v in where)
    return goals.excess_price * (goals.move_price or 1.0) * over
