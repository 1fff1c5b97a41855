"""Samples of rows: their prices are nearly those of all rows, and plans come sooner with them."""

import numpy as np
import pytest

from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.band import row_sample
from solver.band.column_generation import ColumnGeneration
from solver.band.load_prices import BandDual
from solver.band.lp import BandProgram
from solver.band.row_sample import RowSample, is_worth_sampling, size_of
from solver.kernels.compiled import record_of
from solver.kernels.problem_arrays import columns_of
from solver.problem.problem import compile_problem
from solver.solve import solve
from tests.support.solver.begun_search import banded, begun
from tests.support.solver.exact_oracle import Row, broker, cluster
from tests.support.solver.zipf_clusters import synthetic

BROKERS = 10


def dual_of(snapshot: Snapshot) -> BandDual:
    return BandDual(compile_problem(snapshot, banded()))


def test_a_sample_counts_every_row_and_the_largest_ones_once() -> None:
    dual = dual_of(synthetic(BROKERS, 4_000, rf=2, seed=1))
    sample, c = RowSample(dual), dual.columns
    assert len(sample.rows) == pytest.approx(size_of(BROKERS), abs=1)
    assert sample.copies.sum() == pytest.approx(4_000)
    size = np.maximum(c.lead, c.follow).max(axis=1)
    largest = np.argsort(-size, kind="stable")[: size_of(BROKERS) // 5]
    once = dict(zip(sample.rows.tolist(), sample.copies.tolist(), strict=True))
    assert {once[row] for row in largest.tolist()} == {1.0}
    # Of the rows that each broker leads, about as many are counted as there are.
    leads = np.bincount(c.home[:, 0], minlength=BROKERS)
    counted = np.bincount(c.home[sample.rows, 0], sample.copies, BROKERS)
    assert counted == pytest.approx(leads, abs=2 * sample.copies.max())


def test_a_sample_of_all_rows_has_the_dual_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    dual = dual_of(synthetic(BROKERS, 300, rf=3, seed=2))
    monkeypatch.setattr(row_sample, "LEAST", 300)
    sample = RowSample(dual)
    assert sample.rows.tolist() == list(range(300))
    rng = np.random.default_rng(3)
    for scale in (0.0, 1e-3, 1.0):
        prices = scale * rng.normal(size=dual.home.shape)
        value = dual.value(prices)
        assert sample.value(prices) == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert (sample.best == dual.best).all()


def test_the_program_of_a_sample_has_about_the_value_of_all() -> None:
    search = begun(synthetic(BROKERS, 6_000, rf=2, seed=4), banded(0.05), work=1e3)
    dual = BandDual(search.problem)
    whole = ColumnGeneration(search, dual).run()
    sampled = ColumnGeneration(search, RowSample(dual)).run()
    assert sampled.bound == pytest.approx(whole.bound, rel=0.1)
    # At its prices, what all rows prove is nearly the best bound.
    assert 0.8 * whole.bound < dual.value(sampled.prices) <= whole.bound * (1 + 1e-6)


def test_columns_of_rows_keep_the_brokers_that_each_is_barred_from() -> None:
    rows = [Row(replicas=(r % 4,)) for r in range(6)]
    c = dual_of(cluster([broker(b) for b in range(4)], rows)).columns
    parts = record_of(c)._replace(
        barred_start=np.array([0, 2, 2, 3, 3, 6, 6]), barred=np.array([1, 2, 0, 3, 1, 0])
    )
    found = columns_of(parts, np.array([4, 0, 1, 2]))
    assert found.home.tolist() == c.home[[4, 0, 1, 2]].tolist()
    assert found.barred_start.tolist() == [0, 3, 5, 5, 6]
    assert found.barred.tolist() == [3, 1, 0, 1, 2, 0]


def test_every_column_by_row_has_the_chosen_rows() -> None:
    c = record_of(dual_of(synthetic(BROKERS, 97, rf=2, seed=7)).columns)
    chosen = record_of(columns_of(c, np.arange(50)))
    lengths = {97: 50, 98: 51}
    for name, column in c._asdict().items():
        if isinstance(column, np.ndarray) and len(column) in lengths:
            assert len(getattr(chosen, name)) == lengths[len(column)], name


def test_rows_that_may_not_change_are_left_out_of_a_sample() -> None:
    snapshot = synthetic(BROKERS, 4_000, rf=2, seed=8)
    names = [topic.name for topic in snapshot.header.topics[:300]]
    goals = Goals.model_validate(banded().model_dump() | {"excluded_topics": names})
    dual = BandDual(compile_problem(snapshot, goals))
    sample = RowSample(dual)
    assert dual.columns.free[sample.rows].all()
    assert sample.copies.sum() == pytest.approx(1_000)
    assert not is_worth_sampling(dual)
    assert is_worth_sampling(dual_of(snapshot))


@pytest.mark.slow
def test_a_small_budget_suffices_for_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, goals = synthetic(40, 20_000, rf=2, seed=5), banded()
    limits = SolveLimits(work=3.0)
    sampled = solve(snapshot, goals, limits)
    assert sampled.best is not None
    assert evaluate(snapshot, goals, sampled.best.moves).within_band(goals)
    monkeypatch.setattr(row_sample, "WORTH", 1_000_000)
    whole = solve(snapshot, goals, limits)
    assert whole.objective is not None
    assert sampled.objective is not None
    assert sampled.objective < 0.5 * whole.objective


def test_a_draining_broker_is_emptied_by_way_of_a_sample() -> None:
    snapshot = synthetic(8, 3_000, rf=2, seed=6)
    first, *others = snapshot.header.brokers
    brokers = (first.model_copy(update={"state": BrokerState.DRAINING}), *others)
    header = snapshot.header.model_copy(update={"brokers": brokers})
    snapshot = Snapshot(header, snapshot.partitions)
    result = solve(snapshot, banded(), SolveLimits(work=2.0))
    assert result.best is not None
    evaluation = evaluate(snapshot, banded(), result.best.moves)
    assert evaluation.violations == ()
    emptied = [move for move in result.best.moves if first.id in move.removed]
    assert len(emptied) == np.count_nonzero(snapshot.partitions.replica_broker == 0) > 0
    assert not any(first.id in move.replicas_after for move in result.best.moves)


def test_a_program_that_has_grown_has_no_shares(capfd: pytest.CaptureFixture[str]) -> None:
    one, nothing = np.ones(1), np.zeros((1, 1), np.int64)
    program = BandProgram(-2 * one, -one, 10 * one, np.zeros(1, np.bool_), one)
    program.add(nothing[0], one, nothing, np.array([[-1.5]]))
    program.solve(1_000, lambda: False)
    assert program.shares() == pytest.approx([1 / 1.5])
    program.add(nothing[0], one, nothing, np.array([[-2.0]]))
    assert program.shares().tolist() == []
    assert capfd.readouterr() == ("", "")
