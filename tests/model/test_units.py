"""Figures as text."""

import pytest

from model.units import (
    bytes_of,
    bytes_text,
    count_text,
    deviation_text,
    percent_text,
    rate_of,
    rate_text,
    seconds_text,
    share_text,
    span_of,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (1_500, "1.50 kB"),
        (7_200_000, "7.20 MB"),
        (72_000_000, "72.0 MB"),
        (720_000_000, "720 MB"),
        (999_700_000, "1.00 GB"),
        (-2_000, "-2.00 kB"),
        (5e18, "5000 PB"),
    ],
)
def test_bytes_have_three_digits(value: float, text: str) -> None:
    assert bytes_text(value) == text
    assert rate_text(value) == text + "/s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.851, "0.85 s"), (12.34, "12.3 s"), (245, "4 min 05 s"), (7_800, "2 h 10 min")],
)
def test_times_are_as_precise_as_needed(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_shares_are_percent_with_one_decimal() -> None:
    assert percent_text(0.1234) == "12.3 %"


@pytest.mark.parametrize(("count", "text"), [(0, "0 moves"), (1, "1 move"), (1200, "1,200 moves")])
def test_counts_have_their_noun(count: int, text: str) -> None:
    assert count_text(count, "move") == text


def test_an_odd_plural_may_be_given() -> None:
    assert count_text(2, "leader has", "leaders have") == "2 leaders have"


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50MB/s", 50_000_000),
        ("50 MB", 50_000_000),
        (" 1.5kB/s ", 1_500),
        ("2e6", 2_000_000),
        ("7B", 7),
        ("50MiB/s", 50 * 2**20),
        ("1.5KiB", 1536),
        ("3KB", 3000),
    ],
)
def test_a_rate_is_read_with_and_without_unit(text: str, rate: int) -> None:
    assert rate_of(text) == rate


@pytest.mark.parametrize("text", ["", "0", "-5", "5xB", "1.2.3MB", "50MB/h", "9999TB"])
def test_an_invalid_rate_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate; use bytes per second"):
        rate_of(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1TB", 10**12),
        (" 500 GB ", 5 * 10**11),
        ("2.5PB", 25 * 10**14),
        ("7", 7),
        ("50MiB", 50 * 2**20),
        ("9007199254740993", 2**53 + 1),
    ],
)
def test_a_size_is_read_with_and_without_unit(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    "text", ["", "0", "-5", "1TB/s", "1Gib", "1Tb", "1GB5", "5M", "nan", "9e18"]
)
def test_an_invalid_size_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size; use bytes, or a unit"):
        bytes_of(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("60s", 60),
        (" 5 m ", 300),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("1d 1s", 86401),
        ("250ms", 0.25),
    ],
)
def test_a_span_is_read_with_and_without_a_unit(text: str, seconds: float) -> None:
    assert span_of(text) == seconds


@pytest.mark.parametrize("text", ["", "-5s", "soon", "5w", "30m1h", "1h1h", "1m30", "nan"])
def test_an_invalid_time_span_is_reported_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time span; use seconds"):
        span_of(text)


def test_a_time_span_out_of_range_is_reported_with_the_range() -> None:
    for text in ("999999d", "9" * 12):
        with pytest.raises(ValueError, match=f"'{text}' is too long; give at most 11574d"):
            span_of(text)
    with pytest.raises(ValueError, match=r"'0s' is too short; give at least 0\.001s"):
        span_of("0s")
    assert span_of("0s", least=0) == 0
    assert span_of("11574d") == 11574 * 86400


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [(0.124, 0, "+12 %"), (-0.5, 0, "-50 %"), (-0.004, 0, "0 %"), (-0.004, 1, "-0.4 %")],
)
def test_a_deviation_has_a_sign_but_is_never_minus_zero(
    share: float, digits: int, text: str
) -> None:
    assert deviation_text(share, digits) == text


def test_a_share_in_a_sentence_has_no_decimal_that_is_zero() -> None:
    assert [share_text(x) for x in (0.02, 0.025, 1.0, 0.0)] == ["2 %", "2.5 %", "100 %", "0 %"]
    assert share_text(0.0004) == "<0.1 %"
