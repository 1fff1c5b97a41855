"""Which of several services leads, in simulated time.

The store is in memory: the lease itself is tested on a real S3 server.
"""

import contextlib
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clients.s3 import Stored
from control.service.leadership import (
    CALL_S,
    LEADING,
    MARGIN_S,
    RENEW_S,
    SPARE_S,
    Leadership,
    LeadershipParts,
    policy_hash,
)
from control.service.pause_file import ServicePause
from control.settings.auto_limits import EAGER
from control.settings.auto_policy import AutoPolicy
from control.settings.schedule_table import ScheduleTable
from control.settings.trigger_table import TriggerTable
from control.tasks.task_files import TaskFiles
from executor.client.responses import ClusterView
from executor.journal.lease import Lease
from executor.timing import Timing
from model.errors import ArchiveUnreachable, ClusterUnreachable
from model.goals.goals import Goals
from model.stop_rules import StopRules
from tests.support.executor.fake_platform import FakeTime

DURATION_S = CALL_S + SPARE_S


class Store:
    """Objects with conditional writes, which several hosts share."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.writes = 0


class Wire:
    """One host's way to the store; calls fail on demand."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away: Callable[[], bool] = lambda: False
        self.loses_answer: Callable[[], bool] = lambda: False

    def where(self, key: str) -> str:
        return f"store/{key}"

    def get(self, key: str, most: int) -> Stored | None:
        self._ask()
        assert most > 0
        return self._store.objects.get(key)

    def put_new(self, key: str, body: bytes) -> str | None:
        return self._put(key, body, "")

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        return self._put(key, body, etag)

    def keeps_conditions(self, key: str, probe: bytes) -> bool:
        return key in self._store.objects and bool(probe)

    def _put(self, key: str, body: bytes, etag: str) -> str | None:
        self._ask()
        found = self._store.objects.get(key)
        if ("" if found is None else found.etag) != etag:
            return None
        self._store.writes += 1
        new = Stored(body, str(self._store.writes))
        self._store.objects[key] = new
        if self.loses_answer():
            raise ArchiveUnreachable("the answer is lost")
        return new.etag

    def _ask(self) -> None:
        if self.away():
            raise ArchiveUnreachable("the store is away")


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


class Cluster:
    """What leading asks of a cluster; counts what is asked."""

    def __init__(self) -> None:
        self.fetched = self.watched = 0
        self.away = False

    def cluster(self) -> ClusterView:
        if self.away:
            raise ClusterUnreachable("no broker answers")
        return ClusterView(cluster_id="one", alive=frozenset(), racks={})

    def watch_lease(self, cluster_id: str) -> None:
        self.watched += cluster_id == "one"

    def runs(self, journal_dir: Path, cluster_id: str) -> Any:
        self.fetched += cluster_id == "one" and journal_dir.name == "journal"

    def close(self) -> None:
        """Nothing is open."""


class Member:
    """One of several services, whose thread is the test's."""

    def __init__(
        self,
        store: Store,
        timing: Timing,
        folder: Path,
        *,
        policy: str = "p",
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.wire, self.cluster = Wire(store), Cluster()
        self.pause: ServicePause | None = None
        self.policy = policy
        monkeypatch.setattr("control.service.leadership.this_process", lambda: folder.name)
        lease = Lease(
            self.wire, timing, call_s=CALL_S, spare_s=SPARE_S, holder=folder.name, use=LEADING
        )
        parts = LeadershipParts(
            lease=lease,
            connect=lambda: self.cluster,
            files=TaskFiles(folder),
            journal_dir=folder / "journal",
            policy=lambda: self.policy,
            pause=lambda: self.pause,
            adopt=self.adopt,
            timing=timing,
        )
        self.leadership = Leadership(parts)

    def adopt(self, pause: ServicePause | None) -> None:
        self.pause = pause

    @property
    def paused(self) -> bool:
        return self.pause is not None

    @property
    def leads(self) -> bool:
        return self.leadership.standing.leads


@pytest.fixture
def members(
    store: Store, time: FakeTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Member, Member]:
    a, b = (Member(store, time.timing, tmp_path / name, monkeypatch=monkeypatch) for name in "ab")
    a.leadership.turn()
    b.leadership.turn()
    assert (a.leads, b.leads) == (True, False)
    return a, b


def live(time: FakeTime, seconds: int, *members: Member) -> None:
    """Let time pass, with a turn each second."""
    for _ in range(seconds):
        time.now_s += 1.0
        for member in members:
            member.leadership.turn()
        assert sum(member.leads for member in members) <= 1


def test_the_first_leads_as_long_as_it_lives_and_the_second_watches_its_leases(
    members: tuple[Member, Member], time: FakeTime
) -> None:
    a, b = members
    live(time, 100, a, b)
    assert (a.leads, b.leads) == (True, False)
    assert b.leadership.stands_by() == "a leads; this service stands by"
    assert (a.cluster.fetched, b.cluster.fetched) == (1, 0)
    assert b.cluster.watched > 10


def test_the_second_takes_over_a_dead_leader_as_soon_as_its_lease_has_ended(
    members: tuple[Member, Member], time: FakeTime
) -> None:
    a, b = members
    live(time, 12, a, b)
    began_s = time.now_s
    while not b.leads:
        live(time, 1, b)
    assert DURATION_S - 5 < time.now_s - began_s <= DURATION_S + 2
    assert not a.leads
    # What the first had left is read before the second acts.
    assert b.cluster.fetched == 1


def test_a_frozen_leader_stands_by_when_it_wakes(
    members: tuple[Member, Member], time: FakeTime
) -> None:
    a, b = members
    live(time, 25, b)
    assert b.leads
    # By its own clock, before it asks anyone.
    assert not a.leads
    a.leadership.turn()
    a.leadership.turn()
    live(time, 60, a, b)
    assert (a.leads, b.leads) == (False, True)
    assert a.leadership.standing.leader == "b"


def test_a_leader_without_its_bucket_gives_up_before_its_lease_ends(
    members: tuple[Member, Member], time: FakeTime
) -> None:
    a, b = members
    a.wire.away = lambda: True
    began_s = time.now_s
    while a.leads:
        time.now_s += 0.5
        if time.now_s - began_s >= 5:
            with pytest.raises(ArchiveUnreachable):
                a.leadership.turn()
        b.leadership.turn()
        assert not b.leads
    assert time.now_s - began_s == DURATION_S - MARGIN_S + 0.5
    # Nobody took it meanwhile, so it leads on.
    a.wire.away = lambda: False
    a.leadership.turn()
    assert (a.leads, b.leads) == (True, False)


def test_an_answer_that_is_lost_does_not_end_leading(
    members: tuple[Member, Member], time: FakeTime
) -> None:
    a, b = members
    drawn = random.Random(7)
    a.wire.loses_answer = lambda: drawn.random() < 0.25
    for _ in range(60):
        time.now_s += 1.0
        with contextlib.suppress(ArchiveUnreachable):
            a.leadership.turn()
        b.leadership.turn()
        assert (a.leads, b.leads) == (True, False)


def test_a_bucket_that_is_away_during_the_takeover_delays_it(
    store: Store, time: FakeTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.service.leadership.LOOK_S", 0.01)
    a = Member(store, time.timing, tmp_path / "a", monkeypatch=monkeypatch)
    read, away = threading.Event(), threading.Event()

    def away_once() -> bool:
        first = not away.is_set()
        away.set()
        return first

    def fetch(*_: object) -> None:
        assert not a.leads
        time.now_s += RENEW_S
        a.wire.away = away_once
        assert away.wait(30.0)
        read.set()

    monkeypatch.setattr(a.cluster, "runs", fetch)
    a.leadership.turn()
    assert read.is_set()
    assert a.leads


def test_another_policy_is_named(
    members: tuple[Member, Member], time: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = members
    b.policy = "another"
    live(time, 3, a, b)
    assert b.leadership.standing.other_policy
    assert not a.leadership.standing.other_policy
    found = [r.message for r in caplog.records if "another policy or version" in r.message]
    assert len(found) == 1


def test_a_pause_of_the_leader_is_adopted_and_ends_with_it(
    members: tuple[Member, Member], time: FakeTime
) -> None:
    a, b = members
    a.pause = ServicePause(at_ms=7, by="eve")
    live(time, 2, a, b)
    assert b.pause == a.pause
    a.pause = None
    live(time, 2, a, b)
    assert not b.paused
    # Also the pause of a leader that has ended in order.
    a.pause = ServicePause(at_ms=8, by="eve")
    live(time, 1, a)
    a.leadership.close()
    a.leadership._parts.lease.release()
    b.pause = None
    b.leadership.turn()
    assert b.leads
    assert b.pause == ServicePause(at_ms=8, by="eve")


def test_a_clock_that_is_set_back_changes_nothing(
    members: tuple[Member, Member], time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = members
    past = Timing(now_s=lambda: 1000.0, pause=time.timing.pause, steady_s=time.timing.steady_s)
    monkeypatch.setattr(a.leadership._parts.lease, "_timing", past)
    live(time, 60, a, b)
    assert (a.leads, b.leads) == (True, False)


def test_a_cluster_that_does_not_answer_is_asked_again(
    store: Store, time: FakeTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = Member(store, time.timing, tmp_path / "a", monkeypatch=monkeypatch)
    a.cluster.away = True
    with pytest.raises(ClusterUnreachable):
        a.leadership.turn()
    assert not a.leads
    a.cluster.away = False
    a.leadership.turn()
    assert a.leads


def test_policies_differ_by_what_decides() -> None:
    policy = AutoPolicy(
        limits=EAGER,
        triggers=TriggerTable(),
        dead_broker_after_s=float("inf"),
        stop_rules=StopRules(),
        schedule=ScheduleTable(),
    )
    other = policy.__class__(
        limits=EAGER.model_copy(update={"pause": EAGER.pause + 1}),
        triggers=policy.triggers,
        dead_broker_after_s=policy.dead_broker_after_s,
        stop_rules=policy.stop_rules,
    )
    assert policy_hash(policy, Goals()) == policy_hash(policy, Goals())
    assert policy_hash(policy, Goals()) != policy_hash(other, Goals())
