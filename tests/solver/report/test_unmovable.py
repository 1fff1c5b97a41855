"""What no allowed move can remove: a true bound by causes, reported where large."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from model.evaluate import evaluate_proposal
from model.goals.goals import Goals, SolveLimits
from model.names import Names
from model.plan.plan import PlanStatus
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.problem.problem import compile_problem
from solver.report.unmovable import imbalance, unmovable, unmovable_text
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, moved
from tests.support.solver.zipf_clusters import synthetic

STATES = (BrokerState.ALIVE, BrokerState.ALIVE, BrokerState.CORDONED)


def least_imbalance(snapshot: Snapshot, given_goals: Goals) -> float:
    """Of all allowed placements of rows of one replica, tried one by one."""
    ids = list(snapshot.broker)
    result = []
    for places in itertools.product(ids, repeat=len(snapshot)):
        changes = [
            Change(row, (place,), place)
            for row, place in enumerate(places)
            if (place,) != snapshot.replicas(row)
        ]
        evaluation = evaluate_proposal(Proposal(snapshot, given_goals, tuple(changes)))
        if not evaluation.violations:
            result.append(evaluation.deviation)
    return min(result)


@pytest.mark.parametrize("seed", range(20))
def test_no_allowed_placement_leaves_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = rng.choice(3, 3).tolist()
    states[0] = 0
    members = [
        broker(i + 1, None, STATES[s], float(rng.integers(20, 60))) for i, s in enumerate(states)
    ]
    rows = [
        Row(
            replicas=(int(rng.integers(1, 4)),),
            load=tuple(rng.integers(1, 9, 2).astype(float).tolist()),
        )
        for _ in range(5)
    ]
    snapshot = cluster(members, rows, recent=[moved(i, 9, 60) for i in range(2)])
    given_goals = goals(1e-6)
    whole = sum(p.deviation for p in unmovable(compile_problem(snapshot, given_goals)))
    assert whole <= least_imbalance(snapshot, given_goals) + 1e-9


def test_divisible_load_leaves_no_imbalance() -> None:
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 8)
    problem = compile_problem(snapshot, goals())
    assert imbalance(problem) == 4.0
    assert unmovable(problem) == ()


def test_excluded_topics_that_fill_a_broker_are_reported() -> None:
    """Ten of twelve topics may not move, and lie on one broker of four."""
    snapshot = _hot_topics()
    given_goals = Goals(excluded_topics=Names(prefix=("t00",)))
    result = solve(snapshot, given_goals, SolveLimits(work=1.0))
    message = " ".join(result.reasons)
    assert "no allowed move removes" in message
    assert "partitions belong to excluded topics" in message
    assert "; ".join(result.reasons) in result.summary()


def _hot_topics() -> Snapshot:
    """Topics t000 to t009 lie on broker 0 alone."""
    base = synthetic(4, 120, seed=5)
    columns = base.partitions
    hot = columns.topic < 10
    brokers = np.where(hot, 0, columns.replica_broker)
    return Snapshot(base.header, replace(columns, replica_broker=brokers, leader=brokers))


def test_causes_are_counted_one_after_the_other() -> None:
    members = [broker(1), broker(2), broker(3, state=BrokerState.CORDONED)]
    rows = [Row(replicas=(1,), load=(8.0, 8.0)), *[Row(replicas=(2,))] * 4]
    snapshot = cluster(members, rows, recent=[moved(0, 3, 60)])
    parts = unmovable(compile_problem(snapshot, goals()))
    assert [p.cause for p in parts] == [
        "broker 3 (cordoned) takes no new load",
        "1 partition is in cooldown after a recent move",
    ]
    # In levels of 4 bytes/s, two resources: (6, 6, 0), then (8, 4, 0).
    assert [p.deviation for p in parts] == [
        pytest.approx(2 * (0.25 + 0.25 + 1)),
        pytest.approx(2 * (1 + 0 + 1) - 3),
    ]


def test_a_small_unmovable_part_is_not_reported() -> None:
    rows = [Row(replicas=(1,), load=(1.0, 1.0))] * 20
    rows.append(Row(replicas=(1,), load=(11.0, 11.0)))
    snapshot = cluster([broker(1), broker(2)], rows, recent=[moved(20, 2, 60)])
    assert unmovable_text(compile_problem(snapshot, goals())) == ()


def test_the_message_has_share_total_and_causes() -> None:
    rows = [Row(replicas=(1,), load=(3.0, 3.0)), Row(replicas=(2,))]
    snapshot = cluster([broker(1), broker(2)], rows, recent=[moved(0, 2, 60)])
    result = solve(snapshot, goals(), SolveLimits(work=1.0))
    assert result.status is PlanStatus.NO_IMPROVEMENT
    assert result.reasons[-1] == (
        "no allowed move removes 1 of the imbalance 1 (100 %): 1 since 1 partition "
        "is in cooldown after a recent move"
    )
