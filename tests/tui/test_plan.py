"""The panel of the run."""

from dataclasses import replace

import pytest

from model.ids import BrokerId
from model.run import MoveState, RunState
from tests.tui.views import (
    AT_MS,
    HASH,
    level_after_run,
    moves,
    plan_ready,
    progress,
    running,
)
from tui.viewmodel.cells import plain
from tui.viewmodel.plan import Panel, from_to, run_panel


def _words(shown: Panel) -> str:
    return "\n".join(plain(line) for line in shown.lines)


def _cells(shown: Panel) -> list[list[str]]:
    return [[plain(c).strip() for c in row.cells] for row in shown.table.rows]


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


def test_a_run_is_named_by_its_id_and_its_plan() -> None:
    title = f"Run 20231114T221310-3cc54011 of plan {HASH[:12]}"
    assert run_panel(running(), 110).title == title
    assert run_panel(level_after_run(), 110).title == title


def test_before_the_first_run_the_panel_says_what_would_fill_it() -> None:
    shown = run_panel(plan_ready(), 110)
    assert shown.table.rows == ()
    assert "Approve a plan" in shown.table.why_empty


@pytest.mark.parametrize("width", [75, 115, 195])
def test_columns_fill_the_width_and_cells_fit(width: int) -> None:
    table = run_panel(running(), width).table
    assert sum(c.width for c in table.columns) == width
    for row in table.rows:
        for column, shown in zip(table.columns, row.cells, strict=True):
            assert len(plain(shown)) <= column.width


def test_a_move_under_way_shows_how_long_it_has_been() -> None:
    later = replace(running(), at_ms=AT_MS + 117_000)
    assert _cells(run_panel(later, 110))[1][3] == "2 min 00 s"
