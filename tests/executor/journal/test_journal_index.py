"""The index of journals: it never changes an answer, whatever becomes of it."""

import errno
import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.journal import journal_index, run_history, run_journal
from executor.journal.journal_index import FILE, JournalFacts, JournalFile, JournalIndex, new_run_id
from executor.journal.records import JournalContent
from executor.journal.run_history import (
    facts_of,
    left_set,
    past_run,
    read_journal,
    recent_moves,
    unfinished,
    usage_since,
)
from executor.journal.run_journal import (
    SUFFIX,
    RunJournal,
    journal_inodes,
    plan_path,
    run_path,
    run_paths,
)
from executor.throttle.quota import ThrottleSettings
from executor.timing import Timing
from model.errors import ConfigError
from model.files import replace_file
from model.ids import PartitionId
from model.plan.plan import Plan
from model.run import JournalEvent, RunState
from tests.support.executor.plan_builders import CLUSTER_ID, move, plan

MOVES = [move(n) for n in range(3)]
PLAN = plan(MOVES)
OTHER = plan(MOVES, cluster_id="another")
THROTTLE = ThrottleSettings().document()
LONG_AGO_S = 1_700_000_000
RUNS = [f"r{n:08d}-20270101T000000000-aaaaaaaa" for n in range(1, 6)]
EVENTS = [
    (JournalEvent.STARTED, {"by": "me"}),
    (JournalEvent.THROTTLED, THROTTLE),
    (JournalEvent.UNTHROTTLED, {}),
    (JournalEvent.ENDED, {"state": RunState.DONE, "reason": ""}),
    (JournalEvent.ENDED, {"state": RunState.STOPPED, "reason": ""}),
    (JournalEvent.ENDED, {"state": RunState.FAILED, "reason": "it had to"}),
]
OF_MOVES = [JournalEvent.ISSUING, JournalEvent.ISSUED]


def write(folder: Path, run_id: str, *events: JournalEvent, of: Plan = PLAN, at: int = 0) -> Path:
    """Continue a journal; records about moves are about all. Changed `at` seconds later."""
    path = run_path(folder, run_id)
    journal = RunJournal(folder, of, run_id, Timing(), resumed=path.exists())
    with closing(journal):
        for event in events:
            detail = next((d for e, d in EVENTS if e is event), {})
            if event is JournalEvent.MOVED:
                journal.write(event, of.moves, seconds=1.0, bytes=7)
            else:
                moves = of.moves if event in OF_MOVES else (None,)
                journal.write(event, moves, **detail)
    os.utime(path, (LONG_AGO_S + at, LONG_AGO_S + at))
    return path


DONE = (JournalEvent.STARTED, JournalEvent.ISSUING, JournalEvent.MOVED, JournalEvent.ENDED)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs whose journals are read."""
    found: list[str] = []
    original = run_history.read_content

    def noted(path: Path) -> JournalContent:
        found.append(path.stem)
        return original(path)

    monkeypatch.setattr(run_history, "read_content", noted)
    return found


def fresh(folder: Path) -> JournalIndex:
    """The index as a new process has it."""
    return JournalIndex(folder)


def brute_unfinished(folder: Path, cluster_id: str) -> dict[PartitionId, str]:
    """The same, from all journals and without an index."""
    last: dict[PartitionId, tuple[str, bool]] = {}
    for path in run_paths(folder):
        own: dict[PartitionId, bool] = {}
        for record in read_journal(path):
            if record.id is None or record.cluster_id != cluster_id:
                continue
            if record.event in (JournalEvent.ISSUING, JournalEvent.ISSUED, JournalEvent.ELECTING):
                own[record.id] = True
            elif record.event is JournalEvent.MOVED:
                own[record.id] = False
            elif record.event is JournalEvent.DROPPED:
                own.pop(record.id, None)
        last |= {pid: (path.stem, is_open) for pid, is_open in own.items()}
    return {pid: run_id for pid, (run_id, is_open) in last.items() if is_open}


def brute_loud(folder: Path) -> list[str]:
    """Runs that may have left a setting, from all journals."""
    return [p.stem for p in run_paths(folder) if not facts_of(folder, p.stem).is_quiet]


def loud(index: JournalIndex, folder: Path) -> list[str]:
    others = index.not_done(partial(facts_of, folder))
    return [file.run_id for file, facts in others if facts is None or not facts.is_quiet]


STEPS = st.one_of(
    st.tuples(
        st.just("write"),
        st.sampled_from(RUNS),
        st.sampled_from([PLAN, OTHER]),
        st.sampled_from(
            [*((e,) for e, _ in EVENTS), DONE, (JournalEvent.ISSUING,), (JournalEvent.MOVED,)]
        ),
        st.sets(st.sampled_from([0, 1, 2]), min_size=1),
    ),
    st.tuples(st.just("delete"), st.sampled_from(RUNS)),
    st.tuples(st.just("cut"), st.sampled_from(RUNS), st.integers(1, 200)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("keep the index")),
    st.tuples(st.just("restore the index")),
    st.tuples(st.just("flip the index"), st.integers(0, 5_000), st.integers(0, 7)),
    st.tuples(st.just("cut the index"), st.integers(0, 5_000)),
    st.tuples(st.just("delete the index")),
)


@dataclass
class World:
    """A folder, and the index as a process has it."""

    folder: Path
    index: JournalIndex
    clusters: dict[str, Plan] = field(default_factory=dict)
    kept: bytes = b""
    at: int = 0

    @property
    def path(self) -> Path:
        return self.folder / FILE

    def step(self, kind: str, given_: Sequence[Any]) -> None:
        """Do one thing; each changes files at another time."""
        self.at += 1
        getattr(self, kind.replace(" ", "_"))(*given_)

    def write(self, run_id: str, of: Plan, events: Sequence[JournalEvent], which: set[int]) -> None:
        # A journal is about one cluster.
        of = self.clusters.setdefault(run_id, of)
        part = of.model_copy(update={"moves": tuple(of.moves[n] for n in sorted(which))})
        self.replace_if_done(run_id)
        write(self.folder, run_id, *events, of=part, at=self.at)

    def delete(self, run_id: str) -> None:
        run_path(self.folder, run_id).unlink(missing_ok=True)
        self.clusters.pop(run_id, None)

    def cut(self, run_id: str, size: int) -> None:
        path = run_path(self.folder, run_id)
        if path.exists():
            self.replace_if_done(run_id)
            path.write_bytes(path.read_bytes()[:-size])
            os.utime(path, (LONG_AGO_S + self.at, LONG_AGO_S + self.at))

    def replace_if_done(self, run_id: str) -> None:
        """Nothing is written to the journal of a done run; a repair replaces it."""
        path = run_path(self.folder, run_id)
        if path.exists() and facts_of(self.folder, run_id).is_done:
            replace_file(path, path.read_bytes())

    def restart(self) -> None:
        self.index = JournalIndex(self.folder)

    def keep_the_index(self) -> None:
        self.index.save()
        self.kept = self.path.read_bytes() if self.path.exists() else b""

    def restore_the_index(self) -> None:
        self.path.write_bytes(self.kept)
        self.restart()

    def flip_the_index(self, at: int, bit: int) -> None:
        if self.path.exists():
            data = bytearray(self.path.read_bytes() or b"\0")
            data[at % len(data)] ^= 1 << bit
            self.path.write_bytes(data)
        self.restart()

    def cut_the_index(self, size: int) -> None:
        if self.path.exists():
            self.path.write_bytes(self.path.read_bytes()[:size])
        self.restart()

    def delete_the_index(self) -> None:
        self.path.unlink(missing_ok=True)
        self.restart()


@given(steps=st.lists(STEPS, min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_answers_are_those_of_the_journals(steps: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        world = World(folder, JournalIndex(folder))
        for kind, *given_ in steps:
            world.step(kind, given_)
            assert loud(world.index, folder) == brute_loud(folder)
            for cluster_id in (CLUSTER_ID, "another"):
                found = world.index.unfinished(cluster_id, partial(facts_of, folder))
                assert found == brute_unfinished(folder, cluster_id)
                kept = world.index.recent(cluster_id, 0, partial(data_of, folder))
                assert kept == [path.read_bytes() for path in run_paths(folder)]


def data_of(folder: Path, run_id: str) -> bytes:
    return run_path(folder, run_id).read_bytes()


def test_journals_of_done_runs_are_read_once(tmp_path: Path, read: list[str]) -> None:
    for number, run_id in enumerate(RUNS):
        write(tmp_path, run_id, *DONE, at=number)
    measure = partial(facts_of, tmp_path)
    index = fresh(tmp_path)
    assert index.unfinished(CLUSTER_ID, measure) == {}
    assert sorted(read) == RUNS
    index.save()
    read.clear()
    again = fresh(tmp_path)
    assert again.unfinished(CLUSTER_ID, measure) == {}
    assert not again.not_done(measure)
    assert read == []


def test_recent_journals_are_read_once_until_they_change(tmp_path: Path, read: list[str]) -> None:
    for number, run_id in enumerate(RUNS):
        write(tmp_path, run_id, *DONE, of=OTHER if number == 0 else PLAN, at=number)
    made = recent_moves(tmp_path, CLUSTER_ID, 0)
    used = usage_since(tmp_path, CLUSTER_ID, 0)
    assert len(made) == len(MOVES) * 4
    assert [run.bytes_copied for run in used] == [7 * len(MOVES)] * 4
    read.clear()
    assert recent_moves(tmp_path, CLUSTER_ID, 0) == made
    assert usage_since(tmp_path, CLUSTER_ID, 0) == used
    assert len(recent_moves(tmp_path, "another", 0)) == len(MOVES)
    assert read == RUNS  # for the other cluster
    read.clear()
    replace_file(run_path(tmp_path, RUNS[1]), run_path(tmp_path, RUNS[1]).read_bytes())
    write(tmp_path, RUNS[1], JournalEvent.ISSUING, of=plan([move(7)]), at=9)
    assert [m.partition for m in recent_moves(tmp_path, CLUSTER_ID, 0)].count(7) == 1
    assert read == [RUNS[1]]
    run_path(tmp_path, RUNS[2]).unlink()
    assert len(recent_moves(tmp_path, CLUSTER_ID, 0)) == len(MOVES) * 3 + 1


def test_a_recent_journal_changed_a_moment_ago_is_read_each_time(
    tmp_path: Path, read: list[str]
) -> None:
    path = write(tmp_path, RUNS[0], *DONE)
    # However slow this test is, it is not two seconds old.
    later_s = time.time() + 3600
    os.utime(path, (later_s, later_s))
    for _ in range(2):
        assert recent_moves(tmp_path, CLUSTER_ID, 0)
    assert read == [RUNS[0]] * 2


def test_an_unchanged_folder_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = []

    def noted(folder: Path) -> dict[str, int]:
        listed.append(folder)
        return journal_inodes(folder)

    monkeypatch.setattr(journal_index, "journal_inodes", noted)
    monkeypatch.setattr(run_journal, "journal_inodes", noted)
    for number, run_id in enumerate(RUNS[:3]):
        write(tmp_path, run_id, *DONE, at=number)
    os.utime(tmp_path, (LONG_AGO_S, LONG_AGO_S))
    index = JournalIndex(tmp_path)
    assert index.run_ids() == RUNS[:3]
    assert [file.run_id for file in index.files()] == RUNS[:3]
    listed.clear()
    assert index.run_ids() == RUNS[:3]
    assert not listed
    write(tmp_path, RUNS[3], *DONE)
    assert index.run_ids() == RUNS[:4]
    run_path(tmp_path, RUNS[0]).unlink()
    assert index.run_ids() == RUNS[1:4]
    assert len(listed) == 2


def test_ids_are_asked_for_again_while_the_folder_may_change_unnoticed(tmp_path: Path) -> None:
    write(tmp_path, RUNS[0], *DONE)
    mark = tmp_path.stat().st_mtime_ns
    index = JournalIndex(tmp_path, lambda: mark + 1_000_000_000)
    assert len(index.files()) == 1
    write(tmp_path, RUNS[1], *DONE)
    # A second entry within one tick of the file system's clock.
    os.utime(tmp_path, ns=(mark, mark))
    assert index.run_ids() == RUNS[:2]


def test_a_journal_that_changed_is_read_again_though_the_index_knows_it(
    tmp_path: Path, read: list[str]
) -> None:
    write(tmp_path, RUNS[0], *DONE, at=1)
    index, measure = fresh(tmp_path), partial(facts_of, tmp_path)
    assert index.not_done(measure) == []
    index.save()
    replace_file(run_path(tmp_path, RUNS[0]), run_path(tmp_path, RUNS[0]).read_bytes())
    write(tmp_path, RUNS[0], JournalEvent.STARTED, JournalEvent.THROTTLED, at=2)
    read.clear()
    ((file, facts),) = fresh(tmp_path).not_done(measure)
    assert file.run_id == RUNS[0]
    assert facts is not None
    assert not facts.is_quiet
    assert read == [RUNS[0]]


HOUR_NS = 3_600_000_000_000


@pytest.mark.parametrize(
    "later_ns", [HOUR_NS + 1, -HOUR_NS], ids=["an hour later", "clock set back"]
)
def test_a_done_journal_that_was_written_to_is_noticed_within_an_hour(
    tmp_path: Path, read: list[str], later_ns: int
) -> None:
    write(tmp_path, RUNS[0], *DONE, at=1)
    measure = partial(facts_of, tmp_path)
    now_ns = time.time_ns()
    index = JournalIndex(tmp_path, lambda: now_ns)
    assert index.not_done(measure) == []
    index.save()
    write(tmp_path, RUNS[0], JournalEvent.STARTED, JournalEvent.THROTTLED, at=2)
    read.clear()
    assert JournalIndex(tmp_path, lambda: now_ns + HOUR_NS - 1).not_done(measure) == []
    assert read == []
    later = JournalIndex(tmp_path, lambda: now_ns + later_ns)
    assert [file.run_id for file, _ in later.not_done(measure)] == [RUNS[0]]
    assert {*read} == {RUNS[0]}


def test_a_comparison_counts_for_processes_that_start_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, run_id in enumerate(RUNS):
        write(tmp_path, run_id, *DONE, at=number)
    now_ns = time.time_ns()
    index = JournalIndex(tmp_path, lambda: now_ns)
    assert index.not_done(partial(facts_of, tmp_path)) == []
    index.save()
    asked: list[object] = []
    stat = os.stat

    def noted(path: Any, **given_: Any) -> os.stat_result:
        if str(path).endswith(SUFFIX):
            asked.append(path)
        return stat(path, **given_)

    monkeypatch.setattr(os, "stat", noted)
    for hours, looked_at in ((0.9, 0), (1.1, len(RUNS)), (2.0, 0), (2.2, len(RUNS))):
        at_ns = now_ns + round(hours * HOUR_NS)
        assert len(JournalIndex(tmp_path, partial(int, at_ns)).files()) == len(RUNS)
        assert len(asked) == looked_at, hours
        asked.clear()


def test_a_journal_changed_a_moment_ago_is_read_each_time(tmp_path: Path, read: list[str]) -> None:
    os.utime(write(tmp_path, RUNS[0], *DONE))
    index = fresh(tmp_path)
    for _ in range(2):
        index.not_done(partial(facts_of, tmp_path))
    assert read == [RUNS[0], RUNS[0]]


def test_an_index_of_another_folder_counts_for_nothing(tmp_path: Path) -> None:
    done, left = tmp_path / "done", tmp_path / "left"
    write(done, RUNS[0], *DONE, at=1)
    index = fresh(done)
    index.not_done(partial(facts_of, done))
    index.save()
    write(left, RUNS[0], JournalEvent.STARTED, JournalEvent.THROTTLED, at=1)
    (left / FILE).write_bytes((done / FILE).read_bytes())
    assert [past.run_id for past in left_set(left, CLUSTER_ID)] == [RUNS[0]]


@pytest.mark.parametrize("at_ns", [-(10**18), 10**18])
@pytest.mark.parametrize("inode", [7, 2**64 - 1])
def test_a_process_that_starts_reads_no_done_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_ns: int, inode: int
) -> None:
    """Whatever the clock of its host and the inodes of its file system."""
    write(tmp_path, RUNS[0], *DONE, at=1)
    os.utime(tmp_path / f"{RUNS[0]}{SUFFIX}", ns=(at_ns, at_ns))
    file = JournalFile(RUNS[0], 400, at_ns, inode)
    monkeypatch.setattr(journal_index, "_files", lambda *_: iter([file]))
    monkeypatch.setattr(journal_index, "_stated", lambda *_: file)
    index = fresh(tmp_path)
    assert index.not_done(partial(facts_of, tmp_path)) == []
    index.save()

    def refuse(run_id: str) -> JournalFacts:
        raise AssertionError(run_id)

    assert fresh(tmp_path).not_done(refuse) == []


def test_a_time_that_does_not_fit_spoils_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [JournalFile(RUNS[0], 400, -(2**64), 7), JournalFile(RUNS[1], 400, 10**18, 8)]
    write(tmp_path, RUNS[0], *DONE, at=1)
    write(tmp_path, RUNS[1], *DONE, at=2)
    monkeypatch.setattr(journal_index, "_files", lambda *_: iter(files))
    monkeypatch.setattr(journal_index, "_stated", lambda _, file: file)
    index = fresh(tmp_path)
    assert index.not_done(partial(facts_of, tmp_path)) == []
    index.save()
    read: list[str] = []

    def measure(run_id: str) -> JournalFacts:
        read.append(run_id)
        return facts_of(tmp_path, run_id)

    assert fresh(tmp_path).not_done(measure) == []
    assert read == [RUNS[0]]


@pytest.mark.parametrize("kind", ["folder", "pipe", "empty", "text"])
def test_an_invalid_index_is_ignored(tmp_path: Path, kind: str) -> None:
    write(tmp_path, RUNS[0], JournalEvent.STARTED, JournalEvent.ISSUING, at=1)
    path = tmp_path / FILE
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "empty":
            path.touch()
        case _:
            path.write_text("plimsoll journal index 1 \n{}")
    assert unfinished(tmp_path, CLUSTER_ID) == dict.fromkeys((m.id for m in MOVES), RUNS[0])


def test_a_pipe_in_place_of_a_journal_or_plan_is_an_error(tmp_path: Path) -> None:
    """Reading it waited for a writer without end."""
    write(tmp_path, RUNS[0], *DONE, at=1)
    os.mkfifo(tmp_path / f"{RUNS[1]}.jsonl")
    with pytest.raises(ConfigError, match="not a regular file"):
        past_run(tmp_path, CLUSTER_ID)
    os.unlink(tmp_path / f"{RUNS[1]}.jsonl")
    plan_path(tmp_path, RUNS[0]).unlink()
    os.mkfifo(plan_path(tmp_path, RUNS[0]))
    with pytest.raises(ConfigError, match="it is a named pipe"):
        past_run(tmp_path, CLUSTER_ID)


def test_a_folder_that_cannot_be_written_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, run_id in enumerate(RUNS * 2):
        write(tmp_path, f"{run_id}{number}", *DONE, at=number)

    def refused(_path: Path, _data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("executor.journal.journal_index.replace_file", refused)
    assert left_set(tmp_path, CLUSTER_ID) == []
    assert not (tmp_path / FILE).exists()


def test_an_unreadable_journal_is_an_error_also_with_an_index(tmp_path: Path) -> None:
    write(tmp_path, RUNS[0], *DONE, at=1)
    assert unfinished(tmp_path, CLUSTER_ID) == {}
    (tmp_path / (RUNS[1] + SUFFIX)).mkdir()
    with pytest.raises(ConfigError, match=RUNS[1]):
        unfinished(tmp_path, CLUSTER_ID)


def test_a_run_on_a_cluster_of_few_is_found_among_many_of_others(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_history, "_OPENED", 2)
    ids = [f"r{n:08d}-20270101T000000000-aaaaaaaa" for n in range(1, 21)]
    for number, run_id in enumerate(ids):
        write(tmp_path, run_id, *DONE, of=PLAN if number == 0 else OTHER, at=number)
    assert past_run(tmp_path, CLUSTER_ID).run_id == ids[0]
    read.clear()
    assert past_run(tmp_path, CLUSTER_ID).run_id == ids[0]
    assert {*read} <= {ids[0]}


def test_a_deleted_run_does_not_give_its_number_away(tmp_path: Path) -> None:
    for run_id in RUNS:
        write(tmp_path, run_id, *DONE)
    for run_id in RUNS[:-1]:
        run_path(tmp_path, run_id).unlink()
    assert new_run_id(tmp_path, 0, "bbbbbbbb").startswith("r00000006-")


def test_a_folder_that_cannot_be_listed_gives_no_number_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run_id in RUNS:
        write(tmp_path, run_id, *DONE)
    os.utime(tmp_path, (LONG_AGO_S, LONG_AGO_S))

    def failing(_: object) -> object:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing)
        assert journal_index.index_of(tmp_path).files() == []
    assert new_run_id(tmp_path, 0, "bbbbbbbb").startswith("r00000006-")
    assert len(journal_index.index_of(tmp_path).files()) == len(RUNS)
