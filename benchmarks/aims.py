"""The planner beside the aims set for it: `python -P -m benchmarks.aims`.

Measures the instances of `ROWS` as `benchmarks.solver` does, keeps the figures in `solver.json`
and `bounds.json`, and renews the tables of `aims.md`; its text is written by hand.
"""

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.bounds import Bounds
from benchmarks.machine import processor
from benchmarks.measure import Measurement
from benchmarks.sections import table
from benchmarks.shapes import TO_PRICE_OF_MANY, shape_of
from benchmarks.solver import first_plan, gap, in_prices, measure_all, over, read_measured
from model.plan.plan import PlanStatus

HERE: Final = Path(__file__).parent
PAGE: Final = HERE / "aims.md"
SEEDS: Final = (1, 2, 3)
CONTROL_TIMES: Final = 1.5
"""Most CPU to aim at, in times Cruise Control's."""
ROUNDING: Final = 1e-6
"""Distance up to which a plan is the best known: `bounds.json` rounds its F."""
COMPILING_S: Final = 10.0
"""Most CPU seconds to aim at for compiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One instance and limit of work, and what its plans must reach with every seed."""

    instance: str
    work: float
    must: str
    goal: str = ""
    cpu_s: float | None = None
    """Most CPU seconds."""
    gap: float | None = None
    """Largest gap, as a share of the best bound."""
    over: float | None = None
    """Largest distance from the best plan known, as a share of it."""
    costs: float | None = None
    """The same in costs of a move; one of both suffices."""
    proved: bool = False
    """Every plan must be proved optimal."""


ROWS: Final = (
    *(
        Row(instance=name, work=20, must="3 CPU s, gap 0.1 %", goal="1 CPU s", cpu_s=3.0, gap=0.001)
        for name in ("u5", "5x60-rf3")
    ),
    Row(instance="6x60-rf3", work=5, must="proved", goal="proved in 1 s", proved=True),
    Row(instance="d12", work=20, must="gap 3 %", goal="proved", gap=0.03),
    *(
        Row(
            instance=name,
            work=10,
            must="1 % or 0.3 costs over the best known",
            goal="gap 2 %",
            over=0.01,
            costs=0.3,
        )
        for name in ("9x500-rf3-near-level", "12x500-rf3-drain")
    ),
    Row(
        instance="10x500-steep",
        work=10,
        must="0.3 costs over the best known",
        goal="optimal",
        costs=0.3,
    ),
    *(
        Row(instance=name, work=10, must="0.5 costs over the best known", costs=0.5)
        for name in ("9x500-rf3-steep", "9x500-rf3-giants")
    ),
    Row(
        instance="50x5000-steep-two-sizes",
        work=25,
        must="3 % over the best known, gap 30 %",
        goal="gap 15 %",
        over=0.03,
        gap=0.30,
    ),
    Row(instance="51x5000-rf3-steep", work=25, must="2 % over the best known", over=0.02),
    Row(instance="40x16667-rf3-dead-band", work=20, must="a plan"),
    Row(
        instance="200x40000",
        work=60,
        must="1.5 % over the best known",
        goal="1 % better",
        over=0.015,
    ),
    Row(instance="201x40000-rf3", work=60, must="0.7 % over the best known", over=0.007),
    Row(
        instance="1000x200000-two-sizes",
        work=60,
        must="3 % over the best known",
        goal="gap 5 %, first plan in 5 s",
        over=0.03,
    ),
)
HEAD: Final = (
    "instance",
    "work",
    "CPU s: median",
    "worst",
    "first plan",
    "proved",
    "gap: median",
    "worst",
    "in costs of a move",
    "over the best known: worst",
    "in costs of a move",
    "must",
    "goal",
    "must met",
)


def line(row: Row, found: Sequence[Measurement], bounds: Bounds) -> tuple[str, ...]:
    """Return the cells of one row; those of an instance that was not measured are empty."""
    cells = [row.instance, f"{row.work:g}"]
    if not found:
        return (*cells, *[""] * 9, row.must, row.goal, "not measured")
    bad = [one for one in found if not one.valid]
    if bad:
        faults = "; ".join(f"seed {one.seed}: {one.broken or one.status}" for one in bad)
        return (*cells, *[""] * 9, row.must, row.goal, f"no: {faults}")

    def values(of: Callable[[Measurement, Bounds], float]) -> list[float]:
        return [of(one, bounds) for one in found]

    cpu = [one.cpu_s for one in found]
    gaps, distances = values(gap), values(over)
    costs = [_costs_over(one, bounds) for one in found]
    proved = sum(one.status == PlanStatus.OPTIMAL for one in found)
    return (
        *cells,
        f"{statistics.median(cpu):.2f}",
        f"{max(cpu):.2f}",
        f"{statistics.median(map(first_plan, found)):.2f}",
        f"{proved} of {len(found)}",
        f"{statistics.median(gaps):.2%}",
        f"{max(gaps):.2%}",
        f"{statistics.median(values(in_prices)):.2f}",
        f"{max(distances):.2%}",
        f"{max(costs):.2f}",
        row.must,
        row.goal,
        _verdict(row, found, bounds),
    )


def _costs_over(one: Measurement, bounds: Bounds) -> float:
    return max(0.0, ((one.objective or 0.0) - bounds.objective(one)) / one.move_price)


def _verdict(row: Row, found: Sequence[Measurement], bounds: Bounds) -> str:
    """Whether every seed reaches what the row must."""
    missed = []
    if row.cpu_s is not None and max(one.cpu_s for one in found) > row.cpu_s:
        missed.append("CPU")
    if row.gap is not None and max(gap(one, bounds) for one in found) > row.gap:
        missed.append("gap")
    if row.proved and any(one.status != PlanStatus.OPTIMAL for one in found):
        missed.append("proof")
    if not all(_is_near(row, one, bounds) for one in found):
        missed.append("distance")
    if missed:
        return f"no: {', '.join(missed)}"
    return "open: is the best known" if _is_only_known(row, found, bounds) else "yes"


def _is_only_known(row: Row, found: Sequence[Measurement], bounds: Bounds) -> bool:
    """Whether a distance counts, but all plans are the best known, and bounds do not decide."""
    if row.over is None and row.costs is None:
        return False
    proved = [
        gap(one, bounds) <= (row.over or 0.0) or in_prices(one, bounds) <= (row.costs or 0.0)
        for one in found
    ]
    return not all(proved) and all(over(one, bounds) <= ROUNDING for one in found)


def _is_near(row: Row, one: Measurement, bounds: Bounds) -> bool:
    """Whether a plan is as near to the best known as the row asks, by either measure."""
    near = []
    if row.over is not None:
        near.append(over(one, bounds) <= row.over)
    if row.costs is not None:
        near.append(_costs_over(one, bounds) <= row.costs)
    return any(near) if near else True


def instances_table(bounds: Bounds) -> str:
    """The rows of `ROWS` as Markdown, from what `solver.json` has."""
    known = read_measured().values()
    rows = []
    for row in ROWS:
        found = [
            one
            for one in known
            if (one.instance, one.work) == (row.instance, row.work) and one.seed in SEEDS
        ]
        rows.append(line(row, found, bounds))
    return f"Seeds {', '.join(map(str, SEEDS))}; {processor()}.\n\n{table(HEAD, rows)}"


def equal_quality_table(page: str) -> str:
    """How often, on the page of equal quality, a plan as good took at most Cruise Control's CPU."""
    times: dict[tuple[str, str], list[float]] = {}
    for cells in _cells(page):
        if len(cells) == 8 and re.fullmatch(r"\d+\.\d+", cells[6]):
            times.setdefault((cells[1], cells[0]), []).append(float(cells[6]))
    rows = [
        (
            compared,
            goals,
            str(len(ratios)),
            str(sum(ratio <= 1.0 for ratio in ratios)),
            str(sum(ratio <= CONTROL_TIMES for ratio in ratios)),
            f"{statistics.median(ratios):.2f}",
            f"{max(ratios):.2f}",
        )
        for (compared, goals), ratios in sorted(times.items(), reverse=True)
    ]
    head = ("compared", "goals", "clusters", "at most its CPU", f"at most {CONTROL_TIMES:g} times")
    return table((*head, "times its CPU: median", "worst"), rows)


def compiling_table(page: str) -> str:
    """What compiling costs, from the page of first plans, and whether it is as little as asked."""
    rows = []
    for cells in _cells(page):
        if len(cells) == 8 and re.fullmatch(r"\d+\.\d+", cells[3]):
            offered, ready = ("yes" if float(cells[at]) <= COMPILING_S else "no" for at in (3, 6))
            rows.append((cells[0], cells[3], offered, cells[6], ready))
    aim = f"at most {COMPILING_S:g} s"
    return table(("instance", "until a plan is offered", aim, "until it is ready", aim), rows)


def _cells(page: str) -> list[list[str]]:
    lines = [line.strip() for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def renewed(page: str, name: str, text: str) -> str:
    """Return a page whose part between the comments of a name is replaced.

    Raises ValueError: the page has no such part.
    """
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page has no part {name!r}; add {start.strip()} and {end}")
    return f"{before}{start}\n{text}\n{end}{after}"


def write_page(bounds: Bounds) -> None:
    """Renew the tables of `aims.md`."""
    page = renewed(PAGE.read_text(), "instances", instances_table(bounds))
    quality = (HERE / "equal-quality.md").read_text()
    page = renewed(page, "equal quality", equal_quality_table(quality))
    compiling = (HERE / "first-plans.md").read_text()
    PAGE.write_text(renewed(page, "compiling", compiling_table(compiling)))


def main() -> None:
    """Measure, keep, renew the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="instances, joined by commas")
    words = f"also those of {TO_PRICE_OF_MANY} brokers or more"
    parser.add_argument("--large", action="store_true", help=words)
    parser.add_argument("--table", action="store_true", help="only renew the tables")
    given = parser.parse_args()
    only = given.only.split(",") if given.only else []
    unknown = set(only) - {row.instance for row in ROWS}
    if unknown:
        sys.exit(f"no aim is set for {', '.join(sorted(unknown))}")
    bounds, failed = Bounds(), []
    for row in () if given.table else ROWS:
        shape = shape_of(row.instance)
        large = shape.brokers >= TO_PRICE_OF_MANY
        if row.instance in only or not (only or (large and not given.large)):
            failed += measure_all([shape], SEEDS, [row.work], bounds)
            write_page(bounds)
    write_page(bounds)
    print(PAGE.read_text())
    if failed:
        sys.exit("not measured: " + "; ".join(failed))


if __name__ == "__main__":
    main()
