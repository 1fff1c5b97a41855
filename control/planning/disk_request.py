"""Requests to empty log directories or to heal failed ones: what forbids it, and the plan."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from control.planning.least_bytes import bound_sentence, least_bytes, least_moved, least_outside
from control.planning.staging import (
    barring_budget,
    spreading_by_number,
    staged,
    without_broken_minimum,
    without_cooldowns,
)
from control.planning.validate import refuse_breaches, refuse_broken
from model.errors import ConfigError, GuardrailRefused
from model.exchange.text_files import nearest
from model.goals.goals import Budgets, EmptiedDir, Goals, SolveLimits
from model.goals.topic_placement import with_topic_placements
from model.ids import NO_BROKER, BrokerId, PartitionId
from model.plan.outages import failed_dirs
from model.plan.plan import Plan
from model.plan.proposal import Proposal
from model.plan.unplaceable import deferring, placeless
from model.snapshot.snapshot import Broker, BrokerState, Snapshot, StorageKind
from model.units import bytes_text, count_text, listed

if TYPE_CHECKING:
    from solver.log_dirs.emptying import Emptying
    from solver.report.result import Result

MOST_NAMED: Final = 3
"""Partitions, paths or breaches named in a sentence."""

Solve = Callable[[Snapshot, Goals], "Result"]
"""Finds the best plan for a snapshot under goals."""
Places = dict[int, tuple[tuple[BrokerId, ...], BrokerId]]
"""New replicas and leader by row."""


# ---- the request


def broker_of(snapshot: Snapshot, broker: int) -> Broker:
    """The broker with an id. Raises ConfigError where it is unknown or dead."""
    known = snapshot.broker
    found = known.get(BrokerId(broker))
    if found is None:
        ids = listed(sorted(map(int, known)), 2 * MOST_NAMED)
        raise ConfigError(f"there is no broker {broker}; known: {ids or 'none'}")
    if found.state is BrokerState.DEAD:
        raise ConfigError(
            f"broker {broker} is dead; start it, or create its replicas on other brokers with "
            "plimsoll cluster repair"
        )
    return found


def paths_of(broker: Broker, paths: Sequence[str]) -> tuple[str, ...]:
    """The broker's log directories that are named, in order; a slash at the end does not count.

    Raises ConfigError where one is unknown, and GuardrailRefused where none would be left.
    """
    known = [entry.path for entry in broker.log_dirs]
    if not known:
        raise GuardrailRefused(
            f"broker {broker.id} has one log directory, or does not show which (that needs the "
            f"right DESCRIBE on the cluster); to empty it, use plimsoll broker remove {broker.id}"
        )
    found = set()
    for path in paths:
        trimmed = path.rstrip("/") or "/"
        match = [entry for entry in known if (entry.rstrip("/") or "/") == trimmed]
        if not match:
            raise ConfigError(
                f"broker {broker.id} has no log directory {path!r}{nearest(path, known)}"
            )
        found.update(match)
    if len(found) == len(known):
        raise GuardrailRefused(
            f"{_paths(known)} {'is' if len(known) == 1 else 'are'} all that broker {broker.id} "
            f"has; to empty the broker, use plimsoll broker remove {broker.id}"
        )
    return tuple(sorted(found))


def emptied_dirs(broker: BrokerId, paths: Collection[str]) -> tuple[EmptiedDir, ...]:
    """What goals name for these directories."""
    return tuple(EmptiedDir(broker=broker, path=path) for path in sorted(paths))


def _paths(paths: Collection[str]) -> str:
    return listed(sorted(paths), MOST_NAMED)


def _named(snapshot: Snapshot, rows: Sequence[int]) -> str:
    more = f" (and {len(rows) - 1:,} more)" if len(rows) > 1 else ""
    return f"{snapshot.id(rows[0])}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskPlan:
    """A plan that takes replicas out of log directories, and what it leaves."""

    plan: Plan
    """Without moves where nothing can be moved."""
    directories: tuple[EmptiedDir, ...]
    inside: int = 0
    """Replicas that go to other directories of the broker."""
    outside: int = 0
    """Replicas that go to other brokers."""
    bytes_inside: int | None = 0
    """None where a size is unknown."""
    later: int = 0
    """Partitions that the user's budgets leave to another plan."""
    unavailable: tuple[PartitionId, ...] = ()
    """Partitions without a leader, of which no live broker has a copy."""
    placeless: tuple[PartitionId, ...] = ()
    """Partitions that no other broker may hold."""
    least_bytes: int | None = None
    """No plan does it with fewer bytes, inside the broker and to others together; None where a
    size is unknown."""
    least_outside: int | None = None
    """No plan does it with fewer bytes to other brokers; None where a size is unknown."""

    @property
    def bounds(self) -> tuple[str, ...]:
        """How far its bytes are from the fewest possible, in sentences."""
        copied, inside = self.plan.bytes_to_copy, self.bytes_inside
        total = None if copied is None or inside is None else copied + inside
        does = "creates these replicas again"
        if self.plan.goals.emptied:
            named = listed([entry.path for entry in self.directories], MOST_NAMED)
            does = f"empties {named} of broker {self.directories[0].broker}"
        found = [bound_sentence(does, total, self.least_bytes)]
        if self.outside and self.plan.goals.emptied:
            found.append(self._outside_bound(does))
        return tuple(filter(None, found))

    def _outside_bound(self, does: str) -> str:
        copied, least = self.plan.bytes_to_copy, self.least_outside
        if copied is None or not least:
            return ""
        fewer = "fewer bytes" if copied <= least else f"fewer than {bytes_text(least)}"
        return f"no plan {does} with {fewer} to other brokers"

    @property
    def words(self) -> str:
        """What moves, and how much of it is copied."""
        inside = "unknown bytes" if self.bytes_inside is None else bytes_text(self.bytes_inside)
        return (
            f"{count_text(self.inside, 'replica')} to other directories of the broker ({inside}), "
            f"{count_text(self.outside, 'replica')} to other brokers "
            f"({bytes_text(self.plan.bytes_to_copy)})"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is left."""
        found = later_notes(self.later)
        if self.unavailable:
            found.append(
                f"{counted(self.unavailable)} without a leader, of which no live broker has "
                "a copy; repair the disk, and restart the broker"
            )
        if self.placeless:
            found.append(
                f"{counted(self.placeless)} that no other broker may hold; add a broker, or "
                "repair the disk"
            )
        return tuple(found)


def later_notes(later: int) -> list[str]:
    """A sentence on the partitions that budgets leave to a later plan, if there are any."""
    if not later:
        return []
    return [f"budgets leave {count_text(later, 'partition')} to the next plan of the task"]


def counted(partitions: Sequence[PartitionId]) -> str:
    """`2 partitions (orders-0, orders-1)`."""
    return f"{count_text(len(partitions), 'partition')} ({listed(partitions, MOST_NAMED)})"


# ---- emptying directories


def plan_disk_removal(
    snapshot: Snapshot,
    goals: Goals,
    solve: Solve,
    broker: BrokerId,
    paths: Sequence[str],
    closed: Sequence[str] = (),
) -> DiskPlan | None:
    """Plan that log directories of a broker hold no replica; None if they hold none.

    Replicas go to other directories of the broker as far as these have room, else to other
    brokers; nothing else moves. `paths` as `paths_of` returns them; `closed`: further directories
    of the broker that take none.

    Raises GuardrailRefused, and names the partition, the directory or the broker.
    """
    # The table of operations is read where a program starts, and OR-Tools takes a second.
    from solver.log_dirs.emptying import empty_directories
    from solver.report.given_plan import given_plan

    snapshot = without_cooldowns(snapshot)
    refuse_emptying(snapshot, broker, paths)
    found = with_topic_placements(goals, snapshot)
    update = {
        "emptied": emptied_dirs(broker, paths),
        "level_directories": False,
        "repair_racks": False,
    }
    found = without_broken_minimum(snapshot, found.model_copy(update=update))
    forced = np.flatnonzero(Proposal(snapshot, found, ()).forced.rows).tolist()
    emptying = empty_directories(snapshot, goals, broker, paths, closed)
    if not emptying.inside and not emptying.homeless:
        return None
    # What other rules force to move is left alone, but for what stands in these directories.
    others = sorted({*forced} - {*emptying.inside} - {*emptying.homeless})
    found = deferring(snapshot, found, others)
    places, dirs = _inside(snapshot, broker, emptying)
    moved = _outside(snapshot, found, solve, broker, paths, emptying)
    places |= moved
    dirs |= {row: {} for row in emptying.homeless}
    plan = given_plan(
        snapshot, found, SolveLimits(), places, f"leaves {_paths(paths)} of broker {broker}", dirs
    )
    proposal = Proposal.of_moves(snapshot, plan.goals, plan.moves)
    refuse_breaches(proposal, _refusal(broker, paths))
    refuse_broken(snapshot, plan)
    sizes = [int(snapshot.partitions.local_bytes[row]) for row in emptying.inside]
    return DiskPlan(
        plan=plan,
        directories=emptied_dirs(broker, paths),
        inside=len(emptying.inside),
        outside=len(emptying.homeless),
        bytes_inside=None if any(size < 0 for size in sizes) else sum(sizes),
        least_bytes=least_moved(snapshot, broker, paths),
        least_outside=least_outside(snapshot, goals, broker, paths),
    )


def refuse_emptying(snapshot: Snapshot, broker: BrokerId, paths: Sequence[str]) -> None:
    """Raise GuardrailRefused where the request is impossible whatever is planned."""
    for reason in _obstacles(snapshot, broker, paths):
        raise _refused(broker, paths, reason)


def _refused(broker: BrokerId, paths: Sequence[str], reason: str) -> GuardrailRefused:
    return GuardrailRefused(f"{_refusal(broker, paths)}: {reason}")


def _refusal(broker: BrokerId, paths: Sequence[str]) -> str:
    return f"cannot empty {_paths(paths)} of broker {broker}"


def _obstacles(snapshot: Snapshot, broker: BrokerId, paths: Sequence[str]) -> Iterator[str]:
    if broker not in snapshot.broker:
        yield "it is not in the cluster any longer; start it, or cancel the task"
        return
    listed_dirs = snapshot.broker[broker].log_dirs
    failed = [entry.path for entry in listed_dirs if entry.failed]
    if dead := sorted({*failed} & {*paths}):
        yield (
            f"{_paths(dead)} has failed; plimsoll disk heal {broker} creates its replicas again "
            "on other brokers"
        )
    if failed:
        yield (
            f"{_paths(failed)} has failed, and Kafka moves no replica inside a broker of which a "
            f"directory is offline; heal it with plimsoll disk heal {broker}, take it out of "
            "log.dirs, and restart the broker"
        )
    columns = snapshot.partitions
    here = columns.replica_broker == broker
    dirs = columns.replica_dir
    unknown = here if dirs is None else here & (dirs < 0)
    if unknown.any():
        row = int(snapshot.replica_row[unknown][0])
        yield (
            f"broker {broker} does not show in which directory {snapshot.id(row)} is; wait until "
            "its replicas are created, and give plimsoll's user the right DESCRIBE on the cluster"
        )
        return
    rows = np.unique(snapshot.replica_row[snapshot.in_dirs({(broker, p) for p in paths})])
    leaderless = rows[columns.leader[rows] == NO_BROKER].tolist()
    if leaderless:
        yield f"{_named(snapshot, leaderless)} has no leader; bring its replicas back first"
    kinds = np.array([t.storage is StorageKind.SHARED for t in snapshot.header.topics], np.bool_)
    shared = rows[kinds[columns.topic[rows]]].tolist()
    if shared:
        yield f"{_named(snapshot, shared)} is in object storage, not in a log directory"


def _inside(
    snapshot: Snapshot, broker: BrokerId, emptying: "Emptying"
) -> tuple[Places, dict[int, dict[BrokerId, str]]]:
    """Replicas and leader of rows that stay on the broker, and its new directories."""
    columns = snapshot.partitions
    places = {
        row: (snapshot.replicas(row), BrokerId(int(columns.leader[row]))) for row in emptying.inside
    }
    return places, {row: {broker: path} for row, path in emptying.inside.items()}


def _outside(
    snapshot: Snapshot,
    goals: Goals,
    solve: Solve,
    broker: BrokerId,
    paths: Sequence[str],
    emptying: "Emptying",
) -> Places:
    """Replicas and leader of rows that leave the broker, and of those whose leader changes for it.

    The planner sees the directories as failed, and everything else as deferred.
    """
    if not emptying.homeless:
        return {}
    find = "finds" if len(emptying.homeless) == 1 else "find"
    room = (
        f"{count_text(len(emptying.homeless), 'replica')} "
        f"({_named(snapshot, emptying.homeless)}) {find} no room in the other directories of the "
        "broker"
    )
    seen = _with_failed(snapshot, broker, paths)
    wanted = deferring(snapshot, goals, sorted(emptying.inside))
    wanted = wanted.model_copy(update={"emptied": ()})
    if stuck := sorted(placeless(seen, wanted)):
        raise _refused(
            broker, paths, f"{room}, and no other broker may hold {_named(snapshot, stuck)}"
        )
    plan = _repaired(seen, wanted, solve)
    if isinstance(plan, str):
        raise _refused(broker, paths, f"{room}, and other brokers cannot take them: {plan}")
    return {
        row: (move.replicas_after, move.leader_after)
        for move in plan.moves
        if (row := snapshot.find(move.id)) is not None
    }


def _with_failed(snapshot: Snapshot, broker: BrokerId, paths: Sequence[str]) -> Snapshot:
    """The snapshot as if these directories had failed."""

    def seen(member: Broker) -> Broker:
        if member.id != broker:
            return member
        dirs = tuple(
            d.model_copy(update={"failed": True, "cordoned": True}) if d.path in paths else d
            for d in member.log_dirs
        )
        return member.model_copy(update={"log_dirs": dirs})

    members = tuple(map(seen, snapshot.header.brokers))
    return replace(snapshot, header=snapshot.header.model_copy(update={"brokers": members}))


def _repaired(snapshot: Snapshot, goals: Goals, solve: Solve) -> Plan | str:
    """The plan that moves what is forced, or why there is none: with the fewest moves if it can."""
    forced = Proposal(snapshot, goals, ()).forced
    columns = snapshot.partitions
    gone = snapshot.in_failed_dir & (columns.replica_broker == columns.leader[snapshot.replica_row])
    led = np.bincount(snapshot.replica_row[gone], minlength=len(snapshot)) > 0
    least = {
        "replica_moves": int(forced.replicas.sum()),
        "leader_changes": int((led & forced.rows).sum()),
    }
    return with_fewest_moves(snapshot, goals, least, solve)


def with_fewest_moves(
    snapshot: Snapshot, goals: Goals, least: Mapping[str, int], solve: Solve
) -> Plan | str:
    """The best plan within these budgets, else within the user's; or why there is none."""
    fewest = spreading_by_number(snapshot, goals) if least else goals
    result = solve(snapshot, fewest.model_copy(update={"budgets": _tight(goals.budgets, least)}))
    if result.best is None and least:
        result = solve(snapshot, goals)
    if result.best is None:
        return "; ".join(result.reasons) or str(result.status)
    return result.best


def _tight(budgets: Budgets, least: Mapping[str, int]) -> Budgets:
    """The user's budgets, and no more than is needed."""
    bounds = {
        name: count if (limit := getattr(budgets, name)) is None else min(limit, count)
        for name, count in least.items()
    }
    return budgets.model_copy(update=bounds)


# ---- failed directories


def plan_healing(
    snapshot: Snapshot, goals: Goals, solve: Solve, brokers: Collection[BrokerId]
) -> DiskPlan | None:
    """Plan that replicas in failed directories of these brokers are created on others.

    Nothing else moves. The plan has no moves where nothing can be moved. None where none of their
    failed directories holds a replica. Raises GuardrailRefused where rules leave no plan, and where
    the budgets allow no move.
    """
    snapshot = without_cooldowns(snapshot)
    lost = snapshot.in_failed_dir & np.isin(snapshot.partitions.replica_broker, list(brokers))
    mine = {*np.unique(snapshot.replica_row[lost]).tolist()}
    if not mine:
        return None
    found = with_topic_placements(goals, snapshot)
    forced = {*np.flatnonzero(Proposal(snapshot, found, ()).forced.rows).tolist()}
    others = sorted(forced - mine)
    found = deferring(snapshot, found, others).model_copy(update={"level_directories": False})
    stuck = sorted(placeless(snapshot, found))
    _refuse_small_budgets(Proposal(snapshot, found, ()), brokers, mine.difference(stuck))
    found, later = staged(snapshot, found, repair_rules=False)
    created = Proposal(snapshot, found, ()).forced
    if created.rows.any():
        plan = _repaired(snapshot, found, solve)
    else:
        from solver.report.given_plan import given_plan

        plan = given_plan(snapshot, found, SolveLimits(), {}, "")
    if isinstance(plan, str):
        raise GuardrailRefused(f"cannot heal {_brokers(brokers)}: {plan}")
    refuse_broken(snapshot, plan)
    leaderless = sorted(row for row in mine if snapshot.partitions.leader[row] == NO_BROKER)
    least = least_bytes(snapshot, created.replicas)
    return DiskPlan(
        plan=plan,
        directories=tuple(entry for entry in dirs_of(snapshot) if entry.broker in brokers),
        outside=sum(len(move.added) for move in plan.moves),
        later=later,
        unavailable=tuple(map(snapshot.id, leaderless)),
        placeless=tuple(map(snapshot.id, stuck)),
        least_bytes=least,
        least_outside=least,
    )


def _refuse_small_budgets(
    proposal: Proposal, brokers: Collection[BrokerId], rows: Collection[int]
) -> None:
    """Raise GuardrailRefused where the budgets allow the replicas of none of these rows."""
    forced = proposal.forced.rows
    if why := barring_budget(proposal, [row for row in sorted(rows) if forced[row]]):
        raise GuardrailRefused(f"cannot heal {_brokers(brokers)}: {why}")


def dirs_of(snapshot: Snapshot) -> tuple[EmptiedDir, ...]:
    """Failed log directories that hold replicas, by broker and path."""
    return tuple(EmptiedDir(broker=d.broker, path=d.path) for d in failed_dirs(snapshot))


def _brokers(brokers: Collection[BrokerId]) -> str:
    ids = sorted(brokers)
    return f"broker{'s' if len(ids) > 1 else ''} {listed(ids, 2 * MOST_NAMED)}"
