"""Which triggers interrupt a run."""

import pytest

from control.loop.override import LASTING_S, AutoRun, overriding
from control.planning.plan_needs import PlanNeed, Reason
from control.settings.trigger_table import Response, Trigger, TriggerTable

DEAD = PlanNeed(reason=Reason.DEAD_BROKER, message="broker 3 is dead and holds 4 replicas")
UNEVEN = PlanNeed(reason=Reason.OUT_OF_TOLERANCE, message="out of tolerance")
BALANCING = AutoRun(serves=frozenset({Trigger.UNEVEN_LOAD, Trigger.EMPTY_BROKER}), began_s=100.0)
ACT = TriggerTable()


@pytest.mark.parametrize(
    ("run", "since_s", "triggers", "interrupts"),
    [
        (BALANCING, 110.0, ACT, True),
        (BALANCING, 90.0, ACT, False),
        (BALANCING, 111.0, ACT, False),
        (BALANCING, 110.0, TriggerTable(dead_broker=Response.ASK), False),
        (AutoRun(serves=frozenset({Trigger.DEAD_BROKER}), began_s=100.0), 110.0, ACT, False),
        (AutoRun(serves=frozenset({Trigger.UNDER_MIN_ISR}), began_s=100.0), 110.0, ACT, False),
        (AutoRun(serves=frozenset({Trigger.OVER_CAPACITY}), began_s=100.0), 110.0, ACT, True),
    ],
    ids=["urgent", "from before", "not yet", "asks", "the same", "less urgent", "next"],
)
def test_only_what_is_more_urgent_acts_and_lasts_interrupts(
    run: AutoRun, since_s: float, triggers: TriggerTable, interrupts: bool
) -> None:
    since = {Reason.DEAD_BROKER: since_s, Reason.OUT_OF_TOLERANCE: 110.0}
    found = overriding(run, (DEAD, UNEVEN), since, triggers, 110.0 + LASTING_S)
    assert found is (DEAD if interrupts else None)


def test_a_run_is_interrupted_once() -> None:
    run = AutoRun(
        serves=frozenset({Trigger.UNEVEN_LOAD}), began_s=0.0, overridden_by=Trigger.DEAD_BROKER
    )
    assert overriding(run, (DEAD,), {Reason.DEAD_BROKER: 0.0}, ACT, 100.0) is None
