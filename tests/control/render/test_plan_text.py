"""Plans as text."""

import pytest

from control.render.plan_text import plan_text
from tests.support.model import clusters


@pytest.mark.parametrize(
    ("gain", "shown"), [(0.25, "0.25"), (-0.0008333, "-0.0008333"), (-5.638e-18, "0"), (0.0, "0")]
)
def test_a_gain_that_is_an_error_of_rounding_is_shown_as_none(gain: float, shown: str) -> None:
    plan = clusters.plan(clusters.move(3, (1, 2), (2, 3), gain=gain))
    (row,) = [line for line in plan_text(plan, "plan").splitlines() if "orders-3" in line]
    assert row.split("0 B")[1].split()[0] == shown
