"""The table of moves: what a reason says where there is little room."""

import pytest

from tests.support.tui.loop_views import plan_ready
from tui.viewmodel.cells import plain
from tui.viewmodel.plan.moves import moves_table
from tui.viewmodel.plan.shown_plan import shown


@pytest.mark.parametrize(
    ("width", "reason"),
    [
        (150, "relieves broker 1 (bytes in 200% above average); broker 2 is 100% below average"),
        (110, "relieves broker 1 (bytes in 200% above average)"),
        (74, "relieves broker 1 (in)"),
        (66, "relieves 1 (in)"),
        (58, "relieves 1"),
    ],
)
def test_a_reason_is_shortened_to_what_it_is_about(width: int, reason: str) -> None:
    """Half a sentence in every row would say nothing."""
    table = moves_table(shown(plan_ready()), width)
    assert plain(table.rows[0].cells[-1]) == reason
