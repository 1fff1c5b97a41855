"""Measures the planner and writes `solver.md`: `python -P -m benchmarks.solver`.

Each solve runs in a process of its own (`benchmarks.measure`). Results are stored
in `solver.json`, so that `--only` renews a part of the table.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks.bounds import Bounds
from benchmarks.machine import processor
from benchmarks.measure import Measurement
from benchmarks.shapes import SHAPES, Aim, Shape, shapes_of
from model.plan.plan import PlanStatus

HERE: Final = Path(__file__).parent
MEASURED: Final = HERE / "solver.json"
TABLE: Final = HERE / "solver.md"
COLUMNS: Final = (
    "instance",
    "work",
    "CPU s",
    "first plan",
    "MiB",
    "moves",
    "proved optimal",
    "F before",
    "F",
    "best bound",
    "by prices",
    "gap",
    "worst seed",
    "in move prices",
    "of possible improvement",
    "over best known",
    "aim",
)


def run_one(shape: Shape, seed: int, work: float) -> Measurement:
    """Measure in a process of its own."""
    command = [sys.executable, "-P", "-m", "benchmarks.measure"]
    command += [shape.name, str(seed), str(work)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measurement(**json.loads(out.stdout.splitlines()[-1]))


def read_measured(path: Path = MEASURED) -> dict[str, Measurement]:
    """What was measured before, by key."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())
    return {one.key: one for one in (Measurement(**row) for row in rows)}


def write_measured(found: dict[str, Measurement], path: Path = MEASURED) -> None:
    """One line each, sorted by key."""
    rows = [json.dumps(asdict(found[key])) for key in sorted(found)]
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def table(found: Sequence[Measurement], bounds: Bounds) -> str:
    """The table as Markdown; one row an instance and limit, medians over seeds."""
    seeds = sorted({one.seed for one in found})
    lines = [
        f"Medians over the seeds {', '.join(map(str, seeds))}; "
        f"`make bench-solver`; {processor()}. CPU seconds over all threads, with warm "
        "compiled code. The gap is that between F and the best bound ever proved for "
        "the instance (`bounds.json`): as a share of the bound, of the worst seed, in "
        "move costs, and as the share (F before - F) / (F before - bound) of the "
        "improvement that was possible at most. `by prices`: the part of the best "
        "bound that was recomputed from the prices in the plan. Every plan was "
        "verified as `plimsoll verify` does; a row states any failure.\n",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
    ]
    for shape in SHAPES:
        mine = [one for one in found if one.instance == shape.name]
        for work in sorted({one.work for one in mine}):
            rows = [one for one in mine if one.work == work]
            lines.append(_line(shape, shape.aim_within(work), rows, bounds))
    return "\n".join(lines) + "\n"


def _line(shape: Shape, aim: Aim, rows: Sequence[Measurement], bounds: Bounds) -> str:
    planned = [one for one in rows if one.objective is not None and one.valid]
    cells = [shape.name, f"{aim.work:g}", _median(rows, lambda m: m.cpu_s, "{:.2f}")]
    if len(planned) < len(rows):
        bad = "; ".join(_fault(m) for m in rows if m not in planned)
        return "| " + " | ".join([*cells, bad, *[""] * 12, _aim(aim)]) + " |"
    worst = max(gap(one, bounds) for one in planned)
    cells += [
        _median(planned, first_plan, "{:.2f}"),
        _median(planned, lambda m: m.rss_mib, "{:.0f}"),
        _median(planned, lambda m: m.moves, "{:.0f}"),
        f"{sum(m.status == PlanStatus.OPTIMAL for m in planned)} of {len(planned)}",
        _median(planned, lambda m: m.objective_before or 0.0, "{:.4g}"),
        _median(planned, lambda m: m.objective or 0.0, "{:.5g}"),
        _median(planned, bounds.bound, "{:.5g}"),
        _median(planned, lambda m: _by_prices(m, bounds), "{:.1%}"),
        _median(planned, lambda m: gap(m, bounds), "{:.2%}"),
        f"{worst:.2%}",
        _median(planned, lambda m: in_prices(m, bounds), "{:.2f}"),
        _median(planned, lambda m: _share(m, bounds), "{:.3%}"),
        _median(planned, lambda m: over(m, bounds), "{:.2%}"),
        _aim(aim),
    ]
    return "| " + " | ".join(cells) + " |"


def _fault(one: Measurement) -> str:
    return f"seed {one.seed}: {one.broken or one.status}"


def _by_prices(one: Measurement, bounds: Bounds) -> float:
    bound = bounds.bound(one)
    return one.price_bound / bound if bound > 0 else 1.0


def first_plan(one: Measurement) -> float:
    """Seconds to the first plan with a move; all of them where none was made."""
    return one.cpu_s if one.first_cpu_s is None else one.first_cpu_s


def _aim(aim: Aim) -> str:
    wanted = []
    if aim.gap is not None:
        wanted.append(f"gap {aim.gap:.1%}" if aim.gap else "proved optimal")
    if aim.over is not None:
        wanted.append(f"{aim.over:.0%} or 1 move price over best known")
    if aim.besides:
        wanted.append(aim.besides)
    return ", ".join(wanted)


def _median(rows: Sequence[Measurement], pick: Callable[[Measurement], float], form: str) -> str:
    return form.format(statistics.median(pick(one) for one in rows))


def gap(one: Measurement, bounds: Bounds) -> float:
    """The gap to the best bound, as a share of it; infinite where that is 0."""
    bound = bounds.bound(one)
    return ((one.objective or 0.0) - bound) / bound if bound > 0 else math.inf


def in_prices(one: Measurement, bounds: Bounds) -> float:
    """The gap to the best bound, in costs of a move."""
    return ((one.objective or 0.0) - bounds.bound(one)) / one.move_price


def over(one: Measurement, bounds: Bounds) -> float:
    """The distance of F from that of the best plan known, as a share of it."""
    best = bounds.objective(one)
    return max(0.0, (one.objective or 0.0) / best - 1) if best > 0 else 0.0


def _share(one: Measurement, bounds: Bounds) -> float:
    before = one.objective_before or 0.0
    possible = before - bounds.bound(one)
    return (before - (one.objective or 0.0)) / possible if possible > 0 else 1.0


def measure_all(
    shapes: Sequence[Shape], seeds: Sequence[int], works: Sequence[float], bounds: Bounds
) -> list[str]:
    """Measure and keep each; what failed, in words."""
    found, failed = read_measured(), []
    for shape in shapes:
        for work in works or [aim.work for aim in shape.aims]:
            for seed in seeds:
                try:
                    one = run_one(shape, seed, work)
                except subprocess.CalledProcessError:
                    failed.append(f"{shape.name} of seed {seed} within {work:g}")
                    continue
                print(json.dumps(asdict(one)), flush=True)
                found[one.key] = one
                bounds.learn([one])
                write_measured(found)
    return failed


def main() -> None:
    """Measure, keep, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="instances, joined by commas")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--works", help="limits of work, joined by commas")
    parser.add_argument("--table", action="store_true", help="only write the table")
    given = parser.parse_args()
    bounds = Bounds()
    failed = []
    if not given.table:
        shapes = shapes_of(given.only) if given.only else SHAPES
        seeds = [int(seed) for seed in given.seeds.split(",")]
        works = [float(work) for work in given.works.split(",")] if given.works else []
        failed = measure_all(shapes, seeds, works, bounds)
    TABLE.write_text(table(list(read_measured().values()), bounds))
    print(TABLE.read_text())
    if failed:
        sys.exit("not measured: " + "; ".join(failed))


if __name__ == "__main__":
    main()
