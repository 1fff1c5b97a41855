"""The service from its start to its exit code: signals, settings that change, systemd."""

import contextlib
import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Final

from control import compose
from control.cli import logs
from control.cli.balancing import Balancing, BalancingOptions, configured, end_of
from control.cli.narration import narrate
from control.cli.output import Form
from control.cli.plan_execution import steered_by_signals
from control.loop.dependencies import LoopWatcher
from control.service.http_listener import HttpListener, bound
from control.service.service_state import CountingHandler, ServiceState
from control.service.systemd_notify import SystemdNotifier
from control.settings.service_table import ServiceTable
from model.errors import PlimsollError

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.loop.view import LoopView
    from executor.run.operator_control import Steering

POLL_S: Final = 0.2
"""Seconds between two looks at signals."""
STOPPING: Final = "the service is stopping"


def serve(options: BalancingOptions, output: Form) -> int:
    """Run the loop until SIGTERM; the exit code is that of `run`.

    Raises ConfigError and GuardrailRefused as `configured` does, PortTaken where another
    program listens on the port, and whatever ends the loop.
    """
    balancing = configured(options)
    listening = bound(balancing.settings.service.address)
    state, notifier = ServiceState(), SystemdNotifier.of(os.environ)
    api = balancing.settings.service.api
    with HttpListener(listening, state, api=api) as listener, contextlib.closing(notifier):
        sys.stderr.write(f"plimsoll: metrics on {listener.address.url}/metrics\n")
        return _Service(options, output, state, notifier).run(balancing)


class _Service:
    """One loop after another, each with the settings as they were read for it."""

    def __init__(
        self,
        options: BalancingOptions,
        output: Form,
        state: ServiceState,
        notifier: SystemdNotifier,
    ) -> None:
        self._options, self._output = options, output
        self._state, self._notifier = state, notifier
        self._counting = CountingHandler(state)
        self._hung_up = threading.Event()
        self._loop: Loop | None = None
        self._served = ServiceTable()
        """As it was at the start; a reload does not change it."""

    def run(self, balancing: Balancing) -> int:
        """Run loops until SIGTERM, or until one ends with an error, which is raised."""
        self._served = balancing.settings.service
        loop = self._loop_of(balancing)
        with steered_by_signals(self._abort, self._hung_up.set) as steering:
            while True:
                self._begin(loop)
                with loop:
                    self._notifier.ready()
                    following = self._until(loop, steering)
                    if following is None:
                        self._state.unready = STOPPING
                        self._notifier.stopping()
                        return end_of(loop, self._output)
                    # The plan that waits for a person waits on.
                    loop.leave_question = True
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
            if self._hung_up.is_set():
                self._hung_up.clear()
                following = self._read_again(loop) or following
        return None

    def _read_again(self, loop: "Loop") -> "Loop | None":
        """A loop with the settings as they are now; None where they cannot be used."""
        self._notifier.reloading()
        try:
            balancing = configured(self._options)
            found = self._loop_of(balancing)
        except (PlimsollError, OSError) as exc:
            found = None
            self._listen_to_log(loop)
            loop.warn(f"the settings stay as they are, since they cannot be used: {exc}")
            self._state.reloaded("failed")
        else:
            self._listen_to_log(loop)
            self._say(loop, "settings read again; the loop starts with them between two runs")
            if balancing.settings.service != self._served:
                loop.warn("[service] has changed; that takes effect when it is started again")
            self._state.reloaded("done")
        self._notifier.ready()
        return found

    def _loop_of(self, balancing: Balancing) -> "Loop":
        """A loop that has not started; ConfigError where a file it needs cannot be used."""
        return compose.loop(
            balancing.settings,
            mode=balancing.mode,
            limits=balancing.limits,
            patient=True,
            policy_file=balancing.policy_file,
            watcher=LoopWatcher(
                decided=self._state.decided, beat=self._beat, failed=self._state.failed
            ),
        )

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
        narrate(loop, self._output)
        loop.subscribe(self._see)

    def _listen_to_log(self, loop: "Loop") -> None:
        """Direct the log to this loop, and count it; reading settings sets the log up again."""
        logs.narrate(loop.warn)
        log = logging.getLogger("plimsoll")
        if self._counting not in log.handlers:
            log.addHandler(self._counting)

    def _see(self, view: "LoopView") -> None:
        self._state.see(view)
        self._notifier.status(f"{view.phase}: {view.sentence(view.at_ms)}")
        if self._state.unready:
            self._notifier.extend()

    def _beat(self) -> None:
        self._state.beat()
        self._notifier.beat()

    def _abort(self) -> None:
        if self._loop is not None:
            self._loop.steering.abort()

    @staticmethod
    def _say(loop: "Loop", text: str) -> None:
        loop.note(text)
        sys.stderr.write(f"plimsoll: {text}\n")
