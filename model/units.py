"""Figures as text: bytes, rates, times and shares as people read them."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal

AUTO: Final = "auto"
"""A throttle that follows what clients leave free."""

_STEPS = ("B", "kB", "MB", "GB", "TB", "PB")
_SIZES: Final[dict[str, int]] = {
    "": 1,
    **{unit: 1000**n for n, unit in enumerate(_STEPS)},
    "KB": 1000,
    **{f"{unit}iB": 1024**n for n, unit in enumerate(("K", "M", "G", "T", "P"), 1)},
}
"""Bytes of each unit: `MB` is a million, `MiB` is 2^20."""

_SPANS: Final = {
    "d": Decimal(86400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
}
"""Seconds of each unit, in the order in which they are written."""

LEAST_SHARE: Final = 0.0005
"""Shares below this one would be rounded to 0.0 %."""

MOST_SPAN_S: Final = 10**9
"""Time spans are shorter than these seconds, 31 years."""

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_SPAN = re.compile("".join(rf"(?:(?P<{unit}>{_NUMBER})\s*{unit}(?![a-z])\s*)?" for unit in _SPANS))


def bytes_text(value: float | None) -> str:
    """Bytes in decimal units with three digits, `7.20 MB`; `unknown` for None."""
    if value is None:
        return "unknown"
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
    """A rate in bytes per second as text: `1.67 MB/s`."""
    return bytes_text(value) + "/s"


def cores_text(cores: float) -> str:
    """CPU in cores as text, with four digits: `3.5 cores`."""
    return f"{cores:.4g} {'core' if cores == 1 else 'cores'}"


def percent_text(share: float) -> str:
    """A share of 1 as percent with one decimal: `+12.0 %` has its sign elsewhere."""
    return f"{100 * share:.1f} %"


def share_text(share: float) -> str:
    """A share of 1 as percent in a sentence: `12.5 %`, but `12 %`; `<0.1 %` is not 0."""
    if 0 < share < LEAST_SHARE:
        return "<0.1 %"
    return percent_text(share).replace(".0 %", " %")


def deviation_text(share: float, digits: int = 0) -> str:
    """A deviation from the average, a share of it, in percent: `+12 %`; zero has no sign.

    digits: decimals.
    """
    # Adding 0.0 turns -0.0 into 0.0.
    percent = round(100 * share, digits) + 0.0
    sign = "+" if percent else ""
    return f"{percent:{sign}.{digits}f} %"


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
    """A count with its noun, the plural in `many` or with an s: `3 moves`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(items: Sequence[object], most: int) -> str:
    """The first `most` items, and how many more there are: `a, b and 1,200 more`."""
    more = len(items) - most
    return ", ".join(map(str, items[:most])) + (f" and {more:,} more" if more > 0 else "")


def rate_of(text: str) -> int:
    """Bytes per second from a number, also with a unit: `50MB/s`, `50 MiB`, `5e7`.

    Raises ValueError, in words, for anything else and for less than one byte.
    """
    value = _size(re.sub(r"/s\s*$", "", text))
    if value is None or not 1 <= value < 10**15:
        raise ValueError(
            f"{text!r} is not a rate; use bytes per second, or a unit: 50MB/s, 50MiB/s"
        )
    return int(value)


def throttle_of(text: str) -> int | Literal["auto"]:
    """Bytes per second as `rate_of` reads them, or `auto`.

    Raises ValueError for anything else.
    """
    if text.strip() == AUTO:
        return AUTO
    try:
        return rate_of(text)
    except ValueError as exc:
        raise ValueError(f"{exc}, or {AUTO}") from exc


def bytes_of(text: str, *, least: int = 1) -> int:
    """Bytes from a number, also with a unit: `1TB`, `500 GiB`, `5e11`.

    Raises ValueError, in words, for anything else and for less than `least`.
    """
    value = _size(text)
    if value is None or not least <= value <= 10**18:
        raise ValueError(f"{text!r} is not a size; use bytes, or a unit: 500GB, 50MiB")
    return int(value)


def _size(text: str) -> Decimal | None:
    """A number and perhaps a unit of bytes; None for anything else."""
    found = re.fullmatch(rf"\s*({_NUMBER})(?:e\+?([0-9]{{1,2}}))?\s*([kKMGTP]?i?B)?\s*", text)
    unit = _SIZES.get(found[3] or "") if found else None
    if found is None or unit is None:
        return None
    return Decimal(found[1]).scaleb(int(found[2] or 0)) * unit


def span_of(text: str, *, least: float = 0.001) -> float:
    """Seconds from a time span: `90`, `500ms`, `60s`, `1.5h`, `1h30m`, `2d`.

    Raises ValueError, in words, for anything else and for less than `least`.
    """
    seconds = _seconds(text)
    if seconds is None:
        raise ValueError(f"{text!r} is not a time span; use seconds, or units: 60s, 5m, 1h30m")
    if seconds < Decimal(str(least)):
        raise ValueError(f"{text!r} is too short; give at least {least:g}s")
    if seconds >= MOST_SPAN_S:
        raise ValueError(f"{text!r} is too long; give at most {MOST_SPAN_S // 86400}d")
    return float(seconds)


def _seconds(text: str) -> Decimal | None:
    """A number of seconds, or numbers with units; None for anything else."""
    plain = re.fullmatch(rf"\s*({_NUMBER})\s*", text)
    if plain is not None:
        return Decimal(plain[1])
    found = _SPAN.fullmatch(text.strip())
    if found is None or not found.lastgroup:
        return None
    parts = ((found[unit], size) for unit, size in _SPANS.items())
    return sum((Decimal(n) * size for n, size in parts if n), Decimal(0))
