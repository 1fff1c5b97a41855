"""Without readable output a run continues, and its exit code reports its end."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.run import RunState
from tests.control.render.test_run_report import REPORT
from tests.support import cli_offline

NARRATES = """
import sys
from control.cli.output import drawn, safe_streams
with safe_streams():
    for _ in range(3000):
        sys.stderr.write("about 5 s left\\n")
        drawn(sys.stderr).write("\\r50 %")
        sys.stderr.flush()
print("done")
"""

TELLS = """
import sys
import typer
from control.cli.plan_execution import print_report
from control.cli.output import Form
from control.cli.exit_codes import guarded
from model.run import RunReport
report = RunReport.model_validate_json(sys.argv[1])
try:
    guarded(lambda: print_report(report, Form(sys.argv[2])))()
except typer.Exit as end:
    sys.exit(end.exit_code)
"""


@contextlib.contextmanager
def _unread() -> Iterator[int]:
    """A pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@contextlib.contextmanager
def _full() -> Iterator[int]:
    with Path("/dev/full").open("wb") as disk:
        yield disk.fileno()


NOWHERE = [
    pytest.param(_unread, id="the reader has left"),
    pytest.param(
        _full,
        id="the disk is full",
        marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it"),
    ),
]


def _python(
    script: str, *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        stdout=stdout,
        stderr=stderr,
        text=True,
        timeout=cli_offline.RUN_S,
    )


@pytest.mark.parametrize("nowhere", NOWHERE)
def test_a_failing_stderr_does_not_end_a_command(
    nowhere: type[contextlib.AbstractContextManager[int]],
) -> None:
    with nowhere() as stderr:
        ran = _python(NARRATES, stderr=stderr)
    assert ran.stdout == "done\n"


@pytest.mark.parametrize(("state", "code"), [("stopped", 6), ("done", 0)])
@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("nowhere", NOWHERE)
@pytest.mark.slow
def test_an_unprintable_report_keeps_the_exit_code_of_its_run(
    nowhere: type[contextlib.AbstractContextManager[int]], output: str, state: str, code: int
) -> None:
    report = REPORT.model_copy(update={"state": RunState(state)})
    with nowhere() as stdout:
        ran = _python(TELLS, report.model_dump_json(), output, stdout=stdout)
    assert ran.returncode == code
    assert ran.stderr.startswith("plimsoll: cannot write to stdout: ")
    assert "Traceback" not in ran.stderr
