"""Settings that earlier runs have left in force, in words."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from executor.admin import Admin
from executor.history import PastRun, left_set, unreadable
from executor.lock import is_changing
from executor.losses import WHAT, listed
from executor.throttle import FOLLOWERS, LEADERS, RATES
from model.plan import Move
from model.run import JournalEvent, RunReport, RunState

_RESTORE: Final = "plimsoll cleanup --allow-changes"


def left_settings(journal_dir: Path, cluster_id: str) -> list[str]:
    """What runs on a cluster have left in force and how to restore it, in sentences.

    Reads the journals alone. Nothing of a run that is in progress; a journal that
    cannot be read or has lost a record of a setting is named.
    """
    # Asked first, so that a run that ends meanwhile is not taken for interrupted.
    changing = is_changing(journal_dir, cluster_id)
    found = left_set(journal_dir, cluster_id)
    if changing and found and found[-1].state is RunState.CUT_OFF:
        found.pop()
    return [
        *(left_by(past) for past in found if past.left_set),
        *(words for past in found if past.has_lost_settings for words in past.warnings),
        *unreadable(journal_dir, cluster_id),
    ]


def remains(journal_dir: Path, cluster_id: str) -> list[str]:
    """What no cleanup has restored, in sentences, while no run is in progress.

    Settings whose record is missing are not known, and not in it.
    """
    found = left_set(journal_dir, cluster_id)
    return [
        *(left_by(past) for past in found if past.left_set),
        *unreadable(journal_dir, cluster_id),
    ]


def suspects(admin: Admin, journal_dir: Path, cluster_id: str) -> list[str]:
    """What is set where a run may have set a throttle in a record that is missing.

    Nobody can tell whose it is, so it stays; each with what removes it.
    """
    found: dict[str, None] = {}
    for past in left_set(journal_dir, cluster_id):
        if past.has_lost_settings:
            moves = [move for move in past.plan.moves if move.added]
            found |= dict.fromkeys(_suspects_of(admin, past.run_id, moves))
    return list(found)


def _suspects_of(admin: Admin, run_id: str, moves: Sequence[Move]) -> Iterator[str]:
    brokers = {b for m in moves for b in (*m.replicas_before, *m.replicas_after)}
    for broker in sorted(brokers & admin.cluster().alive):
        for key, value in admin.own_broker_configs(broker, RATES).items():
            yield _suspect(run_id, "broker", broker, key, value)
    topics = sorted({move.topic for move in moves} & admin.topics().keys())
    lists = admin.own_topic_configs(topics, (LEADERS, FOLLOWERS)) if topics else {}
    for topic, values in lists.items():
        for key, value in values.items():
            yield _suspect(run_id, "topic", topic, key, value)


def _suspect(run_id: str, kind: str, name: object, key: str, value: str) -> str:
    return (
        f"{kind} {name} has {key} = {value}, which the run {run_id} may have set: its "
        "record is missing. If nobody else has set it, remove it with kafka-configs.sh "
        f"--alter --entity-type {kind}s --entity-name {name} --delete-config {key}"
    )


def with_left(report: RunReport, journal_dir: Path, cluster_id: str) -> RunReport:
    """The report of a run that undoes another, with what remains in force after it."""
    left = remains(journal_dir, cluster_id)
    if not left:
        return report
    reason = "; ".join(filter(None, (report.reason, *left)))
    return report.model_copy(update={"state": RunState.FAILED, "reason": reason})


def left_by(past: PastRun) -> str:
    """What a run has left in force, in a sentence."""
    return (
        f"The run {past.run_id} has not restored all that it set: "
        f"{'; '.join(_named(past))}. Restore the previous values with {_RESTORE}."
    )


def _named(past: PastRun) -> Iterator[str]:
    if past.throttled is not None:
        brokers, topics = listed(past.throttled.rates), listed(past.throttled.lists)
        where = f"the brokers {brokers} and the topics {topics}"
        yield f"{WHAT[JournalEvent.THROTTLED]} on {where}"
    if past.stood_down is not None:
        own = listed([b for b in past.stood_down.before if b is not None])
        where = "the default of all brokers" + (f" and brokers {own}" if own else "")
        yield f"{WHAT[JournalEvent.BALANCER_STOOD_DOWN]} on {where}"
    if past.shortened is not None:
        topics = listed(past.shortened.before)
        yield f"{WHAT[JournalEvent.SEGMENTS_SHORTENED]} on the topics {topics}"
