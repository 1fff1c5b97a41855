"""What a policy would have done: figures of one simulation."""

from collections.abc import Mapping
from dataclasses import dataclass

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class HourFigures:
    """One hour. Means are over time."""

    at_ms: int
    """Its beginning, milliseconds since the epoch."""
    outside: float
    """Share of the hour in which a broker was outside its tolerance."""
    imbalance: float
    """Mean imbalance score."""
    deviation: float
    """Mean of the largest deviation of a broker from the average, as a share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFigures:
    """One day from the beginning of the simulation, or from the end of the day before."""

    at_ms: int
    """Its beginning, milliseconds since the epoch."""
    outside: float
    """Share of the day in which a broker was outside its tolerance."""
    imbalance: float
    """Mean imbalance score."""
    runs: int
    moves: int
    bytes_copied: int
    undone: int
    """Moves of this day that undid one of the 24 hours before."""
    regret: float
    """Imbalance score above that of one plan made as the day begins by a planner that knew it, with
    the budgets of one run or what the policy used, whichever is more; mean over the day's hours.
    Negative where following the day did better than any such plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """How often and how long a rule held actions back."""

    times: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """What one policy did in a simulation."""

    policy: str
    outside: float
    """Share of the time in which a broker was outside its tolerance."""
    imbalance: float
    """Mean imbalance score."""
    worst: HourFigures
    """The hour with the largest mean imbalance score."""
    runs: int
    stopped_runs: int
    """Runs that ended before their plan was done."""
    moves: int
    leader_changes: int
    """Moves that change leaders alone."""
    bytes_copied: int
    undone: int
    """Moves that returned a replica, or leadership alone, to where it was within 24 hours."""
    regret: float
    """Mean over the days; see `DayFigures`."""
    held: Mapping[str, HeldBack]
    """By rule, the longest first."""
    solves: int
    turns: int
    """How often the loop looked at the cluster."""
    days: tuple[DayFigures, ...]
    hours: tuple[HourFigures, ...]
