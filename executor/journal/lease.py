"""One writer per cluster, and one worker per task: a lease on it, kept in the archive's bucket.

The object `<cluster id>/lease.json` names the holder. It is changed by conditional
writes only, so of several processes that replace one state, a single one succeeds.

Clocks of different hosts are not compared. Let D be the duration in the object. Its holder counts D
from before its last write was sent; a process that wants to take over counts D (and 1 % more, since
clock rates differ by less) from after it first read that state, and takes over only if the state is
still the same then. The write came before the read, so the holder's time ends before the taker's
does. The holder in turn sends no request that could outlast its time: it renews first, which fails
once another process has taken over. Nor does it release the lease while a request without an answer
may still arrive: it only shortens it to that time. No lease can prevent the remaining case: a
process that is suspended between its last check of the clock and the sending of one request.
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
from typing import Annotated, Final

from pydantic import Field

from clients.s3 import Bucket, Stored
from executor.timing import Timing
from model.bounded import check_times, parse_json
from model.errors import (
    ConfigError,
    ExecutionStopped,
    GuardrailRefused,
    PlimsollError,
    WriterBarred,
)
from model.files import VersionedModel, canonical, major_of
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

    @property
    def body(self) -> bytes:
        """The object's bytes."""
        return canonical(self.model_dump(mode="json"))


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
    """When a request sent after the last check has arrived, if it ever does."""
    open_until_s: float = -inf
    """The same for the requests that got no answer."""


class Lease:
    """The lease of one cluster, or of something else, at a time. One thread uses it.

    `call_s`: the longest time in seconds that a request to the cluster may take. No thread renews
    the lease: `need` does before a change, and `keep` whenever the cluster is read.
    """

    def __init__(
        self,
        bucket: Bucket,
        timing: Timing,
        *,
        call_s: float,
        holder: str,
        spare_s: float = SPARE_S,
        use: LeaseUse = _CLUSTER,
    ) -> None:
        self._bucket = bucket
        self._timing = timing
        self._call_s = call_s
        self._spare_s = spare_s
        self._use = use
        self._holder = holder
        self._held: _Held | None = None
        self._lost = ""
        """Why it is no longer held."""

    @property
    def duration_s(self) -> float:
        """Seconds for which it is valid without being renewed."""
        return self._call_s + self._spare_s

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken it, or someone has removed it."""
        return bool(self._lost)

    @contextmanager
    def held(self, cluster_id: str, stop: threading.Event) -> Iterator[None]:
        """Hold the lease of a cluster; as `held_at`."""
        with self.held_at(f"{path_part(cluster_id)}/lease.json", stop):
            yield

    @contextmanager
    def held_at(self, key: str, stop: threading.Event) -> Iterator[None]:
        """Hold the lease that is the object at `key`.

        If its holder seems to have died, waits until that is certain. Raises GuardrailRefused where
        another process holds it, ExecutionStopped where `stop` is set meanwhile, ConfigError where
        the object or the bucket is unusable, and as `Bucket` does.
        """
        self._lost = ""
        self._held = self._taken(key, stop)
        try:
            self._refuse_unconditional_store(self._held)
            yield
        finally:
            self._release()

    def holder_of(self, key: str) -> str:
        """Who holds the lease at `key`, by that host's clock; empty where nobody does.

        Only for people: clocks of hosts may differ. Raises as `Bucket` does, and ConfigError where
        the object is unusable.
        """
        found = self._bucket.get(key, _MOST_BYTES)
        if found is None:
            return ""
        now = self._read(key, found)
        held = not now.released and now.expires_at_ms > self._timing.now_ms()
        return now.holder if held else ""

    def need(self) -> None:
        """Ensure that a request sent now ends within the lease.

        Raises WriterBarred otherwise.
        """
        held = self._held
        if self._lost or held is None:
            raise WriterBarred(self._lost or "nothing is changed without a lease")
        if self._left_s(held) < self._call_s:
            self._renew_now(held)
        held.ends_s = self._timing.steady_s() + self._call_s

    def unanswered(self) -> None:
        """Note that the request sent after the last `need` got no answer.

        It may still arrive, so nobody else may hold the lease before that.
        """
        if self._held is not None:
            self._held.open_until_s = self._held.ends_s

    def _renew_now(self, held: _Held) -> None:
        try:
            self._renew(held)
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
        if held is None or self._lost or now_s - held.tried_at_s < _LOOK_S:
            return
        if self._left_s(held) >= self._call_s + self._spare_s / 2:
            return
        try:
            self._renew(held)
        except PlimsollError as exc:
            _log.debug("%s", exc, extra=named(LogEvent.LEASE_FAILED))
        held.tried_at_s = self._timing.steady_s()

    def _left_s(self, held: _Held) -> float:
        return held.until_s - self._timing.steady_s()

    def _renew(self, held: _Held) -> None:
        """Write the next state.

        Raises WriterBarred where the lease is lost.
        """
        while True:
            begun_s = self._timing.steady_s()
            new = held.document.model_copy(
                update={
                    "renewals": held.document.renewals + 1,
                    "expires_at_ms": self._expires_at_ms(),
                }
            )
            etag = self._bucket.put_over(held.key, new.body, held.etag)
            if etag is not None:
                held.document, held.etag = new, etag
                held.until_s = begun_s + self.duration_s
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
        seen, since_s = "", 0.0
        while True:
            begun_s = self._timing.steady_s()
            found = self._bucket.get(key, _MOST_BYTES)
            old = self._read(key, found) if found else None
            etag = found.etag if found else ""
            if old is None or old.released or self._is_over(old, etag, seen, since_s):
                new = self._document(token, old.epoch + 1 if old else 1)
                if taken := self._put(key, new, etag):
                    until_s = begun_s + self.duration_s
                    return _Held(key, new, taken, until_s, begun_s)
            elif not seen:
                seen, since_s = etag, self._timing.steady_s()
                self._warn_waiting(key, old)
            elif seen != etag:
                raise self._refusal(key, old)
            self._wait(key, stop)

    def _put(self, key: str, new: LeaseDocument, etag: str) -> str | None:
        if not etag:
            return self._bucket.put_new(key, new.body)
        return self._bucket.put_over(key, new.body, etag)

    def _is_over(self, old: LeaseDocument, etag: str, seen: str, since_s: float) -> bool:
        """Whether this state was seen for its whole duration."""
        waited_s = self._timing.steady_s() - since_s
        return etag == seen and waited_s > _RATES * old.duration_ms / 1000

    def _wait(self, key: str, stop: threading.Event) -> None:
        if stop.is_set():
            raise ExecutionStopped(
                f"Stopped while waiting for the lease {self._bucket.where(key)}; "
                "nothing was changed."
            )
        self._timing.pause(_LOOK_S)

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
            duration_ms=int(1000 * self.duration_s),
            expires_at_ms=self._expires_at_ms(),
        )

    def _expires_at_ms(self) -> int:
        return self._timing.now_ms() + int(1000 * self.duration_s)

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

    def _release(self) -> None:
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
        left_s = held.open_until_s - self._timing.steady_s()
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


def this_process() -> str:
    """The holder's name: process id and host."""
    return f"plimsoll {os.getpid()} on {socket.gethostname()}"
