"""Replicas leave the log directories that the goals empty."""

from dataclasses import replace

import numpy as np

from model.evaluate import evaluate
from model.goals.goals import EmptiedDir, Goals
from model.goals.move_costs import directory_changes
from model.ids import BrokerId
from model.names import Names
from model.plan.plan import ANY_DIR
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import LogDir, Snapshot, StorageKind
from tests.support.model import clusters
from tests.support.model.clusters import words

EMPTIED = (EmptiedDir(broker=BrokerId(1), path="/a"),)
GOALS = Goals(emptied=EMPTIED)
RULE = "emptied directories"


def seen(internal: bool = False) -> Snapshot:
    """Rows 0 and 1 are in /a of broker 1, row 2 in /b; broker 3 holds nothing."""
    members = [
        b.model_copy(update={"log_dirs": (LogDir(path="/a"), LogDir(path="/b"))})
        for b in clusters.brokers(3)
    ]
    found = clusters.snapshot(members, [(1, 2), (2, 1), (1, 2)], storage=StorageKind.REPLICATED)
    topics = tuple(t.model_copy(update={"internal": internal}) for t in found.header.topics)
    columns = replace(found.partitions, replica_dir=np.array([0, 0, 1, 0, 1, 1], np.int64))
    return Snapshot(found.header.model_copy(update={"topics": topics}), columns)


def change(row: int, replicas: tuple[int, ...], *log_dirs: str, leader: int = 0) -> Change:
    held = tuple(map(BrokerId, replicas))
    return Change(row, held, BrokerId(leader or replicas[0]), log_dirs)


INSIDE = change(0, (1, 2), "/b", ANY_DIR)
OUTSIDE = change(1, (2, 3), ANY_DIR, ANY_DIR)


def proposed(*changes: Change, goals: Goals = GOALS, internal: bool = False) -> Proposal:
    return Proposal(seen(internal), goals, changes)


def test_replicas_must_leave_inside_the_broker_or_to_others() -> None:
    assert words(proposed(), RULE) == [
        "orders-0 would stay in /a of broker 1, which is emptied",
        "orders-1 would stay in /a of broker 1, which is emptied",
    ]
    assert words(proposed(INSIDE, OUTSIDE), RULE) == []
    kept = change(1, (2, 1), ANY_DIR, "/a")
    assert len(words(proposed(INSIDE, kept), RULE)) == 1
    unnamed = change(1, (1, 2), leader=1)
    assert len(words(proposed(INSIDE, unnamed), RULE)) == 1


def test_nothing_goes_to_an_emptied_directory() -> None:
    back = change(2, (1, 2), "/a", ANY_DIR)
    assert words(proposed(INSIDE, OUTSIDE, back), RULE) == [
        "orders-2 would go to /a of broker 1, which is emptied"
    ]


def test_internal_and_excluded_topics_may_leave_and_nothing_else_of_them_moves() -> None:
    excluded = GOALS.model_copy(update={"excluded_topics": Names(exact=("orders",))})
    other = change(2, (1, 3))
    for proposal in (
        proposed(INSIDE, OUTSIDE, other, internal=True),
        proposed(INSIDE, OUTSIDE, other, goals=excluded),
    ):
        (fault,) = words(proposal, "movable partitions")
        assert fault.startswith("orders-2 stays: its topic is ")


def test_leaving_an_emptied_directory_is_free() -> None:
    assert directory_changes(proposed(), INSIDE) == 0
    assert directory_changes(proposed(goals=Goals()), INSIDE) == 1
    free = evaluate(seen(), GOALS, ())
    assert free.objective == evaluate(seen(), Goals(), ()).objective
