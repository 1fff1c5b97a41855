"""Earlier runs, as their journals record them."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from executor.journal.journal_index import JournalFacts, index_of
from executor.journal.lost_settings import has_lost_settings, is_clean_end, lost_settings
from executor.journal.records import IntactRecord, JournalContent, JournalDamage, scan
from executor.journal.run_journal import SUFFIX, of_plans, order, plan_path, run_path
from executor.platforms.automq_balancer import SuspendedBalancer
from executor.platforms.tiered_segments import LoweredSegments
from executor.throttle.quota import ThrottleSettings
from model.bounded import MOST_LINE, open_regular, read_bytes
from model.errors import ConfigError
from model.goals.goals import Goals, SolveLimits
from model.ids import PartitionId
from model.plan.plan import Move, Plan, PlanStatus, read_plan
from model.run import (
    UNFINISHED,
    JournalEvent,
    JournalRecord,
    MoveProgress,
    MoveState,
    RunProgress,
    RunState,
)
from model.snapshot.snapshot import RecentMove

_SENT: Final = (JournalEvent.ISSUING, JournalEvent.ISSUED, JournalEvent.ELECTING)
_NEWEST: Final = 20
"""Number of runs from which the pace of a cluster is taken."""
RESTORES: Final = "what run "
"""The start of `limited_by` in the plan of a rollback."""
HAD_MOVED: Final = " had moved"
"""Its end, after the id of the run that it undoes."""
_NAMED: Final = 3
"""Damaged lines named in a sentence."""
_OPENED: Final = 100
"""Newest journals that are opened for their cluster before the index is asked."""


_SHAPES: Final[Mapping[JournalEvent, Callable[[Mapping[str, Any]], object]]] = {
    JournalEvent.THROTTLED: ThrottleSettings.read,
    JournalEvent.BALANCER_SUSPENDED: lambda detail: SuspendedBalancer.read(detail["before"]),
    JournalEvent.SEGMENTS_LOWERED: LoweredSegments.read,
    JournalEvent.ENDED: lambda detail: (RunState(detail["state"]), detail["reason"]),
    JournalEvent.PREPARED: lambda detail: detail["note"],
    JournalEvent.NOTED: lambda detail: detail["note"],
    JournalEvent.MOVED: lambda detail: detail["bytes"],
    JournalEvent.PAUSED: lambda detail: detail["reason"],
    JournalEvent.DROPPED: lambda detail: detail["reason"],
    JournalEvent.STUCK: lambda detail: detail["reason"],
}
"""Readers of each record's detail; schema 1 has no checksum to vouch for it."""


def read_content(path: Path) -> JournalContent:
    """Read a journal and its damage.

    Raises ConfigError where the file is unreadable, or was written by a newer plimsoll.
    """
    data = read_bytes(path, what="the journal ", regular=True)
    try:
        found = scan(data, path.stem)
    except ConfigError as exc:
        raise ConfigError(f"{path} {exc}") from exc
    unreadable = [intact for intact in found.intact if not _has_shape(intact)]
    if not unreadable:
        return found
    noted = (
        JournalDamage(line=i.line, problem="is not a journal record", after=i.number - 1)
        for i in unreadable
    )
    kept = tuple(i for i in found.intact if i not in unreadable)
    return replace(found, intact=kept, damage=(*found.damage, *noted))


def _has_shape(intact: IntactRecord) -> bool:
    read = _SHAPES.get(intact.record.event)
    try:
        if read is not None and not intact.record.checksum:
            read(intact.record.detail)
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True


def read_journal(path: Path) -> tuple[JournalRecord, ...]:
    """Read the intact records of one run, in the order written.

    Raises as `read_content` does.
    """
    return read_content(path).records


@dataclass(slots=True)
class _Trace:
    """What happened to one partition in one run."""

    run_id: str
    move: RecentMove
    open: bool
    """Whether it was requested, and its end was not seen."""


def recent_moves(journal_dir: Path, cluster_id: str, since_ms: int) -> tuple[RecentMove, ...]:
    """Return moves on a cluster since a time, oldest first.

    A requested move counts even if its end was not seen, since it may have been made.
    Raises ConfigError for an unreadable journal.
    """

    runs = _recent_runs(journal_dir, cluster_id, since_ms)
    found = [move for run in runs for move in run.moves if move.at_ms >= since_ms]
    return tuple(sorted(found, key=lambda m: (m.at_ms, m.topic, m.partition)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What one run has used of the limits per day."""

    started_at_ms: int
    bytes_copied: int


def usage_since(journal_dir: Path, cluster_id: str, since_ms: int) -> tuple[RunUsage, ...]:
    """Return what runs on a cluster that started since a time have used, oldest first.

    A move whose bytes were not measured, as after a crash, counts with those of its plan.
    Raises ConfigError for an unreadable journal.
    """

    used = [run.usage for run in _recent_runs(journal_dir, cluster_id, since_ms)]
    found = [usage for usage in used if usage is not None and usage.started_at_ms >= since_ms]
    return tuple(sorted(found, key=lambda usage: usage.started_at_ms))


class _RecentRun(NamedTuple):
    """What one journal says of a cluster."""

    moves: tuple[RecentMove, ...]
    usage: RunUsage | None


def _recent_runs(journal_dir: Path, cluster_id: str, since_ms: int) -> list[_RecentRun]:
    def read(run_id: str) -> _RecentRun:
        records = read_journal(journal_dir / (run_id + SUFFIX))
        own = [record for record in records if record.cluster_id == cluster_id]
        moves = tuple(trace.move for trace in _traces(own, cluster_id).values())
        return _RecentRun(moves, _usage_of(journal_dir, run_id, own))

    return index_of(journal_dir).recent(cluster_id, 1_000_000 * since_ms, read)


def _usage_of(journal_dir: Path, run_id: str, records: Sequence[JournalRecord]) -> RunUsage | None:
    """What a run has used by these records of it; None without any."""
    if not records:
        return None
    moved = [(r.id, r.detail.get("bytes")) for r in records if r.event is JournalEvent.MOVED]
    unknown = any(size is None for _, size in moved)
    planned = _planned_bytes(journal_dir, run_id) if unknown else {}
    copied = sum(planned.get(pid, 0) if size is None else size for pid, size in moved)
    return RunUsage(started_at_ms=min(r.at_ms for r in records), bytes_copied=copied)


def _planned_bytes(journal_dir: Path, run_id: str) -> Mapping[PartitionId | None, int]:
    """Bytes that the moves of a run were to copy; empty where its plan is not there any more."""
    try:
        moves = read_plan(plan_path(journal_dir, run_id)).moves
    except ConfigError:
        return {}
    return {move.id: move.bytes_to_copy or 0 for move in moves}


def unfinished(journal_dir: Path, cluster_id: str) -> dict[PartitionId, str]:
    """Return the run id by partition, for partitions whose last move has no known end.

    Raises ConfigError for an unreadable journal.
    """
    return index_of(journal_dir).unfinished(cluster_id, partial(facts_of, journal_dir))


def facts_of(journal_dir: Path, run_id: str) -> JournalFacts:
    """Read what a journal says that other runs need to know.

    Raises ConfigError for an unreadable journal.
    """
    content = read_content(journal_dir / (run_id + SUFFIX))
    records = content.records
    cluster_id = records[0].cluster_id if records else ""
    traces = _traces(records, cluster_id)
    still_open = frozenset(pid for pid, trace in traces.items() if trace.open)
    is_whole = not content.damage and not content.torn_bytes
    is_clean = bool(is_whole and records and records[-1].checksum and is_clean_end(records[-1]))
    state, *_ = _end_of(records)
    is_left = any(_still_set(records)) or has_lost_settings(content)
    return JournalFacts(
        cluster_id=cluster_id,
        is_quiet=is_clean or not (content.damage or is_left),
        has_ended=state is not RunState.INTERRUPTED,
        is_done=is_clean and state is RunState.DONE and not still_open,
        open=still_open,
        traced=frozenset(traces),
    )


def _traces(records: Iterable[JournalRecord], cluster_id: str) -> dict[PartitionId, _Trace]:
    """Partitions of a journal; empty if it is about another cluster."""
    traces: dict[PartitionId, _Trace] = {}
    for record in records:
        pid = record.id
        if pid is None or record.cluster_id != cluster_id:
            continue
        if record.event in _SENT or record.event is JournalEvent.MOVED:
            is_open = record.event is not JournalEvent.MOVED
            traces[pid] = _Trace(record.run_id, _recent(pid, record), is_open)
        elif record.event is JournalEvent.DROPPED:
            traces.pop(pid, None)
    return traces


def _recent(pid: PartitionId, record: JournalRecord) -> RecentMove:
    before, after = record.replicas_before, record.replicas_after
    return RecentMove(
        topic=pid.topic,
        partition=pid.partition,
        left=tuple(b for b in before if b not in after),
        # Leadership follows the first replica, and comes back to it by itself.
        leader_left=before[0] if before[:1] != after[:1] and before[0] in after else None,
        at_ms=record.at_ms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """An earlier run, as its plan and journal record it."""

    run_id: str
    plan: Plan
    started_at_ms: int
    last_at_ms: int
    """Time of its newest record."""
    throttled: ThrottleSettings | None
    """The throttle it has set and not removed."""
    suspended_balancer: SuspendedBalancer | None
    """The thresholds of AutoMQ's balancer it has raised and not restored."""
    lowered_segments: LoweredSegments | None
    """The topic settings it has lowered and not restored."""
    cancelling: frozenset[PartitionId]
    """Partitions whose move it has tried to cancel."""
    moves: dict[PartitionId, MoveProgress]
    """State of each move; `ISSUED` or `STUCK` if its end was not seen."""
    state: RunState = RunState.INTERRUPTED
    """The state in which it ended."""
    reason: str = ""
    """Why it stopped or failed."""
    by: str = ""
    """Who approved or resumed it; empty if unknown."""
    signature: str = ""
    """The signature of its plan, in base64; empty without one."""
    warnings: tuple[str, ...] = ()
    """Damage in its journal, and settings that may be in force because of it."""
    has_losses: bool = False
    """Whether records may be missing, so that any move may have been requested."""
    has_lost_settings: bool = False
    """Whether a missing record may have announced a setting."""
    ended_at_ms: int | None = None
    """Time of its newest ENDED record; None without one."""

    @property
    def duration_s(self) -> float:
        """Seconds from its start to its end, pauses included; if interrupted, until
        its last record.
        """
        is_open = self.ended_at_ms is None or self.state is RunState.INTERRUPTED
        end_ms = self.last_at_ms if is_open else self.ended_at_ms
        return max(0.0, ((end_ms or 0) - self.started_at_ms) / 1000)

    @property
    def progress(self) -> RunProgress:
        """The last state of the run."""
        return RunProgress(
            run_id=self.run_id,
            plan_hash=self.plan.hash,
            state=self.state,
            moves=tuple(self.moves.values()),
            started_at_ms=self.started_at_ms,
            reason=self.reason,
        )

    @property
    def is_unfinished(self) -> bool:
        """Whether it can be resumed."""
        return bool(self.among(*UNFINISHED)) or self.left_set

    @property
    def left_set(self) -> bool:
        """Whether its settings are still in force."""
        return any((self.throttled, self.suspended_balancer, self.lowered_segments))

    @property
    def remaining_plan(self) -> Plan:
        """Its plan without moves that were skipped or are being cancelled."""
        done = {move.id for move in self.among(MoveState.DONE)}
        dropped = {move.id for move in self.among(MoveState.DROPPED)}
        gone = (dropped | self.cancelling) - done
        kept = tuple(move for move in self.plan.moves if move.id not in gone)
        return self.plan.model_copy(update={"moves": kept})

    def among(self, *states: MoveState) -> list[Move]:
        """Moves in any of these states, in the plan's order."""
        return [at.move for at in self.moves.values() if at.state in states]


def undone_run(plan: Plan) -> str:
    """The run that a plan claims to undo; empty where it claims nothing of the kind."""
    if not plan.limited_by.startswith(RESTORES):
        return ""
    return plan.limited_by.removeprefix(RESTORES).removesuffix(HAD_MOVED)


def past_run(journal_dir: Path, cluster_id: str, run_id: str | None = None) -> PastRun:
    """Read a run by its id or the start of it; by default the newest.

    Raises ConfigError where there is none, or more than one, or it is unreadable.
    """
    if run_id is None:
        newest = next(_newest_ids(journal_dir, cluster_id), "")
        _refuse_unknown(journal_dir, newest)
        found = [newest] if newest else []
    else:
        found = [*_newest_ids(journal_dir, cluster_id, run_id)]
    if not found:
        newest = next(_newest_ids(journal_dir, cluster_id), "")
        known = f"; the newest is {newest}" if newest else ""
        raise ConfigError(
            f"{journal_dir} has no run{f' {run_id}' if run_id else ''} on this cluster{known}"
        )
    if len(found) > 1 and run_id not in found:
        raise ConfigError(f"{len(found)} run ids start with {run_id}; type more characters")
    return _read_run(journal_dir, run_id if run_id in found else found[0])


def _newest_ids(journal_dir: Path, cluster_id: str, begin: str = "") -> Iterator[str]:
    """Ids of the runs on a cluster that begin like this, newest first.

    A journal is opened only once its id is asked for.
    """
    for number, run_id in enumerate(reversed(index_of(journal_dir).run_ids())):
        if not run_id.startswith(begin):
            continue
        if begin or number < _OPENED:
            found = cluster_of(journal_dir / (run_id + SUFFIX))
        else:
            found = index_of(journal_dir).cluster_of(run_id, partial(facts_of, journal_dir))
        if found == cluster_id:
            yield run_id


def _refuse_unknown(journal_dir: Path, newest: str) -> None:
    """Raise ConfigError for an unreadable run that may be the newest one."""
    for run_id in reversed(index_of(journal_dir).run_ids()):
        if order(run_id) <= order(newest):
            return
        path = journal_dir / (run_id + SUFFIX)
        if cluster_of(path) is None and read_content(path).damage:
            raise ConfigError(
                f"Neither the journal {path} nor its plan can be read, so it may be "
                "the newest run on this cluster. Restore one of them, see plimsoll "
                "journal verify, or move both away."
            )


def _read_run(journal_dir: Path, name: str, plan: Plan | None = None) -> PastRun:
    """Read a run; `plan` replaces an unreadable plan file."""
    plan = plan or read_plan(plan_path(journal_dir, name))
    path = run_path(journal_dir, name)
    content = read_content(path)
    records = content.records
    moves = {move.id: MoveProgress(move=move) for move in plan.moves}
    throttled, suspended_balancer, lowered_segments = _still_set(records)
    state, reason, by = _end_of(records)
    for record in records:
        if record.id in moves:
            moves[record.id] = after_record(moves[record.id], record)
    lost = lost_settings(content, plan)
    return PastRun(
        run_id=name,
        plan=plan,
        started_at_ms=min((r.at_ms for r in records), default=0),
        last_at_ms=max((r.at_ms for r in records), default=0),
        throttled=throttled,
        suspended_balancer=suspended_balancer,
        lowered_segments=lowered_segments,
        cancelling=frozenset(
            record.id
            for record in records
            if record.event is JournalEvent.CANCELLING and record.id is not None
        ),
        moves=moves,
        state=state,
        reason=reason,
        by=by,
        signature=_signature_in(records),
        warnings=(*damage_text(path, content), *lost),
        has_losses=bool(content.losses),
        has_lost_settings=has_lost_settings(content),
        ended_at_ms=max((r.at_ms for r in records if r.event is JournalEvent.ENDED), default=None),
    )


def damage_text(path: Path, content: JournalContent) -> tuple[str, ...]:
    """The damage of a journal, as a sentence; empty if there is none."""
    if not content.damage:
        return ()
    first = "; ".join(str(damage) for damage in content.damage[:_NAMED])
    more = len(content.damage) - _NAMED
    rest = f"; and {more} more" if more > 0 else ""
    return (
        f"The journal {path} is damaged: {first}{rest}. Only its intact records are "
        "used; see plimsoll journal verify.",
    )


def _end_of(records: Iterable[JournalRecord]) -> tuple[RunState, str, str]:
    """The state and reason of a run's end, and who last started or resumed it."""
    state, reason, by = RunState.INTERRUPTED, "", ""
    for record in records:
        match record.event:
            case JournalEvent.STARTED | JournalEvent.RESUMED:
                state, reason = RunState.INTERRUPTED, ""
                by = record.detail.get("by", "")
            case JournalEvent.ENDED:
                state = RunState(record.detail["state"])
                reason = record.detail["reason"]
    return state, reason, by


def _signature_in(records: Iterable[JournalRecord]) -> str:
    """The signature of the plan, in base64; empty without one."""
    for record in records:
        found = record.detail.get("signature")
        if isinstance(found, dict):
            return str(found.get("text", ""))
    return ""


def _still_set(
    records: Iterable[JournalRecord],
) -> tuple[ThrottleSettings | None, SuspendedBalancer | None, LoweredSegments | None]:
    """What a run has set and not restored, according to its journal."""
    throttled, suspended_balancer, lowered_segments = None, None, None
    for record in records:
        match record.event:
            case JournalEvent.THROTTLED:
                throttled = ThrottleSettings.read(record.detail)
            case JournalEvent.UNTHROTTLED:
                throttled = None
            case JournalEvent.BALANCER_SUSPENDED:
                suspended_balancer = SuspendedBalancer.read(record.detail["before"])
            case JournalEvent.BALANCER_RESTORED:
                suspended_balancer = None
            case JournalEvent.SEGMENTS_LOWERED:
                lowered_segments = LoweredSegments.read(record.detail)
            case JournalEvent.SEGMENTS_RESTORED:
                lowered_segments = None
    return throttled, suspended_balancer, lowered_segments


def cluster_of(path: Path) -> str | None:
    """The cluster of a run; None where neither journal nor plan names it."""
    # An unreadable file has no first line either; its reader reports it.
    with contextlib.suppress(ConfigError, OSError):
        with open_regular(path) as lines:
            first = scan(lines.readline(MOST_LINE), path.stem)
        content = first if first.intact else read_content(path)
        if content.intact:
            return content.records[0].cluster_id
        # An undamaged file without records means that nothing was sent.
        if content.damage:
            return read_plan(plan_path(path.parent, path.stem)).cluster_id
    return None


def past_runs(journal_dir: Path, cluster_id: str) -> list[PastRun]:
    """The 20 newest readable runs on a cluster, oldest first."""
    found = []
    for run_id in [*islice(_newest_ids(journal_dir, cluster_id), _NEWEST)][::-1]:
        with contextlib.suppress(ConfigError):
            found.append(_read_run(journal_dir, run_id))
    return found


def runs_of(journal_dir: Path, cluster_id: str, plans: Collection[str]) -> list[PastRun]:
    """The readable runs of the plans with these hashes on a cluster, oldest first, of any age."""
    found = []
    for run_id in of_plans(index_of(journal_dir).run_ids(), plans):
        with contextlib.suppress(ConfigError):
            # As for `past_runs`: one that a crash left without a record has sent nothing.
            if cluster_of(run_path(journal_dir, run_id)) != cluster_id:
                continue
            past = _read_run(journal_dir, run_id)
            if past.plan.hash in plans:
                found.append(past)
    return found


def left_set(journal_dir: Path, cluster_id: str) -> list[PastRun]:
    """Runs that have left settings in force, or may have; oldest first.

    Settings are recorded in the journal, so an unreadable plan does not hide them.
    Unreadable journals are left out; `unreadable` names them.
    """
    found = []
    for path in _open_ended(journal_dir):
        with contextlib.suppress(ConfigError):
            past = _read_settings(journal_dir, path, cluster_id)
            if past is not None and (past.left_set or past.has_lost_settings):
                found.append(past)
    return found


def unreadable(journal_dir: Path, cluster_id: str) -> list[str]:
    """Sentences about unreadable journals whose runs may have left settings on a cluster."""
    found = []
    for path in _open_ended(journal_dir):
        known = cluster_of(path)
        if known not in (None, cluster_id):
            continue
        try:
            damage = read_content(path).damage
        except ConfigError as exc:
            found.append(str(exc))
            continue
        if known is None and damage:
            found.append(
                f"Neither the journal {path} nor its plan can be read, so its run may "
                f"have left settings in force on the cluster {cluster_id}. Restore one "
                "of them, see plimsoll journal verify."
            )
    return found


def _open_ended(journal_dir: Path) -> list[Path]:
    """Journals that may have left something set, or are unreadable or damaged."""
    others = index_of(journal_dir).not_done(partial(facts_of, journal_dir))
    return [
        journal_dir / (file.run_id + SUFFIX)
        for file, facts in others
        if facts is None or not facts.is_quiet
    ]


def _read_settings(journal_dir: Path, path: Path, cluster_id: str) -> PastRun | None:
    """A run on the cluster, even if its plan is unreadable."""
    if cluster_of(path) != cluster_id:
        return None
    try:
        return _read_run(journal_dir, path.stem)
    except ConfigError as exc:
        records = read_journal(path)
        past = _read_run(journal_dir, path.stem, _without_moves(records, cluster_id))
        return replace(past, warnings=(str(exc), *past.warnings))


def _without_moves(records: Sequence[JournalRecord], cluster_id: str) -> Plan:
    """A placeholder for an unreadable plan; it is never written or executed."""
    return Plan(
        cluster_id=cluster_id,
        hash=records[0].plan_hash if records else "",
        snapshot_fingerprint="",
        snapshot_taken_at_ms=0,
        live_brokers=(),
        goals=Goals(),
        limits=SolveLimits(),
        status=PlanStatus.STOPPED,
        objective_before=0.0,
        objective=0.0,
        bound=0.0,
        move_price=0.0,
        levels={},
        brokers=(),
        moves=(),
    )


def after_record(at: MoveProgress, record: JournalRecord) -> MoveProgress:
    """The state of a move after one more record."""
    detail = record.detail
    match record.event:
        case JournalEvent.PREPARED | JournalEvent.NOTED:
            return replace(at, note=detail["note"])
        case JournalEvent.ISSUING:
            sent_ms = at.issued_at_ms or record.at_ms
            sent = replace(at, state=MoveState.ISSUED, issued_at_ms=sent_ms)
            return _counted(sent, detail)
        case JournalEvent.ELECTING:
            return _counted(at, detail)
        case JournalEvent.ISSUED | JournalEvent.CANCELLING if at.issued_at_ms is None:
            # The record of the request is missing.
            return replace(at, state=MoveState.ISSUED, issued_at_ms=record.at_ms)
        case JournalEvent.MOVED:
            return replace(
                at,
                state=MoveState.DONE,
                issued_at_ms=at.issued_at_ms or record.at_ms,
                done_at_ms=record.at_ms,
                bytes_copied=detail["bytes"],
                stall_s=tuple(detail["stall_s"]) if detail.get("stall_s") else None,
            )
        case JournalEvent.DROPPED:
            unneeded = bool(detail.get("unneeded"))
            note = detail["reason"]
            return replace(at, state=MoveState.DROPPED, note=note, unneeded=unneeded)
        case JournalEvent.STUCK:
            return replace(at, state=MoveState.STUCK, note=detail["reason"])
    return at


def _counted(at: MoveProgress, detail: Mapping[str, Any]) -> MoveProgress:
    """Count one more request."""
    again = detail.get("again", False)
    return replace(at, requests=at.requests + 1, retries=at.retries + again)
