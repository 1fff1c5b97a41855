"""A run as lines and rows: its progress, its moves, its stop rules."""

import re
from dataclasses import replace

import pytest

from control.loop.view import LogLine, LoopView, Mode
from executor.run.operator_control import AskedRate
from model.ids import BrokerId
from model.run import BrokerBalance, MoveProgress, MoveState, RunProgress, RunReport, RunState
from model.stop_rules import Reaction, StopRules
from model.units import bytes_text
from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import (
    AT_MS,
    FORECAST,
    GOALS,
    HASH,
    balanced_after_run,
    lag,
    plan_ready,
    progress,
    running,
)
from tests.support.tui.past_runs import past, replay
from tui.screen_state import Moment
from tui.viewmodel.cells import Table, fitted, plain
from tui.viewmodel.run import progress as run_progress
from tui.viewmodel.run.progress import rate_now, share_done
from tui.viewmodel.run.run import MOVES_SHOWN, RunShown, moves_table, past_shown, run_shown
from tui.viewmodel.run.stop_rules import armed
from tui.viewmodel.run.throttle import UNLIMITED, throttle_text, typed_rate
from tui.viewmodel.sort_filter import Filter, Wish
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.log_pane import LogPane

MB = 1_000_000


def _moment(view: LoopView, **more: object) -> Moment:
    moment = Moment(view=view, goals=GOALS, now_ms=AT_MS, running=True)
    return replace(moment, **more)  # type: ignore[arg-type]


def _shown(view: LoopView, **more: object) -> RunShown:
    return run_shown(_moment(view, **more), 116)


def _words(shown: RunShown) -> str:
    return "\n".join(plain(line) for line in shown.lines)


def _of(run: RunProgress) -> LoopView:
    return replace(running(), run=run)


def _table(view: LoopView, width: int = 116, wish: Wish | None = None) -> Table:
    return moves_table(_shown(view), width, wish or Wish())


def _rows(table: Table) -> list[dict[str, str]]:
    keys = [c.key for c in table.columns]
    return [
        dict(zip(keys, (plain(c).strip() for c in row.cells), strict=True)) for row in table.rows
    ]


def test_moves_that_need_attention_come_first_and_finished_ones_last() -> None:
    done, moving, *waiting = progress().moves
    stuck = replace(waiting[0], state=MoveState.STUCK, note="it does not come on")
    run = replace(progress(), moves=(done, moving, stuck, *waiting[1:]))
    states = [row["state"] for row in _rows(_table(_of(run)))]
    assert states == ["stuck", "moving", "waiting", "done"]


def test_a_move_shows_bytes_share_rate_and_time() -> None:
    moving, *_, done = _rows(_table(running()))
    assert (moving["bytes"], moving["time"]) == ("9.00 MB", "3 s")
    assert moving["done"].endswith("50%")
    assert moving["rate"] == "1.50 MB/s"
    assert (done["bytes"], done["time"]) == ("11.0 MB", "2.40 s")
    assert done["rate"] == "4.58 MB/s"


def test_large_counts_of_moves_have_separators() -> None:
    first, *_ = progress().moves
    waiting = replace(first, state=MoveState.PLANNED)
    many = replace(progress(), moves=(first, *[waiting] * 1380))
    assert "1 of 1,381 moves  1,380 waiting" in _words(_shown(_of(many)))


def test_a_run_shows_moves_bytes_and_time_left() -> None:
    run = replace(progress(), left_s=40.0, foreseen_s=60.0)
    message = _words(_shown(_of(run)))
    for part in (
        "RUNNING  1 of 4 moves  1 in flight  2 waiting  15.5 MB of 33.5 MB copied",
        "1.50 MB/s",
        "about 40 s left (60.0 s estimated)",
    ):
        assert part in message


def test_the_estimate_beside_it_is_the_one_that_was_approved() -> None:
    run = replace(progress(), left_s=40.0, foreseen_s=60.0)
    message = _words(_shown(_of(run), approved=FORECAST))
    assert "about 40 s left (75.0 s estimated)" in message


def test_the_time_left_decreases_between_two_estimates() -> None:
    run = replace(progress(), left_s=40.0, left_at_ms=running().at_ms - 7_000)
    assert "about 33 s left" in _words(_shown(_of(run)))
    late = replace(run, left_at_ms=running().at_ms - 60_000)
    assert "about 0 s left" in _words(_shown(_of(late)))


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPING])
def test_a_run_that_starts_no_moves_shows_no_time_left(state: RunState) -> None:
    run = replace(progress(), state=state, left_s=40.0, foreseen_s=60.0)
    assert "left" not in _words(_shown(_of(run)))


def test_partitions_that_grew_copy_more_than_was_planned_and_not_of_it() -> None:
    grown = replace(progress().moves[1], bytes_copied=10**9)
    message = _words(_shown(_of(replace(progress(), moves=(grown,)))))
    planned = bytes_text(grown.move.bytes_to_copy)
    assert f"1.00 GB copied, {planned} planned" in message


def test_the_share_counts_bytes_and_never_says_all_before_the_end() -> None:
    assert share_done(progress()) == pytest.approx(15.5 / 33.5)
    done = progress(RunState.DONE)
    assert share_done(done) == 1.0
    no_bytes = done.moves[0].move.model_copy(update={"bytes_to_copy": 0})
    open_move = replace(progress().moves[3], move=no_bytes)
    assert share_done(replace(done, moves=(*done.moves[:3], open_move))) == 0.99


def test_skipped_moves_do_not_count_as_done_after_the_run() -> None:
    moves = tuple(replace(m, state=MoveState.DROPPED) for m in progress().moves)
    assert share_done(replace(progress(), moves=moves)) == 1.0
    assert share_done(replace(progress(RunState.STOPPED), moves=moves)) == 0.0


def test_a_run_that_copies_nothing_counts_moves() -> None:
    moves = [
        replace(m, move=m.move.model_copy(update={"bytes_to_copy": 0}), bytes_copied=0)
        for m in progress().moves
    ]
    assert share_done(replace(progress(), moves=tuple(moves))) == 0.25


def test_a_copy_larger_than_planned_is_not_done_before_it_is_done() -> None:
    more = replace(progress().moves[1], bytes_copied=10**9)
    moving, *_ = _rows(_table(_of(replace(progress(), moves=(more,)))))
    assert moving["done"].endswith("99%")


@pytest.mark.parametrize(("age_ms", "rate"), [(0, 0.0), (60, 0.0), (999, 0.0), (1000, 5e6)])
def test_a_move_has_no_rate_in_its_first_second(age_ms: int, rate: float) -> None:
    """5 MB copied in 60 ms would be 83 MB/s, on a disk throttled to a tenth of that."""
    young = replace(progress().moves[1], issued_at_ms=AT_MS - age_ms, bytes_copied=5_000_000)
    assert rate_now(replace(progress(), moves=(young,)), AT_MS) == rate


def test_completed_moves_have_no_rate() -> None:
    assert rate_now(progress(RunState.DONE), AT_MS) == 0.0


def test_a_paused_or_stopped_run_shows_by_whom() -> None:
    for state, reason in (
        (RunState.PAUSED, "paused by the operator"),
        (RunState.STOPPED, "broker 3 does not serve any more"),
    ):
        run = replace(progress(state), reason=reason)
        message = _words(_shown(_of(run)))
        assert message.startswith(state.value.upper())
        assert f"reason: {reason}" in message


def test_a_finished_run_shows_planned_and_achieved_imbalance() -> None:
    balance = BrokerBalance(
        id=BrokerId(1),
        before={},
        planned={},
        achieved={},
        deviation_before={"net_in": 2.0},
        deviation_planned={"net_in": 0.02},
        deviation_achieved={"net_in": -0.04},
    )
    report = RunReport(
        run_id="r",
        plan_hash=HASH,
        state=RunState.DONE,
        reason="",
        started_at_ms=0,
        duration_s=1.0,
        preparation_s=0.0,
        moves=(),
        brokers=(balance,),
    )
    message = _words(_shown(balanced_after_run(), report=report))
    assert "deviation in 200% → 2% planned, 4% achieved" in message
    assert "stops on" not in message


@pytest.mark.parametrize("width", [77, 118])
def test_a_duration_of_almost_an_hour_is_shown_in_full(width: int) -> None:
    done = replace(progress(RunState.DONE).moves[0], done_at_ms=AT_MS + 3_593_000)
    table = _table(_of(replace(progress(), moves=(done,))), width)
    at = [c.key for c in table.columns].index("time")
    reported = plain(table.rows[0].cells[at])
    assert reported.strip() == "59 min 59 s"
    assert len(reported) < table.columns[at].width


def test_a_note_replaces_the_reason() -> None:
    dropped = replace(progress().moves[2], state=MoveState.DROPPED, note="leader changed meanwhile")
    (row,) = _rows(_table(_of(replace(progress(), moves=(dropped,)))))
    assert (row["state"], row["done"]) == ("skipped", "-")
    assert row["reason"].startswith("leader changed")


def test_a_pure_leader_change_names_the_leaders() -> None:
    first = progress().moves[0]
    move = first.move.model_copy(update={"replicas_before": (1, 2), "replicas_after": (2, 1)})
    run = replace(progress(), moves=(replace(first, move=move),))
    assert _rows(_table(_of(run)))[0]["brokers"] == "leader 1 → 2"


def test_a_run_is_named_by_its_id_and_its_plan() -> None:
    title = f"Run 20231114T221310-3cc54011 of plan {HASH[:12]}"
    assert _shown(running()).title == title
    assert _shown(balanced_after_run()).title == title


def test_an_empty_run_panel_is_explained() -> None:
    shown = _shown(plan_ready())
    assert shown.share is None
    assert "Approve a plan" in moves_table(shown, 116, Wish()).why_empty


def test_an_interrupted_run_is_shown_with_the_possible_actions() -> None:
    shown = _shown(plan_ready(), interrupted=past(RunState.INTERRUPTED), running=False)
    assert shown.title.startswith("Interrupted run 2023")
    message = _words(shown)
    assert "Resume it (R) or roll it back (B)" in " ".join(message.split())
    assert "INTERRUPTED  1 of 4 moves" in message
    assert _shown(running(), interrupted=past(RunState.INTERRUPTED)).title.startswith("Run 2023")


def test_many_moves_are_counted_and_a_filter_finds_all_of_them() -> None:
    waiting = progress().moves[3]
    moves = tuple(
        replace(waiting, move=waiting.move.model_copy(update={"partition": n}))
        for n in range(MOVES_SHOWN + 7)
    )
    view = _of(replace(progress(), moves=moves))
    assert len(_table(view).rows) == MOVES_SHOWN
    words = f"the first {MOVES_SHOWN} of {MOVES_SHOWN + 7} moves; filter or sort to see others"
    assert _table(view).note == words
    result = _table(view, wish=Wish(filter=Filter(f"orders-{MOVES_SHOWN + 6}")))
    assert [row.key for row in result.rows] == [f"orders-{MOVES_SHOWN + 6}"]


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("bytes", ["orders-0", "orders-1", "orders-2", "orders-4"]),
        ("done", ["orders-0", "orders-1", "orders-2", "orders-4"]),
        ("time", ["orders-1", "orders-0", "orders-2", "orders-4"]),
        ("state", ["orders-2", "orders-4", "orders-1", "orders-0"]),
    ],
)
def test_moves_are_sorted_by_numbers_and_not_by_their_texts(column: str, keys: list[str]) -> None:
    """As texts, 9.00 MB would be more than 11.0 MB."""
    table = _table(running(), wish=Wish(sort=column))
    assert [row.key for row in table.rows] == keys


@pytest.mark.parametrize("width", [77, 107, 108, 195])
def test_columns_fill_the_width_and_cells_fit(width: int) -> None:
    table = _table(running(), width)
    assert sum(c.width for c in table.columns) == max(width, 77)
    for row in table.rows:
        for column, shown in zip(table.columns, row.cells, strict=True):
            assert len(plain(shown)) <= column.width


@pytest.mark.parametrize("width", [56, 75, 107, 108, 118])
@pytest.mark.parametrize("ids", [(101, 102, 103), (1_000_001, 1_000_002, 1_000_003)])
def test_moves_between_many_brokers_of_long_ids_fit_and_no_id_is_cut(
    width: int, ids: tuple[int, ...]
) -> None:
    done, *others = progress().moves
    before, after = (tuple(BrokerId(b + by) for b in ids) for by in (0, 100))
    move = done.move.model_copy(
        update={"topic": "orders-of-all-regions", "replicas_before": before}
        | {"replicas_after": after, "leader_before": before[0], "leader_after": after[0]}
    )
    moves = (replace(done, move=move, stall_s=(1.0, 2.0)), *others)
    table = _table(_of(replace(progress(), moves=moves)), width)
    columns = fitted(table.columns, table.rows)
    assert columns == table.columns
    assert sum(c.width for c in columns) <= width
    change = _rows(table)[-1]["brokers"]
    assert {*re.findall("[0-9]+", change)} <= {*map(str, (*before, *after))}
    assert {"partition", "brokers", "state", "done"} <= {c.key for c in columns}


# ---- the throttle


@pytest.mark.parametrize(
    ("text", "rate"), [("50MB/s", 50 * MB), ("1e6", MB), (" AUTO ", None), ("none", UNLIMITED)]
)
def test_a_rate_is_parsed(text: str, rate: int | None) -> None:
    assert typed_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "0", "-5MB/s", "5 MB/min", "x" * 1000])
def test_an_invalid_rate_is_explained(text: str) -> None:
    with pytest.raises(
        ValueError, match="use bytes per second, or a unit: 50MB/s, 50MiB/s, auto or none"
    ):
        typed_rate(text)


@pytest.mark.parametrize(
    ("begun_with", "asked", "message"),
    [
        (None, None, "none"),
        (40 * MB, None, "40.0 MB/s"),
        ("auto", None, "auto, follows what clients leave free"),
        (40 * MB, AskedRate(bytes_per_s=5 * MB), "5.00 MB/s requested"),
        (40 * MB, AskedRate(bytes_per_s=UNLIMITED, answer=""), "none"),
        (40 * MB, AskedRate(bytes_per_s=5 * MB, answer="too low"), "5.00 MB/s refused"),
    ],
)
def test_the_throttle_in_force_and_the_requested_one_are_shown(
    begun_with: int | str | None, asked: AskedRate | None, message: str
) -> None:
    assert throttle_text(begun_with, asked) == message


def test_a_refused_rate_shows_the_whole_reason() -> None:
    reason = "A throttle of 1.00 kB/s is too low: " + "copies never arrive; " * 6
    message = _words(_shown(running(), asked=AskedRate(bytes_per_s=1000, answer=reason)))
    assert " ".join(reason.split()) in " ".join(message.split())


# ---- stop conditions


def test_stop_rules_are_grouped_by_reaction() -> None:
    rules = StopRules(isr_shrink=Reaction.ROLL_BACK, disk=Reaction.OFF)
    pauses, stops, rolls_back = armed(rules)
    assert pauses == ("pauses on: controller changes, requests 5 times slower and above 1.00 s")
    assert stops.startswith("stops on: a lost broker, offline partitions")
    assert rolls_back == "rolls back on: shrinking ISR"


def test_the_time_window_is_listed_only_if_there_is_one() -> None:
    assert "end of the time window" not in " ".join(armed(StopRules()))
    assert "end of the time window" in " ".join(armed(StopRules(window_hours="22:00-06:00")))


def test_a_previous_run_has_the_duration_of_the_history_with_pauses() -> None:
    """Its only finished move ended 4 s before the run did."""
    result = replay()
    last = len(result) - 1
    shown = past_shown(result.at(last), (), result.at_ms(last), 100, "7 of 7")
    message = " ".join(map(plain, shown.lines))
    assert "took 9.00 s" in message
    early = past_shown(result.at(4), (), result.at_ms(4), 100, "5 of 7")
    assert "took" not in " ".join(map(plain, early.lines))


def test_a_finished_run_has_the_duration_of_its_report() -> None:
    view = balanced_after_run()
    assert view.run is not None
    report = RunReport(
        run_id=view.run.run_id,
        plan_hash=HASH,
        state=RunState.DONE,
        reason="",
        started_at_ms=AT_MS,
        duration_s=12.3,
        preparation_s=0.0,
        moves=(),
    )
    message = " ".join(map(plain, _shown(view, report=report).lines))
    assert "took 12.3 s" in message


async def test_the_key_that_stops_a_run_is_labelled_with_its_next_action() -> None:
    async with stage(running(), running=True) as on:
        for state, label in ((RunState.RUNNING, "Stop run"), (RunState.STOPPING, "Abort run")):
            await on.show(replace(running(), run=progress(state)), running=True)
            assert on.app.screen.active_bindings["X"].binding.description == label


# ---- gauges, keys and the log of a run


def test_a_run_shows_its_gauges_and_how_old_they_are() -> None:
    message = _words(_shown(running()))
    assert "request latency" in message
    assert "9 ms, pauses at 1.00 s" in message
    assert "0.40 s, most 1.10 s, no stop rule" in message
    assert "cluster checked 4 s ago" in message
    assert "also pauses on: shrinking ISR, controller changes; stops on: a lost broker" in message


def test_before_the_first_check_all_rules_are_listed() -> None:
    message = _words(_shown(_of(replace(progress(), health=None))))
    assert "requests 5 times slower" in message
    assert "checked" not in message


def test_the_lag_of_another_run_is_not_shown() -> None:
    view = replace(running(), lag=replace(lag(), run_id="another"))
    assert "unknown, no stop rule" in _words(_shown(view))


@pytest.mark.parametrize(
    ("state", "paused", "keys"),
    [
        (
            RunState.RUNNING,
            False,
            "[P] pause: start no moves until resumed   "
            "[X] stop: end after 1 move in flight, 2 are not started   [T] throttle",
        ),
        (
            RunState.PAUSED,
            True,
            "[R] resume: start moves again   "
            "[X] stop: end after 1 move in flight, 2 are not started   [T] throttle",
        ),
        (RunState.STOPPING, False, "[X] abort: cancel in-flight moves   [T] throttle"),
    ],
)
def test_keys_are_labelled_with_what_they_do_next(state: RunState, paused: bool, keys: str) -> None:
    shown = _shown(_of(replace(progress(), state=state)), paused=paused)
    assert keys in map(plain, shown.lines)


def test_a_stop_without_moves_in_flight_ends_the_run_at_once() -> None:
    run = replace(progress(), state=RunState.PAUSED)
    waiting = [move for move in run.moves if move.state is MoveState.PLANNED]
    for moves, words in (
        (waiting, "end now, 2 moves are not started"),
        (waiting[:1], "end now, 1 move is not started"),
        ([], "end now"),
    ):
        shown = _shown(_of(replace(run, moves=tuple(moves))), paused=True)
        assert any(f"[X] stop: {words}   [T]" in plain(line) for line in shown.lines), words


def test_a_key_that_was_redefined_is_shown_and_refused_ones_are_not() -> None:
    keys = _words(_shown(running(), keys={"run.stop": "f9,X"}))
    assert "[f9] stop" in keys
    assert "[f9]" not in _words(_shown(replace(running(), mode=Mode.READ_ONLY)))


async def test_the_run_screen_has_a_log_of_actions_and_events_of_the_run() -> None:
    old = LogLine(at_ms=AT_MS - 60_000, level="info", text="before the run")
    action = LogLine(at_ms=AT_MS, level="info", text="ann: pause the run")
    view = replace(running(), log=(old, action))
    async with stage(view, size=(120, 40), running=True) as on:
        await on.press("3")
        assert [line.text for line in on.app.screen.query_one(LogPane).shown] == [action.text]


async def test_on_the_smallest_terminal_gauges_leave_room_for_moves() -> None:
    async with stage(running(), size=(60, 16), running=True) as on:
        await on.press("3")
        table = on.app.screen.query_one("#moves", KeyedTable)
        assert table.size.height >= 3
        assert not table.show_horizontal_scrollbar or table.styles.scrollbar_size_horizontal == 0
        assert table.virtual_size.width <= table.size.width


def test_the_share_of_a_run_is_computed_once_for_all_who_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    share = run_progress.move_share

    def counted(move: MoveProgress) -> float:
        asked.append(move)
        return share(move)

    monkeypatch.setattr(run_progress, "move_share", counted)
    run = progress()
    assert share_done(run) == share_done(run)
    once = len(asked)
    assert 0 < once <= 2 * len(run.moves)
    share_done(run)
    assert len(asked) == once


@pytest.mark.parametrize(
    ("state", "mode", "words"),
    [
        (RunState.FAILED, Mode.APPROVE, "Resume it (F9) or roll it back (B); both first check"),
        (RunState.STOPPED, Mode.APPROVE, "Resume it (F9) or roll it back (B); both first check"),
        (RunState.FAILED, Mode.READ_ONLY, "not now: plimsoll is read-only; start it with --allow"),
        (RunState.REFUSED, Mode.APPROVE, "Nothing was changed. Once that is settled, approve"),
        (RunState.DONE, Mode.APPROVE, ""),
    ],
)
def test_a_run_that_ended_early_is_shown_with_what_to_do_now(
    state: RunState, mode: Mode, words: str
) -> None:
    run = replace(progress(state), reason="broker 3 does not serve any more")
    view = replace(plan_ready(mode), run=run)
    text = _words(_shown(view, running=False, keys={"run.resume": "F9"}))
    if words:
        assert words in text.partition("any more")[2]
    else:
        assert "Resume" not in text
