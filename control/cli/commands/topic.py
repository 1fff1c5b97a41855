"""`plimsoll topic`: another replication factor."""

from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings
    from control.tasks.broker_task import BrokerTask
    from executor.executor import Executor
    from model.plan.plan import Plan
    from model.snapshot.snapshot import Snapshot

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
    """Request other replication factors, or continue it, and work on it to its end.

    Raises GuardrailRefused where it is impossible, not allowed, or not confirmed, and ConfigError
    where no topic has the name.
    """
    from control.cli.console import operator
    from control.cli.task_work import now_ms, request
    from control.planning.replication_request import topics_of
    from control.tasks.broker_task import Operation
    from control.tasks.task_request import TaskRequest

    def asked(snapshot: "Snapshot") -> TaskRequest:
        return TaskRequest(
            operation=Operation.SET_REPLICAS,
            brokers=(),
            topics=topics_of(snapshot, topics),
            replicas=replicas,
            by=operator(),
            at_ms=now_ms(),
        )

    return request(settings, "change replication factors", asked, execution, output, _dry_run)


def _dry_run(
    settings: "Settings",
    snapshot: "Snapshot",
    task: "BrokerTask",
    execution: "ExecutionOptions",
    output: Form,
) -> int:
    """Print the next plan of a task."""
    from functools import partial

    from control.cli.output_types import ReplicationAnswer
    from control.cli.task_work import DryRun, dry_run
    from control.planning.least_bytes import bound_sentence
    from control.planning.replication_request import racks_of
    from control.tasks.operations import idle_text
    from control.tasks.replication_factor import changing, crowded, least

    del execution

    def find(_executor: "Executor") -> DryRun | str:
        plan, fewest = changing(task, snapshot, settings.goals), least(task, snapshot)
        if plan is None:
            return idle_text(task)
        racks, replicas = racks_of(snapshot, settings.goals), task.replicas or 0
        answer = partial(
            ReplicationAnswer.of,
            racks=racks,
            beyond_racks=0 if racks is None else max(0, replicas - racks),
            topics=plan.replication,
            added=sum(len(m.added) for m in plan.moves),
            removed=sum(len(m.removed) for m in plan.moves),
            bytes_to_copy=plan.bytes_to_copy,
            least_bytes=fewest,
        )
        crowds = crowded(task, snapshot, settings.goals)
        bound = bound_sentence("does so", plan.bytes_to_copy, fewest)
        text = "\n".join((_summary(plan), *filter(None, (bound, crowds))))
        return DryRun(plan=plan, answer=answer, text=lambda _: text)

    return dry_run(settings, find, output)


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
    return "\n".join([*lines, f"{bytes_text(plan.bytes_to_copy)} to copy"])
