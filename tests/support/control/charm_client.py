"""A client of Cruise Control's API that sends and reads what Canonical's Charmed Kafka does.

Requests and what is read are those of `common/single_kernel_kafka/managers/balancer.py`
(canonical/kafka-operator, August 2026): basic authentication, `json=True`, and the whole list of
user tasks instead of one. Each answer is compared with Cruise Control's OpenAPI description, too.
"""

import base64
from dataclasses import dataclass
from typing import Any, Final

from tests.support.control.cruise_bench import CruiseClient, Reply
from tests.support.control.cruise_schema import check

MODES: Final = {"full": "rebalance", "add": "add_broker", "remove": "remove_broker"}
"""The endpoint of each mode of the action `rebalance`."""
AGENT: Final = {"User_Agent": "python-requests/2.32.3", "Accept": "*/*"}


@dataclass
class Charm:
    """The balancer of a unit."""

    client: CruiseClient
    login: str
    """`NAME:PASSWORD`."""

    def monitoring(self) -> bool:
        """Whether metrics are collected."""
        return bool(self._state()["MonitorState"]["state"] == "RUNNING")

    def executing(self) -> bool:
        """Whether replicas are being moved."""
        return bool(self._state()["ExecutorState"]["state"] != "NO_TASK_IN_PROGRESS")

    def ready(self) -> bool:
        """Whether there are windows, and all partitions in them."""
        monitor = self._state()["MonitorState"]
        return all(
            (
                monitor["numMonitoredWindows"],
                monitor["numValidPartitions"],
                monitor["numValidPartitions"] == monitor["numTotalPartitions"],
            )
        )

    def rebalance(self, mode: str, *, dryrun: bool, broker: int | None = None) -> tuple[Any, str]:
        """Request a plan or its execution; the answer, and the id of its user task."""
        query = f"{MODES[mode]}?json=True&dryrun={dryrun}"
        if broker is not None:
            query += f"&brokerid={broker}"
        reply = self._ask("POST", query)
        assert reply.status in (200, 202), reply.text
        name = "ProgressResult" if reply.status == 202 else "OptimizationResult"
        check(reply.json, f"{name[0].lower()}{name[1:]}", name)
        return reply.json, reply.task_id

    def status(self, task_id: str) -> str:
        """The status of a user task, looked for in all of them."""
        reply = self._ask("GET", "user_tasks?json=True")
        assert reply.status == 200, reply.text
        check(reply.json, "userTaskState", "UserTaskState")
        (found,) = (t["Status"] for t in reply.json["userTasks"] if t["UserTaskId"] == task_id)
        return str(found)

    def _state(self) -> Any:
        reply = self._ask("GET", "state?json=True&verbose=True")
        assert reply.status == 200, reply.text
        check(reply.json, "cruiseControlState", "CruiseControlState")
        return reply.json

    def _ask(self, method: str, query: str) -> Reply:
        found = base64.b64encode(self.login.encode()).decode()
        path = f"/kafkacruisecontrol/{query}"
        return self.client.ask(method, path, body=None, Authorization=f"Basic {found}", **AGENT)
