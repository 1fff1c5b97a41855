"""Files readable only by their user, under a umask that allows more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from control.cruise_control import user_tasks
from control.loop import decision_file, questions
from control.service import audit_log, control_socket, pause_file
from control.tasks import broker_marks, task_files
from model.errors import ConfigError
from model.private import check_secret, tighten
from tests.support.paths import ROOT

PLIMSOLL = Path(sys.executable).with_name("plimsoll")
STATE = """
import sys
from pathlib import Path
from control.cli.invocation import load_settings
from executor.journal.run_journal import Action, RunJournal
from executor.timing import Timing
from collector.state_dir import claim
from model.files import replace_file
from model.run import JournalEvent
from tests.support.tui.loop_views import plan

settings = load_settings(log_file=Path("log"))
folder = settings.state_dir / "journal"
for of, run_id in ((Action("c"), "r1-a"), (plan(), "r2-b")):
    journal = RunJournal(folder, of, run_id, Timing())
    journal.write(JournalEvent.STARTED, planned=0, by="me")
    journal.close()
replace_file(folder / "copy", b"")
claim(settings.state_dir, "c").release()
"""


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def private(folder: Path) -> None:
    paths = [folder, *folder.rglob("*")]
    assert len(paths) > 5
    for path in paths:
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


def run(folder: Path, *command: str, **more: str) -> None:
    known = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
    own = {"PLIMSOLL_STATE_DIR": "state", "XDG_CONFIG_HOME": "none", **more}
    subprocess.run(
        command,
        cwd=folder,
        env=known | own | {"PYTHONPATH": str(ROOT)},
        check=True,
        umask=0o022,
        timeout=300,
    )


def test_state_and_logs_are_private(tmp_path: Path) -> None:
    run(tmp_path, sys.executable, "-c", STATE)
    private(tmp_path / "state")
    assert mode(tmp_path / "log") == 0o600


def test_state_shared_with_spark_workers_follows_the_users_umask(tmp_path: Path) -> None:
    run(tmp_path, sys.executable, "-c", STATE, PLIMSOLL_SPARK_SHARED_STATE="true")
    assert mode(tmp_path / "state" / "clusters" / "c") == 0o755


def test_files_requested_by_the_user_follow_the_users_umask(tmp_path: Path) -> None:
    make = "from pathlib import Path; from tests.support.cluster_files import *; "
    run(tmp_path, sys.executable, "-c", make + "write_cluster_files(Path())")
    plan = ("plan", "--from", "describe.txt", "--loads", "loads.csv", "--no-racks")
    run(tmp_path, str(PLIMSOLL), *plan, "--out", "p.json", "--stock", "a/b")
    assert mode(tmp_path / "p.json") == 0o644
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o755
    assert mode(tmp_path / "a" / "b" / "reassignment.json") == 0o644


def test_an_existing_state_folder_is_made_private(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for name in ("journal", "clusters/c"):
        (state / name).mkdir(parents=True)
        (state / name).chmod(0o755)
    (state / "journal" / "r.jsonl").touch(0o644)
    (state / "clusters").chmod(0o775)
    (state / "spark.log").touch(0o644)
    state.chmod(0o755)
    tighten(state)
    private(state)


def test_everything_that_plimsoll_writes_into_a_state_folder_is_made_private(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    folders = (questions.FOLDER, task_files.FOLDER, user_tasks.FOLDER, "sweep", "simulate")
    files = (
        decision_file.FILE,
        decision_file.LOCK.format("c"),
        broker_marks.FILE,
        f".{broker_marks.FILE}.lock",
        pause_file.FILE,
        audit_log.FILE,
        audit_log.aside(Path(), 1).name,
        control_socket.LOCK,
        *(f"{folder}/{name}" for folder in folders for name in ("x.json", ".lock")),
    )
    for folder in ("", *folders):
        (state / folder).mkdir()
        (state / folder).chmod(0o755)
    for name in files:
        (state / name).touch()
        (state / name).chmod(0o644)
    tighten(state)
    private(state)


def test_a_folder_with_files_of_others_stays_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import logging

    monkeypatch.setattr(logging.getLogger("plimsoll"), "propagate", True)
    (tmp_path / "journal").mkdir(mode=0o755)
    (tmp_path / "somebody's").touch()
    tmp_path.chmod(0o777)
    tighten(tmp_path)
    assert mode(tmp_path) == 0o777
    assert mode(tmp_path / "journal") == 0o700
    assert f"others can read the state folder {tmp_path}" in caplog.text


def test_a_missing_state_folder_is_not_an_error(tmp_path: Path) -> None:
    tighten(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("found", "published", "answer"),
    [
        *((m, p, False) for m in (0o400, 0o600, 0o440, 0o640) for p in (False, True)),
        *((m, True, True) for m in (0o444, 0o644, 0o604)),
        *((m, False, None) for m in (0o444, 0o644, 0o604, 0o601)),
        *((m, p, None) for m in (0o620, 0o660, 0o602, 0o666) for p in (False, True)),
    ],
)
def test_the_owner_and_its_group_alone_may_read_secrets(
    tmp_path: Path, found: int, published: bool, answer: bool | None
) -> None:
    path = tmp_path / "secret"
    path.touch()
    path.chmod(found)
    # Volumes of Kubernetes have links.
    link = tmp_path / "link"
    link.symlink_to(path)
    if answer is None:
        with pytest.raises(ConfigError, match=r"read or change the key .*link; chmod 600 it"):
            check_secret(link, "the key ", published=published)
    else:
        assert check_secret(link, "the key ", published=published) is answer


@pytest.mark.parametrize(
    ("name", "problem"),
    [("none", "No such file"), ("", "not a regular file"), ("\0", "embedded null byte")],
)
def test_a_secret_that_cannot_be_read_is_named(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_secret(tmp_path / name, "the key ")
