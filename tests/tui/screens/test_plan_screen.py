"""Requests of the plan screen's keys to the loop; none changes a cluster."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from textual.events import Key
from textual.widgets import ContentSwitcher, Input, Static

from control.loop.view import LoopView, Mode
from control.planning.plan_overrides import PlanOverrides
from control.planning.plan_view import PlanningView, Solving
from model.errors import ConfigError
from model.goals.effort import Effort
from model.goals.goals import ObjectiveKind, Pin
from model.ids import BrokerId
from model.names import Names
from model.plan.plan import LeadersOnly, read_plan
from model.snapshot.what_if import AddedBrokers, Scenario, Traffic
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import (
    GOALS,
    HASH,
    NAME,
    NEWER_HASH,
    moves,
    plan,
    plan_ready,
    running,
    solving,
)
from tests.support.tui.plan_views import (
    STATES,
    asked,
    loaded_plan,
    outdated,
    still_solving,
    what_if,
    with_frontier,
)
from tui.screens.form import MORE, FormScreen
from tui.screens.reason import ReasonScreen
from tui.viewmodel.cells import plain
from tui.viewmodel.plan.approval import throttle_line
from tui.viewmodel.plan.frontier import PICKED
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.moves_panel import MovesPanel
from tui.widgets.plan_side import FrontierPlot
from tui.widgets.text_lines import Lines

AT_BEST = PlanOverrides().at_effort(Effort.BEST)


def _form(on: Stage) -> FormScreen:
    assert isinstance(on.app.screen, FormScreen)
    return on.app.screen


async def _type(on: Stage, field: str, text: str) -> None:
    inputs = {i.name: i for i in _form(on).query(Input)}
    inputs[field].value = text
    await on.settle()


def _refused(on: Stage) -> str:
    message = _form(on).query_one("#refused", Static)
    return str(message.render()) if message.display else ""


async def test_d_requests_a_plan_without_the_selected_move() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "down", "d")
        assert on.loop.proposals.asked == [PlanOverrides(stay=(moves()[1].id,))]


async def test_capital_e_requests_the_next_effort() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "E")
        await on.show(replace(plan_ready(), proposed=PlanningView(asks=AT_BEST)))
        await on.press("E")
        asked = [asks.effort for asks in on.loop.proposals.asked]
        assert asked == [Effort.BEST, Effort.QUICK]


async def test_the_plan_states_its_effort_and_what_leader_changes_alone_reach() -> None:
    alone = LeadersOnly(leader_changes=20, objective=plan().objective_before / 4)
    of = plan().model_copy(update={"leaders_only": alone})
    async with stage(plan_ready(of=of), size=(160, 40)) as on:
        await on.press("2")
        lines = on.app.screen.query_one("#figures", Lines).shown or ()
        text = "  ".join(plain(line).strip() for line in lines)
        assert "quick: 20 leader changes, 0 B, about 3.00 s, gain 75%  good: 4 moves" in text
        assert "[E] plans at another effort" in text
        assert "or quick: 20 leader changes, 0 B, gain 75%" in on.header
        await on.show(replace(plan_ready(), proposed=PlanningView(asks=AT_BEST)))
        lines = on.app.screen.query_one("#figures", Lines).shown or ()
        assert any(plain(line).startswith("best: 4 moves") for line in lines)


async def test_u_undoes_the_last_request() -> None:
    asks = PlanOverrides().dropping(moves()[0].id).dropping(moves()[1].id)
    view = replace(plan_ready(), proposed=PlanningView(asks=asks))
    async with stage(view) as on:
        await on.press("2", "u")
        assert on.loop.proposals.undone == 1
        assert on.loop.proposals.asked == []


async def test_a_refusal_is_shown_as_a_sentence() -> None:
    async with stage(plan_ready()) as on:
        on.loop.proposals.refuses = ConfigError("orders-0 cannot stay: [a] rule")
        await on.press("2", "d")
        assert [n.message for n in on.app._notifications] == ["orders-0 cannot stay: [a] rule"]


async def test_p_pins_the_partition_to_the_brokers_that_are_typed() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "p")
        await _type(on, "brokers", "x")
        assert "'x' is not a broker id" in _refused(on)
        await _type(on, "brokers", "")
        assert "orders-0 has 1 replicas" in _refused(on)
        await _type(on, "brokers", "3, 2")
        assert _refused(on) == ""
        await on.press("enter")
        pin = Pin(
            topics=Names(exact=("orders",)), partitions=(0,), brokers=(BrokerId(2), BrokerId(3))
        )
        assert on.loop.proposals.asked == [PlanOverrides(pins=(pin,))]


async def test_g_edits_weights_tolerances_and_limits_and_explains_errors() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2", "g")
        for field, text, message in (
            ("goal net_in", "heavy", "weight of bytes in: 'heavy' is not a number"),
            ("goal net_out", "1 0%", "tolerance of bytes out: enter a percentage"),
            ("goal net_out", "1 10 20", "bytes out: enter a weight and a tolerance"),
            ("goal net_out", "%", "bytes out: enter a weight and a tolerance"),
            ("moves", "1.5", "max moves: '1.5' is not a whole number"),
            ("bytes", "many", "max bytes: 'many' is not a size"),
            ("objective", "best", "objective: 'best' is not variance or band"),
            ("excluded", "a(", "not a valid regular expression"),
            ("move_price", "0", "greater than 0"),
        ):
            before = next(i.value for i in _form(on).query(Input) if i.name == field)
            await _type(on, field, text)
            assert message in _refused(on)
            await on.press("enter")
            assert on.loop.proposals.asked == []
            await _type(on, field, before)
            assert _refused(on) == ""
        await _type(on, "goal net_out", "")
        await _type(on, "goal leaders", "2 20 %")
        await _type(on, "goal replicas", "3")
        await _type(on, "moves", "3")
        await _type(on, "objective", "band")
        await on.press("enter")
        (asks,) = on.loop.proposals.asked
        assert asks.goals is not None
        result = [(g.resource, g.weight, g.tolerance) for g in asks.goals.balance]
        assert result == [("net_in", 1.0, 0.1), ("replicas", 3.0, 0.1), ("leaders", 2.0, 0.2)]
        assert asks.goals.budgets.replica_moves == 3
        assert asks.goals.objective is ObjectiveKind.BAND
        assert asks.goals.balance[0].floor == GOALS.balance[0].floor


async def test_the_cursor_does_not_follow_a_move_out_of_the_plan() -> None:
    first, second, *others = moves()
    changed = second.model_copy(update={"replicas_after": first.replicas_after})
    newer = plan(NEWER_HASH).model_copy(update={"moves": (changed, *others)})
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2")
        table = on.app.screen.query_one("#moves", KeyedTable)
        assert table.key_at_cursor == str(first.id)
        await on.show(plan_ready(of=newer))
        assert table.key_at_cursor == str(second.id)


async def test_changes_of_the_plan_are_marked_until_the_screen_is_left() -> None:
    newer = plan(NEWER_HASH).model_copy(update={"moves": moves()[1:]})

    def marked(on: Stage) -> bool:
        return on.app.screen.query_one("#moves", KeyedTable).columns_shown[0].key == "mark"

    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2")
        assert not marked(on)
        await on.show(plan_ready(of=newer))
        assert marked(on)
        assert "1 removed" in (on.app.screen.query_one(MovesPanel).border_subtitle or "")
        await on.press("end", "enter")
        assert not isinstance(on.app.screen, ReasonScreen)
        assert [n.message for n in on.app._notifications] == ["orders-0 is no longer planned"]
        await on.press("home", "enter", "escape")
        assert marked(on)
        await on.press("1", "2")
        assert not marked(on)
        await on.press("1")
        await on.show(plan_ready())
        await on.press("2")
        assert marked(on)
        assert on.table("#moves")[0][:2] == ["+", "orders-0"]


@pytest.mark.parametrize(("size", "count"), [((60, 16), 1), ((120, 40), 0)])
async def test_a_form_without_space_shows_its_refusal_as_a_notification(
    size: tuple[int, int], count: int
) -> None:
    async with stage(plan_ready(), size=size) as on:
        await on.press("2", "g", "tab", "tab", "tab")
        field = on.app.focused
        assert isinstance(field, Input)
        shown = on.app.screen._compositor.render_strips()
        assert any(field.placeholder in strip.text for strip in shown)
        await on.press("x", "enter")
        await on.settle()
        assert on.app.screen.region.contains_region(field.region)
        reported = [note.message for note in on.app._notifications]
        assert reported == [_refused(on)] * count


async def test_an_unchanged_form_requests_the_same_goals() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2", "g", "enter")
        assert on.loop.proposals.asked == [PlanOverrides(goals=GOALS)]


async def test_escape_closes_a_form_without_a_request() -> None:
    async with stage(plan_ready()) as on:
        for key in ("g", "p", "w", "e"):
            await on.press("2", key, "escape")
            assert len(on.app.screen_stack) == 1
        assert on.loop.proposals == type(on.loop.proposals)()


async def test_b_ends_the_solve_with_the_best_so_far() -> None:
    async with stage(still_solving()) as on:
        await on.press("2", "b")
        assert on.loop.proposals.stopped == 1
        await on.show(plan_ready())
        await on.press("b")
        assert on.loop.proposals.stopped == 1


async def test_b_ends_a_frontier_that_is_being_traced() -> None:
    view = plan_ready()
    tracing = replace(view.proposed, tracing=Solving(started_at_ms=0))
    async with stage(replace(view, proposed=tracing), size=(120, 40)) as on:
        await on.press("2", "f", "b")
        assert on.loop.proposals.stopped == 1


async def test_f_traces_a_frontier_once_and_shows_it_in_place_of_the_brokers() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2", "f")
        assert on.loop.proposals.traced == 1
        side = on.app.screen.query_one("#side", ContentSwitcher)
        assert side.current == "frontier"
        await on.show(with_frontier())
        await on.press("f", "f")
        assert on.loop.proposals.traced == 1
        await on.press("escape")
        assert side.current == "brokers-after"
        assert on.app.current_mode == "plan"
        await on.press("escape")
        assert on.app.current_mode == "overview"


async def test_f_traces_the_frontier_again_if_it_is_outdated() -> None:
    async with stage(with_frontier(), size=(120, 40)) as on:
        await on.press("2", "f")
        assert on.loop.proposals.traced == 0
        await on.show(plan_ready())
        await on.press("f")
        assert on.loop.proposals.traced == 1
        side = on.app.screen.query_one("#side", ContentSwitcher)
        assert side.current == "frontier"


async def test_the_operator_picks_a_point_of_the_frontier_to_run() -> None:
    async with stage(with_frontier(), size=(120, 40)) as on:
        await on.press("2", "f", *["left"] * 9, "right", "right", "enter")
        assert on.loop.proposals.chosen == [2]


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (119, 31)])
async def test_in_a_small_terminal_the_frontier_takes_the_place_of_the_moves(
    size: tuple[int, int],
) -> None:
    async with stage(with_frontier(), size=size) as on:
        await on.press("2", "f")
        plot = on.app.screen.query_one(FrontierPlot)
        text = "\n".join(map(plain, plot.shown or ()))
        assert on.app.screen.focused is plot
        assert plot.region.height
        assert PICKED in text
        assert not on.app.screen.query_one(MovesPanel).display
        # No move is changed that cannot be seen.
        await on.press("d", "p")
        assert on.loop.proposals.asked == []
        assert len(on.app.screen_stack) == 1
        await on.press("escape")
        assert on.app.screen.query_one(MovesPanel).display
        assert on.app.screen.focused is on.app.screen.query_one("#moves")
        await on.press("enter")
        assert isinstance(on.app.screen, ReasonScreen)


async def test_during_a_run_the_key_that_uses_a_point_is_greyed() -> None:
    async with stage(with_frontier(), size=(120, 40)) as on:
        await on.press("2", "f")
        view = replace(running(), proposed=with_frontier().proposed)
        await on.show(view, running=True)
        cut = on.app.screen.active_bindings["enter"]
        assert not cut.enabled
        assert "a run is in progress" in cut.tooltip
        await on.press("enter")
        assert on.loop.proposals.chosen == []


async def test_the_key_that_undoes_is_offered_after_a_request() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2")
        assert not on.app.screen.active_bindings["u"].binding.show
        await on.show(asked())
        assert on.app.screen.active_bindings["u"].binding.show


async def test_a_form_says_that_fields_are_out_of_sight() -> None:
    async with stage(plan_ready(), size=(60, 16)) as on:
        await on.press("2", "g")
        form = on.app.screen.query_one(".form")
        assert form.border_subtitle == MORE
        form.scroll_end(animate=False)
        await on.settle()
        assert form.border_subtitle == ""
        await on.pilot.resize_terminal(120, 40)
        await on.settle()
        await on.press("escape", "g")
        assert on.app.screen.query_one(".form").border_subtitle == ""


async def test_w_opens_the_what_if_form_and_explains_errors() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "w", "enter")
        assert "enter at least one change" in _refused(on)
        await _type(on, "add", "2x")
        assert "add brokers: '2x' is not valid" in _refused(on)
        await _type(on, "add", "2:a")
        await _type(on, "remove", "1, 3")
        await _type(on, "traffic", "-1")
        assert "traffic factor: '-1' is not valid" in _refused(on)
        await _type(on, "traffic", "1.5:ord.*")
        await _type(on, "lose", "b")
        await on.press("enter")
        assert on.loop.proposals.supposed == [
            Scenario(
                add=(AddedBrokers(count=2, rack="a"),),
                remove=(BrokerId(1), BrokerId(3)),
                traffic=(Traffic(factor=1.5, topics=Names(regex=("ord.*",))),),
                lose_racks=("b",),
            )
        ]


async def test_w_opens_the_form_from_every_screen_whose_header_names_it() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        for mode in "1234567":
            await on.press(mode)
            assert "[w] what if" in on.header
            await on.press("w")
            await on.settle()
            assert isinstance(on.app.screen, FormScreen), mode
            assert on.app.current_mode == "plan"
            await on.press("escape")


async def test_w_says_on_every_screen_why_there_is_no_what_if_now() -> None:
    async with stage(running(), size=(120, 40), running=True) as on:
        await on.press("4", "w")
        assert on.app.current_mode == "topics"
        assert "a run is in progress" in [n.message for n in on.app._notifications][-1]


async def test_a_scenario_that_the_cluster_refuses_keeps_the_form_open() -> None:
    async with stage(plan_ready()) as on:
        on.loop.proposals.refuses = ConfigError("there is no rack 'z' to lose")
        await on.press("2", "w")
        await _type(on, "lose", "z")
        await on.press("enter")
        assert "no rack 'z'" in _refused(on)


async def test_escape_returns_from_a_what_if_to_the_real_plan() -> None:
    async with stage(what_if()) as on:
        await on.press("2", "escape")
        assert on.loop.proposals.supposed == [None]
        assert on.app.current_mode == "plan"


async def test_every_part_of_a_what_if_is_marked() -> None:
    async with stage(what_if(), size=(120, 40)) as on:
        await on.press("2")
        screen = on.app.screen
        for part in ("MovesPanel", "BrokersAfter"):
            assert str(screen.query_one(part).border_title).startswith("WHAT-IF: ")
        await on.press("enter")
        assert isinstance(on.app.screen, ReasonScreen)
        title = on.app.screen.query_one(".title", Static)
        assert str(title.render()).startswith("WHAT-IF: orders-")


async def test_e_exports_the_plan_its_rollback_and_reassignment_json(tmp_path: Path) -> None:
    view = plan_ready(of=loaded_plan())
    async with stage(view) as on:
        await on.press("2", "e")
        await _type(on, "folder", str(tmp_path / "out"))
        await on.press("enter")
        assert read_plan(tmp_path / "out" / "plan.json") == loaded_plan()
        names = {p.name for p in (tmp_path / "out").iterdir()}
        assert {"reassignment.json", "rollback.json", "election.json"} <= names
        await on.press("e")
        await _type(on, "folder", str(tmp_path / "out"))
        await on.press("enter")
        assert "already exists; name another folder" in _refused(on)


async def test_in_a_browser_no_files_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(plan_ready()) as on:
        monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
        await on.press("2", "e")
        assert len(on.app.screen_stack) == 1


async def test_a_what_if_is_exported_in_a_form_that_cannot_be_executed(tmp_path: Path) -> None:
    async with stage(what_if()) as on:
        await on.press("2", "e")
        await _type(on, "folder", str(tmp_path))
        await on.press("enter")
        (written,) = tmp_path.iterdir()
        assert json.loads(written.read_text())["kind"] == "plimsoll.what-if"


async def test_c_copies_the_plan_as_commands_of_kafkas_tools() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "c")
        text = on.app.clipboard
        name = f"plimsoll-{HASH[:12]}"
        assert f"--reassignment-json-file {name}.json --execute" in text
        document = text.split("<<'EOF'\n")[1].split("\nEOF\n")[0]
        assert len(json.loads(document)["partitions"]) == len(moves())


# ---- safety

KEYS = ["d", "p", "u", "g", "f", "w", "b", "e", "c", "A", "r", "X", "P", "space", "T"]


@pytest.mark.parametrize(
    "view",
    [plan_ready(Mode.READ_ONLY), with_frontier(Mode.READ_ONLY), what_if(Mode.READ_ONLY)],
    ids=["a plan", "a frontier", "a what-if"],
)
@pytest.mark.slow
async def test_read_only_no_key_of_the_plan_screen_reaches_a_mutating_call(
    view: LoopView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with stage(view, size=(120, 40)) as on:
        await on.press("2")
        for key in KEYS:
            await on.pilot.press(key, *NAME, "enter", "escape")
            await on.press("escape", "2")
        assert on.loop.approved == []
        assert not on.loop.steering.stopping.is_set()
        assert not on.loop.steering.paused


async def test_a_what_if_cannot_be_approved_by_any_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the e of the name opens the form of the export
    async with stage(what_if()) as on:
        await on.press("2", "A")
        on.app.action_approve()
        await on.settle()
        assert len(on.app.screen_stack) == 1
        await on.press(*NAME, "enter", "tab", "enter")
        assert on.loop.approved == []
        await on.press("escape")
        titles = {c.title for c in on.app.get_system_commands(on.app.screen)}
        assert "Approve" not in titles
        bound = on.app.screen.active_bindings["A"]
        assert not bound.enabled
        assert "what-if" in bound.tooltip


async def test_a_what_if_behind_the_dialog_leaves_it_the_real_plan() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A", *NAME)
        await on.show(what_if())
        assert HASH[:12] in str(on.asking.query_one(".title", Static).render())
        await on.press("enter", "enter")
        assert [hash_ for hash_, _ in on.loop.approved] == [HASH]


async def test_an_outdated_plan_cannot_be_approved_and_says_what_changed() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A", *NAME)
        assert on.can_confirm()
        await on.show(outdated())
        assert not on.can_confirm()
        message = str(on.asking.query_one("#refused").render())
        assert "broker 4 is new; orders-0 is on 3, it was on 1" in message
        await on.press("escape", "A")
        assert len(on.app.screen_stack) == 1
        assert "broker 4 is new" in on.app.screen.active_bindings["A"].tooltip


async def test_the_dialog_shows_requests_and_throttle() -> None:
    async with stage(asked()) as on:
        await on.press("A")
        reported = " ".join(str(w.render()) for w in on.asking.query(Static))
        assert "requested: orders-5 stays" in reported
        assert "throttle: none" in reported


@pytest.mark.parametrize(
    ("throttle", "message"),
    [
        (None, "throttle: none"),
        (50_000_000, "throttle: 50.0 MB/s"),
        ("auto", "throttle: follows what clients leave free"),
    ],
)
def test_a_throttle_is_described(throttle: int | str | None, message: str) -> None:
    assert throttle_line(throttle).strip() == message


async def test_during_a_run_no_other_plan_is_requested() -> None:
    async with stage(running(), running=True) as on:
        await on.press("2")
        for key in ("d", "p", "u", "g", "f", "w"):
            await on.press(key)
            assert len(on.app.screen_stack) == 1
            assert "a run is in progress" in on.app.screen.active_bindings[key].tooltip
        assert on.loop.proposals == type(on.loop.proposals)()


async def test_without_a_plan_the_keys_of_moves_are_greyed() -> None:
    async with stage(solving()) as on:
        await on.press("2", "d", "e", "c")
        assert on.loop.proposals.asked == []
        for key in ("d", "e", "c"):
            tooltip = on.app.screen.active_bindings[key].tooltip
            assert tooltip == "there is no plan with moves"


async def _typed_at_once(on: Stage, *keys: str) -> None:
    for key in keys:
        on.app.post_message(Key(key, None))
    # The first time until the keys have started their requests, then until those are done.
    await on.settle()
    await on.settle()


async def test_a_form_asks_once_however_often_enter_is_typed() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "g")
        await _typed_at_once(on, "enter", "enter", "enter")
        assert len(on.loop.proposals.asked) == 1


async def test_closing_a_form_during_a_request_closes_nothing_else() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "g")
        await _typed_at_once(on, "enter", "enter", "escape")
        assert on.app.screen.query("#moves")


async def test_a_form_left_while_it_writes_harms_nothing(tmp_path: Path) -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "e")
        (folder := tmp_path / "file").write_text("")
        await _type(on, "folder", str(folder))
        await _typed_at_once(on, "enter", "escape")
        assert on.app.screen.query("#moves")
        assert folder.read_text() == ""


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("~nobody-has-this-name/x", "there is no such user"),
        ("a\0b", "unprintable"),
        ("a\ud800b", "unprintable"),
        ("x" * 5000, "File name too long"),
        ("/dev/null/x", "Not a directory"),
    ],
)
async def test_an_invalid_folder_is_refused_with_a_message(folder: str, reason: str) -> None:
    for view in (plan_ready(), what_if()):
        async with stage(view) as on:
            await on.press("2", "e")
            await _type(on, "folder", folder)
            await on.press("enter")
            assert reason in _refused(on)


async def test_figures_of_a_large_cluster_are_not_truncated() -> None:
    changes = tuple(
        b.model_copy(update={"replicas_before": 101_100, "replicas_after": 99_900 + i})
        for i, b in enumerate(plan().brokers)
    )
    moves = tuple(
        m.model_copy(
            update={
                "replicas_before": (1011, 1012, 1013),
                "replicas_after": (2021, 2022, 2023),
                "leader_before": 1011,
                "leader_after": 2021,
            }
        )
        for m in plan().moves
    )
    big = plan().model_copy(update={"brokers": changes, "moves": moves})
    async with stage(plan_ready(of=big), size=(160, 50)) as on:
        await on.press("2")
        for selector, expected in (
            ("#after", "101100 → 99900 "),
            ("#moves", "1011,1012,1013 → 2021,2022,2023 * "),
        ):
            table = on.app.screen.query_one(selector, KeyedTable)
            lines = [table.render_line(y).text for y in range(1, 4)]
            assert any(expected in line for line in lines)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_an_empty_plan_explains_itself_within_the_screen(size: tuple[int, int]) -> None:
    async with stage(STATES["level_already"], size=size) as on:
        await on.press("2")
        panel = on.app.screen.query_one("MovesPanel")
        note = panel.query_one(".note")
        assert note.region.height
        assert panel.region.contains_region(note.region)
        assert on.app.screen.query_one("#body").region.contains_region(panel.region)
