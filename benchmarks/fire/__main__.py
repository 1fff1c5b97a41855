"""Runs worlds in which everything fails: `python -P -m benchmarks.fire`.

Writes `benchmarks/fire.md` where `--write` says so. A failing seed is shrunk, and printed with the
command that repeats it.
"""

import argparse
import logging
import multiprocessing
import os
import sys
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.fire.figures import Figures, figures_of, mutant_table, tables
from benchmarks.fire.fire_world import Outcome, outcome_of
from benchmarks.fire.mutants import MUTANTS, found
from benchmarks.fire.scenarios import Scenario, scenario_of
from benchmarks.fire.shrinking import shrunk
from benchmarks.machine import processor

TABLE: Final = Path(__file__).parent.with_name("fire.md")
_CHUNK: Final = 50
_SHRUNK: Final = 5
"""Failing seeds that are shrunk."""
_HEAD: Final = """# Runs in a world in which everything fails

`make fire SEEDS={seeds}`, on {machine}.
Each seed is one world: a cluster, one or two hosts with a plan to execute, a task to work on or the
loop of `--auto`, and up to seven faults, at times with further ones of brokers.
Journal, executor, lease, archive, tasks and loop are the shipped code; the rest is simulated, as
[README.md](README.md#fire) says.
The machine was busy with other work, so only the counts can be compared.

## Worlds

{worlds}
"""
_MARK: Final = "\n## Deliberate bugs\n"
_MUTANTS: Final = f"""{_MARK}
`make fire ARGS=--mutants`: each bug is put into the shipped code, and seeds run from 0 on until an
invariant is violated, at most {{most:,}}.
{{found}} of {{all}} are found.

{{table}}"""


def main() -> int:
    """Run what the command line asks for; 1 where an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -P -m benchmarks.fire", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="number of worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--keep", help="of its faults, keep these: 0,2")
    parser.add_argument("--mutants", action="store_true", help="find deliberate bugs instead")
    parser.add_argument("--most", type=int, default=10_000, help="seeds per deliberate bug")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of names depends on it.
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        flags = ["-P"] if sys.flags.safe_path else []
        command = [sys.executable, *flags, "-m", "benchmarks.fire", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)  # noqa: S606 - no shell is needed
    logging.disable(logging.CRITICAL)
    if options.seed is not None:
        return _one(options.seed, options.keep)
    if options.mutants:
        text = _mutants(options.most, options.jobs)
        _write(text, mutants=True) if options.write else print(text)
        return 0
    return _many(options)


def _one(seed: int, keep: str | None) -> int:
    scenario = scenario_of(seed)
    if keep is not None:
        scenario = scenario.keeping(tuple(int(n) for n in keep.split(",") if n))
    outcome = outcome_of(scenario)
    print(_described(scenario, outcome))
    return int(outcome.violation is not None)


def _described(scenario: Scenario, outcome: Outcome) -> str:
    moves = [
        f"  {m.id}: {list(m.replicas_before)} -> {list(m.replicas_after)}"
        for m in scenario.plan.moves
    ]
    lines = [
        f"seed {scenario.seed}: {outcome.violation or 'every invariant held'}",
        f"{scenario.hosts} hosts, {outcome.crashes} crashes, {outcome.takeovers} takeovers",
        *moves,
        *(f"  {fault}" for fault in scenario.faults),
        f"the newest run: {outcome.ended}",
        f"trace {outcome.trace[:16]}",
    ]
    return "\n".join(lines)


def _many(options: argparse.Namespace) -> int:
    seeds = range(options.first, options.first + options.seeds)
    whole = Figures()
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    with multiprocessing.Pool(options.jobs, initializer=_quiet) as pool:
        for part in pool.imap_unordered(figures_of, chunks):
            whole.merge(part)
    text = tables(whole)
    print(text)
    for seed, violation in sorted(whole.violations, key=lambda found: found[0])[:_SHRUNK]:
        kept, outcome = shrunk(seed)
        numbers = ",".join(map(str, kept))
        print(f"\nseed {seed} violates {violation.invariant!r}; shrunk:")
        print(_described(scenario_of(seed).keeping(kept), outcome))
        print(f"repeat it: python -P -m benchmarks.fire --seed {seed} --keep {numbers}")
    if options.write:
        _write(_HEAD.format(seeds=options.seeds, machine=processor(), worlds=text), mutants=False)
    return int(bool(whole.violations))


def _mutants(most: int, jobs: int) -> str:
    with multiprocessing.Pool(jobs, initializer=_quiet) as pool:
        search = partial(found, seeds=range(most))
        results = list(zip(MUTANTS, pool.imap(search, MUTANTS), strict=True))
    count = sum(result is not None for _, result in results)
    return _MUTANTS.format(most=most, found=count, all=len(results), table=mutant_table(results))


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def _write(text: str, *, mutants: bool) -> None:
    """Replace one part of the table, and keep the other."""
    known = TABLE.read_text() if TABLE.exists() else ""
    head, mark, rest = known.partition(_MARK)
    TABLE.write_text(head + text if mutants else text.rstrip("\n") + "\n" + mark + rest)


if __name__ == "__main__":
    sys.exit(main())
