"""What the loop does next: one pure function of what it knows."""

from dataclasses import dataclass
from enum import StrEnum

from control.needs import Need
from control.policy import AutoLimits, refusals
from control.view import Mode
from model.plan import Plan

RESOLVE_S = 30.0
"""Time after which an answer without a usable plan is sought anew."""


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
    """The last answer had no moves; it is kept for a while."""
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
    fingerprint: str
    """Of the newest snapshot's placement."""
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
    planned_at_s: float
    plan_wanted: bool
    """A person asked for a new plan."""


def next_step(facts: Facts) -> tuple[Step, str]:
    """The next step, and why in words where it is not plain."""
    if facts.ended_at_s is not None and facts.loads_from_s < facts.ended_at_s:
        left_s = facts.ended_at_s - facts.loads_from_s
        return Step.SETTLE, f"loads of the new placement alone in {left_s:.0f} s"
    if facts.plan_wanted:
        return Step.PLAN, "asked for"
    if facts.plan is not None and facts.plan.moves:
        return _with_plan(facts, facts.plan)
    if facts.needed_since_s is None or not facts.needs:
        return Step.REST, facts.awaited if facts.mode is Mode.AUTO else ""
    if facts.mode is Mode.AUTO and (wait := _not_yet(facts, facts.needed_since_s)):
        return Step.CONFIRM, wait
    if facts.plan is not None and facts.now_s - facts.planned_at_s < RESOLVE_S:
        return Step.HOLD, ""
    return Step.PLAN, "; ".join(need.message for need in facts.needs)


def _with_plan(facts: Facts, plan: Plan) -> tuple[Step, str]:
    if plan.snapshot_fingerprint != facts.fingerprint:
        return Step.PLAN, "brokers or placement changed since the plan was made"
    if facts.mode is not Mode.AUTO:
        return Step.OFFER, ""
    if not facts.needs:
        return Step.REST, "level before the plan was carried out"
    reasons = refusals(plan, facts.limits)
    if not reasons:
        return Step.APPROVE, ""
    if facts.now_s - facts.planned_at_s >= RESOLVE_S:
        return Step.PLAN, "the last plan was outside the limits"
    return Step.REFUSE, "; ".join(reasons)


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
