"""Cache the last result of expensive functions that are called repeatedly."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def memoized(make: Callable[P, R]) -> Callable[P, R]:
    """Return the last result while the arguments are the very same objects."""
    return memoized_while(lambda *args, **options: (*args, *options.values()))(make)


def memoized_while(
    made_of: Callable[..., tuple[object, ...]],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the last result while `made_of` returns the very same objects."""

    def keep(make: Callable[P, R]) -> Callable[P, R]:
        last: tuple[tuple[object, ...], R] | None = None

        def ask(*args: P.args, **options: P.kwargs) -> R:
            nonlocal last
            asked = made_of(*args, **options)
            if last is None or not all(map(_same, last[0], asked)):
                last = (asked, make(*args, **options))
            return last[1]

        return ask

    return keep


def _same(one: object, other: object) -> bool:
    return one is other
