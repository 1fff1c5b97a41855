"""The map of brokers."""

from dataclasses import replace

import pytest
from rich.cells import cell_len

from control.loop.view import LoopView
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, LogDir
from tests.support.tui.app_harness import stage
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import CONNECTING, GOALS, balanced_after_run, solving
from tui.screens.overview import OverviewScreen
from tui.themes import ascii_text
from tui.viewmodel.brokers.broker_map import DEAD, broker_map
from tui.viewmodel.cells import Role, plain
from tui.widgets.broker_detail import BrokerDetail
from tui.widgets.broker_panel import BrokerPanel


def _with(deviations: dict[int, float], view: LoopView | None = None) -> LoopView:
    view = view or solving()
    assert view.evaluation is not None
    by = {BrokerId(broker): value for broker, value in deviations.items()}
    return replace(view, evaluation=replace(view.evaluation, deviations={"net_in": by}))


def test_each_broker_has_a_cell_in_the_row_of_its_rack() -> None:
    drawn = broker_map(_with({1: 0.62, 2: -0.48, 3: 0.05}), GOALS, 80, 10)
    assert [plain(line).split() for line in drawn.lines] == [
        ["a", "1", "+62%"],
        ["b", "2", "-48%"],
        ["c", "3", "·"],
    ]
    assert drawn.percent


def test_with_little_room_deviations_are_in_tens_of_percent() -> None:
    view = _with({1: 0.62, 2: -0.48, 3: 0.05})
    drawn = broker_map(view, GOALS, 9, 3)
    assert [plain(line).split() for line in drawn.lines] == [
        ["a", "1", "+6"],
        ["b", "2", "-5"],
        ["c", "3", "·"],
    ]
    assert not drawn.percent
    many = broker_map(_with({0: 0.58, 1: 3.0}, crowded(300, 50, 20_000)), GOALS, 78, 18)
    assert plain(many.lines[0]).split()[1].startswith("+6")


def test_only_brokers_outside_the_band_have_a_colour() -> None:
    drawn = broker_map(_with({1: 3.0, 2: -0.48, 3: 0.05}), GOALS, 80, 10)
    roles = [line[3].role for line in drawn.lines]
    assert roles == [Role.OVER, Role.UNDER, Role.MUTED]
    assert plain(drawn.lines[0]).split()[-1] == "+300%"


def test_a_dead_broker_is_an_alarm() -> None:
    view = balanced_after_run()
    first, *others = view.brokers
    dead = first.model_copy(update={"state": BrokerState.DEAD})
    drawn = broker_map(replace(view, brokers=(dead, *others)), GOALS, 80, 10)
    assert (drawn.lines[0][3].text.strip(), drawn.lines[0][3].role) == (DEAD, Role.ALARM)


@pytest.mark.parametrize(("width", "height", "percent"), [(200, 40, True), (60, 9, False)])
def test_brokers_in_trouble_or_without_new_load_have_marks_and_a_legend(
    width: int, height: int, percent: bool
) -> None:
    view = crowded(60, 6, 2000)
    failed = LogDir(path="/a", failed=True)
    updates: list[dict[str, object]] = [
        {"state": BrokerState.DEAD},
        {"log_dirs": (failed,)},
        {"state": BrokerState.SLOW},
        {"state": BrokerState.DRAINING},
        {"state": BrokerState.CORDONED},
        {"state": BrokerState.DEMOTED},
        {"state": BrokerState.MAINTENANCE},
        {"state": BrokerState.EXCLUDED},
    ]
    first, rest = view.brokers[: len(updates)], view.brokers[len(updates) :]
    changed = [b.model_copy(update=u) for b, u in zip(first, updates, strict=True)]
    drawn = broker_map(replace(view, brokers=(*changed, *rest)), GOALS, width, height)
    assert drawn.percent is percent
    text = "\n".join(map(plain, drawn.lines))
    marks = (DEAD, "D!", "S!", "dr", "co", "de", "ma", "ex")
    assert all(text.count(mark) == 1 for mark in marks)
    assert all(len(plain(line)) <= width for line in drawn.legend)
    assert "  ".join(map(plain, drawn.legend)) == (
        "†† dead  D! disk failed  S! slow  dr draining  co cordoned  de demoted  "
        "ma in maintenance  ex excluded"
    )
    # Each is a word of its own without colours and in ASCII, too.
    assert len({ascii_text(mark) for mark in marks}) == len(marks)
    assert not broker_map(view, GOALS, 200, 40).legend


@pytest.mark.parametrize(("width", "height"), [(58, 8), (78, 18), (118, 20), (198, 40)])
def test_three_hundred_brokers_fit_into_one_picture(width: int, height: int) -> None:
    view = crowded(300, 50, 20_000)
    drawn = broker_map(view, GOALS, width, height)
    assert all(len(plain(line)) <= width for line in drawn.lines)
    assert sorted(broker for row in drawn.rows for broker in row) == list(range(300))
    assert len(drawn.lines) <= max(height, 21)


def test_the_arrows_stop_at_the_edges() -> None:
    drawn = broker_map(crowded(300, 50, 20_000), GOALS, 118, 20)
    first, last = drawn.rows[0][0], drawn.rows[-1][-1]
    assert drawn.beside(first, -1, 0) == drawn.beside(first, 0, -1) == first
    assert drawn.beside(last, 1, 0) == drawn.beside(last, 0, 1) == last
    assert drawn.beside(first, 1, 0) == drawn.rows[0][1]
    assert drawn.beside(None, 0, 1) == first


def test_before_there_are_brokers_the_map_is_empty() -> None:
    drawn = broker_map(CONNECTING, GOALS, 80, 10)
    assert drawn.rows == ()
    assert drawn.beside(None, 1, 0) is None


async def test_m_shows_the_map_and_the_table_with_the_same_broker() -> None:
    async with stage(crowded(300, 50, 20_000), size=(120, 40)) as on:
        screen = on.app.screen
        assert isinstance(screen, OverviewScreen)
        panel = screen.query_one(BrokerPanel)
        first = panel.selected
        await on.press("m")
        assert panel.selected == first
        await on.press("right", "down", "left", "down")
        selected = panel.selected
        assert selected != first
        title = screen.query_one(BrokerDetail).border_title or ""
        assert title.startswith(f"Broker {selected}")
        await on.press("m")
        assert panel.selected == selected


async def test_a_few_brokers_have_no_map() -> None:
    async with stage(solving(), size=(120, 40)) as on:
        assert "m" not in on.app.screen.active_bindings
        await on.press("m")
        assert [n.message for n in on.app._notifications] == ["the map is for 40 brokers or more"]


async def test_the_title_of_the_map_names_the_unit_of_its_cells_at_once() -> None:
    async with stage(crowded(60, 50, 2_000), size=(120, 40)) as on:
        panel = on.app.screen.query_one(BrokerPanel)
        await on.press("m")
        assert "tens of percent" not in str(panel.border_title)
        await on.pilot.resize_terminal(60, 16)
        await on.settle()
        assert "tens of percent" in str(panel.border_title)


@pytest.mark.parametrize("rack", ["東京リージョン-ゾーン", "東京", "a"])
def test_racks_named_in_wide_letters_keep_their_brokers_in_place(rack: str) -> None:
    view = balanced_after_run()
    first, *others = view.brokers
    wide = first.model_copy(update={"rack": rack})
    drawn = broker_map(replace(view, brokers=(wide, *others)), GOALS, 60, 10)
    widths = {cell_len("".join(span.text for span in line)) for line in drawn.lines}
    starts = {cell_len(line[0].text) for line in drawn.lines}
    assert len(widths) == 1
    assert starts == {drawn.label}


async def test_a_click_selects_a_broker() -> None:
    async with stage(crowded(300, 50, 20_000), size=(120, 40)) as on:
        await on.press("m")
        await on.pilot.click("#map", offset=(15, 2))
        await on.settle()
        panel = on.app.screen.query_one(BrokerPanel)
        drawn = broker_map(on.app.moment.view, GOALS, 116, 18)
        assert panel.selected == drawn.at(14, 2)


@pytest.mark.parametrize("height", [2, 5, 9])
def test_where_rows_do_not_fit_the_selected_one_is_drawn_and_the_others_are_counted(
    height: int,
) -> None:
    view = crowded(300, 50, 2000)
    for selected in (view.brokers[0].id, view.brokers[149].id, view.brokers[-1].id):
        drawn = broker_map(view, GOALS, 40, height, selected)
        assert len(drawn.lines) == height
        row = next(y for y, row in enumerate(drawn.rows) if selected in row)
        assert row in drawn.drawn
        shown = [broker for y in drawn.drawn for broker in drawn.rows[y]]
        assert plain(drawn.lines[-1]) == f"{300 - len(shown)} more brokers: up and down"
        at = drawn.label + drawn.rows[row].index(selected) * drawn.cell
        assert drawn.at(at, row - drawn.drawn.start) == selected
        assert drawn.at(at, height - 1) is None
