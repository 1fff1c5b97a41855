"""`plimsoll run`: the loop, headless."""

import sys

from control import compose
from control.cli import logs
from control.cli.commands.apply import (
    RunNarrator,
    go_on,
    steered_by_signals,
    told,
)
from control.cli.commands.plan import EXITS
from control.cli.exit_codes import Exit
from control.cli.output import json_of
from control.cli.output_format import Form
from control.loop.loop import Loop
from control.loop.view import LoopView, Mode, Phase
from control.settings.auto_limits import limits_named
from control.settings.settings import Settings
from model.errors import ConfigError, GuardrailRefused
from model.run import RunState

ANSWERS = (Phase.LEVEL, Phase.NO_PLAN, Phase.FAILED)
"""Phases in which `--once` has its answer, unless a run goes on."""


def keep_level(
    settings: Settings,
    *,
    auto: bool,
    once: bool,
    resume: bool,
    limits: str | None,
    allow_changes: bool,
    output: Form,
) -> int:
    """Keep the cluster level until stopped, or once.

    With `resume` the newest run is gone on with first; alone, that is all.

    Raises
    ------
    ConfigError
        `--auto` without limits.
    GuardrailRefused
        `--auto` without `--allow-changes`.
    """
    compose.bootstrap_of(settings)
    if auto and limits is None:
        raise ConfigError(
            "--auto starts only with every limit set; say --limits conservative, or "
            "the name of a [limits.NAME] table of the configuration"
        )
    name = "conservative" if limits is None else limits
    named = limits_named(name, settings.limits)
    if auto and not allow_changes:
        raise GuardrailRefused("--auto changes the cluster; say --allow-changes too")
    if resume:
        report = go_on(settings, allow_changes=allow_changes)
        if not auto or report.state is not RunState.DONE:
            return told(report, output)
    mode = Mode.AUTO if auto else Mode.READ_ONLY
    with (
        compose.loop(settings, mode=mode, limits=named, patient=not once) as loop,
        steered_by_signals(lambda: loop.steering.abort()) as steering,
    ):
        narrate(loop, output)
        while not steering.stopping.is_set() and loop.error is None:
            if once and loop.wait(lambda view: _answered(loop, view), 1.0):
                return _answer(loop, output)
            steering.stopping.wait(0.2)
        return _ended(loop, output)


def narrate(loop: Loop, output: Form) -> None:
    """Print what a loop without a screen does on stderr, each event once."""
    logs.narrate(loop.warn)
    loop.subscribe(Teller(output))


class Teller:
    """Says each change of phase, and each finished move, once, on stderr."""

    def __init__(self, output: Form) -> None:
        self._output = output
        self._phase: tuple[Phase, str] | None = None
        self._narrator: tuple[str, RunNarrator] | None = None

    def __call__(self, view: LoopView) -> None:
        if view.run is not None and view.phase is Phase.RUNNING:
            if self._narrator is None or self._narrator[0] != view.run.run_id:
                self._narrator = (view.run.run_id, RunNarrator())
            self._narrator[1](view.run)
        if self._phase is None or view.phase is not self._phase[0]:
            self._phase = (view.phase, view.message)
            # The error that ends the loop ends the command, with the same sentence.
            if view.phase is not Phase.FAILED or self._output is Form.JSON:
                sys.stderr.write(self._line(view) + "\n")

    def _line(self, view: LoopView) -> str:
        if self._output is Form.JSON:
            plan = view.plan.hash[:12] if view.plan else None
            return json_of(
                {
                    "at_ms": view.at_ms,
                    "phase": view.phase.value,
                    "message": view.sentence(view.at_ms),
                    "plan_hash": plan,
                }
            )
        return f"{view.phase}: {view.sentence(view.at_ms)}"


def _answered(loop: Loop, view: LoopView) -> bool:
    if loop.running:
        return False
    offered = view.phase is Phase.PLAN_READY and view.mode is not Mode.AUTO
    failed = loop.failure is not None
    return bool(loop.reports) or failed or offered or view.phase in ANSWERS


def _answer(loop: Loop, output: Form) -> int:
    if loop.reports:
        return told(loop.reports[-1], output)
    if loop.failure is not None:
        raise loop.failure
    return _ended(loop, output)


def _ended(loop: Loop, output: Form) -> int:
    if loop.error is not None:
        raise loop.error
    loop.close()
    if loop.reports:
        return told(loop.reports[-1], output)
    if loop.view.phase is Phase.NO_PLAN and loop.result is not None:
        return EXITS.get(loop.result.status, Exit.REFUSED)
    return Exit.DONE
