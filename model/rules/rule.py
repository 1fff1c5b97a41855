"""What a rule is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from model.plan.proposal import Proposal


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a proposal breaks, in words with names."""

    rule: str
    words: str


class Rule(Protocol):
    """A hard rule: no plan may break it."""

    @property
    def name(self) -> str:
        """The rule's name in plans and words."""
        ...

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Everything in the proposal that breaks the rule."""
        ...
