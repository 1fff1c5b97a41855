"""The loop's decisions, one by one."""

import dataclasses

import pytest

from control.loop.policy import Facts, Step, next_step
from control.loop.view import Mode
from control.planning.plan_needs import Need, Reason
from control.settings.auto_limits import EAGER
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
UNEVENNESS = Need(reason=Reason.OUT_OF_TOLERANCE, message="out of tolerance")
CALM = Facts(
    now_s=NOW,
    mode=Mode.AUTO,
    limits=EAGER,
    loads_from_s=NOW - 15,
    needs=(UNEVENNESS,),
    needed_since_s=NOW - EAGER.confirm,
    awaited="",
    was_level=False,
    ended_at_s=None,
    plan=None,
    outdated=False,
    answered=False,
    solve_in_s=0.0,
    quiet_in_s=0.0,
    retry="",
    plan_wanted=False,
)


def step(**changes: object) -> Step:
    return next_step(dataclasses.replace(CALM, **changes))[0]  # type: ignore[arg-type]


def test_a_level_cluster_rests() -> None:
    assert step(needs=(), needed_since_s=None) is Step.REST


def test_a_level_cluster_is_planned_when_a_person_asks() -> None:
    assert step(needs=(), needed_since_s=None, plan_wanted=True) is Step.PLAN


def test_auto_waits_until_unevenness_has_lasted() -> None:
    assert step(needed_since_s=NOW - EAGER.confirm + 1) is Step.CONFIRM
    assert step() is Step.PLAN


def test_a_shifted_load_is_not_planned_on_a_mixture_of_old_and_new() -> None:
    """The window of the loads must begin after the shift was seen."""
    shifted_s = NOW - 14
    assert step(was_level=True, needed_since_s=shifted_s) is Step.CONFIRM
    assert step(was_level=True, needed_since_s=shifted_s - 1) is Step.PLAN


def test_a_person_need_not_wait_for_the_confirmation() -> None:
    assert step(mode=Mode.APPROVE, needed_since_s=NOW) is Step.PLAN


def test_loads_of_before_the_runs_end_are_not_judged() -> None:
    assert step(ended_at_s=NOW - 14) is Step.SETTLE


def test_auto_pauses_between_runs() -> None:
    limits = EAGER.model_copy(update={"pause": 100.0})
    assert step(limits=limits, ended_at_s=NOW - 99) is Step.CONFIRM
    assert step(limits=limits, ended_at_s=NOW - 101) is Step.PLAN


@pytest.mark.parametrize("mode", [Mode.APPROVE, Mode.READ_ONLY])
def test_a_plan_with_moves_is_offered_to_a_person(mode: Mode) -> None:
    assert step(mode=mode, plan=PLAN) is Step.OFFER


def test_an_offered_plan_is_not_replaced_by_time_alone() -> None:
    assert step(mode=Mode.APPROVE, plan=PLAN) is Step.OFFER


def test_a_plan_for_another_placement_is_made_anew() -> None:
    for mode in Mode:
        assert step(mode=mode, plan=PLAN, outdated=True) is Step.PLAN


def test_auto_approves_inside_its_limits() -> None:
    assert step(plan=PLAN) is Step.APPROVE


def test_auto_refuses_outside_its_limits_until_the_cluster_changes() -> None:
    limits = EAGER.model_copy(update={"replica_moves": 1})
    facts = dataclasses.replace(CALM, plan=PLAN, limits=limits, answered=True)
    assert next_step(facts) == (
        Step.REFUSE,
        "the plan has replica_moves = 5, the limit is 1",
    )
    assert step(plan=PLAN, limits=limits) is Step.PLAN


def test_auto_does_not_carry_out_a_plan_after_the_cluster_became_level() -> None:
    assert step(plan=PLAN, needs=(), needed_since_s=None) is Step.REST


def test_an_answer_without_moves_is_kept_until_the_cluster_changes() -> None:
    assert step(plan=NO_MOVES, answered=True) is Step.HOLD
    assert step(plan=NO_MOVES) is Step.PLAN


def test_auto_rests_when_the_best_plan_gains_too_little_and_names_what_binds() -> None:
    limits = EAGER.model_copy(update={"min_gain": 0.999})
    facts = dataclasses.replace(CALM, plan=PLAN, limits=limits, answered=True)
    what, why = next_step(facts)
    assert what is Step.REFUSE
    assert "less than min_gain (99.9 %)" in why
    repair = Need(reason=Reason.DEAD_BROKER, message="broker 3 is dead", repairs=True)
    assert step(plan=PLAN, limits=limits, needs=(repair,)) is Step.APPROVE


def test_a_repair_need_not_be_confirmed_but_waits_for_the_pause() -> None:
    repair = Need(reason=Reason.DEAD_BROKER, message="broker 3 is dead", repairs=True)
    limits = EAGER.model_copy(update={"pause": 100.0})
    assert step(needs=(repair,), needed_since_s=NOW) is Step.PLAN
    paused = step(
        needs=(repair,), needed_since_s=NOW, ended_at_s=NOW - 99, limits=limits
    )
    assert paused is Step.CONFIRM


@pytest.mark.parametrize("mode", list(Mode))
def test_no_plan_is_made_while_brokers_come_and_go(mode: Mode) -> None:
    for plan in (None, PLAN):
        facts = {"mode": mode, "plan": plan, "outdated": True}
        assert step(**facts, quiet_in_s=3.0) is Step.SETTLE
        assert step(**facts, solve_in_s=3.0) is Step.SETTLE
        assert step(**facts) is Step.PLAN
        assert step(**facts, quiet_in_s=3.0, plan_wanted=True) is Step.PLAN


def test_after_a_failure_auto_waits_and_a_person_need_not() -> None:
    assert step(retry="no lease; trying again in 10 s") is Step.RETRY
    assert step(retry="x", plan=PLAN) is Step.RETRY
    assert step(mode=Mode.APPROVE, retry="x", plan=PLAN) is Step.OFFER


def test_auto_holds_still_while_a_dead_broker_may_return() -> None:
    assert step(awaited="broker 3 is dead") is Step.CONFIRM
    assert step(awaited="broker 3 is dead", mode=Mode.APPROVE) is Step.PLAN
