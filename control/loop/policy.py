"""What the loop does next: one pure function of what it knows."""

import math
from dataclasses import dataclass
from enum import StrEnum

from control.loop.view import Mode
from control.planning.plan_needs import Need
from control.settings.auto_limits import AutoLimits, refusals
from model.plan.plan import Plan
from model.units import seconds_text


class Step(StrEnum):
    """What to do next."""

    SETTLE = "settle"
    """Wait until loads cover only the time after the last run."""
    REST = "rest"
    """Level: nothing to do."""
    CONFIRM = "confirm"
    """Uneven, but not for long enough yet to act without a person."""
    PLAN = "plan"
    HOLD = "hold"
    """The last answer had no moves; it is kept until its inputs change."""
    RETRY = "retry"
    """`--auto` waits after a failure."""
    OFFER = "offer"
    """Show the plan; a person decides."""
    APPROVE = "approve"
    REFUSE = "refuse"
    """The plan is outside the limits of `--auto`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a decision rests on. Times are seconds of a clock that nobody sets."""

    now_s: float
    mode: Mode
    limits: AutoLimits
    loads_from_s: float
    """Begin of the window that the newest loads are averaged over."""
    needs: tuple[Need, ...]
    """Why the cluster needs a plan, the most urgent reason first."""
    needed_since_s: float | None
    """None while there is no reason."""
    awaited: str
    """A dead broker that may return yet, in words; empty if there is none."""
    was_level: bool
    """It was level before that, so the load has shifted."""
    ended_at_s: float | None
    """End of the last run, None if there was none."""
    plan: Plan | None
    outdated: bool
    """Brokers or placement are not what the plan was made for."""
    answered: bool
    """The newest answer rests on the present inputs, less noise."""
    solve_in_s: float
    """Time until the next solve is due, since the last ones led to nothing."""
    quiet_in_s: float
    """Time until the set of live brokers counts as steady."""
    retry: str
    """Why `--auto` waits before it tries again, in words; empty if it does not."""
    plan_wanted: bool
    """A person asked for a new plan."""


def next_step(facts: Facts) -> tuple[Step, str]:
    """The next step, and why in words where it is not plain."""
    if facts.ended_at_s is not None and facts.loads_from_s < facts.ended_at_s:
        left_s = facts.ended_at_s - facts.loads_from_s
        return Step.SETTLE, f"loads of the new placement alone in {left_s:.0f} s"
    if facts.plan_wanted:
        return Step.PLAN, "asked for"
    auto, offered = facts.mode is Mode.AUTO, facts.plan is not None and facts.plan.moves
    if not facts.needs and (auto or not offered):
        return Step.REST, facts.awaited if auto else ""
    if auto and facts.retry:
        return Step.RETRY, facts.retry
    if auto and facts.needed_since_s is not None:
        wait = _not_yet(facts, facts.needed_since_s)
        if wait:
            return Step.CONFIRM, wait
    if facts.plan is not None and facts.plan.moves:
        return _with_plan(facts, facts.plan)
    if facts.answered:
        return Step.HOLD, ""
    return _plan(facts, "; ".join(need.message for need in facts.needs))


def _with_plan(facts: Facts, plan: Plan) -> tuple[Step, str]:
    if facts.quiet_in_s > 0:
        return Step.SETTLE, _unsteady(facts)
    if facts.outdated:
        return _plan(facts, "brokers or placement changed since the plan was made")
    if facts.mode is not Mode.AUTO:
        return Step.OFFER, ""
    repairs = any(need.repairs for need in facts.needs)
    reasons = refusals(plan, facts.limits, repairs=repairs)
    if not reasons:
        return Step.APPROVE, ""
    if facts.answered:
        return Step.REFUSE, "; ".join(reasons)
    return _plan(facts, "the cluster changed since the last plan")


def _plan(facts: Facts, why: str) -> tuple[Step, str]:
    """Plan, unless brokers come and go, or plans are outdated as soon as made."""
    if facts.quiet_in_s > 0:
        return Step.SETTLE, _unsteady(facts)
    if facts.solve_in_s > 0:
        return Step.SETTLE, (
            f"{why}; planning again in {seconds_text(math.ceil(facts.solve_in_s))}"
        )
    return Step.PLAN, why


def _unsteady(facts: Facts) -> str:
    left = seconds_text(math.ceil(facts.quiet_in_s))
    return f"brokers came or went; planning once they are steady for another {left}"


def _not_yet(facts: Facts, needed_since_s: float) -> str:
    """Why `--auto` may not act yet; empty if it may."""
    if facts.awaited:
        return facts.awaited
    limits = facts.limits
    if not any(need.repairs for need in facts.needs) and (
        wait := _unconfirmed(facts, needed_since_s)
    ):
        return wait
    if facts.ended_at_s is not None:
        rested_s = facts.now_s - facts.ended_at_s
        if rested_s < limits.pause:
            return f"the last run ended {rested_s:.0f} s ago, the pause is " + (
                f"{limits.pause:.0f} s"
            )
    return ""


def _unconfirmed(facts: Facts, needed_since_s: float) -> str:
    """Why loads do not tell reliably yet that a plan is needed; empty if they do."""
    needed_s = facts.now_s - needed_since_s
    mixed_s = needed_since_s - facts.loads_from_s
    if facts.was_level and mixed_s > 0:
        # Planned on a mixture of old and new loads, it would have to act twice.
        return f"the load has shifted; loads of afterwards alone in {mixed_s:.0f} s"
    confirm_s = facts.limits.confirm
    if needed_s < confirm_s:
        return f"out of tolerance for {needed_s:.0f} s of {confirm_s:.0f} s"
    return ""
