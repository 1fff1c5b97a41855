"""`plimsoll generate` from the user's point of view."""

import json
from pathlib import Path

import pytest

from model.snapshot.file import read_snapshot
from tests.support.cli_offline import in_process, plimsoll, refused

SMALL = ("--brokers", "3", "--partitions", "12", "--days", "1", "--step", "6h")


def test_a_synthetic_cluster_is_planned_from_its_snapshot(tmp_path: Path) -> None:
    made = plimsoll(tmp_path, "generate", *SMALL, "--out", "made")
    assert made.returncode == 0, made.stderr
    assert made.stdout == "made: 3 brokers, 12 partitions, 1 day of history\n"
    assert (made.stderr, (tmp_path / "state").exists()) == ("", False)
    run = plimsoll(tmp_path, "plan", "--snapshot", "made/snapshot.json", "--out", "plan.json")
    assert run.returncode == 0, run.stderr
    assert json.loads((tmp_path / "plan.json").read_text())["cluster_id"] == (
        read_snapshot(tmp_path / "made" / "snapshot.json").header.cluster_id
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--brokers", "2", "--racks", "3"), "3 racks need as many brokers"),
        (("--rf", "4"), "4 replicas need as many racks, but there are 3"),
        (("--storage", "shared", "--rf", "2"), "2 replicas are not possible: on shared"),
        (("--step", "25h"), "90000 s is not a valid step; give 1m to 24h"),
        (("--out", "taken"), "taken exists; name another folder"),
        (("--out", "no/such"), "cannot make the folder no/such.partial"),
    ],
)
def test_an_impossible_cluster_is_rejected_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    refused(in_process("generate", "--out", "made", *asked), 2, message)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("asked", [("--brokers", "0"), ("--storage", "tape"), ("--step", "soon")])
def test_an_invalid_value_of_an_option_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = in_process("generate", "--out", "made", *asked)
    assert (run.returncode, run.stdout) == (2, "")
    assert asked[0] in run.stderr
    assert not list(tmp_path.iterdir())
