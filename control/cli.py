"""The command line. Heavy imports wait until a command needs them.

stdout is data, stderr is narration. Exit codes: 0 done, level already or no
improvement worth its cost; 1 internal error; 2 usage or configuration; 3 cluster not
reachable; 4 no feasible plan; 5 refused by a guardrail; 6 stopped or incomplete; 7 the
cluster changed since the plan; 10 moves proposed (with --detailed-exitcode); 130
interrupted.
"""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from control import terminal
from control.exits import Exit, exit_of
from control.form import Form
from model import __version__
from model.errors import ConfigError, PlimsollError

if TYPE_CHECKING:
    from control.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

EXIT_CODES = (__doc__ or "").partition("narration. ")[2]

app = typer.Typer(
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Keeps a Kafka cluster level: plans with a proof, explains, carries out.\n\n"
    "Without a command it opens the screen.",
    epilog=EXIT_CODES,
)

Bootstrap = Annotated[
    str | None,
    typer.Option("--bootstrap-server", "-b", help="Kafka's host:port list."),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="Configuration file (TOML).")
]
Profile = Annotated[
    str | None, typer.Option("--profile", help="Profile of the configuration file.")
]
AllowChanges = Annotated[
    bool,
    typer.Option(
        "--allow-changes/--read-only",
        help="Build a client that can change the cluster; read-only by default.",
    ),
]
Output = Annotated[Form, typer.Option("--output", "-o", help="Form of stdout.")]
LogFile = Annotated[
    Path | None, typer.Option("--log-file", help="Write log lines here, as JSON.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log more, and show tracebacks.")
]


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """End a command with its exit code; an expected error is one sentence."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = int(command(*args, **kwargs))
        except PlimsollError as exc:
            code = _told(str(exc), exit_of(exc))
        except KeyboardInterrupt:
            code = _told("interrupted", Exit.INTERRUPTED)
        except BrokenPipeError:
            # The reader of stdout has left; a flush at exit must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = Exit.DONE
        except typer.Exit:
            raise
        except Exception as exc:
            if kwargs.get("verbose"):
                raise
            words = f"internal error: {exc!r}; run it again with -v for the traceback"
            code = _told(words, Exit.INTERNAL)
        raise typer.Exit(code)

    return run


def _told(sentence: str, code: Exit) -> int:
    sys.stderr.write(f"plimsoll: {sentence}\n")
    return code


def _settings(
    config: Path | None,
    profile: str | None,
    verbose: bool,
    log_file: Path | None,
    **flags: Any,
) -> "Settings":
    # pydantic-settings costs a tenth of a second, which --help need not pay.
    from control import logs, settings

    logs.configure(verbose=verbose, file=log_file)
    return settings.load(flags, config=config, profile=profile)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"plimsoll {__version__}\n")
        raise typer.Exit(0)


@app.callback(invoke_without_command=True)
def screen(
    context: typer.Context,
    bootstrap_server: Bootstrap = None,
    allow_changes: AllowChanges = False,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Open the screen when no command is named."""
    if context.invoked_subcommand is None:
        _screen(
            bootstrap_server=bootstrap_server,
            allow_changes=allow_changes,
            config=config,
            profile=profile,
            log_file=log_file,
            verbose=verbose,
        )


@guarded
def _screen(
    *,
    bootstrap_server: str | None,
    allow_changes: bool,
    config: Path | None,
    profile: str | None,
    log_file: Path | None,
    verbose: bool,
) -> int:
    from control.commands.screen import show

    settings = _settings(
        config, profile, verbose, log_file, bootstrap_server=bootstrap_server
    )
    return show(settings, allow_changes=allow_changes)


@app.command()
@guarded
def status(
    *,
    bootstrap_server: Bootstrap = None,
    watch: Annotated[bool, typer.Option(help="Print again every few seconds.")] = False,
    output: Output = Form.TABLE,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
) -> int:
    """Show brokers, loads and how level they are."""
    from control.commands.status import show

    settings = _settings(
        config, profile, verbose, log_file, bootstrap_server=bootstrap_server
    )
    return show(settings, watch=watch, output=output)


@app.command()
@guarded
def plan(
    *,
    bootstrap_server: Bootstrap = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(help="Plan this recorded snapshot instead of a live cluster."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the plan here (.json, .json.gz).")
    ] = None,
    stock: Annotated[
        Path | None,
        typer.Option(help="Folder for stock reassignment JSON and its rollback."),
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option(help="Exit with 10 when moves are proposed.")
    ] = False,
    output: Output = Form.TABLE,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
) -> int:
    """Make a plan and say how good it is; changes nothing."""
    from control.commands.plan import make

    if snapshot is not None and bootstrap_server is not None:
        raise ConfigError(
            "--snapshot plans a recorded cluster and --bootstrap-server a live one; "
            "name one of them"
        )
    settings = _settings(
        config, profile, verbose, log_file, bootstrap_server=bootstrap_server
    )
    code = make(settings, snapshot, out=out, stock=stock, output=output)
    proposed = code == Exit.MOVES_PROPOSED and not detailed_exitcode
    return Exit.DONE if proposed else code


@app.command()
@guarded
def apply(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.")],
    *,
    bootstrap_server: Bootstrap = None,
    allow_changes: AllowChanges = False,
    dry_run: Annotated[
        bool, typer.Option(help="Print the requests that would be sent.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    output: Output = Form.TABLE,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
) -> int:
    """Carry out exactly this plan."""
    from control.commands.apply import carry_out

    settings = _settings(
        config, profile, verbose, log_file, bootstrap_server=bootstrap_server
    )
    return carry_out(
        settings,
        plan_file,
        allow_changes=allow_changes,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )


@app.command()
@guarded
def run(
    *,
    bootstrap_server: Bootstrap = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Approve plans within the limits.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="End when level, or after one run.")
    ] = False,
    limits: Annotated[
        str | None, typer.Option(help="Limits of --auto, by name.")
    ] = None,
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
) -> int:
    """Observe, plan, approve, apply: stay on and keep the cluster level."""
    from control.commands.run import keep_level

    settings = _settings(
        config, profile, verbose, log_file, bootstrap_server=bootstrap_server
    )
    return keep_level(
        settings,
        auto=auto,
        once=once,
        limits=limits,
        allow_changes=allow_changes,
        output=output,
    )


@app.command()
@guarded
def demo(
    *,
    headless: Annotated[
        bool, typer.Option("--headless", help="Approve by policy, without the screen.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the load.")] = 7,
    port: Annotated[
        int | None,
        typer.Option(help="First of the brokers' ports; by default free ones."),
    ] = None,
    quiet_s: Annotated[
        float, typer.Option(help="Seconds to watch that nothing moves afterwards.")
    ] = 60.0,
    output: Output = Form.TABLE,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
) -> int:
    """Start a local Kafka cluster, skew it, level it, and report."""
    from control.commands.demo import show

    settings = _settings(config, profile, verbose, log_file)
    return show(
        settings,
        headless=headless or not terminal.is_there(),
        seed=seed,
        port=port,
        quiet_s=quiet_s,
        output=output,
    )


def main() -> None:
    """The console script."""
    app()
