"""What the questions about tasks say, and why a task cannot be resumed or cancelled."""

from control.tasks.broker_task import BrokerTask, Operation, brokers_text
from control.tasks.task_listing import ListedTask

LATER_PLANS = (
    "What is left after this plan gets another one, which is executed without a further question."
)
NO_PLAN_YET = "A plan is made now. It then waits here for your approval; nothing moves before."
RESUMED = (
    "The state of its moves is read from the cluster. Moves that have not started are made now "
    f"if they still apply. {LATER_PLANS}"
)
EXCLUDED = (
    "No plan moves replicas to this broker any more, and it keeps those that it has. The mark is "
    "plimsoll's own; nothing changes on the cluster."
)
INCLUDED = (
    "Plans may move replicas to this broker again, also after a removal that has ended. The mark "
    "is plimsoll's own; nothing changes on the cluster."
)
_LEADERLESS = (Operation.DEMOTE, Operation.MAINTENANCE)
_TAKING_NONE = (Operation.REMOVE, Operation.REPLACE)


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
