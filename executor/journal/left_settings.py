"""Sentences about settings that earlier runs have left in force."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from executor.client.cluster_admin import ClusterReads
from executor.journal.lock import is_changing
from executor.journal.lost_settings import WHAT, listed
from executor.journal.run_history import PastRun, left_set, unreadable
from executor.platforms.automq_balancer import NEVER, THRESHOLDS
from executor.platforms.tiered_segments import LOCAL, SEGMENT
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from model.plan.plan import Move
from model.run import JournalEvent, RunReport, RunState
from model.snapshot.snapshot import StorageKind

_RESTORE: Final = "plimsoll cleanup --allow-changes"


def left_settings(journal_dir: Path, cluster_id: str) -> list[str]:
    """Settings that runs have left in force, and how to restore them, in sentences.

    Reads only the journals. Settings of a run in progress are left out; a journal that
    is unreadable or has lost a record of a setting is named.
    """
    # Checked first, so that a run that ends meanwhile does not count as interrupted.
    changing = is_changing(journal_dir, cluster_id)
    found = left_set(journal_dir, cluster_id)
    if changing and found and found[-1].state is RunState.INTERRUPTED:
        found.pop()
    lost = [warning for past in found if past.has_lost_settings for warning in past.warnings]
    return [*_left_by(found), *lost, *unreadable(journal_dir, cluster_id)]


def remains(journal_dir: Path, cluster_id: str) -> list[str]:
    """Settings that no cleanup has restored, in sentences, while no run is in progress.

    Settings whose record is missing are not included.
    """
    return [*_left_by(left_set(journal_dir, cluster_id)), *unreadable(journal_dir, cluster_id)]


def suspects(admin: ClusterReads, journal_dir: Path, cluster_id: str) -> list[str]:
    """Settings in force that a missing record may have announced, in sentences.

    Nobody can tell who has set them, so they stay; each sentence says how to remove it.
    """
    found: dict[str, None] = {}
    for past in left_set(journal_dir, cluster_id):
        if past.has_lost_settings:
            found |= dict.fromkeys(_suspects_of(admin, past))
    return list(found)


def _suspects_of(admin: ClusterReads, past: PastRun) -> Iterator[str]:
    moves = [move for move in past.plan.moves if move.added]
    brokers = {b for m in moves for b in (*m.replicas_before, *m.replicas_after)}
    alive = admin.cluster().alive
    for broker in sorted(brokers & alive):
        yield from _suspect(past, "broker", broker, admin.own_broker_configs(broker, RATES))
    yield from _of_topics(admin, past, moves, (LEADERS, FOLLOWERS))
    tiered = [move for move in moves if move.storage is StorageKind.TIERED]
    yield from _of_topics(admin, past, tiered, (SEGMENT, LOCAL))
    if any(move.storage is StorageKind.SHARED for move in past.plan.moves):
        for name in (None, *sorted(alive)):
            own = admin.own_broker_configs(name, THRESHOLDS)
            raised = {key: value for key, value in own.items() if value == str(NEVER)}
            yield from _suspect(past, "broker", name, raised)


def _of_topics(
    admin: ClusterReads, past: PastRun, moves: Sequence[Move], keys: Sequence[str]
) -> Iterator[str]:
    topics = sorted({move.topic for move in moves} & admin.topics().keys())
    found = admin.own_topic_configs(topics, keys) if topics else {}
    for topic, values in found.items():
        yield from _suspect(past, "topic", topic, values)


def _suspect(past: PastRun, kind: str, name: object, values: Mapping[str, str]) -> Iterator[str]:
    """One sentence for each; without a name, the cluster-wide default."""
    who = f"{kind} {name}" if name is not None else f"the default of all {kind}s"
    entity = f"--entity-name {name}" if name is not None else "--entity-default"
    for key, value in values.items():
        yield (
            f"{who} has {key} = {value}, which the run {past.run_id} may have set: its record is "
            "missing. If nobody else has set it, remove it with kafka-configs.sh --alter "
            f"--entity-type {kind}s {entity} --delete-config {key}"
        )


def with_left(report: RunReport, journal_dir: Path, cluster_id: str) -> RunReport:
    """Add what remains in force to the report of a rollback."""
    left = remains(journal_dir, cluster_id)
    if not left:
        return report
    reason = "; ".join(filter(None, (report.reason, *left)))
    return report.model_copy(update={"state": RunState.FAILED, "reason": reason})


def _left_by(runs: Iterable[PastRun]) -> Iterator[str]:
    """What each run has left in force, as a sentence."""
    for past in runs:
        if past.left_set:
            yield (
                f"The run {past.run_id} has not restored all settings: "
                f"{'; '.join(_named(past))}. Restore the previous values with {_RESTORE}."
            )


def _named(past: PastRun) -> Iterator[str]:
    if past.throttled is not None:
        brokers, topics = listed(past.throttled.rates), listed(past.throttled.lists)
        where = f"the brokers {brokers} and the topics {topics}"
        yield f"{WHAT[JournalEvent.THROTTLED]} on {where}"
    if past.suspended_balancer is not None:
        own = listed([b for b in past.suspended_balancer.before if b is not None])
        where = "the default of all brokers" + (f" and brokers {own}" if own else "")
        yield f"{WHAT[JournalEvent.BALANCER_SUSPENDED]} on {where}"
    if past.lowered_segments is not None:
        topics = listed(past.lowered_segments.before)
        yield f"{WHAT[JournalEvent.SEGMENTS_LOWERED]} on the topics {topics}"
