"""What a person may do to the service: each action is in the audit log before it begins."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control.loop import questions
from control.loop.view import Mode
from control.service.audit_log import AuditLog, AuditOutcome, AuditRecord, AuditVia, new_id
from control.service.control_socket import Peer
from control.service.pause_file import PauseFile, ServicePause
from control.service.service_state import ENDED_RUNS, ServiceState
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.files import FileModel
from model.log_events import LogEvent
from model.printable import printable
from model.run import RunProgress
from model.units import rate_text, throttle_of

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.service.http_access import Client

THROTTLE_WAIT_S: Final = 5.0
"""How long a request waits until the run has reacted to another throttle."""
HALT_S: Final = 5.0
"""How long a stop waits for a busy loop, to know whether a run has begun just before."""
POLL_S: Final = 0.05
UNKNOWN: Final = Peer(None, None)
RELOAD: Final = "reload"
"""To read the settings again, which the control socket alone accepts; its name in the audit log."""
CLIENT: Final = "cruise-control:"
"""How the names of clients of Cruise Control begin; their address follows."""
ORDER: Final = "execute"
"""The action of such a client, in the audit log."""


class Action(StrEnum):
    """The actions of a person."""

    PAUSE = "pause"
    """Start no run, and no move of a run in progress."""
    RESUME = "resume"
    """End a pause."""
    STOP = "stop"
    """End the run in progress after its in-flight moves, and pause."""
    ABORT = "abort"
    """The same, but cancel in-flight moves."""
    THROTTLE = "throttle"
    """Change the throttle of the run in progress."""
    APPROVE = "approve"
    """Release the waiting plan."""
    REJECT = "reject"
    """Withdraw the waiting plan, and do not ask for it again."""


SAFE: Final = (Action.PAUSE, Action.STOP, Action.ABORT)
"""Actions that only end changes: they are done even if the audit log cannot be written."""


ENDING: Final = (Action.STOP, Action.ABORT)
"""Actions on a run in progress here, which a service may still have that no longer leads."""


class ActionParameters(FileModel):
    """What an action is about."""

    plan_hash: str | None = None
    """The plan to approve or reject, or the beginning of its hash."""
    rate: str | None = None
    """Another throttle, such as `50MiB`, or `auto`."""


class ActionRequest(ActionParameters):
    """A request of a client."""

    by: str
    """Who requests it, for journal and audit log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """What an action did."""

    message: str
    plan_hash: str = ""
    """The plan that it is about; empty without one."""
    run_id: str = ""
    """The run that it is about; empty without one."""


class BadRequest(ConfigError):
    """A request that names what does not exist, or makes no sense."""


@contextlib.contextmanager
def reading_request() -> Iterator[None]:
    """Raise each ConfigError as BadRequest."""
    try:
        yield
    except ConfigError as exc:
        raise BadRequest(str(exc)) from exc


class OperatorActions:
    """Do what people request, one action at a time; any thread may call."""

    def __init__(
        self,
        state_dir: Path,
        state: ServiceState,
        *,
        clock: Callable[[], float] = time.time,
        audit: AuditLog | None = None,
    ) -> None:
        """clock: seconds since the epoch. audit: by default that of the state folder.

        Raises ConfigError where the pause of an earlier service cannot be read, or the audit log
        is not a file.
        """
        self.state_dir = state_dir
        self._state, self._clock = state, clock
        self._audit = AuditLog(state_dir) if audit is None else audit
        self._audit.check()
        self._pauses = PauseFile(state_dir)
        self._one = threading.Lock()
        self.loop: Loop | None = None
        """The loop that is acted on; None before the first one."""
        self.read_settings: Callable[[], str] | None = None
        """Reads the settings again, and says what became of that; raises PlimsollError."""
        self.pause = self._pauses.read()
        """The pause in force."""

    def attach(self, loop: "Loop") -> None:
        """Act on this loop from now on; a pause of an earlier one holds."""
        with self._one:
            self.loop = loop
            self._pass_pause(loop)

    def adopt(self, pause: ServicePause | None) -> None:
        """Put the pause of the service that leads in force here, or none as there."""
        with self._one:
            if self.pause == pause:
                return
            with contextlib.suppress(ConfigError, OSError):
                # It holds here at least until this service ends.
                self._pauses.remove() if pause is None else self._pauses.write(pause)
            self.pause = pause
            if self.loop is not None:
                # Not waiting: the lock of a busy loop must not delay the renewal of a lease.
                self._pass_pause(self.loop, wait=False)

    def note(self, action: str, message: str, outcome: AuditOutcome = AuditOutcome.DONE) -> None:
        """Record what a signal made the service do, or what it refused.

        Raises OSError where the audit log cannot be written.
        """
        record = self._record(action, ActionRequest(by=""), UNKNOWN, AuditVia.SIGNAL, "")
        self._audit.append(record.model_copy(update={"outcome": outcome, "message": message}))

    def order(
        self,
        plan_hash: str,
        by: str,
        detail: str,
        act: Callable[["Loop"], ActionResult],
        *,
        check: Callable[[], None],
    ) -> ActionResult:
        """Do what executes a plan that a client of Cruise Control orders.

        A pause that such a client's stop has begun ends with the order. detail: its request.
        check: raises where that stop has ended the order itself. Raises as `perform`, and whatever
        `check` and `act` do; then nothing was changed.
        """
        loop = self._loop_now()
        _refuse_read_only(loop)
        self.refuse_standby()
        asked = ActionRequest(by=by)
        record = self._record(ORDER, asked, UNKNOWN, AuditVia.CRUISE_CONTROL, plan_hash)
        record = record.model_copy(update={"detail": detail})
        self._begin(ORDER, record, loop)
        try:
            with self._one:
                check()
                if self.pause is not None and self.pause.by.startswith(CLIENT):
                    self._resume(loop)
                if self.pause is not None:
                    raise GuardrailRefused(f"the service is {self.pause.words}")
            # Without the lock, since it may wait for the archive, and a stop must not. The loop
            # refuses what a pause has overtaken.
            result = act(loop)
        except Exception as exc:
            self._end(record, AuditOutcome.REFUSED, _reason(exc), loop)
            raise
        self._end(record, AuditOutcome.DONE, result.message, loop)
        return result

    def audited(
        self,
        action: str,
        client: "Client",
        detail: str,
        act: Callable[["Loop"], ActionResult],
        *,
        plan_hash: str = "",
        changes: bool = True,
    ) -> ActionResult:
        """Do what a client that has logged in requests beyond the actions of `perform`.

        detail: what it requests. plan_hash: of the plan that it is about. changes: whether that may
        change the cluster, which a service that stands by, or is read-only, does not do. Raises as
        `perform`, and whatever `act` does.
        """
        loop = self._loop_now()
        if changes:
            _refuse_read_only(loop)
            self.refuse_standby()
        record = self._record_of(action, client, detail, plan_hash)
        self._begin(action, record, loop)
        try:
            result = act(loop)
        except Exception as exc:
            self._end(record, AuditOutcome.REFUSED, _reason(exc), loop)
            raise
        self._done(record, client.name, result, loop)
        return result

    def reload(self, request: ActionRequest, peer: Peer) -> ActionResult:
        """Read the settings again because a person requests it, whoever leads; returns once done.

        Raises GuardrailRefused, and ConfigError where they cannot be used; nothing changed then.
        """
        questions.check_name(request.by)
        loop, read = self._loop_now(), self.read_settings
        if read is None:
            raise GuardrailRefused("the service is starting; try again")
        record = self._record(RELOAD, request, peer, AuditVia.SOCKET, "")
        self._begin(RELOAD, record, loop)
        try:
            # Without the lock, which the loop that follows needs.
            message = read()
        except Exception as exc:
            self._end(record, AuditOutcome.REFUSED, _reason(exc), loop)
            raise
        self._end(record, AuditOutcome.DONE, message, loop)
        return ActionResult(message=message)

    def halt(
        self, by: str, orders: Callable[[], str], tasks: Callable[[], str], *, aborts: bool
    ) -> str:
        """End whatever may move replicas, because a client of Cruise Control requests it.

        No run starts until its next order or `plimsoll ctl resume`, whether or not one has been in
        progress. orders: ends orders whose runs have not begun, before all else. tasks: the same
        for tasks on brokers, once no other run begins. Both return a clause about what they have
        ended, empty for nothing. Raises GuardrailRefused where another service leads.
        """
        loop, asked = self._loop_now(), ActionRequest(by=by)
        action = Action.ABORT if aborts else Action.STOP
        record = self._record(action, asked, UNKNOWN, AuditVia.CRUISE_CONTROL, self._plan_of(loop))
        warning = self._begin(action, record, loop)
        try:
            if not loop.moving:
                self.refuse_standby()
            ended = orders()
            with self._one:
                result = self._halt(asked, loop, aborts=aborts)
            message = "; ".join(filter(None, (result.message, ended, tasks())))
        except Exception as exc:
            self._end(record, AuditOutcome.REFUSED, _reason(exc), loop)
            raise
        self._done(record, by, replace(result, message=message), loop)
        return "; ".join(filter(None, (message, warning)))

    def note_approval(self, client: "Client", detail: str, plan_hash: str) -> None:
        """Record that a plan begins that a client has approved by what it requested before.

        detail: what that was. Raises ConfigError where the audit log cannot be written.
        """
        loop = self._loop_now()
        record = self._record_of(Action.APPROVE, client, detail, plan_hash)
        self._begin(Action.APPROVE, record, loop)
        message = f"plan {plan_hash[:12]} approved by the request"
        self._end(record, AuditOutcome.DONE, message, loop)

    def refuse_standby(self) -> None:
        """Leave actions to the service that leads; without one, a pause may be requested.

        Raises GuardrailRefused: another service leads.
        """
        standing = self._state.standing
        if standing is not None and not standing.leads and standing.leader:
            raise GuardrailRefused(f"{standing.message}; ask the one that leads")

    def _loop_now(self) -> "Loop":
        if self.loop is None:
            raise GuardrailRefused("the service is starting; try again")
        return self.loop

    def perform(
        self,
        action: Action,
        request: ActionRequest,
        peer: Peer,
        via: AuditVia = AuditVia.SOCKET,
        client: str = "",
    ) -> ActionResult:
        """Do what a person requests; returns once that is done.

        client: the address of a client over HTTP that has logged in; empty for others.

        Raises GuardrailRefused, PlanOutdated and ConfigError; then nothing was changed.
        """
        questions.check_name(request.by)
        loop = self._loop_now()
        if action not in ENDING:
            self.refuse_standby()
        record = self._record(action, request, peer, via, self._plan_of(loop))
        record = record.model_copy(update={"client": client})
        if action is Action.APPROVE or action is Action.REJECT:
            record = record.model_copy(update={"plan_hash": self._waiting_hash(request)})
        warning = self._begin(action, record, loop)
        try:
            with self._one:
                result = self._act(action, request, loop)
            if action is Action.THROTTLE:
                # Without the lock: to abort a run must not wait for its throttle.
                result = _with_answer(result, loop)
        except Exception as exc:
            self._end(record, AuditOutcome.REFUSED, _reason(exc), loop)
            raise
        self._done(record, request.by, result, loop)
        return replace(result, message="; ".join(filter(None, (result.message, warning))))

    # ---- the audit log

    def _record(
        self, action: str, request: ActionRequest, peer: Peer, via: AuditVia, plan_hash: str
    ) -> AuditRecord:
        return AuditRecord(
            at_ms=self._now_ms(),
            id=new_id(),
            action=action,
            by=request.by,
            user=peer.user,
            uid=peer.uid,
            pid=peer.pid,
            via=via,
            plan_hash=plan_hash,
            detail=request.rate or "",
            outcome=AuditOutcome.REQUESTED,
            message="",
        )

    def _record_of(self, action: str, client: "Client", detail: str, plan_hash: str) -> AuditRecord:
        """The record of what a client has requested over HTTP."""
        asked = ActionRequest(by=client.name)
        record = self._record(action, asked, UNKNOWN, AuditVia.HTTP, plan_hash)
        return record.model_copy(update={"client": client.address or "unknown", "detail": detail})

    def _begin(self, action: str, record: AuditRecord, loop: "Loop") -> str:
        """Record that an action begins; what to tell the client if that is not possible.

        Raises ConfigError where the action has to wait for the audit log.
        """
        try:
            self._audit.append(record)
        except OSError as exc:
            words = f"the audit log {self._audit.path} cannot be written: {exc.strerror or exc}"
            if action not in SAFE:
                raise ConfigError(f"{words}; nothing was changed") from exc
            loop.warn(words, LogEvent.AUDIT_FAILED)
            return words
        return ""

    def _done(self, record: AuditRecord, by: str, result: ActionResult, loop: "Loop") -> None:
        """Record and log that an action has been done."""
        self._end(record, AuditOutcome.DONE, result.message, loop)
        text = f"{by}: {record.action}: {result.message}"
        loop.note(text, LogEvent.OPERATOR_ACTION, plan_hash=result.plan_hash or None)

    def _end(self, record: AuditRecord, outcome: AuditOutcome, message: str, loop: "Loop") -> None:
        ended = {"at_ms": self._now_ms(), "outcome": outcome, "message": message}
        try:
            self._audit.append(record.model_copy(update=ended))
        except OSError as exc:
            loop.warn(
                f"the audit log lacks how {record.action} ended: {exc.strerror or exc}",
                LogEvent.AUDIT_FAILED,
            )

    def _waiting_hash(self, request: ActionRequest) -> str:
        """The whole hash of the plan that is meant; as given where none or several are."""
        prefix = request.plan_hash or ""
        found = [q.plan_hash for q in questions.questions(self.state_dir)]
        if request.plan_hash is None:
            now_ms = self._now_ms()
            due = [q for q in questions.questions(self.state_dir) if q.is_due(now_ms)]
            found = [q.plan_hash for q in due]
        found = [whole for whole in found if whole.startswith(prefix)]
        return found[0] if len(found) == 1 else prefix

    # ---- the actions

    def _act(self, action: Action, request: ActionRequest, loop: "Loop") -> ActionResult:
        match action:
            case Action.PAUSE:
                return self._pause(request, loop)
            case Action.RESUME:
                return self._resume(loop)
            case Action.STOP | Action.ABORT:
                return self._stop(request, loop, aborts=action is Action.ABORT)
            case Action.THROTTLE:
                return self._throttle(request, loop)
            case Action.APPROVE:
                return self._approve(request, loop)
            case Action.REJECT:
                return self._reject(request, loop)

    def _pause(self, request: ActionRequest, loop: "Loop") -> ActionResult:
        _refuse_read_only(loop)
        if self.pause is not None:
            raise GuardrailRefused(f"the service is {self.pause.words}")
        self._keep_pause(request, loop)
        if not loop.moving:
            return ActionResult(message="no run starts until you run plimsoll ctl resume")
        loop.steering.pause()
        run_id = self._run_of(loop)
        message = f"{_named_run(run_id)} starts no more moves until you run plimsoll ctl resume"
        return ActionResult(message=message, run_id=run_id, plan_hash=self._plan_of(loop))

    def _resume(self, loop: "Loop") -> ActionResult:
        held = loop.moving and loop.steering.paused
        if self.pause is None and not held:
            raise GuardrailRefused("the service is not paused")
        self._pauses.remove()
        self.pause = None
        self._pass_pause(loop)
        if not held:
            return ActionResult(message="runs start again")
        loop.steering.resume()
        run_id = self._run_of(loop)
        return ActionResult(
            message=f"{_named_run(run_id)} continues", run_id=run_id, plan_hash=self._plan_of(loop)
        )

    def _stop(self, request: ActionRequest, loop: "Loop", *, aborts: bool) -> ActionResult:
        if not loop.moving:
            raise GuardrailRefused(
                "no run is in progress; plimsoll ctl pause keeps the next one from starting"
            )
        run_id, plan_hash = self._run_of(loop), self._plan_of(loop)
        # First, so that no other run begins as this one ends. A busy loop delays neither.
        if self.pause is None:
            self._keep_pause(request, loop, wait=False)
        if aborts:
            loop.steering.abort(request.by)
        else:
            loop.steering.stop(request.by)
        how = "cancelling in-flight moves" if aborts else "after its in-flight moves"
        message = (
            f"{_named_run(run_id)} stops, {how}; no run starts until you run plimsoll ctl resume"
        )
        return ActionResult(message=message, run_id=run_id, plan_hash=plan_hash)

    def _halt(self, request: ActionRequest, loop: "Loop", *, aborts: bool) -> ActionResult:
        """Pause, unless that is so already, and end the run in progress where there is one."""
        if not loop.moving:
            if self.pause is None:
                self._keep_pause(request, loop, wait=False)
            loop.await_turn(HALT_S)
        if loop.moving:
            return self._stop(request, loop, aborts=aborts)
        return ActionResult(
            message="no run is in progress; no run starts until you run plimsoll ctl resume"
        )

    def _approve(self, request: ActionRequest, loop: "Loop") -> ActionResult:
        _refuse_read_only(loop)
        if request.plan_hash is None:
            raise BadRequest("approve needs the hash of the plan")
        if self.pause is not None:
            raise GuardrailRefused(f"the service is {self.pause.words}; then approve the plan")
        found = questions.approve(
            self.state_dir, request.plan_hash.lower(), request.by, self._now_ms(), loop.signed
        )
        message = f"plan {found.plan_hash[:12]} approved; its run starts now"
        return ActionResult(message=message, plan_hash=found.plan_hash)

    def _reject(self, request: ActionRequest, loop: "Loop") -> ActionResult:
        _refuse_read_only(loop)
        prefix = None if request.plan_hash is None else request.plan_hash.lower()
        found = questions.reject(self.state_dir, prefix, request.by, self._now_ms())
        message = f"plan {found.plan_hash[:12]} rejected; it is not asked for again"
        return ActionResult(message=message, plan_hash=found.plan_hash)

    def _throttle(self, request: ActionRequest, loop: "Loop") -> ActionResult:
        if request.rate is None:
            raise BadRequest("throttle needs a rate, such as 50MiB, or auto")
        try:
            rate = throttle_of(request.rate)
        except ValueError as exc:
            raise BadRequest(str(exc)) from exc
        if not loop.moving:
            raise GuardrailRefused(
                "no run is in progress; for later runs, set throttle in the settings, and reload"
            )
        per_s = rate if isinstance(rate, int) else None
        loop.steering.throttle(per_s)
        words = "auto" if per_s is None else rate_text(per_s)
        run_id = self._run_of(loop)
        message = f"throttle of {_named_run(run_id)}: {words}"
        return ActionResult(message=message, run_id=run_id, plan_hash=self._plan_of(loop))

    def _run_of(self, loop: "Loop") -> str:
        """Id of the run in progress; empty before the executor has named it."""
        run = self.run_in_progress(loop)
        return "" if run is None else run.run_id

    def _plan_of(self, loop: "Loop") -> str:
        run = self.run_in_progress(loop)
        return "" if run is None else run.plan_hash

    def run_in_progress(self, loop: "Loop") -> RunProgress | None:
        """The run in progress, as it was published last; None without one."""
        view = self._state.view if loop.moving else None
        run = None if view is None else view.run
        return None if run is None or run.state in ENDED_RUNS else run

    def _keep_pause(self, request: ActionRequest, loop: "Loop", *, wait: bool = True) -> None:
        pause = ServicePause(at_ms=self._now_ms(), by=request.by)
        try:
            self._pauses.write(pause)
        except (ConfigError, OSError) as exc:
            # On a full disk, too, a pause holds; a restart ends it.
            loop.warn(
                f"the pause does not outlast a restart of the service: {exc}", LogEvent.PAUSE_FAILED
            )
        self.pause = pause
        self._pass_pause(loop, wait=wait)

    def _pass_pause(self, loop: "Loop", *, wait: bool = True) -> None:
        self._state.paused = self.pause is not None
        if self.pause is None:
            loop.unpause()
        else:
            loop.pause(self.pause.words, wait=wait)

    def _now_ms(self) -> int:
        return int(1000 * self._clock())


def client_name(client: str) -> str:
    """The name of a client of Cruise Control, by its address or `NAME@ADDRESS`.

    Of a long name, the beginning is left out, so that it is a name that `check_name` accepts.
    """
    return CLIENT + client[len(CLIENT) - questions.MOST_NAME :]


def _refuse_read_only(loop: "Loop") -> None:
    if loop.settings.mode is not Mode.AUTO:
        raise GuardrailRefused(
            "the service is read-only and starts no runs; start it with --auto --limits NAME "
            "--allow-changes"
        )


def _with_answer(result: ActionResult, loop: "Loop") -> ActionResult:
    """The result once the run has reacted to another throttle, or after a while without that.

    Raises GuardrailRefused where the run keeps its throttle.
    """
    steering, deadline_s = loop.steering, time.monotonic() + THROTTLE_WAIT_S
    while steering.asked is not None and steering.asked.answer is None:
        if time.monotonic() > deadline_s:
            return replace(result, message=f"{result.message}, not in force yet")
        time.sleep(POLL_S)
    refused = "" if steering.asked is None else steering.asked.answer
    if refused:
        raise GuardrailRefused(f"the throttle stays as it is: {refused}")
    return result


def _reason(exc: Exception) -> str:
    return printable(str(exc)) if isinstance(exc, PlimsollError) else f"internal error: {exc!r}"


def _named_run(run_id: str) -> str:
    return f"run {run_id}" if run_id else "the run"
