"""Who has paused the service: kept in the state folder, so that it holds across restarts."""

from pathlib import Path
from typing import Final

from control.render.text import time_text
from model.errors import ConfigError
from model.files import (
    VersionedModel,
    make_folder,
    read_document,
    sync_folder,
    validate_document,
    write_document,
)

FILE: Final = "service-pause.json"
KIND: Final = "plimsoll.service-pause"


class ServicePause(VersionedModel):
    """A pause of the service: no run starts until a person ends it."""

    kind: str = KIND
    schema_version: str = "1.0"
    at_ms: int
    """Milliseconds since the epoch."""
    by: str

    @property
    def words(self) -> str:
        """Who paused it, when, and how to continue."""
        since = time_text(self.at_ms)
        return f"paused by {self.by} since {since}; plimsoll ctl resume continues"


class PauseFile:
    """The pause in a state folder."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE

    def read(self) -> ServicePause | None:
        """The pause; None without one. Raises ConfigError where it cannot be read."""
        if not self._path.exists():
            return None
        try:
            if not self._path.is_file():
                # To read a pipe would wait for ever.
                raise ConfigError(f"{self._path} is not a file")
            return validate_document(ServicePause, read_document(self._path, KIND, 1), self._path)
        except ConfigError as exc:
            raise ConfigError(f"{exc}; remove the file to end the pause") from exc

    def write(self, pause: ServicePause) -> None:
        """Keep a pause. Raises ConfigError."""
        make_folder(self._path.parent)
        write_document(self._path, pause.model_dump(mode="json"), private=True)

    def remove(self) -> None:
        """End the pause. Raises ConfigError."""
        try:
            self._path.unlink()
            sync_folder(self._path.parent)
        except FileNotFoundError:
            return
        except OSError as exc:
            raise ConfigError(f"cannot remove {self._path}: {exc.strerror or exc}") from exc
