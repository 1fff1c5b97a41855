"""`simulate` over HTTP: one bounded simulation at a time, in a process of its own.

The loop is not delayed: the process has a low priority, and ends with its service, or after
`MOST_S`. Its result is that of `plimsoll simulate -o json`.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Annotated, Final

from pydantic import Field

from control.cli.output_types import ActionAnswer
from control.render.text import json_text
from control.service.operator_actions import (
    ActionResult,
    BadRequest,
    OperatorActions,
    reading_request,
)
from control.settings.auto_limits import limits_named
from model.closing import Closing
from model.errors import GuardrailRefused
from model.files import FileModel
from model.units import count_text

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.service.http_access import Client
    from control.settings.settings import Settings
    from model.snapshot.snapshot import Snapshot

MOST_S: Final = 600.0
"""Seconds after which a simulation is ended without a result."""
MOST_DAYS: Final = 31
MOST_POLICIES: Final = 4
MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a result."""
MOST_WHY: Final = 10_000
"""Bytes of the reason why there is none."""
SIMULATE: Final = "simulate"
"""Name of the action, in the audit log."""
STOPPING: Final = "the service is stopping"
COMMAND: Final = (sys.executable, "-P", "-m", "control.cli.simulation_process")


class SimulateParameters(FileModel):
    """What is simulated: policies on the cluster as it is now."""

    policies: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")], ...],
        Field(min_length=1, max_length=MOST_POLICIES),
    ] = ("conservative", "eager")
    """Names of limits of `run --auto`."""
    days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = 7
    history: bool = False
    """Whether to replay the loads that the history has, instead of varying those of now."""
    steady: bool = False
    """Whether loads stay as they are."""
    growth: Annotated[float, Field(ge=-0.5, le=0.5, allow_inf_nan=False)] = 0.02
    """Mean growth per week, as a share."""
    bursts: Annotated[float, Field(ge=0, le=7, allow_inf_nan=False)] = 0.5
    """Bursts of a topic per week."""
    search_budget: Annotated[float, Field(ge=0.001, le=1, allow_inf_nan=False)] = 0.1
    """Of each plan, in units of about a second."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationJob:
    """What the process is given."""

    settings: "Settings"
    snapshot: "Snapshot"
    asked: SimulateParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """One simulation; running as long as it has neither a text nor a reason."""

    by: str
    """Who requested it."""
    text: str = ""
    """The result."""
    why: str = ""
    """Why there is none."""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not (self.text or self.why)


class SimulationTurn:
    """Lets the clusters of a process simulate one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by = ""

    def take(self, by: str) -> None:
        """Begin; by: who requested it. Raises GuardrailRefused while another one is running."""
        with self._lock:
            if self._by:
                raise GuardrailRefused(
                    f"the simulation that {self._by} requested is running; wait until it ends"
                )
            self._by = by

    def end(self) -> None:
        """Let another one begin."""
        with self._lock:
            self._by = ""


class Simulations(Closing):
    """The newest simulation of a service; any thread may call."""

    def __init__(
        self,
        command: Sequence[str] = COMMAND,
        most_s: float = MOST_S,
        turn: "SimulationTurn | None" = None,
    ) -> None:
        """command: starts the process. most_s: seconds for which it may run.

        turn: that of all clusters of a process; None for one of its own.
        """
        self._turn = SimulationTurn() if turn is None else turn
        self._command, self._most_s = tuple(command), most_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._ended = False
        self.settings: Settings | None = None
        """Those in force; None before the first loop."""
        self.newest: Simulation | None = None
        """None before the first."""

    def start(self, asked: SimulateParameters, snapshot: "Snapshot", by: str) -> None:
        """Begin a simulation; return at once.

        Raises GuardrailRefused while another one is running, or the service starts or ends, and
        BadRequest for unknown limits.
        """
        with self._lock:
            if self.settings is None or self._ended:
                raise GuardrailRefused("the service is starting or stopping; try again")
            with reading_request():
                for name in asked.policies:
                    limits_named(name, self.settings.limits)
                    if asked.policies.count(name) > 1:
                        raise BadRequest(f"the policy {name} is named twice")
            job = SimulationJob(settings=self.settings, snapshot=snapshot, asked=asked)
            self._turn.take(by)
            try:
                thread = threading.Thread(
                    target=self._run, args=(pickle.dumps(job),), name="simulation", daemon=True
                )
                thread.start()
                self._thread, self.newest = thread, Simulation(by=by)
            except BaseException:
                self._turn.end()
                raise

    def close(self) -> None:
        """End a simulation that is running."""
        with self._lock:
            self._ended, thread = True, self._thread
            self._kill()
        if thread is not None:
            thread.join()

    def _run(self, job: bytes) -> None:
        text, why = "", ""
        try:
            text, why = self._result(job)
        except OSError as exc:
            why = f"the simulation cannot be started: {exc.strerror or exc}"
        finally:
            with self._lock:
                self._process = None
                if self.newest is not None:
                    why = "" if text else why or "the simulation ended without a result"
                    self.newest = replace(self.newest, text=text, why=why)
                self._turn.end()

    def _result(self, job: bytes) -> tuple[str, str]:
        """The result, and why there is none."""
        with self._lock:
            if self._ended:
                return "", STOPPING
            # A session of its own, so that what it starts ends with it.
            process = self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        late = threading.Timer(self._most_s, self._kill_late)
        late.daemon = True
        late.start()
        found: dict[str, bytes] = {}
        with process:
            readers = [
                threading.Thread(target=_read, args=(stream, most, found, name), daemon=True)
                for name, stream, most in (
                    ("text", process.stdout, MOST_BYTES),
                    ("why", process.stderr, MOST_WHY),
                )
            ]
            for reader in readers:
                reader.start()
            with contextlib.suppress(OSError):
                # Its end is what tells the process that the service has ended: it stays open.
                _pipe(process.stdin).write(len(job).to_bytes(8, "big") + job)
                _pipe(process.stdin).flush()
            for reader in readers:
                reader.join()
            code = process.wait()
            late.cancel()
        if code == 0 and len(found["text"]) < MOST_BYTES:
            return found["text"].decode("utf-8", "replace"), ""
        if code == 0:
            return "", f"the result has more than {MOST_BYTES:,} bytes"
        if code == -signal.SIGKILL:
            return "", (
                STOPPING
                if self._is_ended()
                else f"the simulation took more than {self._most_s:.0f} s, or too much memory; "
                "simulate fewer days or policies"
            )
        if code < 0:
            # Libraries that cannot have more memory end their process.
            return "", (
                f"the simulation was ended by {signal.Signals(-code).name}, perhaps for lack of "
                "memory; simulate fewer days or policies"
            )
        lines = found["why"].decode("utf-8", "replace").strip().splitlines()
        return "", "".join(lines[-1:]).removeprefix("plimsoll: ") or f"it ended with code {code}"

    def _is_ended(self) -> bool:
        return self._ended

    def _kill_late(self) -> None:
        with self._lock:
            self._kill()

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("the process has no pipe")
    return stream


def _read(stream: IO[bytes] | None, most: int, found: dict[str, bytes], name: str) -> None:
    """Read so many bytes; the rest is read and dropped, so that the process can end."""
    pipe = _pipe(stream)
    found[name] = pipe.read(most)
    while pipe.read(65536):
        pass


def simulate_for(
    simulations: Simulations,
    actions: OperatorActions,
    asked: SimulateParameters,
    snapshot: "Snapshot | None",
    client: "Client",
) -> str:
    """Begin a simulation that a client requests; the answer as JSON.

    Raises GuardrailRefused as `Simulations.start`, and before the first snapshot.
    """
    days = count_text(asked.days, "day")
    detail = f"{days}: {', '.join(asked.policies)}"

    def act(_loop: "Loop") -> ActionResult:
        if snapshot is None:
            raise GuardrailRefused("no loads have been measured yet; wait a moment")
        if not len(snapshot):
            raise GuardrailRefused("the cluster has no partitions, so there is nothing to balance")
        simulations.start(asked, snapshot, client.name)
        return ActionResult(message=f"simulating {days}; GET the same path for the result")

    result = actions.audited(SIMULATE, client, detail, act, changes=False)
    return json_text(ActionAnswer.of(result, action=SIMULATE))
