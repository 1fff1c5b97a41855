"""Tasks on log directories: to empty them, and to heal failed ones."""

from collections.abc import Collection
from typing import Final

import numpy as np

from control.planning.disk_request import DiskPlan, plan_disk_removal, plan_healing, refuse_emptying
from control.tasks.broker_task import BrokerTask, dirs_text, healed_text
from control.tasks.operation_rules import (
    Left,
    Observe,
    OperationRules,
    no_cordon,
    nothing_cordoned,
    nothing_forbids,
)
from control.tasks.task_cordons import cordon_dirs, uncordon_dirs
from control.tasks.task_parts import FoundPlan, NoPlan, TaskParts
from model.goals.goals import Goals
from model.ids import BrokerId
from model.plan.plan import PlanStatus
from model.run import RunState
from model.snapshot.snapshot import Snapshot

# ---- emptying


def _refuse_emptying(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    del goals
    refuse_emptying(snapshot, task.brokers[0], task.paths)


def emptying(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> DiskPlan | None:
    """The plan that empties the directories of a task; None if they hold no replica.

    Raises as `plan_disk_removal` and as the calls of the cluster do.
    """
    broker = task.brokers[0]
    closed = _emptied_before(task, parts)
    return plan_disk_removal(snapshot, parts.goals, parts.solve, broker, task.paths, closed)


def _emptied_before(task: BrokerTask, parts: TaskParts) -> tuple[str, ...]:
    """Directories of the broker that earlier runs have emptied and that still hold nothing.

    Only where Kafka knows no cordons, which say the same since 4.3.
    """
    executor, broker = parts.executor, task.brokers[0]
    if executor.knows_cordons(broker):
        return ()
    runs = executor.runs(parts.journal_dir, task.cluster_id)
    done = (run.plan.goals.emptied for run in runs if run.state is RunState.DONE)
    emptied = {d.path for dirs in done for d in dirs if d.broker == broker} - {*task.paths}
    found = tuple(path for path in sorted(emptied) if not executor.replicas_in(broker, [path]))
    if found:
        parts.say(f"{', '.join(found)} of broker {broker} was emptied before, and takes no replica")
    return found


def _find_emptying(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    found = emptying(task, snapshot, parts)
    if found is None:
        raise NoPlan(
            f"the brokers show replicas in {dirs_text(task)} that the snapshot does not have yet",
            PlanStatus.NONE_IN_TIME,
        )
    return FoundPlan.of(found.plan, _note(found), left=found.inside + found.outside)


def _note(found: DiskPlan) -> str:
    return "; ".join((found.words, *found.bounds, *found.notes))


def _left_inside(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    del observe
    held = parts.executor.replicas_in(task.brokers[0], task.paths)
    return Left.of(held, f"still in {dirs_text(task)}")


def _cordon_dirs(task: BrokerTask, parts: TaskParts) -> None:
    cordon_dirs(parts.executor, task.brokers[0], task.paths, parts.journal_dir, task.by, parts.say)


def _uncordon_dirs(task: BrokerTask, parts: TaskParts) -> bool:
    return uncordon_dirs(
        parts.executor, task.brokers[0], task.paths, parts.journal_dir, task.by, parts.say
    )


def _take_out(task: BrokerTask) -> str:
    them = "it" if len(task.paths) == 1 else "them"
    return f"take {them} out of log.dirs and restart {_broker(task)}"


def _broker(task: BrokerTask) -> str:
    return f"broker {task.brokers[0]}"


def _advise(task: BrokerTask, parts: TaskParts) -> None:
    """Say what has to be done before a disk is taken out."""
    broker, paths = task.brokers[0], {path.rstrip("/") for path in task.paths}
    holds = "holds" if len(paths) == 1 else "hold"
    already = "" if task.approved else " already; nothing to do"
    parts.say(f"{', '.join(task.paths)} of broker {broker} {holds} no replica{already}")
    metadata = parts.executor.metadata_dir(broker)
    if metadata.rstrip("/") in paths:
        parts.say(
            f"warning: broker {broker} keeps the cluster's metadata in {metadata}; set "
            "metadata.log.dir to another directory before this one is taken out"
        )
    them = "it" if len(paths) == 1 else "them"
    if parts.executor.knows_cordons(broker):
        parts.say(
            f"take {them} out of log.dirs and restart the broker, then end the cordon with "
            f"plimsoll disk include {broker} {' '.join(task.paths)} --allow-changes"
        )
        return
    parts.say(
        f"take {them} out of log.dirs and restart the broker soon: until then Kafka puts new "
        f"replicas there, unless cordoned.log.dirs names {them} (Kafka 4.3)"
    )


# ---- healing


def healed_brokers(task: BrokerTask, snapshot: Snapshot) -> list[BrokerId]:
    """The brokers whose failed directories a task heals: those that it names, or all."""
    return sorted(task.brokers or [b.id for b in snapshot.header.brokers])


def healing(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> DiskPlan | None:
    """The plan that heals the directories of a task; None if none holds a replica.

    Raises as `plan_healing` does.
    """
    return plan_healing(snapshot, parts.goals, parts.solve, healed_brokers(task, snapshot))


def _find_healing(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    found, brokers = healing(task, snapshot, parts), healed_brokers(task, snapshot)
    if found is None or not found.plan.moves:
        why = "; ".join(found.notes) if found is not None else "nothing is left to create"
        raise NoPlan(why or "no replica can be created again", PlanStatus.NONE_IN_TIME)
    left = len(lost_rows(snapshot, brokers))
    return FoundPlan.of(found.plan, _note(found), left=left, least_bytes=found.least_bytes)


def lost_rows(snapshot: Snapshot, brokers: Collection[BrokerId]) -> list[int]:
    """Rows with a replica in a failed log directory of these brokers, ascending."""
    lost = snapshot.in_failed_dir & np.isin(snapshot.partitions.replica_broker, list(brokers))
    found: list[int] = np.unique(snapshot.replica_row[lost]).tolist()
    return found


def _left_failed(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    del parts
    snapshot = observe()
    rows = lost_rows(snapshot, healed_brokers(task, snapshot))
    return Left.of([snapshot.id(row) for row in rows], "still in failed log directories")


def _is_healed(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> bool:
    del goals
    return not lost_rows(snapshot, healed_brokers(task, snapshot))


def _healed(task: BrokerTask) -> str:
    of = f" of {healed_text(task)}" if task.brokers else ""
    return f"no failed log directory{of} holds a replica"


DISK_REMOVE: Final = OperationRules(
    refuse=_refuse_emptying,
    find=_find_emptying,
    left=_left_inside,
    mark=None,
    mark_approved=None,
    marks=False,
    cordon=_cordon_dirs,
    uncordon=_uncordon_dirs,
    verified=lambda task: f"no replica in {dirs_text(task)}",
    done=_take_out,
    besides=lambda task: f"only cordons {dirs_text(task)}, on Kafka 4.3 or newer",
    advise=_advise,
)
DISK_HEAL: Final = OperationRules(
    refuse=nothing_forbids,
    needless=_is_healed,
    find=_find_healing,
    left=_left_failed,
    mark=None,
    mark_approved=None,
    marks=False,
    cordon=no_cordon,
    uncordon=nothing_cordoned,
    verified=_healed,
    done=lambda _task: "their replicas are on other brokers; the disks can be replaced",
)
