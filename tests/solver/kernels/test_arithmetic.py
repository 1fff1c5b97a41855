"""Exponentials, logarithms and random numbers are right, and the same every time."""

import math

import numpy as np
import pytest

from solver.kernels.arithmetic import below, exponential, logarithm


@pytest.mark.parametrize("x", [0.0, -1e-9, -0.3, -1.0, -17.5, -690.0])
def test_the_exponential_is_right_to_the_last_digits(x: float) -> None:
    assert exponential(x) == pytest.approx(math.exp(x), rel=1e-14)


@pytest.mark.parametrize("x", [1.0, 1.0000001, 1.4, 2.0, 1000.5, 1e12])
def test_the_logarithm_is_right_to_the_last_digits(x: float) -> None:
    assert logarithm(x) == pytest.approx(math.log(x), rel=1e-13, abs=1e-15)


def test_random_numbers_are_uniform_and_reproducible() -> None:
    state = np.array([1], np.uint64)
    drawn = [below(state, 10) for _ in range(10_000)]
    again = np.array([1], np.uint64)
    assert drawn == [below(again, 10) for _ in range(10_000)]
    assert sorted(set(drawn)) == list(range(10))
    assert max(np.bincount(drawn)) < 1_200
