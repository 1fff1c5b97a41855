"""The cost of imbalanced log directories, by the plain half."""

import pytest

from model.evaluate import directory_cost, evaluate_proposal
from model.goals.goals import Goal, Goals, ObjectiveKind
from model.snapshot.snapshot import BrokerState, LogDir, Resource, Snapshot
from tests.support.model.clusters import brokers, change, propose, wide

LEVELLED = Goals(balance=(Goal(resource=Resource.DISK, weight=2.0),), level_directories=True)


def jbod(
    capacity: tuple[float | None, float | None] = (None, None),
    state: BrokerState = BrokerState.ALIVE,
) -> Snapshot:
    """Two of 100 bytes in /a of broker 1; /b is empty, and so is broker 2."""
    dirs = tuple(
        LogDir(path=path, capacity_bytes=size)
        for path, size in zip(("/a", "/b"), capacity, strict=True)
    )
    members = [b.model_copy(update={"log_dirs": dirs}) for b in brokers(2, states={1: state})]
    return wide(members, [(1,), (1,)], {Resource.DISK: [100, 100]}, dirs=[[0], [0]])


def test_with_one_full_directory_of_two_each_deviates_by_the_average() -> None:
    """The weight is that of the goal for disks."""
    proposal = propose(jbod(), goals=LEVELLED)
    assert directory_cost(proposal, 1.0) == pytest.approx(4.0)
    assert evaluate_proposal(proposal).objective == pytest.approx(4.0 + 4.0)


def test_a_replica_in_each_of_two_directories_is_balanced() -> None:
    proposal = propose(jbod(), change(0, 1, dirs=("/b",)), goals=LEVELLED)
    assert directory_cost(proposal, 1.0) == pytest.approx(0.0)


def test_an_incoming_replica_counts_in_its_named_directory() -> None:
    named = propose(jbod(), change(0, 2, dirs=("/b",)), goals=LEVELLED)
    assert directory_cost(named, 1.0) == pytest.approx(8.0)
    chosen_by_broker = propose(jbod(), change(0, 2), goals=LEVELLED)
    assert directory_cost(chosen_by_broker, 1.0) == pytest.approx(4.0)


def test_directories_are_balanced_by_the_share_of_their_capacity() -> None:
    """200 of 300 and 0 of 100: the average is a half."""
    proposal = propose(jbod((300.0, 100.0)), goals=LEVELLED)
    assert directory_cost(proposal, 1.0) == pytest.approx(2 * ((4 / 3 - 1) ** 2 + 1))


def test_under_a_band_the_excess_is_priced() -> None:
    band = LEVELLED.model_copy(update={"objective": ObjectiveKind.BAND})
    proposal = propose(jbod(), goals=band)
    assert directory_cost(proposal, 0.5) == pytest.approx(2 * 10_000 * 0.5 * 1.8)


@pytest.mark.parametrize(
    ("state", "goals"),
    [
        (jbod(), LEVELLED.model_copy(update={"level_directories": False})),
        (jbod(state=BrokerState.SLOW), LEVELLED),
        (
            jbod(),
            LEVELLED.model_copy(update={"balance": (Goal(resource=Resource.DISK, floor=201.0),)}),
        ),
    ],
)
def test_directories_that_are_not_balanced_cost_nothing(state: Snapshot, goals: Goals) -> None:
    """By default, on a broker that takes no load, or under the floor."""
    assert directory_cost(propose(state, goals=goals), 1.0) == 0.0
