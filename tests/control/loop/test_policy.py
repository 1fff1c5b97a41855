"""The loop's decisions, one by one."""

import dataclasses
import math

import pytest

from control.loop.holding_rule import holding_rule
from control.loop.load_shift import BURST_S, PREPARE_S, LoadShift
from control.loop.oscillation import Oscillation
from control.loop.policy import AHEAD_S, Decision, DecisionInputs, earliest_change_s, next_step
from control.loop.view import Mode
from control.planning.plan_needs import PlanNeed, Reason
from control.settings.auto_limits import EAGER
from control.settings.trigger_table import Trigger, TriggerTable
from model.plan.plan import Plan
from solver.solve import solve
from tests.support.control.loop_parts import EASY, MB, WORK, cluster

UNEVEN = cluster([2] * 8, [MB] * 8)
LEVEL = cluster([1, 2, 3], [MB] * 3)


def plan_for(snapshot: object) -> Plan:
    plan = solve(snapshot, EASY, WORK).best  # type: ignore[arg-type]  # a snapshot
    assert plan is not None
    return plan


PLAN = plan_for(UNEVEN)
NO_MOVES = plan_for(LEVEL)

NOW = 1000.0
UNEVENNESS = PlanNeed(reason=Reason.OUT_OF_TOLERANCE, message="out of tolerance")
CALM = DecisionInputs(
    now_s=NOW,
    mode=Mode.AUTO,
    limits=EAGER,
    loads_from_s=NOW - 15,
    needs=(UNEVENNESS,),
    needed_since_s=NOW - EAGER.confirm,
    awaited="",
    was_balanced=False,
    ended_at_s=None,
    plan=None,
    outdated=False,
    answered=False,
    solve_in_s=0.0,
    quiet_in_s=0.0,
    retry="",
    plan_wanted=False,
)


def step(**changes: object) -> Decision:
    return next_step(dataclasses.replace(CALM, **changes))[0]  # type: ignore[arg-type]


def test_a_balanced_cluster_is_idle() -> None:
    assert step(needs=(), needed_since_s=None) is Decision.REST


def test_a_balanced_cluster_is_planned_on_request() -> None:
    assert step(needs=(), needed_since_s=None, plan_wanted=True) is Decision.PLAN


def test_auto_waits_until_an_imbalance_has_persisted() -> None:
    assert step(needed_since_s=NOW - EAGER.confirm + 1) is Decision.CONFIRM
    assert step() is Decision.PLAN


def test_a_shifted_load_is_not_planned_from_a_mixture_of_old_and_new() -> None:
    """The window of the loads must begin after the shift was seen."""
    shifted_s = NOW - 14
    assert step(was_balanced=True, needed_since_s=shifted_s) is Decision.CONFIRM
    assert step(was_balanced=True, needed_since_s=shifted_s - 1) is Decision.PLAN


def shifted(level_s: float, **other: object) -> Decision:
    """The decision so long after a balanced cluster's load has changed."""
    shift = LoadShift(level_s=level_s)
    facts: dict[str, object] = {"was_balanced": True, "shift": shift}
    return step(**facts | {"needed_since_s": NOW - level_s, "loads_from_s": NOW - 15} | other)


def test_a_shift_whose_begin_is_known_is_planned_before_the_window_has_passed() -> None:
    assert shifted(BURST_S) is Decision.PLAN
    assert shifted(BURST_S, plan=PLAN) is Decision.APPROVE


def test_a_plan_is_prepared_but_not_executed_while_a_burst_may_end() -> None:
    early = BURST_S - PREPARE_S
    assert shifted(early - 0.1) is Decision.CONFIRM
    assert shifted(early) is Decision.PLAN
    assert shifted(early, plan=PLAN, answered=True) is Decision.CONFIRM
    assert shifted(BURST_S - 0.1, plan=PLAN, answered=True) is Decision.CONFIRM


@pytest.mark.parametrize(
    "reason", [{"ended_at_s": NOW - 20, "limits": EAGER.model_copy(update={"pause": 60.0})}]
)
def test_no_plan_is_prepared_that_must_wait_anyway(reason: dict[str, object]) -> None:
    assert shifted(BURST_S - 1, **reason) is Decision.CONFIRM


def test_a_plan_from_before_the_shift_is_replaced() -> None:
    assert shifted(BURST_S, plan=PLAN, shifted_since_plan=True) is Decision.PLAN
    assert step(mode=Mode.APPROVE, plan=PLAN, shifted_since_plan=True) is Decision.OFFER


@pytest.mark.parametrize(
    "shift",
    [
        LoadShift(level_s=BURST_S, agrees=False),
        LoadShift(level_s=BURST_S, uncertain="too noisy"),
        LoadShift(level_s=BURST_S, unread="consumers"),
    ],
)
def test_a_shift_in_doubt_is_not_acted_on(shift: LoadShift) -> None:
    facts = {"was_balanced": True, "shift": shift, "needed_since_s": NOW - 20}
    assert step(**facts, plan=PLAN) is Decision.CONFIRM
    assert step(shift=LoadShift(early="commits"), plan=PLAN) is Decision.CONFIRM
    # At first contact nothing is known to have shifted.
    assert step(shift=shift, plan=PLAN) is Decision.APPROVE


def test_auto_rests_while_no_loads_arrive() -> None:
    facts = dataclasses.replace(CALM, silent_s=600.0, plan=PLAN)
    assert next_step(facts) == (
        Decision.SETTLE,
        "no loads have arrived for 10 min 00 s; waiting for new ones",
    )
    assert step(silent_s=600.0, mode=Mode.APPROVE, plan=PLAN) is Decision.OFFER


def test_auto_rests_while_samples_are_from_the_future_and_says_by_how_much() -> None:
    """Loads that no longer arrive for that reason are not reported as missing alone."""
    for silent_s in (0.0, 600.0):
        facts = dataclasses.replace(CALM, ahead_s=45.0, silent_s=silent_s, plan=PLAN)
        decision, reason = next_step(facts)
        assert (decision, holding_rule(facts, decision)) == (Decision.SETTLE, "clocks")
        assert reason.startswith("the newest samples are 45.0 s ahead of this machine's clock")
        assert "compare the clocks of all hosts" in reason
    assert step(ahead_s=AHEAD_S, plan=PLAN) is Decision.APPROVE
    assert step(ahead_s=45.0, mode=Mode.APPROVE, plan=PLAN) is Decision.OFFER


def test_rules_that_settle_have_names_of_their_own() -> None:
    silent = dataclasses.replace(CALM, silent_s=600.0)
    after_a_run = dataclasses.replace(CALM, ended_at_s=NOW - 1)
    joined = dataclasses.replace(CALM, quiet_in_s=1.0)
    replans = dataclasses.replace(CALM, solve_in_s=1.0)
    found = [holding_rule(f, Decision.SETTLE) for f in (silent, after_a_run, joined, replans)]
    assert found == ["silence", "settling", "brokers", "replan"]


def test_a_request_of_the_operator_does_not_wait_for_confirmation() -> None:
    assert step(mode=Mode.APPROVE, needed_since_s=NOW) is Decision.PLAN


def test_loads_from_before_the_end_of_a_run_are_not_judged() -> None:
    assert step(ended_at_s=NOW - 14) is Decision.SETTLE


def test_auto_pauses_between_runs() -> None:
    limits = EAGER.model_copy(update={"pause": 100.0})
    assert step(limits=limits, ended_at_s=NOW - 99) is Decision.CONFIRM
    assert step(limits=limits, ended_at_s=NOW - 101) is Decision.PLAN


@pytest.mark.parametrize("mode", [Mode.APPROVE, Mode.READ_ONLY])
def test_a_plan_with_moves_is_offered_to_the_operator(mode: Mode) -> None:
    assert step(mode=mode, plan=PLAN) is Decision.OFFER


def test_an_offered_plan_is_not_replaced_by_time_alone() -> None:
    assert step(mode=Mode.APPROVE, plan=PLAN) is Decision.OFFER


def test_a_plan_for_another_placement_is_replaced() -> None:
    for mode in Mode:
        assert step(mode=mode, plan=PLAN, outdated=True) is Decision.PLAN


def test_auto_approves_inside_its_limits() -> None:
    assert step(plan=PLAN) is Decision.APPROVE


def test_auto_refuses_outside_its_limits_until_the_cluster_changes() -> None:
    limits = EAGER.model_copy(update={"replica_moves": 1})
    facts = dataclasses.replace(CALM, plan=PLAN, limits=limits, answered=True)
    assert next_step(facts) == (Decision.REFUSE, "the plan has replica_moves = 5, the limit is 1")
    assert step(plan=PLAN, limits=limits) is Decision.PLAN


def test_auto_does_not_execute_a_plan_once_the_cluster_is_balanced() -> None:
    assert step(plan=PLAN, needs=(), needed_since_s=None) is Decision.REST


def test_an_answer_without_moves_is_valid_until_the_cluster_changes() -> None:
    assert step(plan=NO_MOVES, answered=True) is Decision.HOLD
    assert step(plan=NO_MOVES) is Decision.PLAN


def test_auto_is_idle_if_the_best_plan_gains_too_little_and_names_the_limit() -> None:
    limits = EAGER.model_copy(update={"min_gain": 0.999})
    facts = dataclasses.replace(CALM, plan=PLAN, limits=limits, answered=True)
    what, reason = next_step(facts)
    assert what is Decision.REFUSE
    assert "less than min_gain (99.9 %)" in reason
    repair = PlanNeed(reason=Reason.DEAD_BROKER, message="broker 3 is dead")
    assert step(plan=PLAN, limits=limits, needs=(repair,)) is Decision.APPROVE


def test_the_pause_is_longer_where_runs_only_move_an_imbalance_about() -> None:
    limits = EAGER.model_copy(update={"pause": 100.0})
    twice = Oscillation(runs=1, crossed=True)
    facts = dataclasses.replace(CALM, limits=limits, ended_at_s=NOW - 199, oscillation=twice)
    decision, why = next_step(facts)
    assert decision is Decision.CONFIRM
    assert why == (
        "the last run ended 199 s ago; the pause between runs is 200 s instead of 100 s, because "
        "after each of the last 2 runs a broker left its tolerance on the other side"
    )
    assert next_step(dataclasses.replace(facts, ended_at_s=NOW - 200))[0] is Decision.PLAN
    repair = PlanNeed(reason=Reason.OVER_LIMIT, message="over a limit")
    assert next_step(dataclasses.replace(facts, needs=(repair,)))[0] is Decision.PLAN


def test_a_repair_needs_no_confirmation_but_waits_for_the_pause() -> None:
    repair = PlanNeed(reason=Reason.DEAD_BROKER, message="broker 3 is dead")
    limits = EAGER.model_copy(update={"pause": 100.0})
    assert step(needs=(repair,), needed_since_s=NOW) is Decision.PLAN
    paused = step(needs=(repair,), needed_since_s=NOW, ended_at_s=NOW - 99, limits=limits)
    assert paused is Decision.CONFIRM


@pytest.mark.parametrize("mode", list(Mode))
def test_no_plan_is_made_while_brokers_come_and_go(mode: Mode) -> None:
    for plan in (None, PLAN):
        facts = {"mode": mode, "plan": plan, "outdated": True}
        assert step(**facts, quiet_in_s=3.0) is Decision.SETTLE
        assert step(**facts, solve_in_s=3.0) is Decision.SETTLE
        assert step(**facts) is Decision.PLAN
        assert step(**facts, quiet_in_s=3.0, plan_wanted=True) is Decision.PLAN


def test_after_a_failure_auto_waits_and_the_operator_need_not() -> None:
    assert step(retry="no lease; retrying in 10 s") is Decision.RETRY
    assert step(retry="x", plan=PLAN) is Decision.RETRY
    assert step(mode=Mode.APPROVE, retry="x", plan=PLAN) is Decision.OFFER


def test_auto_waits_while_a_dead_broker_may_return() -> None:
    assert step(awaited="broker 3 is dead") is Decision.CONFIRM
    assert step(awaited="broker 3 is dead", mode=Mode.APPROVE) is Decision.PLAN


RACKS = PlanNeed(reason=Reason.RACK_VIOLATION, message="2 rack violations can be repaired")
DEAD = PlanNeed(reason=Reason.DEAD_BROKER, message="broker 3 is dead")
UNEVEN_LOAD, DEAD_BROKER = Trigger.UNEVEN_LOAD, Trigger.DEAD_BROKER


def test_a_trigger_that_asks_plans_and_then_waits() -> None:
    assert step(needs=(RACKS,)) is Decision.PLAN
    facts = dataclasses.replace(
        CALM, plan=PLAN, made_for=frozenset(), needs=(RACKS,), answered=True
    )
    what, why = next_step(facts)
    assert what is Decision.ASK
    words = f"plimsoll approve {PLAN.hash[:12]} executes the plan"
    assert why == f"rule_violated is set to ask; {words}"
    # Noise of the loads does not replace the waiting plan, another placement does.
    assert next_step(dataclasses.replace(facts, answered=False))[0] is Decision.ASK
    assert next_step(dataclasses.replace(facts, outdated=True))[0] is Decision.PLAN
    assert next_step(dataclasses.replace(facts, needs=()))[0] is Decision.REST


def test_a_question_starves_no_trigger_that_acts() -> None:
    asked = {"plan": PLAN, "made_for": frozenset(), "answered": True}
    assert step(needs=(RACKS, UNEVENNESS), **asked) is Decision.PLAN
    assert step(needs=(DEAD, RACKS), **asked) is Decision.PLAN


def test_a_plan_made_for_fewer_triggers_is_replaced() -> None:
    made = {"plan": PLAN, "answered": True, "made_for": frozenset({UNEVEN_LOAD})}
    assert step(**made) is Decision.APPROVE
    assert step(needs=(DEAD, UNEVENNESS), **made) is Decision.PLAN
    more = made | {"made_for": frozenset({UNEVEN_LOAD, DEAD_BROKER})}
    assert step(**more) is Decision.APPROVE


def test_a_trigger_without_a_useful_plan_starves_no_question() -> None:
    held = {"needs": (RACKS, UNEVENNESS), "answered": True, "held": frozenset({UNEVEN_LOAD})}
    assert step(**held, made_for=frozenset({UNEVEN_LOAD})) is Decision.PLAN
    assert step(**held, made_for=frozenset(), plan=PLAN) is Decision.ASK
    alone = held | {"needs": (UNEVENNESS,)}
    assert step(**alone, made_for=frozenset({UNEVEN_LOAD})) is Decision.HOLD


def test_triggers_that_are_off_are_named_and_do_nothing() -> None:
    off = TriggerTable(mode="empty-broker")
    facts = dataclasses.replace(CALM, triggers=off)
    words = "out of tolerance, but uneven_load is off"
    assert next_step(facts) == (Decision.IGNORE, words)
    assert step(triggers=off, needs=(DEAD, UNEVENNESS)) is Decision.PLAN
    assert step(triggers=off, mode=Mode.APPROVE) is Decision.PLAN


CLOSED = {"closed": "outside the maintenance windows", "opens_in_s": 90.0}


def test_the_schedule_holds_back_what_acts() -> None:
    facts = dataclasses.replace(CALM, **CLOSED)  # type: ignore[arg-type]  # known fields
    assert next_step(facts) == (Decision.CONFIRM, "outside the maintenance windows")
    assert earliest_change_s(facts, Decision.CONFIRM) == 90.0
    never = dataclasses.replace(facts, opens_in_s=math.inf)
    assert earliest_change_s(never, Decision.CONFIRM) == 0.0
    assert step(plan=PLAN, **CLOSED) is Decision.CONFIRM
    assert step(mode=Mode.APPROVE, plan=PLAN, **CLOSED) is Decision.OFFER
    assert step(plan_wanted=True, **CLOSED) is Decision.PLAN


def test_the_schedule_does_not_hold_back_exempt_triggers_and_questions() -> None:
    exempt = {"exempt": frozenset({Trigger.DEAD_BROKER}), **CLOSED}
    assert step(needs=(DEAD, UNEVENNESS), **exempt) is Decision.PLAN
    # The plan for both waits until both may act.
    both = frozenset({Trigger.DEAD_BROKER, Trigger.UNEVEN_LOAD})
    alone = frozenset({Trigger.DEAD_BROKER})
    needs = (DEAD, UNEVENNESS)
    assert step(needs=needs, plan=PLAN, made_for=alone, **exempt) is Decision.APPROVE
    assert step(needs=needs, plan=PLAN, made_for=alone) is Decision.PLAN
    assert step(needs=needs, plan=PLAN, made_for=both) is Decision.APPROVE
    assert step(needs=(RACKS, UNEVENNESS), **exempt) is Decision.PLAN
    asked = {"plan": PLAN, "made_for": frozenset(), "needs": (RACKS, UNEVENNESS)}
    assert step(**asked, **exempt) is Decision.ASK


def test_loads_measured_while_others_move_partitions_decide_no_balancing() -> None:
    copied: dict[str, object] = {"copied_at_s": NOW - 1, "copying": 3}
    facts = dataclasses.replace(CALM, **copied)  # type: ignore[arg-type]  # known fields
    words = "3 partitions are being moved outside of a run; waiting for loads from after that"
    assert next_step(facts) == (Decision.SETTLE, words)
    assert holding_rule(facts, Decision.SETTLE) == "copying"
    over = dataclasses.replace(facts, copying=0)
    words = "partitions were moved outside of a run; waiting 14 s for loads from after that"
    assert next_step(over) == (Decision.SETTLE, words)
    assert step(**copied, loads_from_s=NOW - 1) is Decision.PLAN
    # Repairs follow from no loads, and a person may look at a plan at any time.
    assert step(**copied, needs=(DEAD, UNEVENNESS)) is Decision.PLAN
    assert step(**copied, mode=Mode.APPROVE) is Decision.PLAN
    assert step(**copied, needs=(), needed_since_s=None) is Decision.REST


def test_limits_per_day_hold_back_runs_but_no_person() -> None:
    facts = dataclasses.replace(CALM, runs_wait_s=90.0)
    message = "runs_per_day is reached; the next run may start in 90.0 s"
    assert next_step(facts) == (Decision.CONFIRM, message)
    assert step(needs=(DEAD,), runs_wait_s=60.0) is Decision.CONFIRM
    assert step(plan=PLAN, bytes_wait_s=60.0) is Decision.CONFIRM
    assert step(bytes_wait_s=60.0) is Decision.PLAN
    assert step(mode=Mode.APPROVE, plan=PLAN, runs_wait_s=60.0) is Decision.OFFER
    asked = {"plan": PLAN, "made_for": frozenset(), "needs": (RACKS,)}
    assert step(runs_wait_s=60.0, bytes_wait_s=60.0, **asked) is Decision.ASK
