"""Every mode ends within its search budget, and soon after a request to stop."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.goals.goals import Goal, Goals, RackRule, SolveLimits
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import Count, Resource, Snapshot, StorageKind
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.solver.begun_search import banded
from tests.support.solver.cpu_time import least_of
from tests.support.solver.exact_oracle import Row, broker, cluster
from tests.support.solver.hard_clusters import hard, over_capacity
from tests.support.solver.solve_modes import MODES

WORKS = (0.01, 0.3)
FREE_S = 2.0
"""CPU seconds that a command may take whatever its budget."""

FACTOR = 1.5
"""CPU seconds that a unit of work may take, on the machine on which work was measured."""

STOP_S = 1.0
"""CPU seconds that a solve may take once it is asked to stop."""

HOPELESS = 10.0
"""Multiple of the allowed time after which a run is aborted as endless."""


class Asking(SolveObserver):
    """Asks to stop from its n-th poll on, and records when that was."""

    def __init__(self, looks: int) -> None:
        self._left = looks
        self.asked_at_s: float | None = None

    def stops(self) -> bool:
        self._left -= 1
        if self._left < 0 and self.asked_at_s is None:
            self.asked_at_s = time.process_time()
        return self._left < 0


class Patient(SolveObserver):
    """Asks to stop after so much CPU time, where a signal would not end CP-SAT."""

    def __init__(self, cpu_s: float) -> None:
        self._ends_at_s = time.process_time() + cpu_s

    def stops(self) -> bool:
        return time.process_time() > self._ends_at_s


@contextmanager
def cpu_limit(cpu_s: float) -> Iterator[None]:
    """Fail once so much CPU time is used, so that no endless loop hangs the suite."""

    def fail(*_: object) -> None:
        raise AssertionError(f"still running after {cpu_s:g} s of CPU")

    before = signal.signal(signal.SIGPROF, fail)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def cpu_of(name: str, case: tuple[Snapshot, Goals], work: float) -> float:
    """CPU seconds of one run of a mode, all threads."""
    with cpu_limit(HOPELESS * (FACTOR * work + FREE_S) + 120):
        before = time.process_time()
        MODES[name](*case, SolveLimits(work=work), SolveObserver())
        return time.process_time() - before


def cpu_after_stop(name: str, case: tuple[Snapshot, Goals], looks: int) -> float:
    """CPU seconds from the request to stop to the end; 0 without a request."""
    asking = Asking(looks)
    with cpu_limit(HOPELESS * FREE_S + 120):
        MODES[name](*case, SolveLimits(work=20.0), asking)
        now = time.process_time()
    return 0.0 if asking.asked_at_s is None else now - asking.asked_at_s


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("work", WORKS)
@pytest.mark.slow
def test_unreachable_limits_do_not_prevent_termination(name: str, work: float) -> None:
    most = FACTOR * work + FREE_S
    case = over_capacity(), Goals()
    assert least_of(lambda: cpu_of(name, case, work), most) <= most


def test_rounds_with_tangents_are_charged_their_time() -> None:
    """CP-SAT's deterministic time is half of its CPU time here."""
    rng = random.Random(2)
    rows = [
        Row(replicas=tuple(rng.sample(range(1, 9), 4)), load=(rng.paretovariate(1.1), 1.0))
        for _ in range(27)
    ]
    snapshot = cluster([broker(b) for b in range(1, 9)], rows)
    case = snapshot, Goals(balance=(Goal(resource=Count.LEADERS),))
    work = 5.0
    most = FACTOR * work + FREE_S
    assert least_of(lambda: cpu_of("plan", case, work), most) <= most


def test_models_of_open_choices_are_charged() -> None:
    """A frontier builds eleven, which took most of its CPU time and no work."""
    rng = random.Random(3)

    def load() -> tuple[float, float]:
        return rng.paretovariate(1.1), rng.paretovariate(1.1)

    rows = [
        Row(replicas=tuple(rng.sample(range(1, 25), 2)), load=load(), later=load())
        for _ in range(80)
    ]
    snapshot = cluster([broker(b) for b in range(1, 25)], rows)
    counts = (Goal(resource=Count.TOPIC_LEADERS), Goal(resource=Count.REPLICAS))
    rates = tuple(Goal(resource=r) for r in (Resource.NET_IN, Resource.NET_OUT))
    case = snapshot, Goals(balance=(*rates, *counts))
    work = 1.0
    most = FACTOR * work + FREE_S
    assert least_of(lambda: cpu_of("frontier", case, work), most) <= most


def test_models_of_a_narrow_band_are_charged_their_time() -> None:
    """Probing with cuts took ten times CP-SAT's deterministic time here."""
    replicas = ((2, 1), (3, 0), (0, 3), (3, 0), (2, 1))
    loads = 3 * ((4e6, 4e6),) + 2 * ((4e6, 12e6),)
    rows = [Row(replicas=at, load=load) for at, load in zip(replicas, loads, strict=True)]
    brokers = [broker(b, capacity=4e7) for b in range(4)]
    snapshot = cluster(brokers, rows, storage=StorageKind.TIERED)
    goals = banded(0.01).model_copy(update={"leader_price_share": 1.0, "rack_rule": RackRule.OFF})
    case, work = (snapshot, goals), 1.0
    most = FACTOR * work + FREE_S
    assert least_of(lambda: cpu_of("plan", case, work), most) <= most


def test_costs_that_fall_unit_by_unit_do_not_prevent_the_proof() -> None:
    """CP-SAT found 2^40 solutions here, with the same placement, nearly for free."""
    rows = [Row(replicas=(1,), load=(3.0, 6.0))] * 3
    rows.append(Row(replicas=(2,), load=(0.0, 0.0)))
    snapshot = cluster([broker(1), broker(2)], rows)
    net_in = (Goal(resource=Resource.NET_IN, floor=0.0),)
    for price in (0.05, 0.15, 0.3):
        goals = Goals(balance=net_in, move_price=price)
        result = solve(snapshot, goals, SolveLimits(work=1.0), Patient(cpu_s=20.0))
        assert result.status is PlanStatus.OPTIMAL


@pytest.mark.search
@pytest.mark.parametrize("name", MODES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), work=st.sampled_from(WORKS))
@pytest.mark.slow
def test_every_mode_ends_within_its_budget(name: str, seed: int, work: float) -> None:
    most, case = FACTOR * work + FREE_S, hard(seed)
    assert least_of(lambda: cpu_of(name, case, work), most) <= most


@pytest.mark.search
@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.slow
def test_larger_clusters_end_within_the_budget_too(name: str, seed: int) -> None:
    most, case = FACTOR * 1.0 + FREE_S, hard(seed, 30, 1_500)
    assert least_of(lambda: cpu_of(name, case, 1.0), most) <= most


@pytest.mark.search
@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("looks", [0, 3, 40])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_every_mode_stops_soon_on_request(name: str, looks: int, seed: int) -> None:
    case = hard(seed, 20, 600)
    assert least_of(lambda: cpu_after_stop(name, case, looks), STOP_S) <= STOP_S


def test_an_exhausted_budget_is_reported() -> None:
    result = solve(over_capacity(), Goals(), SolveLimits(work=0.3))
    assert result.exhausted
    assert result.limited_by == "search budget for repairs exhausted, a share of 0.3 units of work"
    assert result.best is not None
    assert result.best.limited_by == result.limited_by
