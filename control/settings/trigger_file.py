"""`[triggers]` while `run --auto` is going: read again whenever the settings file changes."""

from collections.abc import Callable, Iterator
from pathlib import Path

from control.settings.trigger_table import Trigger, TriggerTable
from model.errors import ConfigError
from model.files import file_mark


class TriggerFile:
    """Rereads the triggers once the file has changed. One thread owns it.

    What cannot be used is reported once, and the triggers stay as they are.
    """

    def __init__(self, path: Path, load: Callable[[], TriggerTable]) -> None:
        """path: the settings file. load: reads all sources; raises ConfigError."""
        self._path, self._load = path, load
        self._seen = file_mark(path)

    def poll(self, warn: Callable[[str], None]) -> TriggerTable | None:
        """The triggers, if the file has changed and can be used.

        warn: writes to the log that it cannot.
        """
        mark = file_mark(self._path)
        # An editor may replace the file in two steps.
        if mark is None or mark == self._seen:
            return None
        self._seen = mark
        try:
            return self._load()
        except ConfigError as exc:
            warn(f"the triggers stay as they are, since the settings cannot be used: {exc}")
            return None


def changed(before: TriggerTable, after: TriggerTable) -> Iterator[str]:
    """A clause on each trigger whose response changed: `uneven_load is off, it was act`."""
    for trigger in Trigger:
        was, now = before.response(trigger), after.response(trigger)
        if was is not now:
            yield f"{trigger} is {now}, it was {was}"
