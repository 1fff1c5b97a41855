"""`plimsoll demo`: the whole product on a local or a simulated cluster."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.commands.screen import recorded
from control.cli.console import can_show_screen, ended_like_ctrl_c
from control.cli.exit_codes import Exit
from control.cli.invocation import with_overrides
from control.cli.options import Output, RecordScreen, Throttle, parsed
from control.cli.output import Form
from model.errors import ConfigError, ExecutionStopped
from model.units import bytes_text, span_of

if TYPE_CHECKING:
    from clients.jvm.jars import JarProgress
    from control.demo.local_demo import Demo, DemoOptions
    from control.demo.simulated_demo import SimulatedDemoOptions
    from control.loop.loop import Loop
    from control.loop.view import LoopView
    from control.settings.settings import Settings

SIMULATED_BROKERS: Final = 12
SIMULATED_RUN_S: Final = 900.0
"""Longest wait, without the screen, for the end of a run on the simulated cluster."""


def demo(
    *,
    headless: Annotated[
        bool, typer.Option("--headless", help="Approve by policy, without the screen.")
    ] = False,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Use a cluster simulated in this process.")
    ] = False,
    brokers: Annotated[
        int | None,
        typer.Option(
            min=3,
            max=60,
            metavar="COUNT",
            help="With --simulated: number of brokers; 12 by default.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Seed of the load.")] = 7,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="First of the brokers' ports; free ports by default."),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="No remote tier: moves copy whole partitions.")
    ] = False,
    kafka: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Kafka's version on the local cluster: 3.9, 4.0.2; 4.3.1 by default.",
        ),
    ] = None,
    throttle: Throttle = None,
    quiet_s: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=parsed(partial(span_of, least=0)),
            help="How long to check afterwards that nothing moves: 60, 5m.",
        ),
    ] = "60",  # type: ignore[assignment]  # the parser reads defaults, too
    record: RecordScreen = None,
    output: Output = Form.TABLE,
    local_settings: "Settings",
) -> int:
    """Run the demo and print its report.

    Without a terminal or with `headless` a policy approves the plan, otherwise a person
    on the screen.
    """
    _check_options(simulated=simulated, brokers=brokers, port=port, plain=plain, kafka=kafka)
    settings = with_overrides(local_settings, throttle=throttle)
    from control.loop.view import Mode

    mode = Mode.AUTO if headless or not can_show_screen() else Mode.APPROVE
    if simulated:
        from control.demo.simulated_demo import SimulatedDemoOptions

        count = brokers or SIMULATED_BROKERS
        asked = SimulatedDemoOptions(mode=mode, brokers=count, seed=seed, now_s=time.time())
        return simulated_demo(settings, asked, output=output, record=record)
    from control.demo.local_demo import DemoOptions
    from lab.local_cluster.kafka_versions import DEFAULT_VERSION, pinned_version

    version = DEFAULT_VERSION if kafka is None else pinned_version(kafka)
    order = DemoOptions(mode=mode, seed=seed, port=port, plain=plain, kafka=version)
    return local_demo(settings, order, quiet_s=quiet_s, output=output)


def _check_options(
    *, simulated: bool, brokers: int | None, port: int | None, plain: bool, kafka: str | None
) -> None:
    if simulated and kafka is not None:
        raise ConfigError("a simulated cluster has no version; omit --kafka, or --simulated")
    if simulated and plain:
        raise ConfigError("--plain needs the local cluster; omit it, or --simulated")
    if simulated and port is not None:
        raise ConfigError("a simulated cluster has no ports; omit --port, or --simulated")
    if brokers is not None and not simulated:
        raise ConfigError("the local cluster has three brokers; add --simulated")


# ---- the local cluster


def local_demo(settings: "Settings", order: "DemoOptions", *, quiet_s: float, output: Form) -> int:
    """Start, skew and balance a local Kafka cluster, and print the report."""
    from control import compose
    from control.cli import logs
    from control.demo.local_demo import demo
    from control.demo.report import report_text
    from control.loop.view import Mode
    from control.render.text import answer_text

    with (
        ended_like_ctrl_c(),
        downloads() as on_download,
        demo(settings, order, on_step=_print, on_download=on_download) as running,
    ):
        if order.mode is Mode.AUTO:
            _balance(running, quiet_s, output)
        else:
            logs.silence_stderr()
            logs.pass_warnings(running.loop.warn)
            compose.front_end()(running.loop)
            _print("stopping the load and counting records")
        report = running.report()
    if report is None:
        _print("no plan was executed, so there is no report")
        return Exit.INCOMPLETE
    sys.stdout.write(answer_text(report, report_text, output))
    return Exit.DONE if report.good else Exit.INCOMPLETE


def _balance(running: "Demo", quiet_s: float, output: Form) -> None:
    from control.cli.narration import narrate

    narrate(running.loop, output)
    running.wait_until_balanced()
    _print(f"balanced; checking for {quiet_s:.0f} s that nothing moves")
    running.watch_quiet(quiet_s, lambda _left: None)


def _print(step: str) -> None:
    sys.stderr.write(f"{step}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def downloads() -> "Iterator[Callable[[JarProgress], None]]":
    """A progress bar of downloads on stderr; one line each without a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    progress = Progress(
        TextColumn("fetching jars"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    tasks: dict[int, TaskID] = {}

    def on_download(update: "JarProgress") -> None:
        if update.total_bytes not in tasks:
            tasks[update.total_bytes] = progress.add_task("", total=update.total_bytes)
            if not console.is_terminal:
                _print(f"fetching {bytes_text(update.total_bytes)} of jars")
        progress.start()
        progress.update(tasks[update.total_bytes], completed=update.done_bytes)
        if update.done_bytes >= update.total_bytes:
            progress.stop()

    try:
        yield on_download
    finally:
        progress.stop()


# ---- the simulated cluster


def simulated_demo(
    settings: "Settings", order: "SimulatedDemoOptions", *, output: Form, record: Path | None
) -> int:
    """Show a simulated cluster until the user quits.

    In automatic mode a policy approves a plan, and its run is reported.
    """
    from control import compose
    from control.cli import logs
    from control.demo.simulated_demo import simulated
    from control.loop.view import Mode

    with simulated(settings, order) as loop, recorded(loop, record):
        if order.mode is Mode.AUTO:
            return _one_run(loop, output)
        logs.silence_stderr()
        logs.pass_warnings(loop.warn)
        compose.front_end()(loop)
    return Exit.DONE


def _one_run(loop: "Loop", output: Form) -> int:
    # These load the planner, which the first screen need not wait for.
    from control.cli.narration import narrate
    from control.cli.plan_execution import print_report
    from control.loop.view import Phase

    def ended(view: "LoopView") -> bool:
        return bool(loop.reports) and view.phase in (Phase.BALANCED, Phase.PLAN_READY)

    narrate(loop, output)
    if not loop.wait(ended, SIMULATED_RUN_S):
        view = loop.view
        raise loop.error or ExecutionStopped(
            f"no run ended within {SIMULATED_RUN_S:.0f} s; the last state was "
            f"{view.phase}: {view.message}"
        )
    return print_report(loop.reports[0], output)
