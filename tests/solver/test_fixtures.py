"""Plans of the recorded clusters in `fixtures/` never change."""

import os
import subprocess
import sys
from functools import cache

import pytest
from syrupy.assertion import SnapshotAssertion

from model.evaluate import evaluate
from model.files import canonical
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import Plan, PlanStatus
from model.snapshot.file import read_snapshot
from model.snapshot.snapshot import Resource, Snapshot
from solver.solve import solve
from tests.support.paths import ROOT

NAMES = ("tutorial.json", "demo.json", "replicated.json.gz")


def load(name: str) -> Snapshot:
    return read_snapshot(ROOT / "fixtures" / name)


@cache
def plan_of(name: str, work: float = SolveLimits().work) -> Plan:
    best = solve(load(name), Goals(), SolveLimits(work=work)).best
    assert best is not None
    return best


def plan_bytes(name: str, work: float = SolveLimits().work) -> bytes:
    return canonical(plan_of(name, work).model_dump(mode="json"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_fixture_is_planned_to_the_optimum(name: str) -> None:
    """Proved to 1e-6 of F, without a violation, and sealed."""
    plan = plan_of(name)
    assert plan.status is PlanStatus.OPTIMAL
    assert plan.gap <= 1e-6
    evaluation = evaluate(load(name), Goals(), plan.moves)
    assert evaluation.violations == ()
    assert evaluation.objective == pytest.approx(plan.objective)
    assert plan.hash == plan.seal().hash


def test_the_tutorial_ends_three_three_two() -> None:
    plan = plan_of("tutorial.json")
    assert sorted(b.replicas_after for b in plan.brokers) == [2, 3, 3]
    assert len(plan.moves) == 5
    assert plan.bytes_to_copy == 0


def test_the_demo_is_balanced_within_ten_percent() -> None:
    plan = plan_of("demo.json")
    for resource in (Resource.NET_IN, Resource.NET_OUT):
        assert plan.spread(resource, after=False) == pytest.approx(2.0)
        assert plan.spread(resource, after=True) <= 0.10
    assert plan.bytes_to_copy == sum(m.bytes_to_copy or 0 for m in plan.moves) > 0


def test_three_replicas_stay_in_three_racks() -> None:
    plan = plan_of("replicated.json.gz")
    racks = {b.id: b.rack for b in plan.brokers}
    assert plan.moves
    for move in plan.moves:
        assert len({racks[b] for b in move.replicas_after}) == 3
        assert move.replicas_after[0] == move.leader_after


def test_the_plan_of_the_demo_is_known_to_the_byte(snapshot: SnapshotAssertion) -> None:
    assert plan_bytes("demo.json").decode() == snapshot


@pytest.mark.parametrize("name", ["demo.json", "replicated.json.gz"])
@pytest.mark.slow
def test_another_process_makes_the_same_bytes(name: str) -> None:
    """Another hash seed and another process change nothing."""
    code = (
        "import sys; from tests.solver.test_fixtures import plan_bytes; "
        f"sys.stdout.buffer.write(plan_bytes({name!r}, 1.0))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT)},
    )
    assert run.stdout == plan_bytes(name, 1.0)
