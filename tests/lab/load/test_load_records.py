"""Numbered records: their pace, and the comparison with what was read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.load.load_records import (
    NUMBER_BYTES,
    Pacer,
    Tally,
    failed_but_read_count,
    filler,
    lost_count,
    number_of,
)


def tally_of(numbers: list[int], first_offset: int = 0) -> Tally:
    tally = Tally(next_offset=first_offset)
    for offset, number in enumerate(numbers, first_offset):
        tally.see(offset, number)
    return tally


def test_a_number_is_read_back() -> None:
    value = (2**40).to_bytes(NUMBER_BYTES, "big") + filler(1000, 7)
    assert len(value) == 1000
    assert number_of(value) == 2**40


def test_equal_seeds_fill_equally() -> None:
    assert filler(100, 3) == filler(100, 3) != filler(100, 4)


def test_a_complete_reading_has_no_loss() -> None:
    tally = tally_of(list(range(10)))
    assert (tally.read, tally.duplicated, lost_count(tally, 10, [])) == (10, 0, 0)


def test_a_skipped_number_and_the_tail_are_lost() -> None:
    assert lost_count(tally_of([0, 1, 3]), 6, []) == 3


def test_a_number_that_turns_up_late_is_not_lost() -> None:
    tally = tally_of([0, 2, 1])
    assert (tally.duplicated, lost_count(tally, 3, [])) == (0, 0)


def test_a_number_at_two_offsets_is_a_duplicate() -> None:
    assert tally_of([0, 1, 1, 2]).duplicated == 1


def test_an_offset_delivered_again_counts_once() -> None:
    """After a rebalance a group reads from its last commit."""
    tally = tally_of([0, 1, 2])
    tally.see(1, 1)
    tally.see(2, 2)
    assert (tally.read, tally.duplicated) == (3, 0)


def test_records_before_the_start_do_not_count() -> None:
    tally = Tally(next_offset=5)
    tally.see(4, 99)
    tally.see(5, 0)
    assert (tally.read, lost_count(tally, 1, [])) == (1, 0)


@pytest.mark.parametrize("numbers", [[0, 1, 2], [0, 2]])
def test_a_failed_number_counts_neither_as_lost_nor_as_read(numbers: list[int]) -> None:
    assert lost_count(tally_of(numbers), 2, [1]) == 0


def test_failed_numbers_that_were_read_are_counted() -> None:
    tally = tally_of([0, 2])
    assert [failed_but_read_count(tally, [number]) for number in range(4)] == [1, 0, 1, 0]


@given(st.sets(st.integers(0, 50)), st.integers(0, 60))
def test_acknowledged_records_that_are_not_seen_are_lost(seen: set[int], sent: int) -> None:
    seen = {number for number in seen if number < sent}
    assert lost_count(tally_of(sorted(seen)), sent, []) == sent - len(seen)


@given(st.lists(st.floats(0, 0.5), max_size=60), st.floats(0, 500))
def test_the_pace_is_constant_over_uneven_ticks(ticks: list[float], rate: float) -> None:
    pacer = Pacer([rate], 1.0)
    sent = sum(pacer.advance(tick)[0] for tick in ticks)
    assert sent == pytest.approx(rate * sum(ticks), abs=1.001)


def test_a_long_pause_is_not_made_up_for() -> None:
    assert Pacer([10.0, 20.0], 1.0).advance(60.0) == [10, 20]
