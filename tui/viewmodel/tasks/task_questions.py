"""What the questions about tasks say, and why a task cannot be resumed or cancelled."""

from collections.abc import Sequence

from control.tasks.broker_task import BrokerTask, Operation, brokers_text
from control.tasks.task_listing import ListedTask
from control.tasks.task_request import NamedBrokers
from model.errors import ConfigError
from model.ids import BrokerId
from model.snapshot.snapshot import Broker

LATER_PLANS = (
    "What is left after this plan gets another one, which is executed without a further question."
)
NO_PLAN_YET = "A plan is made now. It then waits here for your approval; nothing moves before."
RESUMED = (
    "The state of its moves is read from the cluster. Moves that have not started are made now "
    f"if they still apply. {LATER_PLANS}"
)
REPLACE_ONE = "replace takes one broker at a time"
_NAMED = 10
"""Brokers that titles name; questions list all of them where there are more."""
_LEADERLESS = (Operation.DEMOTE, Operation.MAINTENANCE)
_TAKING_NONE = (Operation.REMOVE, Operation.REPLACE)


def excluded_text(brokers: Sequence[BrokerId]) -> str:
    """What happens when brokers are excluded."""
    it, has = ("them", "they keep") if len(brokers) > 1 else ("it", "it keeps")
    return (
        f"No plan moves replicas to {it} any more, and {has} what is there. Kafka 4.3 or newer "
        f"puts no new replicas there, either (cordoned.log.dirs)."
    )


def included_text(brokers: Sequence[BrokerId]) -> str:
    """What happens when brokers are included."""
    it = "them" if len(brokers) > 1 else "it"
    return (
        f"Plans may move replicas to {it} again, also after a removal that has ended. A cordon "
        f"that plimsoll has set ends; those of someone else stay."
    )


def all_brokers(brokers: Sequence[BrokerId]) -> str:
    """Every broker of a request that its title does not name in full; empty where it does."""
    return "" if len(brokers) <= _NAMED else f"brokers: {ranges(brokers)}"


def ranges(brokers: Sequence[BrokerId]) -> str:
    """Ascending ids, all of them, in little space: `1-40, 42, 50-52`."""
    found: list[list[int]] = []
    for broker in brokers:
        if found and broker == found[-1][-1] + 1:
            found[-1][1:] = [broker]
        else:
            found.append([broker])
    return ", ".join("-".join(map(str, ends)) for ends in found)


def new_broker(typed: str, old: BrokerId, members: Sequence[Broker]) -> BrokerId:
    """The broker that takes the place of `old`; raises ConfigError where it cannot."""
    named = NamedBrokers.of(typed)
    if len(named.ids) != 1 or named.racks:
        raise ConfigError(f"give the id of the broker that replaces {old}")
    (new,) = named.among(members)
    if new == old:
        raise ConfigError(f"name another broker than {old}")
    return new


def not_open(task: BrokerTask, what: str) -> str:
    """Why a task that is over cannot be resumed or cancelled; empty where it is open."""
    return "" if task.is_open else f"the task is {task.phase}; nothing is left to {what}"


def not_resumed(of: ListedTask) -> str:
    """Why a task cannot be resumed; empty where it can be."""
    if of.worker:
        return f"{of.worker} works on this task; wait until it ends, or cancel the task"
    return not_open(of.task, "resume")


def cancel_text(of: ListedTask) -> str:
    """What happens when a task is cancelled."""
    task = of.task
    sentences = []
    if of.worker:
        sentences.append("Its run stops after the moves in flight.")
    if task.approved:
        sentences.append(
            "What has moved stays; B on the history screen, or plimsoll rollback, moves it back."
        )
    else:
        sentences.append("Nothing has moved yet.")
    several = len(task.brokers) > 1
    named = brokers_text(task.brokers).capitalize()
    if task.operation in _TAKING_NONE:
        sentences.append(f"{named} {'take' if several else 'takes'} new replicas again.")
    if task.operation in _LEADERLESS:
        sentences.append(f"{named} may lead and take new replicas again.")
    return " ".join(sentences)
