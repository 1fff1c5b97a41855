"""The commands that show how plimsoll is set up.

Heavy imports wait until a command needs them.
"""

from typing import Final

import typer

from control.cli.command_errors import guarded
from control.cli.command_group import Command, Commands
from control.cli.options import (
    Ascii,
    Bootstrap,
    CommandConfig,
    Config,
    LogFile,
    Output,
    Profile,
    SparkMaster,
    Theme,
    Verbose,
    looks,
)
from control.cli.output_format import Form


def show(
    *,
    bootstrap_server: Bootstrap = None,
    command_config: CommandConfig = None,
    output: Output = Form.TABLE,
    spark_master: SparkMaster = None,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
    ascii_only: Ascii = False,
    theme: Theme = None,
) -> int:
    """Show every setting with its value and where it comes from."""
    from control.cli import logs
    from control.cli.commands.config import show as shown

    logs.configure(verbose=verbose, file=log_file)
    flags = {
        "bootstrap_server": bootstrap_server,
        "client_properties": command_config,
        "spark_master": spark_master,
        "screen.ascii": ascii_only or None,
        "screen.theme": theme,
    }
    return shown(flags, config=config, profile=profile, output=output)


GROUP: Final = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show how plimsoll is set up.",
)
GROUP.callback()(looks)
GROUP.command("show", cls=Command)(guarded(show))
