"""Marks on brokers that plimsoll keeps itself: which ones take no new replicas, and why.

They lie in `broker-marks.json` in the state folder, and everything that plans reads them:
`plan`, `assign`, the screen and the loop.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from control.tasks.sealed_files import checksum_of, locked, read_sealed
from model.errors import ConfigError, PlimsollError
from model.files import FileModel, VersionedModel, file_mark, validate_document, write_document
from model.ids import BrokerId
from model.log_events import LogEvent, named
from model.snapshot.snapshot import TAKING, Broker, BrokerState

FILE: Final = "broker-marks.json"
KIND: Final = "plimsoll.broker-marks"
MOST: Final = 10_000
"""Marks in one file."""
REFRESH_S: Final = 30.0
"""Seconds between two looks at marks that other hosts have set."""

_log = logging.getLogger("plimsoll.control")

MarkState = Literal[
    BrokerState.EXCLUDED, BrokerState.DRAINING, BrokerState.DEMOTED, BrokerState.MAINTENANCE
]

AWAY: Final = frozenset({BrokerState.EXCLUDED, BrokerState.DRAINING})
"""Marks that keep new replicas away, and leave leaders alone."""


class BrokerMark(FileModel):
    """Why one broker of one cluster takes no new replicas."""

    cluster_id: str
    broker: Annotated[BrokerId, Field(ge=0)]
    state: MarkState
    """`excluded` keeps what it has; `draining` ends with nothing; `demoted` and `maintenance` keep
    replicas and lead nothing. Since 1.1 all but the first two."""
    at_ms: int
    """Milliseconds since the epoch."""
    by: str
    reason: str
    task_id: str = ""
    """The task that it belongs to; empty where a person set it."""

    @property
    def key(self) -> tuple[str, BrokerId]:
        """The cluster and the broker; each has one mark at most."""
        return self.cluster_id, self.broker


class MarksFile(VersionedModel):
    """All marks of a state folder, by cluster and broker."""

    kind: Literal["plimsoll.broker-marks"] = KIND
    schema_version: str = "1.1"
    marks: Annotated[tuple[BrokerMark, ...], Field(max_length=MOST)] = ()
    checksum: str = ""
    """Of the file without it."""


def marked(marks: Iterable[BrokerMark], new: Iterable[BrokerMark]) -> tuple[BrokerMark, ...]:
    """Add marks, which replace older ones of the same brokers, in order of their keys."""
    found = {mark.key: mark for mark in (*marks, *new)}
    return tuple(found[key] for key in sorted(found))


def unmarked(
    marks: Iterable[BrokerMark], cluster_id: str, brokers: Collection[BrokerId], task_id: str = ""
) -> tuple[BrokerMark, ...]:
    """Remove the marks of these brokers; with a task, only those that belong to it."""
    return tuple(
        m
        for m in marks
        if m.cluster_id != cluster_id
        or m.broker not in brokers
        or (task_id and m.task_id != task_id)
    )


def states_of(marks: Iterable[BrokerMark], cluster_id: str) -> dict[BrokerId, BrokerState]:
    """The states that marks give to brokers of a cluster."""
    return {m.broker: BrokerState(m.state) for m in marks if m.cluster_id == cluster_id}


def with_states(
    brokers: Iterable[Broker], states: Mapping[BrokerId, BrokerState]
) -> tuple[Broker, ...]:
    """Give brokers these states; a broker keeps its own where that forbids more."""
    return tuple(
        b.model_copy(update={"state": states[b.id]})
        if b.id in states and _binds(states[b.id], b.state)
        else b
        for b in brokers
    )


def _binds(mark: BrokerState, own: BrokerState) -> bool:
    """Whether a mark forbids more than a broker's own state.

    A cordoned or slow broker keeps what it has, a draining one does not, and a demoted one does
    not lead: operators may cordon a broker before they remove or demote it. An excluded broker
    may be cordoned because of its mark, which has the reason.
    """
    if own in TAKING or (mark is BrokerState.EXCLUDED and own is BrokerState.CORDONED):
        return True
    return mark is not BrokerState.EXCLUDED and own is not BrokerState.DEAD


# ---- the file


def read_marks(state_dir: Path) -> tuple[BrokerMark, ...]:
    """Read all marks of a state folder; none without a file.

    Raises ConfigError where the file is damaged, altered, or of a newer plimsoll: planning
    without it could put replicas on brokers that are about to be stopped.
    """
    path = state_dir / FILE
    if not path.exists():
        return ()
    document = read_sealed(path, KIND, "set its marks again with plimsoll broker exclude")
    return validate_document(MarksFile, document, path).marks


def change_marks(
    state_dir: Path, change: Callable[[tuple[BrokerMark, ...]], tuple[BrokerMark, ...]]
) -> tuple[BrokerMark, ...]:
    """Change the marks in one step, one process at a time; write only where they differ.

    Raises ConfigError as `read_marks` does, and where the file cannot be written.
    """
    with locked(state_dir / f".{FILE}.lock"):
        before = read_marks(state_dir)
        after = change(before)
        if after != before:
            write_document(state_dir / FILE, sealed_marks(after), private=True)
        return after


def mirror_marks(
    state_dir: Path, cluster_id: str, marks: Iterable[BrokerMark]
) -> tuple[BrokerMark, ...]:
    """Replace the marks of one cluster; return those of all. Raises as `change_marks`."""
    own = tuple(marks)
    return change_marks(
        state_dir, lambda old: marked((m for m in old if m.cluster_id != cluster_id), own)
    )


def sealed_marks(marks: tuple[BrokerMark, ...]) -> dict[str, Any]:
    """The document of a file of marks, with its checksum."""
    document: dict[str, Any] = MarksFile(marks=marks).model_dump(mode="json")
    document["checksum"] = checksum_of(document)
    return document


class MarkedBrokers:
    """Gives brokers the states of their marks; reads the file again when it changes.

    A file that becomes unreadable is reported once in the log, and the last marks hold.
    """

    def __init__(
        self,
        state_dir: Path,
        refresh: Callable[[str], None] | None = None,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """refresh: brings the marks of a cluster from elsewhere into the file.

        It is called every `REFRESH_S` seconds at most. While it fails, the file holds.
        """
        self._refresh = refresh
        self._steady_s = steady_s
        self._refreshed_s: dict[str, float] = {}
        """When the marks of each cluster were refreshed last, by `steady_s`."""
        self._stale = False
        self._state_dir = state_dir
        self._read_at: tuple[int, int, int] | None = None
        """Mark of the file that was read last."""
        self._marks: tuple[BrokerMark, ...] | None = None

    def __call__(self, cluster_id: str, brokers: tuple[Broker, ...]) -> tuple[Broker, ...]:
        """The brokers of a cluster with their states.

        Raises ConfigError where the file was never readable.
        """
        self._refresh_when_due(cluster_id)
        return with_states(brokers, states_of(self._newest(), cluster_id))

    def _refresh_when_due(self, cluster_id: str) -> None:
        last_s = self._refreshed_s.get(cluster_id)
        due = last_s is None or self._steady_s() - last_s >= REFRESH_S
        if self._refresh is None or not due:
            return
        try:
            self._refresh(cluster_id)
        except PlimsollError as exc:
            # As for a file: marks that cannot be trusted must not be taken for none.
            if last_s is None and isinstance(exc, ConfigError):
                raise
            if not self._stale:
                _log.warning(
                    "%s; the marks in %s hold",
                    exc,
                    self._state_dir / FILE,
                    extra=named(LogEvent.TASK_FAILED),
                )
            self._stale = True
        else:
            self._stale = False
        self._refreshed_s[cluster_id] = self._steady_s()

    def _newest(self) -> tuple[BrokerMark, ...]:
        at = file_mark(self._state_dir / FILE)
        if self._marks is None or at != self._read_at:
            try:
                self._marks = read_marks(self._state_dir)
            except ConfigError as exc:
                if self._marks is None:
                    raise
                _log.warning(
                    "%s; the marks read before still hold", exc, extra=named(LogEvent.TASK_FAILED)
                )
            self._read_at = at
        return self._marks
