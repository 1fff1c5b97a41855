"""What producers write, as functions of the time."""

import math

from lab.simulated_cluster.cluster_state import Curve


def steady(rate: float) -> Curve:
    """A producer that never changes; bytes per second."""
    return lambda _: rate


def tide(low: float, high: float, period_s: float) -> Curve:
    """One that rises and falls; it is at `low` whenever a period begins."""

    def rate(now_s: float) -> float:
        share = (1 - math.cos(2 * math.pi * now_s / period_s)) / 2
        return low + (high - low) * share

    return rate
