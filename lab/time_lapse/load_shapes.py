"""Shapes that loads take on top of their curves; drawn from a seed, the same for every policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from model.errors import ConfigError
from model.snapshot.snapshot import Floats, Ints, Snapshot

DAY_S: Final = 86_400.0
HOUR_S: Final = 3600.0
CHOSEN: Final = 0.25
"""Share of the topics that a shape is about."""
STEP: Final = 2.0
RAMP: Final = 3.0
CROWD: Final = (4.0, 8.0)
"""Rates in a flash crowd, as multiples of the usual one."""
CROWD_S: Final = (600.0, 2400.0)
SAWTOOTH_S: Final = 4 * HOUR_S
SWAP_S: Final = 3 * HOUR_S
SWAPPED: Final = (2.0, 0.5)
FOLLOWED: Final = 2.0
FOLLOWED_S: Final = 3 * HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a shape may react to. Times are seconds since the start."""

    leader: Ints
    """(n,) id of each row's leader."""
    moved_at_s: Floats
    """(n,) when a row was last moved; -inf for never."""


class LoadShape(Protocol):
    """Factors of rates over time."""

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """(n,) rate of each row as a multiple; `at_s`: seconds since the start."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """Some rows double after a third of the time, and stay there."""

    rows: Ints
    count: int
    at_s: float

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """As `LoadShape` has it."""
        del around
        return _with(self.count, self.rows, STEP if at_s >= self.at_s else 1.0)


@dataclass(frozen=True, slots=True)
class Ramp:
    """Some rows grow steadily, to three times their rate at the end."""

    rows: Ints
    count: int
    length_s: float

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """As `LoadShape` has it."""
        del around
        return _with(self.count, self.rows, 1 + (RAMP - 1) * min(1.0, at_s / self.length_s))


@dataclass(frozen=True, slots=True)
class FlashCrowds:
    """A crowd a day at one topic each: many times its rate, for 10 to 40 minutes."""

    topic: Ints
    """(n,) topic of each row."""
    seed: int

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """As `LoadShape` has it."""
        del around
        day = int(at_s // DAY_S)
        rng = np.random.default_rng([self.seed, 3, day])
        crowded = int(rng.integers(0, int(self.topic.max()) + 1))
        begin_s, length_s = rng.uniform(0.0, DAY_S - CROWD_S[1]), rng.uniform(*CROWD_S)
        times = rng.uniform(*CROWD)
        active = begin_s <= at_s - day * DAY_S < begin_s + length_s
        return np.where((self.topic == crowded) & active, times, 1.0)


@dataclass(frozen=True, slots=True)
class Sawtooth:
    """Rows double within four hours and fall back at once, half of them two hours later."""

    shift_s: Floats
    """(n,) by which each row is late."""

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """As `LoadShape` has it."""
        del around
        return 1 + (at_s + self.shift_s) % SAWTOOTH_S / SAWTOOTH_S


@dataclass(frozen=True, slots=True)
class Swap:
    """What two brokers led at the start takes turns, three hours each: double, or half."""

    first: Ints
    second: Ints
    count: int

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """As `LoadShape` has it."""
        del around
        busy, idle = SWAPPED if at_s // SWAP_S % 2 == 0 else SWAPPED[::-1]
        return _with(self.count, self.first, busy) * _with(self.count, self.second, idle)


@dataclass(frozen=True, slots=True)
class Follow:
    """Load reacts to moves: a partition that moves carries twice its load for three hours."""

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """As `LoadShape` has it."""
        return np.where(at_s - around.moved_at_s < FOLLOWED_S, FOLLOWED, 1.0)


@dataclass(frozen=True, slots=True)
class Crush:
    """Load seeks the least busy broker: what that leads carries half as much again, by the hour.

    The broker is the one with the least load of leaders when the hour begins.
    """

    rate: Floats
    """(n,) usual rate of each row."""
    moment: dict[str, float | Ints]

    def factors(self, at_s: float, around: Surroundings) -> Floats:
        """As `LoadShape` has it."""
        hour = at_s // HOUR_S
        if self.moment.get("hour") != hour:
            ids, position = np.unique(around.leader, return_inverse=True)
            load = np.bincount(position, self.rate, len(ids))
            load[ids < 0] = np.inf
            least = int(ids[int(load.argmin())])
            self.moment["hour"] = hour
            self.moment["rows"] = np.flatnonzero(around.leader == least)
        return _with(len(self.rate), np.asarray(self.moment["rows"]), 1.5)


def _with(count: int, rows: Ints, factor: float) -> Floats:
    found = np.ones(count)
    found[rows] = factor
    return found


def _chosen(snapshot: Snapshot, seed: int, stream: int) -> Ints:
    """Rows of a quarter of the topics, at least one."""
    topics = len(snapshot.header.topics)
    rng = np.random.default_rng([seed, stream])
    drawn = rng.choice(topics, max(1, round(CHOSEN * topics)), replace=False)
    return np.flatnonzero(np.isin(snapshot.partitions.topic, drawn))


def _step(snapshot: Snapshot, seed: int, length_s: float) -> LoadShape:
    return Step(_chosen(snapshot, seed, 1), len(snapshot), length_s / 3)


def _ramp(snapshot: Snapshot, seed: int, length_s: float) -> LoadShape:
    return Ramp(_chosen(snapshot, seed, 2), len(snapshot), length_s)


def _crowds(snapshot: Snapshot, seed: int, length_s: float) -> LoadShape:
    del length_s
    return FlashCrowds(snapshot.partitions.topic, seed)


def _sawtooth(snapshot: Snapshot, seed: int, length_s: float) -> LoadShape:
    del length_s
    late = np.zeros(len(snapshot))
    rng = np.random.default_rng([seed, 4])
    late[rng.random(len(snapshot)) < 1 / 2] = SAWTOOTH_S / 2
    return Sawtooth(late)


def _swap(snapshot: Snapshot, seed: int, length_s: float) -> LoadShape:
    del length_s
    leader = snapshot.partitions.leader
    ids = np.unique(leader[leader >= 0])
    pair = np.random.default_rng([seed, 5]).permutation(ids)[:2].tolist()
    first, second = (np.flatnonzero(leader == b) for b in (pair * 2)[:2])
    return Swap(first, second, len(snapshot))


def _follow(snapshot: Snapshot, seed: int, length_s: float) -> LoadShape:
    del snapshot, seed, length_s
    return Follow()


def _crush(snapshot: Snapshot, seed: int, length_s: float) -> LoadShape:
    del seed, length_s
    return Crush(np.nan_to_num(snapshot.partitions.loads[:, 0]), {})


MAKERS: Final[dict[str, Callable[[Snapshot, int, float], LoadShape]]] = {
    "step": _step,
    "ramp": _ramp,
    "crowds": _crowds,
    "sawtooth": _sawtooth,
    "swap": _swap,
    "follow": _follow,
    "crush": _crush,
}
"""Makes a shape of a snapshot, a seed and the length of the simulation in seconds."""


def shapes_of(
    names: Sequence[str], snapshot: Snapshot, *, seed: int, length_s: float
) -> tuple[LoadShape, ...]:
    """The shapes with these names; ConfigError for an unknown one."""
    for name in names:
        if name not in MAKERS:
            raise ConfigError(f"--shape {name}: there are {', '.join(MAKERS)}")
    return tuple(MAKERS[name](snapshot, seed, length_s) for name in names)
