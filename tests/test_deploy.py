"""The files in `deploy`: what they start exists, and systemd accepts the unit."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli_shapes import commands
from tests.support.paths import ROOT

UNIT = ROOT / "deploy" / "plimsoll.service"


def started() -> list[str]:
    """The command of the unit."""
    (line,) = [x for x in UNIT.read_text().splitlines() if x.startswith("ExecStart=")]
    return shlex.split(line.partition("=")[2])


def test_the_unit_starts_the_service_with_options_that_exist() -> None:
    program, command, *rest = started()
    assert Path(program).name == "plimsoll"
    known = commands()[f"plimsoll {command}"]
    named = [word for word in rest if word.startswith("--")]
    assert named == ["--config", "--auto", "--limits", "--allow-changes"]
    assert {*named} <= {*known}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(started()[0], sys.executable))
    run = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    about = [line for line in run.stderr.splitlines() if UNIT.name in line]
    # Versions before 253 know no notify-reload.
    assert [line for line in about if "notify-reload" not in line] == []
