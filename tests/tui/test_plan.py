"""The panel of the plan, and of the run that carries it out."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from control.view import LoopView, Phase
from model.ids import BrokerId
from model.plan import PlanStatus
from model.run import MoveState, RunState
from tests.tui.views import (
    AT_MS,
    CONNECTING,
    HASH,
    NEWER_HASH,
    UNREACHABLE,
    failed,
    level_after_run,
    measuring,
    moves,
    plan,
    plan_ready,
    progress,
    running,
    solving,
)
from tui.viewmodel.cells import plain
from tui.viewmodel.plan import MOVES_SHOWN, Panel, from_to, plan_panel, run_panel


def _words(shown: Panel) -> str:
    return "\n".join(plain(line) for line in shown.lines)


def _cells(shown: Panel) -> list[list[str]]:
    return [[plain(c).strip() for c in row.cells] for row in shown.table.rows]


def test_a_plan_shows_its_proof_and_its_cost() -> None:
    words = _words(plan_panel(plan_ready(), 110))
    for part in (
        "OPTIMAL",
        "score 12 → 0.1587",
        "bound 0.1587",
        "gap 0 (0.0 % of the possible gain)",
        "4 moves",
        "4 leader changes",
        "33.5 MB to copy",
        "off level in 200% → 2%, out 200% → 2%",
    ):
        assert part in words


def test_a_gap_is_also_a_share_of_the_possible_gain() -> None:
    open_plan = plan().model_copy(
        update={"status": PlanStatus.IMPROVED, "objective": 6.0, "bound": 0.0}
    )
    words = _words(plan_panel(plan_ready(of=open_plan), 110))
    assert "gap 6 (50.0 % of the possible gain)" in words


def test_a_move_shows_from_to_bytes_gain_and_reason() -> None:
    first = _cells(plan_panel(plan_ready(), 110))[0]
    assert first[:4] == ["orders-0", "1 → 2", "11.0 MB", "0.9"]
    assert first[4].startswith("relieves broker 1")


def test_a_change_of_order_alone_shows_both_lists() -> None:
    swap = moves()[0].model_copy(
        update={
            "replicas_before": (BrokerId(1), BrokerId(2)),
            "replicas_after": (BrokerId(2), BrokerId(1)),
        }
    )
    assert from_to(swap) == "1,2 → 2,1"


def test_a_run_shows_state_time_and_bytes_of_each_move() -> None:
    shown = run_panel(running(), 110)
    assert [row[2] for row in _cells(shown)] == ["done", "issued", "planned", "planned"]
    assert _cells(shown)[0][3:6] == ["2.40 s", "11.0 MB", "11.0 MB"]
    assert _cells(shown)[1][3:6] == ["3 s", "4.50 MB", "9.00 MB"]


def test_progress_counts_moves_and_the_copied_share_of_one_under_way() -> None:
    assert run_panel(running(), 110).progress == (1.5, 4)


def test_a_copy_larger_than_planned_is_not_done_before_it_is_done() -> None:
    more = replace(progress().moves[1], bytes_copied=10**9)
    run = replace(progress(), moves=(progress().moves[0], more, *progress().moves[2:]))
    assert run_panel(replace(running(), run=run), 110).progress == (1.99, 4)


def test_a_stopped_run_says_why() -> None:
    run = replace(progress(RunState.STOPPED), reason="stopped by ann")
    assert "because: stopped by ann" in _words(
        run_panel(replace(running(), run=run), 110)
    )


def test_a_dropped_move_shows_its_note_in_place_of_its_reason() -> None:
    dropped = replace(
        progress().moves[2], state=MoveState.DROPPED, note="leader changed meanwhile"
    )
    run = replace(progress(), moves=(*progress().moves[:2], dropped))
    row = _cells(run_panel(replace(running(), run=run), 110))[2]
    assert row[2] == "dropped"
    assert row[-1] == "leader changed meanwhile"


def test_plan_and_run_are_named_by_their_ids() -> None:
    assert plan_panel(running(), 110).title == f"Plan {HASH[:12]}"
    title = f"Run 20231114T221310-3cc54011 of plan {HASH[:12]}"
    assert run_panel(running(), 110).title == title
    assert run_panel(level_after_run(), 110).title == title


def test_before_the_first_run_the_panel_says_what_would_fill_it() -> None:
    shown = run_panel(plan_ready(), 110)
    assert shown.table.rows == ()
    assert "Approve a plan" in shown.table.why_empty


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (CONNECTING, "the cluster has to answer first"),
        (UNREACHABLE, "the cluster has to answer first"),
        (measuring(), "loads have to be known first"),
        (solving(), "A plan is being made"),
        (replace(level_after_run(), run=None), "When one leaves it, a plan is made"),
        (failed(), "plimsoll has stopped"),
        (
            replace(solving(), phase=Phase.NO_PLAN, message="infeasible: no room"),
            "There is no plan: infeasible: no room.",
        ),
    ],
)
def test_an_empty_panel_says_why(view: LoopView, words: str) -> None:
    shown = plan_panel(view, 110)
    assert shown.table.rows == ()
    assert words in shown.table.why_empty


def test_a_plan_without_moves_says_why() -> None:
    none = plan().model_copy(
        update={"moves": (), "status": PlanStatus.NO_IMPROVEMENT, "hash": NEWER_HASH}
    )
    words = plan_panel(plan_ready(of=none), 110).table.why_empty
    assert "no improvement worth its cost" in words


def test_many_moves_are_cut_and_counted() -> None:
    many = tuple(
        moves()[0].model_copy(update={"partition": i}) for i in range(MOVES_SHOWN + 7)
    )
    shown = plan_panel(plan_ready(of=plan().model_copy(update={"moves": many})), 110)
    assert len(shown.table.rows) == MOVES_SHOWN
    assert shown.note == "and 7 more moves"


@pytest.mark.parametrize("panel", [plan_panel, run_panel])
@pytest.mark.parametrize("width", [75, 115, 195])
def test_columns_fill_the_width_and_cells_fit(
    panel: Callable[[LoopView, int], Panel], width: int
) -> None:
    table = panel(running(), width).table
    assert sum(c.width for c in table.columns) == width
    for row in table.rows:
        for column, shown in zip(table.columns, row.cells, strict=True):
            assert len(plain(shown)) <= column.width


def test_a_move_under_way_shows_how_long_it_has_been() -> None:
    later = replace(running(), at_ms=AT_MS + 117_000)
    assert _cells(run_panel(later, 110))[1][3] == "2 min 00 s"
