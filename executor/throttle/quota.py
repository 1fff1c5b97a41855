"""Replication throttles (KIP-73), set for the duration of a run.

Rates are set on brokers, and the replicas they hold for in a list of each topic. Both
are journalled before they are set, with the previous values, so that a later process
can remove them after a crash. Entries and rates set by others stay.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Self

from executor.client.cluster_admin import ClusterAdmin
from executor.timing import Timing
from model.errors import ClusterUnreachable, ExecutionStopped, RightsMissing, WriterBarred
from model.ids import BrokerId, TopicName
from model.log_events import LogEvent, named
from model.plan.plan import Move
from model.units import rate_text

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
_ALL: Final = "*"
_log = logging.getLogger("plimsoll.executor")

Lists = dict[TopicName, dict[str, list[str]]]
Rates = Mapping[BrokerId, Mapping[str, int]]
"""Bytes per second by broker and setting (leader: outgoing, follower: incoming)."""


@dataclass(slots=True, kw_only=True)
class ThrottleSettings:
    """What a run has set, and the values before that."""

    rates: dict[BrokerId, dict[str, str | None]] = field(default_factory=dict)
    """Previous rates by broker and setting; None where none was set."""
    ours: dict[BrokerId, dict[str, list[int]]] = field(default_factory=dict)
    """Rates that this run has set or is about to set, by broker and setting; newest last."""
    lists: Lists = field(default_factory=dict)
    """Added entries `partition:broker`, by topic and setting."""

    def document(self) -> dict[str, Any]:
        """For the journal."""
        values = {v for of in self.ours.values() for set_ in of.values() for v in set_}
        return {
            "ours": {str(b): deepcopy(of) for b, of in sorted(self.ours.items())},
            "rates": {str(b): dict(old) for b, old in sorted(self.rates.items())},
            "lists": {topic: dict(keys) for topic, keys in sorted(self.lists.items())},
            # Versions of plimsoll with one rate for all brokers read only these.
            "bytes_per_s": max(values, default=0),
            "earlier": sorted(values),
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a journal record, including older ones with one rate for all brokers."""
        rates = {BrokerId(int(b)): old for b, old in document["rates"].items()}
        lists = {TopicName(t): keys for t, keys in document["lists"].items()}
        if "ours" in document:
            ours = {BrokerId(int(b)): of for b, of in document["ours"].items()}
        else:
            same = [*document.get("earlier", ()), document["bytes_per_s"]]
            ours = {b: {key: list(same) for key in old} for b, old in rates.items()}
        return cls(rates=rates, ours=ours, lists=lists)

    def is_ours(self, broker: BrokerId, key: str, shown: str | None) -> bool:
        """Whether a value that a broker shows was set by this run."""
        return shown in {str(v) for v in self.ours.get(broker, {}).get(key, ())}

    def with_newer(self, newer: "ThrottleSettings") -> "ThrottleSettings":
        """Count rates that a newer run has set in place of ours as ours."""
        ours = deepcopy(self.ours)
        for broker, before in newer.rates.items():
            for key, old in before.items():
                if self.is_ours(broker, key, old):
                    ours[broker][key] += newer.ours.get(broker, {}).get(key, [])
        return ThrottleSettings(rates=self.rates, ours=ours, lists=self.lists)

    def newest(self, broker: BrokerId, key: str) -> int:
        """The rate that a broker has or should have, in bytes per second."""
        return self.ours[broker][key][-1]

    def with_rates(self, rates: Rates) -> "ThrottleSettings":
        """Add rates that are about to be set."""
        ours = deepcopy(self.ours)
        for broker, of in rates.items():
            for key, rate in of.items():
                known = ours.setdefault(broker, {}).setdefault(key, [])
                ours[broker][key] = [*(v for v in known if v != rate), rate]
        return ThrottleSettings(rates=self.rates, ours=ours, lists=self.lists)

    def settled(self, broker: BrokerId, rates: Mapping[str, int]) -> None:
        """Drop earlier rates of a broker that now shows these."""
        self.ours[broker] |= {key: [rate] for key, rate in rates.items()}

    def gave_up(self, broker: BrokerId, key: str) -> None:
        """Give up a rate that someone else has changed."""
        del self.ours[broker][key], self.rates[broker][key]


class ClusterThrottle:
    """Sets and removes the throttle of one run.

    Every call raises as the cluster's calls do.
    """

    def __init__(self, admin: ClusterAdmin, timing: Timing) -> None:
        self._admin = admin
        self._timing = timing

    def brokers(self, moves: Iterable[Move]) -> list[BrokerId]:
        """The live brokers between which the moves copy."""
        alive = self._admin.cluster().alive
        return sorted({b for m in moves for b in (*m.replicas_before, *m.added)} & alive)

    def plan(
        self, moves: Sequence[Move], rates: Rates, held: ThrottleSettings | None = None
    ) -> ThrottleSettings:
        """Return what has to be set for these moves, and the values there now.

        Leaders are limited on all previous replicas, followers on the added ones.
        `held`: the throttle already set by the run being resumed; the values from
        before that are restored. Changes nothing.
        """
        found = deepcopy(held) if held is not None else ThrottleSettings()
        for broker in rates:
            shown = self._admin.own_broker_configs(broker, RATES)
            before = found.rates.setdefault(broker, {})
            for key in RATES:
                if key not in before or not found.is_ours(broker, key, shown.get(key)):
                    before[key] = shown.get(key)
        topics = sorted({m.topic for m in moves})
        known = self._admin.own_topic_configs(topics, (LEADERS, FOLLOWERS))
        for move in moves:
            lists = found.lists.setdefault(move.topic, {LEADERS: [], FOLLOWERS: []})
            for key, entries in _entries(move).items():
                there = known.get(move.topic, {}).get(key, "").split(",")
                if _ALL not in there:
                    held_or_there = {*there, *lists[key]}
                    lists[key] += [e for e in entries if e not in held_or_there]
        return found.with_rates(rates)

    def set_rates(self, held: ThrottleSettings, rates: Rates) -> list[str]:
        """Set rates that `held` already has, and read them back.

        Returns, in words, what brokers did not accept; the other rates are set.
        """
        silent: dict[BrokerId, str] = {}
        for broker, of in rates.items():
            try:
                texts = {key: str(rate) for key, rate in of.items()}
                self._admin.alter_broker_configs(broker, texts)
            except ClusterUnreachable as exc:
                silent[broker] = f"broker {broker} did not accept the throttle: {exc}"
        for broker, of in rates.items():
            if broker not in silent and not self._settles(broker, of):
                most = rate_text(max(of.values()))
                silent[broker] = f"broker {broker} does not accept the throttle of {most}"
            elif broker not in silent:
                held.settled(broker, of)
        return list(silent.values())

    def changeable(self, held: ThrottleSettings, rates: Rates) -> Rates:
        """Those of these rates that are still ours to change, on live brokers.

        A rate that someone else has set in the meantime is given up.
        """
        found: dict[BrokerId, dict[str, int]] = {}
        for broker in sorted(self._admin.cluster().alive.intersection(rates)):
            try:
                shown = self._admin.own_broker_configs(broker, RATES)
            except ClusterUnreachable as exc:
                _log.warning(
                    "the throttle of broker %s stays: %s",
                    broker,
                    exc,
                    extra=named(LogEvent.THROTTLE_FAILED),
                )
                continue
            for key, rate in rates[broker].items():
                if held.is_ours(broker, key, shown.get(key)):
                    found.setdefault(broker, {})[key] = rate
                    continue
                _log.warning(
                    "someone else changed %s of broker %s",
                    key,
                    broker,
                    extra=named(LogEvent.THROTTLE_FOREIGN),
                )
                held.gave_up(broker, key)
        return found

    def limit(self, moves: Sequence[Move], held: ThrottleSettings) -> None:
        """Add moves that are about to start to the topics' lists.

        Traffic of waiting moves would otherwise use up the limit of the others.
        """
        for topic in dict.fromkeys(move.topic for move in moves):
            lists: dict[str, list[str]] = {}
            for move in (m for m in moves if m.topic == topic):
                for key, entries in _ours(move, held).items():
                    lists.setdefault(key, []).extend(entries)
            self._admin.append_topic_configs(topic, lists)

    def release(self, move: Move, held: ThrottleSettings) -> None:
        """Remove a completed move from the lists.

        Replicas in sync would otherwise use up the limit of the other moves.
        """
        self._admin.subtract_topic_configs(move.topic, _ours(move, held))

    def lift(self, held: ThrottleSettings) -> tuple[list[str], list[str]]:
        """Remove the throttle; this may be repeated.

        Returns, in words, what is left, and rates that someone else has set in the
        meantime, which stay.
        """
        left: list[str] = []
        theirs: list[str] = []
        for topic, lists in held.lists.items():
            try:
                self._clear(topic, lists)
            except WriterBarred:
                raise
            except (ExecutionStopped, RightsMissing) as exc:
                # A topic that was deleted took its settings with it.
                if topic in self._admin.topics():
                    left.append(str(exc))
        for broker, before in held.rates.items():
            try:
                theirs += self._restore_rates(broker, before, held)
            except WriterBarred:
                raise
            except ClusterUnreachable as exc:
                _log.warning(
                    "the throttle of broker %s stays: %s",
                    broker,
                    exc,
                    extra=named(LogEvent.THROTTLE_FAILED),
                )
                left.append(f"broker {broker} did not answer and keeps its throttle")
            except (ExecutionStopped, RightsMissing) as exc:
                left.append(f"broker {broker} keeps its throttle: {exc}")
        return left, theirs

    def _restore_rates(
        self, broker: BrokerId, before: Mapping[str, str | None], held: ThrottleSettings
    ) -> list[str]:
        now = self._admin.own_broker_configs(broker, RATES)
        changed = {
            key: shown
            for key, old in before.items()
            if (shown := now.get(key)) != old and not held.is_ours(broker, key, shown)
        }
        # Also where the previous value shows: a broker may lag behind the controller.
        back = {key: old for key, old in before.items() if key not in changed}
        self._admin.alter_broker_configs(broker, back)
        return [
            f"someone else has changed {key} of broker {broker} to "
            f"{shown or 'its default'}, which stays"
            for key, shown in sorted(changed.items())
        ]

    def _clear(self, topic: TopicName, lists: dict[str, list[str]]) -> None:
        self._admin.subtract_topic_configs(topic, lists)
        # A list whose entries are removed becomes empty, even if it was not
        # set before; the polled broker may not show that yet.
        left = self._left(topic, lists)
        empty = [key for key in lists if not left.get(key)]
        self._admin.alter_topic_configs(topic, dict.fromkeys(empty))

    def _settles(self, broker: BrokerId, rates: Mapping[str, int]) -> bool:
        def is_shown() -> bool:
            shown = self._admin.own_broker_configs(broker, RATES)
            return all(shown.get(key) == str(rate) for key, rate in rates.items())

        try:
            return self._timing.settles(is_shown)
        except ClusterUnreachable as exc:
            _log.debug(
                "the throttle of broker %s cannot be read: %s",
                broker,
                exc,
                extra=named(LogEvent.THROTTLE_FAILED),
            )
            return False

    def _left(self, topic: TopicName, lists: dict[str, list[str]]) -> dict[str, list[str]]:
        """The lists of a topic once a broker shows them without these entries.

        The next polled broker may lag behind it.
        """
        found: dict[str, list[str]] = {}

        def is_without() -> bool:
            shown = self._admin.own_topic_configs([topic], (LEADERS, FOLLOWERS))
            found.clear()
            found.update({k: v.split(",") if v else [] for k, v in shown.get(topic, {}).items()})
            return not any(e in found.get(k, ()) for k, of in lists.items() for e in of)

        self._timing.settles(is_without)
        return found


def _entries(move: Move) -> dict[str, list[str]]:
    return {
        LEADERS: [f"{move.partition}:{b}" for b in move.replicas_before],
        FOLLOWERS: [f"{move.partition}:{b}" for b in move.added],
    }


def _ours(move: Move, held: ThrottleSettings) -> dict[str, list[str]]:
    """A move's entries that are ours to add and to remove."""
    lists = held.lists.get(move.topic, {})
    ours = {
        key: [e for e in entries if e in lists.get(key, ())]
        for key, entries in _entries(move).items()
    }
    return {key: entries for key, entries in ours.items() if entries}
