"""`plimsoll topic`: another replication factor."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings
    from executor.executor import Executor
    from model.plan.plan import Plan

MOST_REPLICAS = 1_000
"""Replicas that no topic has."""


def set_replicas(
    topics: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC", help="Names, or regular expressions that cover whole names."
        ),
    ],
    replicas: Annotated[
        int,
        typer.Argument(
            metavar="REPLICAS", min=1, max=MOST_REPLICAS, help="Replicas of each partition."
        ),
    ],
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Plan other replication factors, ask, execute the plan and report.

    Raises GuardrailRefused where it is impossible, not allowed, or not confirmed, and ConfigError
    where no topic has the name.
    """
    import contextlib

    from control import compose
    from control.cli.input_source import snapshot_of
    from control.cli.invocation import Origin
    from control.cli.plan_execution import execute, refuse_read_only
    from control.cli.task_work import refuse_unasked
    from control.planning.replication_request import least_replication, plan_replication, topics_of
    from control.planning.validate import refuse_broken

    refuse_read_only(
        execution.allow_changes or execution.dry_run,
        "change replication factors, or --dry-run to see the plan",
    )
    if not execution.dry_run:
        refuse_unasked(execution)
    snapshot = snapshot_of(settings, Origin())
    named = topics_of(snapshot, topics)
    plan = plan_replication(snapshot, settings.goals, settings.solve.limits, named, replicas)
    if plan is None:
        sys.stderr.write(f"plimsoll: {_already(len(named), replicas)}; nothing to do\n")
        return Exit.DONE
    refuse_broken(snapshot, plan)
    with contextlib.closing(compose.executor(settings)) as executor:
        if execution.dry_run:
            least = least_replication(snapshot, named, replicas)
            return _dry_run(executor, settings, plan, least, output)
        return execute(executor, settings, plan, execution, output)


def _already(topics: int, replicas: int) -> str:
    from model.units import count_text

    of = "the topic" if topics == 1 else f"{topics:,} topics"
    return f"every partition of {of} has {count_text(replicas, 'replica')}"


def _dry_run(
    executor: "Executor", settings: "Settings", plan: "Plan", least: int | None, output: Form
) -> int:
    """Print the plan, its waves, peaks and duration, and its requests as JSON.

    least: no plan for the request copies fewer bytes.
    """
    from control.cli.output_types import ReplicationAnswer
    from control.cli.plan_execution import rehearse
    from control.planning.least_bytes import bound_sentence
    from control.render.text import answer_text

    rehearsal = rehearse(executor, settings, plan)
    answer = ReplicationAnswer.of(
        topics=plan.replication,
        added=sum(len(m.added) for m in plan.moves),
        removed=sum(len(m.removed) for m in plan.moves),
        bytes_to_copy=plan.bytes_to_copy,
        least_bytes=least,
        **rehearsal.figures,
    )
    bound = bound_sentence("does so", plan.bytes_to_copy, least)
    shown = _summary(plan) + (f"{bound}\n" if bound else "") + rehearsal.text
    sys.stdout.write(answer_text(answer, lambda _: shown, output))
    return Exit.DONE


def _summary(plan: "Plan") -> str:
    """A line for each topic: `orders: 3 replicas instead of 1, in 12 partitions`."""
    from collections import Counter

    from model.units import bytes_text, count_text

    changed = Counter(m.topic for m in plan.moves)
    lines = [
        f"{change.topic}: {count_text(change.after, 'replica')} instead of {change.before}, in "
        f"{count_text(changed[change.topic], 'partition')}"
        for change in plan.replication
    ]
    return "\n".join([*lines, f"{bytes_text(plan.bytes_to_copy)} to copy"]) + "\n"
