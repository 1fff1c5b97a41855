"""CPU until a plan is as good as Cruise Control's: `python -P -m benchmarks.equal_quality`.

The plans of Cruise Control are those recorded in `cruise.md`, so that it need not be there; with
it, `benchmarks.cruise` renews them first. What is rounded there counts in its favour. Writes
`equal-quality.md`.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.cruise import BAND, COUNTS, LIMIT, LIMITS, TABLE, AsGood, warm_up
from benchmarks.cruise_format import HOME_VARIABLE, UNITS, home, snapshot_of
from benchmarks.machine import processor
from benchmarks.measure import cpu_seconds
from benchmarks.random_clusters import SPECS, random_cluster
from benchmarks.sections import measure_sections, table
from model.goals.goals import Budgets, Goal, Goals, ObjectiveKind, SolveLimits
from model.snapshot.snapshot import Measure, Resource, Snapshot, StorageKind
from solver.solve import solve

PAGE: Final = Path(__file__).with_name("equal-quality.md")
WORK: Final = 60.0
AIM: Final = 1.5
"""Most CPU to aim at, in times Cruise Control's."""
MOVE_PRICE: Final = 1e-6
"""Cost of a move where Cruise Control's number of moves is the budget."""
HALF_DIGITS: Final = {2: 0.005, 3: 0.0005}
"""Largest error of a figure rounded to so many decimals."""
LARGEST: Final = (Resource.CPU, Resource.DISK, Resource.NET_IN, Resource.NET_OUT)
"""Order of the resources in a cell of `cruise.md` with largest deviations; else that of `UNITS`."""
WORDS: Final = (
    "`moves into the same bands`: the fewest moves after which no broker deviates from the average "
    "by more than 9 %, or by more than Cruise Control left; a move costs 1, a change of leader "
    "0.05. `balance at its moves`: the sum of squared deviations, with its moves and leader "
    "changes as budgets.\nCruise Control's plans and CPU are those recorded in "
    "[cruise.md](cruise.md), which names the machine; where figures there are rounded, it gets the "
    "benefit. plimsoll runs with warm compiled code, and stops at the first plan that is as good. "
    f"At most {AIM:g} times its CPU is the aim; more is a loss."
)
HEAD: Final = (
    "Cruise Control's goals",
    "compared",
    "moves: Cruise Control",
    "plimsoll then",
    "CPU s: Cruise Control",
    "plimsoll",
    "times its CPU",
    "",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A plan of Cruise Control, as a row of `cruise.md` has it."""

    goals: str
    """`resource` or `default`."""
    moves: int
    leader_changes: int
    cpu_s: float
    largest: Mapping[Measure, float]
    """Largest deviation of any broker from the average, rounded down."""
    spread: Mapping[Measure, float]
    """Standard deviation over mean, rounded down, where it is recorded."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What its goals balance."""
        counts = tuple(COUNTS) if self.goals == "default" else ()
        return (*self.spread, *counts)


COLUMNS_READ: Final = {"moves": 2, "leaders": 3, "largest": 5, "spread": 6, "counts": 8, "cpu": 10}
"""Positions of the columns of `cruise.md` that are read."""


def recorded(page: str) -> dict[str, list[Recorded]]:
    """Read Cruise Control's plans of each instance from the text of `cruise.md`."""
    found: dict[str, list[Recorded]] = {}
    for line in page.splitlines():
        name, plan, *_ = cells = [cell.strip() for cell in f"{line}||".strip().split("|")][1:]
        kind = re.match("Cruise Control, (resource|default) goals", plan)
        if kind and "no plan" not in plan:
            found.setdefault(name, []).append(_recorded(kind[1], cells))
    return found


def _recorded(goals: str, cells: list[str]) -> Recorded:
    at = {name: cells[column].replace(",", "") for name, column in COLUMNS_READ.items()}
    largest = _figures(LARGEST, at["largest"], 1 + HALF_DIGITS[2])
    return Recorded(
        goals=goals,
        moves=int(at["moves"]),
        leader_changes=int(at["leaders"]),
        cpu_s=float(at["cpu"]),
        largest=largest | _figures(tuple(COUNTS), at["counts"], 1 + HALF_DIGITS[2]),
        spread=_figures(tuple(UNITS), at["spread"], HALF_DIGITS[3]),
    )


def _figures(names: Sequence[Measure], cell: str, less: float) -> dict[Measure, float]:
    """Figures of a cell by measure, `less` subtracted; `-` is none."""
    figures = zip(names, cell.split(), strict=True)
    return {name: float(figure) - less for name, figure in figures if figure != "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Goals for plimsoll, and F of Cruise Control's plan by them."""

    words: str
    goals: Goals
    aim: float
    """At least what Cruise Control's plan costs or leaves is not less than this."""


def comparisons(theirs: Recorded, brokers: int) -> Iterator[Comparison]:
    """Fewest moves into the same bands, then the best balance at its moves."""
    bands = tuple(
        Goal(resource=m, floor=0.0, tolerance=max(BAND, theirs.largest[m])) for m in theirs.measures
    )
    band = Goals(
        objective=ObjectiveKind.BAND, balance=bands, capacity_limit=LIMIT, capacity_limits=LIMITS
    )
    cost = theirs.moves + band.leader_price_share * theirs.leader_changes
    yield Comparison(words="moves into the same bands", goals=band, aim=cost)
    budgets = Budgets(replica_moves=theirs.moves, leader_changes=theirs.leader_changes)
    even = Goals(
        balance=tuple(Goal(resource=m, floor=0.0, tolerance=BAND) for m in theirs.measures),
        budgets=budgets,
        move_price=MOVE_PRICE,
        tolerance_first=False,
        capacity_limit=LIMIT,
        capacity_limits=LIMITS,
    )
    left = math.fsum(_squares(theirs, m, brokers) for m in theirs.measures)
    yield Comparison(words="balance at its moves", goals=even, aim=left + MOVE_PRICE * cost)


def _squares(theirs: Recorded, measure: Measure, brokers: int) -> float:
    """Least sum of squared deviations that the recorded figures allow."""
    if measure in theirs.spread:
        return brokers * max(0.0, theirs.spread[measure]) ** 2
    # One broker deviates that far, the others make up for it equally.
    return max(0.0, theirs.largest[measure]) ** 2 * brokers / (brokers - 1)


class UntilAsGood(AsGood):
    """Ends the solve with the first plan that is as good."""

    def stops(self) -> bool:
        """Whether a plan as good was found."""
        return self.cpu_s is not None


def section(name: str, theirs: Sequence[Recorded], work: float = WORK) -> str:
    """Compare on one cluster; return its table."""
    document = random_cluster(name)
    snapshot = snapshot_of(document, StorageKind.SHARED)
    rows = [
        _row(snapshot, plan, comparison, work)
        for plan in theirs
        for comparison in comparisons(plan, len(document["brokers"]))
    ]
    return table(HEAD, rows)


def _row(
    snapshot: Snapshot, theirs: Recorded, comparison: Comparison, work: float
) -> Sequence[str]:
    observer = UntilAsGood(comparison.aim)
    began_s = cpu_seconds()
    result = solve(snapshot, comparison.goals, SolveLimits(work=work), observer)
    spent_s = cpu_seconds() - began_s
    moves = 0 if result.best is None else sum(len(m.added) for m in result.best.moves)
    as_good_s = None if observer.cpu_s is None else observer.cpu_s - began_s
    # As printed, so that the table agrees with itself.
    times = round(spent_s if as_good_s is None else as_good_s, 2) / theirs.cpu_s
    return [
        theirs.goals,
        comparison.words,
        f"{theirs.moves:,}",
        f"{moves:,}",
        f"{theirs.cpu_s:.2f}",
        f"{spent_s:.2f}, not as good" if as_good_s is None else f"{as_good_s:.2f}",
        f"{times:.2f}",
        verdict(times, as_good=as_good_s is not None),
    ]


def verdict(times: float, *, as_good: bool) -> str:
    """Say who needs less, in words; `times` is plimsoll's CPU over Cruise Control's."""
    if not as_good:
        return "loses: no plan as good"
    if times <= 1:
        return "wins"
    return f"within {AIM:g} times" if times <= AIM else "loses"


def _words(name: str) -> str:
    spec = SPECS[name]
    replicas = "one replica" if spec.rf == 1 else f"{spec.rf} replicas"
    return f"{spec.brokers} brokers, {spec.partitions:,} partitions, {replicas} each."


def main() -> None:
    """Compare on all clusters, or on the one of `--only`."""
    if home() is None:
        print(
            f"Cruise Control is not run: set {HOME_VARIABLE} to the folder that holds "
            "cc-goals.jar; its recorded plans are compared"
        )
    plans = recorded(TABLE.read_text())
    # With several replicas and with one, which other loops plan.
    for name in (n for n in SPECS if n.startswith(("s1-", "s2-"))):
        warm_up(snapshot_of(random_cluster(name)))
    measure_sections(
        PAGE,
        f"CPU seconds until plimsoll's plan is no worse than Cruise Control's recorded one; "
        f"{processor()}.\n{WORDS}",
        {name: (name, _words(name), partial(section, name, plans[name])) for name in SPECS},
    )


if __name__ == "__main__":
    main()
