"""Tasks on brokers, as values: in every phase, held here and elsewhere, and unreadable."""

from dataclasses import replace

from control.tasks.broker_task import BrokerTask, Operation, TaskPhase, TaskPlan, TaskProgress
from control.tasks.task_listing import OWN, ListedTask, TaskListing, UnreadableTask
from model.ids import BrokerId
from tests.support.tui.loop_views import AT_MS, CLUSTER_ID, HASH

MINUTE_MS = 60_000
ELSEWHERE = "plimsoll 4711 on kafka-ops-2"
GB = 10**9


def _requested(operation: Operation, *brokers: int, onto: int | None = None) -> BrokerTask:
    named = "-".join(map(str, brokers))
    return BrokerTask.requested(
        f"{operation}-{named}-20231114T215320",
        CLUSTER_ID,
        operation,
        tuple(map(BrokerId, brokers)),
        by="ann",
        ms=AT_MS - 20 * MINUTE_MS,
        onto=None if onto is None else BrokerId(onto),
    )


def _planned(task: BrokerTask, *, approved: bool = True, plan_hash: str = HASH) -> BrokerTask:
    plan = TaskPlan(
        plan_hash=plan_hash, moves=40, bytes_to_copy=8 * GB, least_bytes=8 * GB, replicas=40
    )
    at_ms = AT_MS - 19 * MINUTE_MS
    task = task.planned(plan, at_ms, "40 moves, 8.00 GB; no plan empties broker 4 with less")
    if not approved:
        return task
    task = task.with_plan(approved_by="ann", approved_at_ms=at_ms + 5000)
    return task.entered(TaskPhase.APPROVED, at_ms + 5000, "by ann")


def moving(plan_hash: str = "ab" * 32) -> BrokerTask:
    """The removal of broker 4, 26 of 40 moves done."""
    task = _planned(_requested(Operation.REMOVE, 4), plan_hash=plan_hash)
    task = task.entered(TaskPhase.MOVING, AT_MS - 18 * MINUTE_MS, "the run begins")
    progress = TaskProgress(
        at_ms=AT_MS - 3000,
        run_id="20231114T215520-3cc54011",
        moves_done=26,
        moves=40,
        bytes_copied=5 * GB,
        bytes_to_copy=8 * GB,
        seconds_left=95.0,
    )
    return task.model_copy(update={"progress": progress})


def waiting() -> BrokerTask:
    """A removal whose plan waits for approval."""
    return _planned(_requested(Operation.REMOVE, 2), approved=False)


def stopped() -> BrokerTask:
    """A demotion whose run someone has stopped."""
    task = moving().model_copy(
        update={"operation": Operation.DEMOTE, "task_id": "demote-3-20231114T215320"}
    )
    note = "run 20231114T215520-3cc54011 was stopped; plimsoll task resume continues it"
    task = task.entered(TaskPhase.MOVING, AT_MS - 5 * MINUTE_MS, note)
    return task.model_copy(update={"stopped_by": "bob", "brokers": (BrokerId(3),)})


def failed() -> BrokerTask:
    """A replacement whose run failed."""
    task = _planned(_requested(Operation.REPLACE, 1, onto=5))
    note = "run 20231114T215520-3cc54011 failed: broker 5 does not serve any more"
    return task.entered(TaskPhase.FAILED, AT_MS - 7 * MINUTE_MS, note)


def done() -> BrokerTask:
    """A filled broker, two days ago."""
    task = _planned(_requested(Operation.ADD, 6)).with_plan(closed="its run ended")
    at_ms = AT_MS - 2 * 1440 * MINUTE_MS
    task = task.entered(TaskPhase.VERIFIED, at_ms, "broker 6 is within the tolerance")
    return task.entered(TaskPhase.DONE, at_ms, "broker 6 may lead and take new replicas again")


def cancelled() -> BrokerTask:
    """A maintenance that was cancelled before anything moved."""
    task = _requested(Operation.MAINTENANCE, 1, 2)
    return task.entered(TaskPhase.CANCELLED, AT_MS - 300 * MINUTE_MS, "by ann: not confirmed")


DAMAGED = UnreadableTask(
    name="remove-9-20231101T080000.json",
    reason="/state/tasks/remove-9-20231101T080000.json is damaged or was edited: its checksum "
    "does not fit. Restore it, or move it away and request the task again",
)
NEWER = UnreadableTask(
    name="move-3-20231113T080000.json",
    reason="/state/tasks/move-3-20231113T080000.json has schema version 2.0; this plimsoll reads "
    "plimsoll.task files up to 1.x: use a newer plimsoll, or write the file again",
    newer=True,
)


def every_kind() -> TaskListing:
    """Tasks in every state, and two files that cannot be read."""
    return TaskListing(
        tasks=(
            ListedTask(task=moving(), worker=ELSEWHERE),
            ListedTask(task=waiting()),
            ListedTask(task=stopped()),
            ListedTask(task=failed()),
            ListedTask(task=cancelled()),
            ListedTask(task=done()),
        ),
        unreadable=(DAMAGED, NEWER),
    )


def own(task: BrokerTask | None = None) -> TaskListing:
    """One task that this process works on."""
    return TaskListing(tasks=(ListedTask(task=task or moving(), worker=OWN),))


def without_archive() -> TaskListing:
    """What the host knows while the archive is away."""
    return replace(own(), warning="http://s3:9000 gives no answer; its tasks are not listed")
