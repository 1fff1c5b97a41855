"""Warnings about data that a plan had to do without."""

import math
from typing import Final

import pytest

from model.goals.goals import SolveLimits
from model.plan.warnings import load_warning
from solver.solve import solve
from tests.support.solver.exact_oracle import OTHER, TOPIC, Row, broker, cluster, goals

WORK: Final = SolveLimits(work=1.0)
UNKNOWN: Final = (math.nan, 1.0)
MEMBERS: Final = [broker(1), broker(2)]


@pytest.mark.parametrize("size", [1, 2])
def test_partitions_of_unknown_load_are_named(size: int) -> None:
    unknown = [Row(replicas=(1,), load=UNKNOWN) for _ in range(size)]
    known = [Row(replicas=(1,), load=(4.0, 1.0)) for _ in range(4)]
    snapshot = cluster(MEMBERS, [*unknown, *known])
    plan = solve(snapshot, goals(), WORK).best
    assert plan is not None
    (message,) = plan.warnings
    assert message == load_warning(snapshot, goals())
    assert message.endswith(", ".join(f"{TOPIC}-{i}" for i in range(size)))
    assert {m.partition for m in plan.moves}.isdisjoint(range(size))
    assert len(plan.moves) == 2


def test_partitions_with_known_load_or_that_stay_anyway_are_not_named() -> None:
    rows = [Row(replicas=(1,)), Row(replicas=(1,), load=UNKNOWN, topic=OTHER)]
    excluding = goals(excluded_topics={"exact": (OTHER,)})
    assert load_warning(cluster(MEMBERS, rows), excluding) == ""
    assert load_warning(cluster(MEMBERS, rows), goals()) != ""
    assert load_warning(cluster(MEMBERS, rows[:1]), goals()) == ""
