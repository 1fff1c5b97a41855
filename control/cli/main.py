"""The command line. Heavy imports wait until a command needs them.

stdout is data, stderr is narration. Exit codes: 0 done, level already or no
improvement worth its cost; 1 internal error; 2 usage or configuration; 3 cluster not
reachable; 4 no feasible plan; 5 refused by a guardrail; 6 stopped or incomplete; 7 the
cluster changed since the plan; 10 moves proposed (with --detailed-exitcode); 130
interrupted.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli import (
    configuring,
    demonstrating,
    journaling,
    planning,
    recording,
    synthesising,
)
from control.cli.command_errors import guarded, is_full, output_lost
from control.cli.command_group import OUTPUT, Command, Commands, pass_options
from control.cli.options import (
    AllowChanges,
    Ascii,
    Bootstrap,
    Capacity,
    CommandConfig,
    Config,
    DryRun,
    LogFile,
    Output,
    Profile,
    RecordScreen,
    Shorten,
    SparkMaster,
    StandDown,
    Theme,
    Throttle,
    Verbose,
    Yes,
    consenting,
    sized,
    throttled,
    with_settings,
)
from control.cli.output import safe_streams
from control.cli.output_format import Form
from model import __version__

if TYPE_CHECKING:
    from control.settings.settings import Settings

EXIT_CODES = (__doc__ or "").partition("narration. ")[2]

app = typer.Typer(
    cls=Commands,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Keeps a Kafka cluster level: plans with a proof, explains, carries out.\n\n"
    "Without a command it opens the screen.",
    epilog=EXIT_CODES,
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"plimsoll {__version__}\n")
        raise typer.Exit(0)


@app.callback(invoke_without_command=True)
def screen(
    context: typer.Context,
    bootstrap_server: Bootstrap = None,
    command_config: CommandConfig = None,
    allow_changes: AllowChanges = False,
    capacity: Capacity = None,
    ascii_only: Ascii = False,
    theme: Theme = None,
    spark_master: SparkMaster = None,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
    record: RecordScreen = None,
    play: Annotated[
        Path | None,
        typer.Option("--play", metavar="FILE", help="Show a recorded screen."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=1000,
            metavar="FACTOR",
            help="With --play: how much faster.",
        ),
    ] = 1.0,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Open the screen when no command is named."""
    if context.invoked_subcommand is not None:
        pass_options(context)
    else:
        _screen(
            bootstrap_server=bootstrap_server,
            command_config=command_config,
            allow_changes=allow_changes,
            capacity=capacity,
            ascii_only=ascii_only,
            theme=theme,
            spark_master=spark_master,
            config=config,
            profile=profile,
            log_file=log_file,
            verbose=verbose,
            record=record,
            play=play,
            speed=speed,
        )


@guarded
@with_settings
def _screen(
    *,
    settings: "Settings",
    allow_changes: bool,
    capacity: Path | None,
    record: Path | None,
    play: Path | None,
    speed: float,
) -> int:
    from control.cli.commands import screen as shown

    if play is not None:
        return shown.play(play, settings, speed=speed)
    settings = sized(settings, capacity)
    return shown.show(settings, allow_changes=allow_changes, record=record)


@app.command(cls=Command)
@guarded
@with_settings
def status(
    *,
    settings: "Settings",
    watch: Annotated[bool, typer.Option(help="Print again every few seconds.")] = False,
    capacity: Capacity = None,
    output: Output = Form.TABLE,
) -> int:
    """Show brokers, loads and how level they are."""
    from control.cli.commands.status import show

    return show(sized(settings, capacity), watch=watch, output=output)


@app.command(cls=Command)
@guarded
@with_settings
def info(
    *,
    settings: "Settings",
    capacity: Capacity = None,
    output: Output = Form.TABLE,
) -> int:
    """Tell what was found to measure a cluster by, and what each load is known by."""
    from control.cli.commands.info import show

    return show(sized(settings, capacity), output=output)


for name, command in {
    **planning.COMMANDS,
    **recording.COMMANDS,
    **synthesising.COMMANDS,
    **demonstrating.COMMANDS,
}.items():
    app.command(name, cls=Command)(guarded(command))

app.add_typer(journaling.journal, name="journal")


app.add_typer(configuring.GROUP, name="config")


@app.command(cls=Command)
@guarded
@with_settings
def apply(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.")],
    *,
    settings: "Settings",
    allow_changes: AllowChanges = False,
    throttle: Throttle = None,
    stand_down_balancer: StandDown = False,
    shorten_segments: Shorten = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> int:
    """Carry out exactly this plan."""
    from control.cli.commands.apply import attempt

    return attempt(
        consenting(
            throttled(settings, throttle),
            stand_down_balancer=stand_down_balancer,
            shorten_segments=shorten_segments,
        ),
        plan_file,
        allow_changes=allow_changes,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )


@app.command(cls=Command)
@guarded
@with_settings
def rollback(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="The run, or the beginning of its id; by default the newest.",
        ),
    ] = None,
    *,
    settings: "Settings",
    allow_changes: AllowChanges = False,
    throttle: Throttle = None,
    stand_down_balancer: StandDown = False,
    shorten_segments: Shorten = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> int:
    """Bring back the assignment from before a run."""
    from control.cli.commands.apply import roll_back

    return roll_back(
        consenting(
            throttled(settings, throttle),
            stand_down_balancer=stand_down_balancer,
            shorten_segments=shorten_segments,
        ),
        run,
        allow_changes=allow_changes,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )


@app.command(cls=Command)
@guarded
@with_settings
def cleanup(
    *,
    settings: "Settings",
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """Take back settings that runs which were cut off have left."""
    from control.cli.commands.apply import clean_up

    return clean_up(settings, allow_changes=allow_changes, output=output)


@app.command(cls=Command)
@guarded
@with_settings
def elect(
    *,
    settings: "Settings",
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC",
            help="Only this topic's partitions; may be repeated.",
        ),
    ] = None,
    election: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Only the partitions of this kafka-leader-election JSON.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write that JSON here instead of electing.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    allow_changes: AllowChanges = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> int:
    """Elect preferred leaders where another replica leads."""
    from control.cli.commands.elect_leaders import hold

    return hold(
        settings,
        topic,
        file=election,
        out=out,
        allow_changes=allow_changes,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )


@app.command(cls=Command)
@guarded
@with_settings
def run(
    *,
    settings: "Settings",
    auto: Annotated[
        bool, typer.Option("--auto", help="Approve plans within the limits.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Exit once balanced, or after one run.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Resume the most recent run first. Without --auto, exit when it "
            "finishes.",
        ),
    ] = False,
    limits: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Limits of --auto: conservative, eager, or a [limits.NAME] table.",
        ),
    ] = None,
    capacity: Capacity = None,
    throttle: Throttle = None,
    stand_down_balancer: StandDown = False,
    shorten_segments: Shorten = False,
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """Observe, plan, approve, apply: stay on and keep the cluster level."""
    from control.cli.commands.run import keep_level

    settings = sized(settings, capacity)
    return keep_level(
        consenting(
            throttled(settings, throttle),
            stand_down_balancer=stand_down_balancer,
            shorten_segments=shorten_segments,
        ),
        auto=auto,
        once=once,
        resume=resume,
        limits=limits,
        allow_changes=allow_changes,
        output=output,
    )


def main() -> None:
    """The console script."""
    with safe_streams():
        try:
            app()
        except OSError as exc:
            # Help and versions are printed outside of any command.
            if not is_full(exc):
                raise
            sys.exit(output_lost(exc))
