"""`plimsoll demo --simulated`: the whole product without a broker."""

import time
from pathlib import Path

from control import compose
from control.cli import logs
from control.cli.commands.screen import recorded
from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from control.demo.simulated_demo import SimulatedDemoOptions, simulated
from control.loop.loop import Loop
from control.loop.view import LoopView, Mode, Phase
from control.settings.settings import Settings
from model.errors import ExecutionStopped

LEVEL_S = 900.0
"""How long the demo without a screen waits for the end of its run."""


def show(
    settings: Settings,
    *,
    headless: bool,
    brokers: int,
    seed: int,
    output: Form,
    record: Path | None,
) -> int:
    """Show a cluster that is none, until the user leaves.

    Without a terminal or with `headless` a plan is approved by policy, and its run
    reported.
    """
    order = SimulatedDemoOptions(
        mode=Mode.AUTO if headless else Mode.APPROVE,
        brokers=brokers,
        seed=seed,
        now_s=time.time(),
    )
    with simulated(settings, order) as loop, recorded(loop, record):
        if headless:
            return _balance(loop, output)
        logs.silence_stderr()
        logs.pass_warnings(loop.warn)
        compose.front_end()(loop)
    return Exit.DONE


def _balance(loop: Loop, output: Form) -> int:
    # They load the planner, which the screen's first picture need not wait for.
    from control.cli.commands.apply import told
    from control.cli.commands.run import narrate

    def ran(view: LoopView) -> bool:
        return bool(loop.reports) and view.phase in (Phase.LEVEL, Phase.PLAN_READY)

    narrate(loop, output)
    if not loop.wait(ran, LEVEL_S):
        view = loop.view
        raise loop.error or ExecutionStopped(
            f"no run had ended after {LEVEL_S:.0f} s; the last word was: "
            f"{view.phase}: {view.message}"
        )
    return told(loop.reports[0], output)
