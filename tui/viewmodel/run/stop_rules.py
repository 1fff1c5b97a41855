"""The stop conditions that are armed, in words."""

from typing import Final

from model.stop_rules import Reaction, Rule, StopRules

_VERBS: Final = {
    Reaction.PAUSE: "pauses on",
    Reaction.STOP: "stops on",
    Reaction.ROLL_BACK: "rolls back on",
}
_WORDS: Final = {
    Rule.BROKER_LOST: "a lost broker",
    Rule.OFFLINE: "offline partitions",
    Rule.UNDER_MIN_ISR: "under min ISR",
    Rule.UNDER_REPLICATED: "under-replicated",
    Rule.ISR_SHRINK: "shrinking ISR",
    Rule.CONTROLLER_CHANGES: "controller changes",
    Rule.SLOW_REQUESTS: "slow requests",
    Rule.DISK: "full disks",
    Rule.NO_PROGRESS: "no progress",
    Rule.WINDOW: "closed hours",
    Rule.FOREIGN: "others' moves",
}


def armed(rules: StopRules) -> tuple[str, ...]:
    """One sentence for each reaction: `stops on: a lost broker, offline partitions`."""
    known = [rule for rule in Rule if _applies(rules, rule)]
    found = {
        reaction: [_WORDS[r] for r in known if rules.reaction(r) is reaction]
        for reaction in _VERBS
    }
    return tuple(
        f"{_VERBS[reaction]}: {', '.join(words)}"
        for reaction, words in found.items()
        if words
    )


def _applies(rules: StopRules, rule: Rule) -> bool:
    """A window that is always open closes nothing."""
    if rule is Rule.WINDOW:
        return bool(rules.window_hours or rules.window_end)
    return True
