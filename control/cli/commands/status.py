"""`plimsoll status`: brokers, their loads and how balanced they are."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.exit_codes import Exit
from control.cli.invocation import with_overrides
from control.cli.options import Capacity, Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.settings.settings import Settings

WATCH_S: Final = 5.0
"""Time between two outputs of `--watch`."""


def status(
    *,
    settings: "Settings",
    watch: Annotated[bool, typer.Option(help="Print again every few seconds.")] = False,
    capacity: Capacity = None,
    output: Output = Form.TABLE,
) -> int:
    """Print the cluster once, or every `WATCH_S` seconds until Ctrl-C."""
    from control import compose
    from control.render.cluster_status import cluster_text
    from control.settings.capacity_table import capacities_of
    from control.tasks.task_cordons import cordon_notes
    from control.tasks.task_notes import open_task_notes
    from executor.journal.left_settings import left_settings
    from model.snapshot.snapshot import has_shared

    settings = with_overrides(settings, capacity=capacity)
    given = capacities_of(settings.capacities, settings.capacity_file)
    files = compose.task_files(settings)
    with compose.observer(settings, capacities=given) as collector:
        rebalancers: list[str] | None = None
        while True:
            snapshot = collector.wait()
            if rebalancers is None:
                shared = has_shared(snapshot)
                rebalancers = compose.rebalancers(settings, shared=shared)
            cluster_id = snapshot.header.cluster_id
            journal_dir = compose.journal_dir(settings)
            left = left_settings(journal_dir, cluster_id)
            left += cordon_notes(files, journal_dir, cluster_id)
            tasks = open_task_notes(files, cluster_id)
            sys.stdout.write(
                cluster_text(
                    snapshot,
                    settings.goals,
                    output,
                    now_ms=int(1000 * time.time()),
                    given=given,
                    silent=collector.silent,
                    replication=collector.replication(),
                    notes=[*rebalancers, *left, *tasks],
                    in_one_line=watch,
                )
            )
            sys.stdout.flush()
            if not watch:
                return Exit.DONE
            time.sleep(WATCH_S)
