"""The rule of AutoMQ's AutoBalancer, as its documentation describes it.

An implementation of our own, not AutoMQ's code: the goals `NetworkInUsage-` and
`NetworkOutUsageDistributionGoal`, one after the other. A broker further than the band
from the mean of its resource is relieved, or filled, by moves of single partitions,
each time the one that cures most, and where none does, by the best swap of two. What
takes a broker out of the band of an earlier goal, or further out of it, is not
accepted. It ends when every broker is inside or nothing is accepted. See "Continuous
Self-Balancing" at docs.automq.com.
"""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints

BAND: Final = 0.10
LEAST: Final = 1e-12
"""A smaller gain is rounding."""


def plan(place: Ints, rates: Floats, brokers: int) -> Ints:
    """Where each partition lies in the end.

    Parameters
    ----------
    place
        (n,) broker of each partition, by position; one replica each.
    rates
        (n, resources) loads, in the order of the goals.
    brokers
        How many brokers there are; all count as equal.
    """
    place = place.copy()
    share = rates / (rates.sum(axis=0) / brokers)
    for goal in range(rates.shape[1]):
        stuck = np.zeros(brokers, np.bool_)
        while (broker := _worst(_load(place, share, brokers)[:, goal], stuck)) >= 0:
            done = _move(place, share, brokers, goal, broker)
            if done or _swap(place, share, brokers, goal, broker):
                stuck[:] = False
            else:
                stuck[broker] = True
    return place


def _load(place: Ints, share: Floats, brokers: int) -> Floats:
    """(brokers, resources) in levels."""
    columns = [np.bincount(place, column, brokers) for column in share.T]
    return np.stack(columns, axis=1)


def _worst(load: Floats, stuck: Bools) -> int:
    """The broker furthest out of the band, -1 for none."""
    out = np.where(stuck, 0.0, np.abs(load - 1.0))
    worst = int(out.argmax())
    return worst if out[worst] > BAND else -1


def _move(place: Ints, share: Floats, brokers: int, goal: int, broker: int) -> bool:
    """Make the accepted move from or to a broker that cures most of one goal."""
    load = _load(place, share, brokers)
    if load[broker, goal] > 1.0:
        rows = np.flatnonzero(place == broker)
        targets = np.flatnonzero(np.arange(brokers) != broker)
    else:
        rows, targets = np.flatnonzero(place != broker), np.array([broker])
    before = (load[place[rows]][:, None], load[targets][None])
    best = _best(before, share[rows][:, None], goal)
    if best is None:
        return False
    place[rows[best[0]]] = targets[best[1]]
    return True


def _swap(place: Ints, share: Floats, brokers: int, goal: int, broker: int) -> bool:
    """Swap the two partitions, one of them on a broker, that cure most of one goal."""
    load = _load(place, share, brokers)
    mine, others = np.flatnonzero(place == broker), np.flatnonzero(place != broker)
    before = (load[broker][None, None], load[place[others]][None])
    best = _best(before, share[mine][:, None] - share[others][None], goal)
    if best is None:
        return False
    one, other = mine[best[0]], others[best[1]]
    place[one], place[other] = place[other], place[one]
    return True


def _best(before: tuple[Floats, Floats], given: Floats, goal: int) -> tuple[int, int] | None:
    """The accepted entry of a matrix of changes that cures most, None for none.

    Parameters
    ----------
    before
        Loads of the giving and the taking broker, broadcast to (a, b, resources).
    given
        (a, b, resources) what the giving broker loses, the taking one gets.
    """
    source, target = before[0] - given, before[1] + given
    gain = (before[0][..., goal] - 1.0) ** 2 + (before[1][..., goal] - 1.0) ** 2
    gain = gain - (source[..., goal] - 1.0) ** 2 - (target[..., goal] - 1.0) ** 2
    for earlier in range(goal):
        for after, old in zip((source, target), before, strict=True):
            limit = np.maximum(BAND, np.abs(old[..., earlier] - 1.0))
            gain = np.where(np.abs(after[..., earlier] - 1.0) > limit, -1.0, gain)
    if not gain.size or gain.max() <= LEAST:
        return None
    row, column = np.unravel_index(int(gain.argmax()), gain.shape)
    return int(row), int(column)
