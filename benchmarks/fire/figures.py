"""The figures of many worlds, and the tables of `benchmarks/fire.md`."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.fire.fire_world import Outcome, outcome_of
from benchmarks.fire.invariants import Violation
from benchmarks.fire.mutants import UNSEEN
from benchmarks.fire.scenarios import FaultKind, scenario_of
from benchmarks.sections import table


@dataclass(slots=True, kw_only=True)
class Figures:
    """Sums over worlds."""

    runs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    met: Counter[FaultKind] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    """How the newest run ended, in a word or two."""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    """From the beginning of the first world to the end of the last."""
    days: float = 0.0
    """Simulated."""
    violations: list[tuple[int, Violation]] = field(default_factory=list)
    """With their seeds."""

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count one world."""
        self.runs += 1
        self.counts["processes killed"] += outcome.crashes
        self.counts["runs resumed"] += outcome.resumes
        self.counts["runs rolled back"] += outcome.rollbacks
        self.counts["takeovers by another host"] += outcome.takeovers
        self.counts["tasks requested"] += outcome.tasks
        self.counts["tasks continued by another process"] += outcome.continued
        self.counts["tasks taken over by another host"] += outcome.task_takeovers
        self.counts["runs of --auto"] += outcome.loop_runs
        self.counts["checks"] += outcome.checks
        self.counts["lists on the way in fewer racks"] += outcome.crowded
        self.met += outcome.met
        self.days += outcome.seconds / 86400
        self.ended[_rest(outcome)] += 1
        if outcome.violation is not None:
            self.violations.append((seed, outcome.violation))

    def merge(self, other: "Figures") -> None:
        """Add the sums of other worlds."""
        self.runs += other.runs
        self.counts += other.counts
        self.met += other.met
        self.ended += other.ended
        self.cpu_s += other.cpu_s
        self.days += other.days
        self.violations += other.violations


def _rest(outcome: Outcome) -> str:
    """How the newest run ended, in a word or two."""
    none = "no run has ended" if outcome.violation is None else "none, an invariant was violated"
    return outcome.ended.partition(":")[0] or none


def figures_of(seeds: Iterable[int]) -> Figures:
    """Let the worlds of these seeds happen, one after the other."""
    found, begun_s = Figures(), time.process_time()
    for seed in seeds:
        found.add(seed, outcome_of(scenario_of(seed)))
    found.cpu_s = time.process_time() - begun_s
    return found


def tables(of: Figures) -> str:
    """As Markdown: what happened, and what failed."""
    rows = [
        ["worlds", f"{of.runs:,}"],
        *([name, f"{count:,}"] for name, count in of.counts.items()),
        *([f"at rest: {word}", f"{count:,}"] for word, count in sorted(of.ended.items())),
        ["days simulated", f"{of.days:,.1f}"],
        ["CPU per world", f"{1000 * of.cpu_s / max(1, of.runs):.0f} ms"],
        ["wall time of all", f"{of.wall_s:,.1f} s"],
        ["worlds in which an invariant was violated", f"{len(of.violations):,}"],
    ]
    faults = [[str(kind), f"{of.met[kind]:,}"] for kind in FaultKind]
    return f"{table(['what', 'count'], rows)}\n{table(['fault', 'times'], faults)}"


def mutant_table(results: Sequence[tuple[str, tuple[int, Violation] | None]]) -> str:
    """As Markdown: each deliberate bug, and what found it."""
    rows = [
        [name, str(found[0] + 1), found[1].invariant]
        if found
        else [name, "not found", UNSEEN.get(name, "")]
        for name, found in results
    ]
    return table(["bug", "seeds needed", "invariant, or why it is not seen"], rows)
