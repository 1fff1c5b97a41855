"""What must hold in every world, whatever fails; checked after every step.

None of this uses the code that it checks: journals are read as JSON, replica lists are judged by
the plan's, and the lease by the object in the bucket.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.fire.scenarios import RACKS, Scenario
from benchmarks.fire.world_admin import Change
from executor.platforms.cordons import CORDONED
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.simulated_cluster.cluster import SimulatedCluster
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move, Plan

_COUNTED: Final = ("issuing", "cancelling", "electing")


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold."""

    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


@dataclass(slots=True)
class Announced:
    """What the records of one journal announce."""

    content: bytes = b""
    moves: Counter[tuple[str, PartitionId]] = field(default_factory=Counter)
    """Records by event and partition."""
    rates: set[tuple[int, str, str]] = field(default_factory=set)
    """Broker, setting and value."""
    entries: set[tuple[str, str, str]] = field(default_factory=set)
    """Topic, setting and entry."""
    cordons: set[tuple[int, str | None]] = field(default_factory=set)
    """Broker and value; None where the cordon ends."""

    def read(self, content: bytes) -> "Announced":
        """The same with what was appended; from the beginning where it was replaced."""
        if content is self.content:
            return self
        if not content.startswith(self.content):
            return Announced().read(content)
        for line in content[len(self.content) :].split(b"\n"):
            self._line(line)
        self.content = content
        return self

    def _line(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            return
        event, detail = record["event"], record["detail"]
        if event in _COUNTED:
            self.moves[event, PartitionId(record["topic"], record["partition"])] += 1
        if event in ("cordoning", "uncordoning"):
            self.cordons.add((int(detail["broker"]), detail.get("value")))
        if event == "throttled":
            for broker, of in detail["ours"].items():
                for key, values in of.items():
                    self.rates.update((int(broker), key, str(value)) for value in values)
            for topic, lists in detail["lists"].items():
                for key, entries in lists.items():
                    self.entries.update((topic, key, entry) for entry in entries)


@dataclass(slots=True)
class Invariants:
    """The invariants of one world, and what they have seen of it."""

    scenario: Scenario
    cluster: SimulatedCluster
    checks: int = 0
    violation: Violation | None = None
    """The first one."""
    stolen: set[PartitionId] = field(default_factory=set)
    """Partitions that someone else has moved."""
    crowded: int = 0
    """Lists between those before and after that lie in fewer racks."""
    late: bool = False
    """Whether a request has arrived after its time-out."""
    flipped: bool = False
    """Whether a bit of a journal or plan has flipped."""
    ends_of: defaultdict[PartitionId, set[BrokerId]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """Brokers before and after the approved moves of each partition."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """Approved plans by hash."""
    _sent: defaultdict[str, Counter[tuple[str, PartitionId]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """Requests by run, kind and partition."""
    _known: dict[str, Announced] = field(default_factory=dict)
    _moves: dict[PartitionId, Move] = field(default_factory=dict)
    _factor: dict[PartitionId, int] = field(default_factory=dict)
    """Replicas of each partition at the beginning; plans from stale metadata may differ."""

    def __post_init__(self) -> None:
        self._moves = {move.id: move for move in self.scenario.plan.moves}
        self._factor = {pid: len(move.replicas_before) for pid, move in self._moves.items()}
        if self.scenario.task is None and self.scenario.auto is None:
            self.approve(self.scenario.plan)

    @property
    def is_excused(self) -> bool:
        """Whether the world at rest may differ from what its journals say."""
        return self.late or self.flipped

    def approve(self, plan: Plan) -> None:
        """Note that the moves of a plan, and their rollback, are approved."""
        self.plans[plan.hash] = plan
        for move in plan.moves:
            self.ends_of[move.id] |= {*move.replicas_before, *move.replicas_after}
            self._moves[move.id] = move

    def broken(self, invariant: str, detail: str) -> None:
        """Note a violation; the first one counts."""
        if self.violation is None:
            self.violation = Violation(invariant, detail)

    def check(self, holds: bool, invariant: str, detail: str) -> None:
        """Count a check, and note where it fails."""
        self.checks += 1
        if not holds:
            self.broken(invariant, detail)

    # ---- changing calls

    def sent(
        self,
        host: str,
        change: Change,
        run: str,
        journals: Iterable[Mapping[str, bytes]],
        fetched_from: str,
    ) -> None:
        """Check a changing call of a run as it is sent.

        journals: each place that must hold its record: contents by run; the host's own one first.
        fetched_from: the earliest time, as in a run's id, whose runs that host has fetched.
        """
        if change.call == "reassign":
            for pid, target in change.about.items():
                self._sent[run]["cancel" if target is None else "reassign", pid] += 1
                if target is not None:
                    self._approved(pid, tuple(target))
        if change.call == "elect":
            for pid in change.about:
                self._sent[run]["elect", pid] += 1
        for number, place in enumerate(journals):
            where = "archived" if number else "synced"
            known = {n: self._read(f"{number}{host}{n}", c) for n, c in place.items()}
            runs = set(self._sent) if number else {run, *self._fetched(fetched_from)}
            if missing := self._unannounced(change, known, runs):
                self.broken(f"no changing call without its {where} record", missing)
            self.checks += 1

    def _fetched(self, since: str) -> Iterator[str]:
        """Runs from the first one on that began since then; a host fetches no older ones."""
        runs = sorted(self._sent)
        recent = (number for number, run in enumerate(runs) if _begun_at(run) >= since)
        yield from runs[next(recent, len(runs)) :]

    def held(self, host: str, holder: str, what: str) -> None:
        """Check that a changing call is sent, or arrives, within the sender's lease."""
        detail = f"{what} of {host} while {holder or 'nobody'} holds the lease"
        self.check(host == holder, "never two writers within one lease", detail)

    def _read(self, key: str, content: bytes) -> Announced:
        found = self._known.get(key, Announced()).read(content)
        self._known[key] = found
        return found

    def _unannounced(
        self, change: Change, known: Mapping[str, Announced], runs: Iterable[str]
    ) -> str:
        """What no record announces; empty where all is.

        known: the journals of a place by run. runs: those whose every request they must announce.
        """
        match change.call:
            case "reassign" | "elect":
                for run in sorted(runs):
                    records = known.get(run, Announced()).moves
                    if missing := self._unannounced_moves(change, run, records):
                        return f"run {run}: {missing}"
            case "broker":
                return self._unannounced_settings(change.extra, change.about, known.values())
            case "append":
                return self._unannounced_entries(change.extra, change.about, known.values())
        return ""

    def _unannounced_moves(
        self, change: Change, run: str, records: Mapping[tuple[str, PartitionId], int]
    ) -> str:
        sent = self._sent[run]
        for pid in change.about:
            cancels, issues = records["cancelling", pid], records["issuing", pid]
            lists, nones = sent["reassign", pid], sent["cancel", pid]
            if lists > issues + cancels or nones > cancels:
                return f"{pid}: {lists} lists and {nones} cancels, but {issues} + {cancels}"
            if sent["elect", pid] > records["electing", pid]:
                return f"election of {pid}"
        return ""

    def _unannounced_settings(
        self, broker: BrokerId, values: Mapping[str, str | None], known: Collection[Announced]
    ) -> str:
        for key, value in values.items():
            found = True
            if key in RATES and value is not None:
                found = any((broker, key, value) in a.rates for a in known)
            if key == CORDONED:
                found = any((broker, value) in a.cordons for a in known)
            if not found:
                return f"{key} = {value} of broker {broker}"
        return ""

    def _unannounced_entries(
        self, topic: TopicName, lists: Mapping[str, Iterable[str]], known: Collection[Announced]
    ) -> str:
        for key, entries in lists.items():
            for entry in entries:
                if not any((topic, key, entry) in a.entries for a in known):
                    return f"{key} of {topic}: {entry}"
        return ""

    def _approved(self, pid: PartitionId, target: tuple[BrokerId, ...]) -> None:
        move = self._moves.get(pid)
        ends = self.ends_of[pid]
        detail = f"{pid} to {list(target)}"
        self.check({*target} <= ends, "only approved placements", detail)
        if move is not None:
            self.check(
                len({*target}) == len(move.replicas_before), "replication factor kept", detail
            )
            if {*target} in ({*move.replicas_before}, {*move.replicas_after}):
                self.check(racks(target) >= racks(move.replicas_before), "racks kept", detail)
            else:
                self.crowded += racks(target) < racks(move.replicas_before)

    # ---- placement

    def placed(self) -> None:
        """Check the replicas of every partition, as they are now."""
        for pid, partition in self.cluster.partitions.items():
            target = tuple(partition.target)
            self.check(
                len({*target}) == self._factor[pid],
                "replication factor kept",
                f"{pid} has {list(target)}",
            )

    def clean(self, when: str) -> None:
        """Check that no setting is left.

        A request that arrives after its time-out may set again what was restored meanwhile, and a
        damaged journal may not tell what to restore.
        """
        if self.is_excused:
            return
        for broker in self.cluster.brokers.values():
            left = {k: v for k, v in broker.configs.items() if k in RATES}
            self.check(not left, "no setting left behind", f"{when}: broker {broker.id}: {left}")
        for topic, of in self.cluster.topic_configs.items():
            lists = {k: v for k, v in of.items() if k in (LEADERS, FOLLOWERS)}
            self.check(not lists, "no setting left behind", f"{when}: {topic}: {lists}")

    def ends(
        self, placed: Mapping[PartitionId, tuple[str, bool]], run: Any, plan_hash: str
    ) -> None:
        """Check a run's own account: the state of each move, and whether it undoes another."""
        known = self.plans.get(plan_hash)
        moves = self._moves if known is None else {move.id: move for move in known.moves}
        for pid, (state, undoes) in placed.items():
            move = moves[pid]
            here = tuple(self.cluster.partitions[pid].target)
            planned = move.replicas_before if undoes else move.replicas_after
            if state == "done" and pid not in self.stolen and not self.is_excused:
                detail = f"run {run}: {pid} is on {list(here)}, not on {list(planned)}"
                self.check(here == planned, "a run ends as it says", detail)


def racks(replicas: Iterable[BrokerId]) -> int:
    """In how many racks replicas are."""
    return len({RACKS[broker - 1] for broker in replicas})


def _begun_at(run: str) -> str:
    """When a run began, as its id says, by the clock of the host that began it."""
    return run.split("-")[1] if "-" in run else ""
