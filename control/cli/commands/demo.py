"""`plimsoll demo`: the whole line on a local cluster."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)

from clients.jvm.jars import JarProgress
from control import compose
from control.cli import logs
from control.cli.commands.run import narrate
from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from control.demo.local_demo import Demo, DemoOptions, demo
from control.demo.report import report_text
from control.loop.view import Mode
from control.render.plan_text import json_text
from control.settings.settings import Settings
from model.units import bytes_text


def show(
    settings: Settings,
    *,
    headless: bool,
    seed: int,
    port: int | None,
    plain: bool,
    quiet_s: float,
    output: Form,
) -> int:
    """Run the demo; the report goes to stdout.

    Without a terminal or with `headless` the plan is approved by policy, otherwise by
    a person on the screen.
    """
    mode = Mode.AUTO if headless else Mode.APPROVE
    order = DemoOptions(mode=mode, seed=seed, port=port, plain=plain)
    with (
        _ended_by_signals(),
        downloads() as on_download,
        demo(settings, order, on_step=_say, on_download=on_download) as running,
    ):
        if headless:
            _balance(running, quiet_s, output)
        else:
            logs.silence_stderr()
            logs.pass_warnings(running.loop.warn)
            compose.front_end()(running.loop)
            _say("ending the load and counting records")
        report = running.report()
    if report is None:
        _say("no plan was carried out, so there is nothing to report")
        return Exit.INCOMPLETE
    if output is Form.JSON:
        sys.stdout.write(json_text(report.model_dump(mode="json")))
    else:
        sys.stdout.write(report_text(report))
    return Exit.DONE if report.good else Exit.INCOMPLETE


def _balance(running: Demo, quiet_s: float, output: Form) -> None:
    narrate(running.loop, output)
    running.wait_level()
    _say(f"level; watching for {quiet_s:.0f} s that nothing moves")
    running.watch_quiet(quiet_s, lambda _left: None)


def _say(step: str) -> None:
    sys.stderr.write(f"{step}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def downloads() -> Iterator[Callable[[JarProgress], None]]:
    """A progress bar on stderr for what is fetched; one line without a terminal."""
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

    def on_download(news: JarProgress) -> None:
        if news.total_bytes not in tasks:
            tasks[news.total_bytes] = progress.add_task("", total=news.total_bytes)
            if not console.is_terminal:
                _say(f"fetching {bytes_text(news.total_bytes)} of jars")
        progress.start()
        progress.update(tasks[news.total_bytes], completed=news.done_bytes)
        if news.done_bytes >= news.total_bytes:
            progress.stop()

    try:
        yield on_download
    finally:
        progress.stop()


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and a vanished terminal end the demo as Ctrl-C does."""

    def on_signal(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
