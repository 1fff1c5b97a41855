"""What each move is worth, and why another move is not made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from model.evaluate import Evaluation, evaluate_proposal
from model.files import rounded
from model.ids import BrokerId, PartitionId
from model.plan.plan import Plan
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import Snapshot, dimension_words
from solver.problem.placement import Placement, change_costs, deviations, loads_of, row_shift
from solver.problem.problem import Problem
from solver.report.reasons import deviation_text, main_effect

# ---- moves that are made


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationEffect:
    """Effect of a move on one broker in one dimension, as deviations from the mean."""

    broker: BrokerId
    dimension: str
    before: float
    """In the snapshot."""
    after: float
    """After the whole plan."""
    without: float
    """After the plan without this move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveValue:
    """What one move of a plan achieves: gain, cost, and effect on the brokers."""

    number: int
    """Its number in the plan, from 1."""
    partition: PartitionId
    gain: float
    """By how much F would rise without it."""
    price: float
    """Its cost; part of F, and already subtracted in `gain`."""
    relieved: BrokerId | None
    """The broker it relieves most; None where it changes no load that counts."""
    goal: str | None
    """The dimension it improves most."""
    reason: str
    effects: tuple[DeviationEffect, ...]
    """The brokers it touches; empty where they are not balanced."""


def move_values(problem: Problem, plan: Plan, numbers: Sequence[int]) -> Iterator[MoveValue]:
    """Evaluate moves of a plan, given by their numbers in it, from 1.

    `problem` is compiled from the plan's snapshot and goals. While iterating, raises IndexError for
    a number above the plan's last, and KeyError for a move whose partition, or whose brokers, the
    snapshot does not have.
    """
    # By id, as in the placement that the plan was made from: sums then agree to the last bit.
    moves = [
        move.model_copy(update={"replicas_after": tuple(sorted(move.replicas_after))})
        for move in plan.moves
    ]
    placement = Placement.after(problem, moves)
    before = problem.deviations_before
    after = deviations(problem, loads_of(problem, placement))
    for number in numbers:
        move = plan.moves[number - 1]
        row = problem.snapshot.row_of[move.id]
        brokers, shift = row_shift(problem, placement, row)
        without = after[brokers] - shift[:, problem.column] * problem.slope[brokers]
        found = main_effect(problem, placement, row)
        yield MoveValue(
            number=number,
            partition=move.id,
            gain=move.gain,
            price=float(change_costs(problem, placement, [row])[0]),
            relieved=problem.brokers[found.source] if found else None,
            goal=problem.keys[found.goal] if found else None,
            reason=move.reason_text,
            effects=tuple(
                DeviationEffect(
                    broker=problem.brokers[b],
                    dimension=key,
                    before=float(before[b, k]),
                    after=float(after[b, k]),
                    without=float(without[i, k]),
                )
                for i, b in enumerate(brokers)
                for k, key in enumerate(problem.keys)
                if problem.may.holding[b]
            ),
        )


# ---- moves that are not made


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """Why a partition does not go to a broker: rules it would break, or its cost in F."""

    partition: PartitionId
    broker: BrokerId
    forbidden: tuple[str, ...]
    """Messages of the rules it would break; empty where it is allowed."""
    cost: float
    """Change of F, given the rest of the plan; 0 where nothing changes."""
    price: float
    """The part of `cost` that is the cost of moving."""
    words: tuple[str, ...]
    """The answer, one sentence each."""


def why_not(snapshot: Snapshot, plan: Plan, row: int, broker: BrokerId) -> WhyNot:
    """Evaluate sending a partition (by row) to a broker, given the plan's other moves.

    Of the replicas the broker could replace, and whether it leads or not, the alternative with the
    fewest violations of `model.rules` is reported, then that of the least F. Where the broker
    already holds a replica, the alternative is that it leads; where it leads, the cost is 0.
    Raises InvalidCluster if the snapshot lacks a partition of the plan, or two moves name the same
    one.
    """
    planned = Proposal.of_moves(snapshot, plan.goals, plan.moves, plan.replication)
    now = evaluate_proposal(planned)
    known = {v.words for v in now.violations}
    tried = [
        (_new_faults(found, known), found, change)
        for change in _alternatives(planned, row, broker)
        for found in [_evaluate_with(planned, change)]
    ]
    if not tried:
        return _already_there(planned, row, broker)
    faults, found, change = min(tried, key=lambda t: (len(t[0]), t[1].objective))
    return WhyNot(
        partition=snapshot.id(row),
        broker=broker,
        forbidden=faults,
        cost=found.objective - now.objective,
        price=found.prices - now.prices,
        words=faults or tuple(_answer(planned, change, now, found, plan)),
    )


def _new_faults(found: Evaluation, known: set[str]) -> tuple[str, ...]:
    return tuple(f"{v.rule}: {v.words}" for v in found.violations if v.words not in known)


def _planned(proposal: Proposal, row: int) -> Change:
    here = proposal.snapshot.row(row)
    return proposal.changed.get(row, Change(row, here.replicas, here.leader))


def _alternatives(proposal: Proposal, row: int, broker: BrokerId) -> Iterator[Change]:
    """In place of each replica, leading or not; only the leadership where it holds one."""
    now = _planned(proposal, row)
    if broker in now.replicas:
        if broker != now.leader:
            others = (b for b in now.replicas if b != broker)
            yield Change(row, (broker, *others), broker)
        return
    for gone in now.replicas:
        kept = [b for b in now.replicas if b != gone]
        leaders = {broker, now.leader if now.leader != gone else broker}
        for leader in sorted(leaders):
            rest = sorted({*kept, broker} - {leader}, key=[*kept, broker].index)
            yield Change(row, (leader, *rest), leader)


def _evaluate_with(proposal: Proposal, change: Change) -> Evaluation:
    """Evaluate the plan with one row changed differently."""
    others = [c for c in proposal.changes if c.row != change.row]
    here = proposal.snapshot.row(change.row)
    same = set(change.replicas) == set(here.replicas) and change.leader == here.leader
    changes = tuple(others) if same else (*others, change)
    return evaluate_proposal(
        Proposal(proposal.snapshot, proposal.goals, changes, proposal.replication)
    )


def _already_there(proposal: Proposal, row: int, broker: BrokerId) -> WhyNot:
    pid = proposal.snapshot.id(row)
    moved = row in proposal.changed
    where = "the plan moves it there" if moved else "it is there already, and stays there"
    words = f"{pid} is led by broker {broker} after the plan: {where}"
    return WhyNot(partition=pid, broker=broker, forbidden=(), cost=0.0, price=0.0, words=(words,))


# ---- words


def _answer(
    proposal: Proposal, change: Change, now: Evaluation, found: Evaluation, plan: Plan
) -> Iterator[str]:
    pid = proposal.snapshot.id(change.row)
    cost, price = found.objective - now.objective, found.prices - now.prices
    if set(change.replicas) == set(proposal.snapshot.replicas(change.row)):
        yield f"it would undo the plan's move of {pid}"
    parts = f"{cost - price:+.3g} from imbalance, {price:+.3g} from the cost of moves"
    how = f"allowed{_in_place(proposal, change)}"
    if cost > 0:
        yield f"{how}, and the imbalance score would rise by {cost:.3g}: {parts}"
    else:
        yield (
            f"{how}, and the imbalance score would not rise ({cost:+.3g}: {parts}); the plan "
            f"is within {plan.gap:.3g} of the proved bound"
        )
    yield from _shifts(proposal, change, now, found)
    yield from _others(proposal, change)


def _in_place(proposal: Proposal, change: Change) -> str:
    """Which replica would be replaced, and whether the new one would lead."""
    before = _planned(proposal, change.row).replicas
    gone = [b for b in before if b not in change.replicas]
    if len(before) == 1:
        return ""
    leads = "as leader" if change.leader not in before or not gone else "as follower"
    return f" {leads}" + (f" in place of broker {gone[0]}" if gone else "")


def _shifts(
    proposal: Proposal, change: Change, now: Evaluation, found: Evaluation
) -> Iterator[str]:
    """The affected broker and dimension whose deviation grows most."""
    touched = {*change.replicas, *_planned(proposal, change.row).replicas}
    changes = [
        (rounded(abs(after) - abs(before)), rounded(after), b, key, before)
        for key, by_broker in found.deviations.items()
        for b, after in by_broker.items()
        for before in [now.deviations[key][b]]
        if b in touched
    ]
    further, after, broker, key, before = max(changes, default=(0.0, 0.0, 0, "", 0.0))
    if further > 0:
        yield (
            f"broker {broker} would be {deviation_text(after)} in {dimension_words(key)}, "
            f"with the plan it is {deviation_text(before)}"
        )


def _others(proposal: Proposal, change: Change) -> Iterator[str]:
    """What the plan does with the broker instead."""
    snapshot = proposal.snapshot
    target = _new_of(proposal, change)
    into, out_of = [], []
    for other in proposal.changes:
        before = snapshot.replicas(other.row)
        if other.row == change.row:
            continue
        if target in other.replicas and target not in before:
            into.append(str(snapshot.id(other.row)))
        if target in before and target not in other.replicas:
            out_of.append(str(snapshot.id(other.row)))
    if into:
        yield f"the plan sends {_some(into)} to broker {target} instead"
    if out_of:
        yield f"the plan takes {_some(out_of)} from broker {target}"


def _new_of(proposal: Proposal, change: Change) -> BrokerId:
    before = _planned(proposal, change.row).replicas
    return next((b for b in change.replicas if b not in before), change.leader)


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(names[:3])
    return listed if len(names) <= 3 else f"{listed} and {len(names) - 3} more"
