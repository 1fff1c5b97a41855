"""Text about plans and moves."""

from model.ids import BrokerId
from tests.support.tui.loop_views import moves
from tui.viewmodel.plan.wording import from_to


def test_a_pure_reordering_shows_both_lists() -> None:
    swap = moves()[0].model_copy(
        update={
            "replicas_before": (BrokerId(1), BrokerId(2)),
            "replicas_after": (BrokerId(2), BrokerId(1)),
        }
    )
    assert from_to(swap) == "1,2 → 2,1"
