"""Internal topics move before a run only where a log directory forces them to."""

from dataclasses import replace

import pytest

from executor.run.plan_evaluation import refuse_broken
from executor.run.preflight import Observed
from model.errors import GuardrailRefused
from model.goals.goals import EmptiedDir, Goals
from model.ids import BrokerId
from model.plan.plan import ANY_DIR, Move, Plan
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


def emptying(moved: Move, *paths: str) -> Plan:
    dirs = tuple(EmptiedDir(broker=BrokerId(1), path=path) for path in paths)
    return plan([moved]).model_copy(update={"goals": Goals(emptied=dirs)}).seal()


def inside(to: str) -> Move:
    return move(
        before=(1, 2),
        after=(1, 2),
        topic=INTERNAL,
        dirs_before=("/a", "/a"),
        dirs_after=(to, "any"),
    )


def outside(at: str) -> Move:
    return move(
        before=(1, 2),
        after=(2, 3),
        topic=INTERNAL,
        dirs_before=(at, "/a"),
        dirs_after=(ANY_DIR, ANY_DIR),
    )


def test_an_internal_topic_leaves_an_emptied_directory() -> None:
    for moved in (inside("/b"), outside("/a")):
        found = emptying(moved, "/a")
        refuse_broken(found, observed(found))


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (outside("/b"), "its topic is internal"),
        (inside("/c"), "would go to /c of broker 1, which is emptied"),
    ],
)
def test_no_other_move_profits_from_an_emptied_directory(moved: Move, words: str) -> None:
    found = emptying(moved, "/a", "/c")
    with pytest.raises(GuardrailRefused, match=words):
        refuse_broken(found, observed(found))
