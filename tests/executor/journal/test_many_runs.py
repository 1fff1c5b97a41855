"""Folders with many journals: what is about the newest runs opens only those."""

from pathlib import Path

import pytest

from executor.journal import run_history
from executor.journal.run_history import past_run, past_runs
from executor.journal.run_journal import RunJournal
from executor.timing import Timing
from model.run import JournalEvent, RunState
from tests.support.executor.plan_builders import move, plan

RUNS = 30
PLAN = plan([move(0, [1, 2], [1, 3])])


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Journals whose cluster is asked for."""
    found: list[str] = []
    cluster_of = run_history.cluster_of

    def noted(path: Path) -> str | None:
        found.append(path.stem)
        return cluster_of(path)

    monkeypatch.setattr(run_history, "cluster_of", noted)
    return found


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """Ids of runs on the cluster of a plan, oldest first."""
    found = [f"r{n:08d}-20270101T000000000-aaaaaaaa" for n in range(1, RUNS + 1)]
    for run_id in found:
        journal = RunJournal(tmp_path, PLAN, run_id, Timing())
        journal.write(JournalEvent.STARTED, by="")
        journal.write(JournalEvent.ENDED, state=RunState.DONE, reason="")
        journal.close()
    return found


def test_the_newest_runs_are_read_without_opening_the_others(
    tmp_path: Path, ids: list[str], opened: list[str]
) -> None:
    found = past_runs(tmp_path, PLAN.cluster_id)
    assert [run.run_id for run in found] == ids[-20:]
    assert sorted({*opened}) == ids[-20:]


def test_the_newest_run_is_read_without_opening_the_others(
    tmp_path: Path, ids: list[str], opened: list[str]
) -> None:
    assert past_run(tmp_path, PLAN.cluster_id).run_id == ids[-1]
    assert {*opened} == {ids[-1]}


def test_a_run_is_found_by_the_start_of_its_id(
    tmp_path: Path, ids: list[str], opened: list[str]
) -> None:
    assert past_run(tmp_path, PLAN.cluster_id, ids[4][:9]).run_id == ids[4]
    assert {*opened} == {ids[4]}


def test_runs_on_other_clusters_are_passed_over(tmp_path: Path, ids: list[str]) -> None:
    other = PLAN.model_copy(update={"cluster_id": "another"}).seal()
    journal = RunJournal(tmp_path, other, "r00000099-20270101T000000000-bbbbbbbb", Timing())
    journal.write(JournalEvent.STARTED, by="")
    journal.close()
    assert past_run(tmp_path, PLAN.cluster_id).run_id == ids[-1]
    assert past_run(tmp_path, "another").run_id == journal.run_id
    assert [run.run_id for run in past_runs(tmp_path, "another")] == [journal.run_id]
