"""The service of several clusters in one process, from its start to its exit code.

Each cluster has a thread that runs the service of one cluster: its settings, state folder, lease,
journal and audit log are its own. Whatever ends such a service is reported under the cluster's
name, and it starts again after a while; the others go on.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collector.spark.shared import SharedSpark
from control.cli import logs
from control.cli.balancing import BalancingOptions
from control.cli.console import operator
from control.cli.exit_codes import Exit
from control.cli.fleet_log import ClusterLog, FleetLog
from control.cli.invocation import read_settings
from control.cli.output import Form, LogFormat
from control.cli.plan_execution import steered_by_signals
from control.cli.serving import (
    POLL_S,
    CertificateWatch,
    Service,
    Signalled,
    Surroundings,
    service_configured,
    service_of,
)
from control.planning.backoff import Backoff
from control.service.cluster_context import CLUSTER, inherit_contexts
from control.service.control_api import ControlApi
from control.service.control_socket import ControlSocket
from control.service.fleet import FleetMember
from control.service.fleet_listener import FleetListener, alive
from control.service.http_access import HttpAccess
from control.service.http_listener import bound
from control.service.simulations import SimulationTurn
from control.service.systemd_notify import SystemdNotifier
from control.settings.fleet_file import FleetCluster, FleetFile, first_twice, read_fleet
from control.settings.settings import Settings
from executor.run.operator_control import Steering
from executor.timing import steady_s
from model import private
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.log_events import LogEvent, named
from model.printable import printable

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.loop.view import LoopView

FIRST_RETRY_S: Final = 5.0
MOST_RETRY_S: Final = 60.0
"""Time after which a service that has ended with an error starts again, first and at most."""
READ_S: Final = 10.0
"""Time within which settings are compared before the clusters start."""
END_S: Final = 60.0
"""Time after SIGTERM for which a cluster without a run in progress is waited for."""
_OF_ONE: Final = {
    "bootstrap_server": "--bootstrap-server",
    "client_properties": "--command-config",
    "config": "--config",
    "profile": "--profile",
}
"""Options that name one cluster, or its settings."""
_log = logging.getLogger(logs.LOOP)


def serve_fleet(path: Path, options: BalancingOptions, output: Form, *, resume: bool) -> int:
    """Serve all clusters of a fleet's file until SIGTERM.

    The exit code is that of the first cluster whose run did not end well, else 0.

    Raises ConfigError where the file cannot be used, two clusters share a state folder or servers,
    or an option names one cluster; GuardrailRefused for `--auto` without `--allow-changes`;
    PortTaken where another program listens on the port.
    """
    flags = options.setting_flags
    if given := [flag for name, flag in _OF_ONE.items() if flags.get(name) is not None]:
        raise ConfigError(f"--fleet names the clusters: omit {' and '.join(given)}")
    if options.auto and not options.allow_changes:
        raise GuardrailRefused("--auto changes the clusters; add --allow-changes")
    if resume and not options.auto:
        raise GuardrailRefused(
            "--resume changes the clusters; add --auto --limits NAME --allow-changes"
        )
    private.begin()
    log = FleetLog(
        verbose=bool(flags.get("verbose")),
        file=flags.get("log_file"),
        form=flags.get("log_format", LogFormat.TEXT),
    )
    fleet = read_fleet(path)
    shared = _Shared(path, fleet, options, output, log, resume=resume)
    shared.check_apart()
    inherit_contexts()
    notifier, signalled = SystemdNotifier.of(os.environ), Signalled()
    with contextlib.ExitStack() as opened:
        opened.enter_context(contextlib.closing(notifier))
        # From before there is anything that has to be removed.
        signals = steered_by_signals(
            signalled.abort, signalled.hang_up, moving=lambda: signalled.moving
        )
        steering = opened.enter_context(signals)
        access, listening = HttpAccess.of(fleet.service), bound(fleet.service.address)
        opened.callback(listening.close)
        control = opened.enter_context(ControlSocket(fleet.state_dir))
        members = [member for member, _ in shared.clusters]
        listener = FleetListener(listening, members, control, api=fleet.service.api, access=access)
        opened.enter_context(listener)
        sys.stderr.write(f"plimsoll: metrics on {listener.url}/metrics\n")
        # Its end is in the metrics of each cluster, as that of a service alone.
        certificate = CertificateWatch(listener, [access.tls], *(m.state for m in members))
        signalled.receiver = running = _Fleet(shared, notifier, certificate)
        return running.run(steering)


class _Shared:
    """What the clusters of a fleet have in common, and what they must not."""

    def __init__(
        self,
        path: Path,
        fleet: FleetFile,
        options: BalancingOptions,
        output: Form,
        log: FleetLog,
        *,
        resume: bool,
    ) -> None:
        self.path, self.fleet, self.options = path, fleet, options
        self.output, self.log, self.resume = output, log, resume
        self.spark = SharedSpark(fleet.state_dir / "spark.log", len(fleet.clusters))
        self.turn = SimulationTurn()
        self.clusters = [(FleetMember(name), of) for name, of in fleet.clusters.items()]
        self._lock = threading.Lock()
        self._claims: dict[tuple[str, object], str] = {}
        """Which cluster has a state folder, or is the one with an id."""

    def options_of(self, cluster: FleetCluster) -> BalancingOptions:
        """The options of the command line as they hold for one cluster."""
        return replace(
            self.options,
            setting_flags={
                "config": cluster.config,
                "profile": cluster.profile,
                "spark_master": self.options.setting_flags.get("spark_master"),
            },
            auto=self.options.auto and not cluster.read_only,
            limits=cluster.limits or self.options.limits,
        )

    def check_apart(self) -> None:
        """Refuse clusters with the same servers or state folder; leave others to their threads.

        Raises ConfigError.
        """
        found = self._read_settings()
        folders = {name: _folder(of) for name, of in found.items()}
        if (both := first_twice(folders)) is not None:
            raise self._same_folder(both, folders[both[0]])
        servers = {name: of.bootstrap_server for name, of in found.items() if of.bootstrap_server}
        if (both := first_twice(servers)) is not None:
            raise ConfigError(
                f"{self.path}: {both[0]} and {both[1]} are the same cluster, "
                f"{printable(servers[both[0]])}; remove one of them"
            )

    def _read_settings(self) -> dict[str, Settings]:
        """The settings of the clusters, as far as they can be read within a while."""
        found: dict[str, Settings] = {}

        def read(name: str, cluster: FleetCluster) -> None:
            # The cluster's own thread reports what cannot be read, and tries again.
            with contextlib.suppress(PlimsollError, OSError):
                found[name] = load(**self.options_of(cluster).setting_flags)

        threads = [
            threading.Thread(target=read, args=(member.name, cluster), daemon=True)
            for member, cluster in self.clusters
        ]
        for thread in threads:
            thread.start()
        until_s = steady_s() + READ_S
        for thread in threads:
            # A file may be a pipe, or on a server that does not answer.
            thread.join(max(0.0, until_s - steady_s()))
        return {
            member.name: found[member.name] for member, _ in self.clusters if member.name in found
        }

    def claim_folder(self, name: str, settings: Settings) -> None:
        """Take a state folder for a cluster. Raises ConfigError where another one has it."""
        folder = _folder(settings)
        owner = self._claim("folder", folder, name)
        if owner != name:
            raise self._same_folder((owner, name), folder)

    def claim_id(self, name: str, cluster_id: str) -> str:
        """Take a cluster id for a cluster; which one has it."""
        return self._claim("id", cluster_id, name)

    def release(self, name: str) -> None:
        """Give up what a cluster has taken: its service has ended."""
        with self._lock:
            self._claims = {claim: by for claim, by in self._claims.items() if by != name}

    def _claim(self, kind: str, value: object, name: str) -> str:
        with self._lock:
            return self._claims.setdefault((kind, value), name)

    def _same_folder(self, names: tuple[str, str], folder: Path) -> ConfigError:
        words = (
            "unset PLIMSOLL_STATE_DIR, which holds for all clusters"
            if "PLIMSOLL_STATE_DIR" in os.environ
            else "set state_dir in the file of each cluster to a folder of its own"
        )
        return ConfigError(
            f"{self.path}: {names[0]} and {names[1]} share the state folder {folder}; {words}"
        )


def load(**flags: Any) -> Settings:
    """The settings of one cluster; the log is the process's. Raises as `read_settings`."""
    config, profile = flags.pop("config"), flags.pop("profile")
    return read_settings(config, profile, flags)


def _folder(settings: Settings) -> Path:
    return settings.state_dir.expanduser().resolve()


class _Cluster:
    """The thread of one cluster."""

    def __init__(self, shared: _Shared, member: FleetMember, cluster: FleetCluster) -> None:
        self.member, self.steering = member, Steering(by=operator())
        self.code: int = Exit.DONE
        self._shared, self._cluster = shared, cluster
        self._service: Service | None = None
        self._same_as = ""
        """The cluster of the fleet that turned out to be the same one; empty otherwise."""
        self._wake = threading.Event()
        """Set to start again at once."""
        self._said = ""
        self.thread = threading.Thread(target=self._main, name=member.name, daemon=True)

    def hang_up(self) -> None:
        """Read the settings again."""
        service = self._service
        if service is not None:
            service.hang_up()
        self._wake.set()

    def stop(self) -> None:
        """End after the in-flight moves."""
        self.member.stopping = True
        self.steering.stop()
        self._wake.set()

    def is_awaited(self, stopping_s: float) -> bool:
        """Whether the process ends after it; stopping_s: since when all end."""
        if not self.thread.is_alive():
            return False
        return self.member.state.run_active or steady_s() - stopping_s < END_S

    @property
    def moving(self) -> bool:
        """Whether a run is in progress there."""
        service = self._service
        return service is not None and service.moving

    def abort(self) -> None:
        """End, and cancel the in-flight moves."""
        self.stop()
        self.steering.abort()
        service = self._service
        if service is not None:
            service.abort()

    def _main(self) -> None:
        CLUSTER.set(self.member.name)
        backoff = Backoff(first_s=FIRST_RETRY_S, most_s=MOST_RETRY_S)
        while not self.steering.stopping.is_set():
            self._wake.clear()
            try:
                self.code = self._serve()
                return
            except Exception as exc:  # noqa: BLE001 - whatever it is, it is this cluster's alone
                self._report(exc)
            backoff = backoff.again(steady_s())
            self._wake.wait(backoff.wait_s)

    def _report(self, error: Exception) -> None:
        """Say once why the service has ended."""
        member, is_known = self.member, isinstance(error, PlimsollError | OSError)
        words = printable(str(error) if is_known else f"internal error: {error!r}")
        member.trouble = member.state.unready = words
        if words == self._said:
            return
        self._said = words
        if isinstance(error, PlimsollError):
            member.state.failed(error)
        _log.error(
            "the service of this cluster has ended, and is started again after a while: %s",
            words,
            exc_info=None if is_known else error,
            extra={"narrated": True, **named(LogEvent.CLUSTER_FAILED)},
        )
        if logs.has_text():
            sys.stderr.write(f"plimsoll: {member.name}: {words}; started again after a while\n")

    def _serve(self) -> int:
        """Run the service once. Raises whatever ends it."""
        shared, member = self._shared, self.member
        member.state.leadership, self._same_as = None, ""
        options = shared.options_of(self._cluster)
        try:
            balancing = service_configured(
                options, resume=shared.resume and options.auto, load=load
            )
            member.state_dir = balancing.settings.state_dir
            shared.claim_folder(member.name, balancing.settings)
            around = Surroundings(
                notifier=SystemdNotifier(None),
                load=load,
                log=ClusterLog(shared.log, member.name),
                spark=shared.spark,
                turn=shared.turn,
                prints_report=False,
                check=self._check,
                seen=self._see,
            )
            with contextlib.ExitStack() as opened:
                service = opened.enter_context(
                    service_of(balancing, options, shared.output, member.state, around)
                )
                control = opened.enter_context(
                    contextlib.closing(
                        ControlApi(member.state, service.actions, service.simulations)
                    )
                )
                opened.callback(self._detach)
                self._service, member.control = service, control
                member.trouble = member.state.unready = ""
                resume = shared.resume and options.auto
                try:
                    return service.run(balancing, self.steering, resume=resume)
                except Exception as exc:
                    # While its receivers of notifications are there.
                    self._report(exc)
                    raise
        finally:
            shared.release(member.name)

    def _detach(self) -> None:
        self._service = self.member.control = None

    def _see(self, loop: "Loop", view: "LoopView") -> None:
        """Keep the loop from acting on a cluster that another loop of this process watches."""
        if view.snapshot is None or self._same_as:
            return
        owner = self._shared.claim_id(self.member.name, view.snapshot.header.cluster_id)
        if owner != self.member.name:
            self._same_as = owner
            loop.pause(self._same_words(), wait=False)

    def _check(self, _loop: "Loop") -> None:
        if self._same_as:
            raise ConfigError(self._same_words())

    def _same_words(self) -> str:
        return (
            f"{self.member.name} is the same cluster as {self._same_as}, which keeps it; remove "
            f"one of them from {self._shared.path}"
        )


class _Fleet:
    """The main thread: signals, systemd and the end."""

    def __init__(
        self, shared: _Shared, notifier: SystemdNotifier, certificate: CertificateWatch
    ) -> None:
        self._shared, self._notifier, self._certificate = shared, notifier, certificate
        self._clusters = [_Cluster(shared, member, of) for member, of in shared.clusters]
        self._hung_up = threading.Event()

    def run(self, steering: Steering) -> int:
        """Run until all clusters have ended, which SIGTERM makes them."""
        if steering.stopping.is_set():
            return Exit.DONE
        for cluster in self._clusters:
            cluster.thread.start()
        self._notifier.ready()
        while not steering.stopping.wait(POLL_S):
            if self._hung_up.is_set():
                self._hung_up.clear()
                self._read_again()
            if words := self._certificate.warning(time.time()):
                _log.warning("%s", words, extra=named(LogEvent.CERTIFICATE_ENDS))
            self._report()
        return self._end()

    def hang_up(self) -> None:
        """Read the settings again soon; a handler of a signal may call it."""
        self._hung_up.set()

    @property
    def moving(self) -> bool:
        """Whether a run is in progress in any cluster."""
        return any(cluster.moving for cluster in self._clusters)

    def abort(self) -> None:
        """End all clusters, and cancel their in-flight moves."""
        for cluster in self._clusters:
            cluster.abort()

    def _end(self) -> int:
        """End all clusters after their in-flight moves; the exit code.

        One that hangs without a run keeps the process for `END_S` only.
        """
        self._notifier.stopping()
        for cluster in self._clusters:
            cluster.stop()
        since_s = steady_s()
        while any(cluster.is_awaited(since_s) for cluster in self._clusters):
            self._notifier.extend()
            self._report()
            time.sleep(POLL_S)
        hanging = [c.member.name for c in self._clusters if c.thread.is_alive()]
        if hanging:
            sys.stderr.write(f"plimsoll: left hanging: {', '.join(hanging)}\n")
            return Exit.INCOMPLETE
        return next((c.code for c in self._clusters if c.code), Exit.DONE)

    def _report(self) -> None:
        members = [cluster.member for cluster in self._clusters]
        if alive(members)[0] == 200:
            self._notifier.beat()
        counts: dict[str, int] = {}
        for member in members:
            counts[member.service] = counts.get(member.service, 0) + 1
        words = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        self._notifier.status(f"{len(members)} clusters: {words}")

    def _read_again(self) -> None:
        """Read the log file, the certificate, and the settings of every cluster again."""
        self._notifier.reloading()
        try:
            self._shared.log.begin()
            self._certificate.reload()
            if read_fleet(self._shared.path) != self._shared.fleet:
                _log.warning(
                    "%s has changed; that takes effect with the next start",
                    self._shared.path,
                    extra=named(LogEvent.SETTINGS_LATER),
                )
        except (PlimsollError, OSError) as exc:
            _log.warning(
                "not all could be read again: %s", exc, extra=named(LogEvent.SETTINGS_REJECTED)
            )
        for cluster in self._clusters:
            cluster.hang_up()
        self._notifier.ready()
