"""Kafka reassignment JSON: written from a plan, and read as moves of a snapshot."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import ConfigError
from model.evaluate import evaluate
from model.exchange.reassignment import (
    Election,
    Reassignment,
    moves_of,
    read_election,
    read_reassignment,
    write_reassignment_json,
)
from model.plan.plan import Move
from model.snapshot.snapshot import LogDir, Snapshot, StorageKind
from tests.support.model.clusters import NO_FLOOR, brokers, move, plan, snapshot

STATE = snapshot(
    brokers(4, "abab"),
    [(1, 2), (2, 3), (3, 4)],
    storage=StorageKind.REPLICATED,
    local_bytes=[10, 20, 30],
)
MOVES = (
    move(1, (2, 3), (2, 1)),
    move(0, (1, 2), (2, 1)),
    move(2, (3, 4), (1, 4), log_dirs_before=("/d2", "any"), log_dirs_after=("/d1", "any")),
)


def stock(folder: Path, *moves: Move) -> dict[str, Any]:
    write_reassignment_json(folder, plan(*moves))
    return {p.stem: json.loads(p.read_text()) for p in folder.iterdir()}


def document(*rows: tuple[int, list[int]], **others: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": p, "replicas": r, **others} for p, r in rows
        ],
    }


def read(folder: Path, content: Any) -> Reassignment:
    (folder / "r.json").write_text(json.dumps(content))
    return read_reassignment(folder / "r.json")


def election(*partitions: int) -> Election:
    rows = [{"topic": "orders", "partition": p} for p in partitions]
    return Election.model_validate_json(json.dumps({"partitions": rows}))


def test_four_files_are_written_sorted(tmp_path: Path) -> None:
    """The folder is created; directories are named where the plan chooses them."""
    files = stock(tmp_path / "a" / "b", *MOVES)
    assert files.keys() == {"reassignment", "rollback", "election", "topics"}
    moves = files["reassignment"]["partitions"]
    assert [(m["partition"], m["replicas"]) for m in moves] == [
        (0, [2, 1]),
        (1, [2, 1]),
        (2, [1, 4]),
    ]
    assert [m.get("log_dirs") for m in moves] == [None, None, ["/d1", "any"]]
    back = files["rollback"]["partitions"]
    assert [m["replicas"] for m in back] == [[1, 2], [2, 3], [3, 4]]
    assert [m.get("log_dirs") for m in back] == [None, None, ["/d2", "any"]]
    assert files["topics"] == {"version": 1, "topics": [{"topic": "orders"}]}


def test_a_change_of_leader_needs_an_election(tmp_path: Path) -> None:
    rows = stock(tmp_path, *MOVES)["election"]["partitions"]
    assert [r["partition"] for r in rows] == [0, 2]


def test_no_election_is_listed_that_would_elect_another_leader(tmp_path: Path) -> None:
    odd = move(0, (1, 2), (1, 2), leader_before=1, leader_after=2)
    assert stock(tmp_path, odd)["election"]["partitions"] == []


def test_a_plan_without_moves_gives_files_without_partitions(tmp_path: Path) -> None:
    assert stock(tmp_path)["reassignment"] == {"version": 1, "partitions": []}


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(ConfigError, match="cannot make the folder"):
        write_reassignment_json(tmp_path / "f", plan())


def test_written_moves_read_back(tmp_path: Path) -> None:
    write_reassignment_json(tmp_path, plan(*MOVES))
    back = moves_of(
        STATE,
        read_reassignment(tmp_path / "reassignment.json"),
        read_election(tmp_path / "election.json"),
    )
    assert [(m.id, m.replicas_after, m.leader_after) for m in back] == sorted(
        (m.id, m.replicas_after, m.leader_after) for m in MOVES
    )
    assert back[2].log_dirs_after == ("/d1", "any")


def test_the_leader_stays_where_it_keeps_a_replica(tmp_path: Path) -> None:
    (result,) = moves_of(STATE, read(tmp_path, document((0, [2, 1]))))
    assert (result.leader_before, result.leader_after) == (1, 1)


def test_the_first_replica_leads_where_the_leader_is_removed(tmp_path: Path) -> None:
    (result,) = moves_of(STATE, read(tmp_path, document((0, [4, 2]))))
    assert (result.leader_after, result.bytes_to_copy) == (4, 10)


def test_an_election_by_itself_is_a_change_of_leader(tmp_path: Path) -> None:
    led = snapshot(brokers(2), [(1, 2)], leaders=[2])
    (result,) = moves_of(led, read(tmp_path, document()), election(0))
    assert (result.leader_before, result.leader_after) == (2, 1)
    assert result.replicas_after == result.replicas_before


def test_an_unchanged_partition_is_not_a_move(tmp_path: Path) -> None:
    rows = document((0, [1, 2]), (1, [2, 3]), log_dirs=["any", "any"])
    assert moves_of(STATE, read(tmp_path, rows), election(0)) == ()


def with_directories(state: Snapshot) -> Snapshot:
    """Every broker has /d1 and /d2, and every replica lies in /d1."""
    log_dirs = (LogDir(path="/d1"), LogDir(path="/d2"))
    members = tuple(b.model_copy(update={"log_dirs": log_dirs}) for b in state.header.brokers)
    columns = dataclasses.replace(
        state.partitions, replica_dir=np.zeros_like(state.partitions.replica_broker)
    )
    return Snapshot(state.header.model_copy(update={"brokers": members}), columns)


def test_a_change_of_directory_is_a_move(tmp_path: Path) -> None:
    rows = document((0, [1, 2]), log_dirs=["/d2", "any"])
    (result,) = moves_of(with_directories(STATE), read(tmp_path, rows))
    assert (result.log_dirs_after, result.bytes_to_copy) == (("/d2", "any"), 0)


@pytest.mark.parametrize("state", [STATE, with_directories(STATE)])
def test_the_present_directories_are_not_a_change(tmp_path: Path, state: Snapshot) -> None:
    """As Kafka's tool prints the current assignment."""
    rows = document((0, [1, 2]), log_dirs=["/d1", "/d1"])
    assert moves_of(state, read(tmp_path, rows)) == ()


def test_the_directory_of_a_new_replica_belongs_to_the_move(tmp_path: Path) -> None:
    rows = document((0, [1, 4]), log_dirs=["/d1", "/d2"])
    (result,) = moves_of(STATE, read(tmp_path, rows))
    assert result.log_dirs_after == ("/d1", "/d2")


def test_a_partition_without_a_leader_gets_no_leader(tmp_path: Path) -> None:
    dark = snapshot(brokers(3), [(1, 2)], leaders=[-1])
    (result,) = moves_of(dark, read(tmp_path, document((0, [3, 2]))))
    assert result.leader_after == -1


def test_a_reassignment_from_any_source_is_judged_by_the_evaluator(tmp_path: Path) -> None:
    """Racks a and b hold both replicas before; afterwards one rack holds both."""
    moves = moves_of(STATE, read(tmp_path, document((0, [1, 3]))))
    (evaluation,) = evaluate(STATE, NO_FLOOR, moves).violations
    assert evaluation.words.startswith("orders-0 would lie in 1 rack")


def test_a_changed_replication_factor_is_a_violation(tmp_path: Path) -> None:
    moves = moves_of(STATE, read(tmp_path, document((0, [1, 2, 3]))))
    messages = [v.words for v in evaluate(STATE, NO_FLOOR, moves).violations]
    assert "orders-0 would have 3 replicas, it has 2" in messages


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "the file is not a JSON object"),
        ({"version": 1}, "partitions: Field required"),
        ({"version": 2, "partitions": []}, "has version 2; only 1 is known"),
        (document((0, [])), "partitions.0.replicas: Tuple should have at least 1"),
        (document((0, [-1])), "partitions.0.replicas.0: Input should be greater"),
        (document((-1, [1])), "partitions.0.partition: Input should be greater"),
        (document((0, [1]), (0, [2])), "orders-0 is listed twice; keep one entry"),
        (document((0, [1, 2]), log_dirs=["any"]), "orders-0 has 2 replicas and 1 log"),
        (document((0, [1]), log_dirs=["d"]), "'d' is neither absolute nor 'any'"),
    ],
)
def test_a_bad_reassignment_is_named(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, content)


def test_a_partition_listed_twice_in_an_election_is_named(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(election(1, 1).model_dump_json())
    with pytest.raises(ConfigError, match="orders-1 is listed twice"):
        read_election(tmp_path / "e.json")


def test_a_partition_of_another_cluster_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the cluster has no partition orders-9"):
        moves_of(STATE, read(tmp_path, document((9, [1]))))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Snapshot, list[tuple[int, ...]]]:
    count = draw(st.integers(1, 5))
    rf = draw(st.integers(1, count))
    list_ = st.permutations(range(1, count + 1)).map(lambda p: tuple(p[:rf]))
    places = draw(st.lists(list_, min_size=1, max_size=6))
    return snapshot(brokers(count), places), [draw(list_) for _ in places]


@settings(deadline=None)
@given(case=cases())
def test_a_plan_followed_by_its_rollback_restores_the_placement(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[Snapshot, list[tuple[int, ...]]]
) -> None:
    state, targets = case
    folder = tmp_path_factory.mktemp("stock")
    there = moves_of(
        state,
        read(folder, document(*[(i, list(t)) for i, t in enumerate(targets)])),
        election(*range(len(targets))),
    )
    moved = snapshot(
        state.header.brokers,
        [
            next((m.replicas_after for m in there if m.partition == i), before)
            for i, before in enumerate(map(state.replicas, range(len(state))))
        ],
    )
    write_reassignment_json(folder, plan(*there))
    back = moves_of(
        moved, read_reassignment(folder / "rollback.json"), read_election(folder / "election.json")
    )
    before = {m.id: (m.replicas_before, m.leader_before) for m in there}
    assert {m.id: (m.replicas_after, m.leader_after) for m in back} == before
