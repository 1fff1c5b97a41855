"""Cruise Control's API as a part of the service: what it is made of, and the loop it shows."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from control.cruise_control.anomalies import AnomalyWatch
from control.cruise_control.api import BLOCK_S, CruiseControlApi
from control.cruise_control.dashboard_metrics import DashboardMetrics
from control.cruise_control.executing import Execution, ExecutionParts
from control.cruise_control.goal_properties import NO_PROPERTIES, GoalProperties
from control.cruise_control.kept_plans import KeptPlans
from control.cruise_control.planning import Planning
from control.cruise_control.state_documents import Ordered, StateSources
from control.cruise_control.user_tasks import UserTasks
from control.loop.view import LoopView, Mode
from control.service.service_state import ServiceState
from control.settings.trigger_table import TriggerTable
from model.closing import Closing

if TYPE_CHECKING:
    from control.loop.loop import Loop


class CruiseControl(Closing):
    """The API over one loop after another; any thread may call."""

    def __init__(
        self,
        state_dir: Path,
        service: ServiceState,
        *,
        execution: ExecutionParts | None = None,
        named: GoalProperties = NO_PROPERTIES,
        clock: Callable[[], float] = time.time,
        block_s: float = BLOCK_S,
    ) -> None:
        """execution: None where clients may only read and plan. named: the goals of requests.

        clock: seconds since the epoch. block_s: as for the API."""
        self._service = service
        self._loop: Loop | None = None
        self._anomalies = AnomalyWatch()
        self.tasks = UserTasks(state_dir, clock)
        sources = StateSources(
            service=service,
            anomalies=self._anomalies,
            triggers=self._triggers,
            mode=lambda: Mode.READ_ONLY if self._loop is None else self._loop.settings.mode,
            ordered=self._ordered,
        )
        kept = KeptPlans(state_dir)
        self._planning = Planning(kept, service.now_ms, named)
        orders = Execution(execution, self.tasks, kept, self._planning, service.now_ms)
        self.api = CruiseControlApi(sources, self.tasks, self._planning, orders, block_s=block_s)
        self.metrics = DashboardMetrics(sources, self.api.requests)
        """Under Cruise Control's names."""

    def attach(self, loop: "Loop") -> None:
        """Show this loop from now on."""
        self._loop = self._planning.loop = loop
        loop.subscribe(self.see)

    def see(self, view: LoopView) -> None:
        """Take note of a view of the loop."""
        self._anomalies.see(view, self._service.goals, self._triggers())
        if view.snapshot is not None:
            self.api.loads_known()
            self.api.settle(view.snapshot.header.cluster_id)

    def close(self) -> None:
        """End the threads of the API."""
        self.api.close()

    def _triggers(self) -> TriggerTable:
        return TriggerTable() if self._loop is None else self._loop.policy.triggers

    def _ordered(self, plan_hash: str) -> Ordered:
        """The user task that ordered the run of a plan."""
        for task in reversed(self.tasks.all()):
            if task.plan_hash == plan_hash:
                reason = dict(task.parameters).get("reason", "")
                return Ordered(task_id=task.task_id, client=task.address, reason=reason)
        return Ordered()
