"""The same statistics in plain Python."""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil

Given = Iterable[tuple[int, float]]


def statistics(rows: Given) -> dict[int, tuple[float, float, float, int]]:
    """Mean, p95, maximum and count of each group's loads."""
    groups: dict[int, list[float]] = defaultdict(list)
    for group, value in rows:
        if 0 <= value < float("inf"):
            groups[group].append(value)
    return {
        group: (
            sum(values) / len(values),
            sorted(values)[ceil(95 * len(values) / 100) - 1],
            max(values),
            len(values),
        )
        for group, values in groups.items()
    }
