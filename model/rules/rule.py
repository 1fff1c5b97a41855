"""The interface of a hard rule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from model.plan.proposal import Proposal


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of a rule: the rule's name and a sentence for the user."""

    rule: str
    words: str


class Rule(Protocol):
    """A hard rule: no plan may break it."""

    @property
    def name(self) -> str:
        """The rule's name, as plans and messages print it."""
        ...

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield every breach of the rule in the proposal; nothing if it is kept."""
        ...
