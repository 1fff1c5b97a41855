"""`plimsoll place`: where the partitions of a topic about to be created should lie."""

import sys
from pathlib import Path
from typing import Any

from control.cli.exit_codes import Exit
from control.cli.input_source import (
    Origin,
    check_racks,
    goals_of,
    warn_of_ignored,
    warn_of_placements,
)
from control.cli.output_files import KAFKA, check_file
from control.cli.output_format import Form
from control.cli.progress_line import LISTS, shown
from control.render.plan_text import json_text, table
from control.settings.settings import Settings
from model.files import rounded, write_document
from model.snapshot.snapshot import Snapshot
from model.units import count_text
from solver.new_topic.assign_topic import STOPPED, place
from solver.new_topic.topic_problem import Evenness, NewTopic, TopicAssignment


def make(
    settings: Settings,
    origin: Origin,
    topic: NewTopic,
    *,
    goals_file: Path | None,
    out: Path | None,
    output: Form,
) -> int:
    """Place a new topic, and print or write its replica lists; changes nothing.

    Options: TOPIC; `--partitions`, `-p`; `--replication-factor`, `-r`; `--net-in` and
    `--net-out`, expected bytes per second of one partition; what `plan` takes for the
    cluster and its goals; `--out FILE` for the JSON of kafka-reassign-partitions,
    which `-o json` holds, too.
    """
    check_file(out, KAFKA)
    goals = goals_of(settings, goals_file, origin)
    snapshot = origin.read(settings)
    given = goals.placements[: len(origin.placement)]
    warn_of_placements(given, [topic.name], f"does not match topic {topic.name}")
    warn_of_ignored(snapshot, goals)
    exported = out or ("the assignment" if output is Form.JSON else None)
    check_racks(snapshot, goals, exported, most_replicas=topic.replication_factor)
    placing = shown(
        lambda observer: place(snapshot, goals, topic, settings.solve, observer),
        kept=LISTS,
    )
    if placing.replicas and out is not None:
        write_document(out, reassignment_document(placing))
    if output is Form.JSON:
        sys.stdout.write(json_text(_document(placing)))
    else:
        sys.stdout.write(_text(snapshot, placing))
    return Exit.DONE if placing.replicas else Exit.INFEASIBLE


def reassignment_document(placing: TopicAssignment) -> dict[str, Any]:
    """What `kafka-reassign-partitions --reassignment-json-file` takes."""
    partitions = [
        {"topic": placing.topic.name, "partition": number, "replicas": list(row)}
        for number, row in enumerate(placing.replicas)
    ]
    return {"version": 1, "partitions": partitions}


def replica_assignment(placing: TopicAssignment) -> str:
    """What `kafka-topics --create --replica-assignment` takes: `1:2,2:3`."""
    return ",".join(":".join(map(str, row)) for row in placing.replicas)


def _document(placing: TopicAssignment) -> dict[str, Any]:
    topic = placing.topic
    found: dict[str, Any] = {
        "topic": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "reasons": list(placing.reasons),
        "assignment": reassignment_document(placing) if placing.replicas else None,
        "replica_assignment": replica_assignment(placing) or None,
        "replicas_per_broker": _evenness(placing.evenness),
        "leaders_per_broker": _evenness(placing.leader_evenness),
        "load": None,
    }
    if placing.limited_by:
        found["limited_by"] = placing.limited_by
    if placing.load_evenness is not None:
        load = placing.load_evenness
        found["load"] = {
            "cost": rounded(load.cost),
            "bound": rounded(load.bound),
            "proved": load.proved,
        }
    return found


def _evenness(even: Evenness | None) -> dict[str, Any] | None:
    if even is None:
        return None
    return {
        "least": even.least,
        "most": even.most,
        "greatest_lowest": even.greatest_lowest,
        "least_highest": even.least_highest,
        "proved": even.proved,
    }


# ---- words


def _text(snapshot: Snapshot, placing: TopicAssignment) -> str:
    topic = placing.topic
    what = (
        f"{topic.name}: {count_text(topic.partitions, 'partition')} with "
        f"{count_text(topic.replication_factor, 'replica')} each"
    )
    if not placing.replicas:
        return f"{what} cannot be placed: {'; '.join(placing.reasons)}\n"
    lines = [what]
    for words, even in (
        ("replicas", placing.evenness),
        ("leaders", placing.leader_evenness),
    ):
        if even is not None:
            lines.append(_even_words(words, even))
    if placing.load_evenness is not None:
        load = placing.load_evenness
        end = "the least there is" if load.proved else f"proved bound {load.bound:.6g}"
        lines.append(f"unevenness of the expected load {load.cost:.6g}; {end}")
    if placing.limited_by:
        more = "" if placing.limited_by == STOPPED else "; solve.work allows more"
        lines.append(f"limited by: {placing.limited_by}{more}")
    tables = (_brokers(snapshot, placing), _partitions(placing))
    command = f"--replica-assignment {replica_assignment(placing)}\n"
    return "\n".join(lines) + "\n\n" + "\n".join((*tables, command))


def _even_words(what: str, even: Evenness) -> str:
    found = f"{what} per broker: {_range(even.least, even.most)}"
    if even.proved:
        return f"{found}; no placement is more even"
    best = _range(even.greatest_lowest, even.least_highest)
    return f"{found}; none is proved more even than {best}"


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _brokers(snapshot: Snapshot, placing: TopicAssignment) -> str:
    rows = []
    for broker, (replicas, leaders) in placing.counts().items():
        rack = snapshot.broker[broker].rack
        rows.append([str(broker), rack or "-", str(replicas), str(leaders)])
    return table(["broker", "rack", "new replicas", "new leaders"], rows)


def _partitions(placing: TopicAssignment) -> str:
    rows = [
        [str(number), ",".join(map(str, row))]
        for number, row in enumerate(placing.replicas)
    ]
    return table(["partition", "brokers"], rows)
