"""Cruise Control's own description of its answers, as JSON schemas."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import yaml  # type: ignore[import-untyped]

FOLDER: Final = Path(__file__).parents[3] / "fixtures" / "cruise_control"
NUMBERS: Final = {"type": "number"}
TOPIC_PARTITION: Final = {"type": "object", "required": ["topic", "partition", "hash"]}


@cache
def schema(file: str, name: str) -> Any:
    """One schema with its references resolved.

    Faults of the description are corrected: Cruise Control itself writes fractions of loads, which
    are integers there, `topicPartition` as an object, which is a string there, and `RequestInfo`
    as a list; and `version` is misspelt once.
    """
    document = yaml.safe_load((FOLDER / f"{file}.yaml").read_text())
    found = _resolved(document[name], file)
    if name == "PartitionLoadRecord":
        for key in ("cpu", "networkInbound", "networkOutbound", "disk", "msg_in"):
            found["properties"][key] = NUMBERS
    if name == "ExecutionProposal":
        found["properties"]["topicPartition"] = TOPIC_PARTITION
    if name == "ReviewResult":
        found["required"] = ["version", "RequestInfo"]
        found["properties"]["RequestInfo"] = {
            "type": "array",
            "items": found["properties"]["RequestInfo"],
        }
    return found


def _resolved(node: Any, file: str) -> Any:
    if isinstance(node, list):
        return [_resolved(each, file) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        where, _, name = node["$ref"].partition("#/")
        return schema(Path(where).stem or file, name)
    return {key: _resolved(each, file) for key, each in node.items()}


def check(document: Any, file: str, name: str) -> None:
    """Raise jsonschema.ValidationError unless the document fits."""
    jsonschema.validate(document, schema(file, name))
