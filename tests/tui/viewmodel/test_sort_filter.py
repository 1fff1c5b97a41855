"""Tables filtered and sorted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.viewmodel.cells import Column, Row, Table, cell
from tui.viewmodel.sort_filter import Filter, Wish, arranged, marked

TABLE = Table(
    columns=(Column("name", "name", 8), Column("load", "load", 8)),
    rows=tuple(
        Row(key=name, cells=(cell(name), cell(f"{load} B/s")), values=(name, load))
        for name, load in (("ann", 9.0), ("bob", 10.0), ("eve", 2.0))
    ),
    why_empty="nobody",
)


def _names(wish: Wish) -> list[str]:
    return [row.key for row in arranged(TABLE, wish).rows]


def test_a_filter_finds_an_expression_anywhere_and_in_any_case() -> None:
    assert _names(Wish(filter=Filter("^A|Bo."))) == ["ann", "bob"]


def test_an_exclamation_mark_inverts_a_filter() -> None:
    assert _names(Wish(filter=Filter("!b"))) == []
    assert _names(Wish(filter=Filter("!^ann"))) == ["bob", "eve"]


def test_an_empty_or_only_inverted_filter_keeps_all_rows() -> None:
    assert _names(Wish(filter=Filter("!"))) == ["ann", "bob", "eve"]


def test_an_invalid_filter_keeps_all_rows_and_explains_the_error() -> None:
    broken = Filter("(")
    assert "missing )" in broken.fault
    assert _names(Wish(filter=broken)) == ["ann", "bob", "eve"]


def test_a_filter_that_would_take_seconds_to_compile_is_refused() -> None:
    assert Filter("a{0,1000}" * 22).fault == "This regular expression is too large."


@given(st.text(st.characters(), max_size=60), st.text(max_size=20))
def test_whatever_is_pasted_a_filter_answers(pasted: str, message: str) -> None:
    pasted_filter = Filter(pasted)
    assert isinstance(pasted_filter.keeps(message), bool)
    assert pasted_filter.fault == "" or pasted_filter.keeps(message)


def test_rows_are_sorted_by_value_not_by_text_the_largest_first() -> None:
    assert _names(Wish(sort="load")) == ["bob", "ann", "eve"]
    assert _names(Wish(sort="load", down=False)) == ["eve", "ann", "bob"]


def test_the_column_sorted_by_has_an_arrow() -> None:
    shown = arranged(TABLE, Wish(sort="load"))
    assert [c.label for c in shown.columns] == ["name", "load ▼"]


def test_after_the_last_column_the_table_has_its_own_order() -> None:
    wish, keys = Wish(), []
    for _ in range(3):
        wish = wish.sorted_next(TABLE.columns)
        keys.append(wish.sort)
    assert keys == ["name", "load", ""]


def test_choosing_the_same_column_again_reverses_the_order() -> None:
    wish = Wish().sorted_by("load")
    assert wish.down
    assert not wish.sorted_by("load").down


def test_filtered_rows_are_counted_and_an_empty_result_explained() -> None:
    assert arranged(TABLE, Wish(filter=Filter("bob"))).note == "1 of 3 rows"
    none = arranged(TABLE, Wish(filter=Filter("zoe")))
    assert "'zoe'" in none.why_empty
    empty = arranged(Table(columns=TABLE.columns, rows=(), why_empty="nobody"), Wish())
    assert empty.why_empty == "nobody"


@pytest.mark.parametrize(
    ("label", "width", "shown"),
    [("id", 3, "id▼"), ("id", 6, "id ▼"), ("replicas", 8, "repli ▼"), ("lag", 4, "lag▼")],
)
def test_the_column_sorted_by_keeps_a_name(label: str, width: int, shown: str) -> None:
    (column,) = marked((Column(key="k", label=label, width=width),), Wish(sort="k", down=True))
    assert column.label == shown
