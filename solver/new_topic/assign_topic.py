"""Replica lists for a topic about to be created, and how near they are to the best.

Partitions of a new topic are identical. Without an expected load, replicas and leaders
are balanced by count, and ties go to the brokers that are emptier now. With one, the
brokers' loads are balanced: squared deviations from the mean, as in F, plus those of
the topic's own counts from their mean, weighted by its share of the load. Racks,
placements, pins and limits bind as in a plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from model.errors import ConfigError
from model.goals.goals import Goals, SolveLimits
from model.ids import NO_BROKER
from model.snapshot.snapshot import Bools, Ints, Partitions, Snapshot, Topic
from model.units import count_text
from solver.budget import Budget
from solver.infeasible.messages import no_such_rack
from solver.new_topic.apportion import Leadership, choose_leaders, deal, ordered
from solver.new_topic.load import TopicLoad, expected_load
from solver.new_topic.replica_counts import (
    CountLimits,
    allocate_counts,
    greatest_lowest,
    least_highest,
)
from solver.new_topic.topic_problem import Evenness, LoadEvenness, NewTopic, TopicAssignment
from solver.problem.co_location import RackMode, Spreading, find_spreading
from solver.problem.problem import Problem, compile_problem
from solver.search.observer import SolveObserver

DEALS: Final = 16
"""Deals that are tried, as leaders can be spread better over some than over others."""

MOST_DEALT: Final = 20_000
"""Replicas above which the first deal is taken: it is balanced anyway."""

WORK_OF_REPLICA: Final = 1e-5
"""Work units for dealing one replica; measured."""

ROUNDING: Final = 1e-9

STOPPED: Final = "stopped"
"""`limited_by` of an assignment whose search was stopped on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Partitions of the topic that the same rules bind."""

    numbers: Ints
    """Partition numbers."""
    able: Bools
    """(B,) may get a replica."""
    leads: Bools
    """(B,) may lead."""
    rack: Ints
    """(B,) number of the rack; 0 for all where no rack rule applies."""
    racks: tuple[str | None, ...]
    """(Q,) rack names, including those only a placement mentions."""
    least: Ints
    """(Q,) replicas of each partition that each rack must hold."""
    most: Ints
    """(Q,) replicas of each partition that each rack may hold."""
    observers: Ints
    """(Q,) how many of them are observers."""


def assign_replicas(
    snapshot: Snapshot,
    goals: Goals,
    topic: NewTopic,
    limits: SolveLimits | None = None,
    observer: SolveObserver | None = None,
) -> TopicAssignment:
    """Assign the partitions of a new topic to brokers.

    `limits` (None for the defaults) and `observer` bound the search for better leaders, not the
    making of lists. Where rules or limits leave no room, or no leaders are found, the result has
    reasons and no lists. Raises ConfigError if the cluster already has a topic of this name.
    """
    if any(t.name == topic.name for t in snapshot.header.topics):
        raise ConfigError(
            f"the topic {topic.name} exists; plan --topic {topic.name} moves its partitions"
        )
    budget = Budget(limits=limits or SolveLimits(), observer=observer or SolveObserver())
    problem = compile_problem(snapshot, goals)
    load = expected_load(problem, topic)
    reasons: tuple[str, ...] = ()
    taking = int(problem.may.alive.sum())
    if taking < topic.replication_factor:
        reasons = (
            f"{count_text(topic.replication_factor, 'replica')} need as many brokers, "
            f"and {count_text(taking, 'broker')} may take a new replica",
        )
    groups = () if reasons else tuple(_groups(problem, topic))
    rooms = [_room(group, topic, load) for group in groups]
    for group, room in zip(groups, rooms, strict=True):
        reasons += tuple(_missing_room(problem, topic, group, room))
    able = problem.may.alive
    if groups:
        able = np.any([group.able for group in groups], axis=0)
    brokers = tuple(problem.brokers[b] for b in np.flatnonzero(able))
    if reasons:
        return TopicAssignment(topic=topic, brokers=brokers, reasons=reasons)
    lists = _lists(problem, topic, groups, load, budget)
    if lists is None:
        words = "no leaders were found that keep every limit; assign fewer partitions"
        limited = f" ({_limited(budget)})" if budget.over() else ""
        return TopicAssignment(topic=topic, brokers=brokers, reasons=(words + limited,))
    found = _compare_with_bounds(problem, topic, load, groups, lists)
    return replace(found, limited_by=_limited(budget) if budget.over() else "")


def _limited(budget: Budget) -> str:
    return STOPPED if budget.stopped else "search budget exhausted"


def _groups(problem: Problem, topic: NewTopic) -> Iterator[_Group]:
    """The topic's partitions, grouped by the rules that bind them."""
    snapshot = _only(problem.snapshot, topic)
    spreading = find_spreading(snapshot, problem.goals, problem.may.alive)
    for g, mode in enumerate(spreading.mode.tolist()):
        able = problem.may.alive & spreading.allow[g]
        free = mode == RackMode.OFF
        rack = np.zeros_like(spreading.rack) if free else spreading.rack
        least, most = _rack_shares(spreading, g, able, topic.replication_factor)
        yield _Group(
            numbers=np.flatnonzero(spreading.group == g),
            able=able,
            leads=able & spreading.lead[g],
            rack=rack,
            racks=spreading.racks,
            least=least,
            most=most,
            observers=spreading.observers[g],
        )


def _only(snapshot: Snapshot, topic: NewTopic) -> Snapshot:
    """The same brokers with only the new topic, to find the rules that bind it."""
    rf, n = topic.replication_factor, topic.partitions
    first = [b.id for b in snapshot.header.brokers][:rf]
    resources = len(snapshot.header.resources)
    only = Topic(name=topic.name, topic_id="")
    header = snapshot.header.model_copy(update={"topics": (only,), "slots": (), "recent_moves": ()})
    columns = Partitions(
        topic=np.zeros(n, np.int64),
        partition=np.arange(n),
        replica_start=np.arange(n + 1) * rf,
        replica_broker=np.tile(np.array(first, np.int64), n),
        leader=np.full(n, NO_BROKER, np.int64),
        loads=np.zeros((n, resources)),
        measured=np.zeros((n, resources), np.bool_),
        size_bytes=np.zeros(n, np.int64),
        local_bytes=np.zeros(n, np.int64),
    )
    return Snapshot(header, columns)


def _rack_shares(spreading: Spreading, g: int, able: Bools, rf: int) -> tuple[Ints, Ints]:
    """(Q,) replicas of each partition that each rack must hold, and may hold."""
    mode = spreading.mode[g]
    if mode == RackMode.EXACT:
        return spreading.required[g], spreading.required[g]
    if mode == RackMode.OFF:
        return np.zeros(1, np.int64), np.array([rf])
    size = np.bincount(spreading.rack[able], minlength=len(spreading.racks))
    racks = int((size > 0).sum())
    if mode == RackMode.SPREAD:
        full = rf >= racks
        least = np.where(full, np.minimum(1, size), 0)
        return least, size if full else np.minimum(1, size)
    # Even: full racks aside, all have as many as any other, give or take one.
    steps = [s for s in range(rf + 1) if np.minimum(size, s).sum() <= rf]
    return np.minimum(size, steps[-1]), np.minimum(size, steps[-1] + 1)


def _room(group: _Group, topic: NewTopic, load: TopicLoad) -> CountLimits:
    """What the rules allow for one group."""
    rows = len(group.numbers)
    cap = np.where(group.able, np.clip(load.cap, 0, rows), 0)
    return CountLimits(
        cap=cap,
        rack=group.rack,
        least=group.least * rows,
        most=group.most * rows,
        total=rows * topic.replication_factor,
    )


def _missing_room(
    problem: Problem, topic: NewTopic, group: _Group, room: CountLimits
) -> Iterator[str]:
    """Racks or brokers with too little room for one group."""
    rule = problem.goals.placement_of(topic.name)
    asked = int(group.least.sum())
    if rule is not None and asked != topic.replication_factor:
        yield (
            f"the placement of {topic.name} puts {asked} replicas in racks; the "
            f"replication factor is {topic.replication_factor}"
        )
        return
    held = room.in_racks(room.cap)
    short = np.flatnonzero(held < room.least).tolist()
    for q in short:
        yield no_such_rack(problem, group.racks[q]) or (
            f"rack {group.racks[q]} has to hold "
            f"{count_text(int(room.least[q]), 'replica')} and has room for {held[q]:,}"
        )
    if not short and not room.enough:
        fits = int(np.minimum(held, room.most).sum())
        yield (
            f"{count_text(room.total, 'replica')} have to be placed, and the brokers "
            f"and racks that may take them have room for {fits:,}"
        )


# ---- placing


def _lists(
    problem: Problem, topic: NewTopic, groups: tuple[_Group, ...], load: TopicLoad, budget: Budget
) -> dict[int, tuple[int, ...]] | None:
    """Replica lists by partition number, brokers by position; None if none are found."""
    lists: dict[int, tuple[int, ...]] = {}
    given = np.zeros(len(problem.brokers), np.int64)
    led = given.copy()
    for group in groups:
        now = load.after(given, led)
        room = _room(group, topic, now)
        if not room.enough:
            return None
        count = allocate_counts(room, now.replica)
        dealt = _best_deal(count, group, now, budget)
        if dealt is None:
            return None
        replicas, leader = dealt
        rows = ordered(replicas, leader, group.rack, group.observers)
        lists |= dict(zip(group.numbers.tolist(), rows, strict=True))
        given += count
        led += np.bincount(leader, minlength=len(led))
    return lists


def _best_deal(
    count: Ints, group: _Group, load: TopicLoad, budget: Budget
) -> tuple[Ints, Ints] | None:
    """Lists, (n, M), and leaders, (n,), of the best of several deals."""
    rules = Leadership(able=group.leads, cap=load.lead_cap, slopes=load.leader)
    lead_room = _lead_room((group,), load)
    if not lead_room.enough:
        return None
    bound = load.leader.cost(allocate_counts(lead_room, load.leader))
    found = []
    for seed in range(DEALS):
        if seed and budget.over():
            break
        budget.work += WORK_OF_REPLICA * int(count.sum())
        replicas = deal(count, group.rack, len(group.numbers), seed)
        leader = choose_leaders(replicas, rules, budget)
        if leader is not None:
            cost = load.leader.cost(np.bincount(leader, minlength=len(count)))
            found.append((cost, seed, replicas, leader))
            if cost - bound <= ROUNDING or replicas.size > MOST_DEALT:
                break
    if not found:
        return None
    _, _, replicas, leader = min(found, key=lambda deal: deal[:2])
    return replicas, leader


def _compare_with_bounds(
    problem: Problem,
    topic: NewTopic,
    load: TopicLoad,
    groups: tuple[_Group, ...],
    lists: dict[int, tuple[int, ...]],
) -> TopicAssignment:
    """The assignment, compared with the best that any can achieve."""
    size = len(problem.brokers)
    rows = [lists[number] for number in sorted(lists)]
    held = np.bincount([b for row in rows for b in row], minlength=size)
    led = np.bincount([row[0] for row in rows], minlength=size)
    room, lead_room = _all_room(groups, topic, load), _lead_room(groups, load)
    ids = problem.brokers
    return TopicAssignment(
        topic=topic,
        brokers=tuple(ids[b] for b in np.flatnonzero(room.cap > 0).tolist()),
        replicas=tuple(tuple(ids[b] for b in row) for row in rows),
        evenness=_evenness(held, room),
        leader_evenness=_evenness(led, lead_room),
        load_evenness=_load_evenness(load, (held, room), (led, lead_room)),
    )


def _all_room(groups: tuple[_Group, ...], topic: NewTopic, load: TopicLoad) -> CountLimits:
    """What the rules allow for all groups together, where racks bind them equally."""
    rooms = [_room(group, topic, load) for group in groups]
    if len(rooms) == 1:
        return rooms[0]
    total = sum(room.total for room in rooms)
    cap = np.minimum(sum(room.cap for room in rooms), np.maximum(0, load.cap))
    return _without_racks(cap, total)


def _lead_room(groups: tuple[_Group, ...], load: TopicLoad) -> CountLimits:
    most = sum(len(group.numbers) * group.leads for group in groups)
    cap = np.minimum(np.minimum(most, load.lead_cap), np.maximum(0, load.cap))
    return _without_racks(np.maximum(0, cap), sum(len(group.numbers) for group in groups))


def _without_racks(cap: Ints, total: int) -> CountLimits:
    """Count limits without racks."""
    return CountLimits(
        cap=cap,
        rack=np.zeros_like(cap),
        least=np.zeros(1, np.int64),
        most=np.array([total]),
        total=total,
    )


def _evenness(count: Ints, room: CountLimits) -> Evenness:
    able = count[room.cap > 0]
    return Evenness(
        least=int(able.min(initial=room.total)),
        most=int(able.max(initial=0)),
        greatest_lowest=greatest_lowest(room),
        least_highest=least_highest(room),
    )


def _load_evenness(
    load: TopicLoad, replicas: tuple[Ints, CountLimits], leaders: tuple[Ints, CountLimits]
) -> LoadEvenness | None:
    if load.before is None:
        return None
    cost = bound = load.before
    for slopes, (count, room), counts in (
        (load.replica, replicas, load.balances_replicas),
        (load.leader, leaders, load.balances_leaders),
    ):
        if counts:
            cost += slopes.cost(count)
            bound += slopes.cost(allocate_counts(room, slopes))
    return LoadEvenness(cost=cost, bound=bound)
