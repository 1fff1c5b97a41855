"""When a run has to start nothing further."""

import pytest

from executor.guards import Health, guards_of
from model.ids import PartitionId, TopicName
from tests.executor.plans import ids

ONE, OTHER = (PartitionId(TopicName("payments"), n) for n in range(2))
WELL = Health(
    alive=frozenset(ids([1, 2])),
    offline=frozenset({ONE}),
    under_replicated=frozenset({ONE}),
)


def reason(health: Health) -> str | None:
    return next((why for guard in guards_of(WELL) if (why := guard(health))), None)


def test_what_was_wrong_before_the_run_does_not_stop_it() -> None:
    assert reason(WELL) is None


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"alive": frozenset(ids([2]))}, "broker 1 died or was fenced"),
        (
            {"offline": frozenset({ONE, OTHER})},
            "payments-1, which the plan leaves alone, went offline",
        ),
        (
            {"under_replicated": frozenset({OTHER})},
            "payments-1, which the plan leaves alone, lost replicas in sync",
        ),
    ],
)
def test_what_gets_worse_is_named(now: dict[str, frozenset[int]], words: str) -> None:
    known = {name: getattr(WELL, name) for name in WELL.__dataclass_fields__}
    assert reason(Health(**(known | now))) == words
