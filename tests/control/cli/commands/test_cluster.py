"""`plimsoll cluster repair` on a simulated cluster."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.simulated_cluster.faults import Faults
from model.ids import BrokerId
from tests.support.control.command_cluster import answer, plimsoll, reached
from tests.support.control.simulated_disks import SimulatedDisks
from tests.support.control.simulated_tasks import KillSwitch
from tests.support.executor.simulated_runs import Killed

CHANGING = ("--allow-changes", "--yes")
REPAIR = ("cluster", "repair")
PLACES = [(1, 2), (2, 3), (1, 3), (5, 1), (3, 5), (2, 1), (2, 4), (4, 2)]
"""Brokers 1 and 4 share a rack, and so do 2 and 5; no partition breaks the rack rule."""


def words(result: str) -> str:
    return " ".join(result.split())


def cluster(
    folder: Path, monkeypatch: pytest.MonkeyPatch, places: Sequence[tuple[int, ...]] = PLACES
) -> SimulatedDisks:
    (folder / "state").mkdir(parents=True)
    at = SimulatedDisks(
        folder=folder / "state", brokers=5, racks="abcab", places=places, lies={(2, 1): "/b"}
    )
    reached(at, folder, monkeypatch)
    return at


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedDisks:
    return cluster(tmp_path / "only", monkeypatch)


def test_a_whole_cluster_needs_no_repair(at: SimulatedDisks) -> None:
    found = plimsoll(*REPAIR, *CHANGING)
    assert "nothing is broken" in words(found.stderr)
    assert at.lists == PLACES
    assert answer("task", "list", "--all")["tasks"] == []


def test_dead_brokers_failed_directories_and_racks_are_repaired_and_nothing_else_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cluster(tmp_path / "one", monkeypatch, [*PLACES, (2, 5), (4, 3)])
    at.cluster.kill(BrokerId(3))
    at.cluster.fail_dir(BrokerId(1), "/b")
    at.cluster.advance(60.0)
    found = answer(*REPAIR, "--dry-run")
    assert found["dead_brokers"] == [3]
    assert found["directories"] == [{"broker": 1, "path": "/b"}]
    assert found["racks_repaired"] == ["orders-8"]
    # Rows 1, 4 and 9 leave broker 3, row 8 a rack; row 2 has lost both, and has no leader.
    assert {m["partition"] for m in found["plan"]["moves"]} == {1, 4, 8, 9}
    assert found["unavailable"] == ["orders-2"]
    assert found["bytes_to_copy"] == found["least_bytes"]
    text = words(plimsoll(*REPAIR, "--dry-run").stdout)
    assert "no plan repairs this with fewer bytes" in text
    assert "4 moves in 1 wave of at most 50" in text
    done = plimsoll(*REPAIR, *CHANGING, code=6)
    assert "1 partition (orders-2) without a leader" in words(done.stderr)
    whole = (0, 3, 5, 6, 7)
    assert [at.lists[n] for n in whole] == [PLACES[n] for n in whole]
    lists = {n: held for n, held in enumerate(at.lists) if n != 2}
    assert all(3 not in held for held in lists.values())
    assert all(len({"abcab"[b - 1] for b in held}) == 2 for held in lists.values())


def test_moves_beyond_the_budgets_are_done_by_further_plans(at: SimulatedDisks) -> None:
    Path("plimsoll.toml").write_text("[goals.budgets]\nreplica_moves = 1\n")
    at.cluster.kill(BrokerId(3))
    at.cluster.advance(60.0)
    done = answer(*REPAIR, *CHANGING)
    assert [(plan["moves"], plan["replicas"]) for plan in done["plans"]] == [(1, 3), (1, 2), (1, 1)]
    assert all(3 not in held for held in at.lists)


def test_nothing_is_changed_unasked(at: SimulatedDisks) -> None:
    at.cluster.kill(BrokerId(3))
    refused = plimsoll(*REPAIR, code=5)
    assert "add --allow-changes to repair the cluster" in words(refused.stderr)
    assert at.lists == PLACES


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_killed_at_any_change_a_repair_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    for change in itertools.count():
        at = cluster(tmp_path / f"{change}", monkeypatch)
        at.cluster.kill(BrokerId(3))
        at.cluster.advance(60.0)
        switch = KillSwitch(change, made)
        at.faults.on_call = switch.on_call
        killed = False
        try:
            plimsoll(*REPAIR, *CHANGING)
        except Killed:
            killed = True
            at.faults.on_call = Faults().on_call
            plimsoll("run", "--resume", "--allow-changes")
            plimsoll(*REPAIR, *CHANGING)
        assert all(3 not in held for held in at.lists)
        if not killed:
            assert change >= 1
            return
