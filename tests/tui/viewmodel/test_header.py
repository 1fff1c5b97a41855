"""The header: cluster, age of the data, phase."""

from dataclasses import replace

import pytest

from control.loop.view import LoopView, Mode, Phase
from model.ids import BrokerId
from model.run import RunState
from model.snapshot.replication import Replication
from model.snapshot.snapshot import BrokerState
from tests.support.tui.large_clusters import crowded, with_states
from tests.support.tui.loop_views import (
    AT_MS,
    CLUSTER_ID,
    CONNECTING,
    GOALS,
    UNREACHABLE,
    balanced_after_run,
    disconnected,
    estimated,
    failed,
    plan,
    plan_ready,
    progress,
    running,
)
from tests.support.tui.plan_views import awaited, still_solving
from tui.screen_state import Moment
from tui.viewmodel.cells import plain
from tui.viewmodel.disabled_reasons import refusal
from tui.viewmodel.header import header
from tui.viewmodel.plan.approval import balance


def _moment(
    view: LoopView, *, later_s: int = 0, run: bool = False, leaving: bool = False
) -> Moment:
    return Moment(
        view=view, goals=GOALS, now_ms=AT_MS + 1000 * later_s, running=run, leaving=leaving
    )


def _lines(moment: Moment, width: int = 118) -> list[str]:
    return [plain(line) for line in header(moment, width)]


def test_the_first_line_names_cluster_mode_data_and_what_is_wrong() -> None:
    assert _lines(_moment(plan_ready()))[0] == (
        f"demo {CLUSTER_ID}  3 brokers · 3 racks  APPROVE  data 2 s old  100% measured  "
        "offline 0 · under-replicated 0"
    )


def test_a_narrow_header_shortens_the_id_and_keeps_the_rest() -> None:
    first = _lines(_moment(plan_ready()), 78)[0]
    assert first.startswith("demo MkU3OEVB…  APPROVE")
    assert first.endswith("offline 0 · URP 0")


def test_a_cluster_without_a_name_is_shown_by_its_id() -> None:
    view = replace(plan_ready(), cluster_name=CLUSTER_ID[:8])
    assert _lines(_moment(view))[0].startswith(f"{CLUSTER_ID}  3 brokers · 3 racks  APPROVE")


@pytest.mark.parametrize("width", [58, 78, 118])
def test_degraded_partitions_are_marked_at_any_width(width: int) -> None:
    lacking = Replication(under_replicated=2, offline=0)
    lines = _lines(_moment(replace(plan_ready(), replication=lacking)), width)
    assert "  APPROVE  ! 2 under-replicated" in lines[0]
    assert "URP 0" not in "".join(lines)
    assert "data 2 s old" in lines[0] + lines[1]


def test_partitions_without_leader_are_named_apart() -> None:
    lacking = Replication(under_replicated=1200, offline=3)
    first = _lines(_moment(replace(plan_ready(), replication=lacking)), 78)[0]
    assert "APPROVE  ! 3 OFFLINE  ! 1,200 under-replicated" in first


@pytest.mark.parametrize("width", [58, 78, 118])
def test_partitions_below_min_isr_are_named_at_any_width(width: int) -> None:
    lacking = Replication(under_replicated=2, offline=0, below_min_isr=1)
    lines = _lines(_moment(replace(plan_ready(), replication=lacking)), width)
    assert "! 1 BELOW MIN ISR" in lines[0] + lines[1]
    assert "! 2 under-replicated" in lines[0] + lines[1]


def test_zero_under_replicated_is_shown_beside_offline_partitions() -> None:
    lacking = Replication(under_replicated=0, offline=3)
    first = _lines(_moment(replace(plan_ready(), replication=lacking)), 118)[0]
    assert "! 3 OFFLINE" in first
    lines = _lines(_moment(replace(plan_ready(), replication=lacking)), 118)
    assert "under-replicated 0" in lines[1]
    assert "offline 0" not in "".join(lines)


def test_counts_are_shortened_before_they_are_left_out() -> None:
    shown = {w: _lines(_moment(plan_ready()), w)[0] for w in range(120, 70, -1)}
    long = [w for w, line in shown.items() if "offline 0 · under-replicated 0" in line]
    short = [w for w, line in shown.items() if "offline 0 · URP 0" in line]
    assert long
    assert short
    assert sorted((*long, *short)) == list(range(min(short), 121))


def test_unmeasured_loads_are_called_estimated() -> None:
    assert "40% measured, rest estimated" in _lines(_moment(estimated()))[1]


def test_age_grows_without_new_views_and_stale_data_are_marked() -> None:
    assert "data 12 s old" in _lines(_moment(plan_ready(), later_s=10))[0]
    assert "STALE 32 s old" in _lines(_moment(plan_ready(), later_s=30))[0]
    assert "STALE 5 min 02 s old" in _lines(_moment(plan_ready(), later_s=300))[0]


@pytest.mark.parametrize("width", [58, 78, 118])
def test_stale_data_are_marked_beside_any_trouble(width: int) -> None:
    view = with_states(dict.fromkeys(range(7), BrokerState.DEAD), crowded(60, 50, 500))
    lacking = Replication(under_replicated=1200, offline=30, below_min_isr=120)
    lines = _lines(_moment(replace(view, replication=lacking), later_s=3600), width)
    assert "STALE 1 h 00 min old" in "\n".join(lines)
    assert all(len(line) <= width for line in lines)


def test_a_clock_behind_the_brokers_gives_no_negative_age() -> None:
    assert "data 0 s old" in _lines(_moment(plan_ready(), later_s=-60))[0]


@pytest.mark.parametrize("width", [78, 118])
def test_the_time_of_a_decision_outlasts_its_message(width: int) -> None:
    view = replace(
        plan_ready(),
        phase=Phase.MEASURING,
        message="worst broker +43 %; the last run ended 20 s ago; the pause between runs is 1800 s",
        reconsidered="not before 21:05:30Z",
    )
    (line,) = (text for text in _lines(_moment(view), width) if "MEASURING" in text)
    assert line.startswith(" MEASURING  worst broker +43 %")
    assert line.endswith("; reconsidered not before 21:05:30Z")
    assert len(line) <= width
    assert view.sentence(AT_MS) == f"{view.message}; reconsidered not before 21:05:30Z"


def test_a_plan_of_auto_that_waits_says_why_and_when_it_is_reconsidered() -> None:
    waits = "waiting for approval: rule_violated is set to ask"
    view = replace(plan_ready(), message=waits, reconsidered="when someone approves the plan")
    before, after = _lines(_moment(plan_ready())), _lines(_moment(view))
    assert after == [*before, f" {waits}; reconsidered when someone approves the plan"]


def test_the_second_line_says_phase_and_message() -> None:
    assert _lines(_moment(CONNECTING)) == [
        "demo  APPROVE  no data yet",
        " CONNECTING  waiting for the first answer of the cluster",
    ]


def test_a_search_shows_its_elapsed_time() -> None:
    assert _lines(_moment(still_solving()))[2] == " SOLVING 4 s  the cluster is uneven"


def test_a_run_shows_its_share() -> None:
    assert _lines(_moment(running(), run=True))[2].startswith(" RUNNING 46% ")


def test_the_share_of_a_run_that_has_ended_is_not_that_of_the_next() -> None:
    view = replace(running(), run=progress(RunState.DONE))
    assert _lines(_moment(view, run=True))[2].startswith(" RUNNING  ")


def test_a_stopping_run_is_shown_as_such() -> None:
    view = replace(running(), run=progress(RunState.STOPPING))
    assert _lines(_moment(view, run=True))[2].startswith(" STOPPING 46% ")


def test_quitting_shows_what_it_waits_for() -> None:
    second = _lines(_moment(running(), run=True, leaving=True))[2]
    assert second == " STOPPING 46%  quitting once the run has stopped"


@pytest.mark.parametrize("view", [UNREACHABLE, failed()])
def test_errors_are_shown_in_full_over_several_lines(view: LoopView) -> None:
    lines = _lines(_moment(view), 70)[1 if view.snapshot is None else 2 :]
    assert len(lines) > 1
    message = " ".join(" ".join(lines).split())
    assert message == f"{view.phase.value.upper()} {view.sentence(AT_MS)}"


@pytest.mark.parametrize(
    ("later_s", "message"),
    [
        (0, "attempt 4 in 5 s"),
        (1, "attempt 4 in 4 s"),
        (4, "attempt 4 in 1 s"),
        (5, "attempt 4 in progress"),
        (60, "attempt 4 in progress"),
        (-3600, "attempt 4 in 5 s"),
    ],
)
def test_the_seconds_to_the_next_attempt_tick_down(later_s: int, message: str) -> None:
    moment = _moment(disconnected(), later_s=later_s)
    assert _lines(moment)[2].endswith(f"within 10 s; {message}")


def test_a_full_sentence_is_followed_by_the_next_attempt() -> None:
    lines = _lines(_moment(UNREACHABLE), 200)
    assert lines[1].endswith("that the brokers run; attempt 2 in 5 s")


def test_a_failed_loop_shows_no_next_attempt() -> None:
    view = replace(disconnected(), phase=Phase.FAILED)
    assert "attempt" not in " ".join(_lines(_moment(view)))


def test_other_messages_stay_on_one_line() -> None:
    view = replace(plan_ready(), phase=Phase.SOLVING, message="the cluster is uneven " * 3)
    lines = _lines(_moment(view), 50)
    assert len(lines) == 3
    assert lines[2].endswith("…")


# ---- refused actions


@pytest.mark.parametrize(
    ("action", "moment", "reason"),
    [
        ("approve", _moment(plan_ready(Mode.READ_ONLY)), "--allow-changes"),
        ("approve", _moment(CONNECTING), "no plan with moves"),
        (
            "approve",
            _moment(plan_ready(of=plan().model_copy(update={"moves": ()}))),
            "no plan with moves",
        ),
        ("approve", _moment(running(), run=True), "a run is in progress"),
        ("approve", _moment(replace(plan_ready(), phase=Phase.FAILED)), "has stopped"),
        ("approve", _moment(awaited()), "another plan is being computed"),
        ("stop_run", _moment(running()), "no run is in progress"),
        ("pause_run", _moment(running()), "no run is in progress"),
        (
            "pause_run",
            _moment(replace(running(), run=progress(RunState.STOPPING)), run=True),
            "being stopped",
        ),
        ("stop_run", _moment(plan_ready(Mode.READ_ONLY)), "--allow-changes"),
        ("solve_again", _moment(CONNECTING), "no loads have been measured"),
        ("solve_again", _moment(running(), run=True), "a run is in progress"),
        ("solve_again", _moment(failed()), "has stopped"),
    ],
)
def test_a_refused_action_has_a_reason(action: str, moment: Moment, reason: str) -> None:
    assert reason in (refusal(action, moment) or "")


@pytest.mark.parametrize(
    ("action", "moment"),
    [
        ("approve", _moment(plan_ready())),
        ("stop_run", _moment(running(), run=True)),
        ("solve_again", _moment(plan_ready(Mode.READ_ONLY))),
        ("quit", _moment(failed())),
    ],
)
def test_possible_actions_are_not_refused(action: str, moment: Moment) -> None:
    assert refusal(action, moment) is None


@pytest.mark.parametrize("width", [58, 78, 118, 198])
def test_dead_and_slow_brokers_are_named_at_any_width(width: int) -> None:
    view = with_states({2: BrokerState.DEAD, 3: BrokerState.SLOW}, plan_ready())
    lines = _lines(_moment(view), width)
    assert "APPROVE  ! broker 2 DEAD" in lines[0]
    assert "! broker 3 SLOW" in lines[0] + lines[1]
    assert "worst alive: broker 1, bytes in" in "\n".join(lines)


@pytest.mark.parametrize("width", [58, 78])
def test_no_trouble_is_left_out_where_there_is_much_of_it(width: int) -> None:
    view = with_states(dict.fromkeys(range(7), BrokerState.DEAD), crowded(60, 50, 500))
    lacking = Replication(under_replicated=1200, offline=30, below_min_isr=120)
    lines = _lines(_moment(replace(view, replication=lacking)), width)
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    for words in ("brokers 0, 1, 2 and 4 more DEAD", "30 OFFLINE", "120 BELOW MIN ISR", "1,200 un"):
        assert f"! {words}" in text


@pytest.mark.parametrize("width", [58, 78, 118])
def test_a_cluster_of_dead_brokers_does_not_read_as_one_with_too_little_load(width: int) -> None:
    view = with_states(dict.fromkeys((1, 2, 3), BrokerState.DEAD), plan_ready())
    lines = _lines(_moment(view), width)
    assert "! brokers 1, 2, 3 DEAD" in lines[0] + lines[1]
    assert " NO BROKER  left to hold load: 3 brokers, dead" in lines
    states = {1: BrokerState.DEAD, 2: BrokerState.DRAINING, 3: BrokerState.DRAINING}
    draining = with_states(states, plan_ready())
    assert "3 brokers, dead or draining" in "\n".join(_lines(_moment(draining), width))


def test_a_balanced_cluster_with_a_dead_broker_speaks_of_the_live_ones() -> None:
    view = with_states({1: BrokerState.DEAD}, balanced_after_run())
    assert view.evaluation is not None
    calm = {"net_in": {BrokerId(2): 0.01, BrokerId(3): -0.01}}
    view = replace(view, evaluation=replace(view.evaluation, deviations=calm))
    assert "every live broker is within its tolerance band; worst alive: broker 2" in "\n".join(
        _lines(_moment(view))
    )


def _off(view: LoopView, deviations: dict[int, float]) -> LoopView:
    assert view.evaluation is not None
    by = {BrokerId(broker): value for broker, value in deviations.items()}
    return replace(view, evaluation=replace(view.evaluation, deviations={"net_out": by}))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (BrokerState.DEMOTED, "broker 2 (demoted), bytes out -100%"),
        (BrokerState.MAINTENANCE, "broker 2 (in maintenance), bytes out -100%"),
        (BrokerState.CORDONED, "broker 2 (cordoned), bytes out -100%"),
        (BrokerState.ALIVE, "broker 2, bytes out -100%"),
    ],
)
def test_a_worst_broker_that_takes_no_load_is_named_with_its_state(
    state: BrokerState, words: str
) -> None:
    """No plan brings it to the average: it is what one has asked for."""
    view = _off(with_states({2: state}, plan_ready()), {1: 0.3, 2: -1.0, 3: 0.2})
    assert f" IMBALANCED  worst: {words}" in _lines(_moment(view))[1]


def test_a_plan_names_the_demoted_broker_that_it_leaves_furthest() -> None:
    made = plan()
    demoted = made.brokers[1].model_copy(
        update={"state": BrokerState.DEMOTED, "deviation_after": {"net_out": -1.0}}
    )
    brokers = (made.brokers[0], demoted, *made.brokers[2:])
    left = plan_ready(of=made.model_copy(update={"brokers": brokers}))
    wide, narrow = _lines(_moment(left))[-1], _lines(_moment(left), 58)[-1]
    assert "33.5 MB: worst 100% after it, broker 2 (demoted)" in wide
    assert narrow.startswith(" PLAN READY  4 moves, 33.5 MB: worst 100% after it")
    assert "out 200% → 100%, broker 2 (demoted)" in balance(left.plan or made)


def test_the_plan_repeats_no_figure_of_now_that_newer_loads_have_changed() -> None:
    drifted = _off(plan_ready(), {1: 1.9, 2: -1.0, 3: -0.9})
    *_, now, ready = _lines(_moment(drifted))
    assert "worst: broker 1, bytes out +190%" in now
    assert ": worst 2% after it  [A] approve" in ready
    assert "200%" not in now + ready
