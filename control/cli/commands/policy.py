"""`plimsoll policy check`: what a policy of `run --auto` allows, in words."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.completion import limit_names
from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import PolicyAnswer
    from control.settings.settings import Settings


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A configuration file (TOML) with limits.")
    ],
    *,
    limits: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=limit_names,
            help="Only these limits, which may be built in; by default all of the file.",
        ),
    ] = None,
    output: Output = Form.TABLE,
) -> int:
    """Say what each policy of a file allows; USAGE if one can never act or has no bounds.

    Raises ConfigError where the file cannot be used or has no limits.
    """
    from control.render.text import answer_text
    from control.settings.settings import load
    from model.printable import printable

    answer = _answer(load({}, config=file), file, limits)
    sys.stdout.write(answer_text(answer, _text, output))
    faults = [f"{each.limits}: {fault}" for each in answer.policies for fault in each.faults]
    for fault in faults:
        sys.stderr.write(f"plimsoll: {printable(f'{file}: limits.{fault}')}\n")
    return Exit.USAGE if faults else Exit.DONE


def _answer(settings: "Settings", file: Path, limits: str | None) -> "PolicyAnswer":
    from control.cli.output_types import LimitsAnswer, PolicyAnswer
    from control.render.policy_text import allowances
    from control.settings.auto_limits import limits_named
    from control.settings.auto_policy import policy_faults
    from control.settings.settings import auto_policy
    from model.errors import ConfigError

    names = sorted(settings.limits) if limits is None else [limits]
    if not names:
        raise ConfigError(
            f"{file} has no [limits.NAME], so that nothing bounds --auto; add one, or give "
            "--limits conservative"
        )
    found, now_s = [], time.time()
    for name in names:
        policy = auto_policy(settings, limits_named(name, settings.limits))
        faults = policy_faults(policy, now_s)
        allows = allowances(policy, now_s)
        found.append(LimitsAnswer.of(limits=name, allows=allows, faults=faults))
    return PolicyAnswer.of(policies=found)


def _text(answer: "PolicyAnswer") -> str:
    return "\n".join(
        f"limits {each.limits}:\n" + "".join(f"  {line}\n" for line in each.allows)
        for each in answer.policies
    )
