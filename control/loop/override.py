"""When a more urgent trigger interrupts a run of `--auto`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from control.planning.plan_needs import PlanNeed, Reason
from control.settings.trigger_table import Response, Trigger, TriggerTable

LASTING_S: Final = 30.0
"""Time that a trigger has to fire before it interrupts: moves in flight exceed limits, too."""

_RANK: Final = {trigger: rank for rank, trigger in enumerate(Trigger)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRun:
    """A run that the limits of `--auto` approved. Times are of a clock that is never set."""

    serves: frozenset[Trigger]
    """Triggers that its plan acts on."""
    began_s: float
    overridden_by: Trigger | None = None
    """The trigger that interrupted it."""


def overriding(
    run: AutoRun,
    needs: Collection[PlanNeed],
    since_s: Mapping[Reason, float],
    triggers: TriggerTable,
    now_s: float,
) -> PlanNeed | None:
    """The need to interrupt a run for; None to let it run.

    It is more urgent than all that the run serves, is acted on, and has fired for `LASTING_S`
    since the run began: needs from before had their turn when the plan was made.

    needs: the most urgent first. since_s: since when, by reason.
    """
    if run.overridden_by is not None:
        return None
    first = min((_RANK[t] for t in run.serves), default=0)
    for need in needs:
        began_s = since_s.get(need.reason, now_s)
        lasts = began_s >= run.began_s and now_s - began_s >= LASTING_S
        acts = triggers.response(need.trigger) is Response.ACT
        if _RANK[need.trigger] < first and acts and lasts:
            return need
    return None
