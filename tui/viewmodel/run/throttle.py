"""The throttle of a run in words, and what may be typed for another one."""

from typing import Final

from executor.run.operator_control import AskedRate
from model.units import AUTO, rate_of, rate_text

NONE: Final = "none"
UNLIMITED: Final = 10**15
"""Bytes per second that nothing reaches."""

Throttle = int | str | None
"""Of the settings: bytes per second, `auto`, or None for none."""


def typed_rate(text: str) -> int | None:
    """What to ask a run for; None where the throttle is to follow what is free.

    Raises ValueError, in words.
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


def throttle_words(initial: Throttle, asked: AskedRate | None) -> str:
    """What is in force, and what came of another that was asked for."""
    first = _of_settings(initial)
    if asked is None:
        return first
    requested = _of_steering(asked.bytes_per_s)
    if asked.answer is None:
        return f"{requested} requested"
    if asked.answer:
        return f"{requested} refused"
    return requested


def refused_words(asked: AskedRate | None) -> str:
    """Why the rate that was asked for last is not in force; empty where it may be."""
    return (asked.answer or "") if asked is not None else ""


def _of_settings(throttle: Throttle) -> str:
    return NONE if throttle is None else _of_steering(_number(throttle))


def _number(throttle: int | str) -> int | None:
    return throttle if isinstance(throttle, int) else None


def _of_steering(bytes_per_s: int | None) -> str:
    if bytes_per_s is None:
        return f"{AUTO}, follows what clients leave free"
    return NONE if bytes_per_s >= UNLIMITED else rate_text(bytes_per_s)
