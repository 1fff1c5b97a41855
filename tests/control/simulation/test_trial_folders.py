"""The folders of trials are gone, whenever a signal comes and whatever still writes there."""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from control.simulation import trials


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))


def test_a_folder_is_private_and_gone_after_the_block(tmp_path: Path) -> None:
    with trials._folder() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "journal").write_text("")
    assert [*tmp_path.iterdir()] == []


def test_an_interrupt_right_after_a_folder_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make: Callable[..., None] = Path.mkdir

    def interrupted(path: Path, *given: object, **others: object) -> None:
        make(path, *given, **others)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), trials._folder():
        pass
    assert [*tmp_path.iterdir()] == []


def test_a_thread_that_still_writes_leaves_nothing(tmp_path: Path) -> None:
    written = 0

    def write(folder: Path) -> None:
        nonlocal written
        try:
            while True:
                (folder / str(written)).write_text("")
                written += 1
        except FileNotFoundError:
            return

    with trials._folder() as folder:
        thread = threading.Thread(target=write, args=[folder])
        thread.start()
        while written < 100:
            pass
    thread.join(60)
    assert [*tmp_path.iterdir()] == []
