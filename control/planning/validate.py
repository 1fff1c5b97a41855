"""Check snapshots and plans before anyone acts on them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from model.errors import GuardrailRefused, PlimsollError
from model.evaluate import Evaluation, evaluate_proposal
from model.goals.goals import Goals
from model.plan.plan import Plan
from model.plan.proposal import Proposal
from model.plan.tolerance import misstates_tolerance
from model.plan.violations import misstated
from model.rules import violations_of
from model.snapshot.snapshot import RecentMove, Snapshot, dimension_words
from model.units import share_text

MOST_NAMED: Final = 3
"""Breaches named in a refusal."""

RecentMoves = Callable[[str, int], tuple[RecentMove, ...]]
"""Moves on a cluster, by its id, since a time in milliseconds since the epoch; oldest first."""


def with_recent_moves(snapshot: Snapshot, goals: Goals, journal_dir: Path) -> Snapshot:
    """Add the moves in the journals whose cooldown may still be running."""
    from executor.journal.run_history import recent_moves

    return with_moves(snapshot, goals, partial(recent_moves, journal_dir))


def with_moves(snapshot: Snapshot, goals: Goals, recent: RecentMoves) -> Snapshot:
    """Add the recent moves whose cooldown may still be running."""
    windows = goals.cooldown.values()
    longest_s = max((max(c.rest_s, c.return_window_s) for c in windows), default=0.0)
    header = snapshot.header
    since_ms = header.taken_at_ms - int(1000 * longest_s)
    moves = recent(header.cluster_id, since_ms)
    if not moves:
        return snapshot
    return Snapshot(header.model_copy(update={"recent_moves": moves}), snapshot.partitions)


def spread_text(evaluation: Evaluation) -> str:
    """Sentence on the largest deviation of a broker from the average, per resource."""
    worst = [
        f"{dimension_words(dimension)} {share_text(max(map(abs, by_broker.values())))}"
        for dimension, by_broker in evaluation.deviations.items()
    ]
    if not worst:
        return "no resource is loaded enough to be balanced"
    return "largest deviation from the average: " + ", ".join(worst)


def refuse_breaches(proposal: Proposal, what: str) -> None:
    """Raise GuardrailRefused where a requested placement breaks rules, and name the first ones.

    what: what cannot be done, as `cannot replace broker 4 with 5`.
    """
    broken = [v.words for v in violations_of(proposal)]
    if broken:
        more = f" (and {len(broken) - MOST_NAMED:,} more)" if len(broken) > MOST_NAMED else ""
        raise GuardrailRefused(f"{what}: {'; '.join(broken[:MOST_NAMED])}{more}")


def refuse_broken(snapshot: Snapshot, plan: Plan | None) -> None:
    """Check a plan, if there is one, with the independent evaluator before showing it.

    Raises
    ------
    PlimsollError
        The plan violates a rule, or states a wrong objective, limit, rack violation or tolerance.
    """
    if plan is None:
        return
    proposal = Proposal.of_moves(snapshot, plan.goals, plan.moves, plan.replication)
    verdict = evaluate_proposal(proposal)
    faults = [v.words for v in verdict.violations] + list(misstated(plan, proposal))
    if misstates_tolerance(plan.goals, plan.tolerance_unmet, verdict.deviations):
        faults.append("it does not state which brokers stay outside their tolerance")
    if abs(verdict.objective - plan.objective) > 1e-6 * max(1.0, verdict.objective):
        faults.append(f"its objective is {verdict.objective}, not {plan.objective}")
    if faults:
        raise PlimsollError("internal error: the plan is invalid: " + "; ".join(faults))
