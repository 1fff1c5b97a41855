"""The plain half of each hard rule: checks a proposal, and says what it binds.

The solver has the other half of each; the halves share no code, and this one is the truth.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from model.plan.proposal import Proposal
from model.rules.amounts import replica_limit, under_capacity, within_budgets
from model.rules.leaders import leaders_relieved, min_leaders
from model.rules.log_dirs import directories_emptied, log_directories
from model.rules.movable import cooled_down, movable, no_return
from model.rules.placements import explicit_placement, pinned, rack_spread
from model.rules.replicas import (
    distinct_replicas,
    drained_brokers_empty,
    eligible_brokers,
    failed_dirs_emptied,
    replication_factor_kept,
)

RULES: Final[Mapping[str, Callable[[Proposal], Iterator[str]]]] = {
    "replication factor": replication_factor_kept,
    "distinct replicas": distinct_replicas,
    "eligible brokers": eligible_brokers,
    "drained brokers": drained_brokers_empty,
    "failed directories": failed_dirs_emptied,
    "movable partitions": movable,
    "cooldown": cooled_down,
    "no return": no_return,
    "pins": pinned,
    "rack spread": rack_spread,
    "explicit placement": explicit_placement,
    "capacity": under_capacity,
    "replicas per broker": replica_limit,
    "log directories": log_directories,
    "emptied directories": directories_emptied,
    "minimum leaders": min_leaders,
    "slow brokers": leaders_relieved,
    "budgets": within_budgets,
}
"""The hard rules by the names that plans and messages print. Each yields a sentence for
every breach in a proposal, and nothing where it is kept."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of a rule: the rule's name and a sentence for the user."""

    rule: str
    words: str


def violations_of(proposal: Proposal) -> Iterator[Violation]:
    """Yield every breach of every hard rule in a proposal."""
    return (Violation(name, words) for name, rule in RULES.items() for words in rule(proposal))
