"""The demo's load can be balanced."""

from itertools import product

from lab.load.load_generator import DEMO_WEIGHTS


def test_three_brokers_can_be_balanced_within_a_tenth() -> None:
    """Over all 6,561 ways to place eight partitions on three brokers."""
    mean = sum(DEMO_WEIGHTS) / 3
    spreads = []
    for brokers in product(range(3), repeat=len(DEMO_WEIGHTS)):
        loads = [0.0] * 3
        for broker, weight in zip(brokers, DEMO_WEIGHTS, strict=True):
            loads[broker] += weight
        spreads.append(max(abs(load - mean) for load in loads) / mean)
    assert min(spreads) <= 0.1


def test_equal_counts_are_not_balanced() -> None:
    """In the order of the partitions, round robin is off by more than a tenth."""
    loads = [sum(DEMO_WEIGHTS[broker::3]) for broker in range(3)]
    assert max(loads) > 1.1 * sum(loads) / 3
