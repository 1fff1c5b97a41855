"""Values computed once, and not for each view."""

from dataclasses import replace

from tests.support.tui.loop_views import GOALS, balanced_cluster, judged, log, plan_ready
from tui.viewmodel.brokers.brokers import broker_table
from tui.viewmodel.memoize import memoized_while


def test_a_view_that_differs_in_its_log_alone_has_the_same_table_of_brokers() -> None:
    view = plan_ready()
    before = broker_table(view, GOALS, 100)
    after = broker_table(replace(view, log=log("later")), GOALS, 100)
    assert after is before


def test_other_loads_and_another_width_make_another_table_of_brokers() -> None:
    before = broker_table(plan_ready(), GOALS, 100)
    moved = replace(
        plan_ready(), snapshot=balanced_cluster(), evaluation=judged(balanced_cluster()), plan=None
    )
    after = broker_table(moved, GOALS, 100)
    assert after.rows != before.rows
    assert broker_table(moved, GOALS, 70).columns != after.columns


def test_a_memoized_result_is_recomputed_for_an_equal_but_different_object() -> None:
    @memoized_while(lambda messages, _other: (messages,))
    def made(messages: list[str], other: int) -> list[object]:
        return [*messages, other]

    messages = ["a"]
    assert made(messages, 1) == ["a", 1]
    assert made(messages, 2) == ["a", 1]
    assert made(list(messages), 2) == ["a", 2]
