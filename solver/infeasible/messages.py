"""Messages about conflicts, requirements and brokers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from model.exchange.confluent_placement import USER_TOPICS
from model.goals.goals import RackRule
from model.names import Names
from model.snapshot.snapshot import TAKING, BrokerState, Resource
from model.units import bytes_text, count_text, seconds_text, share_text
from solver.infeasible.assumptions import BUDGETS, Barriers, Requirement, RequirementKind
from solver.infeasible.minimal_conflict import Conflict
from solver.problem.eligibility import FIXED_REASONS, FixedReason
from solver.problem.problem import Problem

MOST_NAMED = 5
"""Partitions or brokers of one kind that are listed by name before the rest is counted."""

ALL_TOPICS = Names(regex=(USER_TOPICS,))
"""The topics of a placement file that lists none: all except internal topics."""

_OF_ONE_ROW = {RequirementKind.STATE, RequirementKind.PIN, RequirementKind.RETURN}


def conflict_text(problem: Problem, conflict: Conflict) -> tuple[str, ...]:
    """Describe a conflict in one sentence of clauses, the rows first: a tuple of one string.

    Says so where a smaller conflict may exist, except for a single row forbidden on brokers.
    """
    kinds = {t.kind for t in conflict.requirements}
    if len(conflict.rows) == 1 and kinds <= _OF_ONE_ROW:
        return ("; ".join(_one_row(problem, conflict)),)
    texts = [_rows(problem, conflict.rows), *requirement_texts(problem, conflict)]
    if not conflict.smallest:
        texts.append("a smaller conflict may exist")
    return ("; ".join([*texts, "these requirements cannot all be met"]),)


def _one_row(problem: Problem, conflict: Conflict) -> Iterator[str]:
    (row,) = conflict.rows
    rf = int(problem.rf[row])
    yield f"{problem.snapshot.id(row)} has {count_text(rf, 'replica')}"
    barriers = Barriers(problem)
    able = [
        b
        for b in range(len(problem.brokers))
        if not set(barriers.of(row, b)) & set(conflict.requirements)
    ]
    states = {
        problem.snapshot.header.brokers[t.at].state
        for t in conflict.requirements
        if t.kind is RequirementKind.STATE
    }
    if {t.kind for t in conflict.requirements} == {RequirementKind.STATE}:
        yield _left(problem, able, states)
    else:
        yield from requirement_texts(problem, conflict)
        ids = [str(problem.brokers[b]) for b in able]
        who = f"only {named('broker', ids)}" if able else "no broker"
        yield f"{who} may hold a replica"
    yield f"replication factor {rf} cannot be kept"


def _left(problem: Problem, able: Sequence[int], states: set[BrokerState]) -> str:
    """Describe the brokers left: `racks a and b have 2 brokers that are not draining`."""
    order = sorted(states)
    none = f"not {order[0]}" if len(order) == 1 else f"neither {' nor '.join(order)}"
    if not able:
        return f"no broker is {none}"
    racks = sorted({str(problem.snapshot.header.brokers[b].rack) for b in able})
    if "None" in racks:
        ids = [str(problem.brokers[b]) for b in able]
        return f"only {named('broker', ids)} {_be(able)} {none}"
    has = "has" if len(racks) == 1 else "have"
    brokers = count_text(len(able), "broker")
    return f"{named('rack', racks)} {has} {brokers} that {_be(able)} {none}"


def _be(requirements: Sequence[object]) -> str:
    return "is" if len(requirements) == 1 else "are"


def _rows(problem: Problem, rows: Sequence[int]) -> str:
    if not rows:
        # Partitions outside the model, whose load is pooled, conflict by themselves.
        return "all partitions have to be placed"
    if len(rows) > MOST_NAMED:
        return f"{count_text(len(rows), 'partition')} have to be placed"
    names = [
        f"{problem.snapshot.id(r)} ({count_text(int(problem.rf[r]), 'replica')})" for r in rows
    ]
    return f"{listed(names)} {'has' if len(rows) == 1 else 'have'} to be placed"


def requirement_texts(problem: Problem, conflict: Conflict) -> Iterator[str]:
    """Yield the clauses for the requirements in a conflict, in the order of their kinds.

    Pins, placements, budgets and reasons to stay get one each; capacities one per resource, states
    one per state, and returns one per row up to `MOST_NAMED`.
    """
    by_kind: dict[RequirementKind, list[Requirement]] = defaultdict(list)
    for requirement in conflict.requirements:
        by_kind[requirement.kind].append(requirement)
    for kind, requirements in sorted(by_kind.items()):
        yield from _requirement_texts(problem, kind, requirements, conflict.rows)


def _requirement_texts(
    problem: Problem,
    kind: RequirementKind,
    requirements: Sequence[Requirement],
    rows: Sequence[int],
) -> Iterator[str]:
    match kind:
        case RequirementKind.STATE:
            yield from _states(problem, requirements)
        case RequirementKind.PIN:
            yield from (pin_text(problem, t.at) for t in requirements)
        case RequirementKind.PLACEMENT:
            yield from (placement_text(problem, t.at) for t in requirements)
        case RequirementKind.RACKS:
            even = problem.goals.rack_rule is RackRule.EVEN
            yield f"replicas must be spread {'evenly ' if even else ''}over racks"
        case RequirementKind.RETURN:
            yield from _returns(problem, rows)
        case RequirementKind.STAYS:
            reasons = (FIXED_REASONS[t.at] for t in requirements)
            yield from (staying_text(int(problem.may.kept_by(r).sum()), r) for r in reasons)
        case RequirementKind.BUDGET:
            yield from (f"the budget is {budget_text(problem, t)}" for t in requirements)
            if any(BUDGETS[t.at] == "bytes" for t in requirements):
                yield from _unknown_sizes(problem, rows)
        case RequirementKind.REPLICA_LIMIT:
            limit = problem.goals.replicas_per_broker
            yield f"a broker may hold at most {count_text(limit, 'replica')}"
        case _:
            yield from _capacities(problem, requirements)


def _states(problem: Problem, requirements: Sequence[Requirement]) -> Iterator[str]:
    by_state: dict[BrokerState, list[int]] = defaultdict(list)
    for requirement in requirements:
        by_state[problem.snapshot.header.brokers[requirement.at].state].append(requirement.at)
    for state, positions in sorted(by_state.items()):
        ids = [str(problem.brokers[b]) for b in positions]
        if state in TAKING:
            # Nothing else forbids a replica on such a broker.
            yield f"a log directory of {named('broker', ids)} has failed"
        else:
            yield f"{named('broker', ids)} {_be(ids)} {state.words}"


def _unknown_sizes(problem: Problem, rows: Sequence[int]) -> Iterator[str]:
    """Partitions among these whose size is unknown, so that no budget of bytes allows a copy."""
    local = problem.snapshot.partitions.local_bytes
    unknown = [str(problem.snapshot.id(r)) for r in rows if local[r] < 0 and not problem.shared[r]]
    if len(unknown) > MOST_NAMED:
        yield f"the sizes of {count_text(len(unknown), 'partition')} are unknown"
    elif unknown:
        sizes = "size" if len(unknown) == 1 else "sizes"
        yield f"the {sizes} of {listed(unknown)} {_be(unknown)} unknown"


def _capacities(problem: Problem, requirements: Sequence[Requirement]) -> Iterator[str]:
    by_resource: dict[Resource, list[str]] = defaultdict(list)
    for requirement in requirements:
        resource = problem.snapshot.header.resources[requirement.part]
        by_resource[resource].append(str(problem.brokers[requirement.at]))
    for resource, ids in by_resource.items():
        limit = share_text(problem.goals.limit_of(resource))
        yield f"{named('broker', ids)} may be filled to {limit} in {resource.words}"


def _returns(problem: Problem, rows: Sequence[int]) -> Iterator[str]:
    """Partitions among these that may not return to brokers they left."""
    barred = [r for r in rows if r in problem.may.barred]
    if not barred or len(barred) > MOST_NAMED:
        yield "partitions may not return yet to brokers they left recently"
        return
    header = problem.snapshot.header
    for row in barred:
        pid = problem.snapshot.id(row)
        topic = header.topics[int(problem.snapshot.partitions.topic[row])]
        window = problem.goals.rest_of(topic.storage).return_window_s
        left = [str(problem.brokers[b]) for b in problem.may.barred[row]]
        yield (
            f"{pid} left {named('broker', left)} less than {seconds_text(window)} ago "
            "and may not return yet"
        )


def staying_text(count: int, why: FixedReason) -> str:
    """Format `1 partition is in cooldown after a recent move`, `2 partitions have no leader`."""
    verb, _, rest = why.partition(" ")
    if count == 1:
        verb = {"have": "has", "are": "is", "belong": "belongs"}[verb]
    return f"{count_text(count, 'partition')} {verb} {rest}"


def pin_text(problem: Problem, number: int) -> str:
    """Format what a pin requires: `a pin keeps orders on broker 1`.

    `number` is the pin's position in the goals.
    """
    pin = problem.goals.pins[number]
    where = []
    if pin.brokers:
        where.append(named("broker", [str(b) for b in pin.brokers]))
    if pin.racks:
        where.append(named("rack", pin.racks))
    return f"a pin keeps {names_text(pin.topics)} on {' in '.join(where) or 'any'}"


def placement_text(problem: Problem, number: int) -> str:
    """Format what an explicit placement requires, by rack.

    `the placement of orders asks for 2 in rack a and 1 observer in rack b`. `number` is its
    position in the goals.
    """
    rule = problem.goals.placements[number]
    counts = [
        *(f"{c} in rack {r}" for r, c in sorted(rule.placement.replica_racks.items())),
        *(
            f"{count_text(c, 'observer')} in rack {r}"
            for r, c in sorted(rule.placement.observer_racks.items())
        ),
    ]
    return f"the placement of {names_text(rule.topics)} asks for {listed(counts)}"


def no_such_rack(problem: Problem, rack: str | None) -> str:
    """Format that no broker is in a rack, and which racks exist; "" if a broker is in it."""
    racks = {b.rack for b in problem.snapshot.header.brokers}
    if rack in racks:
        return ""
    known = sorted(r for r in racks if r is not None)
    texts = f"racks: {listed(known)}" if known else "no broker's rack is known"
    return f"no broker is in rack {rack!r} ({texts})"


def budget_text(problem: Problem, requirement: Requirement, limit: int | None = None) -> str:
    """Format a budget with its unit, such as `10 replica moves`, at its present or a new limit.

    `requirement` is of the kind `BUDGET`; `limit` is a number or bytes, None for the present one,
    which the goals must then set.
    """
    name = BUDGETS[requirement.at]
    most = getattr(problem.goals.budgets, name) if limit is None else limit
    moves = count_text(most, "replica move")
    changed = count_text(most, "changed partition")
    return {
        "replica_moves": moves,
        "bytes": f"{bytes_text(most)} to copy",
        "leader_changes": count_text(most, "leader change"),
        "replica_moves_per_topic": f"{moves} per topic",
        "replica_moves_in_per_broker": f"{moves} into a broker",
        "replica_moves_out_per_broker": f"{moves} out of a broker",
        "partitions": changed,
        "partitions_per_topic": f"{changed} per topic",
    }[name]


def names_text(names: Names) -> str:
    """Format a set of topics: `orders`, `orders and audit.*`, `all topics`."""
    if names == ALL_TOPICS:
        return "all topics"
    texts = [
        *names.exact,
        *(f"{prefix}*" for prefix in names.prefix),
        *(f"/{expression}/" for expression in names.regex),
    ]
    return listed(texts) if texts else "no topic"


def broker_names(problem: Problem, positions: Sequence[int]) -> str:
    """Format brokers by position: `broker 2`, `broker 2 (draining)`, `brokers 1 and 2`."""
    found = [problem.snapshot.header.brokers[b] for b in positions]
    texts = [str(b.id) if b.state is BrokerState.ALIVE else f"{b.id} ({b.state})" for b in found]
    return named("broker", texts)


def named(noun: str, names: Sequence[str]) -> str:
    """Format a noun with names, as `listed` joins them: `broker 2`, `brokers 1 and 2`."""
    return f"{noun}{'s' if len(names) > 1 else ''} {listed(names)}"


def listed(names: Sequence[str]) -> str:
    """Join names: `a`, `a and b`, `a, b and c`.

    Of more than 2 x `MOST_NAMED` names, the first `MOST_NAMED` are given and the others counted; ""
    without names.
    """
    if len(names) > 2 * MOST_NAMED:
        rest = len(names) - MOST_NAMED
        names = [*names[:MOST_NAMED], f"{rest} more"]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
