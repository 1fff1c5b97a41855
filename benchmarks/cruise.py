"""plimsoll beside Cruise Control's own goals: `python -P -m benchmarks.cruise`.

Both plan the same instance, and both plans are judged by `score.py`, which comes with
the goals. Cruise Control runs in a warm JVM, plimsoll with warm compiled code; seconds
are CPU seconds over all threads. Writes `cruise.md`.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.cruise_format import (
    HOME_VARIABLE,
    UNITS,
    Document,
    home,
    proposals,
    read,
    score,
    snapshot_of,
)
from benchmarks.machine import processor
from benchmarks.measure import cpu_seconds
from model.errors import InvalidCluster
from model.evaluate import evaluate_proposal
from model.goals.goals import Budgets, Goal, Goals, ObjectiveKind, SolveLimits
from model.ids import BrokerId, PartitionId
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import Count, Measure, Resource, Snapshot, StorageKind
from solver.search.observer import SolveObserver
from solver.solve import solve

TABLE: Final = Path(__file__).with_name("cruise.md")
BAND: Final = 0.09
"""Cruise Control's balance threshold of 1.10 less its margin of a tenth."""
LIMITS: Final = {Resource.CPU: 0.7}
"""Its capacity threshold of CPU; that of the others is `LIMIT`."""
LIMIT: Final = 0.8
COUNTS: Final = {
    Count.REPLICAS: "replicas",
    Count.LEADERS: "leaders",
    Count.LEADER_NET_IN: "leader_nw_in",
}
"""Counts that its default goals level too, by their name in its figures."""
COLUMNS: Final = (
    "instance",
    "plan",
    "moves",
    "leader changes",
    "GB",
    "max/mean cpu, disk, in, out",
    "stddev/mean",
    "their sum",
    "replicas, leaders, leader in",
    "bound",
    "CPU s",
    "as good after",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One planner's plan of one instance."""

    instance: str
    plan: str
    judged: Document
    """What `score.py` says."""
    cpu_s: float
    moved: Sequence[Document] = ()
    """The proposals."""
    bound: float | None = None
    """Proved least price of all moves together, where one was proved."""
    as_good_s: float | None = None
    """CPU seconds to a plan no worse than the other planner's by the same goals."""

    @property
    def moves(self) -> int:
        """Replicas on brokers that had none."""
        return int(self.judged["totals"]["replica_moves"])

    @property
    def leader_changes(self) -> int:
        """Partitions with another leader."""
        return int(self.judged["totals"]["leader_changes"])

    @property
    def spread(self) -> float:
        """Sum over the resources of stddev / mean."""
        return sum(self.of(name, "stddev_over_mean") for name, _ in UNITS.values())

    def of(self, name: str, figure: str) -> float:
        """A figure of one resource or count; 0 where nothing is loaded."""
        return float(self.judged["after"][name][figure] or 0.0)


class AsGood(SolveObserver):
    """Notes when a plan was found that is no worse than another planner's."""

    def __init__(self, objective: float) -> None:
        self._objective = objective
        self.cpu_s: float | None = None

    def on_solution(self, objective: float, moves: int) -> None:
        """A better plan was found."""
        if self.cpu_s is None and objective <= self._objective * (1 + 1e-9):
            self.cpu_s = cpu_seconds()


class Comparison:
    """All plans of one instance."""

    def __init__(self, where: Path, path: Path, work: float) -> None:
        self._where, self._path, self._work = where, path, work
        self._document = read(path)
        self._name = str(self._document["name"])
        self._snapshot = snapshot_of(self._document)
        # Cruise Control counts moves, whatever they copy: so do the comparisons.
        self._by_moves = snapshot_of(self._document, StorageKind.SHARED)

    def rows(self) -> Iterator[Row]:
        """The instance as it is, Cruise Control's plans, plimsoll's plans."""
        yield self._row("before", [], 0.0)
        resource = self.cruise("resource")
        default = self.cruise("default")
        yield resource
        yield from self._against(resource, ())
        yield default
        yield from self._against(default, tuple(COUNTS))
        yield self.plimsoll("own prices", self._goals(()), self._snapshot)

    def cruise(self, goals: str) -> Row:
        """Cruise Control's plan with `resource` or `default` goals."""
        names = "hard+resource" if goals == "resource" else goals
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "report.json"
            command = [sys.executable, "-B", str(self._where / "run.py")]
            command += [str(self._path), "--goals", names, "--new-as-alive"]
            command += ["--warmup", "3", "--out", str(out)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode not in (0, 3):
                raise RuntimeError(f"Cruise Control on {self._path}: {run.stderr}")
            report = read(out)
        found = report["proposals"] if report["status"] == "ok" else []
        return self._row(_words(goals, report), found, report["seconds"]["optimise_cpu"])

    def plimsoll(
        self, words: str, goals: Goals, snapshot: Snapshot, theirs: Row | None = None
    ) -> Row:
        """plimsoll's plan, and when it was as good as another planner's."""
        aim = 0.0 if theirs is None else _objective(snapshot, goals, theirs)
        as_good = AsGood(aim)
        limits = SolveLimits(work=self._work)
        cpu = cpu_seconds()
        result = solve(snapshot, goals, limits, as_good)
        cpu_s = cpu_seconds() - cpu
        moves = () if result.best is None else result.best.moves
        row = self._row(f"plimsoll, {words}: {result.status}", proposals(moves), cpu_s)
        return replace(
            row,
            bound=result.bound if goals.objective is ObjectiveKind.BAND else None,
            as_good_s=None if as_good.cpu_s is None else as_good.cpu_s - cpu,
        )

    def _against(self, theirs: Row, counts: tuple[Count, ...]) -> Iterator[Row]:
        """Fewest moves into the same bands, then the best balance at their moves.

        Nothing where they changed nothing.
        """
        if not theirs.moves and not theirs.leader_changes:
            return
        band = self._goals(counts, theirs).model_copy(update={"objective": ObjectiveKind.BAND})
        yield self.plimsoll("same bands", band, self._by_moves, theirs)
        budgets = Budgets(replica_moves=theirs.moves, leader_changes=theirs.leader_changes)
        equal = self._goals(counts).model_copy(update={"budgets": budgets, "move_price": 1e-6})
        yield self.plimsoll("same moves", equal, self._by_moves, theirs)

    def _goals(self, counts: tuple[Count, ...], theirs: Row | None = None) -> Goals:
        measures: tuple[Measure, ...] = (*self._snapshot.header.resources, *counts)
        return Goals(
            balance=tuple(
                Goal(resource=m, floor=0.0, tolerance=_tolerance(m, theirs)) for m in measures
            ),
            capacity_limit=LIMIT,
            capacity_limits=LIMITS,
        )

    def _row(self, plan: str, moved: Sequence[Document], cpu_s: float) -> Row:
        judged = score(self._where, self._document, moved)
        return Row(instance=self._name, plan=plan, judged=judged, cpu_s=cpu_s, moved=moved)


def _objective(snapshot: Snapshot, goals: Goals, theirs: Row) -> float:
    """F of another planner's plan by plimsoll's evaluator."""
    changes = []
    for moved in theirs.moved:
        row = snapshot.find(PartitionId(moved["topic"], moved["partition"]))
        assert row is not None
        replicas = tuple(BrokerId(broker) for broker in moved["new"])
        changes.append(Change(row, replicas, replicas[0]))
    return evaluate_proposal(Proposal(snapshot, goals, tuple(changes))).objective


def _words(goals: str, report: Document) -> str:
    """Cruise Control gives no plan when a hard goal fails."""
    if report["status"] != "ok":
        failed = ", ".join(report["failed_goals"])
        return f"Cruise Control, {goals} goals: no plan, {failed} fails"
    missed = ", ".join(g.removesuffix("Goal") for g in report["violated_goals"])
    return f"Cruise Control, {goals} goals" + (f"; missed: {missed}" if missed else "")


def _tolerance(measure: Measure, theirs: Row | None) -> float:
    """9 %, or what the other planner reached where that is wider."""
    if theirs is None:
        return BAND
    name = UNITS[measure][0] if isinstance(measure, Resource) else COUNTS[measure]
    mean = theirs.of(name, "mean")
    if mean <= 0:
        return BAND
    reached = max(theirs.of(name, "max") / mean - 1, 1 - theirs.of(name, "min") / mean)
    return min(1.0, max(BAND, reached * (1 + 1e-9)))


def table(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    lines = [
        f"The same instances, both plans judged by one program; {processor()}. `same "
        "bands`: the fewest moves after which no broker deviates from the average by "
        "more than 9 %, or by more than Cruise Control left. `same moves`: the best "
        "balance with at most its moves and leader changes. In both, a move costs 1, "
        "whatever it copies, and a change of leader 0.05; the bound is the lowest cost "
        "of any plan into the same bands. `own prices`: plimsoll's default, where "
        "moves cost by the bytes they copy. `as good after`: CPU seconds until the "
        "first plan that is no worse than Cruise Control's by the same goals.\n",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
        *(_line(row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    largest = [row.of(name, "max_over_mean") for name in ("cpu", "disk", "nw_in")]
    largest.append(row.of("nw_out", "max_over_mean"))
    counts = [row.of(name, "max_over_mean") for name in COUNTS.values()]
    spreads = [row.of(name, "stddev_over_mean") for name, _ in UNITS.values()]
    cells = [
        row.instance,
        row.plan,
        f"{row.moves:,}",
        f"{row.leader_changes:,}",
        f"{row.judged['totals']['mb_to_move'] / 1000:,.0f}",
        " ".join(f"{v:.2f}" if v else "-" for v in largest),
        " ".join(f"{v:.3f}" if v else "-" for v in spreads),
        f"{row.spread:.4f}",
        " ".join(f"{v:.2f}" for v in counts),
        "" if row.bound is None else f"{row.bound:.1f}",
        f"{row.cpu_s:.2f}",
        "" if row.as_good_s is None else f"{row.as_good_s:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def instances(where: Path, folder: Path, names: Sequence[str]) -> list[Path]:
    """Files of the named instances: fixtures, and those that `gen.py` makes.

    Without names: all that it makes. Ends the program where neither has a name.
    """
    fixtures = {p.name.removesuffix(".json.gz"): p for p in where.glob("fixtures/*")}
    made = [name for name in names if name not in fixtures]
    if made or not names:
        command = [sys.executable, "-B", str(where / "gen.py"), str(folder), *made]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"no instances {', '.join(made)}: gen.py has none of that name")
    chosen = names or _generated(folder)
    return [fixtures.get(name, folder / f"{name}.json.gz") for name in chosen]


def _generated(folder: Path) -> list[str]:
    return sorted(p.name.removesuffix(".json.gz") for p in folder.iterdir())


def warm_up(snapshot: Snapshot) -> None:
    """Compile both objectives on a small instance."""
    for objective in ObjectiveKind:
        goals = Goals(objective=objective, balance=tuple(Goal(resource=r) for r in UNITS))
        solve(snapshot, goals, SolveLimits(work=1.0))


def main() -> None:
    """Compare and print each row; write the table when all instances were run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="instances, joined by commas")
    parser.add_argument("--work", type=float, default=40.0)
    given = parser.parse_args()
    where = home()
    if where is None:
        print(
            f"skipped: Cruise Control's goals are not there; set {HOME_VARIABLE} to "
            "the folder that holds cc-goals.jar"
        )
        return
    names = given.only.split(",") if given.only else []
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        (small,) = instances(where, Path(folder), ["s1-6x300-rf3"])
        warm_up(snapshot_of(read(small)))
        for path in instances(where, Path(folder), names):
            try:
                comparison = Comparison(where, path, given.work)
            except InvalidCluster as exc:
                print(f"left out: {exc}", flush=True)
                continue
            for row in comparison.rows():
                print(_line(row), flush=True)
                rows.append(row)
    if not names:
        TABLE.write_text(table(rows))


if __name__ == "__main__":
    main()
