"""The log of a process that serves several clusters: each cluster hears its own lines."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from control.cli import logs
from control.cli.narration import LoopNarrator
from control.cli.output import Form, LogFormat
from control.cli.serving import ServiceLog
from control.service.cluster_context import CLUSTER

if TYPE_CHECKING:
    from control.loop.loop import Loop


class FleetLog(logging.Handler):
    """Pass each line to the handlers of the cluster whose threads wrote it."""

    def __init__(
        self, *, verbose: bool, file: Path | None, form: LogFormat = LogFormat.TEXT
    ) -> None:
        """As the options of the command line. Raises ConfigError as `begin`."""
        super().__init__()
        self._verbose, self._file, self._form = verbose, file, form
        self._handlers: Mapping[str, Sequence[logging.Handler]] = {}
        """By cluster; replaced as a whole."""
        self.begin()

    def createLock(self) -> None:
        """Use no lock: each handler has its own, and no cluster waits for another's."""
        self.lock = None

    def begin(self) -> None:
        """Open the log file, again where it was moved away.

        Raises ConfigError where it cannot be written; the log then goes where it went.
        """
        logs.configure(verbose=self._verbose, file=self._file, form=self._form)
        logs.leave_to_loops()
        logging.getLogger("plimsoll").addHandler(self)

    def route(self, name: str, handlers: Sequence[logging.Handler]) -> None:
        """Pass the lines of a cluster to these handlers from now on."""
        self._handlers = {**self._handlers, name: tuple(handlers)}

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one line on."""
        for handler in self._handlers.get(CLUSTER.get(), ()):
            if record.levelno >= handler.level:
                handler.handle(record)


class ClusterLog(ServiceLog):
    """The part of the log that is one cluster's."""

    def __init__(self, fleet: FleetLog, name: str) -> None:
        self._fleet, self._name = fleet, name

    def listen(self, loop: "Loop", handlers: Sequence[logging.Handler]) -> None:
        """Pass warnings of the cluster's other parts to its loop, and its lines to the handlers."""
        self._fleet.route(self._name, [logs.warning_handler(loop.warn), *handlers])

    def narrate(self, loop: "Loop", output: Form) -> None:
        """Print on stderr what the loop does, each line with the cluster's name.

        Where stderr has the log as JSON, that says the same.
        """
        if logs.has_text():
            loop.subscribe(LoopNarrator(output, self._name))
