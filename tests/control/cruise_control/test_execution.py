"""Orders over Cruise Control's API: the plan of the dry run is executed, or the answer says why."""

import contextlib
import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from control.cruise_control import executing as execution_module
from control.cruise_control import planning
from control.cruise_control.answers import done
from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.executing import ORDER_VALID_S, STOPPED, Execution, outdated
from control.cruise_control.kept_plans import KeptPlans
from control.cruise_control.requests import ENDPOINTS, parsed
from control.cruise_control.user_tasks import TaskStatus, UserTask, UserTasks
from control.loop import questions
from control.service.audit_log import read_audit
from control.service.leadership import Standing
from control.service.operator_actions import Action, ActionRequest
from control.service.pause_file import PauseFile, ServicePause
from control.service.service_state import ServiceState
from control.settings.service_table import ListenAddress
from control.settings.trigger_table import TriggerTable
from control.tasks.broker_marks import BrokerMark, MarkState, change_marks, marked
from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.task_files import TaskFiles
from executor.journal.run_history import past_runs
from executor.journal.run_journal import RunJournal
from executor.timing import Timing
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.run import JournalEvent
from model.snapshot.snapshot import BrokerState
from solver.solve import solve
from tests.control.cli.test_serving import WAIT_S, Service
from tests.control.cli.test_simulated_service import journalled, service
from tests.control.cruise_control.test_dry_runs import result
from tests.control.service.test_operator_actions import ASKS, PEER
from tests.support.control.cruise_bench import CruiseClient, served
from tests.support.control.cruise_schema import check
from tests.support.control.cruise_site import UNEVEN, Start
from tests.support.control.loop_parts import MB, cluster, constrained, with_state
from tests.support.tui.terminals import LONG_S

DRY = "rebalance?json=true&dryrun=true&verbose=true"
ORDER = "rebalance?json=true&dryrun=false&verbose=true"
CLIENT_NAME = "cruise-control:127.0.0.1"


@dataclass
class Gate:
    """Lets plans wait while it is closed."""

    opened: threading.Event
    entered: threading.Event

    def close(self) -> None:
        self.opened.clear()
        self.entered.clear()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    found = Gate(threading.Event(), threading.Event())
    found.opened.set()

    def gated(*args: Any, **options: Any) -> Any:
        found.entered.set()
        assert found.opened.wait(LONG_S)
        return solve(*args, **options)

    monkeypatch.setattr(planning, "solve", gated)
    yield found
    found.opened.set()


def test_the_plan_of_the_dry_run_is_executed(start: Start, tmp_path: Path) -> None:
    site = start()
    shown = result(site.client, "POST", DRY).json
    ordered = result(site.client, "POST", f"{ORDER}&reason=uneven")
    assert ordered.status == 200, ordered.text
    assert ordered.json["proposals"] == shown["proposals"]
    assert site.loop.wait(lambda v: v.run is not None, LONG_S)
    found = site.client.get("state?json=true&substates=executor").json["ExecutorState"]
    check(found, "executorState", "ExecutorState")
    assert found["state"] == "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
    assert found["triggeredUserTaskId"] == ordered.task_id
    assert found["triggeredTaskReason"].startswith("uneven (Client: 127.0.0.1, Date: ")
    assert site.statuses() == ["Completed", "InExecution"]
    # A second order waits for nothing.
    second = result(site.client, "POST", f"{ORDER}&excluded_topics=x")
    assert (second.status, "OngoingExecutionException" in second.error) == (500, True)
    site.executor.finish.set()
    site.until(lambda: len(site.loop.reports) == 1)
    (plan,) = site.executor.plans
    task = site.parts.tasks.find(ordered.task_id)
    assert task is not None
    assert task.plan_hash == plan.hash
    records = [r for r in read_audit(tmp_path) if r.action == "execute"]
    assert {(r.by, r.plan_hash, r.via.value) for r in records} == {
        ("cruise-control:127.0.0.1", plan.hash, "cruise-control")
    }


def test_an_outdated_plan_is_not_replaced_by_another_one(start: Start) -> None:
    site = start()
    result(site.client, "POST", DRY)
    before = site.loop.view.snapshot
    site.observer.snapshots[:] = [cluster([2] * 7 + [1], [MB] * 8)]
    assert site.loop.wait(lambda v: v.snapshot is not before and v.snapshot is not None, LONG_S)
    moved = {
        int(p["topicPartition"]["partition"])
        for p in result(site.client, "POST", DRY).json["proposals"]
    }
    site.observer.snapshots[:] = [cluster([1 if n in moved else 2 for n in range(8)], [MB] * 8)]
    newest = site.loop.view.snapshot
    assert site.loop.wait(lambda v: v.snapshot is not newest, LONG_S)
    reply = result(site.client, "POST", ORDER)
    assert reply.status == 500
    assert re.search(r"the plan \w{12} of the dry run [\w-]{36} is outdated: orders-", reply.error)
    assert "request a dry run again" in reply.error
    assert site.executor.plans == []
    assert site.statuses()[-1] == "CompletedWithError"


def test_an_order_without_a_dry_run_is_planned_and_executed(start: Start) -> None:
    """As `cccli rebalance` without `-n` does."""
    site = start()
    reply = result(site.client, "POST", "rebalance?dryrun=False&json=true")
    assert reply.status == 200, reply.text
    site.executor.finish.set()
    site.until(lambda: len(site.executor.plans) == 1)


def test_an_order_is_planned_again_once_its_plan_has_been_executed(start: Start) -> None:
    """As `cccli remove_broker` after the broker was emptied, and filled again."""
    site = start(journals=True)
    site.executor.finish.set()
    for replicas in ([2] * 7 + [1], [2] * 8):
        reply = result(site.client, "POST", "rebalance?dryrun=False&json=true")
        assert reply.status == 200, reply.text
        site.parts.api.settle("cluster-one")
        site.until(lambda: site.statuses()[-1] == "Completed")
        # Someone moves partitions back.
        site.observer.snapshots[:] = [moved := cluster(replicas, [MB] * 8)]
        site.until(lambda expected=moved: site.loop.view.snapshot is expected)  # type: ignore[misc]
    first, second = site.executor.plans
    assert first.hash != second.hash


def test_brokers_are_emptied_by_a_task_with_the_same_plan(start: Start) -> None:
    site = start()
    query = "remove_broker?json=true&brokerid=2&verbose=true"
    shown = result(site.client, "POST", f"{query}&dryrun=true").json
    reply = result(site.client, "POST", f"{query}&dryrun=false")
    assert reply.status == 200, reply.text
    assert reply.json["proposals"] == shown["proposals"]
    (task,) = site.files.all()
    assert task.plan is not None
    assert (task.phase, task.plan.approved_by) == (TaskPhase.APPROVED, "cruise-control:127.0.0.1")
    plan = site.files.read_plan(task, task.plan.plan_hash)
    assert [m.partition for m in plan.moves] == [
        p["topicPartition"]["partition"] for p in shown["proposals"]
    ]
    # The same again contradicts the open task.
    again = result(site.client, "POST", f"{query}&dryrun=false&reason=again")
    assert (again.status, f"task {task.task_id}" in again.error) == (500, True)
    site.files.change(task.task_id, lambda of: of.entered(TaskPhase.DONE, 1))
    found = site.parts.tasks.find(reply.task_id)
    assert found is not None
    site.parts.api.settle("cluster-one")
    site.until(lambda: str(site.parts.tasks.all()[1].status) == "Completed")


EVEN = cluster([1, 2, 3] * 4, [MB] * 12)
"""A cluster in which no move is worth its cost."""


def mark_broker(
    tmp_path: Path, broker: int, state: MarkState, cluster_id: str = "cluster-one"
) -> None:
    """Mark a broker as an earlier task does."""
    mark = BrokerMark(
        cluster_id=cluster_id,
        broker=BrokerId(broker),
        state=state,
        at_ms=1,
        by="ada",
        reason=f"task earlier-{broker}",
        task_id=f"earlier-{broker}",
    )
    change_marks(tmp_path, lambda marks: marked(marks, [mark]))


def mark_removed(tmp_path: Path, cluster_id: str = "cluster-one") -> None:
    """Mark broker 3 as an earlier removal does."""
    mark_broker(tmp_path, 3, BrokerState.DRAINING, cluster_id)


def test_a_broker_is_added_again_though_nothing_moves(start: Start, tmp_path: Path) -> None:
    """The order was answered as completed, and the mark of the removal stayed."""
    site = start(EVEN)
    mark_removed(tmp_path)
    query = "add_broker?json=true&brokerid=3&verbose=true"
    assert result(site.client, "POST", f"{query}&dryrun=true").json["proposals"] == []
    assert site.files.all() == []
    reply = result(site.client, "POST", f"{query}&dryrun=false")
    assert (reply.status, reply.json["proposals"]) == (200, [])
    assert site.statuses("add_broker")[-1] == "InExecution"
    (task,) = site.files.all()
    assert task.plan is not None
    assert (task.phase, task.plan.moves) == (TaskPhase.APPROVED, 0)
    site.files.change(task.task_id, lambda of: of.entered(TaskPhase.DONE, 1))
    site.parts.api.settle("cluster-one")
    site.until(lambda: site.statuses("add_broker")[-1] == "Completed")


def test_a_broker_without_a_mark_to_which_nothing_moves_needs_no_task(
    start: Start, tmp_path: Path
) -> None:
    site = start(EVEN)
    mark_removed(tmp_path, "another-cluster")
    reply = result(site.client, "POST", "add_broker?json=true&brokerid=3&dryrun=false")
    assert reply.status == 200, reply.text
    assert site.statuses("add_broker") == ["Completed"]
    assert site.files.all() == []


@pytest.mark.parametrize(
    ("endpoint", "state"),
    [("remove_broker", BrokerState.DRAINING), ("demote_broker", BrokerState.DEMOTED)],
)
def test_a_broker_that_holds_nothing_is_removed_or_demoted_by_a_task(
    start: Start, endpoint: str, state: MarkState, tmp_path: Path
) -> None:
    """The order was answered as completed, and --auto filled the broker."""
    site = start(cluster([1, 3] * 6, [MB] * 12))
    query = f"{endpoint}?json=true&brokerid=2&verbose=true"
    assert result(site.client, "POST", f"{query}&dryrun=true").json["proposals"] == []
    assert site.files.all() == []
    reply = result(site.client, "POST", f"{query}&dryrun=false")
    assert (reply.status, reply.json["proposals"]) == (200, [])
    assert site.statuses(endpoint)[-1] == "InExecution"
    (task,) = site.files.all()
    assert task.plan is not None
    assert (task.phase, task.plan.moves) == (TaskPhase.APPROVED, 0)
    site.files.change(task.task_id, lambda of: of.entered(TaskPhase.DONE, 1))
    site.parts.api.settle("cluster-one")
    site.until(lambda: site.statuses(endpoint)[-1] == "Completed")
    # Once it is marked, the same again needs no task.
    mark_broker(tmp_path, 2, state)
    assert result(site.client, "POST", f"{query}&dryrun=false&reason=again").status == 200
    assert site.statuses(endpoint)[-1] == "Completed"
    assert len(site.files.all()) == 1


def test_no_task_is_approved_where_plans_need_a_signature(start: Start) -> None:
    site = start(signed=lambda _plan_hash: None)
    reply = result(site.client, "POST", "remove_broker?json=true&brokerid=2&dryrun=false")
    assert (reply.status, "sign it with plimsoll sign" in reply.error) == (500, True)
    assert [t.phase for t in site.files.all()] == [TaskPhase.CANCELLED]


def test_an_order_whose_task_was_stopped_has_ended(start: Start) -> None:
    site = start()
    reply = result(site.client, "POST", "remove_broker?json=true&brokerid=2&dryrun=false")
    assert reply.status == 200, reply.text
    (task,) = site.files.all()
    site.parts.api.settle("cluster-one")
    assert site.statuses("remove_broker") == ["InExecution"]
    site.files.change(task.task_id, lambda of: of.model_copy(update={"stopped_by": "eve"}))

    def has_ended() -> bool:
        site.parts.api.settle("cluster-one")
        return site.statuses("remove_broker") == ["CompletedWithError"]

    site.until(has_ended)


def test_a_stopped_order_on_brokers_is_repeated_by_its_client(start: Start, tmp_path: Path) -> None:
    site = start()
    query = "remove_broker?json=true&brokerid=2"
    assert result(site.client, "POST", f"{query}&dryrun=false").status == 200
    (stopped,) = site.files.all()
    # Before the loop has begun to work on it.
    reply = site.client.post("stop_proposal_execution?json=true")
    assert (reply.status, f"task {stopped.task_id} does not begin" in reply.text) == (200, True)
    assert site.files.read(stopped.task_id).stopped_by == CLIENT_NAME
    assert [(r.action, r.outcome) for r in read_audit(tmp_path)[-2:]] == [
        ("stop", "requested"),
        ("stop", "done"),
    ]
    # Another order about that broker would contradict it.
    other = result(site.client, "POST", "add_broker?json=true&brokerid=2&dryrun=true")
    assert (other.status, f"task {stopped.task_id}" in other.error) == (500, True)
    assert result(site.client, "POST", f"{query}&dryrun=true").status == 200
    again = result(site.client, "POST", f"{query}&dryrun=false&reason=again")
    assert again.status == 200, again.text
    tasks = {task.task_id: task for task in site.files.all()}
    ended = tasks.pop(stopped.task_id)
    (made,) = tasks.values()
    note = f"by {CLIENT_NAME}: task {made.task_id} replaces it"
    assert (ended.phase, ended.note) == (TaskPhase.CANCELLED, note)
    assert made.phase is TaskPhase.APPROVED
    newest = read_audit(tmp_path)[-1]
    assert newest.message.endswith(f"; it replaces task {stopped.task_id}, which is cancelled")


@pytest.mark.parametrize("by", ["eve", "cruise-control:10.0.0.1"])
def test_a_task_that_is_not_a_stopped_order_is_not_replaced(start: Start, by: str) -> None:
    site = start()
    brokers = (BrokerId(2),)
    task = site.files.add("cluster-one", Operation.REMOVE, brokers, by, 1)
    site.files.change(task.task_id, lambda of: of.entered(TaskPhase.PLANNED, 2))
    replies = [
        result(site.client, "POST", f"remove_broker?json=true&brokerid=2&dryrun={dryrun}")
        for dryrun in ("true", "false")
    ]
    # The order of a client may have ended until its dry run is approved.
    assert [reply.status for reply in replies] == [500 if by == "eve" else 200, 500]
    assert f"task {task.task_id} (remove broker 2, planned) names broker 2" in replies[1].error
    assert [t.phase for t in site.files.all()] == [TaskPhase.PLANNED]


def test_a_persons_pause_holds_and_a_clients_stop_does_not_outlast_its_next_order(
    start: Start,
) -> None:
    site = start()
    site.actions.perform(Action.PAUSE, ActionRequest(by="eve"), PEER)
    reply = result(site.client, "POST", ORDER)
    assert (reply.status, "paused by eve" in reply.error) == (500, True)
    remove = result(site.client, "POST", "remove_broker?json=true&brokerid=2&dryrun=false")
    assert remove.status == 500
    assert [t.phase for t in site.files.all()] == [TaskPhase.CANCELLED]
    site.actions.perform(Action.RESUME, ActionRequest(by="eve"), PEER)
    assert result(site.client, "POST", ORDER).status == 200
    assert site.loop.wait(lambda v: v.run is not None, LONG_S)
    stopped = site.client.post("stop_proposal_execution?json=true")
    assert stopped.status == 200
    check(stopped.json, "stopProposalResult", "StopProposalResult")
    site.until(lambda: not site.loop.running)
    assert site.actions.pause is not None
    assert site.actions.pause.by == "cruise-control:127.0.0.1"
    assert result(site.client, "POST", ORDER).status == 200
    assert site.actions.pause is None


def test_the_plan_of_a_refused_order_is_not_executed_by_a_later_one(
    start: Start, gate: Gate
) -> None:
    site = start()
    site.actions.perform(Action.PAUSE, ActionRequest(by="eve"), PEER)
    assert result(site.client, "POST", ORDER).status == 500
    site.actions.perform(Action.RESUME, ActionRequest(by="eve"), PEER)
    gate.close()
    gate.opened.set()
    assert result(site.client, "POST", ORDER).status == 200
    assert gate.entered.is_set()


def test_the_plan_of_an_order_that_a_run_has_overtaken_is_not_executed_by_a_later_one(
    start: Start, gate: Gate
) -> None:
    site = start()
    gate.close()
    with ThreadPoolExecutor(1) as pool:
        overtaken = pool.submit(result, site.client, "POST", ORDER)
        assert gate.entered.wait(LONG_S)
        plan = solve(UNEVEN, Goals(), SolveLimits(work=1.0)).best
        assert plan is not None
        site.loop.order(plan, "eve")
        gate.opened.set()
        reply = overtaken.result()
    assert (reply.status, "OngoingExecutionException" in reply.error) == (500, True)
    site.executor.finish.set()
    site.until(lambda: not site.loop.running)
    gate.close()
    gate.opened.set()
    assert result(site.client, "POST", ORDER).status == 200
    assert gate.entered.is_set()


def test_a_standby_refuses_orders_before_a_task_is_written(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = start()
    standing = Standing(leads=False, leader="b", message="b leads", trouble="", other_policy=False)
    monkeypatch.setattr(ServiceState, "standing", standing)
    for order in (ORDER, "remove_broker?json=true&brokerid=2&dryrun=false"):
        reply = result(site.client, "POST", order)
        assert (reply.status, "b leads; ask the one that leads" in reply.error) == (500, True)
    assert site.files.all() == []
    assert site.executor.plans == []


@pytest.mark.parametrize(
    ("endpoint", "query"), [("rebalance", "json=true"), ("remove_broker", "json=true&brokerid=2")]
)
def test_an_order_that_is_stopped_while_it_is_planned_does_not_begin(
    endpoint: str, query: str, start: Start, gate: Gate, tmp_path: Path
) -> None:
    site = start()
    gate.close()
    with ThreadPoolExecutor(1) as pool:
        order = pool.submit(site.client.post, f"{endpoint}?{query}&dryrun=false")
        assert gate.entered.wait(LONG_S)
        stopped = site.client.post("stop_proposal_execution?json=true")
        (task,) = (t for t in site.parts.tasks.all() if t.endpoint == endpoint)
        assert f"user task {task.task_id} does not begin" in stopped.json["message"]
        assert site.statuses(endpoint) == ["CompletedWithError"]
        gate.opened.set()
        reply = order.result()
    assert (reply.status, STOPPED in reply.error) == (500, True)
    assert site.statuses(endpoint) == ["CompletedWithError"]
    assert (site.loop.moving, [t for t in site.files.all() if t.is_open]) == (False, [])
    # As a restart would read it.
    assert UserTasks(tmp_path, time.time).read(task.task_id).answer == reply.json
    again = result(site.client, "POST", f"{endpoint}?{query}&dryrun=false")
    assert (again.status, site.actions.pause) == (200, None)


def test_neither_a_stop_nor_the_status_of_orders_waits_for_a_plan(start: Start, gate: Gate) -> None:
    site = start()
    # So that the loop does not begin to work on the task.
    site.loop.pause("paused")
    first = result(site.client, "POST", "remove_broker?json=true&brokerid=2&dryrun=false")
    assert first.status == 200, first.text
    gate.close()
    with ThreadPoolExecutor(1) as pool:
        order = pool.submit(site.client.post, ORDER)
        assert gate.entered.wait(LONG_S)
        (task,) = site.files.all()
        site.files.change(task.task_id, lambda of: of.entered(TaskPhase.DONE, 1))

        def has_ended() -> bool:
            site.parts.api.settle("cluster-one")
            return site.statuses("remove_broker") == ["Completed"]

        site.until(has_ended)
        assert site.client.post("stop_proposal_execution?json=true").status == 200
        gate.opened.set()
        assert order.result().status == 500


def test_a_stop_waits_for_no_other_request(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    site, both, answers = start(), threading.Barrier(3), threading.Event()

    def hangs(*_: object) -> None:
        both.wait(LONG_S)
        assert answers.wait(LONG_S)

    monkeypatch.setattr(site.parts.api._execution, "refuse_others", hangs)
    monkeypatch.setattr(execution_module, "review", hangs)
    with ThreadPoolExecutor(2) as pool:
        review = pool.submit(site.client.post, "review?json=true&approve=1")
        order = pool.submit(site.client.post, ORDER)
        both.wait(LONG_S)
        assert site.client.post("stop_proposal_execution?json=true").status == 200
        answers.set()
        assert (review.result().status, STOPPED in order.result().error) == (200, True)


def test_an_order_that_is_stopped_behind_another_plan_does_not_begin(
    start: Start, gate: Gate
) -> None:
    """As with two KafkaRebalances of Strimzi."""
    site = start(block_s=0.05)
    result(site.client, "POST", DRY)
    gate.close()
    other = site.client.post(f"{DRY}&excluded_topics=x")
    assert (other.status, gate.entered.wait(LONG_S)) == (202, True)
    order = site.client.post(ORDER)
    assert order.status == 202
    stopped = site.client.post("stop_proposal_execution?json=true")
    assert f"user task {order.task_id} does not begin" in stopped.json["message"]
    # Its answer waits for no other plan.
    again = site.client.post(ORDER, User_Task_ID=order.task_id)
    assert (again.status, STOPPED in again.error) == (500, True)
    gate.opened.set()
    site.until(lambda: site.statuses() == ["Completed", "Completed", "CompletedWithError"])
    assert not site.loop.moving


def test_an_order_that_came_before_a_stop_does_not_begin_after_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop is answered while the order is checked, before it has a user task."""
    site, stops = start(), list[Any]()
    refuse = Execution.refuse_now

    def stopped_meanwhile(execution: Execution) -> None:
        stops.append(site.client.post("stop_proposal_execution?json=true"))
        refuse(execution)

    monkeypatch.setattr(Execution, "refuse_now", stopped_meanwhile)
    reply = result(site.client, "POST", ORDER)
    assert [stop.status for stop in stops] == [200]
    assert (reply.status, STOPPED in reply.error) == (500, True)
    assert not site.loop.moving


def test_nothing_to_stop_is_no_error(start: Start, tmp_path: Path) -> None:
    site = start()
    reply = site.client.post("stop_proposal_execution?json=true&force_stop=true")
    message = "no run is in progress; no run starts until you run plimsoll ctl resume"
    assert (reply.status, reply.json["message"]) == (200, f"Proposal execution stopped: {message}.")
    # Whether or not a run has ended just before, the service is paused, which is on record.
    assert site.actions.pause is not None
    assert site.actions.pause.by == CLIENT_NAME
    assert [(r.action, r.outcome, r.by, r.message) for r in read_audit(tmp_path)] == [
        ("abort", "requested", CLIENT_NAME, ""),
        ("abort", "done", CLIENT_NAME, message),
    ]
    assert f"{CLIENT_NAME}: abort: {message}" in [line.text for line in site.loop.view.log]


def test_a_service_that_stands_by_does_not_answer_that_it_has_stopped(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = start()
    standing = Standing(leads=False, leader="b", message="b leads", trouble="", other_policy=False)
    monkeypatch.setattr(ServiceState, "standing", standing)
    reply = site.client.post("stop_proposal_execution?json=true")
    assert (reply.status, "b leads; ask the one that leads" in reply.error) == (500, True)
    assert site.actions.pause is None


def test_a_stop_does_not_wait_for_an_archive_that_hangs(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, answers = start(), threading.Event()
    # So that the loop does not begin to work on the task.
    site.loop.pause("paused")
    reply = result(site.client, "POST", "remove_broker?json=true&brokerid=2&dryrun=false")
    assert reply.status == 200, reply.text
    monkeypatch.setattr(execution_module, "TASKS_S", 0.05)
    monkeypatch.setattr(TaskFiles, "is_worked_on", lambda *_: not answers.wait(LONG_S))
    stopped = site.client.post("stop_proposal_execution?json=true")
    words = "the archive does not answer; tasks on brokers wait with all runs"
    assert (stopped.status, words in stopped.json["message"]) == (200, True)
    answers.set()
    (task,) = site.files.all()
    site.until(lambda: site.files.read(task.task_id).stopped_by == CLIENT_NAME)


def test_an_approval_whose_run_has_not_begun_is_taken_back_by_a_stop(
    start: Start, tmp_path: Path
) -> None:
    site = start(ASKS, TriggerTable())
    assert site.loop.wait(lambda _: site.loop.question is not None, LONG_S)
    assert site.loop.question is not None
    plan_hash = site.loop.question.plan_hash
    # Keeps the loop from starting it.
    site.actions.perform(Action.PAUSE, ActionRequest(by="eve"), PEER)
    questions.approve(tmp_path, plan_hash, "eve", int(1000 * time.time()))
    stopped = site.client.post("stop_proposal_execution?json=true")
    assert f"plan {plan_hash[:12]} waits for approval again" in stopped.json["message"]
    site.actions.perform(Action.RESUME, ActionRequest(by="eve"), PEER)
    for _ in range(2):
        # The same again, which shows that the loop has had a turn.
        site.observer.snapshots[:] = [same := constrained(cluster([1, 2, 3], [MB] * 3), a=1)]
        site.until(lambda expected=same: site.loop.view.snapshot is expected)  # type: ignore[misc]
    (row,) = site.client.get("review_board?json=true").json["RequestInfo"]
    assert (row["Status"], site.loop.moving) == ("PENDING_REVIEW", False)


def test_a_client_that_may_only_read_stops_nothing(tmp_path: Path) -> None:
    with CruiseControl(tmp_path, ServiceState()) as parts, served(parts) as client:
        reply = client.post("stop_proposal_execution?json=true")
        assert (reply.status, 'set cruise_control_api = "execute"' in reply.error) == (500, True)


def test_a_plan_fits_while_its_partitions_and_brokers_are_as_they_were(start: Start) -> None:
    site = start()
    result(site.client, "POST", ORDER)
    site.executor.finish.set()
    site.until(lambda: len(site.executor.plans) == 1)
    (plan,) = site.executor.plans
    assert outdated(plan, UNEVEN) == ""
    assert outdated(plan, with_state(UNEVEN, 1, BrokerState.EXCLUDED)) == ""
    moved = [int(m.partition) for m in plan.moves]
    other = cluster([1 if n == moved[0] else 2 for n in range(8)], [MB] * 8)
    assert outdated(plan, other) == f"orders-{moved[0]} has other replicas"
    assert "no longer exists" in outdated(plan, cluster([2], [MB]))


def test_an_order_that_a_crash_has_kept_back_is_given_by_the_next_service(
    start: Start, tmp_path: Path
) -> None:
    """The service was killed after it had kept the order, and before the run began."""
    query = [("dryrun", "false"), ("json", "true")]
    request = parsed(ENDPOINTS["rebalance"], query, "/rebalance")
    plan = solve(UNEVEN, Goals(), SolveLimits(work=1.0)).best
    assert plan is not None
    tasks = UserTasks(tmp_path, time.time)
    task = tasks.begin(request, "10.0.0.1", kept=True)
    KeptPlans(tmp_path).keep(request, plan, task.task_id, int(1000 * time.time()), None)
    answer = done({"version": 1}, plan_hash=plan.hash)
    tasks.end(task.task_id, answer, TaskStatus.EXECUTING, plan_hash=plan.hash)
    site = start()
    site.executor.finish.set()
    site.until(lambda: len(site.executor.plans) == 1)
    assert site.executor.plans[0].hash == plan.hash
    # The executor of this test writes no journal, so that the run counts as refused.
    site.until(lambda: site.statuses() == ["CompletedWithError"])
    assert len(site.executor.plans) == 1


def test_a_kept_plan_that_is_damaged_is_named_and_nothing_runs(
    start: Start, tmp_path: Path
) -> None:
    site = start()
    result(site.client, "POST", DRY)
    (path,) = (tmp_path / "cruise-control").glob("*.kept.json")
    path.write_text(path.read_text().replace("made_at_ms", "made_at"))
    reply = result(site.client, "POST", ORDER)
    assert (reply.status, str(path) in reply.error) == (500, True)
    assert site.executor.plans == []
    assert site.client.get("state?json=true").status == 200


def test_simultaneous_orders_execute_once(start: Start) -> None:
    site = start()
    result(site.client, "POST", DRY)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(result, site.client, "POST", ORDER) for _ in range(3)]
        statuses = sorted(future.result().status for future in asked)
    assert statuses == [200, 500, 500]
    site.executor.finish.set()
    site.until(lambda: len(site.loop.reports) == 1)
    assert len(site.executor.plans) == 1


def kept_back(folder: Path) -> UserTask:
    """An order in execution that a crash kept back, while a person has paused the service."""
    request = parsed(ENDPOINTS["rebalance"], [("dryrun", "false")], "/rebalance")
    plan = solve(UNEVEN, Goals(), SolveLimits(work=1.0)).best
    assert plan is not None
    PauseFile(folder).write(ServicePause(at_ms=1, by="eve"))
    tasks = UserTasks(folder, time.time)
    task = tasks.begin(request, "10.0.0.1", kept=True)
    KeptPlans(folder).keep(request, plan, task.task_id, int(1000 * time.time()), None)
    tasks.end(task.task_id, done({}), TaskStatus.EXECUTING, plan_hash=plan.hash)
    (kept,) = tasks.all()
    return kept


def test_an_order_that_is_kept_back_waits_for_a_persons_pause_without_filling_the_audit_log(
    start: Start, tmp_path: Path
) -> None:
    kept_back(tmp_path)
    site = start()
    before = site.parts.api._settle_at_s
    site.until(lambda: site.parts.api._settle_at_s > before)
    assert (site.statuses(), site.executor.plans, read_audit(tmp_path)) == (["InExecution"], [], [])
    site.executor.finish.set()
    site.actions.perform(Action.RESUME, ActionRequest(by="eve"), PEER)
    site.until(lambda: len(site.executor.plans) == 1)


def test_an_order_that_is_kept_back_is_stopped(start: Start, tmp_path: Path) -> None:
    task = kept_back(tmp_path)
    site = start()
    stopped = site.client.post("stop_proposal_execution?json=true")
    assert f"user task {task.task_id} does not begin" in stopped.json["message"]
    assert site.statuses() == ["CompletedWithError"]
    site.actions.perform(Action.RESUME, ActionRequest(by="eve"), PEER)
    execution = site.parts.api._execution
    # What has been read before the stop is not given, either.
    execution._again(execution._needed(), task)
    assert not site.loop.moving


def test_an_order_from_long_ago_is_not_executed(start: Start, tmp_path: Path) -> None:
    """A service that comes back after hours moves nothing that no one expects any more."""
    request = parsed(ENDPOINTS["rebalance"], [("dryrun", "false")], "/rebalance")
    tasks = UserTasks(tmp_path, lambda: time.time() - ORDER_VALID_S - 1)
    begun = [tasks.begin(request, "10.0.0.1", kept=True) for _ in range(2)]
    tasks.end(begun[1].task_id, done({}), TaskStatus.EXECUTING, plan_hash="f" * 64)
    site = start()
    site.until(lambda: site.statuses() == ["CompletedWithError"] * 2)
    assert site.executor.plans == []


@pytest.mark.parametrize(
    ("resume", "status"), [(False, "CompletedWithError"), (True, "InExecution")]
)
def test_an_order_whose_run_was_interrupted_waits_only_for_a_service_that_resumes_it(
    resume: bool, status: str, start: Start, tmp_path: Path
) -> None:
    request = parsed(ENDPOINTS["rebalance"], [("dryrun", "false")], "/rebalance")
    plan = solve(UNEVEN, Goals(), SolveLimits(work=1.0)).best
    assert plan is not None
    tasks = UserTasks(tmp_path, time.time)
    task = tasks.begin(request, "10.0.0.1", kept=True)
    tasks.end(task.task_id, done({}), TaskStatus.EXECUTING, plan_hash=plan.hash)
    with contextlib.closing(RunJournal(tmp_path / "journal", plan, "run-1", Timing())) as journal:
        journal.write(JournalEvent.STARTED, planned=len(plan.moves), by="")
    # Keeps the run from being resumed, so that it can be seen what the task waits for.
    PauseFile(tmp_path).write(ServicePause(at_ms=1, by="eve"))
    site = start(resume=resume)
    # It may have settled while it started, and does so once where nothing is in execution then.
    site.until(lambda: site.parts.api._settle_at_s > 0.0)
    assert site.statuses() == [status]
    assert site.loop.may_resume == resume
    assert site.executor.plans == []


def test_a_waiting_plan_is_reviewed(start: Start, tmp_path: Path) -> None:
    site = start(ASKS, TriggerTable())
    assert site.loop.wait(lambda _: site.loop.question is not None, LONG_S)
    assert site.loop.question is not None
    plan_hash = site.loop.question.plan_hash

    def board(query: str = "") -> Any:
        reply = site.client.get(f"review_board?json=true{query}")
        check(reply.json, "reviewResult", "ReviewResult")
        return reply.json["RequestInfo"]

    (row,) = board()
    assert (row["Status"], row["SubmitterAddress"]) == ("PENDING_REVIEW", "plimsoll")
    assert plan_hash[:12] in row["EndpointWithParams"]
    number = row["Id"]
    assert board(f"&review_ids={number + 1}") == []
    unknown = site.client.post(f"review?json=true&approve={number + 1}")
    assert (unknown.status, "there is no request" in unknown.error) == (500, True)
    assert site.client.post("review?json=true").status == 400
    both = site.client.post(f"review?json=true&approve={number}&discard={number}")
    assert (both.status, "named twice" in both.error) == (400, True)
    approved = site.client.post(f"review?json=true&approve={number}")
    assert approved.status == 200, approved.text
    site.executor.finish.set()
    site.until(lambda: len(site.executor.plans) == 1)
    assert site.executor.plans[0].hash == plan_hash
    assert board()[0]["Status"] == "SUBMITTED"
    last = read_audit(tmp_path)[-1]
    assert (last.action, last.by, last.plan_hash) == (
        "approve",
        "cruise-control:127.0.0.1",
        plan_hash,
    )


def test_a_waiting_plan_is_discarded(start: Start) -> None:
    site = start(ASKS, TriggerTable())
    assert site.loop.wait(lambda _: site.loop.question is not None, LONG_S)
    (row,) = site.client.get("review_board?json=true").json["RequestInfo"]
    found = site.client.post(f"review?json=true&discard={row['Id']}").json["RequestInfo"]
    assert [r["Status"] for r in found] == ["DISCARDED"]
    assert site.executor.plans == []


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("rebalance?dryrun=false&review_id=999", 500, "there is no request 999 under review"),
        ("rebalance?dryrun=true&review_id=999", 500, "there is no request 999 under review"),
        ("rebalance?dryrun=false&review_id=-5", 400, "review_id is not below 0 and below 2^31"),
        ("rebalance?dryrun=false&review_id=x", 400, "review_id is a whole number, not 'x'"),
        ("rebalance?dryrun=false&review_id={}", 500, "is not approved; approve it with review?"),
        ("rebalance?dryrun=true&review_id={}", 400, "means a plan as it is; leave out dryrun"),
        ("rebalance?goals=CpuCapacityGoal&review_id={}", 400, "as it is; leave out goals"),
        ("add_broker?dryrun=false&brokerid=1&review_id={}", 500, "under review is a rebalance;"),
        ("stop_proposal_execution?review_id=4", 500, "there is no request 4 under review"),
        ("stop_proposal_execution?review_id={}", 500, "is a rebalance; leave out review_id"),
        ("resume_sampling?review_id=4", 500, "there is no request 4 under review"),
    ],
)
def test_nothing_is_done_for_an_id_that_was_not_approved(
    query: str, status: int, words: str, start: Start
) -> None:
    site = start(ASKS, TriggerTable())
    assert site.loop.wait(lambda _: site.loop.question is not None, LONG_S)
    (row,) = site.client.get("review_board?json=true").json["RequestInfo"]
    reply = result(site.client, "POST", f"{query.format(row['Id'])}&json=true")
    assert (reply.status, words in reply.error) == (status, True), reply.text
    assert site.executor.plans == []
    assert site.loop.question is not None
    assert not site.loop.moving


def test_an_order_with_the_id_of_an_approved_plan_is_answered_with_its_run(start: Start) -> None:
    site = start(ASKS, TriggerTable(), journals=True)
    assert site.loop.wait(lambda _: site.loop.question is not None, LONG_S)
    assert site.loop.question is not None
    plan_hash = site.loop.question.plan_hash
    (row,) = site.client.get("review_board?json=true").json["RequestInfo"]
    assert site.client.post(f"review?json=true&approve={row['Id']}").status == 200
    assert site.loop.wait(lambda v: v.run is not None, LONG_S)
    order = f"{ORDER}&review_id={row['Id']}"
    reply = result(site.client, "POST", order)
    assert reply.status == 200, reply.text
    check(reply.json, "optimizationResult", "OptimizationResult")
    assert [p["topicPartition"]["partition"] for p in reply.json["proposals"]] == [1, 2]
    site.parts.api.settle("cluster-one")
    assert site.statuses() == ["InExecution"]
    found = site.client.get("state?json=true&substates=executor").json["ExecutorState"]
    assert found["triggeredUserTaskId"] == reply.task_id
    # As it is asked for while the same run is in progress.
    site.observer.snapshots[:] = [half := constrained(cluster([1, 1, 3], [MB] * 3), a=1)]
    site.until(lambda: site.loop.view.snapshot is half)
    meanwhile = result(site.client, "POST", f"{order}&reason=meanwhile")
    assert meanwhile.status == 200, meanwhile.text
    assert meanwhile.json["proposals"] == reply.json["proposals"]
    site.observer.snapshots[:] = [other := constrained(cluster([1, 3, 3], [MB] * 3), a=1)]
    site.until(lambda: site.loop.view.snapshot is other)
    changed = result(site.client, "POST", f"{order}&reason=changed")
    assert (changed.status, "orders-1 has other replicas" in changed.error) == (500, True)
    # Once the replicas lie where the plan has them, no other plan takes its place.
    site.observer.snapshots[:] = [moved := constrained(cluster([1] * 3, [MB] * 3), a=1)]
    site.executor.finish.set()

    def has_ended() -> bool:
        site.parts.api.settle("cluster-one")
        ended = site.statuses() == ["Completed", "Completed", "CompletedWithError"]
        return ended and site.loop.view.snapshot is moved

    site.until(has_ended)
    late = result(site.client, "POST", f"{order}&reason=late")
    assert (late.status, "was approved, which started its run" in late.error) == (500, True)
    assert [plan.hash for plan in site.executor.plans] == [plan_hash]


def test_a_discarded_plan_is_not_executed_by_its_id(start: Start) -> None:
    site = start(ASKS, TriggerTable())
    assert site.loop.wait(lambda _: site.loop.question is not None, LONG_S)
    (row,) = site.client.get("review_board?json=true").json["RequestInfo"]
    assert site.client.post(f"review?json=true&discard={row['Id']}").status == 200
    reply = result(site.client, "POST", f"{ORDER}&review_id={row['Id']}")
    assert (reply.status, "under review was discarded" in reply.error) == (500, True)
    assert site.executor.plans == []


# ---- as processes, on a simulated cluster


def client_of(running: Service) -> CruiseClient:
    text = running.wait_for("/kafkacruisecontrol\n")
    found = re.search(r"API on http://([\d.]+):(\d+)/", text)
    assert found is not None
    return CruiseClient(ListenAddress(found[1], int(found[2])))


def executing(folder: Path, *options: str) -> Service:
    found = service(folder, *options, trigger="off")
    found.environment |= {
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_API": "execute",
        "PLIMSOLL_SERVICE__CRUISE_CONTROL_LISTEN": "127.0.0.1:0",
    }
    text = (folder / "own.toml").read_text()
    (folder / "own.toml").write_text(text + 'rule_violated = "ask"\n')
    return found


def asked_until(ask: Callable[[], Any], accepts: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not accepts(found := ask()):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_a_plan_outlasts_a_kill_between_dry_run_and_approval(tmp_path: Path) -> None:
    query = "rebalance?json=true&verbose=true&goals=NetworkInboundUsageDistributionGoal"
    with executing(tmp_path) as running:
        client = client_of(running)
        dry = asked_until(
            lambda: result(client, "POST", f"{query}&dryrun=true"), lambda r: r.status == 200
        )
        running.signalled(signal.SIGKILL)
        running.process.wait(WAIT_S)
    with executing(tmp_path) as running:
        client = client_of(running)
        rows = client.get(
            f"user_tasks?json=true&user_task_ids={dry.task_id}&fetch_completed_task=true"
        ).json["userTasks"]
        assert [row["Status"] for row in rows] == ["Completed"]
        assert json.loads(rows[0]["originalResponse"]) == dry.json
        order = asked_until(
            lambda: result(client, "POST", f"{query}&dryrun=false"),
            lambda r: "NotEnoughValidWindows" not in r.text,
        )
        assert order.status == 200, order.text
        assert order.json["proposals"] == dry.json["proposals"]

        def state() -> Any:
            return client.get("state?json=true&substates=executor").json["ExecutorState"]

        progress = asked_until(state, lambda s: s.get("numInProgressPartitionMovements", 0) > 0)
        check(progress, "executorState", "ExecutorState")
        assert progress["triggeredUserTaskId"] == order.task_id
        assert client.post("stop_proposal_execution?json=true&force_stop=true").status == 200
        asked_until(state, lambda s: s["state"] == "NO_TASK_IN_PROGRESS")

        def status() -> str:
            query = f"user_tasks?json=true&user_task_ids={order.task_id}"
            found: str = client.get(query).json["userTasks"][0]["Status"]
            return found

        asked_until(status, lambda s: s == "CompletedWithError")
    (kept,) = (tmp_path / "state" / "cruise-control").glob("*.kept.json")
    hash_ = json.loads(kept.read_text())["plan_hash"]
    (plan_file,) = (tmp_path / "state" / "cruise-control").glob("*.plan.json")
    cluster_id = json.loads(plan_file.read_text())["cluster_id"]
    runs = past_runs(tmp_path / "state" / "journal", cluster_id)
    assert [(run.plan.hash, run.by) for run in runs] == [(hash_, "cruise-control:127.0.0.1")]


def status_of(client: CruiseClient, task_id: str) -> str:
    rows = client.get(f"user_tasks?json=true&user_task_ids={task_id}").json["userTasks"]
    return str(rows[0]["Status"]) if rows else "unknown"


def ordered(client: CruiseClient) -> str:
    """The User-Task-ID of an order, whose moves have begun."""
    query = "rebalance?json=true&goals=NetworkInboundUsageDistributionGoal"
    asked_until(lambda: result(client, "POST", f"{query}&dryrun=true"), lambda r: r.status == 200)
    order = result(client, "POST", f"{query}&dryrun=false")
    assert order.status == 200, order.text
    moving = "numInProgressPartitionMovements"
    asked_until(
        lambda: client.get("state?json=true&substates=executor").json["ExecutorState"],
        lambda state: state.get(moving, 0) > 0,
    )
    assert status_of(client, order.task_id) == "InExecution"
    return order.task_id


def test_a_service_killed_during_the_moves_completes_the_same_user_task(tmp_path: Path) -> None:
    with executing(tmp_path) as running:
        order = ordered(client_of(running))
        running.signalled(signal.SIGKILL)
        running.process.wait(WAIT_S)
    again = executing(tmp_path, "--resume")
    # So that the run ends in seconds.
    again.environment["SIMULATED_SPEED"] = "200"
    with again as running:
        client = client_of(running)
        assert status_of(client, order) == "InExecution"
        asked_until(lambda: status_of(client, order), lambda s: s != "InExecution")
        assert status_of(client, order) == "Completed"
        state = client.get("state?json=true&substates=executor").json["ExecutorState"]
        assert state["state"] == "NO_TASK_IN_PROGRESS"
    (records,) = journalled(tmp_path).values()
    assert (records.count("started"), records.count("resumed"), records[-1]) == (1, 1, "ended")
