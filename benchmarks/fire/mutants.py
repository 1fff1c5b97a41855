"""Deliberate bugs, each of which the invariants have to find: `--mutants`."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from benchmarks.fire.fire_world import outcome_of
from benchmarks.fire.invariants import Violation
from benchmarks.fire.scenarios import scenario_of
from control.loop import loop as loop_module
from control.loop import policy
from control.loop.loop import Loop
from control.settings.trigger_table import Response, TriggerTable
from control.tasks import operations, task_runner
from control.tasks.broker_task import BrokerTask, TaskPhase
from control.tasks.operation_rules import Left
from control.tasks.task_archive import TaskArchive
from control.tasks.task_files import TaskFiles
from control.tasks.task_hold import TaskHold
from control.tasks.task_runner import TaskRunner
from executor import executor as executor_module
from executor.executor import Executor
from executor.health import competing_rebalancers
from executor.journal import archive, records, run_journal
from executor.journal.archive import Archive
from executor.journal.lease import Lease
from executor.journal.records import JournalEnd, sealed
from executor.journal.run_journal import RunJournal
from executor.platforms import move_progress
from executor.platforms.stock_kafka import ReplicatedKafka
from executor.run.move_state_machine import MoveStateMachine, MoveStep
from executor.run.overrides import ClusterOverrides, RunOverrides
from executor.throttle.quota import ClusterThrottle, ThrottleSettings
from executor.throttle.run_throttle import RunThrottle
from model import files
from model.errors import WriterBarred
from model.run import JournalEvent, JournalRecord

Mutant = Callable[[ExitStack], None]
"""Puts a bug into the shipped code until the stack is closed."""


class _NoSync:
    """The module `os`, whose `fsync` does nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @staticmethod
    def fsync(_handle: int) -> None:
        """Do nothing."""


def _set(owner: Any, name: str, value: Any) -> Mutant:
    def put(stack: ExitStack) -> None:
        stack.enter_context(patch.object(owner, name, value))

    return put


def _around(owner: Any, name: str, make: Callable[[Any], Any]) -> Mutant:
    """Replace a function by what `make` returns for it."""
    return _set(owner, name, make(getattr(owner, name)))


def _without_record(*events: JournalEvent, again: bool | None = None) -> Mutant:
    """A journal that lacks these records."""

    def make(write: Any) -> Any:
        def mutated(self: Any, event: JournalEvent, *rest: Any, **detail: Any) -> None:
            if event in events and again in (None, detail.get("again")):
                return
            write(self, event, *rest, **detail)

        return mutated

    return _around(RunJournal, "write", make)


def _appended_anywhere(self: Any, file: Any, records: Any) -> bytes:
    """As `RunJournal._append`, but after whatever a failed write has left."""
    lines, end = b"", self._end
    for record in records:
        line, end = sealed(record, end)
        lines += line
    file.seek(0, os.SEEK_END)
    run_journal._write_all(file, lines)  # noqa: SLF001 - it is mutated
    os.fsync(file.fileno())
    self._end, self._size = end, self._size + len(lines)
    return lines


def _failing_quietly(self: Any, event: Any, records: Any, exc: Any) -> None:
    """As `RunJournal._fail`, but everything goes on."""
    del self, event, records, exc


def _throttle_forgotten(self: Any) -> str:
    if self.held is not None:
        self._journal.write(JournalEvent.UNTHROTTLED)
        self.held = None
    return ""


def _done_when_sent(see: Any) -> Any:
    def mutated(self: Any, now: Any, now_s: float) -> MoveStep:
        found: MoveStep = see(self, now, now_s)
        return MoveStep.DONE if found is MoveStep.WAIT else found

    return mutated


def _any_lease_is_ours(self: Any, held: Any) -> None:
    found = self._bucket.get(held.key)
    held.document, held.etag = self._read(held.key, found), found.etag


def _to_another_broker(steps: Any) -> Any:
    def mutated(move: Any) -> Any:
        found = steps(move)
        last = found[-1:]
        wrong = tuple((1 + b % 6 if b in move.added else b) for b in last[0]) if last else ()
        return (*found[:-1], wrong) if last and len({*wrong}) == len(wrong) else found

    return mutated


def _one_replica_less(reassign: Any) -> Any:
    def mutated(admin: Any, targets: Mapping[Any, Any], *, resizes: bool = False) -> Any:
        del resizes
        fewer = {p: to[:-1] if len(to) > 1 else to for p, to in targets.items()}
        return reassign(admin, fewer, resizes=True)

    return mutated


def _barred_is_ignored(barred: Any) -> Any:
    def mutated(self: Any, *, patient: bool) -> None:
        try:
            barred(self, patient=patient)
        except WriterBarred:
            return

    return mutated


def _held_forgotten(of_run: Any) -> Any:
    def mutated(self: Any, journal: Any, rates: Any, steering: Any, past: Any) -> Any:
        del past
        return of_run(self, journal, rates, steering, None)

    return mutated


def _cancel_everything(self: Any, moves: Any) -> Any:
    """As `ReplicatedKafka.cancel`, twice."""
    listed = self._admin.reassignments()
    ours = [m for m in moves if m.id in listed]
    answers = self._admin.reassign({m.id: None for m in ours}) if ours else {}
    self._admin.reassign({m.id: None for m in moves})
    return answers


def _unchecked(record: Any) -> Any:
    """Lines whose checksum is taken for right, whatever it is."""

    def mutated(raw: bytes) -> Any:
        found = record(raw)
        if found == "does not match its checksum":
            try:
                return JournalRecord.model_validate_json(raw)
            except ValueError:
                return found
        return found

    return mutated


def _by_the_wall_clock(self: Lease, held: Any) -> float:
    timing: Any = self._timing
    until_s: float = held.document.expires_at_ms / 1000
    return until_s - float(timing.now_s())


def _unasked(self: Any) -> bool:
    """As `TaskRunner._ask`, but nobody is asked."""
    now_ms = self._parts.now_ms()
    self._change(
        lambda task: task.with_plan(approved_by="nobody", approved_at_ms=now_ms).entered(
            TaskPhase.APPROVED, now_ms
        )
    )
    self._mark()
    return True


def _cancelled_is_open(change: Any) -> Any:
    """Changes of a task that go on from before its cancel."""

    def mutated(self: Any, task_id: str, how: Any, hold: Any) -> Any:
        def reopened(task: BrokerTask) -> BrokerTask:
            phases = tuple(p for p in task.phases if p.phase is not TaskPhase.CANCELLED)
            return task.model_copy(update={"phases": phases})

        newest = TaskFiles._newest  # noqa: SLF001 - it is mutated

        def open_again(files: Any, of: str) -> Any:
            found = newest(files, of)
            return type(found)(reopened(found.task), found.etag)

        with patch.object(TaskFiles, "_newest", open_again):
            return change(self, task_id, how, hold)

    return mutated


def _whatever_is_there(self: Any, key: str, body: bytes, etag: str) -> bool:
    """As `TaskArchive._put`, without a condition."""
    del etag
    found = self._bucket.get(key)
    put = self._bucket.put_over(key, body, found.etag) if found else self._bucket.put_new(key, body)
    return put is not None


def _nothing_left(task: Any, parts: Any, observe: Any) -> Left:
    del task, parts, observe
    return Left.of((), "")


def _empties_nothing() -> Mutant:
    def put(stack: ExitStack) -> None:
        changed = {
            operation: replace(rules, left=_nothing_left)
            for operation, rules in operations.OPERATIONS.items()
        }
        stack.enter_context(patch.object(task_runner, "OPERATIONS", changed))

    return put


def _finished_unmarked(finish: Any) -> Any:
    def mutated(self: Any, verified: str = "") -> bool:
        more: bool = finish(self, verified)
        task_runner.unmark(self._parts.files, self.task)
        return more

    return mutated


def _rewritten(entered: Any) -> Any:
    """A new phase in the place of the newest one."""

    def mutated(self: Any, phase: Any, at_ms: int, note: str = "") -> Any:
        found = entered(self, phase, at_ms, note)
        kept = (*found.phases[:-2], found.phases[-1])
        return found.model_copy(update={"phases": kept}) if len(self.phases) > 1 else found

    return mutated


MUTANTS: Final[Mapping[str, Mutant]] = {
    "records are not synced": _set(run_journal, "os", _NoSync()),
    "the journal's folder is not synced": _set(run_journal, "sync_folder", lambda _folder: None),
    "moves are requested without a record": _without_record(JournalEvent.ISSUING),
    "repeated requests have no record": _without_record(JournalEvent.ISSUING, again=True),
    "elections have no record": _without_record(JournalEvent.ELECTING),
    "cancels have no record": _without_record(JournalEvent.CANCELLING),
    "throttles have no record": _without_record(JournalEvent.THROTTLED),
    "cordons have no record": _without_record(JournalEvent.CORDONING),
    "ends of cordons have no record": _without_record(JournalEvent.UNCORDONING),
    "a plan is not checked before its run": _set(executor_module, "judge", lambda *_, **__: ()),
    "settings that earlier runs have left stay": _set(
        Executor, "_restore_first", lambda *_, **__: None
    ),
    "the plan is not stored": _set(run_journal, "write_document", lambda *_, **__: None),
    "a full disk is ignored": _set(RunJournal, "_fail", _failing_quietly),
    "records follow remains of a failed write": _set(RunJournal, "_append", _appended_anywhere),
    "a torn last record is kept": _set(run_journal, "whole_lines", lambda path: path.read_bytes()),
    "the lease is not checked": _set(Lease, "need", lambda _: None),
    "a lease is taken without waiting": _set(Lease, "_is_over", lambda *_: True),
    "a lease that others have taken is kept": _set(Lease, "_find_own", _any_lease_is_ours),
    "a lease is released while a request may arrive": _set(Lease, "unanswered", lambda _: None),
    "a lease is measured by the wall clock": _set(Lease, "_left_s", _by_the_wall_clock),
    "records are archived after the request": _set(archive, "_MAY_WAIT", tuple(JournalEvent)),
    "another writer of the archive is ignored": _around(
        archive._ArchivedRun,  # noqa: SLF001 - it is mutated
        "_archive",
        _barred_is_ignored,
    ),
    "a takeover does not fetch the journal": _set(Archive, "_download", lambda *_: None),
    "the throttle is not restored": _set(RunThrottle, "end", _throttle_forgotten),
    "lists of the throttle stay": _set(ClusterThrottle, "_clear", lambda *_: None),
    "rates of the throttle stay": _set(ClusterThrottle, "_restore_rates", lambda *_: []),
    "a run ends without restoring": _set(RunOverrides, "lift", lambda _: ""),
    "a resumed run forgets the throttle": _around(ClusterOverrides, "of_run", _held_forgotten),
    "the own throttle counts as foreign": _set(ThrottleSettings, "is_ours", lambda *_: False),
    "replicas go to another broker": _around(move_progress, "steps", _to_another_broker),
    "a replica is left out": _around(competing_rebalancers, "reassign", _one_replica_less),
    "a requested move counts as done": _around(MoveStateMachine, "see", _done_when_sent),
    "cancels are sent twice": _set(ReplicatedKafka, "cancel", _cancel_everything),
    "checksums of records are not checked": _around(records, "_record", _unchecked),
    "a damaged journal is archived": _set(Archive, "_refuse_damage", lambda *_: None),
    "the number of records is not kept": _around(
        run_journal, "sealed", lambda seal: lambda record, _end: seal(record, JournalEnd())
    ),
    "files are replaced without a sync": _set(files, "os", _NoSync()),
    "folders of replaced files are not synced": _set(files, "sync_folder", lambda _folder: None),
    "nobody is asked about the plan of a task": _set(TaskRunner, "_ask", _unasked),
    "a cancelled task goes on": _around(TaskFiles, "_change", _cancelled_is_open),
    "a task is written over what others wrote": _set(TaskArchive, "_put", _whatever_is_there),
    "the lease of a task is not checked": _set(TaskHold, "need", lambda _: None),
    "a task is done without a check of the cluster": _empties_nothing(),
    "the mark ends with the task": _around(TaskRunner, "_finish", _finished_unmarked),
    "phases replace one another": _around(BrokerTask, "entered", _rewritten),
    "limits of --auto are not checked": _set(policy, "refusals", lambda *_, **__: ()),
    "runs of the day are not counted": _set(loop_module, "runs_wait_s", lambda *_: 0.0),
    "runs of other machines are not counted": _set(Loop, "_check_journals", lambda *_: None),
    "triggers that ask or are off act": _set(TriggerTable, "response", lambda *_: Response.ACT),
    "the pause between runs is not kept": _set(policy, "not_yet", lambda *_: None),
}
"""By what the bug is."""
UNSEEN: Final[Mapping[str, str]] = {
    "a lease is measured by the wall clock": (
        "a clock has to be stepped back while the lease cannot be renewed for as long as it lasts, "
        "and another host has to take over meanwhile"
    ),
    "another writer of the archive is ignored": (
        "there is one only after the lease has passed to another host, and the lease is checked "
        "before each request"
    ),
    "a task is written over what others wrote": (
        "tasks are written under the lease, which one host holds"
    ),
    "settings that earlier runs have left stay": "they are restored at the end of the run as well",
    "a plan is not checked before its run": "every plan fits its world as its run begins",
    "limits of --auto are not checked": (
        "a plan has the limits among its goals, and one that exceeds them is refused as invalid"
    ),
}
"""Why a bug that no seed has found is hard to find, or what else prevents its effect."""


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Run with one bug."""
    with ExitStack() as stack:
        MUTANTS[name](stack)
        yield


def found(name: str, seeds: range) -> tuple[int, Violation] | None:
    """The first seed that finds a bug, and how; None where none of these does."""
    with mutated(name):
        for seed in seeds:
            violation = outcome_of(scenario_of(seed)).violation
            if violation is not None:
                return seed, violation
    return None
