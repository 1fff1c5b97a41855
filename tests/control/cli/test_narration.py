"""Messages of a run on stderr."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from control.cli import logs
from control.cli.exit_codes import Exit
from control.cli.main import app
from control.cli.narration import LoopNarrator, RunNarrator, narrate
from control.cli.output import Form
from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.view import Mode, Phase
from control.settings.auto_limits import EAGER
from model.plan.plan import Plan
from model.run import MoveProgress, MoveState, RunProgress, RunReport, RunState
from model.snapshot.snapshot import Snapshot
from solver.solve import solve
from tests.support.cli_offline import enter
from tests.support.control.loop_parts import EASY, START_MS, WORK, CannedObserver, RecordingExecutor
from tests.support.executor.plan_builders import move
from tests.support.tui.loop_views import CONNECTING
from tests.support.tui.terminals import LONG_S

RUN = RunProgress(
    run_id="one",
    plan_hash="1a2b",
    state=RunState.RUNNING,
    moves=(MoveProgress(move=move(0)), MoveProgress(move=move(1))),
    started_at_ms=0,
)


def test_the_end_of_a_move_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    done = replace(RUN.moves[0], state=MoveState.DONE, issued_at_ms=1000, done_at_ms=2500)
    narrator = RunNarrator()
    for _ in range(2):
        narrator(replace(RUN, moves=(done, RUN.moves[1])))
    assert capsys.readouterr().err == "1/2 orders-0 done in 1.50 s\n"


def test_the_remaining_time_is_printed_when_it_has_halved_or_grown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    narrator = RunNarrator()
    for left_s in (None, 400.0, 300.0, 201.0, 190.0, 280.0, 300.0, 100.0, 9.0, None):
        narrator(replace(RUN, left_s=left_s))
    assert capsys.readouterr().err.splitlines() == [
        "about 6 min 40 s left",
        "about 3 min 10 s left",
        "about 5 min 00 s left",
        "about 1 min 40 s left",
    ]


def test_reasons_and_notes_print_one_line_each_whatever_they_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = "\x1b[31mred\nnew"
    narrator = RunNarrator()
    dropped = replace(RUN.moves[0], state=MoveState.DROPPED, note=hostile)
    narrator(replace(RUN, state=RunState.STOPPING, reason=hostile, moves=(dropped,)))
    LoopNarrator(Form.TABLE)(replace(CONNECTING, phase=Phase.SETTLING, message=hostile))
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 3
    assert err.count(r"\x1b[31mred\nnew") == 3
    assert "\x1b" not in err


RIVAL = "Cruise Control is running."


@dataclass
class PausedExecutor(RecordingExecutor):
    """Warns, pauses, skips the first move, and ends."""

    rivals: tuple[str, ...] = (RIVAL,)

    def execute(
        self, plan: Plan, *, observe: Callable[[RunProgress], None], **rest: Any
    ) -> RunReport:
        logging.getLogger("plimsoll.executor").warning(RIVAL)
        logging.getLogger("plimsoll.executor").warning("Broker 3 lags.")
        moves = tuple(MoveProgress(move=m) for m in plan.moves)
        run = replace(RUN, plan_hash=plan.hash, moves=moves)
        observe(replace(run, state=RunState.PAUSED, reason="a broker is slow"))
        skipped = replace(moves[0], state=MoveState.DROPPED, note="no room")
        observe(replace(run, moves=(skipped, *moves[1:])))
        return super().execute(plan, observe=observe, **rest)


@pytest.mark.usefixtures("_own_logs")
@pytest.mark.parametrize("verbose", [False, True])
def test_each_event_of_a_loop_without_a_screen_is_printed_once(
    uneven: Snapshot, plan: Plan, tmp_path: Path, verbose: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(verbose=verbose, file=None)
    settings = LoopSettings(
        bootstrap="127.0.0.1:1",
        name=None,
        mode=Mode.APPROVE,
        goals=EASY,
        solve=WORK,
        limits=EAGER,
        journal_dir=tmp_path,
        tick_s=0.01,
    )
    parts = LoopParts(
        observer=lambda: CannedObserver([uneven]),
        planner=solve,
        executor=PausedExecutor,
        clock=lambda: START_MS / 1000,
        steady=lambda: 0.0,
    )
    loop = Loop(settings, parts)
    narrate(loop, Form.TABLE)
    with loop:
        assert loop.wait(lambda view: bool(view.proposed.rivals), LONG_S)
        loop.approve(plan.hash, by="test")
        assert loop.wait(lambda _view: bool(loop.reports), LONG_S)
    err = capsys.readouterr().err
    skipped = str(plan.moves[0].id)
    ready = "plan ready: optimal"
    for once in (RIVAL, "Broker 3 lags.", "a broker is slow", "no room", ready):
        assert err.count(once) == 1, err
    assert f"{skipped} dropped no room" in err
    assert "plimsoll: Broker 3 lags." in err


@pytest.mark.usefixtures("_own_logs")
def test_a_cluster_that_cannot_be_reached_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(monkeypatch, tmp_path)
    result = CliRunner().invoke(app, ["run", "--once", "-b", "127.0.0.1:1"])
    assert result.exit_code == Exit.UNREACHABLE
    assert result.stderr.count("No Kafka broker answers at 127.0.0.1:1") == 1
