"""Other balancers' rules, as implemented for the benchmark."""

import numpy as np
import pytest

from benchmarks.peer_automq import BAND, plan


def deviations(place: np.ndarray, rates: np.ndarray, brokers: int) -> np.ndarray:
    load = np.stack([np.bincount(place, r, brokers) for r in rates.T], axis=1)
    return np.asarray(load / load.mean(axis=0) - 1)


@pytest.mark.parametrize("seed", range(5))
def test_automqs_rule_brings_small_partitions_into_the_band(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net_in = rng.uniform(1, 2, 400)
    rates = np.stack([net_in, 2 * net_in], axis=1)
    after = plan(rng.integers(0, 3, 400), rates, 5)
    assert np.abs(deviations(after, rates, 5)).max() <= BAND


def test_automqs_rule_leaves_a_cluster_inside_the_band_alone() -> None:
    place = np.repeat(np.arange(4), 10)
    rates = np.ones((40, 2))
    assert np.array_equal(plan(place, rates, 4), place)


def test_automqs_rule_ends_where_nothing_can_be_balanced() -> None:
    place = np.array([0, 1])
    rates = np.array([[9.0, 9.0], [1.0, 1.0]])
    assert sorted(plan(place, rates, 2).tolist()) == [0, 1]
