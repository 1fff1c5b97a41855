"""Plans as text."""

from dataclasses import replace

import pytest

from control.planning.plan_gain import PlanGain
from control.render.plan_text import ChosenPlan, plan_text
from model.goals.effort import Effort
from model.ids import BrokerId
from model.plan.plan import PlanStatus
from model.plan.remaining import OverLimit
from tests.support.model import clusters


@pytest.mark.parametrize(
    ("gain", "shown"), [(0.25, "0.25"), (-0.0008333, "-0.0008333"), (-5.638e-18, "0"), (0.0, "0")]
)
def test_a_gain_that_is_an_error_of_rounding_is_shown_as_none(gain: float, shown: str) -> None:
    plan = clusters.plan(clusters.move(3, (1, 2), (2, 3), gain=gain))
    (row,) = [line for line in plan_text(plan, "plan").splitlines() if "orders-3" in line]
    assert row.split("0 B")[1].split()[0] == shown


@pytest.mark.parametrize(
    ("over", "why"),
    [
        ((150.0, 125.0), "limits come first: removes 50.0 % of the excess over them"),
        ((90.0, 110.0), "forced moves, repairs and the tolerance come first"),
    ],
)
def test_a_plan_that_must_raise_the_imbalance_has_no_share_of_an_improvement(
    over: tuple[float, float], why: str
) -> None:
    limited = OverLimit(
        broker=BrokerId(1), dimension="replicas", before=over[0], after=over[1], limit=100.0
    )
    plan = clusters.plan(clusters.move(3, (1, 2), (2, 3))).model_copy(
        update={
            "status": PlanStatus.IMPROVED,
            "objective_before": 2.2e-5,
            "objective": 0.237,
            "bound": 2.2e-5,
            "over_limit": (limited,),
        }
    )
    gain = PlanGain.of(plan)
    text = plan_text(plan, "plan", ChosenPlan(effort=Effort.GOOD, gain=gain, seconds=None))
    assert "; gap 0.237" in text
    assert "possible improvement" not in text
    assert f"effort good: raises F by 0.237, since {why}\n" in text
    assert gain.share_text == "-0.237 of F"
    assert replace(gain, bytes_to_copy=10**9).per_byte_text == "-"
