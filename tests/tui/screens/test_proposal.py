"""The plan as differences: figures, moves, brokers, frontier."""

from dataclasses import replace

import pytest

from control.loop.view import LoopView, Phase
from control.planning.frontier_points import point_of
from control.planning.plan_view import PlanningView, Solving
from model.evaluate import evaluate
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import PlanStatus
from tests.support.tui.loop_views import (
    AT_MS,
    CONNECTING,
    GOALS,
    HASH,
    NEWER_HASH,
    UNREACHABLE,
    balanced_after_run,
    balanced_cluster,
    failed,
    measuring,
    moves,
    plan,
    plan_ready,
    progress,
    skewed,
    solving,
)
from tests.support.tui.plan_views import (
    STATES,
    answered,
    asked,
    awaited,
    leaving_faults,
    loaded_plan,
    outdated,
    still_solving,
    traced,
    what_if,
)
from tui.screen_state import Moment
from tui.viewmodel.brokers.broker_diff import broker_table
from tui.viewmodel.cells import Table, plain
from tui.viewmodel.plan.frontier import (
    PICKED,
    PLAN,
    POINT,
    Scale,
    plot,
    point_text,
    scale_of,
    start_of,
)
from tui.viewmodel.plan.moves import GONE, changes_text, cost_line, move_lines, moves_table, without
from tui.viewmodel.plan.plan_figures import figures
from tui.viewmodel.plan.shown_plan import shown
from tui.viewmodel.plan.wording import MOVES_SHOWN
from tui.viewmodel.sort_filter import Filter, Wish

OTHERS = "filter or sort to see others"


def _figures(view: LoopView, width: int = 110) -> str:
    moment = Moment(view=view, goals=GOALS, now_ms=AT_MS, running=False)
    return "\n".join(plain(line) for line in figures(shown(view), moment, width))


def _cells(table: Table) -> list[list[str]]:
    return [[plain(c).strip() for c in row.cells] for row in table.rows]


# ---- figures


def test_a_plan_shows_its_proof_its_cost_and_what_limited_it() -> None:
    limited = plan().model_copy(update={"limited_by": "20 units of work used up"})
    message = _figures(plan_ready(of=limited))
    for part in (
        "OPTIMAL",
        "imbalance score 12 → 0.1587",
        "bound 0.1587",
        "gap 0 (0% of the possible gain)",
        "4 moves",
        "4 leader changes",
        "33.5 MB to copy",
        "largest deviation in 200% → 2%, out 200% → 2%",
        "limited by: 20 units of work used up",
    ):
        assert part in message


@pytest.mark.parametrize("room", [6, 3, 1])
def test_where_lines_are_few_the_proof_goes_first_and_no_warning_does(room: int) -> None:
    warned = plan().model_copy(update={"warnings": ("sizes are estimated",)})
    view, goals = plan_ready(of=warned), GOALS
    moment = Moment(view=view, goals=goals, now_ms=AT_MS, running=False)
    full = figures(shown(view), moment, 40)
    assert figures(shown(view), moment, 40, len(full)) == full
    lines = [plain(line) for line in figures(shown(view), moment, 40, room)]
    assert len(lines) < len(full)
    words = " ".join(lines)
    assert "imbalance score" not in words
    assert "4 moves" in words
    assert "! sizes are estimated" in words


def test_a_gap_is_also_a_share_of_the_possible_gain() -> None:
    open_plan = plan().model_copy(
        update={"status": PlanStatus.IMPROVED, "objective": 6.0, "bound": 0.0}
    )
    assert "gap 6 (50% of the possible gain)" in _figures(plan_ready(of=open_plan))


def test_the_gap_of_a_plan_that_raises_the_imbalance_is_no_share_of_a_gain() -> None:
    forced = plan().model_copy(update={"objective": 14.0, "bound": 12.0})
    for found, gap in ((forced, "gap 2"), (forced.model_copy(update={"bound": 14.0}), "gap 0")):
        message = _figures(plan_ready(of=found))
        assert gap in message
        assert "possible gain" not in message


def test_a_gap_from_rounding_is_shown_as_zero() -> None:
    result = plan()
    proved = result.model_copy(update={"bound": result.objective * (1 - 1e-9)})
    message = _figures(replace(plan_ready(), plan=proved))
    assert "gap 0 (0% of the possible gain)" in message


@pytest.mark.parametrize("width", [60, 78, 118])
def test_limits_still_exceeded_after_the_plan_are_shown(width: int) -> None:
    lines = _figures(leaving_faults(), width).splitlines()
    assert all(len(line) <= width for line in lines)
    message = " ".join(" ".join(lines).split())
    for part in (
        "! over the limit after the plan:",
        "broker 1 in 3.00 MB/s, limit 1.70 MB/s",
        "broker 2 in 4.00 MB/s, limit 1.70 MB/s",
        "and 1 more",
        "! rack violations not repaired: 1 partition (orders-7)",
        "! the rack of broker 2 is unknown, so the rack rule",
    ):
        assert part in message


def test_a_solve_shows_its_best_so_far_its_bound_its_gap_and_its_time() -> None:
    message = _figures(still_solving())
    for part in ("SOLVING 4 s", "0.2381 with 5 moves", "bound 0.1502", "gap 0.088"):
        assert part in message


def test_a_search_without_result_and_one_that_ends_are_described() -> None:
    begun = PlanningView(solving=Solving(started_at_ms=AT_MS))
    assert "no plan found yet" in _figures(replace(solving(), proposed=begun))
    ending = PlanningView(solving=Solving(started_at_ms=AT_MS, stopping=True))
    assert "ending with the best" in _figures(replace(solving(), proposed=ending))


def test_requests_are_shown_with_the_plan() -> None:
    view = asked()
    assert _figures(view).rstrip().endswith("requested: orders-5 stays")
    asks = view.proposed.asks.dropping(PartitionId(TopicName("orders"), 3))
    more = replace(view, proposed=replace(view.proposed, asks=asks))
    assert "requested: orders-5 stays; orders-3 stays" in _figures(more)


def test_requests_for_the_next_plan_are_not_shown_for_this_one() -> None:
    assert "requested for the next plan: orders-5 stays" in _figures(awaited())


def test_an_outdated_plan_names_what_changed() -> None:
    message = _figures(outdated())
    assert "OUTDATED" in message
    assert "broker 4 is new; " in message
    assert "orders-0 is on 3, it was on 1;" in message


def test_a_plan_in_execution_is_not_outdated_by_its_own_moves() -> None:
    view = replace(outdated(), run=progress())
    moment = Moment(view=view, goals=GOALS, now_ms=AT_MS, running=True)
    reported = [plain(line) for line in figures(shown(view), moment, 110)]
    assert reported[0].startswith(" THIS PLAN  is being executed")
    assert "OUTDATED" not in "".join(reported)
    others = replace(progress(), plan_hash=NEWER_HASH)
    moment = replace(moment, view=replace(view, run=others))
    assert "OUTDATED" in plain(figures(shown(view), moment, 110)[0])


def test_a_competing_rebalancer_is_shown_above_the_plan() -> None:
    view = plan_ready()
    view = replace(view, proposed=replace(view.proposed, rivals=("Another moves.",)))
    assert " REBALANCER  Another moves." in _figures(view)
    assert "REBALANCER" not in _figures(plan_ready())


def test_many_changes_are_counted() -> None:
    changes = tuple(f"broker {i} is gone" for i in range(9))
    many = replace(plan_ready(), proposed=PlanningView(changes=changes))
    assert "and 6 more changes" in _figures(many)


# ---- moves


def test_a_move_shows_change_bytes_gain_and_reason() -> None:
    first = _cells(moves_table(shown(plan_ready()), 110))[0]
    assert first[:5] == ["orders-0", "1 → 2", "11.0 MB", "49%", "49%"]
    assert first[5].startswith("relieves broker 1")


def test_moves_are_listed_by_gain_per_byte_with_the_share_reached_so_far() -> None:
    sizes = {0: 10_000, 1: 0, 2: None, 4: 10}
    of = [
        move.model_copy(update={"gain": 1.0, "bytes_to_copy": size})
        for move, size in zip(moves(), sizes.values(), strict=True)
    ]
    view = plan_ready(of=plan().model_copy(update={"moves": tuple(of)}))
    rows = _cells(moves_table(shown(view), 110))
    assert [row[0] for row in rows] == ["orders-1", "orders-4", "orders-0", "orders-2"]
    assert [row[4] for row in rows] == ["25%", "50%", "75%", "100%"]


def test_changes_since_the_plan_viewed_before_are_marked() -> None:
    first, second, *others = moves()
    elsewhere = second.model_copy(update={"replicas_after": (BrokerId(3), BrokerId(2))})
    since = plan(NEWER_HASH).model_copy(update={"moves": (first, elsewhere, others[0])})
    now = plan().model_copy(update={"moves": (first, second, others[1])})
    table = moves_table(shown(plan_ready(of=now)), 110, since)
    marks = {row[1]: row[0] for row in _cells(table)}
    assert marks == {"orders-0": "", "orders-1": "~", "orders-4": "+", "orders-2": "-"}
    assert changes_text(now, since) == "since the plan seen before: 1 new, 1 changed, 1 removed"
    assert changes_text(now, now) == ""
    # What has changed comes first, and what is no longer planned last, however much it is.
    keys = [row.key for row in table.rows]
    assert keys == ["orders-1", "orders-4", "orders-0", f"{GONE}orders-2"]


def test_many_moves_are_counted_and_all_of_them_are_sorted_and_filtered() -> None:
    many = tuple(moves()[0].model_copy(update={"partition": i}) for i in range(MOVES_SHOWN + 7))
    view = plan_ready(of=plan().model_copy(update={"moves": many}))
    table = moves_table(shown(view), 110)
    assert len(table.rows) == MOVES_SHOWN
    assert table.note == f"the first {MOVES_SHOWN} of {MOVES_SHOWN + 7} moves; " + OTHERS
    last = moves_table(shown(view), 110, wish=Wish(sort="partition"))
    assert last.rows[0].key == f"orders-{MOVES_SHOWN + 6}"
    found = moves_table(shown(view), 110, wish=Wish(filter=Filter(f"orders-{MOVES_SHOWN + 6}")))
    assert [row.key for row in found.rows] == [f"orders-{MOVES_SHOWN + 6}"]
    assert found.note == f"1 of {MOVES_SHOWN + 7} moves"


@pytest.mark.parametrize("width", [75, 115, 195])
def test_moves_fill_the_width_and_cells_fit(width: int) -> None:
    table = moves_table(shown(plan_ready()), width)
    assert sum(c.width for c in table.columns) == width
    for row in table.rows:
        for column, drawn in zip(table.columns, row.cells, strict=True):
            assert len(plain(drawn)) <= column.width


def test_the_effect_of_removing_a_move_is_shown_by_broker_and_goal() -> None:
    """As the evaluator judges the plan without it."""
    made = loaded_plan()
    first = made.moves[0]
    fewer = evaluate(skewed(), GOALS, made.moves[1:])
    rows = {(broker, key): row for broker, key, *row in without(first, made)}
    assert {key for _, key in rows} == {"net_in", "net_out"}
    for broker in (*first.removed, *first.added):
        off = fewer.deviations["net_in"][broker]
        assert rows[str(broker), "net_in"][2] == f"{100 * off:+.1f}%"


def test_the_cost_of_a_move_is_shown_only_for_its_own_placement() -> None:
    now = shown(plan_ready(of=loaded_plan()))
    assert "of the imbalance score" in cost_line(loaded_plan().moves[0], now)
    other = replace(now, snapshot=balanced_cluster())
    assert cost_line(loaded_plan().moves[0], other) == ""


def test_without_a_selected_move_the_detail_is_explained() -> None:
    lines = move_lines(None, shown(plan_ready()), 40)
    assert "Select a move" in plain(lines[0])


# ---- brokers


def test_brokers_show_deviations_now_and_after_the_plan() -> None:
    rows = _cells(broker_table(plan(), 42))
    # The one that deviates most now comes first, as on the overview.
    assert rows[0] == ["1", "!+200% → -1%", "!+200% → -1%"]
    assert rows[2] == ["3", "<-100% → +2%", "<-100% → +2%"]


def test_replicas_and_loads_are_shown_if_they_fit() -> None:
    narrow = [c.key for c in broker_table(plan(), 60).columns]
    assert narrow == ["broker", "replicas", "net_in", "net_out", "worst"]
    assert [c.key for c in broker_table(plan(), 110).columns] == [
        "broker",
        "replicas",
        "net_in load",
        "net_in",
        "net_out load",
        "net_out",
    ]


def test_a_drained_broker_has_no_deviation() -> None:
    drained = shown(what_if()).plan
    assert _cells(broker_table(drained, 42))[2] == ["3", "drained", "drained"]
    # Nor a bar of its own.
    assert _cells(broker_table(drained, 46))[2] == ["3", "drained", "drained", ""]


# ---- why there are no moves


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (CONNECTING, "waiting for the cluster to answer"),
        (UNREACHABLE, "waiting for the cluster to answer"),
        (measuring(), "loads are still being measured"),
        (solving(), "Planning"),
        (replace(balanced_after_run(), run=None), "When one leaves it, a plan is made"),
        (failed(), "plimsoll has stopped"),
        (
            replace(solving(), phase=Phase.NO_PLAN, message="no placement is allowed: no room"),
            "There is no plan: no placement is allowed: no room.",
        ),
        (STATES["level_already"], "ALREADY BALANCED\n- every broker is within"),
        (STATES["no_improvement"], "NO IMPROVEMENT WORTH ITS COST\n- no allowed"),
        (STATES["no_plan_in_time"], "NO PLAN IN TIME\n- no placement"),
        (
            STATES["infeasible"],
            "these cannot all be satisfied\n- broker 3 is draining\n"
            "- the budget allows 2 moves\n\nWhat would help, "
            "cheapest first:\n- it would be feasible with a",
        ),
    ],
)
def test_an_empty_plan_is_explained(view: LoopView, message: str) -> None:
    table = moves_table(shown(view), 110)
    assert not table.rows
    assert message in table.why_empty


def test_an_old_answer_is_not_shown_once_the_cluster_is_balanced() -> None:
    old = answered(PlanStatus.INFEASIBLE, "Too little space")
    level = replace(old, phase=Phase.BALANCED)
    assert "every broker is within its tolerance band" in shown(level).why_none


def test_brokers_that_stay_outside_are_named_with_the_measures_of_other_screens() -> None:
    off = plan().brokers[0].model_copy(update={"deviation_after": {"net_out": 0.5}})
    of = plan().model_copy(update={"brokers": (off,), "tolerance_unmet": "moves are limited"})
    assert "broker 1 is +50% in bytes out (tolerance" in _figures(plan_ready(of=of))


# ---- frontier


def test_every_point_of_the_frontier_is_drawn_and_the_picked_one_stands_out() -> None:
    frontier = traced().frontier
    lines = [plain(line) for line in plot(frontier, 0, 60, 20)]
    assert len(lines) == 20
    assert all(len(line) <= 60 for line in lines)
    text = "".join(lines)
    assert text.count(PICKED) == 1
    assert text.count(POINT) == len(frontier.points) - 1


def test_the_plan_is_marked_on_the_curve() -> None:
    frontier = traced().frontier
    text = "".join(plain(line) for line in plot(frontier, 0, 60, 20, 1))
    assert text.count(PLAN[0]) == 1
    text = "".join(plain(line) for line in plot(frontier, 1, 60, 20, 1))
    assert text.count(PLAN[0]) == 0


def test_the_axis_is_logarithmic() -> None:
    scale = Scale(low=0.01, high=1.0)
    assert [scale.row(v, 21) for v in (1.0, 0.1, 0.01, 0.0, 5.0)] == [0, 10, 20, 20, 0]
    labels = scale.labels(21)
    assert (labels[0], labels[10], labels[20]) == ("1", "0.1", "≤0.01")


@pytest.mark.parametrize("width", [21, 50, 78, 120])
@pytest.mark.parametrize("most", [0.7, 3.4, 12.3, 99.7, 1234.0, 54321.0, 1e6])
def test_the_axis_of_the_cost_has_a_unit_and_round_numbers_that_do_not_touch(
    width: int, most: float
) -> None:
    frontier = traced().frontier
    times = most / max(p.cost for p in frontier.points)
    points = tuple(p.model_copy(update={"cost": p.cost * times}) for p in frontier.points)
    axis = plot(frontier.model_copy(update={"points": points}), 0, width, 10)[-2:]
    line, numbers = map(plain, axis)
    assert (line.split()[0], *numbers.split()[:2]) == ("cost,", "moves", "0")
    assert len(line) == len(numbers) == width
    shown = numbers.split()[1:]
    assert line.count("┴") == len(shown) >= 2
    read = [float(number.replace(",", "")) for number in shown]
    assert read[1:] == pytest.approx([read[1] * at for at in range(1, len(read))])
    assert f"{read[1]:e}"[0] in "125"
    assert read[-1] <= most


def test_the_ends_of_the_logarithmic_axis_are_round() -> None:
    frontier = traced().frontier
    scale = scale_of(frontier)
    assert {f"{end:e}"[:2] for end in scale} <= {"1.", "2.", "5."}
    assert all(scale.low <= p.balance <= scale.high for p in frontier.points if p.balance > 0)
    assert [label for label in Scale(low=0.02, high=10.0).labels(12) if label] == [
        *("10", "1", "0.1", "≤0.02")
    ]


def test_without_space_the_frontier_is_not_drawn() -> None:
    (line,) = plot(traced().frontier, 0, 12, 3)
    assert "Too little space" in plain(line)


def test_a_point_shows_cost_imbalance_and_bound() -> None:
    frontier = traced().frontier
    assert frontier.chosen is not None
    message = " ".join(point_text(frontier, frontier.chosen, 60, frontier.chosen))
    point = frontier.points[frontier.chosen]
    assert f"{frontier.chosen + 1} of {len(frontier.points)} (" in message
    assert f"the plan): {point.moves} new replicas" in message
    assert f"below {point.bound:.4g}" in message


def test_only_the_point_that_is_the_plan_is_called_so() -> None:
    """The point of the same price may be another plan."""
    result = traced()
    frontier = result.frontier
    plans = {at: a.best for at, a in enumerate(result.answers) if a and a.best}
    for at, best in plans.items():
        assert point_of(result, best) == start_of(result, best) == at
        messages = [
            " ".join(point_text(frontier, picked, 60, point_of(result, best)))
            for picked in range(len(frontier.points))
        ]
        assert [i for i, w in enumerate(messages) if "the plan)" in w] == [at]
    other = plan().model_copy(update={"moves": plan().moves[1:]})
    assert point_of(result, other) is None
    assert point_of(result, None) is None


def test_the_real_plan_is_titled_with_its_hash() -> None:
    assert shown(plan_ready()).title(f"Plan {HASH[:12]}") == f"Plan {HASH[:12]}"
