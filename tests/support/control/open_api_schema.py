"""The service's own OpenAPI description, as a schema of its answers."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from control.service.open_api import description


def check_answer(path: str, text: str, method: str = "get") -> Any:
    """The answer as JSON; raises jsonschema.ValidationError unless it fits."""
    document = description()
    success = document["paths"][path][method]["responses"]["200"]
    schema = success["content"]["application/json"]["schema"]
    found = json.loads(text)
    jsonschema.Draft202012Validator(schema | {"components": document["components"]}).validate(found)
    return found
