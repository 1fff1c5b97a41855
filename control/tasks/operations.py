"""What each operation is: its plans, what is left of it, its marks, and its last words."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from control.tasks.broker_marks import AWAY, BrokerMark
from control.tasks.broker_task import BrokerTask, Operation, brokers_text, min_isr_text
from control.tasks.cluster_repair import REPAIR
from control.tasks.demotion import (
    STATES,
    at_min_isr,
    led,
    lost,
    not_returned,
    plan_demotion,
    plan_return,
    refuse_demotion,
)
from control.tasks.filling import plan_filling, refuse_filling, too_little
from control.tasks.log_directories import DISK_HEAL, DISK_REMOVE
from control.tasks.operation_rules import Left, Observe, OperationRules
from control.tasks.removal import drained, plan_removal, refuse_removal, requested
from control.tasks.replacement import plan_replacement, refuse_replacement, replaced
from control.tasks.replication_factor import SET_REPLICAS
from control.tasks.task_parts import FoundPlan, TaskParts
from model.errors import GuardrailRefused
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Snapshot

# ---- what is left


def _held(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    del observe
    held = [*parts.executor.replicas_on(task.brokers)]
    return Left.of(held, f"still on {brokers_text(task.brokers)}")


def _led(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    del observe
    found = led(parts.executor.views_on(task.brokers), task.brokers)
    return Left.of(found, f"still led by {brokers_text(task.brokers)}, or preferring it as leader")


def _not_returned(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    del observe
    found = not_returned(task, parts)
    words = "" if found else lost(task, parts)
    return Left.of(found, "still as the demotion has left them") if found else Left.none(words)


def _too_little(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    count = too_little(observe(), parts.goals, task.brokers)
    are = _they(task, "is", "are")
    words = f"{brokers_text(task.brokers)} {are} still below the tolerance"
    return Left(count=count, words=words if count else "")


# ---- what forbids it


def _refuse_removal(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    refuse_removal(drained(snapshot, task.brokers), goals, task.brokers)


def _refuse_demotion(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    demoted = requested(snapshot, task.brokers, STATES[task.operation])
    refuse_demotion(demoted, goals, task.brokers, {})


def _refuse_return(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    """Nothing forbids it but other tasks and marks."""


def _refuse_filling(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    refuse_filling(snapshot, goals, task.brokers)


def _refuse_replacement(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    old, new = replaced(task)
    refuse_replacement(drained(snapshot, [old]), goals, old, new)


# ---- last words


def _they(task: BrokerTask, one: str, several: str) -> str:
    return several if len(task.brokers) > 1 else one


def _stopped(task: BrokerTask) -> str:
    takes = _they(task, "it takes", "they take")
    named = brokers_text(task.brokers)
    return f"{named} can be stopped; {takes} no new replicas {_until(task, 'include')}"


def _until(task: BrokerTask, command: str) -> str:
    """`until you run plimsoll broker undemote 1`."""
    operation, *switch = command.split()
    ids = " ".join(map(str, task.brokers))
    return f"until you run plimsoll broker {' '.join((operation, ids, *switch))}"


def _demoted(task: BrokerTask) -> str:
    leader = _they(task, "leader", "leaders")
    words = f"{brokers_text(task.brokers)} will not be made {leader} again"
    return f"{words} {_until(task, 'undemote')}{_warning(task)}"


def _maintained(task: BrokerTask) -> str:
    words = f"no new replicas and no leaders {_until(task, 'maintenance off')}"
    named = brokers_text(task.brokers)
    if task.at_min_isr:
        return f"{named} {_they(task, 'takes', 'take')} {words}{_warning(task)}"
    takes = _they(task, "it takes", "they take")
    return f"{named} can be stopped for a while; {takes} {words}"


def _warning(task: BrokerTask) -> str:
    lost = min_isr_text(task.at_min_isr, task.brokers)
    return f"; warning: {lost}" if lost else ""


def _leads_nothing(task: BrokerTask) -> str:
    return f"{brokers_text(task.brokers)} {_they(task, 'leads', 'lead')} nothing"


def _is_within(task: BrokerTask) -> str:
    return f"{brokers_text(task.brokers)} {_they(task, 'is', 'are')} within the tolerance"


def _may_lead(task: BrokerTask) -> str:
    return f"{brokers_text(task.brokers)} may lead and take new replicas again"


def _only_marks(task: BrokerTask) -> str:
    state = OPERATIONS[task.operation].mark_approved
    named = brokers_text(task.brokers)
    if state is None:
        return f"only ends marks of {named}, and cordons that plimsoll has set"
    cordons = " and, on Kafka 4.3 or newer, cordoned" if state in AWAY else ""
    return f"only has {named} marked as {state.words}{cordons}"


def _removal(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    return plan_removal(snapshot, task.brokers, parts.goals, parts.solve)


_DEMOTION: Final = OperationRules(
    refuse=_refuse_demotion,
    find=plan_demotion,
    left=_led,
    mark=BrokerState.DEMOTED,
    mark_approved=BrokerState.DEMOTED,
    at_min_isr=at_min_isr,
    verified=_leads_nothing,
    done=_demoted,
    besides=_only_marks,
)
_RETURN: Final = OperationRules(
    refuse=_refuse_return,
    find=plan_return,
    left=_not_returned,
    mark=None,
    mark_approved=None,
    replaces=frozenset({BrokerState.DEMOTED}),
    verified=lambda _task: "leaders are as before the demotion",
    done=_may_lead,
    besides=_only_marks,
)
_REMOVAL: Final = OperationRules(
    refuse=_refuse_removal,
    find=_removal,
    left=_held,
    mark=BrokerState.EXCLUDED,
    mark_approved=BrokerState.DRAINING,
    replaces=frozenset(BrokerState),
    verified=lambda task: f"no replica on {brokers_text(task.brokers)}",
    done=_stopped,
    besides=_only_marks,
)

OPERATIONS: Final[Mapping[Operation, OperationRules]] = {
    Operation.REMOVE: _REMOVAL,
    Operation.REPLACE: dataclasses.replace(
        _REMOVAL, refuse=_refuse_replacement, find=plan_replacement
    ),
    Operation.DEMOTE: _DEMOTION,
    Operation.MAINTENANCE: dataclasses.replace(
        _DEMOTION,
        mark=BrokerState.MAINTENANCE,
        mark_approved=BrokerState.MAINTENANCE,
        replaces=frozenset({BrokerState.DEMOTED}),
        done=_maintained,
    ),
    Operation.UNDEMOTE: _RETURN,
    Operation.MAINTENANCE_OFF: dataclasses.replace(
        _RETURN, replaces=frozenset({BrokerState.MAINTENANCE})
    ),
    Operation.ADD: OperationRules(
        refuse=_refuse_filling,
        find=plan_filling,
        left=_too_little,
        mark=None,
        mark_approved=None,
        rests=True,
        replaces=AWAY,
        verified=_is_within,
        done=_may_lead,
        besides=_only_marks,
    ),
    Operation.DISK_REMOVE: DISK_REMOVE,
    Operation.DISK_HEAL: DISK_HEAL,
    Operation.SET_REPLICAS: SET_REPLICAS,
    Operation.REPAIR: REPAIR,
}


def idle_text(task: BrokerTask, why: str = "") -> str:
    """What a task does where nothing has to move, as a clause.

    task: with its `at_min_isr`. why: nothing moves, if not because all is as requested.
    """
    rules = OPERATIONS[task.operation]
    why, besides = why or rules.verified(task), rules.besides(task)
    if not besides:
        return f"{why}; nothing to do"
    return f"{why}, so that nothing has to move; the task {besides}: {rules.done(task)}"


def refuse_marked(
    marks: Sequence[BrokerMark],
    cluster_id: str,
    brokers: Sequence[BrokerId],
    replaced: frozenset[BrokerState],
) -> None:
    """Raise GuardrailRefused where a broker has a mark that a request may not replace.

    replaced: the states of marks that it may.
    """
    for mark in marks:
        if mark.cluster_id != cluster_id or mark.broker not in brokers or mark.state in replaced:
            continue
        raise GuardrailRefused(
            f"broker {mark.broker} is {BrokerState(mark.state).words} ({mark.reason}, by "
            f"{mark.by}); end that with {ending_of(mark)} first"
        )


def ending_of(mark: BrokerMark) -> str:
    """The command that ends a mark: `plimsoll broker include 4`."""
    end = {
        BrokerState.DEMOTED: f"undemote {mark.broker}",
        BrokerState.MAINTENANCE: f"maintenance {mark.broker} off",
    }.get(BrokerState(mark.state), f"include {mark.broker}")
    return f"plimsoll broker {end}"
