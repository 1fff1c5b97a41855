"""Code that executors unpack, once per machine and version."""

import stat
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pyspark
import pytest

from collector.spark.py_files import pack
from collector.spark.shipped_code import FOLDER, call_shipped, unpacked


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "sent"
    folder.mkdir()
    with ZipFile(folder / "code-1.zip", "w") as packed:
        packed.writestr(
            "shipped_sample/__init__.py",
            "def joined(shared, argument):\n    return shared + argument\n",
        )
    return folder / "code-1.zip"


def test_equal_code_gives_equal_bytes(tmp_path: Path) -> None:
    one, two = (pack(tmp_path / name, ("model",)).read_bytes() for name in ("a.zip", "b.zip"))
    assert one == two


def test_code_is_unpacked_once_in_the_cache_folder_for_its_owner_alone(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = unpacked(archive)
    assert folder == tmp_path / "cache" / FOLDER / "code-1"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    (folder / "compiled").write_text("kept")
    assert unpacked(archive) == folder
    assert (folder / "compiled").read_text() == "kept"
    assert [path.name for path in folder.parent.iterdir()] == ["code-1"]


def test_code_is_unpacked_beside_its_zip_where_there_is_no_cache_folder(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert unpacked(archive) == archive.parent / FOLDER / "code-1"


def test_a_function_of_shipped_code_is_called(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    # Only an executor has files; there is none in this process.
    files = SimpleNamespace(get=lambda name: str(archive.parent / name))
    monkeypatch.setattr(pyspark, "SparkFiles", files)
    shared = SimpleNamespace(value=b"a")
    assert call_shipped("code-1.zip", "shipped_sample:joined", shared, b"b") == b"ab"
