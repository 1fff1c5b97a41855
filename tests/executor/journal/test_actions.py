"""Changes without a plan are journalled under lock and lease, and are not runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest

from clients.s3 import S3Settings
from executor.client.cluster_admin import ClusterAdmin
from executor.executor import Executor
from executor.journal.lock import is_changing, sole_writer
from executor.journal.run_history import past_runs, read_journal, recent_moves, unfinished
from executor.journal.run_journal import journal_paths, run_paths
from model.errors import ArchiveUnreachable, ClusterUnreachable, ConfigError, GuardrailRefused
from model.ids import PartitionId
from model.run import JournalEvent, JournalRecord
from tests.executor.run.test_elections import FakeLeaders, partition
from tests.support.executor.fake_platform import FakeTime
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.s3_server import Fault, Host, keys, place
from tests.support.executor.simulated_runs import MB, SimulatedRun

HOW = {"num_partitions": 4, "replication_factor": 3}


def records(folder: Path) -> list[JournalRecord]:
    (path,) = journal_paths(folder)
    return list(read_journal(path))


def test_an_election_is_journalled_before_its_request(tmp_path: Path) -> None:
    time = FakeTime()
    fake = FakeLeaders(time, partition(0, (1, 2), 2), partition(1, (3, 1), 1))
    seen: list[list[JournalRecord]] = []
    asked = fake.elect_preferred

    def elect(ids: Iterable[PartitionId]) -> None:
        seen.append(records(tmp_path))
        asked(ids)

    fake.elect_preferred = elect  # type: ignore[method-assign]
    executor = Executor(cast("ClusterAdmin", fake), timing=time.timing)
    assert executor.elect(executor.elections(), tmp_path, by="ann") == ()
    (before,) = seen
    assert [r.event for r in before] == [JournalEvent.STARTED, JournalEvent.ELECTING]
    assert before[0].detail == {"by": "ann"}
    assert [
        (e["partition"], e["led_by"], e["preferred"]) for e in before[1].detail["elections"]
    ] == [(0, 2, 1), (1, 1, 3)]
    after = records(tmp_path)
    assert [r.event for r in after[2:]] == [JournalEvent.NOTED, JournalEvent.ENDED]
    assert after[2].detail["note"] == "2 of 2 elected"
    assert after[3].detail["state"] == "done"


def test_a_failed_election_is_journalled(tmp_path: Path) -> None:
    time = FakeTime()
    fake = FakeLeaders(time, partition(0, (1, 2), 2))
    executor = Executor(cast("ClusterAdmin", fake), timing=time.timing)
    result = executor.elections()

    def away(_: object) -> None:
        raise ClusterUnreachable("nobody answers")

    fake.elect_preferred = away  # type: ignore[method-assign,assignment]
    with pytest.raises(ClusterUnreachable):
        executor.elect(result, tmp_path)
    assert records(tmp_path)[-1].detail == {"state": "failed", "reason": "nobody answers"}


def test_no_election_is_held_without_a_writable_folder(tmp_path: Path) -> None:
    time = FakeTime()
    fake = FakeLeaders(time, partition(0, (1, 2), 2))
    executor = Executor(cast("ClusterAdmin", fake), timing=time.timing)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="nothing was changed"):
        executor.elect(executor.elections(), tmp_path / "file" / "journal")
    assert fake.asked == []


def creating(executor: Executor, folder: Path) -> None:
    with executor.creating_topic(
        "__plimsoll_samples", HOW, journal_dir=folder, cluster_id=CLUSTER_ID, by="ann"
    ):
        assert is_changing(folder, CLUSTER_ID)
        started, last = records(folder)
        assert started.detail == {"by": "ann"}
        assert last.event is JournalEvent.CREATING
        assert last.detail == {"topic": "__plimsoll_samples", "how": HOW}


def test_a_topic_is_created_under_lock_and_journal(tmp_path: Path) -> None:
    executor = Executor(cast("ClusterAdmin", None), timing=FakeTime().timing)
    with (
        sole_writer(tmp_path, CLUSTER_ID),
        pytest.raises(GuardrailRefused, match="Another plimsoll is changing"),
    ):
        creating(executor, tmp_path)
    assert not journal_paths(tmp_path)
    creating(executor, tmp_path)
    assert records(tmp_path)[-1].event is JournalEvent.ENDED


def test_creating_a_topic_needs_the_lease_and_is_archived(tmp_path: Path, endpoint: str) -> None:
    store: S3Settings = place(endpoint)
    time = FakeTime()
    host = Host(store, time.timing, "a")
    host.wire.fault = lambda _: Fault.AWAY
    executor = Executor(cast("ClusterAdmin", None), timing=time.timing, archive=host.archive)
    with pytest.raises(ArchiveUnreachable):
        creating(executor, tmp_path)
    assert not journal_paths(tmp_path)
    host.wire.fault = lambda _: None
    creating(executor, tmp_path)
    (path,) = journal_paths(tmp_path)
    archived = [key for key in keys(store) if path.stem in key]
    assert archived
    assert not any("plan" in key for key in archived)


def test_an_election_is_not_the_newest_run(tmp_path: Path) -> None:
    at = SimulatedRun(folder=tmp_path, before={0: (1, 2)}, after={0: (3, 2)}, log_bytes=MB)
    at.run()
    at.cluster.advance(200.0)
    creating_folder = [path.stem for path in run_paths(tmp_path)]
    executor = at.executor()
    with executor.creating_topic("t", HOW, journal_dir=tmp_path, cluster_id=CLUSTER_ID):
        pass
    assert [path.stem for path in run_paths(tmp_path)] == creating_folder
    assert len(journal_paths(tmp_path)) == 2
    assert len(past_runs(tmp_path, CLUSTER_ID)) == 1
    assert len(recent_moves(tmp_path, CLUSTER_ID, 0)) == 1
    assert not unfinished(tmp_path, CLUSTER_ID)
    with pytest.raises(ConfigError, match="has ended; nothing is left to resume"):
        at.resume()
    assert at.roll_back().state == "done"
    assert at.executor().clean_up(tmp_path) == []
