"""The assignment of a new topic as text and as JSON."""

from typing import Any

from control.cli.output import Form
from control.cli.output_types import AssignAnswer
from control.render.text import ids_text, json_text, range_text, table
from model.snapshot.snapshot import Snapshot
from model.units import count_text
from solver.new_topic.assign_topic import STOPPED
from solver.new_topic.topic_problem import Evenness, TopicAssignment


def assignment_text(snapshot: Snapshot, placing: TopicAssignment, output: Form) -> str:
    """What `assign` prints: replica lists, counts per broker and their proof."""
    if output is Form.JSON:
        return json_text(_answer(placing))
    return _text(snapshot, placing)


def reassignment_document(placing: TopicAssignment) -> dict[str, Any]:
    """The JSON that `kafka-reassign-partitions --reassignment-json-file` reads."""
    partitions = [
        {"topic": placing.topic.name, "partition": number, "replicas": list(row)}
        for number, row in enumerate(placing.replicas)
    ]
    return {"version": 1, "partitions": partitions}


def replica_assignment(placing: TopicAssignment) -> str:
    """The argument of `kafka-topics --create --replica-assignment`: `1:2,2:3`."""
    return ",".join(":".join(map(str, row)) for row in placing.replicas)


def _answer(placing: TopicAssignment) -> AssignAnswer:
    limited = {"limited_by": placing.limited_by} if placing.limited_by else {}
    return AssignAnswer.of(
        placing.topic,
        topic=placing.topic.name,
        reasons=placing.reasons,
        assignment=reassignment_document(placing) if placing.replicas else None,
        replica_assignment=replica_assignment(placing) or None,
        replicas_per_broker=placing.evenness,
        leaders_per_broker=placing.leader_evenness,
        load=placing.load_evenness,
        **limited,
    )


# ---- words


def _text(snapshot: Snapshot, placing: TopicAssignment) -> str:
    topic = placing.topic
    what = (
        f"{topic.name}: {count_text(topic.partitions, 'partition')} with "
        f"{count_text(topic.replication_factor, 'replica')} each"
    )
    if not placing.replicas:
        return f"{what} cannot be assigned: {'; '.join(placing.reasons)}\n"
    lines = [what]
    for words, even in (("replicas", placing.evenness), ("leaders", placing.leader_evenness)):
        if even is not None:
            lines.append(_even_words(words, even))
    if placing.load_evenness is not None:
        load = placing.load_evenness
        end = "proved minimal" if load.proved else f"proved bound {load.bound:.6g}"
        lines.append(f"imbalance of the expected load {load.cost:.6g}; {end}")
    if placing.limited_by:
        more = "" if placing.limited_by == STOPPED else "; solve.work allows more"
        lines.append(f"limited by: {placing.limited_by}{more}")
    tables = (_brokers(snapshot, placing), _partitions(placing))
    command = f"--replica-assignment {replica_assignment(placing)}\n"
    return "\n".join(lines) + "\n\n" + "\n".join((*tables, command))


def _even_words(what: str, even: Evenness) -> str:
    found = f"{what} per broker: {range_text(even.least, even.most)}"
    if even.proved:
        return f"{found}; proved optimal"
    best = range_text(even.greatest_lowest, even.least_highest)
    return f"{found}; proved limit {best}"


def _brokers(snapshot: Snapshot, placing: TopicAssignment) -> str:
    rows = []
    for broker, (replicas, leaders) in placing.counts().items():
        rack = snapshot.broker[broker].rack
        rows.append([str(broker), rack or "-", str(replicas), str(leaders)])
    return table(["broker", "rack", "new replicas", "new leaders"], rows)


def _partitions(placing: TopicAssignment) -> str:
    rows = [[str(number), ids_text(row)] for number, row in enumerate(placing.replicas)]
    return table(["partition", "brokers"], rows)
