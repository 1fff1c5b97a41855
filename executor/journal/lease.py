"""One writer per cluster, and one worker per task: a lease on it, kept in the archive's bucket.

The object `<cluster id>/lease.json` names the holder. It is changed by conditional
writes only, so of several processes that replace one state, a single one succeeds.

Clocks of different hosts are not compared. Let D be the duration in the object. Its holder counts D
from before its last write was sent; a process that wants to take over counts D (and 1 % more, since
clock rates differ by less) from after it first read that state, and takes over only if the state is
still the same then. The write came before the read, so the holder's time ends before the taker's
does. The holder in turn sends no request that could outlast its time: it renews first, which fails
once another process has taken over. While a request without an answer may still arrive, it keeps
the lease at least until then, or leaves it in place until then when it ends. No lease can prevent
the remaining case: a process that is suspended between its last check of the clock and the sending
of one request.

A request may take longer than others should have to wait for a holder that has died. So a
holder may keep a shorter lease while none of its requests is open (`idle_s`), and lengthens it
before the next one. A process that stands by notes since when a lease has not changed (`Sightings`)
before it needs it, so that its wait is over sooner.
"""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, inf
from typing import Annotated, Final, Protocol

from pydantic import Field

from clients.s3 import Stored
from executor.timing import Timing
from model.bounded import check_times, parse_json
from model.errors import (
    ConfigError,
    ExecutionStopped,
    GuardrailRefused,
    PlimsollError,
    WriterBarred,
)
from model.files import FileModel, VersionedModel, canonical, major_of, unless_none
from model.log_events import LogEvent, named
from model.paths import path_part
from model.units import seconds_text

SPARE_S: Final = 30.0
"""Seconds by which the lease outlasts a request: it is renewed after half of that,
so the bucket may be unreachable for the other half before requests must stop."""
_RATES: Final = 1.01
"""Upper bound on the ratio of two hosts' clock rates."""
_LOOK_S: Final = 5.0
"""Seconds between two polls of another holder's lease, or two early renewals."""
_SOONEST_S: Final = 0.5
"""The same where the lease may be taken over before."""
_IDLE_AFTER_S: Final = 0.3
"""Seconds after the check before a request that the lease is shortened again."""
_MAJOR: Final = 1
_MOST_BYTES: Final = 1 << 16
"""Size limit of the object, which has a few hundred bytes."""
_log = logging.getLogger("plimsoll.executor")


@dataclass(frozen=True, slots=True)
class LeaseUse:
    """What a lease is for, in the words of its messages."""

    doing: str
    """What its holder does."""
    instead: str
    """What another process may do instead, as a sentence."""


_CLUSTER: Final = LeaseUse("is changing the cluster", "Wait until its run has ended, or stop it.")


class LeaseStore(Protocol):
    """Where leases lie: small objects by key, changed by conditional writes only.

    Of writers that replace one version, or create one object, a single one succeeds. Calls raise
    ArchiveUnreachable, RightsMissing or ConfigError.
    """

    def where(self, key: str) -> str:
        """Return the address of an object for messages."""
        ...

    def get(self, key: str, most: int) -> Stored | None:
        """Return an object of at most `most` bytes; None if there is none."""
        ...

    def put_new(self, key: str, body: bytes) -> str | None:
        """Create an object and return its version; None if another one exists."""
        ...

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        """Replace the object of this version, return the new one; None if it is gone."""
        ...

    def keeps_conditions(self, key: str, probe: bytes) -> bool:
        """Whether writes whose condition fails are refused; else `probe` is written."""
        ...


class LeaderNote(FileModel):
    """What the leader of several services tells those that stand by."""

    policy: str
    """Hash of the policy that it acts by."""
    paused_by: str = ""
    """Who has paused it; empty without a pause."""
    paused_at_ms: int = 0


class LeaseDocument(VersionedModel):
    """The content of the lease object."""

    schema_version: str = "1.0"
    holder: str
    """For people."""
    token: str
    """Unique for each time the lease is taken."""
    epoch: int
    """How many times the lease has been taken."""
    renewals: int
    """Renewals since it was taken, so that no two states are equal."""
    duration_ms: Annotated[int, Field(gt=0)]
    expires_at_ms: int
    """By the holder's clock, for people."""
    released: bool = False
    leader: Annotated[LeaderNote | None, unless_none] = None
    """Of the lease on leading several services."""

    @property
    def body(self) -> bytes:
        """The object's bytes."""
        return canonical(self.model_dump(mode="json"))


class Sightings:
    """Since when the leases of others have not changed, by this host's steady clock.

    Any thread may call. A process shares one among its leases, so that what one has seen for some
    time need not be waited for once more by another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[str, float]] = {}

    def since_s(self, where: str, etag: str, read_s: float) -> float:
        """When this version was first seen, at the latest now. read_s: when it had been read."""
        with self._lock:
            known = self._seen.get(where)
            if known is None or known[0] != etag:
                known = self._seen[where] = (etag, read_s)
            return known[1]


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How a process holds leases, the same for all that it opens."""

    idle_s: float | None = None
    """As `Lease` has it."""
    spare_s: float | None = None
    """The same; None for a lease that also outlasts the search for brokers before a request."""
    sightings: Sightings | None = None
    """Shared with its other leases; None for its own."""


@dataclass(slots=True)
class _Held:
    """The lease while this process holds it."""

    key: str
    document: LeaseDocument
    etag: str
    until_s: float
    """Expiry by this host's steady clock."""
    tried_at_s: float
    ends_s: float = -inf
    """When a request sent after the last check has taken effect, if it ever does."""
    open_until_s: float = -inf
    """The same for the requests that got no answer."""
    checked_s: float = -inf
    """When a request was checked last."""
    again_s: float = -inf
    """When `keep` may try again after it has failed."""


class Lease:
    """The lease of one cluster, or of something else, at a time. One thread uses it.

    `call_s`: the longest time in seconds from `need` until a request is answered or given up.
    `late_s`: the same until one without an answer takes effect, if it ever does; a holder that
    lives waits for it. None: `call_s`. No thread renews the lease: `need` does before a change, and
    `keep` whenever the cluster is read.
    `idle_s`: seconds that it is valid while no request is open; None: as long as otherwise.
    """

    def __init__(
        self,
        bucket: LeaseStore,
        timing: Timing,
        *,
        call_s: float,
        holder: str,
        spare_s: float = SPARE_S,
        late_s: float | None = None,
        use: LeaseUse = _CLUSTER,
        idle_s: float | None = None,
        sightings: Sightings | None = None,
    ) -> None:
        self._bucket = bucket
        self._timing = timing
        self._call_s = call_s
        self._spare_s = spare_s
        self._late_s = call_s if late_s is None else late_s
        self._use = use
        self._idle_s = idle_s
        self._shared = sightings
        self._sightings = Sightings() if sightings is None else sightings
        self._holder = holder
        self.leader: LeaderNote | None = None
        """What the next writes tell others."""
        self.previous: LeaseDocument | None = None
        """What `attempt` found before it took the lease; None where there was nothing."""
        self._held: _Held | None = None
        self._lost = ""
        """Why it is no longer held."""

    @property
    def duration_s(self) -> float:
        """Seconds for which it is valid without being renewed, at most."""
        return self._call_s + self._spare_s

    @property
    def _usual_s(self) -> float:
        """The same while no request is open."""
        return self.duration_s if self._idle_s is None else self._idle_s

    @property
    def left_s(self) -> float:
        """Seconds for which it is still valid, unless it is renewed; 0 where it is not held."""
        held = self._held
        return 0.0 if held is None or self._lost else max(0.0, self._left_s(held))

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken it, or someone has removed it."""
        return bool(self._lost)

    @contextmanager
    def held(self, cluster_id: str, stop: threading.Event) -> Iterator[None]:
        """Hold the lease of a cluster; as `held_at`."""
        with self.held_at(_key_of(cluster_id), stop):
            yield

    @contextmanager
    def held_at(self, key: str, stop: threading.Event) -> Iterator[None]:
        """Hold the lease that is the object at `key`.

        If its holder seems to have died, waits until that is certain. Raises GuardrailRefused where
        another process holds it, ExecutionStopped where `stop` is set meanwhile, ConfigError where
        the object or the bucket is unusable, and as `Bucket` does.
        """
        self._lost = ""
        if self._shared is None:
            self._sightings = Sightings()
        self._held = self._taken(key, stop)
        try:
            self._refuse_unconditional_store(self._held)
            yield
        finally:
            self.release()

    def watch(self, cluster_id: str) -> None:
        """Note the present version of a cluster's lease, for a later `held`; raises as that."""
        self.watch_at(_key_of(cluster_id))

    def attempt(self, key: str) -> LeaseDocument | None:
        """Take the lease at `key` if it is free or has expired, without waiting.

        Returns None where it is held now, until `release`; otherwise the document of the process
        that holds it, or has just taken it. Raises as `held_at`.
        """
        while True:
            begun_s = self._timing.steady_s()
            found = self._bucket.get(key, _MOST_BYTES)
            old = self._read(key, found) if found else None
            etag = found.etag if found else ""
            if old is not None and not (old.released or self._is_over(key, old, etag)):
                return old
            new = self._document(uuid.uuid4().hex, old.epoch + 1 if old else 1)
            if taken := self._put(key, new, etag):
                self._lost, self.previous = "", old
                self._held = _Held(key, new, taken, begun_s + self._usual_s, begun_s)
                try:
                    self._refuse_unconditional_store(self._held)
                except BaseException:
                    self.release()
                    raise
                return None

    def watch_at(self, key: str) -> None:
        """Note the present version of the lease at `key`, for a later `held_at`; raises as that."""
        found = self._bucket.get(key, _MOST_BYTES)
        if found is not None:
            self._since_s(key, found.etag)

    def holder_of(self, key: str) -> str:
        """Who holds the lease at `key`, by that host's clock; empty where nobody does.

        Only for people: clocks of hosts may differ. Raises as `Bucket` does, and ConfigError where
        the object is unusable.
        """
        found = self._bucket.get(key, _MOST_BYTES)
        if found is None:
            return ""
        now = self._read(key, found)
        self._since_s(key, found.etag)
        held = not now.released and now.expires_at_ms > self._timing.now_ms()
        return now.holder if held else ""

    def need(self) -> None:
        """Ensure that a request sent now ends within the lease.

        Raises WriterBarred otherwise.
        """
        held = self._held
        if held is not None and self._call_s <= self._left_s(held) < self._open_s(held):
            # The next call may search for brokers for longer than the lease lasts.
            self.keep()
        if self._lost or held is None:
            raise WriterBarred(self._lost or "nothing is changed without a lease")
        if self._left_s(held) < self._call_s:
            self._renew_now(held)
        held.checked_s = self._timing.steady_s()
        held.ends_s = held.checked_s + self._late_s

    def unanswered(self) -> None:
        """Note that the request sent after the last `need` got no answer.

        It may still arrive, so nobody else may hold the lease before that.
        """
        if self._held is not None:
            self._held.open_until_s = self._held.ends_s
            self._held.tried_at_s = -inf

    def _renew_now(self, held: _Held) -> None:
        try:
            self._renew(held, max(self.duration_s, self._open_s(held)))
        except WriterBarred:
            raise
        except PlimsollError as exc:
            raise WriterBarred(
                f"the lease cannot be renewed, so nothing further is sent: {exc}"
            ) from exc
        if self._left_s(held) < self._call_s:
            raise WriterBarred(
                f"renewing the lease {self._bucket.where(held.key)} took too long, so "
                "nothing further is sent"
            )

    def keep(self) -> None:
        """Renew the lease if it is due and possible; never raises.

        Others thus see that its holder is alive while it waits for moves.
        """
        held, now_s = self._held, self._timing.steady_s()
        if held is None or self._lost:
            return
        seconds, shortens = self._next_s(held, now_s)
        if now_s - held.tried_at_s < (_IDLE_AFTER_S if shortens else _LOOK_S):
            return
        if now_s < held.again_s:
            return
        if not shortens and self._left_s(held) >= seconds - min(self._spare_s, seconds) / 2:
            return
        again_s = 0.0
        try:
            self._renew(held, seconds)
        except PlimsollError as exc:
            again_s = _LOOK_S
            _log.debug("%s", exc, extra=named(LogEvent.LEASE_FAILED))
        held.tried_at_s = self._timing.steady_s()
        # A bucket that does not answer must not delay every read of a run.
        held.again_s = held.tried_at_s + again_s

    def renew(self) -> None:
        """Renew the lease now, with what `leader` says.

        Raises WriterBarred where it is lost, and as `held_at`.
        """
        if self._held is None or self._lost:
            raise WriterBarred(self._lost or "the lease is not held")
        self._renew(self._held, self._usual_s)

    def _next_s(self, held: _Held, now_s: float) -> tuple[float, bool]:
        """For how long the next renewal without a request is, and whether that shortens it."""
        open_s = self._open_s(held)
        if self._idle_s is None or open_s > 0.0:
            return max(self.duration_s, open_s), False
        is_long = held.document.duration_ms > int(1000 * self._idle_s)
        if is_long and now_s < held.checked_s + _IDLE_AFTER_S:
            return self.duration_s, False
        return self._idle_s, is_long

    def _open_s(self, held: _Held) -> float:
        """Seconds until a request that got no answer has taken effect, if it ever does."""
        return held.open_until_s - self._timing.steady_s()

    def _left_s(self, held: _Held) -> float:
        return held.until_s - self._timing.steady_s()

    def _renew(self, held: _Held, seconds: float) -> None:
        """Write the next state, valid for so many seconds.

        Raises WriterBarred where the lease is lost.
        """
        while True:
            begun_s = self._timing.steady_s()
            new = held.document.model_copy(
                update={
                    "renewals": held.document.renewals + 1,
                    "duration_ms": int(1000 * seconds),
                    "expires_at_ms": self._timing.now_ms() + int(1000 * seconds),
                    "leader": self.leader,
                }
            )
            # If the answer is lost, others may still see the shorter time, and count that.
            held.until_s = min(held.until_s, begun_s + seconds)
            etag = self._bucket.put_over(held.key, new.body, held.etag)
            if etag is not None:
                held.document, held.etag = new, etag
                held.until_s = begun_s + seconds
                return
            self._find_own(held)

    def _find_own(self, held: _Held) -> None:
        """Continue from our own write whose answer was lost; otherwise the lease is lost."""
        found = self._bucket.get(held.key, _MOST_BYTES)
        now = self._read(held.key, found) if found else None
        if found is not None and now is not None and now.token == held.document.token:
            held.document, held.etag = now, found.etag
            return
        who = f"{now.holder} has taken it" if now else "someone has removed it"
        self._lost = (
            f"the lease {self._bucket.where(held.key)} is lost ({who}), so nothing further is sent"
        )
        raise WriterBarred(self._lost)

    def _taken(self, key: str, stop: threading.Event) -> _Held:
        token = uuid.uuid4().hex
        first = ""
        """The version that was read first."""
        while True:
            begun_s = self._timing.steady_s()
            found = self._bucket.get(key, _MOST_BYTES)
            old = self._read(key, found) if found else None
            etag = found.etag if found else ""
            if old is None or old.released or self._is_over(key, old, etag):
                new = self._document(token, old.epoch + 1 if old else 1)
                if taken := self._put(key, new, etag):
                    return _Held(key, new, taken, begun_s + self._usual_s, begun_s)
            elif not first:
                first = etag
                self._warn_waiting(key, old)
            elif first != etag:
                raise self._refusal(key, old)
            self._wait(key, stop, self._over_in_s(key, old, etag))

    def _put(self, key: str, new: LeaseDocument, etag: str) -> str | None:
        if not etag:
            return self._bucket.put_new(key, new.body)
        return self._bucket.put_over(key, new.body, etag)

    def _is_over(self, key: str, old: LeaseDocument, etag: str) -> bool:
        """Whether the version that was just read has been seen for its whole duration."""
        return self._over_in_s(key, old, etag) < 0

    def _over_in_s(self, key: str, old: LeaseDocument | None, etag: str) -> float:
        if old is None:
            return 0.0
        waited_s = self._timing.steady_s() - self._since_s(key, etag)
        return _RATES * old.duration_ms / 1000 - waited_s

    def _since_s(self, key: str, etag: str) -> float:
        return self._sightings.since_s(self._bucket.where(key), etag, self._timing.steady_s())

    def _wait(self, key: str, stop: threading.Event, over_in_s: float) -> None:
        if stop.is_set():
            raise ExecutionStopped(
                f"Stopped while waiting for the lease {self._bucket.where(key)}; "
                "nothing was changed."
            )
        soonest_s = _LOOK_S if self._shared is None else _SOONEST_S
        self._timing.pause(min(_LOOK_S, max(soonest_s, over_in_s)))

    def _warn_waiting(self, key: str, old: LeaseDocument) -> None:
        _log.warning(
            "%s holds the lease %s; it is taken over unless it is renewed within %s",
            old.holder,
            self._bucket.where(key),
            seconds_text(_RATES * old.duration_ms / 1000),
            extra=named(LogEvent.LEASE_WAITING),
        )

    def _refusal(self, key: str, old: LeaseDocument) -> GuardrailRefused:
        return GuardrailRefused(
            f"{old.holder} {self._use.doing}: it holds the lease {self._bucket.where(key)} "
            f"and renews it. {self._use.instead}"
        )

    def _document(self, token: str, epoch: int) -> LeaseDocument:
        return LeaseDocument(
            holder=self._holder,
            token=token,
            epoch=epoch,
            renewals=0,
            duration_ms=int(1000 * self._usual_s),
            expires_at_ms=self._timing.now_ms() + int(1000 * self._usual_s),
            leader=self.leader,
        )

    def _read(self, key: str, found: Stored) -> LeaseDocument:
        try:
            check_times(parse_json(found.body))
            document = LeaseDocument.model_validate_json(found.body)
        except ValueError as exc:
            raise ConfigError(
                f"{self._bucket.where(key)} is not a lease of plimsoll. Remove it if "
                "no plimsoll is changing the cluster."
            ) from exc
        if major_of(document.schema_version) != _MAJOR:
            raise ConfigError(
                f"{self._bucket.where(key)} was written by a newer plimsoll "
                f"(schema version {document.schema_version}); use that one."
            )
        return document

    def _refuse_unconditional_store(self, held: _Held) -> None:
        probe = held.document.model_copy(update={"renewals": -1})
        if not self._bucket.keeps_conditions(held.key, probe.body):
            raise ConfigError(
                f"The store of {self._bucket.where(held.key)} overwrites objects "
                "whatever the conditions of a write (If-None-Match, If-Match), so it "
                "cannot hold a lease; nothing was changed. Use another store."
            )

    def release(self) -> None:
        """Give the lease up, if it is held; never raises."""
        held, self._held = self._held, None
        if held is None or self._lost:
            return
        try:
            self._bucket.put_over(held.key, self._last(held).body, held.etag)
        except PlimsollError as exc:
            _log.warning(
                "the lease stays for up to %s: %s",
                seconds_text(self.duration_s),
                exc,
                extra=named(LogEvent.LEASE_FAILED),
            )

    def _last(self, held: _Held) -> LeaseDocument:
        """The state that a holder leaves: released, or as long as its last request may take."""
        left_s = self._open_s(held)
        if left_s <= 0.0:
            return held.document.model_copy(update={"released": True})
        left_ms = ceil(1000 * left_s)
        return held.document.model_copy(
            update={
                "renewals": held.document.renewals + 1,
                "duration_ms": left_ms,
                "expires_at_ms": self._timing.now_ms() + left_ms,
            }
        )


def _key_of(cluster_id: str) -> str:
    return f"{path_part(cluster_id)}/lease.json"


def this_process() -> str:
    """The holder's name: process id and host."""
    return f"plimsoll {os.getpid()} on {socket.gethostname()}"
