"""Describe the throttle of a run, and parse a new one."""

from typing import Final

from executor.run.operator_control import AskedRate
from model.units import AUTO, rate_of, rate_text

NONE: Final = "none"
UNLIMITED: Final = 10**15
"""A rate in bytes per second that no copy reaches."""

Throttle = int | str | None
"""As in the settings: bytes per second, `auto`, or None for none."""


def typed_rate(text: str) -> int | None:
    """Return the rate to request; None for `auto`.

    Raises ValueError if the text is not a rate, `auto` or `none`.
    """
    word = text.strip().lower()
    if word == AUTO:
        return None
    if word == NONE:
        return UNLIMITED
    try:
        return rate_of(text)
    except ValueError as exc:
        raise ValueError(f"{exc}, {AUTO} or {NONE}") from exc


def throttle_text(initial: Throttle, asked: AskedRate | None) -> str:
    """Describe the throttle in force, and the state of a requested change."""
    first = _of_settings(initial)
    if asked is None:
        return first
    requested = _of_steering(asked.bytes_per_s)
    if asked.answer is None:
        return f"{requested} requested"
    if asked.answer:
        return f"{requested} refused"
    return requested


def refused_text(asked: AskedRate | None) -> str:
    """Why the last requested rate was refused; empty if it was not."""
    return (asked.answer or "") if asked is not None else ""


def _of_settings(throttle: Throttle) -> str:
    return NONE if throttle is None else _of_steering(_number(throttle))


def _number(throttle: int | str) -> int | None:
    return throttle if isinstance(throttle, int) else None


def _of_steering(bytes_per_s: int | None) -> str:
    if bytes_per_s is None:
        return f"{AUTO}, follows what clients leave free"
    return NONE if bytes_per_s >= UNLIMITED else rate_text(bytes_per_s)
