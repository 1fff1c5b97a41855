"""Statuses, reasons, limits and the size of what can be proved."""

import subprocess
import sys

import pytest

from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import BrokerState, Snapshot, StorageKind
from solver.cpsat.model import MAX_PAIRS
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.paths import ROOT
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, moved
from tests.support.solver.zipf_clusters import synthetic

LIMITS = SolveLimits(work=5.0)
EIGHT_ON_ONE = [Row(replicas=(1,))] * 8
DRAINING = BrokerState.DRAINING


def answer(snapshot: Snapshot, given_goals: Goals | None = None) -> Result:
    return solve(snapshot, given_goals or goals(), LIMITS)


def test_no_brokers_or_no_partitions_are_balanced() -> None:
    for brokers in ([], [broker(1)]):
        result = answer(cluster(brokers, []))
        assert result.status is PlanStatus.ALREADY_BALANCED
        assert result.best is not None
        assert result.best.moves == ()
        assert "no " in result.reasons[0]


def test_loads_under_the_floor_are_balanced_already() -> None:
    """The reason names resource, load and floor."""
    result = answer(cluster([broker(1), broker(2)], EIGHT_ON_ONE), Goals())
    assert result.status is PlanStatus.ALREADY_BALANCED
    assert "net_in is 4 B/s per broker on average, its floor is 1.05 MB/s" in " ".join(
        result.reasons
    )


def test_an_even_cluster_is_balanced_already() -> None:
    rows = [Row(replicas=(i % 2 + 1,)) for i in range(8)]
    result = answer(cluster([broker(1), broker(2)], rows))
    assert result.status is PlanStatus.ALREADY_BALANCED
    assert result.reasons == (
        "every broker is within its tolerance band: 10.0 % in net_in, 10.0 % in net_out",
    )
    assert result.objective == result.bound == 0.0


def test_moves_that_cost_more_than_they_gain_are_not_made() -> None:
    """Uneven, proved, empty plan."""
    given_goals = goals(10.0, tolerance_first=False)
    result = answer(cluster([broker(1), broker(2)], EIGHT_ON_ONE), given_goals)
    assert result.status is PlanStatus.NO_IMPROVEMENT
    assert result.best is not None
    assert result.best.moves == ()
    assert result.reasons == (
        "no allowed move gains more than its cost, 10.5 of F",
        "outside the tolerance: broker 1 is +100 % in bytes in (tolerance 10 %), broker 1 is "
        "+100 % in bytes out (tolerance 10 %), broker 2 is -100 % in bytes in (tolerance 10 %), "
        "broker 2 is -100 % in bytes out (tolerance 10 %): the goals do not put the tolerance "
        "first",
    )


def test_a_broker_that_died_with_its_data_does_not_prevent_balancing() -> None:
    """Its partitions without a leader stay; those of the others move."""
    lost = [Row(replicas=(1,), leader=-1)]
    members = [broker(1, state=BrokerState.DEAD), broker(2), broker(3)]
    result = answer(cluster(members, lost + [Row(replicas=(2,))] * 8))
    assert result.status is PlanStatus.OPTIMAL
    assert result.best is not None
    assert [m.replicas_after for m in result.best.moves] == [(3,)] * 4


def test_a_cluster_in_cooldown_is_reported() -> None:
    recent = [moved(i, 2, 60) for i in range(8)]
    snapshot = cluster([broker(1), broker(2)], EIGHT_ON_ONE, recent=recent)
    result = answer(snapshot)
    assert result.status is PlanStatus.NO_IMPROVEMENT
    assert result.reasons == (
        "8 of 8 partitions are in cooldown after a recent move",
        "no allowed move removes 4 of the imbalance 4 (100 %): 4 since 8 partitions "
        "are in cooldown after a recent move",
    )


@pytest.mark.parametrize(
    ("snapshot", "given_goals", "message"),
    [
        (
            cluster([broker(1), broker(2)], [Row(replicas=(1,), leader=-1)] * 2),
            goals(),
            "2 of 2 partitions have no leader",
        ),
        (
            cluster([broker(1), broker(2)], EIGHT_ON_ONE),
            goals(excluded_topics=("orders",)),
            "8 of 8 partitions belong to excluded topics",
        ),
        (
            cluster([broker(1), broker(2)], EIGHT_ON_ONE),
            goals(stay=[{"topic": "orders", "partitions": list(range(8))}]),
            "8 of 8 partitions are kept in place by the goals",
        ),
        (
            cluster(
                [broker(1), broker(2)], EIGHT_ON_ONE, storage=StorageKind.TIERED, internal=True
            ),
            goals(),
            "8 of 8 partitions belong to internal topics",
        ),
    ],
)
def test_excluded_partitions_are_counted(
    snapshot: Snapshot, given_goals: Goals, message: str
) -> None:
    assert answer(snapshot, given_goals).reasons[0] == message


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        (
            cluster([broker(1, state=DRAINING)], EIGHT_ON_ONE),
            "broker 1 (draining) must be emptied, but no alive broker is left",
        ),
        (
            cluster([broker(1, state=DRAINING), broker(2)], [Row(replicas=(1, 2))]),
            "orders-0 has 2 replicas; only broker 2 is not draining; replication "
            "factor 2 cannot be kept",
        ),
        (
            cluster([broker(1, state=DRAINING), broker(2, capacity=8)], EIGHT_ON_ONE),
            "the brokers that may hold load are allowed 7 B/s of bytes in together, but "
            "they have to carry 8 B/s",
        ),
        (
            cluster(
                [broker(1, state=DRAINING), *(broker(i, capacity=10) for i in (2, 3))],
                [Row(replicas=(1,), load=(5.0, 5.0))] * 3,
            ),
            "orders-0 (1 replica), orders-1 (1 replica) and orders-2 (1 replica) have "
            "to be placed; broker 1 is draining; brokers 2 and 3 may be filled to "
            "85 % in bytes in; these requirements cannot all be met",
        ),
    ],
)
def test_infeasibility_is_explained(snapshot: Snapshot, message: str) -> None:
    result = answer(snapshot)
    assert result.status is PlanStatus.INFEASIBLE
    assert result.best is None
    assert result.objective is None
    assert message in result.reasons
    assert message in result.summary()


def test_a_drained_broker_ends_empty() -> None:
    """Forced moves are free, come first, and have a reason."""
    brokers = [broker(1, state=DRAINING), broker(2), broker(3)]
    result = answer(cluster(brokers, EIGHT_ON_ONE), goals(5.0))
    assert result.best is not None
    assert {b.id: b.replicas_after for b in result.best.brokers} == {1: 0, 2: 4, 3: 4}
    assert {m.reason for m in result.best.moves} == {"leaves broker 1, which is draining"}


def test_reasons_name_the_broker_relieved() -> None:
    result = answer(cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 2))
    assert result.best is not None
    (move,) = result.best.moves
    assert move.reason == (
        "relieves broker 1 (net_in 100 % over its level); broker 2 is 100 % under its level"
    )


def test_the_gain_is_what_f_would_rise_by_without_the_move() -> None:
    snapshot, given_goals = synthetic(3, 20, seed=4), Goals()
    best = answer(snapshot, given_goals).best
    assert best is not None
    whole = evaluate(snapshot, given_goals, best.moves).objective
    assert len(best.moves) > 1
    for move in best.moves:
        others = [m for m in best.moves if m is not move]
        without = evaluate(snapshot, given_goals, others).objective
        assert move.gain == pytest.approx(without - whole)
        assert move.gain > 0


@pytest.mark.slow
def test_replicas_keep_their_order_behind_the_leader() -> None:
    """Leader first, then those that stay in their old order, then new ones."""
    snapshot = synthetic(6, 24, rf=3, seed=1)
    best = answer(snapshot, Goals()).best
    assert best is not None
    assert best.moves
    for move in best.moves:
        stay = [b for b in move.replicas_before if b in move.replicas_after]
        stay = [b for b in stay if b != move.leader_after]
        new = [b for b in move.added if b != move.leader_after]
        assert move.replicas_after == (move.leader_after, *stay, *sorted(new))


def test_plan_times_come_from_the_snapshot() -> None:
    snapshot = cluster([broker(1), broker(2)], EIGHT_ON_ONE)
    best = answer(snapshot).best
    assert best is not None
    assert best.snapshot_taken_at_ms == snapshot.header.taken_at_ms
    assert best.snapshot_fingerprint == snapshot.fingerprint


def test_observers_are_notified_only_of_progress() -> None:
    """Objectives fall, bounds rise, and the last ones are the result's."""

    class Recorder(SolveObserver):
        def __init__(self) -> None:
            self.objectives: list[float] = []
            self.bounds: list[float] = []

        def on_solution(self, objective: float, moves: int) -> None:
            self.objectives.append(objective)

        def on_bound(self, bound: float) -> None:
            self.bounds.append(bound)

    recorder = Recorder()
    result = solve(synthetic(3, 30, seed=2), Goals(), LIMITS, recorder)
    assert recorder.objectives == sorted(set(recorder.objectives), reverse=True)
    assert recorder.bounds == sorted(set(recorder.bounds))
    assert recorder.objectives[-1] == result.objective
    assert recorder.bounds[-1] == result.bound


def test_a_tiny_search_budget_still_gives_an_honest_result() -> None:
    """The plan is kept, the gap is stated, and it is not called optimal."""
    snapshot = synthetic(6, 60, rf=3)
    result = solve(snapshot, Goals(), SolveLimits(work=0.01))
    assert result.status is PlanStatus.IMPROVED
    assert result.best is not None
    assert result.best.gap > 1e-6
    assert evaluate(snapshot, Goals(), result.best.moves).violations == ()


@pytest.mark.slow
def test_clusters_beyond_the_exact_model_get_a_plan() -> None:
    """An allowed plan, and a bound below it."""
    snapshot = synthetic(40, MAX_PAIRS // 40 + 10, seed=3)
    result = solve(snapshot, Goals(move_price=0.05), LIMITS)
    assert result.status is PlanStatus.IMPROVED
    assert result.best is not None
    assert result.best.bound <= result.best.objective < result.best.objective_before
    assert evaluate(snapshot, result.best.goals, result.best.moves).violations == ()


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_three_brokers_and_sixty_partitions_are_proved(seed: int) -> None:
    snapshot = synthetic(3, 60, seed=seed)
    result = solve(snapshot, Goals(), LIMITS)
    assert result.status is PlanStatus.OPTIMAL
    assert result.best is not None
    assert evaluate(snapshot, Goals(), result.best.moves).violations == ()


AFTER_A_SOLVE = """
import signal
from pathlib import Path
from model.goals.goals import Goals, SolveLimits
from model.snapshot.file import read_snapshot
from solver.solve import solve
solve(read_snapshot(Path("fixtures/demo.json")), Goals(), SolveLimits())
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_solve_does_not_change_the_handling_of_ctrl_c() -> None:
    """CP-SAT can catch SIGINT, and then leaves its default action behind."""
    run = subprocess.run(
        [sys.executable, "-c", AFTER_A_SOLVE], cwd=ROOT, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (0, "interrupted\n"), run.stderr
