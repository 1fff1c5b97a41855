"""Prometheus' text format, of which only the series that are asked for are parsed."""

from collections.abc import Iterator, Sequence

from collector.reports.selectors import Selector

Labels = frozenset[tuple[str, str]]
Series = dict[Labels, float]
"""Values by labels."""


def parse(text: str, chosen: Sequence[Selector]) -> list[Series]:
    """Return the series of each selector, in their order.

    Raises ValueError where the text is not in Prometheus' text format 0.0.4.
    """
    # It takes 0.1 s, which only those pay who scrape.
    from prometheus_client.parser import text_string_to_metric_families

    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    found: list[Series] = [{} for _ in chosen]
    try:
        for family in text_string_to_metric_families("\n".join(_lines(text, chosen))):
            for sample in family.samples:
                labels = frozenset(sample.labels.items())
                for position, selector in enumerate(chosen):
                    if selector.takes(sample.name, sample.labels):
                        found[position][labels] = float(sample.value)
    # A time of 400 digits is an OverflowError.
    except (ValueError, LookupError, ArithmeticError) as exc:
        raise ValueError("a line is not a sample") from exc
    return found


def _lines(text: str, chosen: Sequence[Selector]) -> Iterator[str]:
    """Lines that a selector may take: the parser needs 20 us for each line, and an
    exporter without rules has a hundred times as many."""
    names = tuple(selector.name for selector in chosen)
    marks = [
        (selector.name, [f'"{value}"' for value in selector.labels.values() if value])
        for selector in chosen
    ]
    for line in text.split("\n"):
        if line.startswith(names) and any(
            line.startswith(name) and all(value in line for value in values)
            for name, values in marks
        ):
            yield line
