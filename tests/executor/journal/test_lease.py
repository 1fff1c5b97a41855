"""One writer per cluster: a lease that outlasts every request."""

import threading
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.s3 import Bucket, S3Settings
from executor.journal.lease import Lease, LeaseDocument, Sightings
from executor.timing import Timing
from model.errors import (
    ArchiveUnreachable,
    ConfigError,
    ExecutionStopped,
    GuardrailRefused,
    PlimsollError,
    RightsMissing,
    WriterBarred,
)
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.s3_server import BUCKET, CALL_S, Fault, Host, client, keys, place
from tests.support.executor.simulated_runs import Killed

CLUSTER = "one"
NOT_STOPPED = threading.Event()


@pytest.fixture
def store(endpoint: str) -> S3Settings:
    return place(endpoint)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def put(store: S3Settings, body: bytes) -> None:
    client(store).put_object(Bucket=BUCKET, Key=f"{store.prefix}{CLUSTER}/lease.json", Body=body)


def crash(host: Host) -> None:
    """Take the lease and die."""
    with suppress(Killed), host.lease.held(CLUSTER, NOT_STOPPED):
        host.wire.fault = lambda _: Fault.AWAY
        raise Killed


def test_a_released_lease_is_taken_at_once(store: S3Settings, time: FakeTime) -> None:
    begun_s = time.now_s
    for name in ("a", "b", "a"):
        host = Host(store, time.timing, name)
        with host.lease.held(CLUSTER, NOT_STOPPED):
            host.lease.need()
    assert time.now_s == begun_s
    assert keys(store) == ["one/lease.json"]


@pytest.mark.parametrize("passed_s", [0.0, 4.0, CALL_S])
def test_a_request_without_an_answer_keeps_the_lease_while_it_may_arrive(
    store: S3Settings, time: FakeTime, passed_s: float
) -> None:
    a, b = (Host(store, time.timing, name) for name in "ab")
    begun_s = time.now_s
    with a.lease.held(CLUSTER, NOT_STOPPED):
        a.lease.need()
        a.lease.unanswered()
        time.now_s += passed_s
    with b.lease.held(CLUSTER, NOT_STOPPED):
        assert time.now_s - begun_s >= CALL_S
        assert (time.now_s - begun_s == CALL_S) == (passed_s == CALL_S)
        assert time.now_s - begun_s < a.lease.duration_s


def test_a_holder_that_lives_waits_for_a_late_request_but_one_that_died_does_not(
    store: S3Settings, time: FakeTime
) -> None:
    late_s = 5 * CALL_S
    dead, a, b, c = (Host(store, time.timing, name) for name in ("dead", "a", "b", "c"))
    for host in (dead, a):
        host.lease = Lease(host.bucket, time.timing, call_s=CALL_S, late_s=late_s, holder=host.name)
    with a.lease.held(CLUSTER, NOT_STOPPED):
        a.lease.need()
        begun_s = time.now_s
        a.lease.unanswered()
    with b.lease.held(CLUSTER, NOT_STOPPED):
        assert time.now_s - begun_s >= late_s
    with suppress(Killed), dead.lease.held(CLUSTER, NOT_STOPPED):
        dead.lease.need()
        dead.lease.unanswered()
        begun_s = time.now_s
        dead.wire.fault = lambda _: Fault.AWAY
        raise Killed
    with c.lease.held(CLUSTER, NOT_STOPPED):
        assert time.now_s - begun_s < late_s


def test_leases_of_other_clusters_do_not_matter(store: S3Settings, time: FakeTime) -> None:
    a, b = (Host(store, time.timing, name) for name in "ab")
    with a.lease.held(CLUSTER, NOT_STOPPED), b.lease.held("two", NOT_STOPPED):
        a.lease.need()
        b.lease.need()


def test_the_second_writers_error_names_the_first(store: S3Settings, time: FakeTime) -> None:
    """As soon as the first, which waits for a move, has renewed its lease."""
    a, b = (Host(store, time.timing, name) for name in ("a", "b"))
    with a.lease.held(CLUSTER, NOT_STOPPED):
        for seconds in range(1, 40):
            time.after.append((time.now_s + seconds, a.lease.keep))
        with (
            pytest.raises(GuardrailRefused, match=r"^a is changing the cluster"),
            b.lease.held(CLUSTER, NOT_STOPPED),
        ):
            pass
        a.lease.need()


def test_a_crashed_writers_lease_is_taken_after_it_expires(
    store: S3Settings, time: FakeTime
) -> None:
    dead, b = (Host(store, time.timing, name) for name in ("dead", "b"))
    crash(dead)
    time.now_s += 1000.0
    begun_s = time.now_s
    with b.lease.held(CLUSTER, NOT_STOPPED):
        # Measured by its own clock, whatever the dead holder's clock said.
        assert time.now_s - begun_s > dead.lease.duration_s
        b.lease.need()


def test_one_of_two_waiting_processes_gets_a_crashed_writers_lease(
    store: S3Settings, time: FakeTime
) -> None:
    dead, b, c = (Host(store, time.timing, name) for name in ("dead", "b", "c"))
    crash(dead)
    with ExitStack() as stack:

        def take() -> None:
            stack.enter_context(c.lease.held(CLUSTER, NOT_STOPPED))

        time.after.append((time.now_s + 5.0, take))
        with pytest.raises(GuardrailRefused, match=r"^c is changing the cluster"):
            stack.enter_context(b.lease.held(CLUSTER, NOT_STOPPED))
        c.lease.need()


def test_waiting_for_a_lease_can_be_stopped(store: S3Settings, time: FakeTime) -> None:
    dead, b = (Host(store, time.timing, name) for name in ("dead", "b"))
    crash(dead)
    stop = threading.Event()
    time.after.append((time.now_s + 3.0, stop.set))
    with pytest.raises(ExecutionStopped, match="nothing was changed"):
        b.lease.held(CLUSTER, stop).__enter__()


def test_a_lease_is_renewed_before_a_request_could_outlast_it(
    store: S3Settings, time: FakeTime
) -> None:
    a = Host(store, time.timing, "a")
    with a.lease.held(CLUSTER, NOT_STOPPED):
        calls = a.wire.calls
        time.now_s += a.lease.duration_s - CALL_S
        a.lease.need()
        assert a.wire.calls == calls
        time.now_s += 0.1
        a.lease.need()
        assert a.wire.calls == calls + 1
        time.now_s += a.lease.duration_s - CALL_S
        a.lease.need()
        assert a.wire.calls == calls + 1


def test_the_loser_of_a_lease_learns_the_new_holder(store: S3Settings, time: FakeTime) -> None:
    a, b = (Host(store, time.timing, name) for name in ("a", "b"))
    with a.lease.held(CLUSTER, NOT_STOPPED):
        with b.lease.held(CLUSTER, NOT_STOPPED):
            with pytest.raises(WriterBarred, match=r"is lost \(b has taken it\)"):
                a.lease.need()
            b.lease.need()
        time.now_s += 1000.0
        with pytest.raises(WriterBarred, match=r"is lost \(b has taken it\)"):
            a.lease.need()


def test_a_removed_lease_is_lost(store: S3Settings, time: FakeTime) -> None:
    a = Host(store, time.timing, "a")
    with a.lease.held(CLUSTER, NOT_STOPPED):
        client(store).delete_object(Bucket=BUCKET, Key=f"{store.prefix}{CLUSTER}/lease.json")
        time.now_s += a.lease.duration_s - CALL_S + 1.0
        with pytest.raises(WriterBarred, match="someone has removed it"):
            a.lease.need()
    assert keys(store) == []


LEASE = LeaseDocument(holder="h", token="t", epoch=1, renewals=0, duration_ms=9, expires_at_ms=0)
GARBLED = [
    *(b"", b"{}", b"\xff", b"[]", b'{"schema_version":"1.0","holder":7}', b"[" * 9999),
    LEASE.body.replace(b'"duration_ms":9', b'"duration_ms":9' + b"0" * 400),
    LEASE.body.replace(b'"duration_ms":9', b'"duration_ms":9000000000000000'),
]
"""One has a time that no double holds, one a time that never ends."""


@pytest.mark.parametrize("body", GARBLED)
def test_an_object_that_is_not_a_lease_is_named_and_stays(
    store: S3Settings, time: FakeTime, body: bytes
) -> None:
    put(store, body)
    a = Host(store, time.timing, "a")
    with pytest.raises(ConfigError, match=r"/one/lease\.json is not a lease of plimsoll"):
        a.lease.held(CLUSTER, NOT_STOPPED).__enter__()
    result = a.bucket.get("one/lease.json")
    assert result is not None
    assert result.body == body


def test_reading_a_lease_is_limited_in_size(store: S3Settings, time: FakeTime) -> None:
    put(store, LEASE.body + b" " * 70_000)
    a = Host(store, time.timing, "a")
    with pytest.raises(ConfigError, match=r"lease\.json is larger than 65,536 bytes"):
        a.lease.held(CLUSTER, NOT_STOPPED).__enter__()


def test_a_lease_written_by_a_newer_plimsoll_is_not_taken(
    store: S3Settings, time: FakeTime
) -> None:
    a, b = (Host(store, time.timing, name) for name in ("a", "b"))
    with a.lease.held(CLUSTER, NOT_STOPPED):
        result = a.bucket.get("one/lease.json")
        assert result is not None
        put(store, result.body.replace(b'"1.0"', b'"2.0"'))
        with pytest.raises(ConfigError, match="was written by a newer plimsoll"):
            b.lease.held(CLUSTER, NOT_STOPPED).__enter__()


def test_an_overwritten_lease_bars_requests(store: S3Settings, time: FakeTime) -> None:
    a = Host(store, time.timing, "a")
    with a.lease.held(CLUSTER, NOT_STOPPED):
        put(store, b"{}")
        time.now_s += a.lease.duration_s - CALL_S + 1.0
        with pytest.raises(WriterBarred, match="is not a lease of plimsoll"):
            a.lease.need()


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.AWAY, ArchiveUnreachable), (Fault.DENIED, RightsMissing)]
)
@pytest.mark.parametrize("call", range(6))
def test_without_the_bucket_there_is_no_lease(
    store: S3Settings, time: FakeTime, call: int, fault: Fault, error: type[PlimsollError]
) -> None:
    """At whichever of the calls that taking it needs."""
    a = Host(store, time.timing, "a")
    a.wire.fault = lambda n: fault if n == call else None
    with pytest.raises(error, match=r"Cannot (read|write) s3://archive/"):
        a.lease.held(CLUSTER, NOT_STOPPED).__enter__()
    with pytest.raises(WriterBarred):
        a.lease.need()


def test_a_store_that_ignores_conditions_is_refused(store: S3Settings, time: FakeTime) -> None:
    a = Host(store, time.timing, "a")
    put_object = a.wire.put_object

    def careless(**how: object) -> object:
        remaining = {k: v for k, v in how.items() if k not in ("IfMatch", "IfNoneMatch")}
        return put_object(**remaining)

    a.wire.put_object = careless  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="cannot hold a lease; nothing was changed"):
        a.lease.held(CLUSTER, NOT_STOPPED).__enter__()


@pytest.mark.parametrize("away_s", [10.0, 40.0])
def test_the_bucket_may_be_unreachable_for_a_while(
    store: S3Settings, time: FakeTime, away_s: float
) -> None:
    """Nothing can be sent meanwhile; if nobody took the lease, the run continues."""
    a = Host(store, time.timing, "a")
    with a.lease.held(CLUSTER, NOT_STOPPED):
        a.wire.fault = lambda _: Fault.AWAY
        time.now_s += away_s
        a.lease.keep()
        if away_s > a.lease.duration_s - CALL_S:
            with pytest.raises(WriterBarred, match="cannot be renewed"):
                a.lease.need()
        else:
            a.lease.need()
        a.wire.fault = lambda _: None
        a.lease.need()


def test_a_slow_renewal_bars_requests(store: S3Settings, time: FakeTime) -> None:
    a = Host(store, time.timing, "a")
    with a.lease.held(CLUSTER, NOT_STOPPED):
        time.now_s += a.lease.duration_s - CALL_S + 1.0
        a.wire.wait = lambda _: setattr(time, "now_s", time.now_s + 31.0)
        a.wire.fault = lambda _: Fault.SLOW
        with pytest.raises(WriterBarred, match="took too long"):
            a.lease.need()


FAULTS = st.sampled_from([Fault.AWAY, Fault.ANSWER_LOST, Fault.DENIED, Fault.CONFLICT, Fault.SLOW])
RATES = st.floats(0.9955, 1.0045)
STEPS = st.lists(
    st.tuples(st.floats(0.0, 150.0), st.sampled_from(["need", "keep", "release"])), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(
    steps=STEPS,
    faults=st.dictionaries(st.integers(6, 30), FAULTS, max_size=8),
    theirs=st.dictionaries(st.integers(0, 40), FAULTS, max_size=4),
    begins_s=st.floats(0.0, 80.0),
    rates=st.tuples(RATES, RATES),
)
@pytest.mark.slow
def test_no_request_lasts_into_another_holders_lease(
    endpoint: str,
    steps: list[tuple[float, str]],
    faults: dict[int, Fault],
    theirs: dict[int, Fault],
    begins_s: float,
    rates: tuple[float, float],
) -> None:
    """Whatever the bucket does, and however the clocks of both hosts go."""
    store, time = place(endpoint), FakeTime()
    a, b = (Host(store, at_rate(time, rate), name) for name, rate in zip("ab", rates, strict=True))
    a.wire.fault, b.wire.fault = faults.get, theirs.get
    ends_s = [time.now_s]
    with ExitStack() as stack:
        stack.enter_context(a.lease.held(CLUSTER, NOT_STOPPED))

        def step(what: str) -> None:
            if what == "need":
                try:
                    a.lease.need()
                except WriterBarred:
                    return
                ends_s.append(time.now_s + CALL_S / rates[0])
            elif what == "keep":
                a.lease.keep()
            else:
                stack.close()

        for seconds, what in steps:
            due = (time.now_s + seconds, lambda what=what: step(what))
            time.after.append(due)
        time.timing.pause(begins_s)
        released = "release" in [what for _, what in steps]
        try:
            with b.lease.held(CLUSTER, NOT_STOPPED):
                if not released:
                    assert time.now_s >= max(ends_s)
                sent = len(ends_s)
                time.timing.pause(200.0)
                assert len(ends_s) == sent
        except PlimsollError:
            pass


def at_rate(time: FakeTime, rate: float) -> Timing:
    """The clock of a host; nobody acts during the bucket's delays."""
    return Timing(
        now_s=lambda: rate * time.now_s,
        pause=lambda seconds: time.timing.pause(seconds / rate),
        steady_s=lambda: rate * time.now_s,
    )


IDLE_S = 20.0


def idle_host(store: S3Settings, time: FakeTime, name: str) -> Host:
    """A host whose lease is short while no request is open."""
    host = Host(store, time.timing, name)
    host.lease = Lease(host.bucket, time.timing, call_s=CALL_S, holder=name, idle_s=IDLE_S)
    return host


def duration_s(host: Host) -> float:
    found = host.bucket.get("one/lease.json")
    assert found is not None
    return LeaseDocument.model_validate_json(found.body).duration_ms / 1000


@pytest.mark.parametrize("call_s", [CALL_S, 90.0])
def test_a_lease_is_long_enough_for_each_request_and_short_between_them(
    store: S3Settings, time: FakeTime, call_s: float
) -> None:
    a = Host(store, time.timing, "a")
    a.lease = Lease(a.bucket, time.timing, call_s=call_s, holder="a", idle_s=IDLE_S)
    with a.lease.held(CLUSTER, NOT_STOPPED):
        for _ in range(5):
            a.lease.need()
            assert a.lease.left_s >= call_s
            assert duration_s(a) >= call_s
            for _ in range(60):
                time.now_s += 0.5
                a.lease.keep()
                assert a.lease.left_s > 0
            assert duration_s(a) == IDLE_S


def test_a_request_without_an_answer_keeps_the_lease_long(
    store: S3Settings, time: FakeTime
) -> None:
    a = Host(store, time.timing, "a")
    a.lease = Lease(a.bucket, time.timing, call_s=90.0, holder="a", idle_s=IDLE_S)
    with a.lease.held(CLUSTER, NOT_STOPPED):
        a.lease.need()
        began_s = time.now_s
        a.lease.unanswered()
        while time.now_s - began_s < 90.0:
            assert duration_s(a) == a.lease.duration_s
            time.now_s += 5.0
            a.lease.keep()
        time.now_s += 5.0
        a.lease.keep()
        assert duration_s(a) == IDLE_S


def test_the_next_call_may_take_as_long_as_a_request_without_an_answer(
    store: S3Settings, time: FakeTime
) -> None:
    a, b = Host(store, time.timing, "a"), Host(store, time.timing, "b")
    late_s = 7 * CALL_S
    a.lease = Lease(
        a.bucket, time.timing, call_s=CALL_S, late_s=late_s, holder="a", idle_s=IDLE_S, spare_s=9.0
    )
    with a.lease.held(CLUSTER, NOT_STOPPED):
        a.lease.need()
        begun_s = time.now_s
        time.now_s += CALL_S - 1.0
        a.lease.unanswered()
        a.wire.fault = lambda _: Fault.AWAY
        a.lease.need()
        assert a.lease.left_s == IDLE_S - CALL_S + 1.0
        a.wire.fault = lambda _: None
        time.now_s += 5.0
        a.lease.need()
        assert a.lease.left_s >= begun_s + late_s - time.now_s
        with b.lease.held(CLUSTER, NOT_STOPPED):
            assert time.now_s >= begun_s + late_s
            with pytest.raises(WriterBarred, match="b has taken"):
                a.lease.need()


def test_time_during_which_a_lease_was_watched_counts(store: S3Settings, time: FakeTime) -> None:
    dead = idle_host(store, time, "dead")
    crash(dead)
    sightings = Sightings()
    watching, taking = (Host(store, time.timing, "b") for _ in range(2))
    for host in (watching, taking):
        host.lease = Lease(host.bucket, time.timing, call_s=CALL_S, holder="b", sightings=sightings)
    watching.lease.watch(CLUSTER)
    time.now_s += IDLE_S - 3.0
    began_s = time.now_s
    with taking.lease.held(CLUSTER, NOT_STOPPED):
        assert 3.0 < time.now_s - began_s < 5.0


def test_a_lease_that_was_renewed_since_it_was_seen_is_not_over(
    store: S3Settings, time: FakeTime
) -> None:
    a, b = idle_host(store, time, "a"), Host(store, time.timing, "b")
    with a.lease.held(CLUSTER, NOT_STOPPED):
        b.lease.watch(CLUSTER)
        for _ in range(10):
            time.now_s += 5.0
            a.lease.keep()
        assert b.lease.attempt("one/lease.json") is not None
        a.lease.need()


class LosesAnswers:
    """A bucket that makes a write and then fails, on demand."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self.loses = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        found = self._bucket.put_over(key, body, etag)
        if self.loses:
            raise ArchiveUnreachable("the answer is lost")
        return found


def test_a_lease_that_may_have_become_short_is_renewed_before_a_request(
    store: S3Settings, time: FakeTime
) -> None:
    a, b = Host(store, time.timing, "a"), Host(store, time.timing, "b")
    wire = LosesAnswers(a.bucket)
    a.lease = Lease(wire, time.timing, call_s=90.0, holder="a", idle_s=IDLE_S)
    with a.lease.held(CLUSTER, NOT_STOPPED):
        a.lease.need()
        time.now_s += 0.5
        wire.loses = True
        a.lease.keep()
        # Others see the short one, whatever this host has heard.
        assert duration_s(a) == IDLE_S
        assert a.lease.left_s <= IDLE_S
        wire.loses = False
        with b.lease.held(CLUSTER, NOT_STOPPED), pytest.raises(WriterBarred, match="b has taken"):
            a.lease.need()


def test_a_bucket_that_is_away_does_not_slow_down_reads(store: S3Settings, time: FakeTime) -> None:
    a = Host(store, time.timing, "a")
    a.lease = Lease(a.bucket, time.timing, call_s=90.0, holder="a", idle_s=IDLE_S)
    tried = 0

    def away(_: object) -> Fault:
        nonlocal tried
        tried += 1
        return Fault.AWAY

    with a.lease.held(CLUSTER, NOT_STOPPED):
        a.lease.need()
        a.wire.fault = away
        for _ in range(18):
            time.now_s += 0.5
            a.lease.keep()
        once = tried
        for _ in range(40):
            time.now_s += 0.5
            a.lease.keep()
        assert 0 < tried <= 3 * once
        a.wire.fault = lambda _: None
        a.lease.need()
