"""Lines of keys in TOML files."""

import pytest

from model.exchange.toml_lines import line_of

TEXT = """\
a = 1
b.c = 2  # [d]
[d]
"e.f" = 3
[[d.g]]
h = 4
[[d.g]]
h = { i = 5 }
[d.g.j]
k = 6
"""


@pytest.mark.parametrize(
    ("trail", "line"),
    [
        (("a",), 1),
        (("b", "c"), 2),
        (("b", "x"), None),
        (("d",), 3),
        (("d", "x"), 3),
        (("d", "e.f"), 4),
        (("d", "g", 0, "h"), 6),
        (("d", "g", 1), 7),
        (("d", "g", 1, "h", "i"), 8),
        (("d", "g", 1, "j", "k"), 10),
        (("x",), None),
    ],
)
def test_a_field_has_its_line_or_that_of_its_table(
    trail: tuple[str | int, ...], line: int | None
) -> None:
    assert line_of(TEXT, trail) == line
