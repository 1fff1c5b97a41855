"""Placement constraints that topics carry in their own configs, as rules of goals."""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
from pydantic import ValidationError

from model.exchange.validation_messages import validation_message
from model.goals.goals import Goals
from model.goals.rack_placement import PlacementRule, ReplicaPlacement
from model.ids import TopicName
from model.names import Names
from model.snapshot.snapshot import Snapshot
from model.units import count_text

CONFIG: Final = "confluent.placement.constraints"


def with_topic_placements(goals: Goals, snapshot: Snapshot) -> Goals:
    """The goals, and after their placements those of the topics' own configs.

    Topics that a rule of the goals matches already are left to it, and unusable values
    to `placement_warnings`. Topics with equal placements share one rule.
    """
    rules = [
        PlacementRule(topics=Names(exact=tuple(names)), placement=placement)
        for placement, names in _own(snapshot, goals).items()
        if isinstance(placement, ReplicaPlacement)
    ]
    if not rules:
        return goals
    return goals.model_copy(update={"placements": (*goals.placements, *rules)})


def placement_warnings(goals: Goals, snapshot: Snapshot) -> Iterator[str]:
    """What is wrong with the configs that are ignored, a sentence for each reason."""
    for reason, names in _own(snapshot, goals).items():
        if isinstance(reason, str):
            others = f" and {count_text(len(names) - 1, 'other')}" if names[1:] else ""
            yield f"the config {CONFIG} of topic {names[0]}{others} is ignored: {reason}"


def _own(snapshot: Snapshot, goals: Goals) -> dict[ReplicaPlacement | str, list[TopicName]]:
    """Topics that only their configs place, by their placement or what is wrong with it."""
    topics: dict[ReplicaPlacement | str, list[TopicName]] = defaultdict(list)
    racks = {b.rack for b in snapshot.header.brokers}
    for at, topic in enumerate(snapshot.header.topics):
        if not topic.placement or goals.placement_of(topic.name) is not None:
            continue
        found = parsed(topic.placement)
        if isinstance(found, ReplicaPlacement):
            found = _misfit(snapshot, at, found, racks) or found
        topics[found].append(topic.name)
    return topics


@lru_cache(maxsize=1024)
def parsed(text: str) -> ReplicaPlacement | str:
    """Parse a value of `confluent.placement.constraints`.

    A value that is not valid gives the reason, as text, instead of the placement.
    """
    try:
        return ReplicaPlacement.model_validate_json(text)
    except ValidationError as exc:
        return validation_message(ReplicaPlacement, exc.errors()[0])


def _misfit(
    snapshot: Snapshot, at: int, placement: ReplicaPlacement, racks: set[str | None]
) -> str:
    """Why no replica list of a topic can fit the placement; empty where one can."""
    counts = (*placement.replicas, *placement.observers)
    for entry in counts:
        if entry.constraints.rack not in racks:
            return f"no broker names the rack {entry.constraints.rack!r}"
    start, end = np.searchsorted(snapshot.partitions.topic, [at, at + 1]).tolist()
    lengths = np.diff(snapshot.partitions.replica_start[start : end + 1])
    requested = sum(entry.count for entry in counts)
    other = lengths[lengths != requested]
    if not other.size:
        return ""
    return f"it asks for {requested} replicas of each partition, and one has {other[0]}"
