"""A limit on what moves may copy, for as long as they do (KIP-73).

Rates stand on brokers, and what they hold for in a list of each topic. Both are in the
journal before they are set, with what was there before, so that whoever comes after a
crash can take them away. Entries and rates of others stay as they are.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Self

from executor.admin import Admin
from executor.journal import Journal
from executor.timing import Timing
from model.errors import ClusterUnreachable, ExecutionStopped, PlimsollError
from model.ids import BrokerId, TopicName
from model.plan import Move
from model.run import JournalEvent
from model.snapshot import StorageKind

RATES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
)
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
_ALL: Final = "*"
_log = logging.getLogger("plimsoll.executor")

Lists = dict[TopicName, dict[str, list[str]]]


@dataclass(slots=True, kw_only=True)
class Throttled:
    """What was set, and what was there before."""

    bytes_per_s: int
    earlier: tuple[int, ...] = ()
    """Rates that this run had set before."""
    rates: dict[BrokerId, dict[str, str | None]] = field(default_factory=dict)
    """Of each broker before, None where none was set."""
    lists: Lists = field(default_factory=dict)
    """Entries `partition:broker` that were added."""

    def document(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "bytes_per_s": self.bytes_per_s,
            "earlier": list(self.earlier),
            "rates": {str(b): dict(old) for b, old in sorted(self.rates.items())},
            "lists": {topic: dict(keys) for topic, keys in sorted(self.lists.items())},
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """From the journal."""
        return cls(
            bytes_per_s=document["bytes_per_s"],
            earlier=tuple(document.get("earlier", ())),
            rates={BrokerId(int(b)): old for b, old in document["rates"].items()},
            lists={TopicName(t): keys for t, keys in document["lists"].items()},
        )


class Throttle:
    """Sets and takes away the throttle of one run."""

    def __init__(self, admin: Admin, timing: Timing) -> None:
        self._admin = admin
        self._timing = timing

    def plan(self, moves: Sequence[Move], bytes_per_s: int) -> Throttled:
        """What has to be set for moves that copy; nothing is changed.

        Leaders are limited on all replicas of before, followers on the added ones.
        """
        copying = [m for m in moves if m.added and m.storage is not StorageKind.SHARED]
        found = Throttled(bytes_per_s=bytes_per_s)
        alive = self._admin.cluster().alive
        for broker in sorted({b for m in copying for b in _involved(m)} & alive):
            old = self._admin.own_broker_configs(broker, RATES)
            found.rates[broker] = {key: old.get(key) for key in RATES}
        topics = sorted({m.topic for m in copying})
        known = self._admin.own_topic_configs(topics, (LEADERS, FOLLOWERS))
        for move in copying:
            lists = found.lists.setdefault(move.topic, {LEADERS: [], FOLLOWERS: []})
            for key, entries in _entries(move).items():
                there = known.get(move.topic, {}).get(key, "").split(",")
                if _ALL not in there:
                    lists[key] += [e for e in entries if e not in there]
        return found

    def set(self, wanted: Throttled) -> None:
        """Set what was planned, and read it back.

        Raises ExecutionStopped where the cluster does not show it afterwards.
        """
        for topic, lists in wanted.lists.items():
            self._admin.append_topic_configs(topic, lists)
        self.set_rates(wanted)

    def set_rates(self, wanted: Throttled) -> None:
        """Set the rates alone, as `set` does."""
        rate = str(wanted.bytes_per_s)
        for broker in wanted.rates:
            self._admin.alter_broker_configs(broker, dict.fromkeys(RATES, rate))
        for broker in wanted.rates:
            if not self._timing.settles(partial(self._shows, broker, rate)):
                raise ExecutionStopped(
                    f"broker {broker} does not take the throttle of {rate} bytes/s; "
                    "nothing was moved"
                )

    def _shows(self, broker: BrokerId, rate: str) -> bool:
        shown = self._admin.own_broker_configs(broker, RATES)
        return all(shown.get(key) == rate for key in RATES)

    def _lists(self, topic: TopicName) -> dict[str, list[str]]:
        shown = self._admin.own_topic_configs([topic], (LEADERS, FOLLOWERS))
        return {k: v.split(",") if v else [] for k, v in shown.get(topic, {}).items()}

    def _is_without(self, topic: TopicName, lists: dict[str, list[str]]) -> bool:
        now = self._lists(topic)
        return not any(e in now.get(k, ()) for k, of in lists.items() for e in of)

    def release(self, moves: Iterable[Move], held: Throttled) -> None:
        """Take moves that ended out of the lists.

        In sync, their traffic would count into the limit of the others.
        """
        for move in moves:
            ours = held.lists.get(move.topic, {})
            gone = {
                key: [e for e in entries if e in ours.get(key, ())]
                for key, entries in _entries(move).items()
            }
            self._admin.subtract_topic_configs(move.topic, gone)

    def lift(self, held: Throttled) -> list[str]:
        """Take everything away; what was left alone, in words.

        Repeating it does no harm. A rate that somebody has changed meanwhile is theirs.
        """
        kept = []
        for topic, lists in held.lists.items():
            self._admin.subtract_topic_configs(topic, lists)
            self._timing.settles(partial(self._is_without, topic, lists))
            # A list without entries stays set, to nothing.
            empty = [key for key, left in self._lists(topic).items() if not left]
            self._admin.delete_topic_configs(topic, empty)
        set_by_us = {str(rate) for rate in (held.bytes_per_s, *held.earlier)}
        for broker, before in held.rates.items():
            try:
                now = self._admin.own_broker_configs(broker, RATES)
                ours = {k for k in RATES if now.get(k) in set_by_us}
                back = {k: old for k, old in before.items() if k in ours}
                self._admin.alter_broker_configs(broker, back)
            except ClusterUnreachable as exc:
                _log.warning("the throttle of broker %s stays: %s", broker, exc)
                kept.append(f"broker {broker} did not answer and keeps its throttle")
        return kept


def _involved(move: Move) -> set[BrokerId]:
    return {*move.replicas_before, *move.added}


def _entries(move: Move) -> dict[str, list[str]]:
    return {
        LEADERS: [f"{move.partition}:{b}" for b in move.replicas_before],
        FOLLOWERS: [f"{move.partition}:{b}" for b in move.added],
    }


class RunThrottle:
    """The throttle of one run, and the journal it stands in."""

    def __init__(
        self,
        throttle: Throttle,
        journal: Journal,
        bytes_per_s: int | None,
        held: Throttled | None = None,
    ) -> None:
        self._throttle = throttle
        self._journal = journal
        self._bytes_per_s = bytes_per_s
        self._held = held
        """Set now, also by the run of before that is gone on with."""

    def begin(self, moves: Sequence[Move]) -> None:
        """Set it for these moves, if one is wanted."""
        if self._bytes_per_s is None:
            return
        wanted = self._throttle.plan(moves, self._bytes_per_s)
        if self._held is not None:
            # What was there before the first of both is to come back.
            wanted.earlier = (*self._held.earlier, self._held.bytes_per_s)
            wanted.rates |= self._held.rates
            for topic, lists in self._held.lists.items():
                ours = wanted.lists.setdefault(topic, {})
                for key, entries in lists.items():
                    ours[key] = [*ours.get(key, ()), *entries]
        self._write(wanted)
        self._throttle.set(wanted)

    def raise_rate(self) -> int | None:
        """Double the rate; what it is then, None where there is no throttle."""
        if self._held is None:
            return None
        rate = self._held.bytes_per_s
        earlier = (*self._held.earlier, rate)
        self._write(replace(self._held, bytes_per_s=2 * rate, earlier=earlier))
        self._throttle.set_rates(self._held)
        return 2 * rate

    def _write(self, wanted: Throttled) -> None:
        self._journal.write(JournalEvent.THROTTLED, **wanted.document())
        self._held = wanted

    def release(self, move: Move) -> None:
        """One move has ended."""
        if self._held is not None:
            self._throttle.release([move], self._held)

    def end(self) -> str:
        """Take it away; what is left of it and why, empty where nothing is."""
        if self._held is None:
            return ""
        try:
            left = self._throttle.lift(self._held)
        except PlimsollError as exc:
            left = [f"the throttle is still set: {exc}"]
        if left:
            return f"{'; '.join(left)}; plimsoll cleanup takes it away"
        self._journal.write(JournalEvent.UNTHROTTLED)
        self._held = None
        return ""
