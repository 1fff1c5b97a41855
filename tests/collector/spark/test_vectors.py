"""Windows of synthetic samples with known rates."""

from typing import Any

import pytest

from collector.samples import NEW
from collector.spark.vectors import ASSUMED, NOBODY, PROBE, Window, load_vectors
from tests.support.collector.sample_rows import START_MS, figures, sample, table

WINDOW = Window(window_ms=15_000)


def vector(*rows: dict[str, Any], window: Window = WINDOW) -> dict[str, Any]:
    (result,) = figures(load_vectors(table(rows), window))
    return result


def steady(seconds: int = 16) -> list[dict[str, Any]]:
    return [sample(second) for second in range(seconds)]


def test_steady_load_is_measured_exactly() -> None:
    result = vector(*steady())
    assert result == {
        "topic": "orders",
        "partition": 0,
        "time_ms": START_MS + 15_000,
        "broker": 1,
        "samples": 16,
        "span_ms": 15_000,
        "net_in": pytest.approx(100_000),
        "net_out": pytest.approx(100_000),
        "disk": 1_500_000,
        "total_bytes": 1_500_000,
        "in_measured": True,
        "out_measured": True,
        "records_in": pytest.approx(100),
        **dict.fromkeys(("cpu", "requests")),
        "requests_measured": False,
        **dict.fromkeys(("in_by", "out_by", "total_by"), PROBE),
        **dict.fromkeys(("cpu_by", "requests_by"), NOBODY),
        **dict.fromkeys(("automq_ms", "cruise_control_ms", "prometheus_ms"), -1),
    }


@pytest.mark.parametrize("seconds", [[0, 1, 2, 3], [0, 5]])
def test_too_few_or_too_close_samples_give_no_vector(seconds: list[int]) -> None:
    rows = table([sample(s) for s in seconds])
    assert load_vectors(rows, WINDOW).num_rows == 0


def test_three_samples_over_four_seconds_give_one() -> None:
    assert vector(sample(0), sample(2), sample(4))["samples"] == 3


def test_order_and_repetition_of_samples_do_not_matter() -> None:
    rows = steady()
    assert vector(*reversed(rows), *rows[3:9]) == vector(*rows)


def test_only_the_newest_window_counts() -> None:
    idle = [sample(s, latest=0, local_bytes=0, group_offsets=0) for s in range(-60, 0)]
    assert vector(*idle, *steady()) == vector(*steady())


def test_samples_without_a_leader_do_not_count() -> None:
    assert vector(*steady(), sample(15.5, broker=-1)) == vector(*steady())


def test_partitions_are_kept_apart_and_sorted() -> None:
    rows = [
        sample(s, topic=name, partition=number, latest=rate * s, local_bytes=10 * s)
        for s in range(6)
        for name, number, rate in (("b", 0, 30), ("a", 10, 20), ("a", 9, 10))
    ]
    result = load_vectors(table(rows), WINDOW)
    names, numbers = result["topic"].to_pylist(), result["partition"].to_pylist()
    assert (names, numbers) == (["a", "a", "b"], [9, 10, 0])
    assert result["net_in"].to_pylist() == pytest.approx([10.0, 10.0, 10.0])


def tiered(second: int, every_s: int, record_bytes: int = 1000) -> dict[str, Any]:
    """The local log is truncated to zero every `every_s` seconds."""
    gone = 100 * (second - second % every_s)
    return sample(
        second,
        earliest_local=gone,
        local_bytes=record_bytes * (100 * second - gone),
        total_bytes=-1,
    )


@pytest.mark.parametrize("every_s", [2, 3, 5, 7])
def test_deletion_of_segments_does_not_distort_the_rate(every_s: int) -> None:
    result = vector(*(tiered(s, every_s) for s in range(1, 17)))
    assert result["net_in"] == pytest.approx(100_000)
    assert result["in_measured"]


def test_a_size_that_drops_a_step_late_does_not_distort_the_rate() -> None:
    rows = steady()
    for row in rows[8:]:
        row["earliest_local"] = 500
    for row in rows[9:]:
        row["local_bytes"] -= 500_000
    assert vector(*rows)["net_in"] == pytest.approx(100_000)


def test_the_size_with_the_tier_is_computed_from_offsets() -> None:
    result = vector(*(tiered(s, 5) for s in range(1, 17)))
    assert result["total_bytes"] == pytest.approx(1_600_000)
    assert result["disk"] == 100_000


def test_a_moved_leader_with_a_small_log_does_not_distort_the_rate() -> None:
    rows = [sample(s, local_bytes=50_000_000 + 100_000 * s) for s in range(8)]
    rows += [
        sample(s, broker=2, earliest_local=750, local_bytes=1000 * (100 * s - 750))
        for s in range(8, 16)
    ]
    result = vector(*rows)
    assert result["net_in"] == pytest.approx(100_000)
    assert result["broker"] == 2


def test_right_after_a_move_to_an_empty_log_the_topic_gives_the_size() -> None:
    moved = [
        sample(s, partition=1, broker=s, earliest_local=100 * s, local_bytes=0) for s in range(6)
    ]
    rows = [*(sample(s) for s in range(6)), *moved]
    result = load_vectors(table(rows), WINDOW).to_pylist()
    assert result[1]["net_in"] == pytest.approx(100_000)
    assert not result[1]["in_measured"]


def test_offsets_that_go_back_are_omitted() -> None:
    rows = steady()
    for row in rows[8:]:
        row["latest"] -= 600
    assert vector(*rows)["net_in"] == pytest.approx(100_000)


def test_an_idle_partition_is_measured_as_idle() -> None:
    rows = [sample(s, latest=500, local_bytes=9, group_offsets=500) for s in range(6)]
    result = vector(*rows)
    assert (result["net_in"], result["net_out"]) == (0, 0)
    assert result["in_measured"]
    assert result["out_measured"]


def test_without_sizes_the_rate_is_unknown_not_zero() -> None:
    result = vector(*(sample(s, local_bytes=-1, total_bytes=-1) for s in range(6)))
    assert all(result[n] is None for n in ("net_in", "disk", "total_bytes"))
    assert not result["in_measured"]


def test_a_large_old_log_gives_an_estimate_when_no_growth_is_observed() -> None:
    rows = [
        sample(s, latest=10**6 + 100 * s, earliest_local=s, local_bytes=10**9) for s in range(6)
    ]
    result = vector(*rows)
    assert result["net_in"] == pytest.approx(100_000, rel=0.01)
    assert not result["in_measured"]


@pytest.mark.parametrize("commit_every_s", [1, 3, 5])
def test_bursts_of_commits_are_smoothed(commit_every_s: int) -> None:
    rows = [sample(s, group_offsets=100 * (s - s % commit_every_s)) for s in range(31)]
    result = vector(*rows, window=Window(window_ms=30_000))
    assert result["net_out"] == pytest.approx(100_000, rel=0.05)


def test_a_consumer_that_stops_fades_within_the_window() -> None:
    rows = [sample(s, group_offsets=min(100 * s, 1000)) for s in range(31)]
    assert vector(*rows)["net_out"] == 0
    assert 0 < vector(*rows[:18])["net_out"] < 100_000


def test_two_consumer_groups_count_twice() -> None:
    result = vector(*(sample(s, groups=2, group_offsets=200 * s) for s in range(9)))
    assert result["net_out"] == pytest.approx(200_000)


def test_a_group_that_joins_does_not_count_as_a_burst() -> None:
    rows = steady()
    for row in rows[8:]:
        row["groups"], row["group_offsets"] = 2, 10**6 + 2 * row["group_offsets"]
    assert 100_000 <= vector(*rows)["net_out"] <= 200_000


def test_reset_commits_are_omitted() -> None:
    rows = steady()
    for row in rows[8:]:
        row["group_offsets"] -= 700
    assert vector(*rows)["net_out"] == pytest.approx(100_000)


def test_without_committing_groups_the_estimate_is_zero() -> None:
    result = vector(*(sample(s, groups=0, group_offsets=0) for s in range(6)))
    assert result["net_out"] == 0
    assert not result["out_measured"]


def test_hidden_groups_are_estimated_by_the_configured_fan_out() -> None:
    rows = [sample(s, groups=-1, group_offsets=-1) for s in range(6)]
    result = vector(*rows, window=Window(window_ms=15_000, fan_out=3))
    assert result["net_out"] == pytest.approx(300_000)
    assert not result["out_measured"]
    assert result["out_by"] == ASSUMED


def test_no_samples_give_no_vectors() -> None:
    assert load_vectors(table([]), WINDOW).num_rows == 0


def test_a_vector_does_not_depend_on_other_partitions_to_the_last_bit() -> None:
    """The same under another name, which changes its position among them."""
    rows = [
        sample(
            second + 0.037 * (second * number % 11),
            topic=name,
            partition=number,
            latest=second * (331 + number),
            group_offsets=second * (313 + 7 * number),
        )
        for second in range(16)
        for name in ("a", "b")
        for number in range(7)
    ]
    result = figures(load_vectors(table(rows), WINDOW))
    renamed = [row | {"topic": {"a": "b", "b": "a"}[row["topic"]]} for row in rows]
    again = figures(load_vectors(table(renamed), WINDOW))
    assert [row | {"topic": "a"} for row in result[7:]] == again[:7]


def test_a_recreated_topic_starts_over() -> None:
    old = [sample(s, latest=10**6 + 9 * s, broker=2) for s in range(8)]
    new = [sample(s) for s in range(8, 16)]
    new[0]["flags"] = NEW
    assert vector(*old, *new) == vector(*new)


def test_a_topic_that_was_just_recreated_has_no_load_yet() -> None:
    old, new = [sample(s) for s in range(8)], sample(8, flags=NEW)
    assert load_vectors(table([*old, new]), WINDOW).num_rows == 0


def test_one_recreated_topic_does_not_affect_the_others() -> None:
    rows = [sample(s, topic=name) for s in range(16) for name in ("a", "b", "c")]
    rows[3 * 12 + 1]["flags"] = NEW
    result = load_vectors(table(rows), WINDOW).to_pylist()
    assert [(v["topic"], v["samples"]) for v in result] == [("a", 16), ("c", 16)]


def test_samples_of_a_clock_that_is_five_minutes_behind_do_not_count() -> None:
    behind = [sample(s - 300, latest=10**9, broker=2) for s in range(16)]
    assert vector(*steady(), *behind) == vector(*steady())


@pytest.mark.parametrize("remaining", [0.5, 0.05])
def test_gaps_in_offsets_do_not_distort_the_bytes(remaining: float) -> None:
    """Compaction and transactions: the log grows by less than its offsets."""
    rows = [sample(s, local_bytes=int(100_000 * remaining * s)) for s in range(16)]
    assert vector(*rows)["net_in"] == pytest.approx(100_000 * remaining)


def test_a_compacted_log_that_shrinks_does_not_distort_the_rate() -> None:
    """The cleaner rewrites old segments; no offset is deleted at the start."""
    rows = [sample(s, local_bytes=9_000_000 + 100_000 * s) for s in range(16)]
    for row in rows[9:]:
        row["local_bytes"] -= 8_000_000
    assert vector(*rows)["net_in"] == pytest.approx(100_000)
