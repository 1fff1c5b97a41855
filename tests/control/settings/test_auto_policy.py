"""What bounds `--auto`: faults of a policy, and its changes in words."""

import dataclasses
import math
from datetime import UTC, date, datetime

from control.settings.auto_limits import CONSERVATIVE
from control.settings.auto_policy import AutoPolicy, change_faults, policy_changes, policy_faults
from control.settings.schedule_table import Freeze, ScheduleTable
from control.settings.trigger_table import Response, Trigger, TriggerTable
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
CLOSED = dataclasses.replace(SOUND, schedule=ScheduleTable(freezes=(FOR_EVER,)))
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


def test_a_change_is_refused_for_new_faults_but_not_for_turning_all_off() -> None:
    for policy in (UNBOUNDED, CLOSED):
        assert change_faults(SOUND, policy, NOW_S) == policy_faults(policy, NOW_S)
        assert change_faults(policy, policy, NOW_S) == ()
        assert change_faults(policy, SOUND, NOW_S) == ()
    assert change_faults(SOUND, OFF, NOW_S) == ()


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
        "pause is 60.0, it was 1800.0",
        "runs_per_day is 6, it was not set",
        "schedule.freezes is another one",
        "schedule.exempt is another one",
        "dead_broker_after is off, it was 1 h 00 min",
    ]
