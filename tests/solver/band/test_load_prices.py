"""Reduced costs of brokers in rows, against all placements of each row."""

import itertools
import random

import numpy as np
import pytest

from model.goals.goals import RackRule
from solver.band.load_prices import BandDual
from solver.band.row_placements import describe
from solver.kernels.band import stay_costs
from solver.kernels.pricing import FIRST_LEADERS
from solver.kernels.problem_arrays import unit_prices
from solver.problem.problem import compile_problem
from tests.support.solver.begun_search import banded
from tests.support.solver.exact_oracle import Row, broker, cluster

BROKERS = FIRST_LEADERS + 3


def dual_of(seed: int, rf: int, rule: RackRule) -> BandDual:
    rng = random.Random(seed)
    rows = []
    for _ in range(2):
        # One replica per rack, so that every rule allows the snapshot.
        racks = rng.sample(range(4), rf)
        replicas = tuple(rng.choice(range(rack, BROKERS, 4)) for rack in racks)
        rows.append(Row(replicas=replicas, load=(rng.uniform(1, 9), rng.uniform(1, 9))))
    brokers = [broker(b, rack=f"r{b % 4}") for b in range(BROKERS)]
    goals = banded().model_copy(update={"rack_rule": rule})
    return BandDual(compile_problem(cluster(brokers, rows), goals))


def least_by_enumeration(dual: BandDual, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, B) least reduced costs with a replica on each broker, and with it as the leader."""
    home = dual.columns.home
    shape = len(home), BROKERS
    holds, leads = np.full(shape, np.inf), np.full(shape, np.inf)
    dual.value(prices)
    over = stay_costs(dual.columns, unit_prices(dual.columns, prices)) - dual.least
    for row in range(len(home)):
        for chosen in itertools.permutations(range(BROKERS), home.shape[1]):
            at = home.copy()
            at[row] = chosen
            if dual.allowed(at) is None:
                continue
            one = describe(dual.columns, np.array([row]), at[[row]])
            cost = float((one.price + one.cost_of_load(prices))[0] + over[row])
            holds[row, list(chosen)] = np.minimum(holds[row, list(chosen)], cost)
            leads[row, chosen[0]] = min(leads[row, chosen[0]], cost)
    return holds, leads


@pytest.mark.parametrize("rule", RackRule)
@pytest.mark.parametrize("rf", [1, 2, 3])
@pytest.mark.slow
def test_reduced_costs_are_those_of_the_cheapest_placement(rf: int, rule: RackRule) -> None:
    """More brokers than the cheapest leaders that are tried first."""
    dual = dual_of(rf, rf, rule)
    rng = np.random.default_rng(rf)
    for scale in (0.0, 1.0, 100.0):
        prices = scale * rng.normal(size=dual.home.shape)
        expected_holds, expected_leads = least_by_enumeration(dual, prices)
        holds, leads = dual.reduced_costs(prices)
        np.testing.assert_allclose(holds, expected_holds, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(leads, expected_leads, rtol=1e-9, atol=1e-9)
