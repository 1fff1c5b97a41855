"""Internal topics move before a run only where a log directory forces them to."""

from dataclasses import replace

import pytest

from executor.run.plan_evaluation import refuse_broken
from executor.run.preflight import Observed
from model.errors import GuardrailRefused
from model.ids import BrokerId
from model.plan.plan import Plan
from tests.support.executor.plan_builders import move, observed, plan, view

INTERNAL = "__consumer_offsets"


def seen(of: Plan, *, offline: bool, failed: bool) -> Observed:
    """The first move's replica on broker 1 is offline, and that broker reports a failure."""
    first = view(of.moves[0])
    lost = frozenset({BrokerId(1)}) if offline else frozenset[BrokerId]()
    found = observed(of, replace(first, offline=lost))
    return replace(found, failed=(BrokerId(1),) if failed else ())


def heals() -> Plan:
    moved = move(before=(1, 2), after=(2, 3), leader_before=2, topic=INTERNAL)
    return plan([moved])


def test_an_internal_topic_leaves_a_failed_directory() -> None:
    refuse_broken(heals(), seen(heals(), offline=True, failed=True))


@pytest.mark.parametrize(("offline", "failed"), [(False, True), (True, False), (False, False)])
def test_an_internal_topic_stays_where_its_directory_has_not_failed(
    offline: bool, failed: bool
) -> None:
    with pytest.raises(GuardrailRefused, match="its topic is internal"):
        refuse_broken(heals(), seen(heals(), offline=offline, failed=failed))
