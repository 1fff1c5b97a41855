"""Exit codes, and which error or plan status leads to which."""

from enum import IntEnum
from typing import TYPE_CHECKING

from model import errors

if TYPE_CHECKING:
    from model.plan.plan import PlanStatus


class Exit(IntEnum):
    """Exit codes of plimsoll."""

    DONE = 0
    """Done, already balanced, or no improvement worth its cost."""
    INTERNAL = 1
    """An error in plimsoll itself."""
    USAGE = 2
    """A flag, a setting or a file that cannot be used."""
    UNREACHABLE = 3
    """The cluster, or a download, was not reachable; try again."""
    INFEASIBLE = 4
    """No plan keeps every rule."""
    REFUSED = 5
    """A guardrail refused it, or a right is missing; nothing was changed."""
    INCOMPLETE = 6
    """Stopped before the end, or no plan was found in time."""
    OUTDATED = 7
    """The cluster changed since the plan was made."""
    MOVES_PROPOSED = 10
    """The plan has moves; only with --detailed-exitcode."""
    INTERRUPTED = 130
    """Ctrl-C."""


BY_ERROR: dict[type[errors.PlimsollError], Exit] = {
    errors.ConfigError: Exit.USAGE,
    errors.InvalidCluster: Exit.USAGE,
    errors.ClusterUnreachable: Exit.UNREACHABLE,
    errors.RightsMissing: Exit.REFUSED,
    errors.GuardrailRefused: Exit.REFUSED,
    errors.PlanOutdated: Exit.OUTDATED,
    errors.ExecutionStopped: Exit.INCOMPLETE,
}


def exit_of(error: errors.PlimsollError) -> Exit:
    """The exit code of an error; that of its nearest ancestor in the tree."""
    for ancestor in type(error).__mro__:
        if ancestor in BY_ERROR:
            return BY_ERROR[ancestor]
    return Exit.INTERNAL


def exit_of_plan(status: "PlanStatus") -> Exit | None:
    """The exit code of a plan status; None where the moves decide."""
    from model.plan.plan import PlanStatus

    match status:
        case PlanStatus.INFEASIBLE:
            return Exit.INFEASIBLE
        case PlanStatus.NONE_IN_TIME | PlanStatus.STOPPED:
            return Exit.INCOMPLETE
    return None
