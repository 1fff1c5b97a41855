"""`plimsoll explain`: why a plan makes a move, and why it does not make another."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output, PlanFile
from control.cli.output import Form
from model.errors import ConfigError, GuardrailRefused, PlanOutdated

if TYPE_CHECKING:
    from control.cli.invocation import Origin
    from control.settings.settings import Settings


def explain(
    plan_file: PlanFile,
    move: Annotated[
        str | None,
        typer.Argument(
            metavar="MOVE", help="A move's number in the plan, or a partition: orders-7."
        ),
    ] = None,
    *,
    to: Annotated[
        int | None,
        typer.Option(
            metavar="BROKER", help="Explain why the partition is not moved to this broker."
        ),
    ] = None,
    settings: "Settings",
    origin: "Origin",
    output: Output = Form.TABLE,
) -> int:
    """Explain a plan, one of its moves, or a move that it does not make.

    Raises
    ------
    ConfigError
        A file cannot be used, or no such move, partition or broker is known.
    PlanOutdated
        The plan was made for another cluster state.
    GuardrailRefused
        The plan breaks its own rules.
    """
    from control.cli.input_source import snapshot_of
    from control.cli.progress_line import CAUSES, shown
    from control.render.explanation import Case, explanation
    from model.evaluate import evaluate
    from model.plan.plan import read_plan

    if to is not None and move is None:
        raise ConfigError("--to needs a partition; name one, as in orders-7 --to 4")
    plan = read_plan(plan_file)
    snapshot = snapshot_of(settings, origin)
    if snapshot.fingerprint != plan.snapshot_fingerprint:
        raise PlanOutdated(
            f"{plan_file} is for another cluster state: brokers or assignment differ; "
            "name the snapshot that it was made from, or plan again"
        )
    if broken := evaluate(snapshot, plan.goals, plan.moves, plan.replication).violations:
        raise GuardrailRefused(
            f"{plan_file} breaks rules of its own goals, first {broken[0].words}; "
            "plan again, or list all of them with verify"
        )
    case = Case(plan=plan, snapshot=snapshot)
    text = shown(lambda observer: explanation(case, move, to, output, observer), kept=CAUSES)
    sys.stdout.write(text)
    return Exit.DONE
