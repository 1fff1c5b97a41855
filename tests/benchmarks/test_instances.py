"""Benchmark instances have the properties that their docstrings state."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.bounds import FILE
from benchmarks.instances import build, goals_of, instance_digest, small
from benchmarks.shapes import SHAPES, Shape, shape_of
from lab.synthetic.shape import LARGEST
from lab.synthetic.synthetic_snapshot import GIANT
from model.errors import ConfigError
from model.evaluate import evaluate, evaluate_proposal
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import BrokerState, Resource, Snapshot

SMALL = tuple(shape for shape in SHAPES if shape.partitions <= 5_000)
SEED = 1
BOUNDS = json.loads(FILE.read_text())
RECORDED = tuple(shape for shape in SMALL if f"{shape.name}/{SEED}" in BOUNDS)


def shares(snapshot: Snapshot) -> np.ndarray:
    """Each partition's net_in as a share of a broker's average."""
    columns = snapshot.partitions
    rf = len(columns.replica_broker) / len(snapshot)
    net_in = columns.loads[:, 0]
    level = net_in.sum() * rf / len(snapshot.header.brokers)
    return np.asarray(net_in / level)


@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.name)
def test_an_instance_has_the_size_of_its_shape(shape: Shape) -> None:
    snapshot = build(shape, SEED)
    assert len(snapshot) == shape.partitions
    assert len(snapshot.header.brokers) == shape.brokers
    assert len(snapshot.partitions.replica_broker) == shape.partitions * shape.rf


def test_equal_seeds_give_equal_instances_and_other_seeds_different_ones() -> None:
    shape = shape_of("10x500")
    first, again, other = (instance_digest(shape, build(shape, seed)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("shape", RECORDED, ids=lambda shape: shape.name)
def test_an_instance_matches_the_one_its_bound_was_proved_for(shape: Shape) -> None:
    known = BOUNDS[f"{shape.name}/{SEED}"]
    assert instance_digest(shape, build(shape, SEED)) == known["digest"]


def test_an_instance_with_another_move_cost_has_another_digest() -> None:
    shape = shape_of("10x500")
    band, snapshot = replace(shape, band=0.09), build(shape, SEED)
    assert instance_digest(shape, snapshot) != instance_digest(band, snapshot)


def test_a_move_costs_one_price_under_the_tolerance_band_objective() -> None:
    shape = shape_of("24x5000-rf3-band")
    snapshot = build(shape, SEED)
    replicas = snapshot.replicas(0)
    there = min(set(snapshot.broker) - set(replicas))
    moved = Change(0, (there, *replicas[1:]), there)
    goals = goals_of(shape)
    judged = evaluate_proposal(Proposal(snapshot, goals, (moved,)))
    assert judged.prices == pytest.approx(1 + goals.leader_price_share)


@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.name)
def test_an_instance_violates_only_the_rule_of_its_drain(shape: Shape) -> None:
    judged = evaluate(build(shape, SEED), goals_of(shape), ())
    assert bool(judged.violations) is (shape.drain or shape.dead or shape.case == "d12")


@pytest.mark.parametrize("rf3", ["6x60-rf3", "9x500-rf3", "9x500-rf3-near-level", "51x5000-rf3"])
def test_replicas_of_a_partition_lie_in_different_racks(rf3: str) -> None:
    shape = shape_of(rf3)
    racks = build(shape, SEED).partitions.replica_broker.reshape(-1, 3) % shape.racks
    assert all(len(set(row)) == 3 for row in racks.tolist())


def test_a_plain_instance_has_no_partition_above_a_tenth_of_the_average_load() -> None:
    assert shares(build(shape_of("50x5000"), SEED)).max() < 1.05 * LARGEST


def test_large_partitions_reach_their_documented_share() -> None:
    largest = shares(build(shape_of("50x5000-giants"), SEED)).max()
    assert LARGEST < largest < 1.05 * GIANT[1]


def test_new_brokers_hold_a_twentieth_of_the_replicas_of_old_ones() -> None:
    counts = np.bincount(build(shape_of("50x5000"), SEED).partitions.replica_broker)
    assert 0.02 < counts[40:].mean() / counts[:40].mean() < 0.10


@pytest.mark.parametrize("name", ["50x5000-near-level", "9x500-rf3-near-level"])
def test_a_nearly_balanced_instance_is_nearly_balanced(name: str) -> None:
    shape = shape_of(name)
    judged = evaluate(build(shape, SEED), goals_of(shape), ())
    assert all(
        abs(deviation) < 0.25
        for by_broker in judged.deviations.values()
        for deviation in by_broker.values()
    )


def test_a_dead_broker_leads_nothing() -> None:
    made = build(small(shape_of("40x16667-rf3-dead-band")), SEED)
    states = {b.id: b.state for b in made.header.brokers}
    assert [b for b, state in states.items() if state is BrokerState.DEAD] == [0]
    assert 0 in made.partitions.replica_broker
    assert 0 not in made.partitions.leader


def test_large_partitions_reach_the_share_that_their_shape_allows() -> None:
    shape = shape_of("50x5000-steep-two-sizes")
    assert LARGEST < shares(build(shape, SEED)).max() < 1.05 * shape.largest


def test_the_cases_of_the_tests_are_instances_too() -> None:
    snapshot = build(shape_of("d12"), SEED)
    assert [b.id for b in snapshot.header.brokers if b.state is BrokerState.DEAD] == [11]


def test_a_drain_instance_has_one_draining_broker() -> None:
    brokers = build(shape_of("10x500-drain"), SEED).header.brokers
    draining = [b.id for b in brokers if b.state is BrokerState.DRAINING]
    assert draining == [0]


def test_a_twentieth_of_the_partitions_is_in_cooldown() -> None:
    moves = build(shape_of("10x500"), SEED).header.recent_moves
    assert len({(m.topic, m.partition) for m in moves}) == 25


def test_disk_is_a_goal_where_moves_copy_data() -> None:
    balanced = {g.resource for g in goals_of(shape_of("9x500-rf3")).balance}
    assert balanced == {Resource.NET_IN, Resource.NET_OUT, Resource.DISK}


def test_a_small_shape_keeps_the_traits_of_the_large_one() -> None:
    small_shape = small(shape_of("215x930000-rf3"))
    assert (small_shape.rf, small_shape.racks, small_shape.young) == (3, 3, True)
    assert len(build(small_shape, SEED)) <= 600


def test_an_unknown_instance_is_rejected_with_the_known_names() -> None:
    with pytest.raises(ConfigError, match="no instance '10x5'; there are 3x60"):
        shape_of("10x5")
