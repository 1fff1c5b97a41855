"""Which of several services on one cluster acts, and which stand by: a lease on leading.

Each contends for the lease `<cluster id>/leader.json`. Whoever holds it acts; the others observe,
answer reads, and note how long the leases of the leader, of its run and of its tasks have not
changed, so that they need not wait for each of these in turn once it has died. Runs stay fenced by
the lease of the cluster, whoever leads.
"""

import contextlib
import hashlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from control.service.pause_file import ServicePause
from control.settings.auto_policy import AutoPolicy
from control.tasks.task_files import TaskFiles
from executor.client.responses import ClusterView
from executor.journal.lease import LeaderNote, Lease, LeaseDocument, LeaseUse, this_process
from executor.timing import Timing
from model.closing import Closing
from model.errors import PlimsollError, WriterBarred
from model.files import canonical
from model.goals.goals import Goals
from model.log_events import LogEvent, named
from model.paths import path_part

CALL_S: Final = 5.0
SPARE_S: Final = 15.0
"""The lease on leading lasts as long as both together: 20 s."""
RENEW_S: Final = 5.0
"""Seconds between two renewals."""
LOOK_S: Final = 1.0
"""Seconds between two looks at the lease."""
WATCH_S: Final = 4.0
"""Seconds between two looks at the leases of run and tasks."""
MARGIN_S: Final = 2.0
"""A leader stops acting so long before its lease ends."""
LEADING: Final = LeaseUse("leads", "This service stands by.")
_REAL_TIME: Final = Timing()
logger = logging.getLogger("plimsoll.service")


class LeaderExecutor(Protocol):
    """What the contest for leading asks the cluster and the archive."""

    def cluster(self) -> ClusterView:
        """The cluster's id and brokers."""
        ...

    def watch_lease(self, cluster_id: str) -> None:
        """Note the lease of the cluster."""
        ...

    def runs(self, journal_dir: Path, cluster_id: str) -> Any:
        """Fetch the newest runs from the archive."""
        ...

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True, kw_only=True)
class LeadershipParts:
    """What leading is decided with."""

    lease: Lease
    """Used by the thread of `Leadership` alone."""
    connect: Callable[[], LeaderExecutor]
    files: TaskFiles
    """The tasks on brokers."""
    journal_dir: Path
    policy: Callable[[], str]
    """Hash of the policy that this service acts by, as `policy_hash` gives it."""
    pause: Callable[[], ServicePause | None]
    """The pause in force here."""
    adopt: Callable[[ServicePause | None], None]
    """Puts the leader's pause in force here, or ends that of here."""
    timing: Timing = _REAL_TIME


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a service leads, at one moment."""

    leads: bool
    leader: str
    """Who leads, `plimsoll 4711 on host`; empty where that is not known."""
    message: str
    """Why this service does not act; empty where it leads."""
    trouble: str
    """Why it is not known who leads; empty otherwise."""
    other_policy: bool
    """Whether the leader acts by another policy than this service would."""


class Leadership(Closing):
    """Contends for the lease until closed, in a thread; everything else may be asked by any."""

    def __init__(self, parts: LeadershipParts) -> None:
        self._parts = parts
        self._own = this_process()
        self._cluster_id = ""
        self._executor: LeaderExecutor | None = None
        self._taken = self._prepared = False
        """Whether the lease was taken, and whether what the last leader left has been read."""
        self._other: LeaseDocument | None = None
        """The lease as another service holds it."""
        self._trouble = ""
        self._renewed_s = self._watched_s = 0.0
        self._said = ""
        """What the log has been told last, so that it is told once."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._main, name="leader", daemon=True)

    def start(self) -> None:
        """Begin to contend; return at once."""
        self._thread.start()

    def close(self) -> None:
        """Give the lease up, so that another service leads at once."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    # ---- for any thread

    @property
    def standing(self) -> Standing:
        """Whether this service leads now, by this host's steady clock alone."""
        other, trouble = self._other, self._trouble
        holds = self._taken and self._parts.lease.left_s >= MARGIN_S
        leads = holds and self._prepared
        leader = self._own if holds else "" if other is None else other.holder
        message = ""
        if holds and not leads:
            message = "taking over: reading what the last leader has left"
        elif not leads and trouble:
            message = f"nothing is changed while it is not known who leads: {trouble}"
        elif not leads:
            message = f"{leader} leads; this service stands by" if leader else "finding who leads"
        differs = not holds and other is not None and self._differs(other)
        return Standing(leads, leader, message, "" if leads else trouble, differs)

    def stands_by(self) -> str:
        """Why this service does not act; empty where it leads."""
        return self.standing.message

    def _differs(self, other: LeaseDocument) -> bool:
        return other.leader is not None and other.leader.policy != self._parts.policy()

    # ---- the thread

    def _main(self) -> None:
        while not self._ended.is_set():
            try:
                self.turn()
            except PlimsollError as exc:
                self._fail(str(exc))
            except Exception as exc:
                logger.exception("leading", extra=named(LogEvent.STANDBY_FAILED))
                self._fail(f"internal error: {exc!r}")
            self._ended.wait(LOOK_S)
        self._parts.lease.release()
        if self._executor is not None:
            self._executor.close()

    def turn(self) -> None:
        """Look once, and take, renew or follow the lease. Raises PlimsollError.

        Only the thread may call it, or a caller that has not started it.
        """
        if self._executor is None:
            self._executor = self._parts.connect()
        if not self._cluster_id:
            self._cluster_id = self._executor.cluster().cluster_id
        if self._taken:
            self._renew()
        else:
            self._contend(self._executor)
        self._trouble = ""

    def _contend(self, executor: LeaderExecutor) -> None:
        lease = self._parts.lease
        lease.leader = self._note()
        other = lease.attempt(f"{path_part(self._cluster_id)}/leader.json")
        if other is not None:
            self._follow(other, executor)
            return
        before = lease.previous
        self._prepared = False
        self._taken = True
        self._renewed_s = self._parts.timing.steady_s()
        if before is not None and before.leader is not None and before.leader.paused_by:
            # No other way round: a person may have paused this service while none led.
            self._parts.adopt(_pause_of(before.leader))
        whom = f" in place of {before.holder}" if before is not None else ""
        self._lead(f"this service leads{whom}")
        self._catch_up(executor)
        self._other, self._prepared = None, self._taken

    def _catch_up(self, executor: LeaderExecutor) -> None:
        """Read runs and tasks that others have archived, and renew the lease meanwhile."""
        failed: list[str] = []

        def fetch() -> None:
            try:
                executor.runs(self._parts.journal_dir, self._cluster_id)
                self._parts.files.readable()
            except PlimsollError as exc:
                failed.append(str(exc))

        thread = threading.Thread(target=fetch, name="leader archive", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_S)
            if thread.is_alive() and self._taken:
                self._renew_patiently()
        if failed:
            # Runs and tasks find out themselves, and are refused with the reason.
            words = f"what the last leader has left cannot be read: {failed[0]}"
            logger.warning("%s", words, extra=named(LogEvent.STANDBY_FAILED))

    def _renew_patiently(self) -> None:
        try:
            self._renew()
        except PlimsollError as exc:
            # The lease may last until the next attempt; if not, `standing` says so.
            self._fail(str(exc))

    def _follow(self, other: LeaseDocument, executor: LeaderExecutor) -> None:
        if other.leader is not None:
            self._parts.adopt(_pause_of(other.leader))
        self._other = other
        words = f"{other.holder} leads; this service stands by"
        if self._differs(other):
            words += (
                ", with another policy or version: from a takeover on, its own limits, triggers "
                "and goals hold"
            )
        if self._is_news(words):
            logger.warning("%s", words, extra=named(LogEvent.STANDBY_WAITS))
        now_s = self._parts.timing.steady_s()
        if now_s - self._watched_s >= WATCH_S:
            self._watched_s = now_s
            executor.watch_lease(self._cluster_id)
            self._watch_tasks()

    def _watch_tasks(self) -> None:
        archive = self._parts.files.archive
        if archive is None:
            return
        tasks, _ = self._parts.files.readable(self._cluster_id)
        for task in tasks:
            if task.is_open:
                archive.worker_of(task)

    def _renew(self) -> None:
        lease, note, now_s = self._parts.lease, self._note(), self._parts.timing.steady_s()
        if now_s - self._renewed_s < RENEW_S and lease.leader == note:
            return
        lease.leader = note
        try:
            lease.renew()
        except WriterBarred as exc:
            self._taken = self._prepared = False
            lease.release()
            if self._is_news(words := f"this service no longer leads: {exc}"):
                logger.warning("%s", words, extra=named(LogEvent.STANDBY_LOST))
            return
        self._renewed_s = now_s
        if self._said != _LEADS_AGAIN and self._trouble:
            self._lead(_LEADS_AGAIN)

    def _note(self) -> LeaderNote:
        pause = self._parts.pause()
        by, at_ms = ("", 0) if pause is None else (pause.by, pause.at_ms)
        return LeaderNote(policy=self._parts.policy(), paused_by=by, paused_at_ms=at_ms)

    def _fail(self, trouble: str) -> None:
        self._trouble = trouble
        if self._is_news(words := f"it is not known who leads: {trouble}"):
            logger.warning("%s", words, extra=named(LogEvent.STANDBY_FAILED))
        if self._executor is not None and not self._cluster_id:
            with contextlib.suppress(PlimsollError):
                self._executor.close()

    def _lead(self, words: str) -> None:
        if self._is_news(words):
            logger.warning("%s", words, extra=named(LogEvent.STANDBY_LEADS))

    def _is_news(self, words: str) -> bool:
        """Whether the log was last told something else; it is told these words now."""
        told, self._said = self._said, words
        return words != told


_LEADS_AGAIN: Final = "this service leads; its lease is renewed again"


def _pause_of(note: LeaderNote) -> ServicePause | None:
    if not note.paused_by:
        return None
    return ServicePause(at_ms=note.paused_at_ms, by=note.paused_by)


def policy_hash(policy: AutoPolicy, goals: Goals) -> str:
    """Twelve digits that differ where two services may decide differently."""
    document = {
        "limits": policy.limits.model_dump(mode="json"),
        "triggers": policy.triggers.model_dump(mode="json"),
        "schedule": policy.schedule.model_dump(mode="json"),
        "stop_rules": policy.stop_rules.model_dump(mode="json"),
        "dead_broker_after": str(policy.dead_broker_after_s),
        "goals": goals.model_dump(mode="json"),
    }
    return hashlib.sha256(canonical(document)).hexdigest()[:12]
