"""The best exchange of up to four rows is the one that trying all of them finds."""

from itertools import combinations

import numpy as np
import pytest

from solver.kernels.node_bound import unbounded
from solver.kernels.row_exchanges import best_exchange, list_pairs, new_pair_tree

ALL = 10**9
ANYWHERE = unbounded(5)


def changes(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, rises, shifts and a residual; the first two changes change nothing."""
    rng = np.random.default_rng(seed)
    row = np.concatenate([[-1, -2], rng.integers(0, count // 3, count)])
    rise = np.concatenate([[0.0, 0.0], rng.uniform(0.0, 0.1, count)])
    shift = np.concatenate([np.zeros((2, 5)), rng.normal(0.0, 1.0, (count, 5))])
    order = np.argsort(rise, kind="stable")
    return row[order], rise[order], shift[order], rng.normal(0.0, 1.0, 5)


def tried(
    row: np.ndarray,
    rise: np.ndarray,
    shift: np.ndarray,
    z: np.ndarray,
    limit: float,
    between: np.ndarray = ANYWHERE,
) -> float:
    """The least value of two pairs, each within the limit, by trying all of them."""
    pairs = [
        (i, k)
        for i, k in combinations(range(len(row)), 2)
        if row[i] != row[k] and rise[i] + rise[k] <= limit
    ]
    least = np.inf
    for one, other in combinations(pairs, 2):
        rows = [r for r in row[[*one, *other]] if r >= 0]
        if len(set(rows)) == len(rows):
            left = z + shift[[*one, *other]].sum(axis=0)
            if ((left < between[0]) | (left > between[1])).any():
                continue
            least = min(least, rise[[*one, *other]].sum() + float((left * left).sum()))
    return least


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [0.05, 0.1, 1.0])
def test_no_exchange_within_the_limit_is_better(seed: int, limit: float) -> None:
    row, rise, shift, z = changes(seed, 20)
    one, other = np.empty(400, np.int64), np.empty(400, np.int64)
    found = list_pairs(row, rise, limit, one, other)
    tree = new_pair_tree(one[:found], other[:found], rise, shift)
    p, q, value, _ = best_exchange(tree, row, z, ANYWHERE, np.inf, ALL)
    assert value == pytest.approx(tried(row, rise, shift, z, limit), rel=1e-12)
    made = [tree.one[p], tree.other[p], tree.one[q], tree.other[q]]
    rows = [r for r in row[made] if r >= 0]
    assert len(set(rows)) == len(rows)
    left = z + shift[made].sum(axis=0)
    assert value == pytest.approx(rise[made].sum() + (left * left).sum(), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_no_exchange_that_ends_between_bounds_is_better(seed: int) -> None:
    row, rise, shift, z = changes(seed, 20)
    one, other = np.empty(400, np.int64), np.empty(400, np.int64)
    found = list_pairs(row, rise, 1.0, one, other)
    tree = new_pair_tree(one[:found], other[:found], rise, shift)
    between = np.array([[-np.inf, 0.2, -0.8, -1.0, 0.1], [-0.1, np.inf, 0.8, 1.0, np.inf]])
    p, q, value, _ = best_exchange(tree, row, z, between, np.inf, ALL)
    least = tried(row, rise, shift, z, 1.0, between)
    assert value == pytest.approx(least, rel=1e-12)
    assert least > tried(row, rise, shift, z, 1.0)
    left = z + shift[[tree.one[p], tree.other[p], tree.one[q], tree.other[q]]].sum(axis=0)
    assert (between[0] <= left).all()
    assert (left <= between[1]).all()


def test_nothing_is_found_where_no_exchange_is_below_the_best_value() -> None:
    row, rise, shift, z = changes(1, 20)
    one, other = np.empty(400, np.int64), np.empty(400, np.int64)
    found = list_pairs(row, rise, 1.0, one, other)
    tree = new_pair_tree(one[:found], other[:found], rise, shift)
    least = tried(row, rise, shift, z, 1.0)
    p, q, _, _ = best_exchange(tree, row, z, ANYWHERE, least * (1.0 - 1e-12), ALL)
    assert (p, q) == (-1, -1)


def test_pairs_are_listed_up_to_one_more_than_there_is_room_for() -> None:
    row, rise, _, _ = changes(2, 20)
    one, other = np.empty(400, np.int64), np.empty(400, np.int64)
    every = list_pairs(row, rise, 0.1, one, other)
    assert np.all(rise[one[:every]] + rise[other[:every]] <= 0.1)
    assert list_pairs(row, rise, 0.1, one[:every], other[:every]) == every
    assert list_pairs(row, rise, 0.1, one[:7], other[:7]) == 8
