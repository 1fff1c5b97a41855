"""`plimsoll journal verify` and `repair` as commands."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from control.cli.main import app
from executor.journal.run_journal import run_paths
from tests.executor.journal.test_damage import flip, interrupted


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of a run that was interrupted."""
    monkeypatch.setenv("PLIMSOLL_STATE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    _, path = interrupted(tmp_path / "journal")
    return path


def plimsoll(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["journal", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_intact_journals_are_confirmed(journal: Path) -> None:
    code, out, _ = plimsoll("verify")
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["intact"]


def test_an_empty_journal_has_no_records(journal: Path) -> None:
    journal.write_bytes(b"")
    run = CliRunner().invoke(app, ["journal", "verify"])
    assert run.exit_code == 0
    assert run.output.splitlines()[-1].endswith("no records")
    # Its plan is intact, and there is nothing to restore.
    assert plimsoll("repair", journal.stem)[::2] == (
        2,
        f"plimsoll: {journal} has no records, so nothing can be repaired\n",
    )


def test_an_empty_folder_has_no_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STATE_DIR", str(tmp_path / "new"))
    assert plimsoll("verify")[0] == 0
    code, _, err = plimsoll("repair", "")
    assert code == 2
    assert "has no runs, so there is nothing to repair" in err
    code, _, err = plimsoll("repair", "r1")
    assert code == 2
    assert "has no run r1" in err


def test_damage_is_named_and_repaired_and_the_original_preserved(journal: Path) -> None:
    spoilt = flip(1)(journal.read_bytes().splitlines(keepends=True))
    journal.write_bytes(spoilt)
    code, out, _ = plimsoll("verify", "-o", "json")
    assert code == 2
    (document,) = json.loads(out)["journals"]
    assert document["state"] == "damaged"
    assert document["damage"] == [
        {"line": 2, "may_lose_records": True, "problem": "does not match its checksum"}
    ]
    assert "check the brokers 1, 2, 3, 4 and the topics orders" in document["may_be_set"][0]
    code, out, err = plimsoll("repair", journal.stem[:9])
    assert code == 0
    assert "may have announced a throttle" in err
    original = journal.with_name(journal.name + ".damaged")
    assert str(original) in err
    assert original.read_bytes() == spoilt
    assert "repaired" in out
    assert plimsoll("verify")[0] == 0
    code, _, err = plimsoll("repair", journal.stem)
    assert code == 2
    assert "is not damaged" in err


def test_a_plan_that_was_changed_is_named(journal: Path) -> None:
    plan = journal.with_suffix(".plan.json")
    plan.write_bytes(plan.read_bytes().replace(b"orders", b"ordars"))
    code, out, _ = plimsoll("verify")
    assert code == 2
    assert "was altered after it was made" in out


def test_a_journal_without_intact_records_is_not_touched(journal: Path) -> None:
    journal.write_bytes(b"#\n")
    journal.with_suffix(".plan.json").unlink()
    before = sorted(path.name for path in journal.parent.iterdir())
    code, _, err = plimsoll("repair", journal.stem)
    assert code == 2
    assert "Restore one of them from a backup" in err
    assert sorted(path.name for path in journal.parent.iterdir()) == before
    assert run_paths(journal.parent) == [journal]
