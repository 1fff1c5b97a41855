"""The policy of `run --auto` while it is going: read again whenever the settings file changes."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from control.settings.auto_policy import AutoPolicy, change_faults
from model.errors import ConfigError
from model.files import file_mark


class PolicyFile:
    """Rereads the policy once the file has changed. One thread owns it.

    What cannot be used is reported once, and the policy stays as it is.
    """

    def __init__(
        self, path: Path, load: Callable[[], AutoPolicy], clock: Callable[[], float] = time.time
    ) -> None:
        """Note how the file is now.

        path: the settings file. load: reads all sources; raises ConfigError, also where the
        limits that were named are gone. clock: seconds since the epoch.
        """
        self._path, self._load, self._clock = path, load, clock
        self._seen = file_mark(path)
        self._changing: object = self._seen
        """Mark of the file at the last call, where that is another one than was read."""

    def poll(self, current: AutoPolicy, warn: Callable[[str], None]) -> AutoPolicy | None:
        """The policy, if the file has changed, is as at the last call, and can be used.

        The effort of plans, the goals and the stop rules stay those of `current`. warn: writes to
        the log that the file cannot be used, or what of it is not.
        """
        mark = file_mark(self._path)
        # An editor may replace the file in two steps, or write it in place.
        if mark == self._seen:
            self._changing = mark
            return None
        if mark != self._changing:
            self._changing = mark
            return None
        self._seen = mark
        if mark is None:
            warn(f"the policy stays as it is, since {self._path} is gone")
            return None
        try:
            loaded = self._load()
        except ConfigError as exc:
            warn(f"the policy stays as it is, since the settings cannot be used: {exc}")
            return None
        effort = current.limits.effort
        if loaded.limits.effort is not effort:
            warn("effort stays as it is in the limits of --auto until plimsoll is restarted")
        found = replace(
            loaded,
            stop_rules=current.stop_rules,
            goals=current.goals,
            effort=current.effort,
            limits=loaded.limits.model_copy(update={"effort": effort}),
        )
        if faults := change_faults(current, found, self._clock()):
            warn(
                f"the policy stays as it is, since {self._path} has another that cannot be used: "
                f"{'; '.join(faults)}"
            )
            return None
        return found
