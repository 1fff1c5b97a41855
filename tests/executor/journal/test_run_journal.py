"""The files of a run, and reading them back."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.journal.journal_index import new_run_id
from executor.journal.records import JournalEnd, sealed
from executor.journal.run_history import (
    past_run,
    read_content,
    read_journal,
    recent_moves,
    unfinished,
    usage_since,
)
from executor.journal.run_journal import RunJournal, plan_path, run_path, run_paths
from executor.timing import Timing
from model.errors import ConfigError, ExecutionStopped
from model.run import JournalEvent, MoveState
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move, plan

FIRST, SECOND = move(0, (1,), (2,), bytes_to_copy=900), move(1, (1, 2), (3, 2))
PLAN = plan([FIRST, SECOND])
AT_S = 1_800_000_000.0


class Journals:
    """Makes journals in one folder and closes them at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: list[RunJournal] = []

    def __call__(self, run_id: str = "run-1", at_s: float = AT_S) -> RunJournal:
        made = RunJournal(self.folder, PLAN, run_id, Timing(now_s=lambda: at_s))
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journals]:
    with closing(Journals(tmp_path / "state" / "journal")) as journals:
        yield journals


def test_written_records_are_read_back(journal: Journals) -> None:
    written = journal()
    written.write(JournalEvent.STARTED, planned=2)
    written.write(JournalEvent.ISSUING, PLAN.moves)
    start, *sent = read_journal(written.path)
    assert (start.event, start.detail, start.id) == ("started", {"planned": 2}, None)
    assert [r.id for r in sent] == [FIRST.id, SECOND.id]
    assert sent[1].replicas_before == ids([1, 2])
    assert (sent[0].plan_hash, sent[0].cluster_id) == (PLAN.hash, CLUSTER_ID)
    assert sent[0].at_ms == 1000 * AT_S


def test_a_record_is_on_disk_when_write_returns(
    journal: Journals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sync the plan first, the folder with each new file, the file after each record."""
    synced: list[int] = []
    sync = os.fsync

    def noting(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        sync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    written = journal()
    written.write(JournalEvent.STARTED)
    written.write(JournalEvent.ISSUING, PLAN.moves)
    file = written.path.stat().st_ino
    planned = plan_path(journal.folder, "run-1").stat().st_ino
    folder = journal.folder.stat().st_ino
    assert synced[-5:] == [planned, folder, folder, file, file]


def test_no_file_before_the_first_record(journal: Journals) -> None:
    assert not journal().path.exists()


def test_a_journal_is_never_overwritten(journal: Journals) -> None:
    journal().write(JournalEvent.STARTED)
    with pytest.raises(ConfigError, match=r"run-1\.jsonl cannot be created"):
        journal().write(JournalEvent.STARTED)


def test_a_full_disk_stops_the_run_before_anything_is_sent(journal: Journals) -> None:
    full = journal()
    with Path("/dev/full").open("wb", buffering=0) as disk:
        full._file = disk
        with pytest.raises(ExecutionStopped, match="nothing further is sent"):
            full.write(JournalEvent.ISSUING, [FIRST])


@pytest.mark.parametrize("remaining", [1, 40, -1])
def test_an_incomplete_last_line_is_ignored(journal: Journals, remaining: int) -> None:
    """Whatever of the last record a crash let through, the ones before it count."""
    torn = journal()
    torn.write(JournalEvent.ISSUING, PLAN.moves)
    first, second = torn.path.read_bytes().splitlines(keepends=True)
    torn.path.write_bytes(first + second[:-1][:remaining])
    assert [r.id for r in read_journal(torn.path)] == [FIRST.id]


def test_a_corrupt_line_is_named_and_the_others_are_used(journal: Journals) -> None:
    spoilt = journal()
    spoilt.write(JournalEvent.ISSUING, PLAN.moves)
    spoilt.path.write_bytes(b"{}\n" + spoilt.path.read_bytes())
    content = read_content(spoilt.path)
    assert list(map(str, content.damage)) == ["line 1 is not a journal record"]
    assert len(content.records) == 2


def test_fields_of_a_newer_minor_version_are_ignored(journal: Journals) -> None:
    written = journal()
    written.write(JournalEvent.STARTED)
    record = read_journal(written.path)[0].model_dump(mode="json")
    old = record | {"schema_version": "1.9", "wave": 3, "checksum": "", "previous": ""}
    written.path.write_text(json.dumps(old | {"sequence": None}) + "\n")
    assert len(read_journal(written.path)) == 1


def test_a_newer_major_version_is_refused(journal: Journals) -> None:
    written = journal()
    written.write(JournalEvent.STARTED)
    (record,) = read_journal(written.path)
    newer = record.model_copy(update={"schema_version": "3.0"})
    written.path.write_bytes(sealed(newer, JournalEnd())[0])
    with pytest.raises(ConfigError, match=r"run-1\.jsonl was written by a newer"):
        read_journal(written.path)


def test_runs_are_numbered_above_all_that_are_there(tmp_path: Path) -> None:
    assert new_run_id(tmp_path, 1_800_000_000_123, "1a2b3c4d") == (
        "r00000001-20270115T080000123-1a2b3c4d"
    )
    for name in ("20991231T000000000-1a2b3c4d.jsonl", "r00000041-x.jsonl"):
        (tmp_path / name).touch()
    assert new_run_id(tmp_path, 0, "elect") == "r00000042-19700101T000000000-elect"


def test_runs_are_ordered_by_their_number_and_before_it_by_time(tmp_path: Path) -> None:
    names = [
        "20260101T000000000-aaaaaaaa",
        "20991231T000000000-aaaaaaaa",
        "r00000009-20260101T000000000-ffffffff",
        "r00000010-20250101T000000000-aaaaaaaa",
        "r100000000-20240101T000000000-aaaaaaaa",
    ]
    for name in reversed(names):
        run_path(tmp_path, name).touch()
    assert [path.stem for path in run_paths(tmp_path)] == names


def test_a_move_that_was_made_is_a_recent_move(journal: Journals) -> None:
    written = journal()
    written.write(JournalEvent.ISSUING, [SECOND])
    written.write(JournalEvent.MOVED, [SECOND])
    (result,) = recent_moves(journal.folder, CLUSTER_ID, 0)
    assert (result.topic, result.partition) == SECOND.id
    assert (result.left, result.at_ms) == (ids([1]), 1000 * AT_S)
    assert unfinished(journal.folder, CLUSTER_ID) == {}


def test_a_change_of_the_first_replica_names_the_leader_that_was(journal: Journals) -> None:
    """Only where it keeps its replica: a broker that loses it may not return anyway."""
    order = SECOND.model_copy(
        update={
            "replicas_after": SECOND.replicas_before[::-1],
            "leader_after": SECOND.replicas_before[-1],
        }
    )
    journal().write(JournalEvent.MOVED, [order])
    journal("run-2").write(JournalEvent.MOVED, [SECOND])
    first, second = recent_moves(journal.folder, CLUSTER_ID, 0)
    assert (first.left, first.leader_left) == ((), SECOND.replicas_before[0])
    assert (second.left, second.leader_left) == (ids([1]), None)


def test_a_move_whose_end_was_not_seen_counts_as_recent_and_unfinished(journal: Journals) -> None:
    journal().write(JournalEvent.ISSUING, [FIRST])
    assert [m.partition for m in recent_moves(journal.folder, CLUSTER_ID, 0)] == [0]
    assert unfinished(journal.folder, CLUSTER_ID) == {FIRST.id: "run-1"}


def test_a_skipped_move_is_neither_recent_nor_unfinished(journal: Journals) -> None:
    written = journal()
    written.write(JournalEvent.ISSUING, [FIRST])
    written.write(JournalEvent.DROPPED, [FIRST])
    assert recent_moves(journal.folder, CLUSTER_ID, 0) == ()
    assert unfinished(journal.folder, CLUSTER_ID) == {}


def test_a_later_move_of_a_partition_settles_an_unfinished_one(journal: Journals) -> None:
    journal().write(JournalEvent.ISSUING, [FIRST])
    journal("run-2").write(JournalEvent.MOVED, [FIRST])
    assert unfinished(journal.folder, CLUSTER_ID) == {}


def test_moves_before_the_time_and_of_other_clusters_are_omitted(journal: Journals) -> None:
    journal().write(JournalEvent.MOVED, [FIRST])
    journal("run-2", AT_S + 60).write(JournalEvent.MOVED, [SECOND])
    for path in journal.folder.iterdir():
        os.utime(path, (AT_S + 60, AT_S + 60))
    since_ms = int(1000 * (AT_S + 30))
    assert [m.partition for m in recent_moves(journal.folder, CLUSTER_ID, since_ms)] == [1]
    assert recent_moves(journal.folder, "another", 0) == ()


def test_a_missing_folder_has_no_moves(journal: Journals) -> None:
    assert recent_moves(journal.folder / "none", CLUSTER_ID, 0) == ()


def test_an_interrupted_run_continues_after_its_last_complete_record(journal: Journals) -> None:
    cut = journal()
    cut.write(JournalEvent.STARTED, planned=2)
    cut.write(JournalEvent.ISSUING, PLAN.moves)
    cut.close()
    cut.path.write_bytes(cut.path.read_bytes()[:-9])
    again = RunJournal(journal.folder, PLAN, "run-1", Timing(), resumed=True)
    with closing(again):
        again.write(JournalEvent.MOVED, [FIRST], seconds=1.0, bytes=7)
    events = [(r.id, r.event) for r in read_journal(cut.path)]
    assert events == [
        (None, JournalEvent.STARTED),
        (FIRST.id, JournalEvent.ISSUING),
        (FIRST.id, JournalEvent.MOVED),
    ]
    past = past_run(journal.folder, CLUSTER_ID, "run")
    assert past.plan == PLAN
    assert past.moves[FIRST.id].bytes_copied == 7
    assert past.among(MoveState.DONE) == [FIRST]
    assert past.among(MoveState.PLANNED) == [SECOND]


def test_a_run_is_found_by_the_start_of_its_id(journal: Journals) -> None:
    for run_id in ("run-1", "run-12", "sun-1"):
        journal(run_id).write(JournalEvent.STARTED)
    assert past_run(journal.folder, CLUSTER_ID).run_id == "sun-1"
    assert past_run(journal.folder, CLUSTER_ID, "run-1").run_id == "run-1"
    assert past_run(journal.folder, CLUSTER_ID, "run-12").run_id == "run-12"
    with pytest.raises(ConfigError, match="2 run ids start with run"):
        past_run(journal.folder, CLUSTER_ID, "run")
    with pytest.raises(ConfigError, match="no run moon on this cluster; the newest"):
        past_run(journal.folder, CLUSTER_ID, "moon")
    with pytest.raises(ConfigError, match="has no run on this cluster"):
        past_run(journal.folder, "another")
    with pytest.raises(ConfigError, match="has no run on this"):
        past_run(journal.folder / "empty", CLUSTER_ID)


def test_runs_of_the_last_day_are_counted_with_what_they_copied(
    journal: Journals, tmp_path: Path
) -> None:
    at_ms = int(1000 * AT_S)
    for number, hours in enumerate((30, 20, 3)):
        made = journal(f"run-{number}", AT_S - 3600 * hours)
        made.write(JournalEvent.STARTED, planned=2)
        made.write(JournalEvent.MOVED, PLAN.moves, bytes=7, stall_s=None)
        made.close()
    folder = journal.folder
    for path in run_paths(folder):
        os.utime(path, (AT_S, AT_S))
    day = usage_since(folder, CLUSTER_ID, at_ms - 24 * 3_600_000)
    assert [(run.started_at_ms, run.bytes_copied) for run in day] == [
        (at_ms - 20 * 3_600_000, 14),
        (at_ms - 3 * 3_600_000, 14),
    ]
    assert usage_since(folder, "another", 0) == ()


def test_bytes_that_were_not_measured_count_as_planned(journal: Journals) -> None:
    """A move that was complete before a crashed run was resumed was never measured."""
    made = journal("run-1", AT_S)
    made.write(JournalEvent.STARTED, planned=2)
    made.write(JournalEvent.MOVED, PLAN.moves[:1], bytes=None, stall_s=None)
    made.close()
    (used,) = usage_since(journal.folder, CLUSTER_ID, 0)
    assert used.bytes_copied == 900
    plan_path(journal.folder, "run-1").unlink()
    (used,) = usage_since(journal.folder, CLUSTER_ID, 0)
    assert used.bytes_copied == 0
