"""`plimsoll why`: the decisions of `run --auto`, and when each is reconsidered."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from control.cli.commands.why import why
from control.cli.exit_codes import Exit
from control.cli.output import Form
from control.loop.decision_file import ALIVE_MS, FILE, DecisionFile, DecisionRecord
from control.loop.policy import Decision
from control.settings.settings import Settings
from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.task_files import TaskFiles
from model.ids import BrokerId

AT_MS = 1_700_000_000_000


def recorded(
    folder: Path, decision: Decision, reason: str, until_ms: int | None = None
) -> DecisionRecord:
    record = DecisionRecord(
        at_ms=AT_MS,
        cluster_id="one",
        decision=decision,
        trigger="the cluster is out of tolerance",
        reason=reason,
        until_ms=until_ms,
        plan_hash="",
    )
    DecisionFile(folder).note(record)
    return record


def test_the_last_decision_is_printed_with_its_reason_and_its_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path, Decision.REST, "")
    recorded(tmp_path, Decision.CONFIRM, "out of tolerance for 5 s", AT_MS + 60_000)
    assert why(local_settings=Settings(state_dir=tmp_path)) == Exit.DONE
    assert capsys.readouterr().out == (
        "2023-11-14T22:13:20Z  confirm: the cluster is out of tolerance; "
        "out of tolerance for 5 s\n"
        "                      reconsidered not before 2023-11-14T22:14:20Z\n"
    )


def test_a_decision_that_no_time_changes_names_what_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path, Decision.REFUSE, "the plan has bytes = 3, the limit is 2")
    why(local_settings=Settings(state_dir=tmp_path))
    assert (
        "when someone approves the plan, or loads or placement change\n" in capsys.readouterr().out
    )


def test_a_line_with_an_absurd_time_is_named_and_the_rest_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path, Decision.REST, "")
    path = tmp_path / FILE
    path.write_text(path.read_text().replace(str(AT_MS), str(10**18)))
    assert why(local_settings=Settings(state_dir=tmp_path)) == Exit.INCOMPLETE
    assert f"{path}, line 1: at_ms: " in capsys.readouterr().err
    recorded(tmp_path, Decision.PLAN, "")
    assert why(local_settings=Settings(state_dir=tmp_path), output=Form.JSON) == Exit.DONE
    shown = capsys.readouterr()
    assert [d["decision"] for d in json.loads(shown.out)["decisions"]] == ["plan"]
    assert f"{path}, line 1: at_ms: " in shown.err


def test_the_table_names_the_cluster_where_there_are_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = recorded(tmp_path, Decision.REST, "").model_copy(update={"cluster_id": "two"})
    DecisionFile(tmp_path).note(other)
    why(local_settings=Settings(state_dir=tmp_path))
    shown = capsys.readouterr()
    assert shown.out.startswith("2023-11-14T22:13:20Z  two  rest: ")
    assert "for the cluster two; " in shown.err
    assert "for the cluster one; " not in shown.err


def test_json_has_the_age_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path, Decision.REST, "")
    recorded(tmp_path, Decision.PLAN, "")
    why(last=2, local_settings=Settings(state_dir=tmp_path), output=Form.JSON)
    first, second = json.loads(capsys.readouterr().out)["decisions"]
    assert (first["decision"], second["decision"]) == ("rest", "plan")
    assert first["age_s"] == pytest.approx(time.time() - AT_MS / 1000, abs=300)
    assert first["until"] is None


def test_a_folder_without_decisions_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why(local_settings=Settings(state_dir=tmp_path)) == Exit.INCOMPLETE
    output = capsys.readouterr()
    assert output.out == ""
    assert f"no decision is recorded in {tmp_path}; plimsoll run --auto" in output.err


def test_an_open_task_is_an_answer_without_a_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = TaskFiles(tmp_path).add("one", Operation.REMOVE, (BrokerId(4),), "ada", AT_MS)
    assert why(local_settings=Settings(state_dir=tmp_path)) == Exit.DONE
    shown = capsys.readouterr()
    assert "no decision is recorded" in shown.err
    assert f"Task {task.task_id} is open: remove broker 4, requested." in shown.err
    assert shown.out == ""


def test_an_open_task_is_named_beside_the_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = DecisionFile(tmp_path)
    file.note(recorded(tmp_path, Decision.REST, ""))
    task = TaskFiles(tmp_path).add("one", Operation.REMOVE, (BrokerId(4),), "ada", AT_MS)
    assert why(local_settings=Settings(state_dir=tmp_path)) == Exit.DONE
    shown = capsys.readouterr()
    assert f"Task {task.task_id} is open: remove broker 4, requested." in shown.err
    assert task.task_id not in shown.out
    TaskFiles(tmp_path).change(task.task_id, lambda t: t.entered(TaskPhase.CANCELLED, AT_MS))
    assert why(local_settings=Settings(state_dir=tmp_path)) == Exit.DONE
    assert capsys.readouterr().err == ""
    file.end("stopped", AT_MS)


def test_the_end_of_a_run_is_the_last_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`why` named the command that executes a plan which no longer waited."""
    file = DecisionFile(tmp_path)
    file.note(recorded(tmp_path, Decision.ASK, "plimsoll approve 0123456789ab executes the plan"))
    file.end("run --auto has ended: it was stopped", AT_MS + 1000)
    why(local_settings=Settings(state_dir=tmp_path))
    shown = capsys.readouterr()
    assert shown.out == (
        "2023-11-14T22:13:21Z  ended: run --auto has ended: it was stopped\n"
        "                      reconsidered when run --auto is started again\n"
    )
    ended = "no run --auto is running for the cluster one since 2023-11-14T22:13:21Z"
    assert shown.err == f"plimsoll: {ended}\n"


def test_a_process_that_was_killed_is_no_longer_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = recorded(tmp_path, Decision.CONFIRM, "", AT_MS + 60_000)
    (tmp_path / FILE).unlink()
    code = (
        "import os, pathlib, sys; from control.loop import decision_file as d; "
        "f = d.DecisionFile(pathlib.Path(sys.argv[1])); "
        "r = d.DecisionRecord.model_validate_json(sys.argv[2]); "
        "f.note(r); f.note(r.model_copy(update={'at_ms': r.at_ms + 30_000})); "
        "os.kill(os.getpid(), 9)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path), record.model_dump_json()]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    why(local_settings=Settings(state_dir=tmp_path), output=Form.JSON)
    shown = capsys.readouterr()
    seen = "2023-11-14T22:13:50Z"
    assert json.loads(shown.out)["clusters"] == [
        {"cluster_id": "one", "running": False, "last_seen": seen, "last_seen_ms": AT_MS + 30_000}
    ]
    assert shown.err == (
        "plimsoll: no run --auto is running for the cluster one; "
        f"the last one crashed or was killed after {seen}\n"
    )


def test_a_process_that_runs_is_not_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, running = DecisionFile(tmp_path), DecisionFile(tmp_path)
    record = recorded(tmp_path, Decision.REST, "")
    ended.note(record)
    running.note(record)
    # It had no lock while the other had.
    ended.end("it was stopped", AT_MS)
    running.note(record.model_copy(update={"at_ms": AT_MS + ALIVE_MS}))
    why(local_settings=Settings(state_dir=tmp_path), output=Form.JSON)
    shown = capsys.readouterr()
    (cluster,) = json.loads(shown.out)["clusters"]
    assert (cluster["running"], cluster["last_seen"]) == (True, None)
    assert shown.err == ""
    running.end("it was stopped", AT_MS)
