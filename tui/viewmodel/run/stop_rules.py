"""Describe the stop rules in force."""

from collections.abc import Collection
from typing import Final

from model.stop_rules import Reaction, StopRule, StopRules
from model.units import seconds_text

_VERBS: Final = {
    Reaction.PAUSE: "pauses on",
    Reaction.STOP: "stops on",
    Reaction.ROLL_BACK: "rolls back on",
}
_WORDS: Final = {
    StopRule.BROKER_LOST: "a lost broker",
    StopRule.OFFLINE: "offline partitions",
    StopRule.UNDER_MIN_ISR: "under min ISR",
    StopRule.UNDER_REPLICATED: "under-replicated",
    StopRule.ISR_SHRINK: "shrinking ISR",
    StopRule.CONTROLLER_CHANGES: "controller changes",
    StopRule.DISK: "full disks",
    StopRule.NO_PROGRESS: "no progress",
    StopRule.WINDOW: "end of the time window",
    StopRule.FOREIGN: "reassignments by others",
}


def armed(rules: StopRules, but: Collection[StopRule] = ()) -> tuple[str, ...]:
    """One line for each reaction: `stops on: a lost broker, offline partitions`.

    but: rules that are shown elsewhere.
    """
    known = [rule for rule in StopRule if rule not in but and _applies(rules, rule)]
    found = {
        reaction: [_words(rules, r) for r in known if rules.reaction(r) is reaction]
        for reaction in _VERBS
    }
    return tuple(
        f"{_VERBS[reaction]}: {', '.join(words)}" for reaction, words in found.items() if words
    )


def _words(rules: StopRules, rule: StopRule) -> str:
    """A rule with its limit, where it has one."""
    if rule is StopRule.SLOW_REQUESTS:
        return f"requests {rules.slow_times:g} times slower and above {seconds_text(rules.slow_s)}"
    return _WORDS[rule]


def _applies(rules: StopRules, rule: StopRule) -> bool:
    """Leave out the window rule if the window is always open."""
    if rule is StopRule.WINDOW:
        return bool(rules.window_hours or rules.window_end)
    return True
