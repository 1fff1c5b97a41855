"""The words of the question whether a plan is to be carried out."""

from model.ids import BrokerId
from tests.tui.views import moves, plan
from tui.viewmodel.approval import NAMED, touched


def test_brokers_are_named_as_far_as_one_can_read_and_the_others_counted() -> None:
    many = tuple(
        moves()[0].model_copy(
            update={
                "replicas_before": (BrokerId(2 * number),),
                "replicas_after": (BrokerId(2 * number + 1),),
            }
        )
        for number in range(NAMED)
    )
    words = touched(plan().model_copy(update={"moves": many})).split("; ")
    assert words[:2] == ["0 gives 1", "1 gets 1"]
    assert words[NAMED:] == [f"and {NAMED} more brokers"]


def test_all_brokers_are_named_where_they_are_few() -> None:
    assert touched(plan()) == "1 gives 4; 2 gets 2; 3 gets 2"
