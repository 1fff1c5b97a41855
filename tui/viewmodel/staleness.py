"""The age of the data."""

from control.loop.view import LoopView
from model.units import seconds_text

STALE_LEAST_S = 15.0
"""Data younger than this are never reported as stale."""


def age_s(view: LoopView, now_ms: int) -> float | None:
    """Age of the latest sample behind the loads in seconds; None before the first."""
    if view.snapshot is None:
        return None
    header = view.snapshot.header
    newest = max((s.newest_sample_ms for s in header.sources), default=0)
    return max(0.0, (now_ms - (newest or header.taken_at_ms)) / 1000)


def is_stale(view: LoopView, now_ms: int) -> bool:
    """Whether the latest sample is older than the whole window of the loads."""
    age = age_s(view, now_ms)
    if age is None or view.snapshot is None:
        return False
    windows = (s.window_s for s in view.snapshot.header.sources)
    return age > max(windows, default=0.0) and age > STALE_LEAST_S


def ticking(seconds: float) -> str:
    """A running time in whole seconds: `7 s`, `2 min 05 s`."""
    return f"{seconds:.0f} s" if seconds < 100 else seconds_text(seconds)


def age_text(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h`, `5 d`: how long ago, in one figure."""
    for most, each, unit in ((100, 1, "s"), (6000, 60, "min"), (172_800, 3600, "h")):
        if seconds < most:
            return f"{int(seconds // each)} {unit}"
    return f"{int(seconds // 86_400)} d"
