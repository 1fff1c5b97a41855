"""Clients of Cruise Control's API that send and read what Strimzi's operators do.

Requests are those that were recorded of its client (strimzi-kafka-operator after 1.2.0); what is
read from the answers, and what follows, is that of `CruiseControlApiImpl`,
`KafkaRebalanceAssemblyOperator`, `KafkaRebalanceConfigMapUtils`, `KafkaRebalanceProgressUtils` and
of the topic operator's `CruiseControlClientImpl`. Each answer is compared with Cruise Control's
OpenAPI description, too.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tests.support.control.cruise_bench import CruiseClient, Reply
from tests.support.control.cruise_schema import check

USER_TASKS: Final = ("Active", "InExecution", "Completed", "CompletedWithError")
MOVING: Final = (
    "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
    "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
    "LEADER_MOVEMENT_TASK_IN_PROGRESS",
)
STATES: Final = (
    "NO_TASK_IN_PROGRESS",
    "STARTING_EXECUTION",
    *MOVING,
    "STOPPING_EXECUTION",
    "INITIALIZING_PROPOSAL_EXECUTION",
    "GENERATING_PROPOSALS_FOR_EXECUTION",
)
_UTC: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
_LOADS: Final = {
    "Leaders": int,
    "Replicas": int,
    "CpuPct": float,
    "DiskPct": float,
    "DiskMB": float,
    "NwOutRate": float,
    "LeaderNwInRate": float,
    "FollowerNwInRate": float,
    "PnwOutRate": float,
}


class Condition(StrEnum):
    """The state of a `KafkaRebalance`."""

    NEW = "New"
    PENDING = "PendingProposal"
    PROPOSED = "ProposalReady"
    REBALANCING = "Rebalancing"
    READY = "Ready"
    STOPPED = "Stopped"
    NOT_READY = "NotReady"


@dataclass
class Rebalance:
    """One `KafkaRebalance`, which the cluster operator reconciles."""

    client: CruiseClient
    endpoint: str
    parameters: str
    """After `skip_hard_goal_check`, or all but the first ones of `remove_disks`."""
    condition: Condition = Condition.NEW
    session: str = ""
    """The User-Task-ID; empty without one."""
    summary: dict[str, Any] = field(default_factory=dict)
    loads: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """By broker: before and after."""
    why: str = ""

    def reconcile(self) -> None:
        """What the operator does every two minutes, and after each change."""
        if self.condition is Condition.NEW or (
            self.condition is Condition.PENDING and not self.session
        ):
            self._request(dry=True)
        elif self.condition is Condition.PENDING:
            self._poll(dry=True)
        elif self.condition is Condition.REBALANCING:
            self.progress()
            self._poll(dry=False)

    def approve(self) -> None:
        """As the annotation `strimzi.io/rebalance: approve` does."""
        assert self.condition is Condition.PROPOSED, self.condition
        self._request(dry=False)

    def stop(self) -> None:
        """As the annotation `strimzi.io/rebalance: stop` does."""
        reply = self._post("stop_proposal_execution?json=true")
        assert reply.status == 200, reply.text
        check(reply.json, "stopProposalResult", "StopProposalResult")
        self.condition = Condition.STOPPED

    def progress(self) -> tuple[int, int]:
        """Megabytes moved and to be moved, as the operator shows them; zeros while none are."""
        reply = self.client.get("state?verbose=false&json=true", **JAVA)
        assert reply.status == 200, reply.text
        check(reply.json, "cruiseControlState", "CruiseControlState")
        executor = reply.json["ExecutorState"]
        assert executor["state"] in STATES
        if executor["state"] not in MOVING:
            return 0, 0
        finished, total = executor["finishedDataMovement"], executor["totalDataToMove"]
        assert isinstance(finished, int)
        assert isinstance(total, int)
        assert 0 <= finished <= total
        assert _UTC.search(executor["triggeredTaskReason"])
        return finished, total

    def _post(self, query: str) -> Reply:
        return self.client.post(query, **JAVA)

    def _request(self, *, dry: bool) -> None:
        dry_run = "true" if dry else "false"
        path = f"{self.endpoint}?json=true&dryrun={dry_run}"
        if self.endpoint != "remove_disks":
            path += "&verbose=true&skip_hard_goal_check=false"
        reply = self._post(f"{path}&{self.parameters}")
        found = reply.json
        if reply.status in (200, 201) and "errorMessage" not in found:
            check(found, "optimizationResult", "OptimizationResult")
            self.session = reply.task_id
            self._take(found)
            self.condition = Condition.PROPOSED if dry else Condition.REBALANCING
        elif reply.status == 202 and "progress" in found:
            check(found, "progressResult", "ProgressResult")
            self.session = reply.task_id
            self.condition = Condition.PENDING if dry else Condition.REBALANCING
        else:
            check(found, "errorResponse", "ErrorResponse")
            self.why = found["errorMessage"]
            waits = reply.status == 500 and "NotEnoughValidWindowsException" in self.why
            self.condition = Condition.PENDING if waits else Condition.NOT_READY
            self.session = ""

    def _poll(self, *, dry: bool) -> None:
        reply = self.client.get(
            f"user_tasks?json=true&fetch_completed_task=true&user_task_ids={self.session}", **JAVA
        )
        assert reply.status == 200, reply.text
        check(reply.json, "userTaskState", "UserTaskState")
        tasks = reply.json["userTasks"]
        if not tasks:
            self.condition, self.session = Condition.NEW, ""
            return
        status = tasks[0]["Status"]
        assert status in USER_TASKS
        if status == "CompletedWithError":
            self.condition = Condition.NOT_READY
        elif status != "Active":
            found = json.loads(tasks[0]["originalResponse"])
            self._take(found)
            if dry and self.loads:
                self.condition = Condition.PROPOSED
            elif not dry and status == "Completed":
                self.condition = Condition.READY

    def _take(self, found: Any) -> None:
        self.summary = found["summary"]
        before, after = (
            {b["Broker"]: b for b in found[f"load{when}Optimization"]["brokers"]}
            for when in ("Before", "After")
        )
        assert before.keys() == after.keys(), "Broker data was missing"
        for broker in (*before.values(), *after.values()):
            for name, kind in _LOADS.items():
                assert isinstance(broker[name], kind | int)
        self.loads = {number: (before[number], after[number]) for number in before}


JAVA: Final = {
    # HTTP/2 is offered in the clear, as Java's client does.
    "Connection": "Upgrade, HTTP2-Settings",
    "Upgrade": "h2c",
    "HTTP2_Settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    "User_Agent": "Java-http-client/17.0.13",
}


@dataclass
class TopicOperator:
    """Changes replication factors."""

    client: CruiseClient

    def replicate(self, topics: Mapping[int, str]) -> Reply:
        """Request changes, all in one request.

        topics: names joined by `|`, by their replication factor.
        """
        groups = {str(replicas): names for replicas, names in topics.items()}
        body = {"replication_factor": {"topic_by_replication_factor": groups}}
        path = "topic_configuration?skip_rack_awareness_check=&dryrun=false&json=true"
        return self.client.ask(
            "POST",
            f"/kafkacruisecontrol/{path}",
            body=json.dumps(body).encode(),
            Content_Type="application/json",
            **JAVA,
        )

    def statuses(self, *tasks: str) -> dict[str, str]:
        """The status of each task that is known."""
        listed = ",".join(tasks)
        reply = self.client.get(
            f"user_tasks?user_task_ids={listed}&fetch_completed_task=false&json=true", **JAVA
        )
        assert reply.status == 200, reply.text
        check(reply.json, "userTaskState", "UserTaskState")
        return {task["UserTaskId"]: task["Status"] for task in reply.json["userTasks"]}
