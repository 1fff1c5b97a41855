"""Plans within budgets that bind: `python -P -m benchmarks.budgets`, into `budgets.md`.

Each instance is planned without budgets first; then with a half, a fifth and a twentieth of the
replica moves of that plan, of its leader changes as well, and with leader changes alone. Limits are
work units, so that all but CPU seconds is the same on every machine.
"""

import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.instances import build, goals_of, small
from benchmarks.machine import processor
from benchmarks.measure import cpu_seconds
from benchmarks.sections import measure_sections, table
from benchmarks.shapes import Shape, shape_of
from control.cli.plan_claims import claims
from model.goals.goals import Budgets, SolveLimits
from model.snapshot.snapshot import Snapshot
from model.units import share_text
from solver.solve import solve

PAGE: Final = Path(__file__).with_name("budgets.md")
SEEDS: Final = (1, 2, 3)
SHARES: Final = (2, 5, 20)
"""A budget is one in so many of the changes that a plan without budgets makes."""
WORK: Final = {
    "10x500": 5.0,
    "10x500-giants": 5.0,
    "9x500-rf3": 5.0,
    "9x500-rf3-near-level": 5.0,
    "50x5000-steep-two-sizes": 10.0,
    "51x5000-rf3": 10.0,
}
"""Work units by instance."""
HEAD: Final = ("budgets", "gap: median", "worst", "F: median", "work: median", "worst", "CPU s")


def budgets_of(snapshot: Snapshot, shape: Shape, work: float) -> Iterator[tuple[str, Budgets]]:
    """Budgets by what they are called."""
    free = solve(snapshot, goals_of(shape), SolveLimits(work=work)).best
    assert free is not None
    moves = sum(len(m.added) for m in free.moves)
    leaders = sum(m.leader_before != m.leader_after for m in free.moves)
    for part in SHARES:
        most = max(1, moves // part)
        yield f"1/{part} of the replica moves", Budgets(replica_moves=most)
    if shape.rf > 1:
        for part in SHARES:
            both = {"replica_moves": moves // part, "leader_changes": leaders // part}
            yield f"1/{part} of the leader changes, too", Budgets(**both)
        yield "no replica moves", Budgets(replica_moves=0)


def section(shape: Shape, work: float) -> str:
    """Plan all seeds; return the table. Raises ValueError for a plan that is not as it claims."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for seed in SEEDS:
        snapshot = build(shape, seed)
        for name, budgets in budgets_of(snapshot, shape, work):
            goals = goals_of(shape).model_copy(update={"budgets": budgets})
            before = cpu_seconds()
            result = solve(snapshot, goals, SolveLimits(work=work))
            spent, plan = cpu_seconds() - before, result.best
            if plan is None:
                raise ValueError(f"{shape.name}, seed {seed}, {name}: no plan")
            wrong = [c.words for c in claims(plan, snapshot) if c.holds is False]
            if wrong:
                raise ValueError(f"{shape.name}, seed {seed}, {name}: {'; '.join(wrong)}")
            share = plan.gap / plan.objective if plan.objective else 0.0
            found.setdefault(name, []).append((share, plan.objective, result.work, spent))
    return table(HEAD, [_row(name, measured) for name, measured in found.items()])


def _row(name: str, measured: list[tuple[float, float, float, float]]) -> tuple[str, ...]:
    gaps, objectives, works, seconds = zip(*measured, strict=True)
    return (
        name,
        share_text(statistics.median(gaps)),
        share_text(max(gaps)),
        f"{statistics.median(objectives):.4g}",
        f"{statistics.median(works):.2f}",
        f"{max(works):.2f}",
        f"{statistics.median(seconds):.1f}",
    )


def main() -> None:
    """Measure all instances, or the one of `--only`."""
    for name in WORK:
        kin = small(shape_of(name))
        solve(build(kin, 0), goals_of(kin), SolveLimits(work=1.0))
    sections = {
        name: (name, f"{work:g} work units.", partial(section, shape_of(name), work))
        for name, work in WORK.items()
    }
    head = (
        "# Budgets that bind\n\n"
        f"`python -P -m benchmarks.budgets`; seeds {', '.join(map(str, SEEDS))}; {processor()}.\n"
        "The gap is the one between F and the plan's own bound, as a share of F.\n"
        "Every plan is verified.\n"
        "The instances are explained in [README.md](README.md#instances)."
    )
    measure_sections(PAGE, head, sections)


if __name__ == "__main__":
    main()
