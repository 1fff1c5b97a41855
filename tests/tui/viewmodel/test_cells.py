"""Text that has to fit a width."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.viewmodel.cells import (
    Column,
    Role,
    Row,
    Span,
    cell,
    fitted,
    flow,
    plain,
    right,
    shorten,
    shorten_line,
    shorten_middle,
    shorten_words,
)

ITEMS = ["optimal", "gap 12 → 0.2", "4 moves", "33.5 MB to copy"]


@given(st.integers(16, 80))
def test_flowing_items_keep_their_order_and_none_is_broken(width: int) -> None:
    lines = [plain(line) for line in flow([cell(i) for i in ITEMS], width)]
    assert all(len(line) <= width for line in lines)
    assert [i for line in lines for i in line.split("  ")] == ITEMS


def test_an_item_wider_than_the_line_gets_its_own_line() -> None:
    lines = [plain(line) for line in flow([cell("ab"), cell("x" * 9)], 5)]
    assert lines == ["ab", "x" * 9]


def test_a_shortened_partition_keeps_its_number() -> None:
    assert shorten_middle("payments-by-customer-117", 14) == "paymen…mer-117"


@given(st.text(max_size=40), st.integers(2, 20))
def test_shortened_text_fits(text: str, width: int) -> None:
    assert len(shorten(text, width)) <= width
    assert len(shorten_middle(text, width)) <= width


@pytest.mark.parametrize("width", range(1, 80))
def test_a_truncated_line_splits_no_figure(width: int) -> None:
    text = "improved: 17 moves, imbalance 1.18 -> 0.025, -12.5 %, 1,011 GB in 5 s"
    line = (Span(text[:20], Role.GOOD), Span(text[20:]))
    cut = plain(shorten_line(line, width))
    assert cut == shorten_words(text, width)
    assert len(cut) <= width
    figures = re.findall(r"\S*\d\S*", text)
    assert re.findall(r"\S*\d[^\s…]*", cut) == figures[: len(re.findall(r"\d+\S*", cut))]


def test_numbers_end_one_column_before_the_next() -> None:
    assert plain(right("1 B", 6)) == "  1 B"


def test_columns_fit_their_cells_and_a_blank() -> None:
    columns = (Column("a", "a", 10), Column("b", "b", 17), Column("c", "c", 3))
    row = Row(key="1", cells=(cell("1011 → 102"), cell("-5 %"), cell("400")))
    assert [c.width for c in fitted(columns, [row])] == [11, 17, 3]
