"""Cordons are journalled, never set over someone else's value, and only ours are removed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import ClusterView
from executor.executor import Executor
from executor.journal.lock import sole_writer
from executor.journal.run_history import past_runs, read_journal
from executor.journal.run_journal import journal_paths
from executor.platforms.cordons import ALL, CORDONED, CordonChange, cordoned_by_us
from model.errors import ClusterUnreachable, GuardrailRefused
from model.ids import BrokerId
from model.run import JournalEvent
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.plan_builders import CLUSTER_ID, ids


@dataclass
class Brokers:
    """Brokers with dynamic values of the one setting."""

    folder: Path
    own: dict[int, str] = field(default_factory=dict)
    static: dict[int, str] = field(default_factory=dict)
    """In their properties files."""
    alive: Sequence[int] = (1, 2, 3)
    old: Sequence[int] = ()
    """Before Kafka 4.3."""
    lag: int = 0
    """Answers that do not show the last change yet."""
    fails: bool = False
    journalled: list[list[JournalEvent]] = field(default_factory=list)
    """The events on disk at each change."""

    def cluster(self) -> ClusterView:
        return ClusterView(cluster_id=CLUSTER_ID, alive=frozenset(ids(list(self.alive))))

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        assert broker in self.alive
        if "log.dirs" in keys:
            return {"log.dirs": "/a,/b"}
        assert list(keys) == [CORDONED]
        if broker in self.old:
            return {}
        return {CORDONED: self.own.get(broker, self.static.get(broker, ""))}

    def own_broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        assert list(keys) == [CORDONED]
        self.lag -= 1
        return {CORDONED: self.own[broker]} if broker in self.own and self.lag < 0 else {}

    def alter_broker_configs(self, broker: BrokerId, values: dict[str, str | None]) -> None:
        self.journalled.append(events(self.folder))
        if self.fails:
            raise ClusterUnreachable("no broker answers")
        assert list(values) == [CORDONED]
        if (value := values[CORDONED]) is None:
            del self.own[broker]
        else:
            self.own[broker] = value


def events(folder: Path) -> list[JournalEvent]:
    return [r.event for r in read_journal(journal_paths(folder)[-1])]


def executor(brokers: Brokers) -> Executor:
    return Executor(cast("ClusterAdmin", brokers), timing=FakeTime().timing)


def cordon(brokers: Brokers, *wanted: int) -> tuple[CordonChange, ...]:
    return executor(brokers).cordon(
        ids(wanted), journal_dir=brokers.folder, cluster_id=CLUSTER_ID, by="ann"
    )


def uncordon(brokers: Brokers, *wanted: int) -> tuple[CordonChange, ...]:
    return executor(brokers).uncordon(
        ids(wanted), journal_dir=brokers.folder, cluster_id=CLUSTER_ID, by="ann"
    )


def ours(folder: Path) -> set[int]:
    return set(cordoned_by_us(folder, CLUSTER_ID))


def test_a_cordon_is_journalled_before_it_is_set_and_removed_again(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path)
    assert cordon(brokers, 3, 2) == (
        CordonChange(broker=BrokerId(2), changed=True),
        CordonChange(broker=BrokerId(3), changed=True),
    )
    assert brokers.own == {2: ALL, 3: ALL}
    assert brokers.journalled[0] == [JournalEvent.STARTED, JournalEvent.CORDONING]
    assert ours(tmp_path) == {2, 3}
    assert cordoned_by_us(tmp_path, "another") == {}

    assert uncordon(brokers, 3) == (CordonChange(broker=BrokerId(3), changed=True),)
    assert brokers.own == {2: ALL}
    assert brokers.journalled[-1] == [JournalEvent.STARTED, JournalEvent.UNCORDONING]
    assert ours(tmp_path) == {2}
    assert past_runs(tmp_path, CLUSTER_ID) == []


@pytest.mark.parametrize(
    ("brokers", "note"),
    [
        ({"own": {2: "/data-1"}}, "someone else has set cordoned.log.dirs=/data-1, which stays"),
        ({"own": {2: ALL}}, "someone else has set cordoned.log.dirs=*, which stays"),
        ({"static": {2: ALL}}, "someone else has set cordoned.log.dirs=*, which stays"),
        ({"old": [2]}, "it has no cordoned.log.dirs, which came with Kafka 4.3"),
        ({"alive": [1, 3]}, "it is dead or fenced, and its settings are unknown"),
    ],
)
def test_a_broker_that_cannot_be_cordoned_stays_as_it_is(
    tmp_path: Path, brokers: dict[str, object], note: str
) -> None:
    found = Brokers(tmp_path, **brokers)  # type: ignore[arg-type]
    before = dict(found.own)
    first, second = cordon(found, 1, 2)
    assert (first.changed, second) == (
        True,
        CordonChange(broker=BrokerId(2), changed=False, note=note),
    )
    assert found.own == {**before, 1: ALL}
    assert ours(tmp_path) == {1}


@pytest.mark.parametrize(
    ("answers", "dead"), [([[1, 2], [1, 2, 3]], [3]), ([[1, 2, 3], [1, 2]], [])]
)
def test_each_broker_is_reported_as_it_was_seen_though_it_returns_or_dies_meanwhile(
    tmp_path: Path, answers: list[list[int]], dead: list[int]
) -> None:
    class Flapping(Brokers):
        def cluster(self) -> ClusterView:
            self.alive = answers[0] if len(answers) == 1 else answers.pop(0)
            return super().cluster()

    changes = cordon(Flapping(tmp_path, old=[1, 2, 3]), 1, 2, 3)
    assert [c.broker for c in changes if c.note.startswith("it is dead or fenced")] == dead
    assert [c.broker for c in changes if "came with Kafka 4.3" in c.note] == [
        b for b in (1, 2, 3) if b not in dead
    ]


@pytest.mark.parametrize("value", ["/data-1", ALL])
def test_someone_elses_cordon_is_not_removed(tmp_path: Path, value: str) -> None:
    brokers = Brokers(tmp_path, own={2: value})
    (change,) = uncordon(brokers, 2)
    assert not change.changed
    assert change.note == f"someone else has set cordoned.log.dirs={value}, which stays"
    assert brokers.own == {2: value}


def test_a_cordon_that_someone_has_changed_is_no_longer_ours(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path)
    cordon(brokers, 2)
    brokers.own[2] = "/data-1"
    (change,) = uncordon(brokers, 2)
    assert change.note == "someone else has set cordoned.log.dirs=/data-1, which stays"
    brokers.own[2] = ALL
    (change,) = uncordon(brokers, 2)
    assert (change.changed, ours(tmp_path)) == (False, set())
    assert brokers.own == {2: ALL}


def test_a_cordon_is_set_once(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path)
    cordon(brokers, 2)
    (again,) = cordon(brokers, 2)
    assert (again.changed, again.note) == (False, "plimsoll has cordoned it already")
    uncordon(brokers, 2)
    (gone,) = uncordon(brokers, 2)
    assert (gone.changed, gone.note) == (False, "plimsoll has not cordoned it")


@pytest.mark.parametrize("made", [False, True], ids=["lost request", "lost answer"])
def test_a_cordon_with_a_lost_request_or_answer_is_ours(tmp_path: Path, made: bool) -> None:
    """Whether the request was executed is not known; the next one settles it."""
    brokers = Brokers(tmp_path, fails=True)
    with pytest.raises(ClusterUnreachable):
        cordon(brokers, 2)
    assert ours(tmp_path) == {2}
    brokers.fails = False
    brokers.own = {2: ALL} if made else {}
    (change,) = uncordon(brokers, 2)
    assert (change.changed, brokers.own, ours(tmp_path)) == (made, {}, set())


def test_a_removal_whose_answer_is_lost_can_be_repeated(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path)
    cordon(brokers, 2)
    brokers.fails = True
    with pytest.raises(ClusterUnreachable):
        uncordon(brokers, 2)
    assert ours(tmp_path) == {2}
    brokers.fails = False
    assert uncordon(brokers, 2)[0].changed


@pytest.mark.parametrize(("lag", "note"), [(3, ""), (10_000, "its broker does not report")])
def test_a_broker_may_report_its_cordon_late(tmp_path: Path, lag: int, note: str) -> None:
    (change,) = cordon(Brokers(tmp_path, lag=lag), 2)
    assert change.changed
    assert change.note.startswith(note)
    assert bool(change.note) == bool(note)


def test_nothing_is_cordoned_while_another_plimsoll_changes_the_cluster(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path)
    with sole_writer(tmp_path, CLUSTER_ID), pytest.raises(GuardrailRefused):
        cordon(brokers, 2)
    assert brokers.own == {}


# ---- log directories


def cordon_dirs(brokers: Brokers, *paths: str) -> CordonChange:
    return executor(brokers).cordon_dirs(BrokerId(2), paths, journal_dir=brokers.folder, by="ann")


def uncordon_dirs(brokers: Brokers, *paths: str) -> CordonChange:
    return executor(brokers).uncordon_dirs(BrokerId(2), paths, journal_dir=brokers.folder)


def test_directories_are_cordoned_one_after_the_other(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path)
    assert cordon_dirs(brokers, "/a").changed
    assert cordon_dirs(brokers, "/b").changed
    assert brokers.own == {2: "/a,/b"}
    assert cordon_dirs(brokers, "/a").note == "plimsoll has cordoned it already"
    assert uncordon_dirs(brokers, "/a/").changed
    assert brokers.own == {2: "/b"}
    assert uncordon_dirs(brokers, "/b").changed
    assert (brokers.own, ours(tmp_path)) == ({}, set())


def test_the_whole_broker_and_its_directories_are_cordoned_apart(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path)
    cordon_dirs(brokers, "/a")
    cordon(brokers, 2)
    assert brokers.own == {2: ALL}
    cordon_dirs(brokers, "/b")
    assert brokers.own == {2: ALL}
    uncordon(brokers, 2)
    assert brokers.own == {2: "/a,/b"}


@pytest.mark.parametrize("made", [False, True], ids=["lost request", "lost answer"])
def test_a_lost_change_of_a_cordon_keeps_it_ours(tmp_path: Path, made: bool) -> None:
    brokers = Brokers(tmp_path)
    cordon_dirs(brokers, "/a")
    brokers.fails = True
    with pytest.raises(ClusterUnreachable):
        cordon_dirs(brokers, "/b")
    brokers.fails = False
    brokers.own = {2: "/a,/b" if made else "/a"}
    assert cordon_dirs(brokers, "/b").changed is not made
    assert brokers.own == {2: "/a,/b"}
    uncordon_dirs(brokers, "/a", "/b")
    assert brokers.own == {}
