"""Measures one solve in a process of its own: `python -P -m benchmarks.measure`.

CPU seconds count all threads and processes that were started and ended. Compiled code
is warm: a small instance of the same kind is solved first. Memory is the largest
resident size from the start of the solve, the instance itself included. The plan is
verified as `plimsoll verify` does, outside the time that is measured.
"""

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.instances import build, goals_of, instance_digest, small
from benchmarks.shapes import Shape, shape_of
from control.cli.plan_claims import claims, snapshot_claim
from model.goals.goals import SolveLimits
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot
from solver.search.observer import SolveObserver
from solver.solve import solve

WARM_WORK = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One solve of one instance within one limit of work."""

    instance: str
    seed: int
    work: float
    digest: str
    """Which instance it was: placement, loads and header."""
    status: str
    valid: bool
    """There is a plan, and no claim of it was found wrong (`plimsoll verify`)."""
    broken: str
    """Claims that do not hold, in words."""
    objective_before: float | None
    objective: float | None
    bound: float | None
    price_bound: float
    """The part of the bound that was recomputed from the plan's prices."""
    moves: int
    move_price: float
    cpu_s: float
    wall_s: float
    work_done: float
    first_cpu_s: float | None
    """CPU seconds until the first valid plan that changes something."""
    rss_mib: float

    @property
    def key(self) -> str:
        """`instance/seed/work`."""
        return f"{self.instance}/{self.seed}/{self.work:g}"


class FirstPlan(SolveObserver):
    """Notes when the first plan with a move in it was found."""

    def __init__(self) -> None:
        self.cpu_s: float | None = None

    def on_solution(self, objective: float, moves: int) -> None:
        """A better plan was found."""
        if moves and self.cpu_s is None:
            self.cpu_s = cpu_seconds()


def cpu_seconds() -> float:
    """User and system seconds of this process and of its ended children."""
    return sum(os.times()[:4])


def measure(shape: Shape, seed: int, work: float) -> Measurement:
    """Solve one instance once, warm."""
    kin = small(shape)
    solve(build(kin, 0), goals_of(kin), SolveLimits(work=WARM_WORK))
    snapshot, goals = build(shape, seed), goals_of(shape)
    first = FirstPlan()
    _forget_peak()
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = solve(snapshot, goals, _limits(shape, seed, work), first)
    wall_s, cpu_s = time.perf_counter() - wall, cpu_seconds() - cpu
    rss = _peak_mib()
    plan = result.best
    broken = "" if plan is None else _broken(snapshot, plan)
    return Measurement(
        instance=shape.name,
        seed=seed,
        work=work,
        digest=instance_digest(shape, snapshot),
        status=result.status.value,
        valid=plan is not None and not broken,
        broken=broken,
        objective_before=None if plan is None else plan.objective_before,
        objective=result.objective,
        bound=result.bound,
        price_bound=0.0 if plan is None or broken else plan.price_bound,
        moves=0 if plan is None else len(plan.moves),
        move_price=shape.move_price if plan is None else plan.move_price,
        cpu_s=cpu_s,
        wall_s=wall_s,
        work_done=result.work,
        first_cpu_s=None if first.cpu_s is None else first.cpu_s - cpu,
        rss_mib=rss,
    )


def _limits(shape: Shape, seed: int, work: float) -> SolveLimits:
    """The limit of work; where a proof is the aim, no gap ends the search before it."""
    limits = SolveLimits(work=work, seed=seed if shape.case else 0)
    proof = shape.aim_within(work).gap == 0.0
    return limits.model_copy(update={"gap_share": 0.0}) if proof else limits


def _broken(snapshot: Snapshot, plan: Plan) -> str:
    """What `plimsoll verify` would call not as the plan claims."""
    found = (snapshot_claim(plan, snapshot), *claims(plan, snapshot))
    return "; ".join(f"{c.name}: {c.words}" for c in found if c.holds is False)


def _forget_peak() -> None:
    """Reset the kernel's peak of resident memory (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def main() -> None:
    """Print one measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instance")
    parser.add_argument("seed", type=int)
    parser.add_argument("work", type=float)
    given = parser.parse_args()
    print(json.dumps(asdict(measure(shape_of(given.instance), given.seed, given.work))))


if __name__ == "__main__":
    main()
