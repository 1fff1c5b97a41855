"""Rest after a move, and no way back within the return window."""

from collections.abc import Iterator
from dataclasses import dataclass

from model.goals.goals import Cooldown
from model.plan.proposal import Proposal
from model.rules.rule import Violation
from model.snapshot.snapshot import RecentMove


@dataclass(frozen=True)
class CooledDown:
    """A partition moved less than its rest ago stays, unless it is forced out."""

    name: str = "cooldown"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each changed row that moved less than its `rest_s` ago."""
        for change in proposal.changes:
            if proposal.forced.rows[change.row]:
                continue
            rest = _cooldown(proposal, change.row).rest_s
            for move, age_s in _moves(proposal, change.row):
                if age_s < rest:
                    yield Violation(
                        self.name,
                        f"{move.topic}-{move.partition} moved {age_s:.0f} s ago and "
                        f"rests for {rest:.0f} s",
                    )


@dataclass(frozen=True)
class NoReturn:
    """A partition does not go back where it came from within the return window."""

    name: str = "no return"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each changed row that returns to a broker within `return_window_s`."""
        for change in proposal.changes:
            window = _cooldown(proposal, change.row).return_window_s
            new = set(change.replicas) - set(proposal.snapshot.replicas(change.row))
            for move, age_s in _moves(proposal, change.row):
                for broker in sorted(new & set(move.left)):
                    if age_s < window:
                        yield Violation(
                            self.name,
                            f"{move.topic}-{move.partition} left broker {broker} "
                            f"{age_s:.0f} s ago and may not return for {window:.0f} s",
                        )


def _cooldown(proposal: Proposal, row: int) -> Cooldown:
    topic = proposal.snapshot.partitions.topic[row]
    storage = proposal.snapshot.header.topics[int(topic)].storage
    return proposal.goals.rest_of(storage)


def _moves(proposal: Proposal, row: int) -> list[tuple[RecentMove, float]]:
    return proposal.recent.get(proposal.snapshot.id(row), [])
