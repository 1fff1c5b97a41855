"""Placement constraints in the format of Confluent's kafka-topics."""

import json
import os
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from model.errors import ConfigError
from model.exchange.text_files import fault, line_in_json, read_object, read_text
from model.exchange.validation_messages import validation_message
from model.goals.rack_placement import PlacementRule, ReplicaPlacement
from model.names import Names

USER_TOPICS: Final = "[^_].*|_([^_].*)?"
"""Every topic but those that begin with `__`, as Kafka's own do."""


def read_placement(given: str) -> PlacementRule:
    """Read a placement rule from `FILE` or `TOPICS=FILE`, in Confluent's format.

    FILE contains JSON as in the topic config `confluent.placement.constraints`. TOPICS is a
    regular expression that covers the whole name; by default, all topics that do not begin with
    `__`. A path that exists is taken as FILE even if it contains `=`.

    Raises ConfigError: the expression is invalid, or the file cannot be read or is invalid; for
    its content, the message names line and field.
    """
    topics, path = USER_TOPICS, Path(given)
    # Unlike Path.exists, False where the text is too long for a path.
    if "=" in given and not os.path.exists(given):
        topics, _, name = given.partition("=")
        path = Path(name)
    try:
        names = Names(regex=(topics,))
    except ValidationError as exc:
        raise ConfigError(f"--placement {given}: {exc.errors()[0]['msg']}") from exc
    return PlacementRule(topics=names, placement=_placement(path))


def _placement(path: Path) -> ReplicaPlacement:
    try:
        return ReplicaPlacement.model_validate_json(json.dumps(read_object(path)))
    except ValidationError as exc:
        first = exc.errors()[0]
        line = line_in_json(read_text(path), first["loc"])
        raise fault(path, line, validation_message(ReplicaPlacement, first)) from exc
