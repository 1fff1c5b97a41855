"""Errors of Spark for which a retry is useless, with what to do."""

import re
import sys
from typing import Final

from model.errors import ConfigError, PlimsollError, RightsMissing

_DENIED: Final = "TopicAuthorizationException"
_MODULE: Final = re.compile(r"No module named '?([\w.]+)")
_VERSION: Final = re.compile(r"worker has different version: (\S+) than")
_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_NO_CONNECTOR: Final = "Failed to find data source: kafka"


def first_line(exc: Exception) -> str:
    """Return the first line of an error's message, or its type's name where that is empty."""
    return str(exc).strip().split("\n", 1)[0] or type(exc).__name__


def lasting_fault(text: str, needed: str = "numpy and pyarrow") -> PlimsollError | None:
    """Return the error to raise for Spark's message; None where a retry may help.

    needed: Python packages that a worker must have, for the message.
    """
    if _DENIED in text:
        line = text.strip().split("\n", 1)[0]
        return RightsMissing(
            f"Spark may not read the samples ({line}). Give plimsoll's user the right "
            "READ on their topic."
        )
    if _NO_CONNECTOR in text:
        return ConfigError(
            "Spark has no connector to Kafka. Give spark-submit "
            "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION, with the "
            "version of that Spark."
        )
    lacking = _lacking(text)
    return ConfigError(f"{lacking} {_needed(needed)}") if lacking else None


def _lacking(text: str) -> str | None:
    """What the Python of a worker lacks, in a sentence."""
    if found := _MODULE.search(text):
        return f"The Python of a Spark worker lacks {found[1]}."
    if found := _VERSION.search(text):
        return f"A Spark worker has Python {found[1]}."
    if found := _PROGRAM.search(text):
        return f"A Spark worker has no {found[1]}."
    return None


def _needed(packages: str) -> str:
    version = "{}.{}".format(*sys.version_info)
    return (
        f"Each needs Python {version} with {packages}; name it by "
        '"spark.pyspark.python" in the table [spark].'
    )
