"""What a plan file claims, each claim judged by code that no search shares."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from model.bound import price_bound
from model.evaluate import Evaluation, evaluate
from model.files import rounded
from model.goals import SolveLimits
from model.plan import BrokerChange, Move, Plan, PlanStatus, plan_hash
from model.proposal import Proposal
from model.snapshot import Snapshot
from model.units import count_text
from solver.result import Result
from solver.solve import solve

NEAR: Final = 1e-8
"""Share by which figures of a file may differ from their recomputed values: ten times
what the rounding of loads and figures to nine digits can amount to."""

LEAST: Final = 1e-10
"""The same in units of F, where F is nearly 0."""

MOST_NAMED: Final = 5
"""Faults of one kind that are told."""

MOST_GAINS: Final = 2_000_000
"""Moves x partitions above which gains are not recomputed, one evaluation each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of a plan and what came of it."""

    name: str
    holds: bool | None
    """None where it was not judged."""
    words: str

    def document(self) -> dict[str, Any]:
        """The claim for programs."""
        return {"name": self.name, "holds": self.holds, "words": self.words}


def hash_claim(document: dict[str, Any]) -> Claim:
    """Whether the file is as it was when the plan was sealed."""
    claimed, found = str(document.get("hash")), plan_hash(document)
    if claimed == found:
        return Claim(name="hash", holds=True, words=f"not altered, {found[:12]}")
    words = f"the file says {claimed[:12]} and holds {found[:12]}: it was altered"
    return Claim(name="hash", holds=False, words=words)


def snapshot_claim(plan: Plan, snapshot: Snapshot) -> Claim:
    """Whether this is the cluster state that was planned for."""
    if plan.snapshot_fingerprint == snapshot.fingerprint:
        words = f"the one planned for, {snapshot.fingerprint[:12]}"
        return Claim(name="snapshot", holds=True, words=words)
    words = (
        f"the plan is for {plan.snapshot_fingerprint[:12]} of cluster "
        f"{plan.cluster_id}, this is {snapshot.fingerprint[:12]} of "
        f"{snapshot.header.cluster_id}: brokers or placement differ"
    )
    return Claim(name="snapshot", holds=False, words=words)


def claims(plan: Plan, snapshot: Snapshot) -> Iterator[Claim]:
    """All that a plan claims of a snapshot that it was made for."""
    after = evaluate(snapshot, plan.goals, plan.moves)
    yield _moves(plan, snapshot)
    yield _rules(after)
    yield _objective(plan, snapshot, after)
    yield _brokers(plan, snapshot, after)
    yield _gains(plan, snapshot, after)
    yield from bound_claims(plan, snapshot)


# ---- moves and figures


def _moves(plan: Plan, snapshot: Snapshot) -> Claim:
    wrong = [str(m.id) for m in plan.moves if not _starts_here(m, snapshot)]
    if wrong:
        words = f"{_first(wrong)} are not as the snapshot has them"
        return Claim(name="moves", holds=False, words=words)
    moves = count_text(len(plan.moves), "move")
    return Claim(name="moves", holds=True, words=f"{moves} from where partitions lie")


def _starts_here(move: Move, snapshot: Snapshot) -> bool:
    row = snapshot.find(move.id)
    if row is None:
        return False
    here = snapshot.row(row)
    return (move.replicas_before, move.leader_before, move.topic_id) == (
        here.replicas,
        here.leader,
        here.topic_id,
    )


def _rules(after: Evaluation) -> Claim:
    broken = [f"{v.rule}: {v.words}" for v in after.violations]
    if broken:
        return Claim(name="rules", holds=False, words=_first(broken, "; "))
    return Claim(name="rules", holds=True, words="every rule is kept")


def _objective(plan: Plan, snapshot: Snapshot, after: Evaluation) -> Claim:
    before = evaluate(snapshot, plan.goals, ())
    claimed = plan.objective_before, plan.objective, plan.move_price
    found = before.objective, after.objective, after.move_price
    words = f"{found[0]:.9g} -> {found[1]:.9g} recomputed"
    holds = all(map(is_near, claimed, found))
    if not holds:
        words += f", the plan says {claimed[0]:.9g} -> {claimed[1]:.9g}"
    return Claim(name="objective", holds=holds, words=words)


def _brokers(plan: Plan, snapshot: Snapshot, after: Evaluation) -> Claim:
    proposal = Proposal.of_moves(snapshot, plan.goals, plan.moves)
    wrong = [
        f"broker {b.id}"
        for b in plan.brokers
        if not _is_right(b, proposal, after) or b.id not in snapshot.broker
    ]
    missing = set(snapshot.broker) - {b.id for b in plan.brokers}
    wrong += [f"broker {b}" for b in sorted(missing)]
    if not all(map(is_near, plan.levels.values(), after.levels.values())):
        wrong.append("the levels")
    if wrong or plan.levels.keys() != after.levels.keys():
        words = f"wrong figures of {_first(wrong) or 'the levels'}"
        return Claim(name="brokers", holds=False, words=words)
    return Claim(name="brokers", holds=True, words="loads before and after are right")


def _is_right(change: BrokerChange, proposal: Proposal, after: Evaluation) -> bool:
    here = {k: by[change.id] for k, by in after.deviations.items() if change.id in by}
    before = proposal.loads_before.get(change.id, {})
    return (
        all(is_near(load, before.get(k, 0.0)) for k, load in change.before.items())
        and all(
            is_near(load, after.loads[change.id].get(k, 0.0))
            for k, load in change.after.items()
        )
        and change.deviation_after.keys() == here.keys()
        # What rounding does to a load it does to the whole level.
        and all(
            abs(change.deviation_after[k] - v) <= NEAR * (1 + abs(v))
            for k, v in here.items()
        )
        and change.replicas_before == proposal.replicas_before[change.id]
        and change.replicas_after == proposal.replicas_after[change.id]
    )


def _gains(plan: Plan, snapshot: Snapshot, after: Evaluation) -> Claim:
    if len(plan.moves) * len(snapshot) > MOST_GAINS:
        words = "too many moves to judge one by one"
        return Claim(name="gains", holds=None, words=words)
    wrong = []
    for move in plan.moves:
        others = [m for m in plan.moves if m is not move]
        without = evaluate(snapshot, plan.goals, others).objective
        # A difference of two sums: as exact as the sums are.
        if abs(without - after.objective - move.gain) > LEAST + NEAR * without:
            wrong.append(str(move.id))
    if wrong:
        words = f"the gains of {_first(wrong)} are not what F would rise by"
        return Claim(name="gains", holds=False, words=words)
    words = "each move's gain is what F would rise by without it"
    return Claim(name="gains", holds=True, words=words)


# ---- the bound


def bound_claims(plan: Plan, snapshot: Snapshot) -> Iterator[Claim]:
    """What follows from the plan's prices alone, and what it claims beyond that."""
    prices = {b.id: b.bound_prices for b in plan.brokers}
    proved = price_bound(snapshot, plan.goals, prices, plan.repaired)
    words = f"{proved:.9g} follows from the plan's prices, recomputed by weak duality"
    holds = _reaches(proved, plan.price_bound, plan)
    if not holds:
        words += f"; the plan says {plan.price_bound:.9g}"
    yield Claim(name="price bound", holds=holds, words=words)
    yield _bound(plan, proved)
    yield _status(plan)


def _bound(plan: Plan, proved: float) -> Claim:
    gap = f"gap {rounded(plan.gap):.3g}"
    if _reaches(proved, plan.bound, plan):
        words = f"{plan.bound:.9g}, {gap}: proved by the prices alone"
        return Claim(name="bound", holds=True, words=words)
    if plan.bound > plan.objective * (1 + NEAR) + LEAST:
        words = f"{plan.bound:.9g} is above the plan's own objective"
        return Claim(name="bound", holds=False, words=words)
    words = (
        f"{plan.bound:.9g}, {gap}: the part over {proved:.9g} is claimed by "
        f"{plan.bound_method}; --prove proves it again"
    )
    return Claim(name="bound", holds=None, words=words)


def _status(plan: Plan) -> Claim:
    near = plan.gap <= plan.limits.gap * (1 + NEAR) + LEAST
    if plan.status is PlanStatus.OPTIMAL and not near:
        words = f"called optimal with a gap of {plan.gap:.3g}"
        return Claim(name="status", holds=False, words=words)
    return Claim(name="status", holds=True, words=str(plan.status))


def prove_again(plan: Plan, snapshot: Snapshot, work: float) -> Claim:
    """Solve again, and see whether the claimed bound comes out."""
    limits = plan.limits.model_copy(update={"work": work})
    return reproved(plan, solve(snapshot, plan.goals, limits), limits)


def reproved(plan: Plan, result: Result, limits: SolveLimits) -> Claim:
    """What another solve says of a plan's bound."""
    found = 0.0 if result.bound is None else result.bound
    best = result.objective
    if best is not None and best < plan.bound * (1 - NEAR) - LEAST:
        words = f"a plan of {best:.9g} exists, under the claimed {plan.bound:.9g}"
        return Claim(name="bound", holds=False, words=words)
    # Solves end within `gap` of the optimum; so may two proofs of one problem differ.
    if _reaches(found + limits.gap, plan.bound, plan):
        words = f"{found:.9g} proved again with {limits.work:g} units of work"
        return Claim(name="bound", holds=True, words=words)
    words = (
        f"only {found:.9g} of {plan.bound:.9g} was proved again with "
        f"{limits.work:g} units of work; allow more with --work"
    )
    return Claim(name="bound", holds=None, words=words)


def is_near(claimed: float, found: float) -> bool:
    """Whether two figures are equal but for rounding."""
    return abs(claimed - found) <= LEAST + NEAR * max(abs(claimed), abs(found))


def _reaches(proved: float, claimed: float, plan: Plan) -> bool:
    # A bound is a difference of sums, which are about as large as F before the plan.
    scale = max(claimed, plan.objective_before)
    return proved >= claimed - NEAR * scale - LEAST


def _first(names: list[str], glue: str = ", ") -> str:
    told = glue.join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{told} and {more} more" if more > 0 else told
