"""A service whose clients may execute, over a loop in this process, and with a steered executor."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from control.cruise_control.api import BLOCK_S
from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.executing import ExecutionParts
from control.loop.loop import Loop
from control.loop.view import Mode
from control.service.operator_actions import OperatorActions
from control.service.service_state import ServiceState
from control.settings.auto_limits import EAGER
from control.settings.trigger_table import Response, TriggerTable
from control.tasks.task_files import TaskFiles
from executor.journal.run_journal import RunJournal
from executor.timing import Timing
from model.plan.plan import Plan
from model.run import JournalEvent, RunReport
from model.snapshot.snapshot import Snapshot
from tests.control.service.test_operator_actions import SteeredExecutor
from tests.support.control.cruise_bench import CruiseClient, served
from tests.support.control.loop_parts import MB, CannedObserver, cluster, loop_parts, loop_settings
from tests.support.tui.terminals import LONG_S

UNEVEN = cluster([2] * 8, [MB] * 8)
OFF = TriggerTable.model_validate(
    {name: Response.OFF for name in TriggerTable.model_fields if name != "mode"}
)
"""Triggers with which `--auto` does nothing by itself."""


class JournallingExecutor(SteeredExecutor):
    """Journals its runs, so that what became of them can be read."""

    def execute(self, plan: Plan, **order: Any) -> RunReport:
        name = f"run-{len(self.plans) + 1}"
        journal = RunJournal(order["journal_dir"], plan, name, Timing())
        with contextlib.closing(journal):
            journal.write(JournalEvent.STARTED, planned=len(plan.moves), by="")
            report = super().execute(plan, **order)
            journal.write(JournalEvent.ENDED, state=report.state, reason=report.reason)
        return report


@dataclass
class Site:
    """A service whose clients may execute."""

    loop: Loop
    executor: SteeredExecutor
    observer: CannedObserver
    client: CruiseClient
    parts: CruiseControl
    actions: OperatorActions
    files: TaskFiles

    def statuses(self, endpoint: str = "rebalance") -> list[str]:
        """Of all user tasks of an endpoint, oldest first."""
        return [t.status.value for t in self.parts.tasks.all() if t.endpoint == endpoint]

    def until(self, accepts: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONG_S
        while not accepts():
            assert time.monotonic() < deadline
            time.sleep(0.02)


Start = Callable[..., Site]


@contextlib.contextmanager
def starting(tmp_path: Path) -> Iterator[Start]:
    """Gives a function that starts such a service; they end with the block."""
    with contextlib.ExitStack() as opened:

        def begin(
            snapshot: Snapshot = UNEVEN,
            triggers: TriggerTable = OFF,
            block_s: float = BLOCK_S,
            journals: bool = False,
            signed: Callable[[str], object] | None = None,
            resume: bool = False,
        ) -> Site:
            state, observer = ServiceState(), CannedObserver([snapshot])
            executor = JournallingExecutor() if journals else SteeredExecutor()
            settings = loop_settings(
                tmp_path / "journal",
                mode=Mode.AUTO,
                decisions_dir=tmp_path,
                triggers=triggers,
                resume=resume,
                limits=EAGER.model_copy(update={"confirm": 0.0, "pause": 0.0}),
            )
            loop = Loop(settings, loop_parts(observer, executor, signed=signed))
            state.begin(settings.goals, settings.tick_s)
            loop.subscribe(state.see)
            actions = OperatorActions(tmp_path, state)
            files = TaskFiles(tmp_path)
            execution = ExecutionParts(
                actions=actions, files=files, journal_dir=tmp_path / "journal"
            )
            parts = opened.enter_context(
                CruiseControl(tmp_path, state, execution=execution, block_s=block_s)
            )
            actions.attach(loop)
            parts.attach(loop)
            opened.callback(executor.finish.set)
            client = opened.enter_context(served(parts))
            opened.enter_context(loop)
            assert loop.wait(lambda v: v.snapshot is not None, LONG_S)
            return Site(loop, executor, observer, client, parts, actions, files)

        yield begin
