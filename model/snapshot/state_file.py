"""The header of a recorded state, `state.json`, schema `plimsoll.state` 1.0.

What stands beside it is in docs/reference/files.md.
"""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from model.files import VersionedModel, read_document, validate_document, write_document

KIND: Final = "plimsoll.state"
SCHEMA_VERSION: Final = "1.0"


class StateFile(VersionedModel):
    """What a recorded state is of, and how its samples were made into loads."""

    kind: Literal["plimsoll.state"] = KIND
    schema_version: str = SCHEMA_VERSION
    plimsoll: str
    """Version of the plimsoll that recorded it."""
    cluster_id: str
    begun_ms: int
    """Time of the oldest sample, milliseconds since the epoch."""
    ended_ms: int
    """Time of the newest sample."""
    window_ms: Annotated[int, Field(gt=0)]
    """Time that loads are averaged over."""
    fan_out: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Bytes out per byte in, where the groups' commits could not be seen."""
    anonymised: bool
    """Whether names are pseudonyms."""


def write_state(path: Path, state: StateFile) -> None:
    """Write the canonical file. Raises ConfigError where it cannot be written."""
    write_document(path, state.model_dump(mode="json"))


def read_state(path: Path) -> StateFile:
    """Read a header.

    Raises ConfigError: the file cannot be read or is of a newer schema.
    """
    return validate_document(StateFile, read_document(path, KIND, major=1), path)
