"""Selectors: their syntax, and those of the presets."""

import pytest

from collector.reports.report_columns import FIGURES
from collector.reports.selectors import PRESETS, figures, selector
from model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "written", "counter"),
    [
        ("up", "up", False),
        ("rate(a:b_total)", "a:b_total", True),
        ('a{b="c"}', 'a{b="c"}', False),
        (' rate( a { b = "c, }" , d="" , } ) ', 'a{b="c, }",d=""}', True),
        ("a{}", "a", False),
    ],
)
def test_a_selector_is_a_name_with_labels_or_a_rate_of_it(
    text: str, written: str, counter: bool
) -> None:
    result = selector(text)
    assert (str(result), result.counter) == (written, counter)


@pytest.mark.parametrize(
    "text", ["", "1a", "a b", "rate(a", "a)", "a{b}", 'a{b!="c"}', 'a{b="c" d="e"}', "sum(a)"]
)
def test_an_invalid_selector_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a series; use NAME, or NAME") as no:
        selector(text)
    assert repr(text) in str(no.value)


def test_an_empty_label_equals_a_missing_one() -> None:
    result = selector('size{kind="log",future=""}')
    assert result.takes("size", {"kind": "log", "topic": "t"})
    assert not result.takes("size", {"kind": "log", "future": "true"})
    assert not result.takes("size", {"topic": "t"})
    assert not result.takes("sizes", {"kind": "log"})


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_covers_traffic_requests_and_cpu(preset: str) -> None:
    selected = set(figures(preset, {}))
    assert selected >= {"bytes_in", "bytes_out", "requests"}
    assert selected & {"cpu_cores", "cpu_share"}
    assert selected <= set(FIGURES)


def test_configured_names_replace_those_of_a_preset() -> None:
    own = {"bytes_in": ("a", "rate(b)"), "requests": (), "cpu_share": ("load",)}
    result = figures("jmx", own)
    assert [str(s) for s in result["bytes_in"]] == ["a", "b"]
    assert "requests" not in result
    assert set(result) == set(PRESETS["jmx"]) - {"requests"} | {"cpu_share"}
