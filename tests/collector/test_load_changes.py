"""Changes of load in samples: of which broker, since when."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from collector.assemble import newest_vectors
from collector.load_changes import LoadChanges, load_changes
from collector.samples import SAMPLES
from collector.spark.vectors import VECTORS, Window, load_vectors
from tests.support.collector.sample_rows import START_MS, figures, sample, table

Rate = Callable[[int, int], int]
"""Records that a partition receives in one second."""
END = 16
LEADERS = (1, 1, 2, 2, 3, 3)


def window(rate: Rate, leader: Callable[[int, int], int] = lambda p, _s: LEADERS[p]) -> pa.Table:
    """A sample per second of six partitions, two for each of three brokers."""
    rows = []
    for number in range(len(LEADERS)):
        records = 1000
        for second in range(END):
            records += rate(number, second)
            rows.append(
                sample(
                    second,
                    partition=number,
                    broker=leader(number, second),
                    latest=records,
                    local_bytes=1000 * records,
                    group_offsets=records,
                )
            )
    return table(rows)


def step(at: int, partitions: set[int], factor: int = 2) -> Rate:
    return lambda number, second: 100 * (factor if number in partitions and second > at else 1)


def changed_s(found: LoadChanges) -> float | None:
    steadiness = found.steadiness
    assert steadiness is not None
    if steadiness.changed_ms is None:
        return None
    return (steadiness.changed_ms - START_MS) / 1000


def test_steady_loads_keep_all_samples() -> None:
    samples = window(lambda _p, _s: 100)
    found = load_changes(samples)
    assert changed_s(found) is None
    assert found.steadiness is not None
    assert found.steadiness.agrees
    assert found.steadiness.level_s == END - 1
    assert found.kept(samples).equals(samples)


@pytest.mark.parametrize("at", [3, 7, 12])
def test_only_samples_after_a_step_count_on_that_broker(at: int) -> None:
    samples = window(step(at, {2, 3}))
    found = load_changes(samples)
    assert changed_s(found) == at
    kept = found.kept(samples)
    oldest = kept.group_by("broker").aggregate([("time_ms", "min")]).to_pylist()
    first = {row["broker"]: (row["time_ms_min"] - START_MS) / 1000 for row in oldest}
    assert first == {1: 0, 2: at + 1, 3: 0}


@pytest.mark.parametrize(("within", "first_s"), [(14, 50), (10, 60)])
def test_seldom_samples_count_from_where_the_change_is_over(within: int, first_s: int) -> None:
    """Records per interval of 10 s: the change shows in the one that ends at 50 s, or not."""
    rows, latest = [], [0, 0]
    for at, factor in enumerate((10, 10, 10, 10, within, 20, 20)):
        for number in (0, 1):
            latest[number] += 100 * (factor if number else 10)
            records = latest[number]
            place = {"partition": number, "broker": number + 1}
            rows.append(sample(10 * (at + 1), **place, latest=records, local_bytes=records))
    found = load_changes(table(rows))
    assert found.brokers == {2: START_MS + 1000 * first_s}


def test_the_loads_after_a_step_are_no_mixture() -> None:
    samples = window(step(7, {2, 3}))
    vectors = figures(load_vectors(load_changes(samples).kept(samples), Window(window_ms=15_000)))
    assert [v["net_in"] for v in vectors] == pytest.approx([1e5, 1e5, 2e5, 2e5, 1e5, 1e5])


@pytest.mark.parametrize("changed", [{2, 3}, {2}])
def test_loads_are_measured_once_none_is_from_before_the_change(changed: set[int]) -> None:
    """A partition without a new vector keeps its old one, which a new plan must not be made on."""
    at = 5
    whole, known, measured = window(step(at, changed, 9)), VECTORS.empty_table(), []
    for second in range(at, END):
        samples = whole.filter(pc.field("time_ms") <= START_MS + 1000 * second)
        found = load_changes(samples)
        fresh = load_vectors(found.kept(samples), Window(window_ms=15_000))
        known = newest_vectors(known, fresh)
        steadiness = found.of(known)
        assert steadiness is not None
        loads = {v["partition"]: v["net_in"] for v in figures(known)}
        if steadiness.changed_ms is not None:
            new = {number: loads[number] > 8.9e5 for number in changed}
            assert steadiness.measured is all(new.values()), second
            measured.append(steadiness.measured)
        else:
            assert steadiness.measured
    assert measured[0] is False
    assert measured[-1] is True


def test_a_shift_between_large_partitions_of_one_broker_is_seen() -> None:
    def swap(number: int, second: int) -> int:
        rates = (150, 50) if second <= 7 else (50, 150)
        return rates[number] if number < 2 else 100

    samples = window(swap)
    found = load_changes(samples)
    assert changed_s(found) is None
    assert found.partitions.keys() == {("orders", 0), ("orders", 1)}
    vectors = figures(load_vectors(found.kept(samples), Window(window_ms=15_000)))
    assert [v["net_in"] for v in vectors][:2] == pytest.approx([5e4, 1.5e5])


def test_a_leader_that_moves_is_not_a_change_of_load() -> None:
    samples = window(lambda _p, _s: 100, lambda p, s: 3 if p == 0 and s > 7 else LEADERS[p])
    assert changed_s(load_changes(samples)) is None


def test_a_topic_that_is_created_again_is_no_negative_load() -> None:
    samples = window(lambda number, second: -900 if (number, second) == (0, 8) else 100)
    found = load_changes(samples)
    assert found.steadiness is not None
    assert found.steadiness.noise[1] >= 0  # type: ignore[index]  # an id


def test_order_and_repetition_do_not_matter() -> None:
    samples = window(step(7, {4}))
    doubled = pa.concat_tables([samples.slice(40), samples]).take(
        pc.array_sort_indices(pa.array([(7 * i) % 152 for i in range(152)]))
    )
    assert load_changes(doubled).brokers == load_changes(samples).brokers


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_samples_tell_nothing(count: int) -> None:
    samples = window(lambda _p, _s: 100)
    few = samples.filter(pc.field("time_ms") < START_MS + 1000 * count)
    assert load_changes(few).steadiness is None
    assert load_changes(few).kept(few).equals(few)


def test_partitions_without_a_leader_are_passed_over() -> None:
    samples = window(lambda _p, _s: 100, lambda p, _s: -1 if p == 0 else LEADERS[p])
    found = load_changes(samples)
    assert found.steadiness is not None
    assert set(found.steadiness.noise) == {1, 2, 3}


def test_ids_of_brokers_may_be_large() -> None:
    large = 2**31 - 1
    found = load_changes(window(step(7, {0, 1}), lambda p, _s: large if p < 2 else LEADERS[p]))
    assert found.brokers.keys() == {large}


@pytest.mark.parametrize(("reads", "unread"), [(1.0, set()), (0.0, {2}), (2.0, {2}), (0.5, {2})])
def test_consumers_that_do_not_keep_up_are_named_by_broker(reads: float, unread: set[int]) -> None:
    samples = window(lambda _p, _s: 100)
    slow = pc.equal(samples["broker"], 2)
    read = pc.cast(pc.multiply(pc.cast(samples["group_offsets"], pa.float64()), reads), pa.int64())
    offsets = pc.if_else(slow, read, samples["group_offsets"])
    at = samples.schema.get_field_index("group_offsets")
    found = load_changes(samples.set_column(at, "group_offsets", offsets)).steadiness
    assert found is not None
    assert found.unread == unread


def test_consumers_that_cannot_be_seen_are_not_named() -> None:
    samples = window(lambda _p, _s: 100)
    for name in ("groups", "group_offsets"):
        column = pa.array([-1] * len(samples), samples.schema.field(name).type)
        samples = samples.set_column(samples.schema.get_field_index(name), name, column)
    found = load_changes(samples).steadiness
    assert found is not None
    assert found.unread == frozenset()


def test_no_samples_are_no_change() -> None:
    assert load_changes(SAMPLES.empty_table()).steadiness is None
