"""Whether the replicas of one row satisfy its rack rule or explicit placement."""

from collections.abc import Sequence

import numpy as np

from model.ids import BrokerId
from model.snapshot.snapshot import Ints
from solver.problem.co_location import RackMode
from solver.problem.problem import Problem


def keeps_racks(
    problem: Problem, row: int, brokers: Sequence[int], *, as_if_moved: bool = False
) -> bool:
    """Return whether the rack rule allows a row on these brokers: distinct positions, no filler.

    A row whose replicas stay where they are complies unless it is displaced, or unless
    `as_if_moved` judges it as if it had moved there. An explicit placement's counts per rack must
    always match; which replicas lead or observe is not checked.
    """
    spreading = problem.may.spreading
    g = int(spreading.group[row])
    mode = spreading.mode[g]
    count = np.bincount(spreading.rack[list(brokers)], minlength=len(spreading.racks))
    if mode == RackMode.EXACT:
        return bool((count == spreading.required[g]).all())
    home = problem.replicas[row]
    stays = set(brokers) == set(home[home >= 0].tolist())
    stays = stays and not problem.may.displaced[row]
    if mode == RackMode.OFF or (stays and not as_if_moved):
        return True
    if mode == RackMode.SPREAD:
        return int((count > 0).sum()) >= int(spreading.distinct[g])
    free = problem.may.alive & spreading.allow[g]
    free[list(brokers)] = False
    # A rack whose eligible brokers all hold a replica has no room for more.
    fewest = count[spreading.rack[free]].min(initial=len(brokers))
    return bool(count.max(initial=0) - fewest <= 1)


def observers_last(
    problem: Problem, row: int, replicas: tuple[BrokerId, ...]
) -> tuple[BrokerId, ...]:
    """Return the replica list with the observers that a placement rule asks for at its end.

    `replicas` is nonempty and starts with the leader, which is never an observer; the order is
    otherwise kept. Raises ValueError for a follower on a broker that the problem does not have.
    """
    spreading = problem.may.spreading
    followers = [problem.brokers.index(b) for b in replicas[1:]]
    middle, last = split_observers(
        followers, spreading.rack, spreading.observers[spreading.group[row]]
    )
    return (*replicas[:1], *(problem.brokers[b] for b in (*middle, *last)))


def split_observers(
    followers: Sequence[int], rack: Ints, observers: Ints
) -> tuple[list[int], list[int]]:
    """Split followers, given by broker position, into others and observers, both in order.

    `rack` is (B,) rack numbers of the brokers, and `observers` (Q,) how many replicas in each of
    the Q racks are observers: the last followers there.
    """
    left, last = observers.copy(), []
    for b in reversed(followers):
        if left[rack[b]]:
            left[rack[b]] -= 1
            last.append(b)
    return [b for b in followers if b not in last], last[::-1]
