"""The progress line in a terminal, and Ctrl-C during a search."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from control.cli.progress_line import FRONTIER, PLAN, progress_text, shown
from control.planning.plan_view import Solving
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import PlanStatus, read_plan, write_plan
from model.snapshot.file import read_snapshot, write_snapshot
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.cli_offline import plimsoll, usual
from tests.support.control.loop_parts import MB, cluster
from tests.support.paths import FIXTURES
from tests.support.tui.terminals import LONG_S, in_terminal, read_until

MAIN = "from control.cli.main import main\nmain()\n"
LARGE = FIXTURES / "replicated.json.gz"
ENDLESS = "[solve]\nwork = 1e6\n"
"""This search does not end within a test."""

WAITING = """
import sys, time, typer
from control.cli.exit_codes import guarded
from control.cli.progress_line import PLAN, shown
kept = PLAN if sys.argv[1] == "2" else None
try:
    guarded(lambda: shown(lambda _observer: time.sleep(600), kept=kept))()
except typer.Exit as end:
    sys.exit(end.exit_code)
"""


def test_ctrl_c_keeps_the_best_plan_so_far(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(ENDLESS)
    out = tmp_path / "p.json"
    arguments = ("plan", "--snapshot", str(LARGE), "--out", str(out))
    config = ("--config", str(tmp_path / "long.toml"))
    with in_terminal(MAIN, *arguments, *config, **usual(tmp_path)) as (child, master):
        drawn = read_until(master, b"bound")
        assert b"Ctrl-C keeps it" in drawn
        assert b"\r0:0" in drawn
        assert b"\\r" not in drawn
        child.send_signal(signal.SIGINT)
        read_until(master, b"stopped: ")
        # Otherwise it waits for a reader of the rest.
        os.set_blocking(master, False)
        while child.poll() is None:
            _drain(master)
    assert child.returncode == 6
    plan = read_plan(out)
    assert plan.status is PlanStatus.STOPPED
    assert plan.moves


def _drain(master: int) -> None:
    try:
        os.read(master, 1 << 16)
    except OSError:
        return


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_quits_without_a_result_or_the_second_time(times: int) -> None:
    with in_terminal(WAITING, str(times)) as (child, master):
        read_until(master, b"Ctrl-C")
        child.send_signal(signal.SIGINT)
        if times == 2:
            read_until(master, b"Ctrl-C again quits")
            child.send_signal(signal.SIGINT)
        read_until(master, b"plimsoll: interrupted")
        assert child.wait(LONG_S) == 130


def test_a_terminal_does_not_change_the_plan(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "s.json", cluster([2] * 12, [MB] * 12))
    options = ("plan", "--snapshot", str(tmp_path / "s.json"), "--out")
    plimsoll(tmp_path, *options, "alone.json")
    out = str(tmp_path / "seen.json")
    with in_terminal(MAIN, *options, out, **usual(tmp_path)) as (child, master):
        read_until(master, b"relieves")
        assert child.wait(LONG_S) == 0
    alone = (tmp_path / "alone.json").read_bytes()
    assert (tmp_path / "seen.json").read_bytes() == alone


def test_without_a_terminal_nothing_is_shown_and_ctrl_c_interrupts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGINT)

    def call(observer: SolveObserver) -> bool:
        assert signal.getsignal(signal.SIGINT) is before
        return observer.stops()

    assert shown(call, kept=PLAN) is False
    assert capsys.readouterr().err == ""


COMPILED = """
import hashlib, sys, typer
from control.cli.exit_codes import guarded
from control.cli.progress_line import shown

def call(_observer):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha1", b"", b"", 2**31 - 1)  # compiled; heeds no signal

try:
    guarded(lambda: shown(call))()
except typer.Exit as end:
    sys.exit(end.exit_code)
"""


def test_without_a_terminal_ctrl_c_does_not_wait_for_compiled_code() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", COMPILED],
        cwd=LARGE.parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        try:
            _, errors = child.communicate(timeout=LONG_S)
        finally:
            child.kill()
    assert child.returncode == 130
    assert errors == "plimsoll: interrupted\n"


class _UntilAPlan(SolveObserver):
    """Stops at the first plan."""

    def __init__(self) -> None:
        self._found = False

    def on_solution(self, objective: float, moves: int) -> None:
        self._found = True

    def stops(self) -> bool:
        return self._found


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two plans of the large cluster: with a small budget, and without an end."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "long.toml").write_text(ENDLESS)
    snapshot = read_snapshot(LARGE)
    plans = {
        "short": solve(snapshot, Goals(), SolveLimits(work=0.5)).best,
        "endless": solve(snapshot, Goals(), SolveLimits(work=1e6), _UntilAPlan()).best,
    }
    for name, plan in plans.items():
        assert plan is not None
        write_plan(folder / f"{name}.json", plan)
    return folder


ENDLESS_CAUSES = f"from control.render import explanation\nexplanation.MOST_WORK = 1e6\n{MAIN}"
"""`explain` looks for causes with a budget of its own, and may be done in half a second."""


@pytest.mark.parametrize(
    ("code", "command", "output", "exit_code"),
    [
        (
            ENDLESS_CAUSES,
            ("explain", "{endless}"),
            b"stopped before the share of each was known",
            0,
        ),
        (MAIN, ("verify", "{short}", "--prove", "--work", "1e6"), b"stopped when ", 0),
        (MAIN, ("what-if", "--fewest-brokers"), b"stopped", 6),
    ],
)
@pytest.mark.slow
def test_ctrl_c_keeps_the_findings_of_other_commands(
    planned: Path, code: str, command: tuple[str, ...], output: bytes, exit_code: int
) -> None:
    arguments = [re.sub(r"{(\w+)}", rf"{planned}/\1.json", a) for a in command]
    arguments += ["--snapshot", str(LARGE), "--config", str(planned / "long.toml")]
    with in_terminal(code, *arguments, **usual(planned)) as (child, master):
        read_until(master, b"Ctrl-C keeps")
        child.send_signal(signal.SIGINT)
        read_until(master, output)
        os.set_blocking(master, False)
        while child.poll() is None:
            _drain(master)
    assert child.returncode == exit_code


def test_an_error_of_the_solve_reaches_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(_observer: SolveObserver) -> int:
        raise ValueError("of the solve")

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="of the solve"):
        shown(call)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_line_shows_time_best_bound_and_how_to_stop() -> None:
    solving = Solving(started_at_ms=0, objective=0.123456, moves=3, bound=0.1)
    text = progress_text(solving, 65.2, PLAN, 79)
    assert text == "1:05  best 0.1235  3 moves  bound 0.1  Ctrl-C keeps it"
    assert len(text) < 60
    none = Solving(started_at_ms=0)
    assert progress_text(none, 2, PLAN, 79) == "0:02  no plan yet; Ctrl-C stops"
    assert progress_text(none, 2, None, 79) == "0:02  Ctrl-C quits"
    points = progress_text(solving, 2, FRONTIER, 79)
    assert points == "0:02  Ctrl-C keeps the points so far"


def test_a_narrow_line_omits_parts_and_truncates_no_figure() -> None:
    solving = Solving(started_at_ms=0, objective=0.123456, moves=3, bound=0.1)
    whole = progress_text(solving, 65.2, PLAN, 79)
    for width in range(len(whole) + 1):
        text = progress_text(solving, 65.2, PLAN, width)
        assert len(text) <= width
        parts = text.split("  ") if text else []
        assert set(parts) <= set(whole.split("  "))
    assert progress_text(solving, 65.2, PLAN, 30) == "1:05  Ctrl-C keeps it"
    assert progress_text(solving, 65.2, PLAN, 4) == "1:05"
