"""Answers that are dear to make and asked for again and again."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def kept(make: Callable[P, R]) -> Callable[P, R]:
    """The newest answer again, while it is asked for with the very same objects."""
    last: tuple[tuple[object, ...], R] | None = None

    def ask(*args: P.args, **options: P.kwargs) -> R:
        nonlocal last
        asked = (*args, *options.values())
        if last is not None and all(map(_same, last[0], asked)):
            return last[1]
        last = (asked, make(*args, **options))
        return last[1]

    return ask


def _same(one: object, other: object) -> bool:
    return one is other
