"""Which rule of `--auto` holds an action back, by name."""

from typing import Final

from control.loop.policy import AHEAD_S, SILENCE_S, Decision, DecisionInputs, not_yet
from control.settings.auto_limits import refusals

SETTLING: Final = "settling"
"""Loads of the new placement are awaited after a run."""
SILENT: Final = "silence"
"""No loads have arrived for a while."""
AHEAD: Final = "clocks"
"""The newest samples are ahead of this machine's clock."""
COPYING: Final = "copying"
"""Partitions are being moved outside of a run, or have just been."""
UNSTABLE: Final = "brokers"
"""Brokers join and leave."""
REPLAN: Final = "replan"
"""Recent solves were of no use, so the next one waits."""
NO_PLAN: Final = "no plan"
"""The planner found no moves that help."""
FAILURE: Final = "failure"
"""A run or a solve failed, and is retried later."""
PAUSED: Final = "paused"
"""A person has paused `--auto`."""
BUDGET: Final = "limits"
"""The plan is outside the limits, though made for them."""
_SILENT: Final = frozenset({Decision.REST, Decision.PLAN, Decision.APPROVE, Decision.OFFER})


def holding_rule(facts: DecisionInputs, step: Decision) -> str:
    """The rule that this decision obeys by not acting; empty where it acts, or need not.

    The names of limits, settings and triggers, or one of those above.
    """
    if step in _SILENT or not facts.needs:
        return ""
    match step:
        case Decision.SETTLE:
            return _settling_rule(facts)
        case Decision.CONFIRM:
            return _waiting_rule(facts)
        case Decision.HOLD:
            return NO_PLAN
        case Decision.RETRY:
            return FAILURE
        case Decision.REFUSE:
            return _refusing_rule(facts)
        case Decision.IGNORE:
            return f"{facts.ignored[0].trigger} = off"
        case _:
            return f"{facts.pursued[0].trigger} = ask"


def long_wait_rule(facts: DecisionInputs, step: Decision) -> str:
    """The rule that holds back a run for longer than a confirmation takes; empty for none.

    A dead broker that may return is no such rule: only a process that stays sees it wait.
    """
    waits = {
        "schedule": facts.opens_in_s,
        "runs_per_day": facts.runs_wait_s,
        "bytes_per_day": facts.bytes_wait_s,
    }
    rule = holding_rule(facts, step)
    return rule if waits.get(rule, 0.0) > facts.limits.confirm else ""


def _settling_rule(facts: DecisionInputs) -> str:
    if facts.ahead_s > AHEAD_S:
        return AHEAD
    if facts.silent_s > SILENCE_S:
        return SILENT
    if facts.ended_at_s is not None and facts.loads_from_s < facts.ended_at_s:
        return SETTLING
    if facts.is_copied:
        return COPYING
    return UNSTABLE if facts.quiet_in_s > 0 else REPLAN


def _waiting_rule(facts: DecisionInputs) -> str:
    """The first wait that applies; what `not_yet` lets pass waits for bytes, or for a person."""
    since_s = facts.needed_since_s
    wait = None if since_s is None else not_yet(facts, since_s)
    if wait is not None:
        return wait.rule
    return "bytes_per_day" if facts.bytes_wait_s > 0 or not facts.paused else PAUSED


def _refusing_rule(facts: DecisionInputs) -> str:
    plan = facts.plan
    if plan is None:
        return BUDGET
    easier = facts.limits.model_copy(update={"min_gain": 0.0})
    return BUDGET if refusals(plan, easier) else "min_gain"
