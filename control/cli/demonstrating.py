"""The commands that show plimsoll itself: the demo, and the screen in a browser.

Heavy imports wait until a command needs them.
"""

from collections.abc import Callable
from typing import Annotated, Final

import typer

from control.cli import console as terminal
from control.cli.options import (
    Ascii,
    Config,
    LogFile,
    Output,
    Profile,
    RecordScreen,
    Theme,
    Throttle,
    Verbose,
    load_settings,
    throttled,
)
from control.cli.output_format import Form
from model.errors import ConfigError
from model.units import span_of


def _quiet(text: str) -> float:
    try:
        return span_of(text, least=0)
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


def demo(
    *,
    headless: Annotated[
        bool, typer.Option("--headless", help="Approve by policy, without the screen.")
    ] = False,
    simulated: Annotated[
        bool,
        typer.Option("--simulated", help="Show a cluster simulated in this process."),
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
        typer.Option(
            metavar="PORT", help="First of the brokers' ports; by default free ones."
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="No remote tier: moves copy whole partitions."),
    ] = False,
    throttle: Throttle = None,
    quiet_s: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=_quiet,
            help="How long to watch that nothing moves afterwards: 60, 5m.",
        ),
    ] = "60",  # type: ignore[assignment]  # the parser reads defaults, too
    record: RecordScreen = None,
    output: Output = Form.TABLE,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
    ascii_only: Ascii = False,
    theme: Theme = None,
) -> int:
    """Start a local Kafka cluster, skew it, level it, and report."""
    _check_demo(simulated=simulated, brokers=brokers, port=port, plain=plain)
    found = load_settings(
        config=config,
        profile=profile,
        log_file=log_file,
        verbose=verbose,
        ascii_only=ascii_only,
        theme=theme,
    )
    settings = throttled(found, throttle)
    headless = headless or not terminal.is_there()
    if simulated:
        from control.cli.commands import simulated as without_kafka

        return without_kafka.show(
            settings,
            headless=headless,
            brokers=brokers or 12,
            seed=seed,
            output=output,
            record=record,
        )
    from control.cli.commands.demo import show

    return show(
        settings,
        headless=headless,
        seed=seed,
        port=port,
        plain=plain,
        quiet_s=quiet_s,
        output=output,
    )


def _check_demo(
    *, simulated: bool, brokers: int | None, port: int | None, plain: bool
) -> None:
    if simulated and plain:
        raise ConfigError(
            "--plain is of the local cluster; leave it away, or --simulated"
        )
    if simulated and port is not None:
        raise ConfigError(
            "a simulated cluster has no ports; leave --port away, or --simulated"
        )
    if brokers is not None and not simulated:
        raise ConfigError("the local cluster has three brokers; add --simulated")


def serve(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- ARGUMENTS]",
            help="What to show: options of the screen, or demo --simulated.",
        ),
    ] = None,
    *,
    ascii_only: Ascii = False,
    theme: Theme = None,
    port: Annotated[
        int,
        typer.Option(
            min=1, max=65535, metavar="PORT", help="Port on this machine (loopback)."
        ),
    ] = 8000,
    sessions: Annotated[
        int,
        typer.Option(min=1, max=100, metavar="N", help="Windows at a time, at most."),
    ] = 4,
    output: Output = Form.TABLE,
) -> int:
    """Show the screen in a browser, on this machine alone and read-only."""
    from control.cli.commands.serve import show

    looks = ["--ascii"] if ascii_only else []
    looks += ["--theme", theme] if theme is not None else []
    shown = [*(arguments or []), *looks]
    return show(shown, port=port, sessions=sessions, output=output)


COMMANDS: Final[dict[str, Callable[..., int]]] = {"demo": demo, "serve": serve}
"""By the name that is typed."""
