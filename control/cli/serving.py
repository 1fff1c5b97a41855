"""The service from its start to its exit code: signals, settings that change, systemd."""

import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from control import compose
from control.cli import logs
from control.cli.balancing import (
    STOPPED,
    Balancing,
    BalancingOptions,
    LoadSettings,
    configured,
    end_of,
)
from control.cli.exit_codes import Exit
from control.cli.invocation import load_settings
from control.cli.narration import narrate
from control.cli.output import Form
from control.cli.plan_execution import steered_by_signals
from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.executing import ExecutionParts
from control.cruise_control.goal_properties import NO_PROPERTIES, goal_properties
from control.cruise_control.requests import PREFIX
from control.loop.dependencies import LoopWatcher
from control.loop.view import Mode
from control.service.audit_log import AuditOutcome
from control.service.cluster_context import CLUSTER
from control.service.control_socket import ControlSocket
from control.service.http_access import HttpAccess
from control.service.http_listener import (
    OPEN_ACCESS,
    ControlSite,
    CruiseControlSite,
    HttpListener,
    ServerThread,
    address_of,
    bound,
)
from control.service.leadership import policy_hash
from control.service.notifications import Notifications, NotifyHandler, receivers_of
from control.service.operator_actions import RELOAD, OperatorActions
from control.service.server_tls import ServerTls
from control.service.service_state import CountingHandler, ServiceState
from control.service.simulations import Simulations, SimulationTurn
from control.service.systemd_notify import SystemdNotifier
from control.settings.notify_table import ReceiverTable
from control.settings.service_table import CruiseControlAccess, ServiceTable
from control.settings.settings import Settings
from executor.journal.lease import this_process
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.log_events import LogEvent, named
from model.run import MoveState
from model.units import count_text

if TYPE_CHECKING:
    from collector.spark.shared import SharedSpark
    from control.loop.loop import Loop
    from control.loop.view import LoopView
    from executor.run.operator_control import Steering

POLL_S: Final = 0.2
"""Seconds between two looks at signals."""
READ_S: Final = 20.0
"""Seconds that a client waits until the settings are read."""
_log = logging.getLogger("plimsoll.service")
WARN_EVERY_S: Final = 86_400.0
"""Seconds between two warnings of a certificate that ends soon."""
STOPPING: Final = "the service is stopping"


def serve(options: BalancingOptions, output: Form, *, resume: bool = False) -> int:
    """Run the loop until SIGTERM; the exit code is that of `run`.

    resume: resume an interrupted run, if there is one; needs `--auto`.

    Raises ConfigError and GuardrailRefused as `configured` does, PortTaken where another
    program listens on the port, ConfigError where another service has the state folder, and
    whatever ends the loop.
    """
    balancing = service_configured(options, resume=resume)
    state, notifier = ServiceState(), SystemdNotifier.of(os.environ)
    around = Surroundings(notifier=notifier)
    signalled = Signalled()
    with (
        contextlib.closing(notifier),
        # From before there is anything that has to be removed.
        steered_by_signals(
            signalled.abort, signalled.hang_up, moving=lambda: signalled.moving
        ) as steering,
    ):
        listening = bound(balancing.settings.service.address)
        with service_of(balancing, options, output, state, around, listening) as service:
            signalled.receiver = service
            return service.run(balancing, steering, resume=resume)


class SignalReceiver(Protocol):
    """What signals ask of a service."""

    @property
    def moving(self) -> bool:
        """Whether a run is in progress."""

    def abort(self) -> None:
        """Cancel the in-flight moves."""

    def hang_up(self) -> None:
        """Read the settings again."""


class Signalled:
    """Pass signals on to a service once it is there."""

    receiver: SignalReceiver | None = None

    def abort(self) -> None:
        """Cancel the in-flight moves; without a service, there are none."""
        if self.receiver is not None:
            self.receiver.abort()

    @property
    def moving(self) -> bool:
        """Whether a run is in progress."""
        return self.receiver is not None and self.receiver.moving

    def hang_up(self) -> None:
        """Read the settings again; without a service, they are being read."""
        if self.receiver is not None:
            self.receiver.hang_up()


def service_configured(
    options: BalancingOptions, *, resume: bool, load: LoadSettings = load_settings
) -> Balancing:
    """Read the settings of a service, and apply the options. Raises as `serve`."""
    balancing = configured(options, load)
    settings = balancing.settings
    if balancing.mode is Mode.AUTO:
        return balancing
    if resume:
        raise GuardrailRefused(
            "--resume changes the cluster; add --auto --limits NAME --allow-changes"
        )
    if settings.service.cruise_control_api is CruiseControlAccess.EXECUTE:
        raise GuardrailRefused(
            'cruise_control_api = "execute" lets clients change the cluster; add --auto --limits '
            'NAME --allow-changes, or set it to "read"'
        )
    if settings.service.standby:
        raise GuardrailRefused(
            "standby in [service] is for services that act; add --auto --limits NAME "
            "--allow-changes, or set it to false: read-only services need not wait for each other"
        )
    return balancing


class ServiceLog:
    """Where a service alone in its process gets its log from: all of it is its own."""

    def listen(self, loop: "Loop", handlers: Sequence[logging.Handler]) -> None:
        """Pass warnings of other parts to the loop, and every line to the handlers."""
        logs.narrate(loop.warn)
        log = logging.getLogger("plimsoll")
        for handler in handlers:
            if handler not in log.handlers:
                log.addHandler(handler)

    def narrate(self, loop: "Loop", output: Form) -> None:
        """Print on stderr what the loop does."""
        narrate(loop, output)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is different for a service that shares its process with others."""

    notifier: SystemdNotifier
    load: LoadSettings = load_settings
    """Read the settings; called by each start and reload."""
    log: ServiceLog = field(default_factory=ServiceLog)
    spark: "SharedSpark | None" = None
    """The Spark of all; None for one of its own."""
    turn: SimulationTurn = field(default_factory=SimulationTurn)
    """Shared by all, so that one of them simulates at a time."""
    prints_report: bool = True
    """Whether the report of the last run is printed at the end."""
    check: Callable[["Loop"], None] = lambda _loop: None
    """Called several times a second; raises PlimsollError where the loop has to end."""
    seen: Callable[["Loop", "LoopView"], None] = lambda _loop, _view: None
    """Called with each view, before the loop acts on it."""


@contextlib.contextmanager
def service_of(
    balancing: Balancing,
    options: BalancingOptions,
    output: Form,
    state: ServiceState,
    around: Surroundings,
    listening: socket.socket | None = None,
) -> "Iterator[Service]":
    """A service that is not running yet, with its sockets; closes them afterwards.

    listening: as `bound` returns it, for metrics, which are served at once and then closed; None
    where the process serves them. Raises as `serve`.
    """
    settings = balancing.settings
    store = compose.lease_store(settings) if settings.service.standby else None
    with contextlib.ExitStack() as opened:
        if listening is not None:
            # The listener closes it once it has begun.
            opened.callback(listening.close)
        access = OPEN_ACCESS if listening is None else HttpAccess.of(settings.service)
        receivers = receivers_of(settings.notify)
        control = opened.enter_context(ControlSocket(settings.state_dir))
        actions = OperatorActions(settings.state_dir, state)
        simulations = opened.enter_context(Simulations(turn=around.turn))
        site = ControlSite(control, actions, simulations)
        cruise = _cruise_control(settings, state, actions, opened)
        metrics = _metrics(settings.service, opened)
        listener = HttpListener(
            listening,
            state,
            api=settings.service.api,
            control=site,
            cruise_control=cruise,
            metrics=metrics,
            access=access,
        )
        opened.enter_context(listener)
        if listener.url:
            sys.stderr.write(f"plimsoll: metrics on {listener.url}/metrics\n")
        parts = None if cruise is None else cruise.parts
        certificates = [access.tls, None if cruise is None else cruise.access.tls]
        certificate = CertificateWatch(listener, certificates, state)
        notifications = opened.enter_context(Notifications(receivers))
        cluster = CLUSTER.get() or settings.name or settings.bootstrap_server or ""
        handlers = [CountingHandler(state), NotifyHandler(notifications, cluster)]
        service = Service(
            options, output, state, around, actions, certificate, handlers, simulations, parts
        )
        if store is not None:
            found = compose.leadership(settings, store, actions, service.policy)
            state.leadership = opened.enter_context(found)
        yield service


def _metrics(table: ServiceTable, opened: contextlib.ExitStack) -> socket.socket | None:
    """The socket of the port with metrics alone; None without one. Raises as `bound`."""
    address = table.metrics_address
    if address is None:
        return None
    listening = bound(address, "metrics_listen")
    # The listener closes it once it has begun.
    opened.callback(listening.close)
    sys.stderr.write(
        f"plimsoll: metrics for anyone on {address_of(listening).url_by('http')}/metrics\n"
    )
    return listening


def _cruise_control(
    settings: Settings, state: ServiceState, actions: OperatorActions, opened: contextlib.ExitStack
) -> CruiseControlSite | None:
    """Cruise Control's API, and its socket; None where it is off.

    Raises as `bound`, and ConfigError where a file of its TLS or logins cannot be used.
    """
    table = settings.service
    if table.cruise_control_api is CruiseControlAccess.OFF:
        return None
    access = HttpAccess.of_cruise_control(table)
    listening = bound(table.cruise_control_address, "cruise_control_listen")
    # The listener closes it once it has begun.
    opened.callback(listening.close)
    execution = None
    if table.cruise_control_api is CruiseControlAccess.EXECUTE:
        execution = ExecutionParts(
            actions=actions,
            files=compose.task_files(settings),
            journal_dir=compose.journal_dir(settings),
        )
    properties = table.cruise_control_properties
    named_goals = NO_PROPERTIES if properties is None else goal_properties(properties)
    for words in named_goals.warnings:
        _log.warning("%s", words, extra=named(LogEvent.SETTINGS_UNUSED))
    parts = opened.enter_context(
        CruiseControl(
            settings.state_dir,
            state,
            execution=execution,
            named=named_goals,
            bucket=compose.shared_bucket(settings),
        )
    )
    url = address_of(listening).url_by("http" if access.tls is None else "https")
    sys.stderr.write(f"plimsoll: Cruise Control's API on {url}{PREFIX}\n")
    return CruiseControlSite(listening, parts, access)


def _served(settings: Settings) -> tuple[ServiceTable, tuple[ReceiverTable, ...]]:
    """What a reload does not change."""
    return settings.service, settings.notify


class CertificateWatch:
    """The certificates in use: read again by a reload, with warnings ahead of their end."""

    def __init__(
        self, listener: ServerThread, tls: Sequence[ServerTls | None], *states: ServiceState
    ) -> None:
        """tls: of each port, None where it has none. states: what shows their end."""
        self._listener, self._states = listener, states
        self._tls = [found for found in tls if found is not None]
        self._warned_s = -WARN_EVERY_S
        self._show()

    def reload(self) -> None:
        """Read certificates, keys and logins again. Raises ConfigError."""
        self._listener.reload_access()
        self._warned_s = -WARN_EVERY_S
        self._show()

    def warning(self, now_s: float) -> str:
        """That it ends soon, at most once a day; empty otherwise. now_s: since the epoch."""
        if now_s - self._warned_s < WARN_EVERY_S:
            return ""
        self._warned_s = now_s
        # Ports may have the same certificate.
        return "; ".join(dict.fromkeys(filter(None, (tls.warning(now_s) for tls in self._tls))))

    def _show(self) -> None:
        ends_s = [tls.not_after_s for tls in self._tls]
        for state in self._states if ends_s else ():
            state.certificate_until_s = min(ends_s)


class _Reading:
    """A request to read the settings again, and what became of it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.words = ""
        self.refused = False

    def end(self, words: str, *, refused: bool) -> None:
        """Say what became of it."""
        self.words, self.refused = words, refused
        self.done.set()


class Service:
    """One loop after another, each with the settings as they were read for it."""

    def __init__(
        self,
        options: BalancingOptions,
        output: Form,
        state: ServiceState,
        around: Surroundings,
        actions: OperatorActions,
        certificate: CertificateWatch,
        handlers: Sequence[logging.Handler],
        simulations: Simulations,
        cruise: CruiseControl | None = None,
    ) -> None:
        self._cruise, self.simulations = cruise, simulations
        self._options, self._output = options, output
        self._state, self._around, self._notifier = state, around, around.notifier
        self._actions, self._certificate = actions, certificate
        self._named = ""
        """The interrupted run that the log has named."""
        self._handlers = handlers
        """They hear the log of every loop."""
        self._hung_up = threading.Event()
        self._asked: deque[_Reading] = deque()
        """Requests to read the settings again, besides signals."""
        self._over = threading.Event()
        """Set once settings are read no more."""
        actions.read_settings = self._read_for_client
        self._loop: Loop | None = None
        self._resume = False
        """Whether an interrupted run is resumed, once."""
        self._served: tuple[ServiceTable, tuple[ReceiverTable, ...]] = ServiceTable(), ()
        """As it was at the start; a reload does not change it."""

    def policy(self) -> str:
        """Hash of the policy in force, for the services that stand by; empty before the start."""
        loop = self._loop
        return "" if loop is None else policy_hash(loop.policy, loop.settings.goals)

    @property
    def actions(self) -> OperatorActions:
        """What people may do to it."""
        return self._actions

    def hang_up(self) -> None:
        """Read the settings again soon; a handler of a signal may call it."""
        self._hung_up.set()

    def _read_for_client(self) -> str:
        """Read the settings again, and wait for that; what became of it.

        Raises ConfigError where they cannot be used, GuardrailRefused where the service ends.
        """
        asked = _Reading()
        self._asked.append(asked)
        self._hung_up.set()
        deadline_s = time.monotonic() + READ_S
        while not asked.done.wait(POLL_S):
            if self._over.is_set():
                raise GuardrailRefused(STOPPING)
            if time.monotonic() > deadline_s:
                return "the settings are still being read; the log says what becomes of that"
        if asked.refused:
            raise ConfigError(asked.words)
        return asked.words

    @property
    def moving(self) -> bool:
        """Whether a run is in progress."""
        return self._loop is not None and self._loop.moving

    def abort(self) -> None:
        """Cancel the in-flight moves of the run in progress, if there is one."""
        if self._loop is not None:
            self._loop.steering.abort()

    def run(self, balancing: Balancing, steering: "Steering", *, resume: bool = False) -> int:
        """Run loops until steering stops, or until one ends with an error, which is raised.

        resume: whether the first one resumes an interrupted run, besides the settings.
        """
        if steering.stopping.is_set():
            return Exit.DONE
        self._served = _served(balancing.settings)
        self._resume = resume or balancing.settings.service.resume
        loop, first = self._loop_of(balancing), True
        while True:
            self._begin(loop)
            if first and self._state.leadership is not None:
                self._state.leadership.start()
            first = False
            with loop:
                self._notifier.ready()
                following = self._until(loop, steering)
                loop.ending = STOPPED if following is None else "its settings were read again"
                if following is None:
                    self._over.set()
                    if steering.stopping.is_set():
                        self._audited("end the service", STOPPING)
                    self._state.unready = STOPPING
                    self._notifier.stopping()
                    return end_of(loop, self._output if self._around.prints_report else None)
                # The plan that waits for a person waits on.
                loop.leave_question = True
            # A pause, or a cluster that does not answer, may have kept it from resuming a run.
            following.resumes = loop.resumes
            following.continue_from(loop)
            loop = following

    def _until(self, loop: "Loop", steering: "Steering") -> "Loop | None":
        """Wait for the end; returns the loop that replaces this one, None for none.

        A loop is replaced between two runs.
        """
        following: Loop | None = None
        while not steering.stopping.is_set() and loop.error is None:
            if following is not None and not loop.running:
                return following
            steering.stopping.wait(POLL_S)
            self._around.check(loop)
            self._leave_to_leader(loop)
            if words := self._certificate.warning(time.time()):
                loop.warn(words, LogEvent.CERTIFICATE_ENDS)
            if self._hung_up.is_set():
                self._hung_up.clear()
                asked = [self._asked.popleft() for _ in range(len(self._asked))]
                following = self._read_again(loop, asked) or following
        return None

    def _leave_to_leader(self, loop: "Loop") -> None:
        """End the run of a service that no longer leads, after its in-flight moves."""
        standing = self._state.standing
        if standing is None or standing.leads or not standing.leader or not loop.moving:
            return
        if standing.leader != this_process() and not loop.steering.stopping.is_set():
            loop.warn(f"{standing.leader} leads, so the run ends here", LogEvent.STANDBY_LOST)
            loop.steering.stopping.set()

    def _read_again(self, loop: "Loop", asked: "Sequence[_Reading]") -> "Loop | None":
        """A loop with the settings as they are now; None where they cannot be used.

        asked: the requests that wait for it; without one, a signal has asked.
        """
        self._notifier.reloading()
        try:
            # Also where other files cannot be used: a certificate must not end for that reason.
            self._certificate.reload()
            balancing = configured(self._options, self._around.load)
            found = self._loop_of(balancing)
        except (PlimsollError, OSError) as exc:
            found = None
            self._listen_to_log(loop)
            words = f"the settings stay as they are, since they cannot be used: {exc}"
            loop.warn(words, LogEvent.SETTINGS_REJECTED)
            if not asked:
                self._audited(RELOAD, words, AuditOutcome.REFUSED)
            self._state.reloaded("failed")
        else:
            self._listen_to_log(loop)
            words = "settings read again; the loop starts with them between two runs"
            self._say(loop, words)
            if not asked:
                self._audited(RELOAD, words)
            if _served(balancing.settings) != self._served:
                loop.warn(
                    "[service] or [[notify]] has changed; that takes effect with the next start",
                    LogEvent.SETTINGS_LATER,
                )
            self._state.reloaded("done")
        for reading in asked:
            reading.end(words, refused=found is None)
        self._notifier.ready()
        return found

    def _loop_of(self, balancing: Balancing) -> "Loop":
        """A loop that has not started; ConfigError where a file it needs cannot be used."""
        leadership = self._state.leadership
        found = compose.loop(
            balancing.settings,
            mode=balancing.mode,
            limits=balancing.limits,
            patient=True,
            policy_file=balancing.policy_file,
            resume=self._resume and balancing.mode is Mode.AUTO,
            watcher=LoopWatcher(
                decided=self._state.decided,
                beat=self._beat,
                failed=self._state.failed,
                modelled=self._state.modelled,
                solved=self._state.solved,
                stands_by=None if leadership is None else leadership.stands_by,
            ),
            spark=self._around.spark,
        )
        self.simulations.settings = balancing.settings
        return found

    def _begin(self, loop: "Loop") -> None:
        self._loop = loop
        settings = loop.settings
        self._state.begin(
            settings.goals,
            settings.tick_s,
            effort=settings.effort,
            decisions_dir=settings.decisions_dir,
        )
        self._listen_to_log(loop)
        self._around.log.narrate(loop, self._output)
        loop.subscribe(self._see)
        self._actions.attach(loop)
        if self._cruise is not None:
            self._cruise.attach(loop)

    def _listen_to_log(self, loop: "Loop") -> None:
        """Direct the log to this loop and the service; reading settings sets the log up again."""
        self._around.log.listen(loop, self._handlers)

    def _see(self, view: "LoopView") -> None:
        if self._loop is not None:
            self._around.seen(self._loop, view)
        self._state.see(view)
        self._notifier.status(f"{view.phase}: {view.sentence(view.at_ms)}")
        if self._state.unready:
            self._notifier.extend()
        if self._loop is not None:
            self._name_interrupted(self._loop)

    def _name_interrupted(self, loop: "Loop") -> None:
        """Write once which run an earlier process left, and how to continue."""
        found = loop.previous_runs.interrupted
        if found is None or found.run_id == self._named or loop.settings.resume:
            return
        if self._state.leadership is not None:
            # Whoever leads resumes it.
            return
        self._named = found.run_id
        done = found.progress.count(MoveState.DONE)
        loop.warn(
            f"run {found.run_id} was interrupted, {done} of {count_text(len(found.moves), 'move')} "
            "done; start the service with --resume to continue it, or undo it with plimsoll "
            f"rollback {found.run_id}; otherwise plans begin with the placement as it is",
            LogEvent.RUN_INTERRUPTED,
        )

    def _audited(
        self, action: str, message: str, outcome: AuditOutcome = AuditOutcome.DONE
    ) -> None:
        """Record what a signal made the service do, or what it refused."""
        try:
            self._actions.note(action, message, outcome)
        except OSError as exc:
            if self._loop is not None:
                self._loop.warn(
                    f"the audit log cannot be written: {exc.strerror or exc}", LogEvent.AUDIT_FAILED
                )

    def _beat(self) -> None:
        self._state.beat()
        self._notifier.beat()

    @staticmethod
    def _say(loop: "Loop", text: str) -> None:
        loop.note(text, LogEvent.SETTINGS_READ)
        name = CLUSTER.get()
        if logs.has_text():
            sys.stderr.write(f"plimsoll: {name}: {text}\n" if name else f"plimsoll: {text}\n")
