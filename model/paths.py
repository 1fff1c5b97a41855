"""Names and paths that come from outside."""

import hashlib
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

from pydantic import BeforeValidator

_LONGEST: Final = 200
"""Bytes; file systems take 255, and suffixes are added."""


def path_of(text: str) -> Path:
    """Turn the path a user has typed into a Path; `~` is their home folder.

    Raises ValueError for an empty or unprintable path and an unknown user.
    """
    if not text.strip():
        raise ValueError("the path is empty")
    if not text.isprintable():
        raise ValueError("the path has unprintable characters")
    try:
        return Path(text.strip()).expanduser()
    except RuntimeError as exc:
        raise ValueError(f"{text}: there is no such user") from exc


def _typed(value: Any) -> Any:
    return str(path_of(value)) if isinstance(value, str) else value


UserPath = Annotated[Path, BeforeValidator(_typed)]
"""A path in the settings; `~` is the home folder."""


def path_part(name: str) -> str:
    """Quote a name so that it is one component of a path or S3 key, whatever it is.

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
