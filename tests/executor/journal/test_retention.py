"""Which journals are deleted, and which never are."""

import logging
import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from executor.executor import Executor
from executor.journal.journal_index import new_run_id
from executor.journal.retention import NEWEST, Pruned, Retention, prune
from executor.journal.run_history import past_run, unfinished
from executor.journal.run_journal import (
    PLAN_SUFFIX,
    SUFFIX,
    Action,
    RunJournal,
    journal_ids,
    run_path,
)
from executor.run.operator_control import Steering
from executor.throttle.quota import ThrottleSettings
from executor.timing import Timing
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.log_events import LogEvent
from model.plan.plan import Plan
from model.run import JournalEvent, RunState
from tests.support.executor.plan_builders import CLUSTER_ID, move, plan
from tests.support.executor.simulated_runs import SimulatedRun

DAY_S = 86_400
NOW_S = int(time.time())
PLAN = plan([move(0)])
THROTTLE = ThrottleSettings().document()
ALL = Retention(max_bytes=0)
"""Deletes whatever may be deleted."""


def run_id_of(number: int) -> str:
    return f"r{number:08d}-20270101T000000000-aaaaaaaa"


def written(
    folder: Path,
    number: int,
    *,
    days_ago: float = 30,
    of: Plan = PLAN,
    left: bool = False,
    ends: bool = True,
    open_: bool = False,
) -> str:
    run_id = run_id_of(number)
    with closing(RunJournal(folder, of, run_id, Timing())) as journal:
        journal.write(JournalEvent.STARTED, by="")
        if left:
            journal.write(JournalEvent.THROTTLED, **THROTTLE)
        journal.write(JournalEvent.ISSUING, of.moves)
        if not open_:
            journal.write(JournalEvent.MOVED, of.moves, seconds=1.0, bytes=7)
        if ends:
            state = RunState.FAILED if left or open_ else RunState.DONE
            journal.write(JournalEvent.ENDED, state=state, reason="")
    aged(folder, run_id, days_ago)
    return run_id


def aged(folder: Path, run_id: str, days_ago: float) -> None:
    at_s = NOW_S - DAY_S * days_ago
    os.utime(folder / (run_id + SUFFIX), (at_s, at_s))


def newest(folder: Path, of: Plan = PLAN) -> list[str]:
    """Fill the folder with the newest runs of a cluster, which stay."""
    return [written(folder, 1_000 + n, of=of) for n in range(NEWEST)]


def pruned(folder: Path, retention: Retention = ALL) -> Pruned:
    return prune(folder, retention, 1000 * NOW_S)


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path) -> None:
    kept = [*(written(tmp_path, n) for n in range(1, 6)), *newest(tmp_path)]
    size = sum(path.stat().st_size for path in tmp_path.iterdir() if path.name != "index")
    one = size // len(kept)
    found = pruned(tmp_path, Retention(max_bytes=size - 2 * one + one // 2))
    assert found.run_ids == tuple(kept[:2])
    assert journal_ids(tmp_path) == kept[2:]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith((kept[0], kept[1]))]
    assert found.bytes_deleted + found.bytes_left == size
    # Nothing more is to be deleted.
    assert pruned(tmp_path, Retention(max_bytes=found.bytes_left)).run_ids == ()


def test_days_delete_what_is_older_though_there_is_space(tmp_path: Path) -> None:
    old, young = written(tmp_path, 1, days_ago=50), written(tmp_path, 2, days_ago=40)
    kept = newest(tmp_path)
    assert pruned(tmp_path, Retention(max_bytes=10**9)).run_ids == ()
    assert pruned(tmp_path, Retention(max_bytes=10**9, days=45)).run_ids == (old,)
    assert journal_ids(tmp_path) == [young, *kept]


def test_unfinished_left_damaged_recent_and_needed_runs_stay(tmp_path: Path) -> None:
    deleted = [written(tmp_path, 1)]
    stays = [
        written(tmp_path, 2, ends=False),
        written(tmp_path, 3, left=True),
        written(tmp_path, 4, open_=True, of=plan([move(7)])),
        written(tmp_path, 5, days_ago=6),
        written(tmp_path, 6),
        written(tmp_path, 7),
    ]
    path = run_path(tmp_path, stays[-1])
    path.write_bytes(path.read_bytes().replace(b'"by":""', b'"by":"x"'))
    aged(tmp_path, stays[-1], 30)
    stays += newest(tmp_path)
    found = pruned(tmp_path, Retention(max_bytes=0, needed=lambda: [stays[4]]))
    assert list(found.run_ids) == deleted
    assert journal_ids(tmp_path) == stays
    for run_id in stays:
        assert (tmp_path / (run_id + PLAN_SUFFIX)).exists()


def test_a_cooldown_longer_than_a_week_keeps_its_runs(tmp_path: Path) -> None:
    written(tmp_path, 1, days_ago=9)
    newest(tmp_path)
    assert pruned(tmp_path, Retention(max_bytes=0, cooldown_ms=1000 * DAY_S * 10)).run_ids == ()
    assert pruned(tmp_path).run_ids == (run_id_of(1),)


def test_the_run_that_ended_an_open_move_stays_while_the_open_one_does(tmp_path: Path) -> None:
    opened = written(tmp_path, 1, open_=True)
    ended = written(tmp_path, 2)
    unrelated = written(tmp_path, 3, of=plan([move(9)]))
    for number in range(NEWEST):
        written(tmp_path, 100 + number, of=plan([move(9)]))
    assert pruned(tmp_path).run_ids == (unrelated,)
    assert unfinished(tmp_path, CLUSTER_ID) == {}
    assert {opened, ended} <= {*journal_ids(tmp_path)}


def test_a_run_that_an_unfinished_rollback_undoes_stays(tmp_path: Path) -> None:
    undone, other = written(tmp_path, 1), written(tmp_path, 2)
    for number in range(NEWEST - 1):
        written(tmp_path, 100 + number)
    back = PLAN.model_copy(update={"limited_by": f"what run {undone} had moved"}).seal()
    written(tmp_path, 200, of=back, ends=False)
    assert pruned(tmp_path).run_ids == (other,)


def test_the_newest_runs_of_each_cluster_stay(tmp_path: Path) -> None:
    quiet = plan([move(0)], cluster_id="quiet")
    kept = [written(tmp_path, 1, of=quiet), written(tmp_path, 2, of=quiet)]
    deleted = written(tmp_path, 3)
    newest(tmp_path)
    assert pruned(tmp_path).run_ids == (deleted,)
    assert past_run(tmp_path, "quiet").run_id == kept[-1]


def test_elections_go_and_cordons_stay(tmp_path: Path) -> None:
    made = []
    for kind in ("elect", "cordon"):
        run_id = new_run_id(tmp_path, 0, kind)
        with closing(RunJournal(tmp_path, Action(CLUSTER_ID), run_id, Timing())) as journal:
            journal.write(JournalEvent.STARTED, by="")
            journal.write(JournalEvent.ENDED, state=RunState.DONE, reason="")
        aged(tmp_path, run_id, 30)
        made.append(run_id)
    newest(tmp_path)
    assert pruned(tmp_path).run_ids == (made[0],)


def test_deletions_and_an_exceeded_budget_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "plimsoll.executor")
    written(tmp_path, 1)
    newest(tmp_path)
    pruned(tmp_path)
    deleted, kept = caplog.records
    assert deleted.__dict__["log_event"] == LogEvent.JOURNALS_DELETED
    assert "deleted 1 journal of ended runs" in deleted.getMessage()
    assert run_id_of(1) in deleted.getMessage()
    assert kept.__dict__["log_event"] == LogEvent.JOURNALS_KEPT
    assert "more than journal_bytes (0 B) allows" in kept.getMessage()


def test_a_crash_between_plan_and_journal_is_made_good_next_time(tmp_path: Path) -> None:
    run_id = written(tmp_path, 1)
    newest(tmp_path)
    (tmp_path / (run_id + PLAN_SUFFIX)).unlink()
    assert pruned(tmp_path).run_ids == (run_id,)


def test_a_run_deletes_old_journals_and_never_its_own(tmp_path: Path) -> None:
    old = written(tmp_path, 1, days_ago=400)
    kept = newest(tmp_path)
    at = SimulatedRun(folder=tmp_path, before={0: (1, 2)}, after={0: (3, 2)})
    admin = SimulatedAdmin(at.cluster, at.faults)
    executor = Executor(admin, timing=at.cluster.timing, limits=at.limits, retention=ALL)
    report = executor.execute(
        at.plan, journal_dir=tmp_path, observe=lambda _run: None, steering=Steering()
    )
    assert report.state is RunState.DONE
    # Its own is among the newest, so that the oldest of those before may go.
    assert journal_ids(tmp_path) == [*kept[1:], report.run_id]
    assert old not in journal_ids(tmp_path)
