"""Cruise Control's API as a part of the service: what it is made of, and the loop it shows."""

import math
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control.cruise_control.anomalies import AnomalyWatch
from control.cruise_control.api import BLOCK_S, CruiseControlApi
from control.cruise_control.dashboard_metrics import DashboardMetrics
from control.cruise_control.executing import Execution, ExecutionParts, Following
from control.cruise_control.goal_properties import NO_PROPERTIES, GoalProperties
from control.cruise_control.kept_plans import KeptPlans
from control.cruise_control.planning import Planning
from control.cruise_control.shared_folder import SharedBucket, SharedFolder
from control.cruise_control.state_documents import Ordered, StateSources
from control.cruise_control.user_tasks import FOLDER, UserTasks
from control.loop.view import LoopView, Mode
from control.service.service_state import ServiceState
from control.settings.trigger_table import TriggerTable
from model.closing import Closing

if TYPE_CHECKING:
    from control.loop.loop import Loop


CATCH_UP_S: Final = 15.0
"""Seconds that an order waits for what the last leader has left."""
REFRESH_S: Final = 2.0
"""Seconds between two looks at what the service that leads has written."""


class CruiseControl(Closing):
    """The API over one loop after another; any thread may call."""

    def __init__(
        self,
        state_dir: Path,
        service: ServiceState,
        *,
        execution: ExecutionParts | None = None,
        named: GoalProperties = NO_PROPERTIES,
        bucket: SharedBucket | None = None,
        clock: Callable[[], float] = time.time,
        block_s: float = BLOCK_S,
    ) -> None:
        """execution: None where clients may only read and plan. named: the goals of requests.
        bucket: keeps user tasks and plans for the services that stand by; None without those.

        clock: seconds since the epoch. block_s: as for the API."""
        self._service = service
        self._loop: Loop | None = None
        self._anomalies = AnomalyWatch()
        self._shared = None if bucket is None else SharedFolder(state_dir / FOLDER, bucket)
        self._refreshed_s = -math.inf
        self._one = threading.Lock()
        """Guards whether this service writes."""
        self._stood_by = 0
        """Views that were seen while another service led."""
        self._caught_up = threading.Event()
        """Set once what the last leader has left has been read, while this service leads."""
        if self._shared is None:
            self._caught_up.set()
        written = (lambda _path: None) if self._shared is None else self._shared.put
        self.tasks = UserTasks(state_dir, clock, written)
        sources = StateSources(
            service=service,
            anomalies=self._anomalies,
            triggers=self._triggers,
            mode=lambda: Mode.READ_ONLY if self._loop is None else self._loop.settings.mode,
            ordered=self._ordered,
        )
        self._kept = kept = KeptPlans(state_dir, written)
        self._planning = Planning(kept, service.now_ms, named, service.solved)
        orders = Execution(
            execution, self.tasks, kept, self._planning, service.now_ms, self._following()
        )
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
        if view.snapshot is None:
            return
        cluster_id = view.snapshot.header.cluster_id
        if self._shared is not None:
            self._follow(self._shared, cluster_id)
        if self._caught_up.is_set():
            self.api.loads_known()
            self.api.settle(cluster_id)

    def _follow(self, shared: SharedFolder, cluster_id: str) -> None:
        """Read what the service that leads has written, or begin to write once this one leads."""
        shared.of_cluster(cluster_id)
        leads = self._leads()
        if not leads:
            with self._one:
                self._stood_by += 1
                shared.writes = False
                self._caught_up.clear()
            self.api.stand_by()
        now_s = time.monotonic()
        if now_s - self._refreshed_s < REFRESH_S:
            return
        self._refreshed_s = now_s
        if self._caught_up.is_set():
            shared.retry()
            return

        began = self._stood_by

        def changed(names: Collection[str]) -> None:
            self.tasks.reload(shared.folder / name for name in names if ".task." in name)
            with self._one:
                # Another service may have led since the objects were listed, or lead now.
                if leads and began == self._stood_by and self._leads():
                    self._kept.forget_old()
                    shared.lead()
                    self._caught_up.set()

        shared.refresh(changed)

    def _leads(self) -> bool:
        standing = self._service.standing
        return standing is None or standing.leads

    def _following(self) -> Following:
        """What an order needs to know of the archive."""
        flush = (lambda: None) if self._shared is None else self._shared.flush
        return Following(catches_up=lambda: self._caught_up.wait(CATCH_UP_S), flush=flush)

    def close(self) -> None:
        """End the threads of the API."""
        self.api.close()
        if self._shared is not None:
            self._shared.close()

    def _triggers(self) -> TriggerTable:
        return TriggerTable() if self._loop is None else self._loop.policy.triggers

    def _ordered(self, plan_hash: str) -> Ordered:
        """The user task that ordered the run of a plan."""
        for task in reversed(self.tasks.all()):
            if task.plan_hash == plan_hash:
                reason = dict(task.parameters).get("reason", "")
                return Ordered(task_id=task.task_id, client=task.address, reason=reason)
        return Ordered()
