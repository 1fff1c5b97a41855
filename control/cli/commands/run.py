"""`plimsoll run`: the loop without a screen."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control.cli.exit_codes import Exit
from control.cli.options import (
    AllowChanges,
    Auto,
    Capacity,
    Limits,
    LowerSegmentBytes,
    Output,
    PlanEffort,
    SuspendBalancer,
    Throttle,
)
from control.cli.output import Form
from model.printable import printable

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.loop.view import LoopView


def run(
    *,
    setting_flags: dict[str, Any],
    auto: Auto = False,
    once: Annotated[
        bool, typer.Option("--once", help="Exit once balanced, or after one run.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Resume the most recent run first. Without --auto, exit when it finishes.",
        ),
    ] = False,
    limits: Limits = None,
    effort: PlanEffort = None,
    capacity: Capacity = None,
    throttle: Throttle = None,
    suspend_balancer: SuspendBalancer = False,
    lower_segment_bytes: LowerSegmentBytes = False,
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """Keep the cluster balanced until stopped, or once.

    Raises ConfigError for `--auto` without limits, GuardrailRefused for `--auto` without
    `--allow-changes`.
    """
    from control import compose
    from control.cli import plan_execution as execution
    from control.cli.balancing import STOPPED, BalancingOptions, configured, end_of
    from control.cli.narration import narrate
    from model.run import RunState

    balancing = configured(
        BalancingOptions(
            setting_flags=setting_flags,
            auto=auto,
            limits=limits,
            effort=effort,
            capacity=capacity,
            throttle=throttle,
            suspend_balancer=suspend_balancer,
            lower_segment_bytes=lower_segment_bytes,
            allow_changes=allow_changes,
        )
    )
    settings = balancing.settings
    if resume:
        report = execution.resume(settings, allow_changes=allow_changes)
        if not auto or report.state is not RunState.DONE:
            return execution.print_report(report, output)
    with (
        compose.loop(
            settings,
            mode=balancing.mode,
            limits=balancing.limits,
            patient=not once,
            policy_file=balancing.policy_file,
        ) as loop,
        execution.steered_by_signals(
            lambda: loop.steering.abort(), moving=lambda: loop.moving
        ) as steering,
    ):
        narrate(loop, output)
        while not steering.stopping.is_set() and loop.error is None:
            if once and loop.wait(lambda view: _has_result(loop, view), 1.0):
                loop.ending = "--once has its result"
                return _result(loop, output)
            steering.stopping.wait(0.2)
        loop.ending = STOPPED
        return end_of(loop, output)


def _has_result(loop: "Loop", view: "LoopView") -> bool:
    """Whether `--once` has its result: a report, an error, or nothing to do."""
    from control.loop.view import Mode, Phase

    if loop.running:
        return False
    offered = view.phase is Phase.PLAN_READY and view.mode is not Mode.AUTO
    final = view.phase in (Phase.BALANCED, Phase.NO_PLAN, Phase.FAILED)
    waits = loop.question is not None
    waits = waits or bool(loop.held_up)
    return bool(loop.reports) or loop.failure is not None or offered or final or waits


def _result(loop: "Loop", output: Form) -> int:
    from control.cli.balancing import end_of
    from control.cli.plan_execution import print_report
    from model.errors import GuardrailRefused

    if loop.reports:
        return print_report(loop.reports[-1], output)
    if loop.failure is not None:
        raise loop.failure
    if loop.question is not None:
        return _waits(loop)
    if loop.held_up:
        raise GuardrailRefused(f"{loop.held_up}; --once does not wait for that")
    return end_of(loop, output)


def _waits(loop: "Loop") -> int:
    """Leave the question open for the next process, and name it."""
    loop.leave_question, question = True, loop.question
    loop.close()
    if loop.reports or question is None:
        return Exit.DONE
    sys.stderr.write(
        f"plimsoll: plan {question.plan_hash[:12]} waits for a person: "
        f"{printable(question.reason)}. Approve it with plimsoll approve "
        f"{question.plan_hash[:12]}; the next run --auto executes it\n"
    )
    return Exit.MOVES_PROPOSED
