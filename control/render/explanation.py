"""Why a plan makes a move, and why it does not make another, as text and JSON."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from control.cli.output import Form
from control.cli.output_types import ExplainAnswer, MoveAnswer, NotMadeAnswer
from control.render.text import ids_text, json_text, table
from model.errors import ConfigError
from model.evaluate import evaluate
from model.exchange.text_files import nearest
from model.goals.goals import ObjectiveKind
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan
from model.plan.remaining import remaining_text
from model.plan.tolerance import tolerance_text
from model.snapshot.snapshot import TAKING, Snapshot, dimension_words
from model.units import count_text, deviation_text
from solver.problem.problem import compile_problem
from solver.report.counterfactual import MoveValue, WhyNot, move_values, why_not
from solver.report.unmovable import UnmovableImbalance, unmovable
from solver.search.observer import SolveObserver
from solver.solve import solve

MOST_WORK: Final = 5.0
"""Search budget for finding the imbalance that remains because moves cost."""

MOST_TRIED: Final = 64
"""Most brokers that are tried as destinations of a partition that is not moved."""

_NEXT_TO_NOTHING: Final = 1e-9
"""Factor on the cost of a move that makes it negligible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plan and the snapshot that it was made for."""

    plan: Plan
    snapshot: Snapshot


def explanation(
    case: Case, move: str | None, to: int | None, output: Form, observer: SolveObserver
) -> str:
    """The answer of `explain`, as text or JSON.

    move: a number in the plan or a partition, `orders-7`; None for the whole plan.
    to: the broker that the partition does not move to. Raises ConfigError where there
    is no such move, partition or broker.
    """
    if move is None:
        return _whole(case, output, observer)
    number, row = _find(case, move)
    if to is not None:
        found = [why_not(case.snapshot, case.plan, row, _broker(case, to))]
        return _not_made(found, output)
    if number is None:
        best, which = _why_it_stays(case, row, observer)
        stays = f"{case.snapshot.id(row)} is not moved; the best of {which}:"
        return _not_made([best], output, stays)
    return _one(case, number, output)


# ---- the move in question


def _find(case: Case, move: str) -> tuple[int | None, int]:
    """The move's number, None if the plan does not move the partition, and its row."""
    plan, snapshot = case.plan, case.snapshot
    if move.isascii() and move.isdigit():
        number = int(move)
        if not 1 <= number <= len(plan.moves):
            raise ConfigError(
                f"the plan has {count_text(len(plan.moves), 'move')}; there is no number {number}"
            )
        return number, snapshot.row_of[plan.moves[number - 1].id]
    name = re.fullmatch(r"(.+)-(\d+)", move)
    row = None
    if name is not None:
        row = snapshot.find(PartitionId(TopicName(name[1]), int(name[2])))
    if row is None:
        raise ConfigError(_unknown(snapshot, move, name[1] if name else move))
    numbers = {m.id: i for i, m in enumerate(plan.moves, 1)}
    return numbers.get(snapshot.id(row)), row


def _unknown(snapshot: Snapshot, move: str, topic: str) -> str:
    """The message about an unknown partition, with what exists instead."""
    if numbers := _numbers(snapshot, move):
        return f"{move} is a topic; name one of its partitions: {numbers}"
    if numbers := _numbers(snapshot, topic):
        return f"{topic} has no such partition; its partitions are {numbers}"
    near = nearest(topic, [t.name for t in snapshot.header.topics])
    return f"{move!r} is neither the number of a move nor a partition like orders-7{near}"


def _numbers(snapshot: Snapshot, topic: str) -> str:
    """The partitions of a topic, `0 to 7` or a list; empty without any."""
    named = (snapshot.id(row) for row in range(len(snapshot)))
    found = sorted(p.partition for p in named if p.topic == topic)
    if len(found) > 1 and found == list(range(found[0], found[-1] + 1)):
        return f"{found[0]} to {found[-1]}"
    shown = ", ".join(map(str, found[:MOST_TRIED]))
    return shown + (" ..." if len(found) > MOST_TRIED else "")


def _broker(case: Case, number: int) -> BrokerId:
    known = case.snapshot.broker
    if number not in known:
        ids = ", ".join(map(str, list(known)[:20]))
        raise ConfigError(f"--to: there is no broker {number}; there are {ids}")
    return BrokerId(number)


# ---- moves of the plan


def _whole(case: Case, output: Form, observer: SolveObserver) -> str:
    plan = case.plan
    problem = compile_problem(case.snapshot, plan.goals)
    found = list(move_values(problem, plan, range(1, len(plan.moves) + 1)))
    before = evaluate(case.snapshot, plan.goals, ()).deviation
    after = evaluate(case.snapshot, plan.goals, plan.moves, plan.replication).deviation
    parts = list(_left_parts(case, unmovable(problem), after, observer))
    if output is Form.JSON:
        return json_text(
            ExplainAnswer.of(
                plan,
                plan=plan.hash,
                imbalance_before=before,
                imbalance_after=after,
                left=parts,
                moves=found,
            )
        )
    lines = [
        f"{plan.status}: {count_text(len(plan.moves), 'move')}; imbalance "
        f"{before:.4g} -> {after:.4g}; with the cost of the moves "
        f"{plan.objective:.4g}"
    ]
    lines += [f"  {p.deviation:.3g} remains because {p.cause}" for p in parts]
    lines += remaining_text(plan.over_limit, plan.rack_violations)
    lines += tolerance_text(plan.outside, plan.tolerance_unmet)
    lines += [plan.leaders_only_text] if plan.leaders_only_text else []
    text = "\n".join(lines) + "\n"
    return text + ("\n" + _worths_text(found) if found else "")


def _left_parts(
    case: Case, stuck: Sequence[UnmovableImbalance], after: float, observer: SolveObserver
) -> Iterator[UnmovableImbalance]:
    """The imbalance that remains after the plan, split by cause."""
    yield from stuck
    rest = after - sum(part.deviation for part in stuck)
    free = _without_prices(case, observer)
    by_price = 0.0 if free is None else min(max(0.0, after - free), max(0.0, rest))
    if by_price > 1e-9:
        cause = "the moves that would remove it cost more than they gain"
        yield UnmovableImbalance(cause=cause, deviation=by_price)
    if rest - by_price > 1e-9:
        cause = "partitions cannot be split, and rules restrict their brokers"
        if free is None or observer.stops():
            cause += ", or moves cost more than they gain"
        if observer.stops():
            cause += " (stopped before the share of each was known)"
        yield UnmovableImbalance(cause=cause, deviation=rest - by_price)


def _without_prices(case: Case, observer: SolveObserver) -> float | None:
    """Imbalance after the best plan found if moves cost nothing; None if unknown."""
    plan = case.plan
    if plan.goals.objective is not ObjectiveKind.VARIANCE:
        return None
    # Where the directories of a broker are emptied does not matter to the balance of brokers.
    free = {"move_price": plan.move_price * _NEXT_TO_NOTHING, "emptied": ()}
    goals = plan.goals.model_copy(update=free)
    work = min(plan.limits.work, MOST_WORK)
    limits = plan.limits.model_copy(update={"work": work})
    best = solve(case.snapshot, goals, limits, observer).best
    if best is None:
        return None
    return evaluate(case.snapshot, goals, best.moves).deviation


def _worths_text(found: Sequence[MoveValue]) -> str:
    rows = [
        [
            str(w.number),
            str(w.partition),
            f"{w.gain:.4g}",
            f"{w.price:.4g}",
            "-" if w.relieved is None else str(w.relieved),
            w.goal or "-",
            w.reason,
        ]
        for w in found
    ]
    headers = ["move", "partition", "gain", "cost", "relieves", "goal", "reason"]
    return table(headers, rows)


def _one(case: Case, number: int, output: Form) -> str:
    problem = compile_problem(case.snapshot, case.plan.goals)
    (worth,) = move_values(problem, case.plan, [number])
    if output is Form.JSON:
        return json_text(MoveAnswer.of(worth))
    move = case.plan.moves[number - 1]
    brokers = f"{ids_text(move.replicas_before)} -> {ids_text(move.replicas_after)}"
    lines = [
        f"move {number} of {len(case.plan.moves)}: {worth.partition} from {brokers}",
        worth.reason,
        f"without it the imbalance score would rise by {worth.gain:.4g}, net of its cost of "
        f"{worth.price:.4g}",
    ]
    if not worth.effects:
        return "\n".join(lines) + "\n"
    rows = [
        [
            str(e.broker),
            dimension_words(e.dimension),
            *(deviation_text(d, 1) for d in (e.before, e.after, e.without)),
        ]
        for e in worth.effects
    ]
    headers = ["broker", "goal", "now", "after the plan", "without the move"]
    return "\n".join(lines) + "\n\n" + table(headers, rows)


# ---- moves that are not made


def _why_it_stays(case: Case, row: int, observer: SolveObserver) -> tuple[WhyNot, str]:
    """The best move of a partition that is not moved, and how many were compared."""
    here = case.snapshot.replicas(row)
    brokers = [b.id for b in case.snapshot.header.brokers if b.state in TAKING and b.id not in here]
    if not brokers:
        raise ConfigError(
            f"{case.snapshot.id(row)} is not moved, and no other broker accepts replicas"
        )
    found: list[WhyNot] = []
    for broker in brokers[:MOST_TRIED]:
        if found and observer.stops():
            break
        found.append(why_not(case.snapshot, case.plan, row, broker))
    which = "the other brokers"
    if len(found) < len(brokers):
        which = f"{len(found)} of the {count_text(len(brokers), 'other broker')}"
    best = min(found, key=lambda w: (len(w.forbidden) > 0, w.cost, w.broker))
    return best, which


def _not_made(found: Sequence[WhyNot], output: Form, heading: str = "") -> str:
    if output is Form.JSON:
        return json_text(NotMadeAnswer.of(not_made=found))
    lines = [heading] if heading else []
    for answer in found:
        lines.append(f"why not {answer.partition} to broker {answer.broker}?")
        lines += [f"  {words}" for words in answer.words]
    return "\n".join(lines) + "\n"
