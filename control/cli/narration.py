"""Lines on stderr while a command changes a cluster."""

import sys
from math import inf
from typing import Final

from control.cli import logs
from control.cli.output import Form, json_of
from control.loop.loop import Loop
from control.loop.view import LoopView, Phase
from model.printable import printable
from model.run import MoveState, RunProgress, RunState
from model.units import seconds_text

_LONG_S: Final = 10.0
"""Least remaining time that gets a line."""


def narrate(loop: Loop, output: Form) -> None:
    """Print on stderr what a loop without a screen does, each event once.

    Where stderr has the log as JSON, that says the same.
    """
    logs.narrate(loop.warn)
    if logs.has_text():
        loop.subscribe(LoopNarrator(output))


class RunNarrator:
    """Prints a line when a move ends, the run pauses or stops, and as time passes."""

    def __init__(self, prefix: str = "") -> None:
        """prefix: the beginning of each line."""
        self._prefix = prefix
        self._printed: set[object] = set()
        self._state = RunState.CHECKING
        self._left_s = inf

    def __call__(self, progress: RunProgress) -> None:
        self._print_state(progress)
        self._print_remaining(progress.left_s)
        ended = (MoveState.DONE, MoveState.DROPPED, MoveState.STUCK)
        for move in progress.moves:
            key = (progress.run_id, move.move.id)
            if move.state in ended and key not in self._printed:
                self._printed.add(key)
                seconds = f" in {move.seconds:.2f} s" if move.seconds else ""
                done = progress.count(*ended)
                self._write(
                    f"{done}/{len(progress.moves)} {move.move.id} "
                    f"{move.state}{seconds} {move.note}".rstrip()
                )

    def _print_remaining(self, left_s: float | None) -> None:
        if left_s is None or self._left_s / 2 < left_s < 1.5 * self._left_s:
            return
        if left_s >= _LONG_S:
            self._write(f"about {seconds_text(left_s)} left")
        self._left_s = left_s

    def _print_state(self, progress: RunProgress) -> None:
        before, self._state = self._state, progress.state
        if progress.state is before:
            return
        if progress.state in (RunState.PAUSED, RunState.STOPPING):
            self._write(f"{progress.state}: {progress.reason}")
        elif before is RunState.PAUSED:
            self._write("resumed")

    def _write(self, line: str) -> None:
        # Notes and reasons may come from people and from brokers.
        sys.stderr.write(printable(f"{self._prefix}{line}") + "\n")


class LoopNarrator:
    """Prints each change of phase, and each finished move, once on stderr."""

    def __init__(self, output: Form, cluster: str = "") -> None:
        """cluster: its name in the fleet, which each line has; empty without a fleet."""
        self._output, self._cluster = output, cluster
        self._prefix = f"{cluster}: " if cluster else ""
        self._phase: Phase | None = None
        self._narrator: tuple[str, RunNarrator] | None = None

    def __call__(self, view: LoopView) -> None:
        if view.run is not None and view.phase is Phase.RUNNING:
            if self._narrator is None or self._narrator[0] != view.run.run_id:
                self._narrator = (view.run.run_id, RunNarrator(self._prefix))
            self._narrator[1](view.run)
        if view.phase is not self._phase:
            self._phase = view.phase
            # The command prints the error that ends the loop, with the same sentence.
            if view.phase is not Phase.FAILED or self._output is Form.JSON:
                sys.stderr.write(self._line(view) + "\n")

    def _line(self, view: LoopView) -> str:
        if self._output is Form.JSON:
            plan = view.plan.hash[:12] if view.plan else None
            named = {"cluster": self._cluster} if self._cluster else {}
            return json_of(
                named
                | {
                    "at_ms": view.at_ms,
                    "phase": view.phase.value,
                    "message": view.sentence(view.at_ms),
                    "plan_hash": plan,
                }
            )
        return printable(f"{self._prefix}{view.phase}: {view.sentence(view.at_ms)}")
