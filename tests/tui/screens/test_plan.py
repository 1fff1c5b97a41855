"""Text about plans and moves."""

import pytest

from model.ids import BrokerId
from tests.support.tui.loop_views import moves
from tui.viewmodel.plan.wording import change_text


@pytest.mark.parametrize(
    ("before", "after", "leaders", "expected"),
    [
        ((1, 2), (2, 1), (1, 1), "order 1,2 → 2,1"),
        ((1, 5), (5, 1), (1, 5), "leader 1 → 5"),
        ((1, 5), (1, 5), (5, 1), "leader 5 → 1"),
        ((1,), (2,), (1, 2), "1 → 2"),
        ((1, 3), (1, 4), (1, 1), "3 → 4"),
        ((1, 3), (4, 3), (1, 4), "1 → 4 *"),
    ],
)
def test_a_move_says_what_it_changes(
    before: tuple[int, ...], after: tuple[int, ...], leaders: tuple[int, int], expected: str
) -> None:
    move = moves()[0].model_copy(
        update={
            "replicas_before": tuple(map(BrokerId, before)),
            "replicas_after": tuple(map(BrokerId, after)),
            "leader_before": BrokerId(leaders[0]),
            "leader_after": BrokerId(leaders[1]),
        }
    )
    assert change_text(move) == expected
