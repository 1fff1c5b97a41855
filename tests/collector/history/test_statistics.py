"""The kernel behind all history, compared with plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.history.statistics import dense, statistics
from tests.support.collector import statistics_oracle

VALUES = st.floats(width=32, allow_nan=True, allow_infinity=True)
ROWS = st.lists(st.tuples(st.integers(0, 9), VALUES), max_size=60)


@settings(deadline=None)
@given(ROWS)
def test_statistics_are_computed_for_each_groups_loads(rows: list[tuple[int, float]]) -> None:
    group = np.array([g for g, _ in rows], np.int64)
    result = statistics(group, np.array([v for _, v in rows], np.float64), 10)
    known = statistics_oracle.statistics(rows)
    for number in range(10):
        mean, p95, largest, count = known.get(number, (np.nan, np.nan, np.nan, 0))
        assert result["samples"][number] == count
        assert result["mean"][number] == pytest.approx(mean, rel=1e-6, nan_ok=True)
        assert result["p95"][number] == pytest.approx(p95, rel=0, nan_ok=True)
        assert result["max"][number] == pytest.approx(largest, rel=0, nan_ok=True)


def test_p95_is_exact_where_interpolation_would_not_be() -> None:
    values = np.arange(1, 21, dtype=np.float64)
    assert statistics(np.zeros(20, np.int64), values, 1)["p95"].tolist() == [19.0]
    assert statistics(np.zeros(21, np.int64), np.append(values, 21), 1)["p95"] == [20.0]


def test_the_order_of_the_values_does_not_change_any_bit() -> None:
    random = np.random.default_rng(5)
    group, values = random.integers(0, 50, 5000), random.exponential(1e6, 5000)
    order = random.permutation(5000)
    result = statistics(group, values, 50)
    again = statistics(group[order], values[order], 50)
    assert result["mean"].tobytes() == again["mean"].tobytes()
    assert result["p95"].tobytes() == again["p95"].tobytes()


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=50))
def test_codes_become_dense_and_keep_their_order(codes: list[int]) -> None:
    different, at = dense(np.array(codes, np.int64))
    assert different.tolist() == sorted(set(codes))
    assert different[at].tolist() == codes
