"""Brokers that take no new replicas until they are included again: marks, and cordons beside them.

A task that is open, or a mark of another kind, forbids both. The mark of a broker that is dead or
gone can be ended whatever its kind: no leaders return to it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from control.tasks.broker_marks import AWAY, BrokerMark, marked, unmarked
from control.tasks.operations import refuse_marked
from control.tasks.removal import refuse_conflicts
from control.tasks.task_cordons import CordonExecutor, cordoned_brokers, uncordon
from control.tasks.task_files import Marks, TaskFiles
from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState

if TYPE_CHECKING:
    from executor.client.responses import ClusterView


INCLUDABLE: Final = "live or marked broker"
"""What `includable` returns, as messages name one."""


class RunningExecutor(CordonExecutor, Protocol):
    """What ends cordons and knows the journals; `executor.executor.Executor` fits."""

    def cluster(self) -> "ClusterView":
        """The live brokers."""
        ...

    def runs(self, journal_dir: Path, cluster_id: str) -> object:
        """Bring the journals of the archive here."""
        ...


def refuse_marking(
    files: TaskFiles, cluster_id: str, brokers: Sequence[BrokerId], away: Collection[BrokerId] = ()
) -> None:
    """Raise GuardrailRefused where brokers can be neither excluded nor included now.

    away: those that are dead or gone, and to be included.
    """
    _refuse(files, files.marks(cluster_id), cluster_id, brokers, away)


def includable(live: Iterable[Broker], marks: Marks, cluster_id: str) -> tuple[Broker, ...]:
    """The live brokers, and marked ones that were stopped for good."""
    known = {b.id: b for b in live}
    gone = {m.broker for m in marks if m.cluster_id == cluster_id} - known.keys()
    return (*known.values(), *(Broker(id=b) for b in sorted(gone)))


def exclude(
    files: TaskFiles,
    cluster_id: str,
    brokers: Sequence[BrokerId],
    *,
    by: str,
    at_ms: int,
    reason: str = "",
) -> Marks:
    """Mark brokers as excluded; all marks are returned. Raises as `refuse_marking` does.

    reason: empty for that of the mark that a broker has. The mark of a draining broker, which
    keeps more away, stays as it is: see `draining_notes`.
    """

    def excluded(marks: Marks) -> Marks:
        own = [m for m in marks if m.cluster_id == cluster_id]
        known = {m.broker: m.reason for m in own}
        draining = {m.broker for m in own if m.state is BrokerState.DRAINING}
        new = [
            BrokerMark(
                cluster_id=cluster_id,
                broker=broker,
                state=BrokerState.EXCLUDED,
                at_ms=at_ms,
                by=by,
                reason=reason or known.get(broker, "excluded"),
            )
            for broker in brokers
            if broker not in draining
        ]
        return marked(marks, new)

    return _change(files, cluster_id, brokers, excluded)


def draining_notes(marks: Marks, cluster_id: str, brokers: Collection[BrokerId]) -> list[str]:
    """Why brokers that were to be excluded are not, in sentences; marks: as after `exclude`."""
    return [
        f"broker {m.broker} stays draining ({m.reason}, by {m.by}), which keeps new replicas away, "
        "too"
        for m in marks
        if m.cluster_id == cluster_id and m.broker in brokers and m.state is BrokerState.DRAINING
    ]


def include(
    executor: RunningExecutor,
    files: TaskFiles,
    journal_dir: Path,
    cluster_id: str,
    brokers: Sequence[BrokerId],
    *,
    by: str,
    say: Callable[[str], None],
    may_uncordon: Callable[[Sequence[BrokerId]], None] = lambda _cordoned: None,
) -> Marks:
    """End the cordons that plimsoll has set, then the marks; the marks left are returned.

    may_uncordon: raises where these cordons must stay. Raises as `Executor.uncordon` and
    `refuse_marking` do; the marks then stay.
    """
    away = {*brokers} - executor.cluster().alive
    refuse_marking(files, cluster_id, brokers, away)
    executor.runs(journal_dir, cluster_id)
    if cordoned := sorted(cordoned_brokers(journal_dir, cluster_id) & {*brokers}):
        may_uncordon(cordoned)
        uncordon(executor, cordoned, journal_dir, cluster_id, by, say)
    return _change(
        files, cluster_id, brokers, lambda marks: unmarked(marks, cluster_id, brokers), away
    )


def _change(
    files: TaskFiles,
    cluster_id: str,
    brokers: Sequence[BrokerId],
    change: Callable[[Marks], Marks],
    away: Collection[BrokerId] = (),
) -> Marks:
    """Change marks, unless a task has been requested for one of the brokers meanwhile."""

    def checked(marks: Marks) -> Marks:
        _refuse(files, marks, cluster_id, brokers, away)
        return change(marks)

    return files.change_marks(cluster_id, checked)


def _refuse(
    files: TaskFiles,
    marks: Marks,
    cluster_id: str,
    brokers: Sequence[BrokerId],
    away: Collection[BrokerId],
) -> None:
    refuse_conflicts(files.of(cluster_id), brokers)
    refuse_marked(marks, cluster_id, [b for b in brokers if b not in away], AWAY)
