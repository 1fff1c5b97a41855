"""The gauges of a run: each figure with the limit of its rule."""

from dataclasses import replace

import pytest

from model.ids import BrokerId
from model.run_health import FreeDisk
from model.stop_rules import Reaction, StopRules
from tests.support.tui.loop_views import health, lag
from tui.viewmodel.cells import Role, plain
from tui.viewmodel.run.health_gauges import NO_RULE, HealthGauge, gauge_lines, gauges_of

RULES = StopRules()


def _gauges(**changes: object) -> dict[str, HealthGauge]:
    found = gauges_of(replace(health(), **changes), lag(), RULES)  # type: ignore[arg-type]
    return {one.name: one for one in found}


def test_each_figure_has_its_limit_beside_it() -> None:
    found = {name: f"{one.value}, {one.limit}" for name, one in _gauges().items()}
    assert found == {
        "request latency": "9 ms, pauses at 1.00 s",
        "consumer lag": "0.40 s, most 1.10 s, no stop rule",
        "offline": "0, stops at 1",
        "under-replicated": "0, stops at 1",
        "under min ISR": "0, stops at 1",
        "spare disk": "43.0 GB on broker 3, pauses at 0",
    }


def test_latency_is_limited_by_the_first_answers_where_they_were_slow() -> None:
    latency = _gauges(first_answer_s=0.4, answer_s=1.0)["request latency"]
    assert latency.limit == "pauses at 2.00 s"
    assert latency.share == 0.5


@pytest.mark.parametrize(
    ("answer_s", "role"), [(0.1, Role.PLAIN), (0.6, Role.UNDER), (1.2, Role.OVER)]
)
def test_a_gauge_has_a_colour_from_half_of_its_limit(answer_s: float, role: Role) -> None:
    assert _gauges(answer_s=answer_s)["request latency"].role is role


def test_a_rule_that_is_off_is_no_limit() -> None:
    rules = StopRules(disk=Reaction.OFF, under_replicated=Reaction.ROLL_BACK)
    found = {one.name: one for one in gauges_of(health(), None, rules)}
    assert (found["spare disk"].limit, found["spare disk"].share) == (NO_RULE, None)
    assert found["under-replicated"].limit == "rolls back at 1"
    assert found["consumer lag"].value == "unknown"


def test_a_disk_below_its_reserve_is_full() -> None:
    disk = FreeDisk(broker=BrokerId(3), free_bytes=-2_000_000_000, first_bytes=10**10)
    gauge = _gauges(disk=disk)["spare disk"]
    assert gauge.value == "-2.00 GB on broker 3"
    assert (gauge.share, gauge.role) == (1.0, Role.OVER)


def test_without_the_right_to_see_disks_there_is_no_gauge_of_them() -> None:
    assert "spare disk" not in _gauges(disk=None)


@pytest.mark.parametrize("width", [56, 76, 116, 156, 196])
def test_no_gauge_is_cut_and_each_shows_all_figures(width: int) -> None:
    lines = [plain(line) for line in gauge_lines(gauges_of(health(), lag(), RULES), width)]
    assert all(len(line) <= width for line in lines)
    together = " ".join(lines)
    disk = "43.0 GB on broker 3"
    for words in ("9 ms, pauses at 1.00 s", "0.40 s, most 1.10 s", disk, "0, stops"):
        assert words in together


def test_where_space_is_short_what_is_close_to_its_limit_comes_first() -> None:
    found = gauges_of(replace(health(), answer_s=0.9, under_min_isr=2), lag(), RULES)
    first, *_ = gauge_lines(found, 56)
    assert plain(first).startswith("under min ISR 2, stops at 1")
