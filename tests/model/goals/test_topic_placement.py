"""Placement constraints in topics' own configs: valid ones become rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from model.goals.goals import Goals
from model.goals.rack_placement import PlacementRule, ReplicaPlacement
from model.goals.topic_placement import with_topic_placements
from model.names import Names
from model.plan.warnings import plan_warnings
from model.snapshot.file import as_document, of_document, read_snapshot, write_snapshot
from model.snapshot.pseudonyms import Pseudonyms
from model.snapshot.snapshot import Snapshot
from tests.support.model.clusters import brokers, snapshot
from tests.support.paths import FIXTURES


def constraints(racks: dict[str, int], **more: Any) -> str:
    counts = [{"count": n, "constraints": {"rack": r}} for r, n in racks.items()]
    return json.dumps({"version": 1, "replicas": counts} | more)


def configured(value: str) -> Snapshot:
    plain = snapshot(brokers(4, "aabb"), [(3, 1), (2, 4)])
    (topic,) = plain.header.topics
    topics = (topic.model_copy(update={"placement": value}),)
    return Snapshot(plain.header.model_copy(update={"topics": topics}), plain.partitions)


def rule(racks: dict[str, int], **names: Any) -> PlacementRule:
    placement = ReplicaPlacement.model_validate_json(constraints(racks))
    return PlacementRule(topics=Names(**names), placement=placement)


def test_a_config_becomes_a_rule_of_its_topic_after_those_of_the_goals() -> None:
    others = rule({"b": 2}, exact=("payments",))
    goals = Goals(placements=(others,))
    result = with_topic_placements(goals, configured(constraints({"a": 2})))
    assert result.placements == (others, rule({"a": 2}, exact=("orders",)))
    assert with_topic_placements(result, configured(constraints({"a": 2}))) == result


@pytest.mark.parametrize("value", [constraints({"a": 2}), "no JSON"])
def test_a_rule_of_the_goals_overrides_a_config(value: str) -> None:
    goals = Goals(placements=(rule({"b": 2}, prefix=("ord",)),))
    assert with_topic_placements(goals, configured(value)) == goals
    assert plan_warnings(configured(value), goals, (), ()) == ()


def test_topics_with_equal_configs_share_a_rule() -> None:
    header = configured(constraints({"a": 1, "b": 1})).header
    (topic,) = header.topics
    audit = topic.model_copy(
        update={"name": "audit", "placement": constraints({"a": 1, "b": 1}, version=2)}
    )
    zebra = topic.model_copy(update={"name": "zebra"})
    state = configured("")
    both = header.model_copy(update={"topics": (topic, zebra)})
    result = with_topic_placements(Goals(), Snapshot(both, state.partitions))
    assert result.placements == (rule({"a": 1, "b": 1}, exact=("orders", "zebra")),)
    both = header.model_copy(update={"topics": (audit, topic)})
    result = with_topic_placements(Goals(), Snapshot(both, state.partitions))
    assert [r.topics.exact for r in result.placements] == [("audit",), ("orders",)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "Invalid JSON"),
        ("7", "Input should be an object"),
        (constraints({}), "replicas: Tuple should have at least 1 item"),
        (constraints({"a": 2}, version=9), "version: "),
        (constraints({"a": 2}, observer=[]), "did you mean 'observers'"),
        (
            constraints({"a": 2}, observerPromotionPolicy="under-min-isr"),
            "ignored: observerPromotionPolicy needs version 2",
        ),
        (constraints({"a": 1, "c": 1}), "no broker names the rack 'c'"),
        (constraints({"a": 3}), "asks for 3 replicas of each partition, and one has 2"),
        ("[" * 9999, "Invalid JSON"),
        ("\0", "Invalid JSON"),
    ],
)
def test_an_unusable_config_is_named_and_ignored(value: str, message: str) -> None:
    state = configured(value)
    assert with_topic_placements(Goals(), state) == Goals()
    (answer,) = plan_warnings(state, Goals(), (), ())
    assert answer.startswith(
        "the config confluent.placement.constraints of topic orders is ignored: "
    )
    assert message in answer


def test_topics_with_the_same_fault_share_a_warning() -> None:
    state = configured("{")
    (topic,) = state.header.topics
    names = ("orders", "payments", "zebra")
    topics = tuple(topic.model_copy(update={"name": name}) for name in names)
    header = state.header.model_copy(update={"topics": topics})
    (answer,) = plan_warnings(Snapshot(header, state.partitions), Goals(), (), ())
    assert "of topic orders and 2 others is ignored: " in answer


def test_a_snapshot_preserves_the_placement_of_a_config(tmp_path: Path) -> None:
    state = configured(constraints({"a": 2}))
    again = of_document(as_document(state))
    assert again.header == state.header
    assert again.fingerprint == configured("").fingerprint
    assert "placement" not in as_document(configured(""))["header"]["topics"][0]
    recorded = FIXTURES / "tutorial.json"
    write_snapshot(tmp_path / "again.json", read_snapshot(recorded))
    assert b'"placement"' not in (tmp_path / "again.json").read_bytes()


@pytest.mark.parametrize("value", ["secret", '{"secret": 1}', ""])
def test_no_rack_keeps_its_name(value: str) -> None:
    names = Pseudonyms(b"a key of 16 bytes or more")
    assert names.snapshot(configured(value)).header.topics[0].placement == ""
    hidden = names.snapshot(configured(constraints({"a": 1, "b": 1}))).header
    (own,) = with_topic_placements(Goals(), Snapshot(hidden, configured("").partitions)).placements
    racks = {b.rack for b in hidden.brokers}
    assert set(own.placement.replica_racks) == racks
    assert not racks & {"a", "b"}
