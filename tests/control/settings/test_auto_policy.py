"""What bounds `--auto`: faults of a policy, and its changes in words."""

import dataclasses
import math
from datetime import UTC, date, datetime

import pytest

from control.settings.auto_limits import CONSERVATIVE
from control.settings.auto_policy import AutoPolicy, change_faults, policy_changes, policy_faults
from control.settings.never_acts import obstacles
from control.settings.schedule_table import Freeze, MaintenanceWindow, ScheduleTable
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.goals.effort import Effort
from model.goals.goals import Budgets, Goals
from model.stop_rules import StopRules

NOW_S = datetime(2026, 11, 27, tzinfo=UTC).timestamp()
SOUND = AutoPolicy(
    limits=CONSERVATIVE, triggers=TriggerTable(), dead_broker_after_s=3600.0, stop_rules=StopRules()
)
OFF = dataclasses.replace(
    SOUND, triggers=TriggerTable.model_validate({t.value: Response.OFF for t in Trigger})
)
UNBOUNDED = dataclasses.replace(SOUND, limits=CONSERVATIVE.model_copy(update={"pause": 0.0}))
FOR_EVER = Freeze(first=date(1970, 1, 2), last=date(2999, 12, 31))
ACTING = TriggerTable(rule_violated=Response.ACT, slow_broker=Response.ACT)
CLOSED = dataclasses.replace(
    SOUND, schedule=ScheduleTable(freezes=(FOR_EVER,), exempt=()), triggers=ACTING
)
PASSED = dataclasses.replace(
    SOUND, stop_rules=StopRules(window_end=datetime(2026, 11, 26, tzinfo=UTC))
)


def test_each_fault_of_a_policy_is_named() -> None:
    assert policy_faults(SOUND, NOW_S) == ()
    faulty = {
        "every trigger is off": OFF,
        "it has no bounds": UNBOUNDED,
        "within ten years by its schedule": CLOSED,
        "stop_rules.window_end, 2026-11-26T00:00:00+00:00, has passed": PASSED,
    }
    for words, policy in faulty.items():
        (fault,) = policy_faults(policy, NOW_S)
        assert words in fault


def test_a_pause_of_a_moment_bounds_nothing() -> None:
    (fault,) = policy_faults(limited(pause=0.001), NOW_S)
    assert "it has no bounds: pause is 0.001 s, and runs_per_day is not set, so that" in fault
    assert policy_faults(limited(pause=0.001, runs_per_day=5), NOW_S) == ()
    assert policy_faults(limited(pause=1.0), NOW_S) == ()


def test_runs_without_number_are_no_bound() -> None:
    """Such limits passed `policy check`."""
    (fault,) = policy_faults(limited(pause=0.0, runs_per_day=86_400), NOW_S)
    assert "pause is 0, and runs_per_day is 86,400, so that any number" in fault
    assert policy_faults(limited(pause=0.0, runs_per_day=86_399), NOW_S) == ()
    assert policy_faults(limited(runs_per_day=10**9), NOW_S) == ()
    # Nothing bounds the runs that change leaders alone.
    (fault,) = policy_faults(limited(pause=0.0, bytes_per_day=10**12), NOW_S)
    assert "(bytes_per_day bounds copies alone)" in fault


def test_a_change_is_refused_for_new_faults_but_not_for_turning_all_off() -> None:
    for policy in (UNBOUNDED, CLOSED):
        assert change_faults(SOUND, policy, NOW_S) == policy_faults(policy, NOW_S)
        assert change_faults(policy, policy, NOW_S) == ()
        assert change_faults(policy, SOUND, NOW_S) == ()
    assert change_faults(SOUND, OFF, NOW_S) == ()


def limited(**limits: object) -> AutoPolicy:
    return dataclasses.replace(SOUND, limits=CONSERVATIVE.model_copy(update=limits))


def only(*triggers: Trigger, **others: object) -> TriggerTable:
    """Only these act."""
    off = dict.fromkeys((t.value for t in Trigger), Response.OFF)
    return TriggerTable.model_validate(off | {t.value: Response.ACT for t in triggers} | others)


QUICK = {"effort": Effort.QUICK}
NO_LEADERS = {"leader_changes": 0}
HEALED = {Trigger.UNDER_MIN_ISR, Trigger.DEAD_BROKER, Trigger.DEAD_LOG_DIR}
COPIED = HEALED | {Trigger.EMPTY_BROKER}


@pytest.mark.parametrize(
    ("policy", "never"),
    [
        (SOUND, set()),
        (limited(**QUICK), COPIED),
        (dataclasses.replace(SOUND, effort=Effort.QUICK), COPIED),
        (dataclasses.replace(limited(effort=Effort.GOOD), effort=Effort.QUICK), set()),
        (limited(bytes=1), COPIED),
        (limited(bytes=61), set()),
        (limited(**NO_LEADERS), {Trigger.SLOW_BROKER}),
        (limited(**NO_LEADERS, **QUICK), set(Trigger)),
        (limited(**NO_LEADERS, bytes=1), set(Trigger)),
        (limited(confirm=11_000 * 86_400.0), {Trigger.EMPTY_BROKER, Trigger.UNEVEN_LOAD}),
        (dataclasses.replace(SOUND, dead_broker_after_s=math.inf), {Trigger.DEAD_BROKER}),
        (dataclasses.replace(SOUND, goals=Goals(budgets=Budgets(replica_moves=0))), COPIED),
        (dataclasses.replace(SOUND, goals=Goals(budgets=Budgets(partitions=0))), set(Trigger)),
        (CLOSED, set(Trigger)),
        # Triggers that are exempt, or ask, do not wait.
        (
            dataclasses.replace(SOUND, schedule=ScheduleTable(freezes=(FOR_EVER,))),
            {Trigger.OVER_CAPACITY, Trigger.EMPTY_BROKER, Trigger.UNEVEN_LOAD},
        ),
        (PASSED, set(Trigger)),
    ],
)
def test_triggers_that_can_never_lead_to_a_move_are_found(
    policy: AutoPolicy, never: set[Trigger]
) -> None:
    assert set(obstacles(policy, NOW_S)) == never


@pytest.mark.parametrize(
    ("limits", "triggers", "words"),
    [
        (QUICK | NO_LEADERS, TriggerTable(), "leader_changes is 0"),
        ({"bytes": 1} | NO_LEADERS, TriggerTable(), "bytes is 1 B, less than any partition"),
        (QUICK, only(Trigger.DEAD_BROKER), "have to be copied, but effort is quick, which"),
        (NO_LEADERS, only(Trigger.SLOW_BROKER), "leaders would have to change, but leader_chan"),
        (
            QUICK | {"confirm": 11_000 * 86_400.0},
            only(Trigger.DEAD_BROKER, Trigger.UNEVEN_LOAD),
            "only (dead_broker); confirm is 264000 h 00 min (uneven_load)",
        ),
    ],
)
def test_a_policy_whose_triggers_can_all_never_act_is_faulty(
    limits: dict[str, object], triggers: TriggerTable, words: str
) -> None:
    policy = dataclasses.replace(limited(**limits), triggers=triggers)
    (fault,) = policy_faults(policy, NOW_S)
    assert fault.startswith("it can never act: ")
    assert words in fault
    assert change_faults(SOUND, policy, NOW_S) == (fault,)
    assert change_faults(policy, policy, NOW_S) == ()


def window(duration: float, start: str = "0 2 * * SAT") -> ScheduleTable:
    return ScheduleTable(windows=(MaintenanceWindow(start=start, duration=duration),), exempt=())


def test_windows_too_short_to_plan_in_never_open() -> None:
    short = dataclasses.replace(SOUND, schedule=window(0.001), triggers=ACTING)
    (fault,) = policy_faults(short, NOW_S)
    assert "the windows of its schedule last less than 10.0 s, too short to make a plan" in fault
    assert policy_faults(dataclasses.replace(short, schedule=window(600)), NOW_S) == ()
    # Something acts, but never within the window.
    healing = short.schedule.model_copy(update={"exempt": (Trigger.DEAD_BROKER,)})
    (fault,) = policy_faults(dataclasses.replace(short, schedule=healing), NOW_S)
    assert fault == (
        "it can never act in the window from `0 2 * * SAT` on, which lasts 0.001 s; a plan needs "
        "10 s or more"
    )


def test_a_schedule_that_opens_after_the_last_move_may_start_never_acts() -> None:
    # It opens on Saturday, the day after.
    end = datetime(2026, 11, 27, 12, tzinfo=UTC)
    late = dataclasses.replace(
        SOUND, schedule=window(600), triggers=ACTING, stop_rules=StopRules(window_end=end)
    )
    (fault,) = policy_faults(late, NOW_S)
    assert "allows no run before stop_rules.window_end, 2026-11-27T12:00:00+00:00" in fault


def test_changes_are_named() -> None:
    after = AutoPolicy(
        limits=CONSERVATIVE.model_copy(
            update={"bytes": 10**9, "min_gain": 0.5, "runs_per_day": 6, "pause": 60.0}
        ),
        triggers=TriggerTable(mode="empty-broker", dead_broker=Response.ASK),
        dead_broker_after_s=math.inf,
        stop_rules=StopRules(),
        schedule=ScheduleTable(exempt=(), freezes=(FOR_EVER,)),
    )
    assert list(policy_changes(SOUND, SOUND)) == []
    assert list(policy_changes(SOUND, after)) == [
        "dead_broker is ask, it was act",
        "uneven_load is off, it was act",
        "bytes is 1,000,000,000, it was 50,000,000,000",
        "min_gain is 0.5, it was 0.2",
        "pause is 60 s, it was 1,800 s",
        "runs_per_day is 6, it was not set",
        "schedule.freezes is another one",
        "schedule.exempt is another one",
        "dead_broker_after is off, it was 1 h 00 min",
    ]
