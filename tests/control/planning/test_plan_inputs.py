"""Changes of a cluster that require another plan."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import pytest

from control.planning.plan_inputs import AVERAGED_WINDOWS, Figure, Inputs, SolvedInputs
from control.planning.plan_needs import PlanNeed, Reason
from model.evaluate import evaluate
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, RecentMove, Snapshot
from tests.support.control.loop_parts import (
    EASY,
    MB,
    ORDERS,
    START_MS,
    cluster,
    constrained,
    with_header,
    with_state,
)

HOMES = [2] * 4 + [1, 3]
UNEVEN = PlanNeed(reason=Reason.OUT_OF_TOLERANCE, message="out of tolerance")
DEAD = PlanNeed(reason=Reason.DEAD_BROKER, message="broker 3 is dead")
OVER_LIMIT = PlanNeed(reason=Reason.OVER_LIMIT, message="over its limit")
WINDOW_S = 15.0
SPAN_S = WINDOW_S * AVERAGED_WINDOWS
BEFORE = cluster(HOMES, [MB] * 6)


def inputs(snapshot: Snapshot, *needs: PlanNeed) -> Inputs:
    evaluation = evaluate(snapshot, EASY, ())
    return Inputs.of(snapshot, EASY, evaluation, needs or (UNEVEN,))


def moved(age_s: int) -> Snapshot:
    at_ms = START_MS - 1000 * age_s
    move = RecentMove(topic=ORDERS, partition=0, left=(BrokerId(1),), at_ms=at_ms)
    return with_header(BEFORE, recent_moves=(move,))


def differs(now: Snapshot, *needs: PlanNeed, before: Snapshot = BEFORE, looks: int = 40) -> bool:
    """Whether a change that lasts for this many windows requires another plan."""
    answered = SolvedInputs.of(inputs(before), 0.0)
    seen = inputs(now, *needs)
    for look in range(1, looks + 1):
        answered = answered.seen(seen.loads, WINDOW_S * look, SPAN_S, EASY)
    return answered.differs(seen, SPAN_S, EASY)


@pytest.mark.parametrize(
    "now",
    [
        lambda: cluster([1, *HOMES[1:]], [MB] * 6),
        lambda: cluster(HOMES, [*[MB] * 4, 3 * MB, MB]),
        lambda: cluster(HOMES, [1.5 * MB] * 6),
        lambda: with_state(BEFORE, 3, BrokerState.CORDONED),
        lambda: constrained(BEFORE, a=1),
        lambda: moved(60),
    ],
    ids=["placement", "one load", "all loads", "cordoned", "placed", "cooldown"],
)
def test_inputs_that_matter_to_the_planner_differ(now: Callable[[], Snapshot]) -> None:
    assert differs(now())


def test_inputs_do_not_differ_by_time_alone() -> None:
    later = cluster(HOMES, [MB] * 6, taken_at_ms=START_MS + 86_400_000)
    assert not differs(later)


def test_inputs_differ_by_reason_and_by_the_end_of_a_cooldown() -> None:
    assert differs(BEFORE, DEAD, UNEVEN, looks=1)
    assert differs(moved(601), before=moved(599), looks=1)
    assert not differs(moved(3601))


def unsized(*rows: int) -> Snapshot:
    sizes = BEFORE.partitions.local_bytes.copy()
    sizes[list(rows)] = -1
    return replace(BEFORE, partitions=replace(BEFORE.partitions, local_bytes=sizes))


def test_a_size_that_becomes_known_requires_another_plan_at_once() -> None:
    """Until then no budget of bytes allows to copy the partition."""
    assert differs(BEFORE, before=unsized(2), looks=1)
    assert differs(unsized(1), before=unsized(1, 2), looks=1)


def test_a_size_that_becomes_unknown_requires_no_other_plan() -> None:
    assert not differs(unsized(2))


def test_sizes_known_in_turn_require_another_plan_only_after_a_while() -> None:
    assert not differs(unsized(1), before=unsized(2), looks=AVERAGED_WINDOWS - 1)
    assert differs(unsized(1), before=unsized(2), looks=AVERAGED_WINDOWS)


def test_a_reason_that_comes_and_goes_is_answered_once() -> None:
    """Noise brings a broker over its limit and back."""
    answered = SolvedInputs.of(inputs(BEFORE, OVER_LIMIT, UNEVEN), 0.0)
    assert not answered.differs(inputs(BEFORE, UNEVEN), SPAN_S, EASY)
    assert not answered.differs(inputs(BEFORE, OVER_LIMIT), SPAN_S, EASY)


Loads = dict[Figure, float]
STEADY: Loads = {("net_in", None): 5e6, ("net_out", None): 5e6} | {
    (key, BrokerId(broker)): deviation
    for key in ("net_in", "net_out")
    for broker, deviation in enumerate([0.4, 0.12, 0.1, 0.05, *[-0.06, -0.12] * 4])
}
"""Twelve brokers; the load of the first one belongs to an indivisible partition."""


def solves(courses: Iterable[Loads], *, sigma: float, seed: int) -> list[int]:
    """Windows in which a plan is computed again, under white noise of each broker."""
    same = inputs(BEFORE)
    noise, at = np.random.default_rng(seed), list[int]()
    answered: SolvedInputs | None = None
    for window, loads in enumerate(courses):
        now_s = WINDOW_S * window
        each = noise.normal(0.0, sigma, len(loads)).tolist()
        seen = {
            f: (1 + v) * (1 + e) - 1 if f[1] is not None else v * (1 + e / 3)
            for (f, v), e in zip(loads.items(), each, strict=True)
        }
        now = replace(same, loads=seen)
        if answered is not None:
            answered = answered.seen(seen, now_s, SPAN_S, EASY)
        if answered is None or answered.differs(now, SPAN_S, EASY):
            answered = SolvedInputs.of(now, now_s, answered)
            at.append(window)
    return at[1:]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("sigma", "most"), [(0.01, 0), (0.03, 1), (0.05, 8)])
@pytest.mark.slow
def test_a_steady_load_is_not_planned_again_however_it_fluctuates(
    sigma: float, most: int, seed: int
) -> None:
    day = repeat(STEADY, 5760)
    assert len(solves(day, sigma=sigma, seed=seed)) <= most


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("calm", [0, 5, 15, 25, 35, 400])
def test_a_shifted_load_is_planned_again_once(calm: int, seed: int) -> None:
    """A broker in the middle of the band leaves it, long after a plan or soon."""
    shifted = STEADY | {("net_in", BrokerId(3)): 0.2}
    loads = chain(repeat(STEADY, calm + 1), repeat(shifted, 400))
    (at,) = solves(loads, sigma=0.02, seed=seed)
    assert calm < at <= calm + 3 * AVERAGED_WINDOWS


def test_a_slow_drift_is_planned_again() -> None:
    loads = (STEADY | {("net_in", BrokerId(4)): -0.06 + 0.2 * at / 2000} for at in range(2000))
    assert 1 <= len(solves(loads, sigma=0.02, seed=1)) <= 4
