"""Emptying log directories: every replica that fits stays on its broker."""

import random
from dataclasses import replace

import numpy as np
import pytest

from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import LogDir, Resource, Snapshot, StorageKind
from solver.log_dirs.emptying import Emptying, empty_directories
from tests.support.model import clusters

MINE = BrokerId(1)


def broker(
    sizes: list[int], at: list[int], dirs: list[LogDir], places: list[tuple[int, ...]] | None = None
) -> Snapshot:
    """Broker 1 with these directories; `at` has the position of each partition's."""
    first, *others = clusters.brokers(2)
    members = [first.model_copy(update={"log_dirs": tuple(dirs)}), *others]
    found = clusters.snapshot(
        members, places or [(1,)] * len(sizes), storage=StorageKind.REPLICATED
    )
    known = np.array(sizes, np.int64)
    columns = replace(
        found.partitions, size_bytes=known, local_bytes=known, replica_dir=np.array(at, np.int64)
    )
    return Snapshot(found.header, columns)


def dirs(*capacities: float | None, closed: str = "") -> list[LogDir]:
    paths = [f"/{letter}" for letter in "abcdef"[: len(capacities)]]
    return [
        LogDir(path=path, capacity_bytes=size, cordoned=path[1] in closed)
        for path, size in zip(paths, capacities, strict=True)
    ]


def emptied(snapshot: Snapshot, *paths: str, share: float = 1.0) -> Emptying:
    goals = Goals(capacity_limits={Resource.DISK: share})
    return empty_directories(snapshot, goals, MINE, paths)


def test_the_least_utilised_directory_takes_each_replica() -> None:
    seen = broker([30, 20, 10, 40], [0, 0, 0, 1], dirs(100.0, 100.0, 200.0))
    assert emptied(seen, "/a") == Emptying(inside={0: "/c", 1: "/c", 2: "/c"}, homeless=())


def test_empty_replicas_are_spread_by_number() -> None:
    seen = broker([0, 0, 0, 0], [0, 0, 0, 0], dirs(None, None, None))
    assert sorted(emptied(seen, "/a").inside.values()) == ["/b", "/b", "/c", "/c"]


def test_cordoned_and_emptied_directories_take_none() -> None:
    seen = broker([5, 5], [0, 1], dirs(None, None, None, None, closed="c"))
    assert emptied(seen, "/a", "/b").inside == {0: "/d", 1: "/d"}


def test_replicas_over_the_limit_find_no_room() -> None:
    seen = broker([50, 30, 20], [0, 0, 1], dirs(100.0, 100.0))
    assert emptied(seen, "/a", share=0.8) == Emptying(inside={0: "/b"}, homeless=(1,))
    nothing = broker([50], [0], dirs(100.0, 100.0, closed="b"))
    assert emptied(nothing, "/a").homeless == (0,)


def test_replicas_are_packed_where_spreading_them_leaves_some_without_room() -> None:
    # Spread, both 4 go to /c and a 3 to /b, so that there is no room for the other 3.
    seen = broker([6, 4, 4, 3, 3], [0] * 5, dirs(100.0, 10.0, 10.0))
    assert emptied(seen, "/a").homeless == ()


@pytest.mark.parametrize("seed", range(20))
def test_no_directory_is_overfilled_and_nothing_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    count, folders = rng.randint(1, 40), rng.randint(2, 5)
    sizes = [rng.randint(0, 30) for _ in range(count)]
    at = [rng.randrange(folders) for _ in range(count)]
    listed = dirs(*[float(rng.randint(20, 200)) for _ in range(folders)])
    seen = broker(sizes, at, listed)
    found = emptied(seen, "/a", share=0.85)
    mine = [n for n in range(count) if at[n] == 0]
    assert sorted([*found.inside, *found.homeless]) == mine
    for number, entry in enumerate(listed[1:], 1):
        before = sum(size for size, home in zip(sizes, at, strict=True) if home == number)
        came = sum(sizes[row] for row, path in found.inside.items() if path == entry.path)
        assert not came or before + came <= 0.85 * (entry.capacity_bytes or 0) * (1 + 1e-9)
