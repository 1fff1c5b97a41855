"""Claims of a plan file, each checked by code independent of the search."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from control.cli.output_types import ClaimAnswer
from control.cli.plan_facts import LEAST, NEAR, Facts, are_near, differences, is_near
from model.bound.bound import price_bound
from model.evaluate import Evaluation, evaluate
from model.files import rounded
from model.goals.goals import Goals, ObjectiveKind, SolveLimits
from model.plan.plan import ROUNDING, Plan, PlanStatus, plan_hash
from model.snapshot.snapshot import Snapshot
from model.units import count_text
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve

MOST_NAMED: Final = 5
"""Most faults of one kind that are named."""

MOST_GAINS: Final = 2_000_000
"""Product of moves and partitions above which gains are not recomputed."""


def hash_claim(document: dict[str, Any]) -> ClaimAnswer:
    """Whether the file's hash (SHA-256) is that of its content."""
    claimed, found = str(document.get("hash")), plan_hash(document)
    words = f"not altered, {found[:12]}"
    if claimed != found:
        words = f"the file was altered: it says {claimed[:12]}, its content has {found[:12]}"
    return ClaimAnswer(name="hash", holds=claimed == found, words=words)


def snapshot_claim(plan: Plan, snapshot: Snapshot) -> ClaimAnswer:
    """Whether the snapshot is the cluster state that the plan was made for."""
    holds = plan.snapshot_fingerprint == snapshot.fingerprint
    words = f"the one the plan was made for, {snapshot.fingerprint[:12]}"
    if not holds:
        words = (
            f"the plan is for {plan.snapshot_fingerprint[:12]} of cluster "
            f"{plan.cluster_id}, this is {snapshot.fingerprint[:12]} of "
            f"{snapshot.header.cluster_id}: brokers or assignment differ"
        )
    return ClaimAnswer(name="snapshot", holds=holds, words=words)


def claims(plan: Plan, snapshot: Snapshot) -> Iterator[ClaimAnswer]:
    """All claims of a plan about the snapshot that it was made for."""
    facts = Facts(plan, snapshot)
    before = evaluate(snapshot, plan.goals, ())
    after = evaluate(snapshot, plan.goals, plan.moves, plan.replication)
    yield _moves(facts)
    yield _rules(after)
    yield _objective(plan, before, after)
    yield _brokers(facts, before, after)
    yield _gains(plan, snapshot, after)
    yield from bound_claims(plan, snapshot)
    yield _status(plan, before)
    yield _cluster(facts)
    yield _faults(facts, after)


# ---- goals and limits


def settings_claims(
    plan: Plan, goals: Goals, limits: SolveLimits, *, given: bool
) -> Iterator[ClaimAnswer]:
    """Whether a plan was made for these goals and with these limits.

    given: the goals were named as those of this plan. Otherwise different goals are not
    an error, and the claim is not checked.
    """
    if differ := differences(plan.goals, goals):
        words = f"the plan's goals differ from the given ones in {', '.join(differ)}"
        if not given:
            words += "; name the goals it was made with by --goals FILE"
        yield ClaimAnswer(name="goals", holds=False if given else None, words=words)
    else:
        yield ClaimAnswer(name="goals", holds=True, words="the given ones")
    if differ := differences(plan.limits, limits):
        words = ", ".join(f"{name} = {getattr(plan.limits, name):g}" for name in differ)
        loose = plan.status is PlanStatus.OPTIMAL and not plan.proves(limits.gap)
        if loose:
            words = f"optimal only by its own limit of the gap: {words}"
        else:
            words = f"made with {words}, unlike the settings"
        yield ClaimAnswer(name="limits", holds=False if loose else None, words=words)
    else:
        yield ClaimAnswer(name="limits", holds=True, words="those of the settings")


# ---- moves and figures


def _unless(
    wrong: Sequence[str], name: str, right: str, fault: str, glue: str = ", "
) -> ClaimAnswer:
    """A claim that holds unless something is wrong, which replaces `{}` in `fault`."""
    if not wrong:
        return ClaimAnswer(name=name, holds=True, words=right)
    named = glue.join(wrong[:MOST_NAMED])
    more = len(wrong) - MOST_NAMED
    words = fault.format(f"{named} and {more} more" if more > 0 else named)
    return ClaimAnswer(name=name, holds=False, words=words)


def _cluster(facts: Facts) -> ClaimAnswer:
    right = "identity, brokers, forecast and warnings are those of the snapshot"
    return _unless(list(facts.cluster()), "cluster", right, "{}: different in the snapshot")


def _faults(facts: Facts, after: Evaluation) -> ClaimAnswer:
    right = "brokers over a limit and rack violations are listed correctly"
    wrong = list(facts.faults(after))
    return _unless(wrong, "violations", right, "{}: different when recomputed")


def _moves(facts: Facts) -> ClaimAnswer:
    found = {m.id: list(facts.move(m)) for m in facts.plan.moves}
    wrong = [f"{pid} ({', '.join(names)})" for pid, names in found.items() if names]
    moves = count_text(len(found), "move")
    right = f"{moves} from the present replicas; bytes and loads are right"
    return _unless(wrong, "moves", right, "{}: different in the snapshot")


def _rules(after: Evaluation) -> ClaimAnswer:
    broken = [f"{v.rule}: {v.words}" for v in after.violations]
    return _unless(broken, "rules", "no rule is broken", "{}", "; ")


def _objective(plan: Plan, before: Evaluation, after: Evaluation) -> ClaimAnswer:
    claimed = plan.objective_before, plan.objective, plan.move_price
    found = before.objective, after.objective, after.move_price
    words = f"{found[0]:.9g} -> {found[1]:.9g} recomputed"
    holds = all(map(is_near, claimed, found))
    if not holds:
        words += f", the plan says {claimed[0]:.9g} -> {claimed[1]:.9g}"
        if not is_near(plan.move_price, after.move_price):
            words += f", and {plan.move_price:.9g} as the cost of a move"
    return ClaimAnswer(name="objective", holds=holds, words=words)


def _brokers(facts: Facts, before: Evaluation, after: Evaluation) -> ClaimAnswer:
    plan = facts.plan
    found = {b.id: list(facts.broker(b, before, after)) for b in plan.brokers}
    wrong = [f"broker {b} ({', '.join(names)})" for b, names in found.items() if names]
    wrong += [f"broker {b}" for b in sorted(set(facts.snapshot.broker) - set(found))]
    if len(found) < len(plan.brokers):
        wrong.append("a broker that is listed twice")
    if not are_near(plan.levels, facts.levels()):
        wrong.append("the averages")
    right = "loads before and after are right"
    return _unless(wrong, "brokers", right, "wrong figures of {}")


def _gains(plan: Plan, snapshot: Snapshot, after: Evaluation) -> ClaimAnswer:
    if len(plan.moves) * len(snapshot) > MOST_GAINS:
        words = "too many moves to check one by one"
        return ClaimAnswer(name="gains", holds=None, words=words)
    wrong = []
    # The loads differ without a move that adds replicas, so F cannot be compared.
    for move in (m for m in plan.moves if not m.resizes):
        others = [m for m in plan.moves if m is not move]
        without = evaluate(snapshot, plan.goals, others, plan.replication).objective
        # A difference of two sums is as exact as the sums.
        near = LEAST + NEAR * max(without, after.objective)
        if abs(without - after.objective - move.gain) > near:
            wrong.append(str(move.id))
    right = "each move's gain is the increase of F without it"
    fault = "the gains of {} are not the increase of F without them"
    return _unless(wrong, "gains", right, fault)


# ---- the bound


def proved_bound(plan: Plan, snapshot: Snapshot) -> float:
    """The bound of F by the plan's prices, which are dual variables: weak duality."""
    prices = {b.id: b.bound_prices for b in plan.brokers}
    return price_bound(snapshot, plan.goals, prices, plan.repaired, plan.budget_prices)


def bound_claims(plan: Plan, snapshot: Snapshot) -> Iterator[ClaimAnswer]:
    """The bound that follows from the plan's prices, and the bound it claims."""
    proved = proved_bound(plan, snapshot)
    words = f"{proved:.9g} follows from the plan's prices, recomputed by weak duality"
    holds = _reaches(proved, plan.price_bound, plan)
    if not holds:
        words += f"; the plan says {plan.price_bound:.9g}"
    yield ClaimAnswer(name="price bound", holds=holds, words=words)
    yield _bound(plan, proved)


def _bound(plan: Plan, proved: float) -> ClaimAnswer:
    gap = f"gap {rounded(plan.gap):.3g}"
    if _reaches(proved, plan.bound, plan):
        words = f"{plan.bound:.9g}, {gap}: proved by the prices alone"
        return ClaimAnswer(name="bound", holds=True, words=words)
    if plan.bound > plan.objective * (1 + NEAR) + LEAST:
        words = f"{plan.bound:.9g} is above the plan's own objective"
        return ClaimAnswer(name="bound", holds=False, words=words)
    words = (
        f"{plan.bound:.9g}, {gap}: the part above {proved:.9g} was proved by "
        f"{plan.bound_method}; add --prove to prove it again"
    )
    return ClaimAnswer(name="bound", holds=None, words=words)


def _status(plan: Plan, before: Evaluation) -> ClaimAnswer:
    fault = _status_fault(plan, before)
    return ClaimAnswer(name="status", holds=not fault, words=fault or str(plan.status))


def _surely_optimal(plan: Plan) -> bool:
    """Whether the gap is within the limit for any rounding of its figures.

    A plan that is not proved to repair as much as possible is never called optimal.
    """
    rounding = ROUNDING * abs(plan.objective)
    among = plan.limited_by.startswith("proved optimal among")
    return not among and plan.gap + rounding < 0.99 * plan.limits.gap


def _status_fault(plan: Plan, before: Evaluation) -> str:
    """How the status, or the reason for ending the search, is wrong; empty if right."""
    near = plan.proves(plan.limits.gap)
    changes = any(m.added or m.removed or m.leader_before != m.leader_after for m in plan.moves)
    # Other directories alone change no load, but are what such a plan is for.
    empties = bool(plan.goals.emptied and plan.moves)
    proved = plan.limited_by == "proved optimal"
    match plan.status:
        case PlanStatus.OPTIMAL if not near:
            return f"called optimal with a gap of {plan.gap:.3g}"
        case PlanStatus.OPTIMAL if plan.limited_by and not proved:
            return f"called optimal, but {plan.limited_by}"
        case PlanStatus.IMPROVED if proved or _surely_optimal(plan):
            return "not called optimal, although its gap is within the limit"
        case PlanStatus.OPTIMAL | PlanStatus.IMPROVED if not (changes or empties):
            return f"called {plan.status} without a change"
        case PlanStatus.STOPPED | PlanStatus.OPTIMAL | PlanStatus.IMPROVED:
            return ""
        case _ if changes:
            return f"called {plan.status}, but changes the assignment"
        case PlanStatus.ALREADY_BALANCED if not before.within_band(plan.goals):
            return f"called {plan.status}, but brokers are outside the tolerance band"
    return f"{plan.limited_by}, with a gap of {plan.gap:.3g}" if proved and not near else ""


def prove_again(
    plan: Plan, snapshot: Snapshot, work: float, observer: SolveObserver | None = None
) -> ClaimAnswer:
    """Check the claimed bound by planning again, within `work` units.

    observer: may stop the proof at the bound reached so far.
    """
    limits = plan.limits.model_copy(update={"work": work})
    observer = observer or SolveObserver()
    result = solve(snapshot, plan.goals, limits, observer)
    claim = reproved(plan, result, limits)
    if claim.holds is not None or not observer.stops():
        return claim
    words = f"stopped when {result.bound or 0.0:.9g} of {plan.bound:.9g} was proved again"
    return ClaimAnswer(name="bound", holds=None, words=words)


def reproved(plan: Plan, result: Result, limits: SolveLimits) -> ClaimAnswer:
    """The verdict of another search on a plan's bound."""
    found = 0.0 if result.bound is None else result.bound
    best = result.objective
    if result.best is not None and _excess_of(result.best) > _excess_of(plan) + NEAR:
        # It leaves brokers further outside the tolerance, so its F says nothing.
        best = None
    if best is not None and best < plan.bound * (1 - NEAR) - LEAST:
        words = f"a plan of {best:.9g} exists, under the claimed {plan.bound:.9g}"
        return ClaimAnswer(name="bound", holds=False, words=words)
    # Searches end within a gap of the optimum, so two proofs may differ by as much.
    accepted = max(limits.gap, limits.noise, limits.gap_share * abs(best or 0.0))
    if _reaches(found + accepted, plan.bound, plan):
        words = f"{found:.9g} proved again with a search budget of {limits.work:g}"
        return ClaimAnswer(name="bound", holds=True, words=words)
    words = (
        f"only {found:.9g} of {plan.bound:.9g} was proved again with a search budget "
        f"of {limits.work:g}; allow more with --search-budget"
    )
    return ClaimAnswer(name="bound", holds=None, words=words)


def _excess_of(plan: Plan) -> float:
    """Weight x deviation outside the tolerance after a plan; 0 where that does not come first."""
    if not plan.goals.tolerance_first or plan.goals.objective is ObjectiveKind.BAND:
        return 0.0
    weights = {str(g.resource): g.weight for g in plan.goals.balance}
    return sum(o.excess * weights[o.dimension.partition("@")[0]] for o in plan.outside)


def _reaches(proved: float, claimed: float, plan: Plan) -> bool:
    # A bound is a difference of sums, which are about as large as F before or after the plan.
    scale = max(claimed, plan.objective_before, plan.objective)
    return proved >= claimed - NEAR * scale - LEAST
