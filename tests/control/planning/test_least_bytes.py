"""Bounds on copied bytes hold for every plan: all plans of tiny clusters are enumerated."""

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from control.planning.disk_request import plan_disk_removal, plan_healing
from control.planning.least_bytes import (
    bound_sentence,
    least_added,
    least_moved,
    least_outside,
    least_repair,
)
from control.planning.repair_request import plan_repair
from control.planning.replication_request import least_replication, plan_replication
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.plan import Plan
from model.plan.proposal import Proposal
from model.snapshot.snapshot import Resource, Snapshot
from solver.report.result import Result
from solver.solve import solve
from tests.support.control.simulated_disks import DIRS, SimulatedDisks
from tests.support.control.simulated_tasks import MB, TOPIC

SEEDS = range(25)
RACKS = "abca"
BROKERS = (1, 2, 3, 4)
LIMIT = 0.5
HALF_FULL = Goals(capacity_limits={Resource.DISK: LIMIT})


def find(snapshot: Snapshot, goals: Goals) -> Result:
    return solve(snapshot, goals, SolveLimits(work=1.0))


def site(
    folder: Path, seed: int, partitions: int = 4, capacity: float | None = None
) -> SimulatedDisks:
    """Four brokers with three directories, and replicas of random sizes anywhere."""
    dice = random.Random(seed)
    places = [tuple(dice.sample(BROKERS, dice.choice((1, 2, 2, 3)))) for _ in range(partitions)]
    lies = {(n, b): dice.choice(DIRS) for n, place in enumerate(places) for b in place}
    found = SimulatedDisks(folder=folder, places=places, lies=lies, racks=RACKS, capacity=capacity)
    for partition in found.cluster.partitions.values():
        partition.log_bytes = dice.choice((5, 10, 20, 35)) * MB
        for broker in partition.held:
            partition.held[broker] = partition.log_bytes
    return found


def size(snapshot: Snapshot, row: int) -> int:
    return int(snapshot.partitions.local_bytes[row])


# ---- directories


def ways_to_empty(at: SimulatedDisks, snapshot: Snapshot, path: str) -> Iterator[tuple[int, int]]:
    """Bytes copied in all, and to other brokers, of every way to empty a directory of broker 1."""
    held = {n: where for where, numbers in at.where(1).items() for n in numbers}
    assert at.capacity is not None
    used = {d: sum(size(snapshot, n) for n in held if held[n] == d) for d in DIRS}
    most = {d: max(used[d], LIMIT * at.capacity) for d in DIRS} | {path: 0}
    for chosen in itertools.product((*DIRS, ""), repeat=len(held)):
        new = dict(zip(held, chosen, strict=True))
        after = {d: sum(size(snapshot, n) for n in new if new[n] == d) for d in DIRS}
        if all(after[d] <= most[d] for d in DIRS):
            moved = sum(size(snapshot, n) for n in new if new[n] != held[n])
            yield moved, sum(size(snapshot, n) for n in new if not new[n])


@pytest.mark.parametrize("seed", SEEDS)
def test_no_way_to_empty_a_directory_copies_less(tmp_path: Path, seed: int) -> None:
    at = site(tmp_path, seed, partitions=6, capacity=random.Random(seed).choice((40, 80, 120)) * MB)
    snapshot = at.snapshot()
    path = random.Random(seed).choice(DIRS)
    moved = least_moved(snapshot, BrokerId(1), [path])
    outside = least_outside(snapshot, HALF_FULL, BrokerId(1), [path])
    assert moved is not None
    assert outside is not None
    found = list(ways_to_empty(at, snapshot, path))
    assert min(total for total, _ in found) >= moved
    assert min(out for _, out in found) >= outside
    # Whoever moves everything to other brokers copies each replica once.
    assert min(total for total, _ in found) == moved


def test_the_bound_to_other_brokers_is_met_where_replicas_fit_exactly(tmp_path: Path) -> None:
    """Three replicas of 20 MB, and two directories with room for one each."""
    lies = {(0, 1): "/a", (1, 1): "/a", (2, 1): "/a"}
    at = SimulatedDisks(folder=tmp_path, places=[(1, 2)] * 3, lies=lies, capacity=40 * MB)
    snapshot = at.snapshot()
    assert least_outside(snapshot, HALF_FULL, BrokerId(1), ["/a"]) == 20 * MB
    assert least_outside(snapshot, HALF_FULL, BrokerId(1), ["/a"], ["/b"]) == 40 * MB
    at.capacity = None
    assert least_outside(at.snapshot(), HALF_FULL, BrokerId(1), ["/a"]) == 0


def test_plans_name_how_far_they_are_from_the_fewest_bytes(tmp_path: Path) -> None:
    lies = {(0, 1): "/a", (1, 1): "/a", (2, 1): "/b"}
    at = SimulatedDisks(
        folder=tmp_path, places=[(1, 2), (1, 3), (1, 2)], lies=lies, capacity=60 * MB
    )
    found = plan_disk_removal(at.snapshot(), HALF_FULL, find, BrokerId(1), ["/a"])
    assert found is not None
    assert (found.inside, found.outside) == (1, 1)
    assert (found.least_bytes, found.least_outside) == (40 * MB, 0)
    assert found.bounds == ("no plan empties /a of broker 1 with fewer bytes",)
    lies = {(n, 1): "/a" for n in range(3)}
    at = SimulatedDisks(folder=tmp_path, places=[(1, 2)] * 3, lies=lies, capacity=50 * MB)
    found = plan_disk_removal(at.snapshot(), HALF_FULL, find, BrokerId(1), ["/a"])
    assert found is not None
    assert (found.outside, found.least_outside) == (1, 10 * MB)
    assert found.bounds[1] == (
        "no plan empties /a of broker 1 with fewer than 10.0 MB to other brokers"
    )
    assert bound_sentence("does so", None, 1) == bound_sentence("does so", 1, None) == ""


# ---- replication factors, repairs


def fewest_new(
    snapshot: Snapshot, row: int, replicas: int, barred: Sequence[int], *, racks: bool
) -> int:
    """The fewest new replicas of a row over all sets of brokers that may hold it."""
    usable = [b for b in BROKERS if b not in barred]
    before = {*snapshot.replicas(row)}
    most = min(replicas, len({RACKS[b - 1] for b in usable}))
    return min(
        len({*held} - before)
        for held in itertools.combinations(usable, replicas)
        if not racks or len({RACKS[b - 1] for b in held}) >= most
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_plan_adds_replicas_with_fewer_bytes(tmp_path: Path, seed: int) -> None:
    snapshot = site(tmp_path, seed).snapshot()
    for replicas in (1, 2, 3, 4):
        wanted = dict.fromkeys(range(len(snapshot)), replicas)
        fewest = [fewest_new(snapshot, row, replicas, (), racks=False) for row in wanted]
        bytes_ = sum(new * size(snapshot, row) for row, new in enumerate(fewest))
        assert least_added(snapshot, wanted) == bytes_


@pytest.mark.parametrize("seed", range(4))
def test_plans_of_other_replication_factors_copy_as_little_as_possible(
    tmp_path: Path, seed: int
) -> None:
    snapshot = site(tmp_path, seed).snapshot()
    most = int(snapshot.replica_counts.max())
    plan = plan_replication(snapshot, Goals(), SolveLimits(), {TOPIC: most})
    assert plan is not None
    assert plan.bytes_to_copy == least_replication(snapshot, [TOPIC], most)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_repair_copies_less(tmp_path: Path, seed: int) -> None:
    """After it, no replica is on broker 4, and all are spread over racks."""
    at = site(tmp_path, seed)
    at.cluster.kill(BrokerId(4))
    snapshot = at.snapshot()
    before = Proposal(snapshot, Goals(), ())
    racks = [
        row
        for row in range(len(snapshot))
        if len({RACKS[b - 1] for b in snapshot.replicas(row) if b != 4})
        < min(len(snapshot.replicas(row)), 3)
        and 4 not in snapshot.replicas(row)
    ]
    least = least_repair(snapshot, before.forced.replicas, racks)
    mine = [*racks, *np.flatnonzero(before.forced.replicas).tolist()]
    fewest = sum(
        size(snapshot, row)
        * fewest_new(snapshot, row, len(snapshot.replicas(row)), (4,), racks=True)
        for row in mine
    )
    assert least is not None
    assert least <= fewest


@pytest.mark.parametrize("seed", range(4))
def test_repairs_and_healing_copy_no_less_than_their_bounds(tmp_path: Path, seed: int) -> None:
    at = site(tmp_path, seed)
    at.cluster.fail_dir(BrokerId(1), "/a")
    healed = plan_healing(at.snapshot(), Goals(), find, [BrokerId(1)])
    repaired = plan_repair(at.snapshot(), Goals(), find)
    if healed is not None:
        _check(healed.plan, healed.least_bytes, healed.bounds)
    if repaired is not None:
        _check(repaired.plan, repaired.least_bytes, repaired.bounds)


def _check(plan: Plan | None, least: int | None, bounds: tuple[str, ...]) -> None:
    if plan is not None and plan.moves:
        assert plan.bytes_to_copy is not None
        assert least is not None
        assert 0 < least <= plan.bytes_to_copy
        assert bounds
