"""What-if: how each assumption changes a snapshot, and what it leaves unchanged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.errors import ConfigError
from model.files import write_document
from model.names import Names
from model.plan.plan import PlanStatus, read_plan
from model.snapshot.snapshot import BrokerState, Resource, Snapshot, StorageKind
from model.snapshot.what_if import AddedBrokers, Scenario, Traffic, WhatIf, lost_partitions, suppose
from tests.support.model.clusters import RATES, brokers, ids, snapshot


def adding(count: int, rack: str | None = None) -> Scenario:
    return Scenario(add=(AddedBrokers(count=count, rack=rack),))


def three(racks: str | None = None) -> Snapshot:
    members = brokers(3, racks, capacity={1: 10.0, 2: 30.0, 3: 20.0})
    return snapshot(members, [(1, 2), (2, 3), (3, 1)])


def test_an_empty_scenario_changes_nothing() -> None:
    state = three("abc")
    assert suppose(state, Scenario()).header == state.header
    assert suppose(state, Scenario()).fingerprint == state.fingerprint


def test_added_brokers_are_new_and_have_the_next_ids() -> None:
    added = suppose(three(), adding(2)).header.brokers[3:]
    assert [b.id for b in added] == [4, 5]
    assert {b.state for b in added} == {BrokerState.NEW}


def test_an_added_broker_has_the_capacity_of_the_median_one() -> None:
    (added,) = suppose(three(), adding(1)).header.brokers[3:]
    assert added.capacity == dict.fromkeys(RATES, 20.0)


def test_a_capacity_unknown_for_one_broker_is_unknown_for_added_ones() -> None:
    members = brokers(2, capacity={1: 10.0})
    (added,) = suppose(snapshot(members, [(1,)]), adding(1)).header.brokers[2:]
    assert added.capacity == {}


def test_added_brokers_go_to_the_racks_with_the_fewest() -> None:
    state = snapshot(brokers(3, "aab"), [(1,)])
    added = suppose(state, adding(3)).header.brokers[3:]
    assert [b.rack for b in added] == ["b", "a", "b"]


def test_a_named_rack_is_used() -> None:
    (added,) = suppose(three("abc"), adding(1, "d")).header.brokers[3:]
    assert added.rack == "d"


def test_added_brokers_have_no_rack_if_a_present_one_has_none() -> None:
    state = snapshot(brokers(2, "a-"), [(1,)])
    assert suppose(state, adding(1)).header.brokers[2].rack is None


def test_a_removed_broker_drains_and_a_dead_one_stays_dead() -> None:
    state = snapshot(brokers(3, states={3: BrokerState.DEAD}), [(1,)])
    result = suppose(state, Scenario(remove=ids(2, 3))).header.brokers
    expected = [BrokerState.ALIVE, BrokerState.DRAINING, BrokerState.DEAD]
    assert [b.state for b in result] == expected


def test_traffic_grows_and_disk_use_does_not() -> None:
    state = three()
    header = state.header.model_copy(update={"resources": (Resource.NET_IN, Resource.DISK)})
    before = Snapshot(header, state.partitions)
    after = suppose(before, Scenario(traffic=(Traffic(factor=1.5),)))
    assert after.partitions.loads.tolist() == [[1.5, 1.0]] * 3
    assert after.partitions.measured.tolist() == [[False, True]] * 3


def test_traffic_grows_in_every_slot() -> None:
    state = three()
    header = state.header.model_copy(update={"slots": ("noon",)})
    columns = replace(state.partitions, slot_loads=np.full((3, 1, 2), 4.0))
    after = suppose(Snapshot(header, columns), Scenario(traffic=(Traffic(factor=2),)))
    assert after.partitions.slot_loads is not None
    assert (after.partitions.slot_loads == 8.0).all()


def test_factors_that_match_one_topic_multiply() -> None:
    some = Traffic(factor=3, topics=Names(regex=("ord.*",)))
    after = suppose(three(), Scenario(traffic=(Traffic(factor=2), some)))
    assert (after.partitions.loads == 6.0).all()


def test_the_first_live_replica_succeeds_a_lost_leader() -> None:
    members = brokers(3, "aab")
    state = snapshot(members, [(1, 2, 3), (3, 1)], storage=StorageKind.REPLICATED)
    after = suppose(state, Scenario(lose_racks=("a",)))
    assert after.partitions.leader.tolist() == [3, 3]
    assert lost_partitions(state, after) == ()


def test_a_partition_whose_only_replica_died_is_lost() -> None:
    state = snapshot(brokers(2, "ab"), [(1,), (2,)], storage=StorageKind.REPLICATED)
    after = suppose(state, Scenario(lose_racks=("a",)))
    assert after.partitions.leader.tolist() == [-1, 2]
    assert lost_partitions(state, after) == (state.id(0),)


def test_on_shared_storage_nothing_is_lost() -> None:
    state = snapshot(brokers(2, "ab"), [(1,), (2,)])
    after = suppose(state, Scenario(lose_racks=("a",)))
    assert after.partitions.leader.tolist() == [1, 2]
    assert lost_partitions(state, after) == ()


def test_the_given_snapshot_is_unchanged() -> None:
    state = three("abc")
    before = state.fingerprint, state.partitions.loads.tolist()
    scenario = Scenario(lose_racks=("a",), traffic=(Traffic(factor=9),))
    suppose(state, scenario)
    assert (state.fingerprint, state.partitions.loads.tolist()) == before


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (Scenario(remove=ids(9)), "no broker 9 to remove; known: 1, 2, 3"),
        (Scenario(lose_racks=("z",)), "no rack 'z' to lose; known: a, b, c"),
        (
            Scenario(traffic=(Traffic(factor=2, topics=Names(regex=("x",))),)),
            "no topic matches 'x'",
        ),
    ],
)
def test_brokers_and_topics_that_do_not_exist_are_named(scenario: Scenario, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        suppose(three("abc"), scenario)


def test_a_scenario_is_described_in_a_sentence() -> None:
    some = Traffic(factor=1.5, topics=Names(regex=("a.*",)))
    scenario = Scenario(
        add=(AddedBrokers(count=2, rack="a"),), remove=ids(3), traffic=(some,), lose_racks=("b",)
    )
    message = "2 brokers added in rack a, broker 3 removed, traffic of topics a.* x 1.5"
    assert scenario.words() == f"{message}, rack b lost"
    assert Scenario().words() == "nothing changes"


def test_the_answer_is_not_a_plan_file(tmp_path: Path) -> None:
    """So that it cannot be executed."""
    answer = WhatIf(
        scenario=Scenario(),
        words="nothing changes",
        lost=0,
        status=PlanStatus.ALREADY_BALANCED,
        reasons=(),
        plan=None,
    )
    write_document(tmp_path / "w.json", answer.model_dump(mode="json"))
    with pytest.raises(ConfigError, match=r"is not a plimsoll\.plan file"):
        read_plan(tmp_path / "w.json")
