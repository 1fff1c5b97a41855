"""One process at a time changes a cluster, whatever happens to the lock file."""

import fcntl
from pathlib import Path

import pytest

from executor.journal.lock import is_changing, sole_writer
from model.errors import GuardrailRefused

HOSTILE = ["../../escape", "/etc/escape", "..", ".", "", "a/b", "a\0b", "x" * 5000]


def test_one_process_at_a_time_changes_a_cluster(tmp_path: Path) -> None:
    with (
        sole_writer(tmp_path, "one"),
        sole_writer(tmp_path, "another"),
        pytest.raises(GuardrailRefused, match="Another plimsoll"),
        sole_writer(tmp_path, "one"),
    ):
        pass
    with sole_writer(tmp_path, "one"):
        assert is_changing(tmp_path, "one")
        assert not is_changing(tmp_path, "another")
    assert not is_changing(tmp_path, "one")


def test_deleting_the_lock_file_admits_no_second_process(tmp_path: Path) -> None:
    """Neither the first that comes nor the next, which finds the file of the first."""
    with sole_writer(tmp_path, "one"):
        (tmp_path / "one.lock").unlink()
        assert is_changing(tmp_path, "one")
        for _ in range(2):
            with (
                pytest.raises(GuardrailRefused, match="Another plimsoll"),
                sole_writer(tmp_path, "one"),
            ):
                pass
        assert is_changing(tmp_path, "one")
    with sole_writer(tmp_path, "one"):
        pass


def test_a_lock_file_replaced_while_locking_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is deleted and recreated between opening and locking: the new one counts."""
    lock, path = fcntl.flock, tmp_path / "one.lock"
    swaps = [True]

    def slow(file: object, how: int) -> None:
        if swaps:
            swaps.pop()
            path.unlink()
            path.touch()
        lock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", slow)
    with sole_writer(tmp_path, "one"), path.open("rb") as now, pytest.raises(BlockingIOError):
        lock(now, fcntl.LOCK_SH | fcntl.LOCK_NB)


@pytest.mark.parametrize("cluster_id", HOSTILE)
def test_no_cluster_id_escapes_the_folder(tmp_path: Path, cluster_id: str) -> None:
    folder = tmp_path / "a" / "b" / "journal"
    with sole_writer(folder, cluster_id):
        assert is_changing(folder, cluster_id)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.parent for path in files] == [folder]
