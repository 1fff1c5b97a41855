"""Placement constraints in the format of Confluent's kafka-topics."""

import json
from pathlib import Path
from typing import Any

import pytest

from control.cli.input_source import goals_of
from control.cli.invocation import Origin
from control.settings.settings import Settings
from model.errors import ConfigError
from model.evaluate import evaluate
from model.exchange.confluent_placement import read_placement
from model.exchange.goals_file import read_goals
from model.goals.goals import SolveLimits
from model.snapshot.snapshot import StorageKind
from solver.solve import solve
from tests.support.model.clusters import brokers, snapshot

PLACEMENT: dict[str, Any] = {
    "version": 2,
    "replicas": [
        {"count": 2, "constraints": {"rack": "a"}},
        {"count": 1, "constraints": {"rack": "b"}},
    ],
    "observers": [{"count": 1, "constraints": {"rack": "b"}}],
    "observerPromotionPolicy": "under-min-isr",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "placement.json"
    path.write_text(json.dumps(PLACEMENT, indent=1))
    return path


def test_a_file_is_for_all_topics_but_internal_ones(file: Path) -> None:
    rule = read_placement(str(file))
    assert rule.placement.replica_racks == {"a": 2, "b": 1}
    assert rule.placement.observer_racks == {"b": 1}
    names = ("orders", "_", "_x", "o", "__consumer_offsets", "__x")
    assert [rule.topics.match(n) for n in names] == [True] * 4 + [False] * 2


def test_a_file_may_be_for_some_topics(file: Path) -> None:
    rule = read_placement(f"orders.*={file}")
    assert rule.topics.match("orders-eu")
    assert not rule.topics.match("payments")


def test_an_expression_may_be_longer_than_a_path(file: Path) -> None:
    topics = "|".join(f"orders-{n}" for n in range(1000))
    assert read_placement(f"{topics}={file}").topics.regex == (topics,)


def test_a_plan_follows_the_placement_file(file: Path) -> None:
    given = Origin(placement=[str(file)])
    goals = goals_of(Settings(), None, given)
    state = snapshot(brokers(4, racks="aabb"), [(3, 4, 1, 2)] * 3, storage=StorageKind.REPLICATED)
    plan = solve(state, goals, SolveLimits(work=1.0)).best
    assert plan is not None
    assert len(plan.moves) == 3
    racks = {b.id: b.rack for b in state.header.brokers}
    for move in plan.moves:
        assert [racks[b] for b in move.replicas_after] in (
            ["a", "a", "b", "b"],
            ["a", "b", "a", "b"],
            ["b", "a", "a", "b"],
        )
    assert not evaluate(state, goals, plan.moves).violations


def test_goals_may_contain_the_placement_as_documented(tmp_path: Path) -> None:
    (tmp_path / "goals.toml").write_text(
        '[[placements]]\ntopics = {prefix = ["orders"]}\n[placements.placement]\n'
        'version = 1\nreplicas = [{count = 2, constraints = {rack = "east"}}, '
        '{count = 1, constraints = {rack = "west"}}]\n'
    )
    (rule,) = read_goals(tmp_path / "goals.toml").placements
    assert rule.placement.replica_racks == {"east": 2, "west": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, r"line 2: version: .*1 or 2"),
        ({"replicas": []}, r"line 3: replicas: "),
        (
            {"replicas": [{"count": 0, "constraints": {"rack": "a"}}]},
            r"line 5: replicas\.0\.count: .*greater than or equal to 1",
        ),
        (
            {"replicas": [{"count": 2**63 - 1, "constraints": {"rack": "a"}}]},
            r"line 5: replicas\.0\.count: .*less than or equal to 32767",
        ),
        (
            {"replicas": [{"count": 1, "constraints": {"zone": "a"}}]},
            r"replicas\.0\.constraints\.rack: Field required",
        ),
        ({"version": 1}, "observerPromotionPolicy needs version 2"),
        ({"observer": []}, r"unknown key 'observer'; did you mean 'observers'"),
    ],
)
def test_a_fault_is_named_with_its_line_and_field(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "placement.json"
    path.write_text(json.dumps(PLACEMENT | changes, indent=1))
    with pytest.raises(ConfigError, match=message):
        read_placement(str(path))


def test_a_missing_or_invalid_json_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.json"):
        read_placement(f"orders={tmp_path / 'nothing.json'}")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match=r"bad\.json, line 1"):
        read_placement(str(tmp_path / "bad.json"))
    with pytest.raises(ConfigError, match="regular expression"):
        read_placement(f"orders(={tmp_path / 'bad.json'}")
