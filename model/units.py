"""Figures in words: bytes, rates, times and shares as people read them."""

import re
from typing import Final, Literal

AUTO: Final = "auto"
"""A throttle that follows what clients leave free."""

_STEPS = ("B", "kB", "MB", "GB", "TB", "PB")
_SPANS = {"": 1, "s": 1, "m": 60, "h": 3600}


def bytes_text(value: float) -> str:
    """Bytes in decimal units with three digits: `7.20 MB`."""
    size = float(value)
    for unit in _STEPS:
        if abs(size) < 999.5 or unit == _STEPS[-1]:
            break
        size /= 1000
    if unit == "B":
        return f"{size:.0f} B"
    decimals = 2 if abs(size) < 9.995 else 1 if abs(size) < 99.95 else 0
    return f"{size:.{decimals}f} {unit}"


def short_text(value: float) -> str:
    """A figure in at most five letters: `7.20M`, `167M`, `0`; the unit is elsewhere."""
    number, unit = bytes_text(value).split()
    return number + unit.removesuffix("B")


def rate_text(value: float) -> str:
    """Bytes per second: `1.67 MB/s`."""
    return bytes_text(value) + "/s"


def percent_text(share: float) -> str:
    """A share of 1 as percent with one decimal: `+12.0 %` has its sign elsewhere."""
    return f"{100 * share:.1f} %"


def seconds_text(seconds: float) -> str:
    """A time span: `0.85 s`, `12.3 s`, `4 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: `1 move`, `3 moves`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def rate_of(text: str) -> int:
    """Bytes per second from a number, also with a unit: `50MB/s`, `50 MB`, `5e7`.

    Raises ValueError, in words, for anything else and for less than one byte.
    """
    value = _decimal(re.sub(r"/s\s*$", "", text))
    if not 1 <= value < 1e15:
        raise ValueError(f"{text!r} is no rate; say bytes per second, or 50MB/s")
    return int(value)


def throttle_of(text: str) -> int | Literal["auto"]:
    """As `rate_of`, or `auto`."""
    if text.strip() == AUTO:
        return AUTO
    try:
        return rate_of(text)
    except ValueError as exc:
        raise ValueError(f"{exc}, or {AUTO}") from exc


def bytes_of(text: str) -> int:
    """Bytes from a number, also with a unit: `1TB`, `500 GB`, `5e11`.

    Raises ValueError, in words, for anything else and for less than one byte.
    """
    value = _decimal(text)
    if not 1 <= value <= 1e18:
        raise ValueError(f"{text!r} is no size; say bytes, or 500GB")
    return int(value)


def _decimal(text: str) -> float:
    """A number and perhaps a unit; 0 for anything else."""
    found = re.fullmatch(r"\s*([\d.]+(?:e\+?\d+)?)\s*([kMGTP]?B)?\s*", text)
    try:
        return float(found[1]) * 1000 ** _STEPS.index(found[2] or "B") if found else 0.0
    except ValueError:
        return 0.0


def span_of(text: str) -> float:
    """Seconds from a time span, also with a unit: `90`, `60s`, `5m`, `1.5h`.

    Raises ValueError, in words, for anything else and for none at all.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    seconds = float(found[1]) * _SPANS[found[2]] if found else 0.0
    if not 0 < seconds < 1e9:
        raise ValueError(f"{text!r} is no time span; say 60s, 5m or 1h")
    return seconds
