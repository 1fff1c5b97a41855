"""Names that come from outside, as one component of a path or of an S3 key."""

import hashlib
from typing import Final
from urllib.parse import quote

_LONGEST: Final = 200
"""Bytes; file systems take 255, and suffixes are added."""


def path_part(name: str) -> str:
    """Quote a name so that it is one component of a path, whatever it contains.

    Different names have different results. A base64url cluster id, a run id and a
    topic name that Kafka accepts are returned unchanged, except the names `.` and `..`.
    """
    # Lone surrogates cannot be encoded; they come from JSON alone.
    quoted = quote(name, safe="", errors="surrogatepass")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if not quoted:
        return "%"
    if len(quoted) <= _LONGEST:
        return quoted
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    # No quoted name has a percent sign before a letter that is not a hex digit.
    return f"{quoted[: _LONGEST - 70]}%-{digest}"
