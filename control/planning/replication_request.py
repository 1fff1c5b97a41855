"""A request for another replication factor: the topics it names, what forbids it, and its plan."""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from pydantic import ValidationError

from control.planning.least_bytes import least_added
from control.planning.validate import refuse_breaches
from model.errors import ConfigError, GuardrailRefused
from model.exchange.text_files import nearest
from model.goals.goals import Goals, RackRule, SolveLimits
from model.goals.topic_placement import with_topic_placements
from model.ids import NO_BROKER, TopicName
from model.names import Names
from model.plan.plan import Plan
from model.plan.proposal import Proposal
from model.snapshot.snapshot import TAKING, Bools, BrokerState, Snapshot, StorageKind, Topic
from model.units import count_text, listed

MOST_NAMED = 3
"""Topics named in a refusal."""
_NAMES = re.compile(r"[A-Za-z0-9._-]+(\|[A-Za-z0-9._-]+)*")
"""Names of topics, joined as alternatives."""


class BadExpression(ConfigError):
    """A regular expression of topics that is not valid, or too large."""


def topics_of(snapshot: Snapshot, patterns: Sequence[str]) -> tuple[TopicName, ...]:
    """Topics that names, or regular expressions of whole names, stand for; sorted.

    Names may be joined by `|`: each stands for itself alone, although its dots would match other
    names, too. Internal topics are among the topics only by name. Raises ConfigError: one stands
    for none, and BadExpression.
    """
    topics = {t.name: t for t in snapshot.header.topics}
    found: set[TopicName] = set()
    for pattern in patterns:
        matching = _matching(topics, pattern)
        if not matching:
            raise ConfigError(f"there is no topic {pattern!r}{nearest(pattern, list(topics))}")
        found |= matching
    return tuple(sorted(found))


def _matching(topics: Mapping[TopicName, Topic], pattern: str) -> set[TopicName]:
    parts = pattern.split("|") if _NAMES.fullmatch(pattern) else [pattern]
    alternatives = [TopicName(part) for part in parts]
    found = {name for name in alternatives if name in topics}
    if rest := "|".join(name for name in alternatives if name not in topics):
        names = _expression(rest)
        found |= {n for n, t in topics.items() if not t.internal and names.match(n)}
    return found


def _expression(pattern: str) -> Names:
    try:
        return Names(regex=(pattern,))
    except ValidationError as exc:
        raise BadExpression(exc.errors()[0]["msg"].removeprefix("Value error, ")) from None


def plan_replication(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, wanted: Mapping[TopicName, int]
) -> Plan | None:
    """Plan so many replicas of every partition of these topics; None if all have them.

    Raises GuardrailRefused, and names the topic, the partition or the broker: too few brokers may
    hold replicas, or a rule of the goals would be broken.
    """
    from solver.replication.placing import NoRoom
    from solver.replication.replication_plan import replication_plan

    refuse_replication(snapshot, goals, wanted)
    try:
        plan = replication_plan(snapshot, goals, limits, wanted)
    except NoRoom as exc:
        full = snapshot.id(exc.row)
        raise GuardrailRefused(
            f"{_refusal(wanted[full.topic])}: no broker is left for a replica of {full}: each "
            "holds one, may take none, or would be over a limit of its capacity or of "
            "replicas_per_broker"
        ) from None
    if plan is None:
        return None
    proposal = Proposal.of_moves(snapshot, plan.goals, plan.moves, plan.replication)
    refuse_breaches(proposal, _refusal(*wanted.values()))
    return plan


def refuse_replication(snapshot: Snapshot, goals: Goals, wanted: Mapping[TopicName, int]) -> None:
    """Raise GuardrailRefused where the request is impossible whatever is planned."""
    for replicas in sorted({*wanted.values()}):
        topics = [topic for topic, count in wanted.items() if count == replicas]
        for reason in _obstacles(snapshot, goals, topics, replicas):
            raise GuardrailRefused(f"{_refusal(replicas)}: {reason}")


def _refusal(*replicas: int) -> str:
    *some, last = sorted({*replicas})
    counts = f"{listed(some, MOST_NAMED)} or {last} replicas" if some else ""
    return f"cannot set {counts or count_text(last, 'replica')}"


def racks_of(snapshot: Snapshot, goals: Goals) -> int | None:
    """Number of racks with live brokers; None where racks are unknown, or do not count."""
    racks = {b.rack for b in snapshot.header.brokers if b.state is not BrokerState.DEAD}
    return None if goals.rack_rule is not RackRule.SPREAD or None in racks else len(racks)


def rack_sentence(snapshot: Snapshot, goals: Goals, replicas: int) -> str:
    """That there are fewer racks than replicas; empty where racks are unknown, or do not count."""
    racks = racks_of(snapshot, goals)
    if racks is None or replicas <= racks:
        return ""
    return (
        f"{count_text(replicas, 'replica')} in {count_text(racks, 'rack')}: racks hold more "
        "than one replica of a partition"
    )


def least_replication(snapshot: Snapshot, topics: Sequence[TopicName], replicas: int) -> int | None:
    """Bytes that any plan copies after which partitions of these topics have so many replicas.

    None where a size is unknown; as `least_added`.
    """
    rows = np.flatnonzero(are_of(snapshot, topics)).tolist()
    return least_added(snapshot, dict.fromkeys(rows, replicas))


def are_of(snapshot: Snapshot, topics: Sequence[TopicName]) -> Bools:
    """(n,) whether partitions belong to one of these topics of the snapshot."""
    names = [t.name for t in snapshot.header.topics]
    found: Bools = np.isin(snapshot.partitions.topic, [names.index(topic) for topic in topics])
    return found


def _obstacles(
    snapshot: Snapshot, goals: Goals, topics: Sequence[TopicName], replicas: int
) -> Iterator[str]:
    header, columns = snapshot.header, snapshot.partitions
    kinds = {t.name: t.storage for t in header.topics}
    shared = [t for t in topics if kinds[t] is StorageKind.SHARED]
    if shared and replicas > 1:
        yield (
            f"{_named(shared)} on shared storage, which keeps the copies; AutoMQ has one replica "
            "of each partition"
        )
    taking = sum(b.state in TAKING for b in header.brokers)
    mine, counts = are_of(snapshot, topics), snapshot.replica_counts
    fewer = np.flatnonzero(mine & (counts < replicas)).tolist()
    if replicas > taking and fewer:
        yield (
            f"{snapshot.id(fewer[0])} has {counts[fewer[0]]}, and only "
            f"{count_text(taking, 'broker')} may take replicas of a partition, one each; add "
            "brokers, or include excluded ones"
        )
    offline = np.flatnonzero(mine & (counts != replicas) & (columns.leader == NO_BROKER)).tolist()
    if offline:
        yield f"{snapshot.id(offline[0])} has no leader; bring its replicas back first"
    proposal = Proposal(snapshot, with_topic_placements(goals, snapshot), ())
    for row in np.flatnonzero(mine).tolist():
        if proposal.domains.of(row).placement is not None:
            yield (
                f"{snapshot.id(row)} has placement constraints, which say how many replicas it "
                "has; change these"
            )
            break
    for topic in topics:
        found = counts[are_of(snapshot, [topic])]
        if len(found) and found.min() < replicas < found.max():
            yield (
                f"{topic} has partitions with {found.min()} and with {found.max()} replicas; set "
                f"{found.max()} first, so that none is added and removed at once"
            )


def _named(topics: Sequence[TopicName]) -> str:
    return f"{listed(topics, MOST_NAMED)} {'lies' if len(topics) == 1 else 'lie'}"
