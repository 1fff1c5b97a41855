"""Cordons in Kafka beside plimsoll's own marks: set, ended, and what is said about them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from control.tasks.broker_marks import AWAY, BrokerMark
from control.tasks.broker_task import BrokerTask, Operation, brokers_text
from executor.platforms.cordons import ALREADY, NOT_OURS, CordonChange, cordoned_by_us
from model.errors import (
    ArchiveUnreachable,
    ConfigError,
    ExecutionStopped,
    PlimsollError,
    RightsMissing,
)
from model.ids import BrokerId
from model.units import listed

if TYPE_CHECKING:
    from control.tasks.task_files import TaskFiles
    from executor.client.responses import ClusterView
    from executor.platforms.cordons import OwnCordon

_MOST_NAMED: Final = 5
"""Brokers or log directories named in a sentence."""
_QUIET = (ALREADY, NOT_OURS)
"""Notes that are not worth a sentence."""


class CordonExecutor(Protocol):
    """What sets and ends cordons; `executor.executor.Executor` fits."""

    def cordon(
        self, brokers: Collection[BrokerId], *, journal_dir: Path, cluster_id: str, by: str = ""
    ) -> tuple[CordonChange, ...]:
        """Cordon brokers, unless someone else has."""
        ...

    def uncordon(
        self, brokers: Collection[BrokerId], *, journal_dir: Path, cluster_id: str, by: str = ""
    ) -> tuple[CordonChange, ...]:
        """End what `cordon` has set."""
        ...

    def cordon_dirs(
        self, broker: BrokerId, paths: Collection[str], *, journal_dir: Path, by: str = ""
    ) -> CordonChange:
        """Cordon log directories of a broker, unless someone else has."""
        ...

    def uncordon_dirs(
        self, broker: BrokerId, paths: Collection[str], *, journal_dir: Path, by: str = ""
    ) -> CordonChange:
        """End what `cordon_dirs` has set."""
        ...


def cordon(
    executor: CordonExecutor,
    brokers: Collection[BrokerId],
    journal_dir: Path,
    cluster_id: str,
    by: str,
    say: Callable[[str], None],
) -> None:
    """Cordon brokers, and say what became of each.

    Brokers that cannot be cordoned are excluded by plimsoll alone, so that is no error. Raises
    GuardrailRefused while a run is in progress, and ClusterUnreachable.
    """
    try:
        changes = executor.cordon(brokers, journal_dir=journal_dir, cluster_id=cluster_id, by=by)
    except (RightsMissing, ExecutionStopped) as exc:
        named = brokers_text(sorted(brokers))
        say(f"{named} not cordoned in Kafka: {exc}; plimsoll itself puts no replicas there")
        return
    for change in changes:
        if change.changed:
            named = f"broker {change.broker}"
            say(f"{named} is cordoned: Kafka puts no new replicas there{_and(change)}")
        elif change.note not in _QUIET:
            say(
                f"broker {change.broker} was not cordoned in Kafka: {change.note}; plimsoll itself "
                "puts no replicas there"
            )


def uncordon(
    executor: CordonExecutor,
    brokers: Collection[BrokerId],
    journal_dir: Path,
    cluster_id: str,
    by: str,
    say: Callable[[str], None],
) -> bool:
    """End the cordons that plimsoll has set on these brokers; whether any was changed.

    Raises as `Executor.uncordon` does.
    """
    changes = executor.uncordon(brokers, journal_dir=journal_dir, cluster_id=cluster_id, by=by)
    for change in changes:
        if change.changed:
            say(f"broker {change.broker} is no longer cordoned{_and(change)}")
        elif change.note not in _QUIET:
            say(f"the cordon of broker {change.broker} was not changed: {change.note}")
    return any(change.changed for change in changes)


def cordon_dirs(
    executor: CordonExecutor,
    broker: BrokerId,
    paths: Sequence[str],
    journal_dir: Path,
    by: str,
    say: Callable[[str], None],
) -> bool:
    """Cordon log directories, and say what became of them; whether they are by plimsoll now."""
    named = f"{listed(paths, 3)} of broker {broker}"
    try:
        change = executor.cordon_dirs(broker, paths, journal_dir=journal_dir, by=by)
    except (RightsMissing, ExecutionStopped) as exc:
        say(f"warning: {named} not cordoned: {exc}")
        return False
    if change.changed:
        say(f"cordoned {named}: Kafka puts no new replicas there{_and(change)}")
    elif change.note != ALREADY:
        say(f"warning: {named} not cordoned: {change.note}")
    return change.changed or change.note == ALREADY


def uncordon_dirs(
    executor: CordonExecutor,
    broker: BrokerId,
    paths: Sequence[str],
    journal_dir: Path,
    by: str,
    say: Callable[[str], None],
) -> bool:
    """End the cordons that plimsoll has set on log directories; whether any was changed.

    Raises as `Executor.uncordon_dirs` does.
    """
    named = f"{listed(paths, 3)} of broker {broker}"
    change = executor.uncordon_dirs(broker, paths, journal_dir=journal_dir, by=by)
    if change.changed:
        say(f"{named} no longer cordoned{_and(change)}")
    elif change.note not in _QUIET:
        say(f"the cordon of {named} was not changed: {change.note}")
    return change.changed


class DirsExecutor(CordonExecutor, Protocol):
    """What knows log directories, too; `executor.executor.Executor` fits."""

    def cluster(self) -> "ClusterView":
        """The cluster and its live brokers."""
        ...

    def log_dirs(self, broker: BrokerId) -> tuple[str, ...]:
        """Paths of a live broker's log directories; empty where they are not shown."""
        ...


def refuse_unknown_dirs(
    executor: DirsExecutor, broker: BrokerId, paths: Sequence[str], journal_dir: Path
) -> None:
    """Raise ConfigError where a broker, or a log directory of it, is unknown.

    What plimsoll has cordoned is known, though the broker may be dead or lack it by now.
    """
    view = executor.cluster()
    own = cordoned_by_us(journal_dir, view.cluster_id)
    if broker not in view.alive:
        if broker in own:
            return
        ids = listed(sorted(view.alive), 2 * _MOST_NAMED)
        raise ConfigError(f"there is no live broker {broker}; known: {ids or 'none'}")
    try:
        dirs = executor.log_dirs(broker)
    except RightsMissing:
        return
    known = {_trimmed(path) for path in (*dirs, *(own[broker].dirs if broker in own else ()))}
    for path in paths if dirs else ():
        if _trimmed(path) not in known:
            raise ConfigError(
                f"broker {broker} has no log directory {path}; known: "
                f"{listed(sorted(known), _MOST_NAMED)}"
            )


def _trimmed(path: str) -> str:
    return path.rstrip("/") or "/"


def _and(change: CordonChange) -> str:
    return f" ({change.note})" if change.note else ""


def end_cordons(
    connect: Callable[[], AbstractContextManager[CordonExecutor]] | None,
    task: BrokerTask,
    files: "TaskFiles",
    journal_dir: Path,
    by: str,
    say: Callable[[str], None],
) -> None:
    """End the cordons of a task, or say which command does; connect only where there are any.

    The cordons of brokers that the marks left keep replicas away from stay, too. connect: None
    where changes are not allowed. A cordon that cannot be ended is no error: a task can be given
    up while its cluster, or the archive, is away. Raises ConfigError for an unreadable journal.
    """
    try:
        files.fetch_cordons(journal_dir, task.cluster_id)
    except (ArchiveUnreachable, RightsMissing) as exc:
        if task.brokers and task.operation is not Operation.DISK_HEAL:
            may = TaskCordon(cluster_id=task.cluster_id, brokers=task.brokers, paths=task.paths)
            say(f"{may.named} may still be cordoned ({exc}); {may.ending} ends that")
        return
    marks = files.marks(task.cluster_id)
    for mark in kept_cordons(journal_dir, task, marks):
        say(
            f"broker {mark.broker} stays cordoned, as it is {mark.state} ({mark.reason}, by "
            f"{mark.by})"
        )
    left = task_cordon(journal_dir, task, marks)
    if left is None:
        return
    why = "changes are not allowed"
    if connect is not None:
        try:
            with connect() as executor:
                left.end(executor, journal_dir, by, say)
        except PlimsollError as exc:
            why = str(exc)
        else:
            return
    say(f"{left.named} {left.are} still cordoned ({why}); {left.ending} ends that")


# ---- what is left


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCordon:
    """Brokers, or directories of one, that plimsoll has cordoned for a task."""

    cluster_id: str
    brokers: tuple[BrokerId, ...]
    paths: tuple[str, ...] = ()
    """Log directories of the only broker; empty where brokers are cordoned as a whole."""

    @property
    def named(self) -> str:
        """`broker 4`, `/d2 of broker 4`."""
        of = f"{listed(self.paths, 3)} of " if self.paths else ""
        return of + brokers_text(self.brokers)

    @property
    def are(self) -> str:
        """`is` or `are`."""
        return "is" if len(self.paths or self.brokers) == 1 else "are"

    @property
    def ending(self) -> str:
        """The command that ends it, such as `plimsoll disk include 4 /d2 --allow-changes`."""
        ids = " ".join(map(str, self.brokers))
        of = f"disk include {ids} {' '.join(self.paths)}" if self.paths else f"broker include {ids}"
        return f"plimsoll {of} --allow-changes"

    def end(
        self, executor: CordonExecutor, journal_dir: Path, by: str, say: Callable[[str], None]
    ) -> None:
        """End it. Raises as the executor does."""
        if self.paths:
            uncordon_dirs(executor, self.brokers[0], self.paths, journal_dir, by, say)
        else:
            uncordon(executor, self.brokers, journal_dir, self.cluster_id, by, say)


def task_cordon(
    journal_dir: Path, task: BrokerTask, marks: Sequence[BrokerMark]
) -> TaskCordon | None:
    """What plimsoll has cordoned for a task alone; None where it has not.

    marks: those left. Raises as `cordoned_by_us`.
    """
    own = cordoned_by_us(journal_dir, task.cluster_id)
    if task.paths:
        (broker,) = task.brokers
        paths = sorted(own[broker].dirs & {*task.paths}) if broker in own else []
        found = TaskCordon(cluster_id=task.cluster_id, brokers=(broker,), paths=tuple(paths))
        return found if paths else None
    if task.operation is Operation.DISK_HEAL:
        return None
    others = cordoned_by_others(marks, task)
    brokers = tuple(sorted(b for b in task.brokers if b in own and own[b].all and b not in others))
    return TaskCordon(cluster_id=task.cluster_id, brokers=brokers) if brokers else None


def cordoned_by_others(marks: Iterable[BrokerMark], task: BrokerTask) -> dict[BrokerId, BrokerMark]:
    """Marks for which a cordon stays when a task ends, by its brokers.

    Those that keep new replicas away and are not the task's own. Where the task had replaced one,
    the broker was cordoned before, too.
    """
    return {
        m.broker: m
        for m in marks
        if m.cluster_id == task.cluster_id
        and m.broker in task.brokers
        and m.state in AWAY
        and m.task_id != task.task_id
        and (m not in task.replaced or m.broker in task.cordoned)
    }


def kept_cordons(
    journal_dir: Path, task: BrokerTask, marks: Sequence[BrokerMark]
) -> list[BrokerMark]:
    """Marks of others for which cordons stay that a task has wanted, too."""
    others = {} if task.paths else cordoned_by_others(marks, task)
    own = cordoned_brokers(journal_dir, task.cluster_id) if others else frozenset()
    return [others[b] for b in sorted(others.keys() & own)]


def cordoned_brokers(journal_dir: Path, cluster_id: str) -> frozenset[BrokerId]:
    """Brokers that plimsoll has cordoned as a whole. Raises as `cordoned_by_us`."""
    found = cordoned_by_us(journal_dir, cluster_id)
    return frozenset(broker for broker, own in found.items() if own.all)


def cordon_notes(files: "TaskFiles", journal_dir: Path, cluster_id: str) -> list[str]:
    """Cordons of plimsoll's own that no mark explains, and how each is ended, in sentences.

    Also why those of other hosts are unknown. Raises ConfigError for an unreadable journal.
    """
    notes = []
    try:
        files.fetch_cordons(journal_dir, cluster_id)
    except PlimsollError as exc:
        notes.append(f"Cordons that other hosts have set are unknown: {exc}")
    away = {m.broker for m in files.marks(cluster_id) if m.state in AWAY}
    found = sorted(cordoned_by_us(journal_dir, cluster_id).items())
    return [*notes, *(note for broker, own in found for note in _notes(broker, own, away))]


def _notes(broker: BrokerId, own: "OwnCordon", away: Collection[BrokerId]) -> list[str]:
    notes = []
    if own.all and broker not in away:
        notes.append(
            f"plimsoll has cordoned broker {broker}, and nothing asks for that any longer: "
            f"plimsoll broker include {broker} --allow-changes ends it."
        )
    if own.dirs:
        paths = sorted(own.dirs)
        notes.append(
            f"plimsoll has cordoned {listed(paths, 3)} of broker {broker}: plimsoll disk include "
            f"{broker} {' '.join(paths)} --allow-changes ends that."
        )
    return notes
