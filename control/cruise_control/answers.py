"""Answers in Cruise Control's form: a status and a JSON document, or the same as text."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from control.cruise_control.load_documents import VERSION
from control.render.text import table
from model.printable import printable

NO_WINDOWS: Final = (
    "com.linkedin.kafka.cruisecontrol.exception.KafkaCruiseControlException: "
    "com.linkedin.cruisecontrol.exception.NotEnoughValidWindowsException"
)
"""What Strimzi looks for in an error in order to ask again later."""
ILLEGAL: Final = "java.lang.IllegalArgumentException"
"""What it looks for in an error about a broker or a goal that does not exist."""
ONGOING: Final = (
    "java.lang.IllegalStateException: com.linkedin.kafka.cruisecontrol.exception."
    "OngoingExecutionException"
)
"""What its topic operator looks for while something else is being executed."""
REFUSED: Final = "com.linkedin.kafka.cruisecontrol.exception.KafkaCruiseControlException"
"""Any other reason why a request fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer."""

    status: int
    """Of HTTP."""
    document: Mapping[str, Any]
    plan_hash: str = ""
    """The plan that it shows; empty without one."""
    executes: bool = False
    """Whether that plan is being executed."""
    operation: str = ""
    """The task on brokers that executes it; empty without one."""

    @property
    def failed(self) -> bool:
        """Whether it is an error."""
        return self.status >= 400

    def body(self, *, as_json: bool) -> str:
        """The document as JSON in one line, or as text for people."""
        if as_json:
            return json.dumps(self.document, ensure_ascii=False, allow_nan=False)
        return text_of(self.document)


class Failed(Exception):
    """A request that Cruise Control answers with 500."""

    def __init__(self, why: str, error: str = REFUSED) -> None:
        """error: the Java class that its clients look for. why: the reason, in words."""
        super().__init__(f"{error}: {why}")


def done(document: Mapping[str, Any], *, plan_hash: str = "") -> Answer:
    """The answer to a request that succeeded."""
    return Answer(status=200, document=document, plan_hash=plan_hash)


def error(status: int, message: str) -> Answer:
    """An error with a whole sentence; there is no stack to show."""
    document = {"version": VERSION, "errorMessage": message, "stackTrace": ""}
    return Answer(status=status, document=document)


def failure(method: str, path: str, why: str) -> Answer:
    """The sentence of Cruise Control for a request that fails while it is worked on."""
    return error(500, f"Error processing {method} request '{printable(path)}' due to: '{why}'.")


def progress(operation: str, step: str, description: str, elapsed_ms: int) -> Answer:
    """The answer while an operation is worked on."""
    found = {
        "step": step,
        "description": description,
        "time-in-ms": elapsed_ms,
        "completionPercentage": 0.0,
    }
    return Answer(
        status=202,
        document={
            "version": VERSION,
            "progress": [
                {"version": VERSION, "operation": operation, "operationProgress": [found]}
            ],
        },
    )


# ---- text


def text_of(document: Mapping[str, Any]) -> str:
    """A document for people: lists of equal records as tables, all else as `key: value`."""
    if "errorMessage" in document:
        lines = str(document["errorMessage"]).split("\n")
        return "".join(f"{printable(line)}\n" for line in lines)
    lines, tables = [], []
    for key, value in document.items():
        if key == "version":
            continue
        if _is_table(value):
            tables.append(f"{key}:\n{_table(value)}")
        elif isinstance(value, Mapping) and any(map(_is_table, value.values())):
            tables.append(f"{key}:\n\n{text_of(value)}")
        else:
            lines.append(f"{key}: {_words(value)}\n")
    return "\n".join(filter(None, ["".join(lines), *tables]))


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and bool(value)
        and all(isinstance(row, Mapping) and row.keys() == value[0].keys() for row in value)
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    return table([*rows[0]], [[_words(cell) for cell in row.values()] for row in rows])


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_words(each)}" for key, each in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_words, value)) + "]"
    if isinstance(value, float):
        return f"{value:.3f}"
    return printable(str(value))
