"""One broker in detail, at any given width and height."""

import pytest

from control.loop.view import LoopView
from model.ids import BrokerId
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import AT_MS, GOALS, estimated, judged, plan_ready, skewed
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_detail import broker_detail
from tui.viewmodel.brokers.load_history import KEPT, Trail
from tui.viewmodel.cells import plain


def _moment(view: LoopView) -> Moment:
    trail = Trail()
    for seconds in range(5):
        trail = trail.with_sample(AT_MS + 1000 * seconds, judged(skewed()))
    return Moment(view=view, goals=GOALS, now_ms=AT_MS, running=False, trail=trail)


def _lines(view: LoopView, width: int, height: int) -> list[str]:
    result = broker_detail(_moment(view), BrokerId(1), width, height)
    return [plain(line) for line in result]


@pytest.mark.parametrize("width", [34, 36, 58, 63, 64, 78, 140])
@pytest.mark.parametrize("height", [1, 3, 8, 40])
@pytest.mark.parametrize("view", [plan_ready(), estimated(), crowded(3, 700, 2000)])
def test_lines_fit(view: LoopView, width: int, height: int) -> None:
    lines = _lines(view, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_a_sparkline_is_below_or_beside_its_figures() -> None:
    assert _lines(plan_ready(), 36, 20)[1].endswith("█████")
    assert _lines(plan_ready(), 78, 20)[0].endswith("█████")


def test_a_known_capacity_is_shown_with_the_share_in_use() -> None:
    assert _lines(estimated(), 36, 20)[3].startswith("125% of 4.00 MB/s")


def test_a_broker_missing_from_the_snapshot_is_reported_as_unknown() -> None:
    result = broker_detail(_moment(plan_ready()), BrokerId(99), 36, 20)
    assert "This broker's load is not known" in plain(result[0])


def test_the_history_drops_its_oldest_samples() -> None:
    trail, judgement = Trail(), judged(skewed())
    for second in range(KEPT + 5):
        trail = trail.with_sample(AT_MS + 1000 * second, judgement)
    assert len(trail.samples) == KEPT
    assert trail.span_s == KEPT - 1
    assert trail.of(BrokerId(99), "net_in") == [None] * KEPT
